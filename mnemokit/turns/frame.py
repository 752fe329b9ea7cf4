"""The canonical frame of turns: one row per step of an agent, whatever log it came from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from zoneinfo import ZoneInfo

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame, as_polars
from mnemokit.instants import EPOCH
from mnemokit.records import OUTCOMES
from mnemokit.turns.redaction import shape_of

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
    "source": pl.String,
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

YEARS = (1970, 2199)
"""A turn's instant lies in these years: the untimed ones stand at the start of 1970, and each night up to the last
instant gets an ager, so that one slip of a clock by centuries would fade every edge."""

FIRST_INSTANT = datetime(YEARS[0], 1, 1, tzinfo=UTC)
END_OF_INSTANTS = datetime(YEARS[1] + 1, 1, 1, tzinfo=UTC)
OUTSIDE_YEARS = f"is not within the years {YEARS[0]} to {YEARS[1]}"

OUTCOME_REASON = "session_outcome is not success, failure or null"
"""Reasons never quote a value: it may be anyone's words."""

NEEDED = ("session_id", "step", "executor")
_NAMES = ("source", "session_id", "turn_id", "executor", "executor_version", "user_id")
_TEXTS = ("requestor", "user_id", "scope", "question", "meta")
_OUTSIDE = datetime(1, 1, 1, tzinfo=UTC)
"""Stands for an instant that cannot be told, until its row is rejected: null would make the turn an untimed one."""
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


class UnusedColumn(UserWarning):
    """A column is not used, though its name is nearly that of one that is."""


def check_turns(frame: Frame, *, source: str = "turns", tz: str | None = None) -> pl.DataFrame:
    """Turn a user's frame into a canonical one, or say in one line why it is none.

    Needed columns are ``session_id``, ``step`` and ``executor``. What else is missing is filled in: ``source`` with
    the argument, ``turn_id`` with ``session_id:step``, ``parallel_group`` with ``step`` (no two steps in parallel),
    anything else with null. An empty ``requestor``, ``user_id``, ``scope``, ``question`` or ``meta`` is null. Columns
    that are not canonical are dropped, except hashed values and texts.

    Args:
        frame: One row per step; of Polars, pandas or Arrow. ``step`` may be floats that are whole, ``ok`` 0 and 1.
        source: The source's name, used where the frame has none.
        tz: Time zone of naive instants, for instance ``"UTC"``; without it naive instants are refused. An hour that
            its clocks repeat is the first one, an hour that they skip goes on from the time before.

    Returns:
        The same rows, in the same order, with the columns and types of `TURNS_SCHEMA`.

    Raises:
        InvalidInput: If a column is missing, has the wrong type, or holds a value that the frame may not hold.

    Warns:
        UnusedColumn: If a column is not used, and its name is nearly that of one that is.

    Example:
        >>> frame = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
        >>> check_turns(frame).select("source", "turn_id", "parallel_group").rows()
        [('turns', 's:0', 0), ('turns', 's:1', 1)]
    """
    given = as_polars(frame, "turns")
    warn_of_near_names(given.columns, "this frame")
    turns = as_turns(given, source=source, tz=tz)
    reasons = turns.select(reason=_unusable()).to_series()
    bad = reasons.is_not_null().arg_true()
    if bad.len():
        raise InvalidInput(f"row {bad[0]} of this frame of turns cannot be used: {reasons[bad[0]]}; nothing was read")
    return turns


