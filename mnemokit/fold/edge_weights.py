"""The formulas of the edge memory: how a weight fades, grows, and falls below a threshold.

Each formula is written once and works on plain numbers, on numpy arrays and on Polars expressions: the caller hands in
the exponential that belongs to its kind (``math.exp``, ``np.exp``, ``pl.Expr.exp``). Times are days, rates per day.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame, as_polars
from mnemokit.instants import DAY_US, Instant, as_utc
from mnemokit.records import EdgeParams, MnestState

Floats = npt.NDArray[np.float64]
Number = TypeVar("Number", float, Floats, pl.Expr)

LIVE_STATES = (MnestState.ACTIVE.value, MnestState.PROTO.value)
"""States that passings strengthen and that an ager decays."""


def fraction_left(decay_lambda: Number | float, days: Number, exp: Callable[[Number], Number]) -> Number:
    """What is left of a weight after some days: ``exp(-lambda * days)``.

    Because exponentials multiply, decaying night by night and decaying once over the whole span are the same.

    Example:
        >>> import math
        >>> round(0.30 * fraction_left(0.018, 10.0, math.exp), 4)
        0.2506
    """
    return exp(-decay_lambda * days)


def floor_of(threshold: float, params: EdgeParams) -> float:
    """The number that a weight must be less than to be *below* a threshold.

    Nightly products and one single exponential differ in the last digits, so an exact hit counts as not below.

    Example:
        >>> 0.20 < floor_of(0.20, EdgeParams()), 0.1999 < floor_of(0.20, EdgeParams())
        (False, True)
    """
    return threshold * (1.0 - params.tolerance)


def live_floor(state: str, params: EdgeParams) -> float:
    """Below this an ager ends a live record: demotes an active one, purges a proto."""
    return floor_of(params.purge_below if state == MnestState.PROTO else params.demote_below, params)


def is_empty_signature(signature: str | None) -> bool:
    """Does a wanted signature say nothing? A null and an empty ``{}`` are equal.

    Example:
        >>> is_empty_signature(None), is_empty_signature("{}"), is_empty_signature('{"inputs": ["x"]}')
        (True, True, False)
    """
    return signature is None or signature.strip() in ("", "{}", "null")


def weight_at(at: datetime | None) -> pl.Expr:
    """Column ``weight_at`` of a frame of mnests: what each weight has faded to by an instant.

    Args:
        at: The instant; None leaves the stored weight.

    Returns:
        An expression over weight, ts_last, decay_lambda and, where the frame has it, untimed. A record whose last
        passing has no time keeps its weight: its clock has not started. Before ``ts_last`` a weight is as stored.
    """
    if at is None:
        return pl.col("weight").alias("weight_at")
    days = (pl.lit(at, pl.Datetime("us", "UTC")) - pl.col("ts_last")).dt.total_microseconds() / DAY_US
    days = days.clip(lower_bound=0.0)
    faded = pl.col("weight") * fraction_left(pl.col("decay_lambda"), days, pl.Expr.exp)
    return pl.when(pl.col("untimed")).then(pl.col("weight")).otherwise(faded).alias("weight_at")


def decay(mnests: Frame, *, at: Instant) -> pl.DataFrame:
    """Say what each weight has faded to by an instant, with no ager needed.

    Args:
        mnests: Columns weight (0 to 1, as of ts_last), ts_last (UTC) and decay_lambda (per day); untimed if there is.
        at: Aware instant.

    Returns:
        The same rows with column weight_at.

    Raises:
        InvalidInput: If a column is missing, or ``at`` has no time zone.

    Example:
        >>> from datetime import UTC, datetime
        >>> day = datetime(2025, 8, 1, tzinfo=UTC)
        >>> frame = pl.DataFrame({"weight": [0.3], "ts_last": [day], "decay_lambda": [0.018]})
        >>> round(decay(frame, at="2025-08-11T00:00:00+00:00")["weight_at"].item(), 4)
        0.2506
    """
    moment, given = as_utc(at), as_polars(mnests, "mnests", "nothing was changed")
    missing = [name for name in ("weight", "ts_last", "decay_lambda") if name not in given.columns]
    if missing:
        raise InvalidInput(f"a frame of mnests needs {', '.join(missing)}; it has {', '.join(given.columns)}")
    if "untimed" in given.columns:
        return given.with_columns(weight_at(moment))
    return given.with_columns(untimed=pl.lit(False)).with_columns(weight_at(moment)).drop("untimed")
