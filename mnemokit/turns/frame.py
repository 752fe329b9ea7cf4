"""The canonical frame of turns: one row per step of an agent, whatever log it came from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from zoneinfo import ZoneInfo

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.records import OUTCOMES

UTC_INSTANT = pl.Datetime("us", "UTC")

#: The columns of the canonical frame, in order.
TURNS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.String,
    "session_id": pl.String,
    "turn_id": pl.String,
    "step": pl.Int64,
    "parallel_group": pl.Int64,
    "executor": pl.String,
    "executor_version": pl.String,
    "requestor": pl.String,
    "ts": UTC_INSTANT,
    "ok": pl.Boolean,
    "user_id": pl.String,
    "scope": pl.String,
    "question": pl.String,
    "session_outcome": pl.String,
    "meta": pl.String,
}

#: What a reader adds when it is asked for hashed values: see `mnemokit.turns.values`.
VALUE_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "arg_values": pl.List(pl.UInt64),
    "result_values": pl.List(pl.UInt64),
}

#: What a reader adds when it is asked for text.
TEXT_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {"arguments": pl.String, "result": pl.String}

#: Records that could not be used. ``place`` is a line or a path in the document.
REJECTS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "file": pl.String,
    "place": pl.String,
    "reason": pl.String,
    "excerpt": pl.String,
    "user_id": pl.String,
}

#: What makes a row the same record as another one.
TURN_KEY = ("source", "session_id", "turn_id", "step")

MAX_NAME_CHARS = 512
"""An executor, version or id longer than this is no name; a reader rejects the record."""

_NEEDED = ("session_id", "step", "executor")
_NAMES = ("source", "session_id", "turn_id", "executor", "executor_version")


def empty_turns() -> pl.DataFrame:
    """A canonical frame without rows.

    Example:
        >>> empty_turns().columns[:4]
        ['source', 'session_id', 'turn_id', 'step']
    """
    return pl.DataFrame(schema=TURNS_SCHEMA)


def check_turns(frame: pl.DataFrame, *, source: str = "turns", tz: str | None = None) -> pl.DataFrame:
    """Turn a user's frame into a canonical one, or say in one line why it is none.

    Needed columns are ``session_id``, ``step`` and ``executor``. What else is missing is filled in: ``source`` with
    the argument, ``turn_id`` with ``session_id:step``, ``parallel_group`` with ``step`` (no two steps in parallel),
    anything else with null. Columns that are not canonical are dropped, except hashed values and texts.

    Args:
        frame: One row per step.
        source: The source's name, used where the frame has none.
        tz: Time zone of naive instants, for instance ``"UTC"``; without it naive instants are refused.

    Returns:
        The same rows, in the same order, with the columns and types of `TURNS_SCHEMA`.

    Raises:
        InvalidInput: If a column is missing, has the wrong type, or holds a value that the frame may not hold.

    Example:
        >>> frame = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
        >>> check_turns(frame).select("source", "turn_id", "parallel_group").rows()
        [('turns', 's:0', 0), ('turns', 's:1', 1)]
    """
    turns = as_turns(frame, source=source, tz=tz)
    reasons = turns.select(reason=_unusable()).to_series()
    bad = reasons.is_not_null().arg_true()
    if bad.len():
        raise InvalidInput(f"row {bad[0]} of this frame of turns cannot be used: {reasons[bad[0]]}; nothing was read")
    return turns


def split_turns(
    frame: pl.DataFrame, *, source: str = "turns", tz: str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """As `check_turns`, but rows that cannot be used come apart, as rejects with their reason.

    Returns:
        The usable turns, and the rejects (columns of `REJECTS_SCHEMA`; ``place`` is the row's number, from 0).

    Raises:
        InvalidInput: If a column is missing or has the wrong type.

    Example:
        >>> frame = pl.DataFrame({"session_id": ["s", ""], "step": [0, 1], "executor": ["find", "buy"]})
        >>> turns, rejects = split_turns(frame)
        >>> rejects.select("place", "reason").rows()
        [('row 1', 'session_id is empty')]
    """
    turns = as_turns(frame, source=source, tz=tz).with_row_index("row").with_columns(reason=_unusable())
    rejects = turns.filter(pl.col("reason").is_not_null()).select(
        file=pl.lit(None, dtype=pl.String),
        place=pl.format("row {}", "row"),
        reason="reason",
        excerpt=pl.lit(None, dtype=pl.String),
        user_id="user_id",
    )
    return turns.filter(pl.col("reason").is_null()).drop("row", "reason"), rejects


def as_turns(frame: pl.DataFrame, *, source: str = "turns", tz: str | None = None) -> pl.DataFrame:
    """The columns of a canonical frame, filled in as `check_turns` says, with the values unchecked.

    Raises:
        InvalidInput: If a column is missing or has the wrong type.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"this is no frame of turns: column {missing[0]!r} is missing; it needs {', '.join(_NEEDED)} "
            f"and has {', '.join(frame.columns) or 'no columns'}"
        )
    turns = frame.select(_column(frame, name, dtype, tz) for name, dtype in _wanted(frame).items())
    return turns.with_columns(
        pl.col("source").fill_null(source),
        pl.col("turn_id").fill_null(pl.format("{}:{}", "session_id", "step")),
        pl.col("parallel_group").fill_null(pl.col("step")),
    )


