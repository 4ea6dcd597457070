"""Measurements, never tests: `python -m benchmarks` runs them all and writes `benchmarks/results/`."""
