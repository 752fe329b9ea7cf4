"""Columns that a caller or a file gives: are they of the type they are read as."""

from __future__ import annotations

import polars as pl

from mnemokit.frames import FLAG, FLOAT, INT, TEXT


def why_unfit(dtype: pl.DataType, wanted: pl.DataType) -> str | None:
    """Why a column of one type cannot be read as another without a guess; None if it can.

    An instant without a time zone is not read as UTC: nobody said that it is.

    Example:
        >>> why_unfit(pl.Int64(), pl.String())
        'is Int64, not String'
        >>> why_unfit(pl.Datetime("ms"), pl.Datetime("us", "UTC"))
        'has no time zone'
    """
    if dtype == pl.Null or _reads_as(dtype, wanted):
        return None
    if isinstance(dtype, pl.Datetime) and isinstance(wanted, pl.Datetime):
        return "has no time zone"
    return f"is {dtype}, not {'Datetime with a time zone' if isinstance(wanted, pl.Datetime) else wanted}"


def out_of_years(column: str) -> pl.Expr:
    """Which instants of a column are before the year 1 or after the year 9999, and so cannot be given back.

    Example:
        >>> frame = pl.DataFrame({"ts": [0, 2**62]}).cast(pl.Datetime("us", "UTC"))
        >>> frame.select(out_of_years("ts"))["ts"].to_list()
        [False, True]
    """
    return ~pl.col(column).dt.year().is_between(1, 9999)


def _reads_as(dtype: pl.DataType, wanted: pl.DataType) -> bool:
    if isinstance(wanted, pl.Datetime):
        return isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
    if wanted == TEXT:
        return isinstance(dtype, (pl.String, pl.Categorical, pl.Enum))
    if wanted == INT:
        return dtype.is_integer()
    if wanted == FLOAT:
        return dtype.is_numeric()
    return dtype == FLAG
