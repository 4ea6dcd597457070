"""toolcage: a secure tool runtime for AI agents."""
