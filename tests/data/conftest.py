"""Scripts that make data are no tests, and what they import is not installed for tests."""

collect_ignore_glob = ["*.py", "traces/*"]
