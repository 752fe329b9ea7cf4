"""From logged turns to memory, exactly once."""