def _wanted(frame: pl.DataFrame) -> Mapping[str, pl.DataType | type[pl.DataType]]:
    extra = {name: dtype for name, dtype in (VALUE_COLUMNS | TEXT_COLUMNS).items() if name in frame.columns}
    return TURNS_SCHEMA | extra


def _column(frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType], tz: str | None) -> pl.Expr:
    if name not in frame.columns:
        return pl.lit(None, dtype=dtype).alias(name)
    have = frame.schema[name]
    if have == dtype:
        return pl.col(name)
    if have == pl.Null:
        return pl.col(name).cast(dtype)
    if name == "ts":
        return _instants(have, tz)
    fits = (
        (dtype == pl.Int64 and have.is_integer())
        or (dtype == pl.String and isinstance(have, (pl.Categorical, pl.Enum)))
        or (dtype == pl.String and name in ("session_id", "turn_id", "question", "user_id") and have.is_integer())
        or (dtype in VALUE_COLUMNS.values() and have == pl.List(pl.Null))
    )
    if not fits:
        raise InvalidInput(f"column {name!r} of a frame of turns must be {dtype}, not {have}; nothing was read")
    if (
        have.is_integer()
        and dtype == pl.Int64
        and frame[name].cast(pl.Int64, strict=False).null_count() > (frame[name].null_count())
    ):
        raise InvalidInput(f"column {name!r} of a frame of turns holds an integer of 2^63 or beyond")
    return pl.col(name).cast(dtype)


def _instants(have: pl.DataType, tz: str | None) -> pl.Expr:
    if isinstance(have, pl.Datetime):
        if have.time_zone is not None:
            return pl.col("ts").cast(pl.Datetime("us", have.time_zone)).dt.convert_time_zone("UTC")
        if tz is None:
            raise InvalidInput(
                "column 'ts' of a frame of turns has no time zone; give tz=, for instance tz='UTC', or convert it"
            )
        zone_of(tz)
        return pl.col("ts").cast(pl.Datetime("us")).dt.replace_time_zone(tz).dt.convert_time_zone("UTC")
    raise InvalidInput(f"column 'ts' of a frame of turns must be {UTC_INSTANT}, not {have}; nothing was read")


def _unusable() -> pl.Expr:
    """Why a row cannot be used; null where it can."""
    bad = pl.lit(None, dtype=pl.String)
    for name in ("turn_id", "parallel_group", "source", "step", "session_id"):
        bad = pl.when(pl.col(name).is_null()).then(pl.lit(f"{name} is null")).otherwise(bad)
    for name in _NAMES:
        chars = pl.col(name).str.len_chars()
        bad = pl.when(chars == 0).then(pl.lit(f"{name} is empty")).otherwise(bad)
        bad = (
            pl.when(chars > MAX_NAME_CHARS)
            .then(pl.lit(f"{name} is longer than {MAX_NAME_CHARS} characters"))
            .otherwise(bad)
        )
    return (
        pl.when(pl.col("session_outcome").is_in(OUTCOMES).not_())
        .then(pl.format("session_outcome is {}, not success, failure or null", "session_outcome"))
        .otherwise(bad)
    )


def zone_of(tz: str) -> tzinfo:
    """The time zone of this name.

    Raises:
        InvalidInput: If there is none.

    Example:
        >>> zone_of("Europe/Rome").key
        'Europe/Rome'
    """
    try:
        return ZoneInfo(tz)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        pass
    except KeyError:
        pass
    raise InvalidInput(f"tz={tz!r} is no time zone; write it like 'UTC' or 'Europe/Rome'")
