"""Search for programs that a safe fix changes: ``python -m tests.refute.run``."""
