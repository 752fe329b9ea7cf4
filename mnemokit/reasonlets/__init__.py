"""Procedures with versions: what they are, how they are captured, ranked, recalled and erased."""
