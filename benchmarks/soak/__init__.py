"""Calls under faults: `python -m benchmarks.soak`. See `__main__.py` for what it does and what it proves."""
