"""Turns: the log that everything is derived from."""

from mnemokit.turns.derive import derive_captures, derive_passings
from mnemokit.turns.frame import TURNS_SCHEMA, check_turns
from mnemokit.turns.memory_writes import read_memory_writes
from mnemokit.turns.reading import read_batches, read_turns

__all__ = [
    "TURNS_SCHEMA",
    "check_turns",
    "derive_captures",
    "derive_passings",
    "read_batches",
    "read_memory_writes",
    "read_turns",
]
