"""Facts in the order in which a fold reads them: by edge, then time, then source.

Ten million rows are sorted as one integer each (edge number and place in time, packed), which is several times faster
than sorting by two columns. Big arrays are filled piece by piece, so that what is needed on the way stays in the
processor's cache and no second big array is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.fold.kernel import Flags, Floats, Ints

PIECE = 1 << 17
"""Rows of a big array that are worked on together."""

TABLE_LIMIT = 1 << 24
"""Widest range of edge numbers for which a table says the place of each; above, each is searched for."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """Facts by edge, time and source, each edge's carried record (if it goes on from one) before them.

    Attributes:
        source: Row in the facts, or ``-1 - row`` in the carried records.
        ts: Microseconds since 1970.
        first: Index of each edge's first row.
        counts: Rows of each edge.
        edge: Place of each edge in the frame of edges.
        whole: No record is carried: every row is a fact.
    """

    source: Ints
    ts: Ints
    first: Ints
    counts: Ints
    edge: Ints
    whole: bool


def in_order(facts: pl.DataFrame, edges: pl.DataFrame, carried: pl.DataFrame | None) -> InOrder:
    """Sort facts by edge, time and source.

    Args:
        facts: Columns edge_no, ts and, where it is not the order of rows, seq.
        edges: Column edge_no, ascending.
        carried: Records to go on from; they come first.
    """
    ts = facts["ts"].to_physical().to_numpy()
    edge_no = facts["edge_no"].to_numpy()
    source = _order_in_time(facts, ts)
    if source is not None:
        ts, edge_no = ts[source], edge_no[source]
    before = 0 if carried is None else carried.height
    if carried is not None and before:
        source = np.arange(facts.height, dtype=np.int64) if source is None else source
        source = np.concatenate([-1 - np.arange(before, dtype=np.int64), source])
        ts = np.concatenate([carried["ts_last"].to_physical().to_numpy(), ts])
        edge_no = np.concatenate([carried["edge_no"].to_numpy(), edge_no])
    numbers = edges["edge_no"].to_numpy()
    bits = max(1, len(ts).bit_length())
    packed, all_counts = _pack(edge_no, numbers, bits)
    packed.sort()
    ordered = np.empty_like(ts)
    mask = (1 << bits) - 1
    for begin in range(0, len(packed), PIECE):
        piece = packed[begin : begin + PIECE]
        piece &= mask
        np.take(ts, piece, out=ordered[begin : begin + PIECE], mode="clip")
        if source is not None:
            piece[:] = np.take(source, piece, mode="clip")
    edge = np.flatnonzero(all_counts)
    counts = all_counts[edge]
    return InOrder(packed, ordered, np.cumsum(counts) - counts, counts, edge, whole=not before)


def at_first(facts: pl.DataFrame, carried: pl.DataFrame | None, rows: InOrder, column: str, default: float) -> Floats:
    """A column's value at each edge's first row."""
    source = rows.source[rows.first]
    values = np.full(len(source), default)
    own = source >= 0
    if column in facts.columns:
        values[own] = facts[column].gather(source[own]).to_numpy()
    if carried is not None:
        values[~own] = carried[column].gather(-1 - source[~own]).to_numpy()
    return values


def untimed_rows(facts: pl.DataFrame, carried: pl.DataFrame | None, rows: InOrder) -> Flags | None:
    """Which rows have no time; None if all have one."""
    some = "untimed" in facts.columns and bool(facts["untimed"].any())
    if not some and not (carried is not None and bool(carried["untimed"].any())):
        return None
    flags = np.zeros(len(rows.source), dtype=np.bool_)
    own = rows.source >= 0
    if some:
        flags[own] = facts["untimed"].to_numpy()[rows.source[own]]
    if carried is not None:
        flags[~own] = carried["untimed"].to_numpy()[-1 - rows.source[~own]]
    return flags


def _pack(edge_no: np.ndarray, numbers: np.ndarray, bits: int) -> tuple[Ints, Ints]:
    """Each row as one integer (place of its edge, then place in time), and how many rows each edge has."""
    packed = np.empty(len(edge_no), dtype=np.int64)
    counts = np.zeros(len(numbers), dtype=np.int64)
    lowest, highest = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (0, -1)
    dense = highest - lowest == len(numbers) - 1
    table = None
    if not dense and highest - lowest < TABLE_LIMIT:
        table = np.zeros(highest - lowest + 1, dtype=np.int64)
        table[numbers - lowest] = np.arange(len(numbers))
    for begin in range(0, len(edge_no), PIECE):
        piece = edge_no[begin : begin + PIECE]
        if dense:
            place = piece.astype(np.int64) - lowest
        else:
            place = np.searchsorted(numbers, piece) if table is None else table[piece - lowest]
        counts += np.bincount(place, minlength=len(numbers)) if len(numbers) < PIECE else 0
        packed[begin : begin + PIECE] = (place << bits) | np.arange(begin, begin + len(piece), dtype=np.int64)
    if len(numbers) >= PIECE:
        places = packed >> bits
        counts = np.bincount(places, minlength=len(numbers))
    return packed, counts


def _order_in_time(facts: pl.DataFrame, ts: Ints) -> Ints | None:
    """Order by time, then source; None if the rows are in it already."""
    seq = facts["seq"].to_numpy() if "seq" in facts.columns else None
    if _ascending(ts, seq):
        return None
    keys = ["ts"] if seq is None else ["ts", "seq"]
    return facts.select(pl.arg_sort_by(keys, maintain_order=True)).to_series().to_numpy().astype(np.int64)


def _ascending(ts: Ints, seq: Ints | None) -> bool:
    for begin in range(0, len(ts), PIECE):
        here = slice(begin, begin + PIECE + 1)
        steps = np.diff(ts[here])
        if seq is None:
            if (steps < 0).any():
                return False
        elif not ((steps > 0) | ((steps == 0) & (np.diff(seq[here]) >= 0))).all():
            return False
    return True
