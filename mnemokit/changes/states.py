"""The states of a memory write, and the table of moves between them.

The table is the only place where a move is allowed; ``log.move`` refuses every other one, and the documentation
prints it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ChangeState(StrEnum):
    """Where a memory write stands. The last four are verdicts."""

    CANDIDATE = "candidate"
    APPLIED = "applied"
    KEPT = "kept"
    UNDONE_FORGOTTEN = "undone_forgotten"
    UNDONE_UNRECORDED = "undone_unrecorded"
    REVERTED = "reverted"


class Move(NamedTuple):
    """One allowed move. ``source`` is None for the move that begins a write."""

    source: ChangeState | None
    target: ChangeState
    when: str
    left: str


MOVES: tuple[Move, ...] = (
    Move(
        None,
        ChangeState.CANDIDATE,
        "the session rows are noted and the write is recorded",
        "its plan; no trace is touched yet",
    ),
    Move(ChangeState.CANDIDATE, ChangeState.APPLIED, "apply() is committed", "the traces as the write made them"),
    Move(
        ChangeState.APPLIED,
        ChangeState.KEPT,
        "the tombstones were read again and the verdict is written",
        "the traces, and what was really kept",
    ),
    Move(
        ChangeState.CANDIDATE,
        ChangeState.UNDONE_UNRECORDED,
        "apply() raised, or the write was found open when the store was opened",
        "every trace as it was before",
    ),
    Move(
        ChangeState.APPLIED,
        ChangeState.UNDONE_UNRECORDED,
        "the tombstones could not be read, or the verdict not be written, or the write was found open",
        "every trace as it was before",
    ),
    Move(
        ChangeState.CANDIDATE,
        ChangeState.UNDONE_FORGOTTEN,
        "the learner or a noted contributor was forgotten meanwhile",
        "nothing: no words, and ids only as keyed hashes",
    ),
    Move(
        ChangeState.APPLIED,
        ChangeState.UNDONE_FORGOTTEN,
        "the learner or a noted contributor was forgotten meanwhile",
        "every trace it created, changed or deleted is gone for good",
    ),
    Move(ChangeState.KEPT, ChangeState.REVERTED, "it was reverted", "every trace as it was before"),
)

OPEN = (ChangeState.CANDIDATE, ChangeState.APPLIED)
"""The states of a write that has no verdict yet."""


def sources_of(target: ChangeState) -> list[str]:
    """The states from which a write may come to this one.

    Example:
        >>> sources_of(ChangeState.REVERTED)
        ['kept']
    """
    return [move.source.value for move in MOVES if move.target is target and move.source is not None]


def moves_as_markdown() -> str:
    """The table of allowed moves, as the documentation prints it.

    Example:
        >>> print(moves_as_markdown().splitlines()[2].split("|")[1:3])
        [' (nothing) ', ' candidate ']
    """
    head = ("from", "to", "when", "what is left")
    rows = [(move.source or "(nothing)", move.target, move.when, move.left) for move in MOVES]
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Step(StrEnum):
    """The places in a write, a revert or a forgetting where a process can die; each begins what it names.

    An observer given to ``Changes`` is told of each. Tests kill the process there, or fail.
    """

    NOTE_ROWS = "note_rows"
    RECORD_CANDIDATE = "record_candidate"
    APPLY = "apply"
    COMMIT_APPLY = "commit_apply"
    READ_TOMBSTONES = "read_tombstones"
    WRITE_VERDICT = "write_verdict"
    DONE = "done"
    UNDO = "undo"
    WRITE_UNDONE = "write_undone"
    REVERT = "revert"
    LAY_TOMBSTONE = "lay_tombstone"
    BLANK = "blank"


def no_observer(step: Step) -> None:
    """Watch nothing."""
