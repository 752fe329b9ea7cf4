"""From text keys to edge numbers, for many passings at once.

Each key column is turned into small integers, the four are combined by place value (never as concatenated text, and a
missing version is a value of its own), and the combinations that occur are numbered in order of their names.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

KEYS = ("src_executor", "src_version", "dst_executor", "dst_version")
PAIR = KEYS[:3]

Codes = npt.NDArray[np.int64]

TABLE_LIMIT = 1 << 26
"""Largest range of codes for which a lookup table is cheaper than a sort."""


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
    combined = np.zeros(frame.height, dtype=np.int64)
    size = 1
    for name in KEYS:
        codes, n = _compact(_codes(frame[name]))
        if size * n > 1 << 62:
            combined, size = _compact(combined)
        combined *= n
        combined += codes
        size *= n
    numbers, n = _compact(combined)
    first = np.empty(n, dtype=np.int64)
    first[numbers[::-1]] = np.arange(frame.height - 1, -1, -1)
    edges = frame.select(KEYS)[first].with_columns(pl.col(KEYS).cast(pl.String)).with_row_index("found")
    edges = edges.sort(*KEYS, nulls_last=False)
    place = np.empty(n, dtype=np.int32)
    place[edges["found"].to_numpy()] = np.arange(n, dtype=np.int32)
    return place[numbers], edges.drop("found")


def pair_numbers() -> pl.Expr:
    """Column ``pair_no`` of a frame of edges: equal for edges that differ in the destination's version alone."""
    return pl.struct(PAIR).rank("dense").cast(pl.Int32).alias("pair_no")


def _codes(column: pl.Series) -> Codes:
    """A small integer per distinct value; a null has the highest."""
    if column.dtype != pl.Categorical:
        column = column.cast(pl.Categorical)
    codes = column.to_physical()
    if codes.null_count():
        top = codes.max()
        codes = codes.cast(pl.Int64).fill_null(0 if top is None else int(str(top)) + 1)
    return codes.to_numpy()


def _compact(codes: Codes) -> tuple[Codes, int]:
    """The codes, without gaps, and how many there are."""
    if not len(codes):
        return codes.astype(np.int64), 0
    top = int(codes.max())
    if top >= max(TABLE_LIMIT, 2 * len(codes)):
        values, compact = np.unique(codes, return_inverse=True)
        return compact.astype(np.int64), len(values)
    used = np.zeros(top + 1, dtype=np.bool_)
    used[codes] = True
    n = int(used.sum())
    if n == top + 1:
        return codes, n
    return (np.cumsum(used, dtype=np.int64) - 1)[codes], n
