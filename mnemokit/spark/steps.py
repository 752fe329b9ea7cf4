"""What is done with turns on an executor: pure functions on frames that stream by, one slice of the log at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.turns import passings
from mnemokit.turns.derive import PASSINGS, PASSINGS_SCHEMA, PassingsPolicy, derive_passings, needs_values
from mnemokit.turns.frame import REJECTS_SCHEMA, TURNS_SCHEMA, VALUE_COLUMNS, as_turns, split_turns
from mnemokit.turns.readers.canonical import NAME

Schema = dict[str, pl.DataType | type[pl.DataType]]

LOG_ROW: Schema = {"log_row": pl.Int64}
"""Where a turn stands in the log: its row, counted through all files."""

SESSION_ROW: Schema = {"session_row": pl.Int64}
"""Where the first turn of a turn's session stands in the log: sessions come in this order."""

NTH: Schema = {"nth": pl.Int64}
"""The number of a passing within its slice of the log, from 1."""

NUMBERED_PASSINGS: Schema = PASSINGS_SCHEMA | NTH

REJECTS: Schema = {"source": pl.String, **REJECTS_SCHEMA}

_UNSEEN = ("requestor", "ok", "user_id", "scope", "question", "session_outcome")
"""Columns that no policy of mnemokit's own looks at: they need not travel."""


def turns_schema(policy: str | PassingsPolicy) -> Schema:
    """Columns of the turns that a replay keeps: hashed values only where the policy looks at them."""
    return TURNS_SCHEMA | (VALUE_COLUMNS if needs_values(policy) else {})


def columns_seen(policy: str | PassingsPolicy) -> list[str]:
    """The columns of turns that a policy for passings may look at.

    Example:
        >>> "question" in columns_seen("grouped"), "question" in columns_seen(lambda turns: turns)
        (False, True)
    """
    function = function_of(policy)
    unseen: tuple[str, ...] = ()
    if function.__module__ == passings.__name__:
        unseen = _UNSEEN if function is passings.handoffs else (*_UNSEEN, "meta")
    return [name for name in turns_schema(policy) if name not in unseen]


def function_of(policy: str | PassingsPolicy) -> PassingsPolicy:
    """The function that a policy's name stands for here; executors may not know a name that a user added.

    Raises:
        InvalidInput: If there is no policy of this name.
    """
    if not isinstance(policy, str):
        return policy
    if policy not in PASSINGS:
        raise InvalidInput(f"passings={policy!r} is no policy; use one of {', '.join(PASSINGS)}; nothing was read")
    return PASSINGS[policy]


def usable_turns(frames: Iterable[pl.DataFrame], tz: str | None, label: str | None) -> Iterator[pl.DataFrame]:
    """Canonical turns of raw rows that have ``log_row``, which they keep; rows that cannot be used are left out."""
    for frame in frames:
        turns, rejects = split_turns(frame, source=NAME, tz=tz)
        kept = frame.get_column("log_row")
        if rejects.height:
            kept = kept.filter(~_places(frame, rejects))
        turns = turns.with_columns(kept)
        yield turns if label is None else turns.with_columns(source=pl.lit(label))


def unusable_turns(frames: Iterable[pl.DataFrame], tz: str | None, label: str | None) -> Iterator[pl.DataFrame]:
    """Rows that cannot be used, with the reason; raw rows have ``file`` and ``file_row`` (from 0)."""
    for frame in frames:
        _, rejects = split_turns(frame, source=NAME, tz=tz)
        bad = frame.filter(_places(frame, rejects))
        source = as_turns(bad, source=NAME, tz=tz).get_column("source")
        yield rejects.with_columns(
            source if label is None else pl.lit(label).alias("source"),
            bad.get_column("file"),
            place=bad.select(pl.format("row {}", "file_row")).to_series(),
        )


def numbered_passings(frames: Iterable[pl.DataFrame], policy: PassingsPolicy) -> Iterator[pl.DataFrame]:
    """Passings of turns that come in order of ``session_row`` and ``log_row``, numbered from 1 as they come."""
    before = 0
    for sessions in _whole_sessions(frames):
        derived = derive_passings(as_turns(sessions), policy)
        yield derived.with_columns(nth=pl.int_range(pl.len(), dtype=pl.Int64) + before + 1)
        before += derived.height


def _whole_sessions(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows, cut only between sessions."""
    held: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if held is None else pl.concat([held, frame])
        going_on = pl.col("session_row") == rows.item(-1, "session_row")
        whole, held = rows.filter(~going_on), rows.filter(going_on)
        if whole.height:
            yield whole
    if held is not None:
        yield held


def _places(frame: pl.DataFrame, rejects: pl.DataFrame) -> pl.Series:
    """Which rows of a frame were rejected."""
    rows = rejects.get_column("place").str.extract(r"(\d+)").cast(pl.Int64)
    return pl.int_range(frame.height, dtype=pl.Int64, eager=True).is_in(rows.implode())
