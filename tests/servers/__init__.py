"""Real servers on loopback for tests: each starts when a test first asks for it and ends with the session.

Every server lives in a temporary folder, on a port that was free, as a user of its own where root starts it, and dies
with the process that started it. `fixtures` gives them to tests; `portal` puts a broker's handler in front of one.
"""
