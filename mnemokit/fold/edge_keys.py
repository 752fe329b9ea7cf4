"""From text keys to edge numbers, for many passings at once.

Each key column is turned into small integers, the four are combined by place value (never as concatenated text, and a
missing version is a value of its own), and the combinations that occur are numbered in order of their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

KEYS = ("src_executor", "src_version", "dst_executor", "dst_version")
PAIR = KEYS[:3]

Codes = npt.NDArray[np.uint32]

TABLE_LIMIT = 1 << 26
"""Most combinations for which a lookup table is made."""

PIECE = 1 << 17
"""Rows that are worked on together, so that they stay in the processor's cache."""


def number_keys(frame: pl.DataFrame) -> tuple[npt.NDArray[np.int32], pl.DataFrame]:
    """Number the edges of a frame of passings.

    Args:
        frame: The columns of ``KEYS``, as text or categories.

    Returns:
        The number of each row's edge, from 0 in order of names (a missing version first), and the edges: ``KEYS``,
        row n being edge n.

    Example:
        >>> rows = pl.DataFrame({"src_executor": ["b", "a", "b"], "src_version": ["1", "1", "1"],
        ...                      "dst_executor": ["c", "c", "c"], "dst_version": ["1", None, "1"]})
        >>> numbers, edges = number_keys(rows)
        >>> numbers.tolist(), edges["src_executor"].to_list()
        ([1, 0, 1], ['a', 'b'])
    """
    # One select, so that the columns are encoded beside each other.
    encoded = frame.select(pl.col(KEYS).cast(pl.Categorical))
    codes = [_codes(encoded[name]) for name in KEYS]
    numbers, n = _combine(codes)
    found = np.empty(n, dtype=np.int64)
    for begin in range(0, len(numbers), PIECE):
        piece = numbers[begin : begin + PIECE]
        found[piece] = np.arange(begin, begin + len(piece))
    edges = frame.select(KEYS)[found].with_columns(pl.col(KEYS).cast(pl.String)).with_row_index("found")
    edges = edges.sort(*KEYS, nulls_last=False)
    place = np.empty(n, dtype=np.int32)
    place[edges["found"].to_numpy()] = np.arange(n, dtype=np.int32)
    for begin in range(0, len(numbers), PIECE):
        piece = numbers[begin : begin + PIECE]
        piece[:] = place[piece]
    return numbers, edges.drop("found")


def pair_numbers() -> pl.Expr:
    """Column ``pair_no`` of a frame of edges: equal for edges that differ in the destination's version alone."""
    return pl.struct(PAIR).rank("dense").cast(pl.Int32).alias("pair_no")


def _codes(column: pl.Series) -> Codes:
    """A small integer per distinct category; a null has one of its own."""
    codes = column.to_physical()
    if codes.null_count():
        top = codes.max()
        codes = codes.fill_null(0 if top is None else int(str(top)) + 1)
    return codes.to_numpy()


def _combine(columns: Sequence[Codes]) -> tuple[npt.NDArray[np.int32], int]:
    """One number per distinct combination of codes, from 0 without gaps, and how many there are."""
    tables = [_without_gaps(codes) for codes in columns]
    sizes = [int(table[-1]) + 1 if len(table) else 0 for table in tables]
    size = math.prod(sizes)
    if size > TABLE_LIMIT:
        return _combine_by_sorting(columns)
    combined = np.zeros(len(columns[0]), dtype=np.int32)
    used = np.zeros(size, dtype=np.bool_)
    for begin in range(0, len(combined), PIECE):
        piece = combined[begin : begin + PIECE]
        for codes, table, n in zip(columns, tables, sizes, strict=True):
            piece *= n
            piece += table[codes[begin : begin + PIECE]]
        used[piece] = True
    compact = (np.cumsum(used) - 1).astype(np.int32)
    for begin in range(0, len(combined), PIECE):
        piece = combined[begin : begin + PIECE]
        piece[:] = compact[piece]
    return combined, int(used.sum())


def _without_gaps(codes: Codes) -> npt.NDArray[np.int32]:
    """For each code up to the largest, its place among those that occur."""
    if not len(codes):
        return np.zeros(0, dtype=np.int32)
    used = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    used[codes] = True
    return (np.cumsum(used) - 1).astype(np.int32)


def _combine_by_sorting(columns: Sequence[Codes]) -> tuple[npt.NDArray[np.int32], int]:
    """The same where a table of all combinations would be too large."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    n = 1
    for codes in columns:
        values, codes = np.unique(codes, return_inverse=True)  # noqa: PLW2901 - the same codes, without gaps
        distinct, combined = np.unique(combined * len(values) + codes, return_inverse=True)
        n = len(distinct)
    return combined.astype(np.int32), n