def split_turns(
    frame: pl.DataFrame,
    *,
    source: str = "turns",
    tz: str | None = None,
    first_row: int = 0,
    file: str | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """As `check_turns`, but rows that cannot be used come apart, as rejects with their reason.

    Args:
        frame: One row per step.
        source: The source's name, used where the frame has none.
        tz: Time zone of naive instants.
        first_row: Number of the first row, where the frame is a part of a longer one.
        file: What the rejects say of where the frame comes from.

    Returns:
        The usable turns, and the rejects (columns of `REJECTS_SCHEMA`; ``place`` is the row's number, from 0; the
        excerpt shows which columns the row has, without their values).

    Raises:
        InvalidInput: If a column is missing or has the wrong type.

    Example:
        >>> frame = pl.DataFrame({"session_id": ["s", ""], "step": [0, 1], "executor": ["find", "buy"]})
        >>> turns, rejects = split_turns(frame)
        >>> rejects.select("place", "reason").rows()
        [('row 1', 'session_id is empty')]
    """
    turns = as_turns(frame, source=source, tz=tz)
    reasons = turns.select(reason=_unusable()).to_series()
    bad = reasons.is_not_null()
    if not bad.any():
        return turns, pl.DataFrame(schema=REJECTS_SCHEMA)
    own, person = (pl.when(pl.col(name).str.len_chars() <= MAX_NAME_CHARS).then(name) for name in ("source", "user_id"))
    rejects = turns.filter(bad).select(
        source=pl.when(own != "").then(own).otherwise(pl.lit(source)),
        file=pl.lit(file, dtype=pl.String),
        place=pl.format("row {}", bad.arg_true().cast(pl.Int64) + first_row),
        reason=reasons.filter(bad),
        excerpt=frame.filter(bad).select(shape_of(frame, tuple(TURNS_SCHEMA))).to_series(),
        user_id=person,
    )
    return turns.filter(~bad), rejects


def as_turns(
    frame: pl.DataFrame, *, source: str = "turns", tz: str | None = None, by_value: bool = True
) -> pl.DataFrame:
    """The columns of a canonical frame, filled in as `check_turns` says, with the values unchecked.

    Args:
        frame: One row per step.
        source: The source's name, used where the frame has none.
        tz: Time zone of naive instants.
        by_value: Take another type of number whose values all fit (whole floats, 0 and 1 for a flag); a frame that is
            only a part of the rows cannot tell.

    Raises:
        InvalidInput: If a column is missing or has the wrong type.
    """
    turns = frame.select(canonical_columns(frame, tz, by_value=by_value))
    # Asked first, because nearly no log has one, and a new column of text is dear.
    empty = [name for name in _TEXTS if name in frame.columns and (turns[name] == "").any()]
    return turns.with_columns(
        *(pl.when(pl.col(name) != "").then(name).alias(name) for name in empty),
        pl.col("source").fill_null(source),
        pl.col("turn_id").fill_null(pl.format("{}:{}", "session_id", "step")),
        pl.col("parallel_group").fill_null(pl.col("step")),
    )


def canonical_columns(frame: pl.DataFrame, tz: str | None, *, by_value: bool = True) -> list[pl.Expr]:
    """The columns of a canonical frame, made of those of this frame.

    Raises:
        InvalidInput: If a column is missing or has the wrong type.
    """
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"this is no frame of turns: column {missing[0]!r} is missing; it needs {', '.join(NEEDED)} "
            f"and has {', '.join(frame.columns) or 'no columns'}; nothing was read; rename yours (docs/formats.md)"
        )
    return [_column(frame, name, dtype, tz, by_value=by_value) for name, dtype in _wanted(frame).items()]


def warn_of_near_names(columns: Sequence[str], where: str) -> None:
    """Warn of columns that are not used, and whose name is nearly that of one that is and is not there."""
    known = [*TURNS_SCHEMA, *VALUE_COLUMNS, *TEXT_COLUMNS]
    absent = [name for name in known if name not in columns]
    for name in columns:
        near = get_close_matches(name, absent, n=1, cutoff=0.85)
        if name not in known and near:
            warnings.warn(
                f"column {name!r} of {where} is not used; did you mean {near[0]!r}?", UnusedColumn, stacklevel=4
            )


def _all_whole(column: pl.Series) -> bool:
    # Beyond 2^53 not every whole number is a float.
    return bool(((column.round() == column) & (column.abs() < 2**53)).all())


def _wanted(frame: pl.DataFrame) -> Mapping[str, pl.DataType | type[pl.DataType]]:
    extra = {name: dtype for name, dtype in (VALUE_COLUMNS | TEXT_COLUMNS).items() if name in frame.columns}
    return TURNS_SCHEMA | extra


