"""Memory writes that can be taken back, and people who can be forgotten."""
