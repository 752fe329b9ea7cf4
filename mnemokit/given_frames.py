"""Frames that callers give: of Polars, pandas, Arrow or DuckDB; everything inside works on Polars."""

from __future__ import annotations

from typing import Protocol, TypeGuard

import polars as pl

from mnemokit.errors import InvalidInput


class ArrowTable(Protocol):
    """A table that any library can read: frames of pandas, Arrow tables, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Its rows as a stream of Arrow."""
        ...


Frame = pl.DataFrame | pl.LazyFrame | ArrowTable


def is_frame(given: object) -> TypeGuard[Frame]:
    """Is this a table of rows and columns that `as_polars` takes?"""
    return isinstance(given, (pl.DataFrame, pl.LazyFrame)) or _is_arrow_table(given)


def _is_arrow_table(given: object) -> TypeGuard[ArrowTable]:
    # A column of Polars or Arrow can be a stream too; a frame has columns.
    return hasattr(given, "columns") and hasattr(given, "__arrow_c_stream__")


def as_polars(given: object, name: str, untouched: str = "nothing was read") -> pl.DataFrame:
    """The rows of a frame of Polars (lazy ones are collected), pandas, Arrow or DuckDB.

    The NaN of pandas are nulls, and its index is left out.

    Args:
        given: What a caller gave.
        name: What to call it, for the error.
        untouched: What was left as it is, for the error.

    Raises:
        InvalidInput: If it is no frame, or a column of it holds values of no one type.

    Example:
        >>> as_polars(pl.LazyFrame({"step": [0, 1]}), "turns").height
        2
        >>> as_polars({"step": [0, 1]}, "turns")
        Traceback (most recent call last):
            ...
        mnemokit.errors.InvalidInput: turns must be a frame (Polars, pandas or Arrow), not dict; nothing was read; ...
    """
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    if not _is_arrow_table(given):
        raise InvalidInput(
            f"{name} must be a frame (Polars, pandas or Arrow), not {type(given).__name__}; {untouched}; "
            "make one with pl.DataFrame"
        )
    try:
        return pl.DataFrame(given)
    except (TypeError, ValueError) as error:  # a column of pandas may hold anything
        raise InvalidInput(f"{name} cannot be read as a table: {str(error).splitlines()[0]}; {untouched}") from error
