"""The fold of passings into weights, for all edges at once, in numpy.

Rows are sorted by edge, then time, then source order. The rule per edge is a plain recurrence:

    before each row, the last ager instant since the row before it looks at the faded weight:
    is it below the floor, then the record ended there and this row opens a new one at ``start_weight``;
    otherwise this row makes the weight ``min(max_weight, faded + reinforcement)``.

Edges do not depend on each other, so the j-th row of every edge is computed in one array operation ("lanes"). An edge
with more rows than ``SEGMENT`` is cut into several lanes. A later lane starts from a guess (the cap, where a busy edge
mostly is), and is run again from its true start as long as its predecessor's end says otherwise; a rerun stops at the
first row where it meets what is there. The result is that of the plain recurrence, whatever was guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mnemokit.fold.edge_weights import Floats, fraction_left
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SEGMENT = 1024
"""Rows of one edge that are computed in one lane."""

BLOCK = 1 << 18
"""Rows that are folded together: few enough to stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Passings, sorted by edge, time and source order, as arrays.

    Attributes:
        first: Index of each edge's first row, ascending; an edge has at least one row.
        ts: Microseconds since 1970 of each row.
        decay_lambda: Per day, of each edge.
        floor: Weight below which an ager ends a live record, of each edge.
        untimed: Rows without a time; None if all have one.
        start: Weight after each edge's first row.
    """

    first: Ints
    ts: Ints
    decay_lambda: Floats
    floor: Floats
    untimed: Flags | None
    start: Floats

    @property
    def counts(self) -> Ints:
        """Rows of each edge."""
        return np.diff(self.first, append=len(self.ts))


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What each row did: the weight after it, its net change of the stored weight, and whether it opened a record."""

    weight: Floats
    delta: Floats
    opened: Flags


def fold_rows(rows: Rows, ticks: Ints, params: EdgeParams) -> Trajectory:
    """Run the recurrence over all rows.

    Args:
        rows: The passings.
        ticks: Ager instants, ascending, without repeats, in microseconds since 1970.
        params: The edge rule.

    Returns:
        The trajectory. ``opened`` is true at each edge's first row.
    """
    path = Trajectory(np.empty(len(rows.ts)), np.empty(len(rows.ts)), np.zeros(len(rows.ts), dtype=np.bool_))
    ends = rows.first + rows.counts
    edge = 0
    with np.errstate(invalid="ignore"):  # 0 * inf: a weight of nothing that no ager looks at
        while edge < len(rows.first):
            # As many whole edges as fit in a block, one at least.
            limit = int(rows.first[edge]) + BLOCK
            following = max(int(np.searchsorted(ends, limit, side="right")), edge + 1)
            _fold_block(rows, slice(edge, following), int(ends[following - 1]), ticks, path, params)
            edge = following
    return path


def _fold_block(rows: Rows, edges: slice, end: int, ticks: Ints, path: Trajectory, params: EdgeParams) -> None:
    """Run the recurrence over some whole edges, whose rows stay in the processor's cache meanwhile."""
    begin = int(rows.first[edges.start])
    here = slice(begin, end)
    block = Rows(
        first=rows.first[edges] - begin,
        ts=rows.ts[here],
        decay_lambda=rows.decay_lambda[edges],
        floor=rows.floor[edges],
        untimed=None if rows.untimed is None else rows.untimed[here],
        start=rows.start[edges],
    )
    weight, opened = path.weight[here], path.opened[here]
    keep, hold = _fading(block, ticks)
    weight[block.first] = block.start
    opened[block.first] = True
    _run_lanes(block, keep, hold, weight, opened, params)
    before = weight[:-1] * np.minimum(hold[1:], 1.0)
    np.subtract(weight[1:], before, out=path.delta[begin + 1 : end])
    path.delta[here][opened] = params.start_weight