def _column(
    frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType], tz: str | None, *, by_value: bool
) -> pl.Expr:
    if name not in frame.columns:
        return pl.lit(None, dtype=dtype).alias(name)
    have = frame.schema[name]
    if have == dtype:
        return pl.col(name)
    if have == pl.Null:
        return pl.col(name).cast(dtype)
    if name == "ts":
        return _instants(have, tz)
    if by_value and have.is_float() and dtype == pl.Int64 and _all_whole(frame[name]):
        # A column of whole numbers that had a gap is one of floats in pandas.
        return pl.col(name).cast(dtype)
    if by_value and have.is_integer() and dtype == pl.Boolean and frame[name].is_between(0, 1).all():
        return pl.col(name).cast(dtype)
    fits = (
        (dtype == pl.Int64 and have.is_integer())
        or (dtype == pl.String and isinstance(have, (pl.Categorical, pl.Enum)))
        or (dtype == pl.String and name in ("session_id", "turn_id", "question", "user_id") and have.is_integer())
        or (dtype in VALUE_COLUMNS.values() and have == pl.List(pl.Null))
    )
    if not fits:
        raise InvalidInput(
            f"column {name!r} of a frame of turns must be {dtype}, not {have}; nothing was read; cast it"
        )
    if (
        have.is_integer()
        and dtype == pl.Int64
        and frame[name].cast(pl.Int64, strict=False).null_count() > (frame[name].null_count())
    ):
        raise InvalidInput(f"column {name!r} of a frame of turns holds an integer of 2^63 or beyond")
    return pl.col(name).cast(dtype)


def _instants(have: pl.DataType, tz: str | None) -> pl.Expr:
    if not isinstance(have, pl.Datetime):
        raise InvalidInput(
            f"column 'ts' of a frame of turns must be {UTC_INSTANT}, not {have}; nothing was read; convert it, in "
            'Polars with .str.to_datetime(time_zone="UTC"), in pandas with pd.to_datetime(..., utc=True)'
        )
    if have.time_zone is None and tz is None:
        raise InvalidInput(
            "column 'ts' of a frame of turns has no time zone; give tz=, for instance tz='UTC', or convert it"
        )
    # Of numbers far outside, Polars can make no instant of another unit or zone; two days are more than zones differ.
    day = 86_400 * _PER_SECOND[have.time_unit]
    lowest, highest = ((FIRST_INSTANT - EPOCH).days - 2) * day, ((END_OF_INSTANTS - EPOCH).days + 2) * day
    given = pl.when(pl.col("ts").to_physical().is_between(lowest, highest)).then("ts")
    if have.time_zone is not None:
        moment = given.cast(pl.Datetime("us", have.time_zone)).dt.convert_time_zone("UTC")
    else:
        zone_of(str(tz))
        moment = _placed(given.cast(pl.Datetime("us")), str(tz))
    return pl.when(pl.col("ts").is_not_null()).then(moment.fill_null(pl.lit(_OUTSIDE, dtype=UTC_INSTANT))).alias("ts")


def _placed(naive: pl.Expr, tz: str) -> pl.Expr:
    """Naive instants in a zone, by the rule of `mnemokit.turns.fields.instant`, which is Python's."""

    def placed(moment: pl.Expr) -> pl.Expr:
        return moment.dt.replace_time_zone(tz, ambiguous="earliest", non_existent="null").dt.convert_time_zone("UTC")

    # Where the clocks skipped this time, the offset of the day before still holds.
    day = pl.duration(days=1)
    return pl.coalesce(placed(naive), placed(naive - day) + day)


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
    outside = pl.col("ts").is_between(FIRST_INSTANT, END_OF_INSTANTS, closed="left").not_()
    bad = pl.when(outside).then(pl.lit(f"ts {OUTSIDE_YEARS}")).otherwise(bad)
    return pl.when(pl.col("session_outcome").is_in(OUTCOMES).not_()).then(pl.lit(OUTCOME_REASON)).otherwise(bad)


def zone_of(tz: str) -> tzinfo:
    """The time zone of this name.

    Raises:
        InvalidInput: If there is none.

    Example:
        >>> zone_of("Europe/Rome").key
        'Europe/Rome'
    """
    try:
        zone = ZoneInfo(tz)
        # Polars places the instants of frames, and knows fewer zones than there may be files of.
        pl.Series([], dtype=pl.Datetime("us")).dt.replace_time_zone(tz)
    except (ValueError, OSError, KeyError, pl.exceptions.ComputeError):  # ZoneInfoNotFoundError is a KeyError
        pass
    else:
        return zone
    raise InvalidInput(f"tz={tz!r} is no time zone; write it like 'UTC' or 'Europe/Rome'")
