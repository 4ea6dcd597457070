"""AgentDojo's tasks and attacks replayed as calls through the line, without a model. See README.md."""