def last_tick(ticks: Ints, ts: Ints) -> Ints:
    """Index of the last tick not later than each instant; -1 where there is none."""
    if len(ticks) == 0:
        return np.full(len(ts), -1, dtype=np.int64)
    spacing = np.diff(ticks)
    if len(spacing) and (spacing == spacing[0]).all():
        return np.clip((ts - ticks[0]) // spacing[0], -1, len(ticks) - 1)
    return np.searchsorted(ticks, ts, side="right") - 1


def first_tick_below(weight: Floats, since: Ints, decay_lambda: Floats, floor: Floats, ticks: Ints) -> Ints:
    """Index of the first tick at which each fading weight is below its floor; ``len(ticks)`` where it never is.

    Args:
        weight: Weights as of ``since``.
        since: Microseconds since 1970; only later ticks look.
        decay_lambda: Per day.
        floor: What a weight must be less than.
        ticks: Ager instants, ascending.

    Returns:
        The estimate ``since + ln(weight / floor) / lambda``, moved to the tick where the exact test first holds.
    """
    n = len(ticks)
    earliest = np.searchsorted(ticks, since, side="right")
    if n == 0 or len(weight) == 0:
        return np.full(len(weight), n, dtype=np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        days = np.log(weight / floor) / decay_lambda
    days = np.where(weight < floor, 0.0, days)
    # NaN (floor or lambda 0) and whatever lies beyond the last tick: never.
    horizon = (ticks[-1] - since) / DAY_US + 1.0
    days = np.where(np.isnan(days) | (days > horizon), horizon, days)
    guess = np.searchsorted(ticks, since + (days * DAY_US).astype(np.int64))
    guess = np.clip(guess, earliest, n)

    def is_below(index: Ints) -> Flags:
        inside = np.minimum(index, n - 1)
        days = np.maximum(ticks[inside] - since, 0) / DAY_US
        left = fraction_left(decay_lambda, days, np.exp)
        return (index < n) & (weight * left < floor)

    while True:
        later = (guess < n) & ~is_below(guess)
        guess = guess + later
        earlier = (guess > earliest) & is_below(guess - 1)
        guess = guess - earlier
        if not (later.any() or earlier.any()):
            return guess


def _fading(rows: Rows, ticks: Ints) -> tuple[Floats, Floats]:
    """Per row, what is left of the weight before it: at the row itself, and at the last ager in between.

    Where no ager lies in between, the second is infinite: nothing looks, so nothing is below the floor. Values at the
    first row of an edge mean nothing.
    """
    gap = np.diff(rows.ts, prepend=rows.ts[:1])
    np.maximum(gap, 0, out=gap)
    before = rows.ts - gap
    last = last_tick(ticks, rows.ts)
    until = ticks[last] - before if len(ticks) else np.zeros_like(gap)
    looked = (last >= 0) & (until > 0)
    if rows.untimed is not None:
        clockless = rows.untimed | np.append(np.zeros(1, dtype=np.bool_), rows.untimed[:-1])
        gap[clockless] = 0
        looked &= ~clockless
    until[~looked] = 0
    same = bool((rows.decay_lambda == rows.decay_lambda[0]).all())
    rate = rows.decay_lambda[0] if same else np.repeat(rows.decay_lambda, rows.counts)
    keep = fraction_left(rate, gap / DAY_US, np.exp)
    hold = fraction_left(rate, until / DAY_US, np.exp)
    hold[~looked] = np.inf
    return keep, hold


def _run_lanes(rows: Rows, keep: Floats, hold: Floats, weight: Floats, opened: Flags, params: EdgeParams) -> None:
    """Fill ``weight`` and ``opened`` behind each edge's first row."""
    begin, end, edge, chained = _cut_into_lanes(rows)
    start = np.where(chained, params.max_weight, rows.start[edge])
    order = np.argsort(begin - end, kind="stable")
    _step(begin[order], end[order], start[order], rows.floor[edge[order]], keep, hold, weight, opened, params)
    chained_lanes = np.flatnonzero(chained)
    while True:
        true_start = weight[begin[chained_lanes] - 1]
        wrong = true_start != start[chained_lanes]
        if not wrong.any():
            return
        lanes = chained_lanes[wrong]
        start[lanes] = true_start[wrong]
        _step_again(begin[lanes], end[lanes], start[lanes], rows.floor[edge[lanes]], keep, hold, weight, opened, params)


def _cut_into_lanes(rows: Rows) -> tuple[Ints, Ints, Ints, Flags]:
    """Begin, end and edge of each lane, and whether it goes on where another lane of its edge stops."""
    counts = rows.counts - 1
    pieces = np.maximum(1, -(-counts // SEGMENT))
    edge = np.repeat(np.arange(len(counts)), pieces)
    piece = np.arange(len(edge)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = rows.first[edge] + 1 + piece * SEGMENT
    end = np.minimum(begin + SEGMENT, rows.first[edge] + 1 + counts[edge])
    return begin, end, edge, piece > 0


def _step(
    begin: Ints,
    end: Ints,
    start: Floats,
    floor: Floats,
    keep: Floats,
    hold: Floats,
    weight: Floats,
    opened: Flags,
    params: EdgeParams,
) -> None:
    """Step lanes, longest first, row by row; a lane that has ended drops out at the bottom."""
    length = end - begin
    now = start
    running = np.searchsorted(-length, -np.arange(length[0] if len(length) else 0), side="left")
    for j, m in enumerate(running):
        row = begin[:m] + j
        now = now[:m]
        ended = now * hold[row] < floor[:m]
        now = np.minimum(now * keep[row] + params.reinforcement, params.max_weight)
        now[ended] = params.start_weight
        weight[row] = now
        opened[row] = ended


def _step_again(
    begin: Ints,
    end: Ints,
    start: Floats,
    floor: Floats,
    keep: Floats,
    hold: Floats,
    weight: Floats,
    opened: Flags,
    params: EdgeParams,
) -> None:
    """Step lanes from another start, each until it meets what an earlier pass left."""
    row, now = begin.copy(), start
    while len(row):
        ended = now * hold[row] < floor
        now = np.minimum(now * keep[row] + params.reinforcement, params.max_weight)
        now[ended] = params.start_weight
        differs = (now != weight[row]) | (ended != opened[row])
        weight[row] = now
        opened[row] = ended
        row = row + 1
        on = differs & (row < end)
        row, now, end, floor = row[on], now[on], end[on], floor[on]
