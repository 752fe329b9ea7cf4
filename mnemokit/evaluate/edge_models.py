"""Models of which executor comes next: the memory's own weights, the baselines, and rivals behind the same protocol.

A model weighs candidates; the weights of one source, divided by their sum, are its probabilities. What is known of a
candidate comes from ``log.before(pairs)``, which knows nothing of the passing's own instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.evaluate.passing_log import Pairs, PassingLog
from mnemokit.evaluate.run_models import HALF_LIFE_DAYS
from mnemokit.fold.edge_weights import fraction_left, live_floor
from mnemokit.fold.kernel import Rows, Trajectory, fold_rows, last_tick
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams

Weigher = Callable[[Pairs], Floats]


@runtime_checkable
class EdgeModel(Protocol):
    """Anything with a name that can weigh the edges that a source had taken before."""

    @property
    def name(self) -> str:
        """What the model is called in a result."""
        ...

    def weigher(self, log: PassingLog) -> Weigher:
        """A function that gives each candidate a weight, 0 or more, from what was known before its passing."""
        ...


@dataclass(frozen=True)
class MnestWeights:
    """The memory's own weights at that time: reinforced, decayed, and out of the running once an ager demoted them.

    Attributes:
        params: The edge rule; None takes the log's, with the decay that each edge came with.
        ager: False: no ager ever looks, so that nothing is demoted.
        name: What it is called.
    """

    params: EdgeParams | None = None
    ager: bool = True
    name: str = "mnest_weights"

    def weigher(self, log: PassingLog) -> Weigher:
        """Fold the whole log once, then look up."""
        rows = sorted_rows(log, self.params)
        ticks = log.ticks if self.ager else log.ticks[:0]
        trajectory = fold_rows(rows, ticks, self.params or log.params)
        return partial(_weights_before, log, rows, ticks, trajectory)


@dataclass(frozen=True)
class RawCounts:
    """How often the edge was taken, with no decay."""

    name: str = "raw_counts"

    def weigher(self, log: PassingLog) -> Weigher:
        """The count."""
        return lambda pairs: log.before(pairs).count.astype(np.float64)


@dataclass(frozen=True)
class Uniform:
    """All edges that the source ever took, alike."""

    name: str = "uniform"

    def weigher(self, log: PassingLog) -> Weigher:  # noqa: ARG002 - the protocol's argument
        """One."""
        return lambda pairs: np.ones(pairs.edge.size)


@dataclass(frozen=True)
class Constant:
    """How often the destination was reached from anywhere, whatever the source: the rate so far."""

    name: str = "constant"

    def weigher(self, log: PassingLog) -> Weigher:
        """The destination's count."""
        return lambda pairs: log.by_dst.before(log.edge_dst[pairs.edge], pairs.us).count.astype(np.float64)


@dataclass(frozen=True)
class MostRecent:
    """The edge that the source took last comes first, then the one before it: weights 1, 1/2, 1/3, ..."""

    name: str = "most_recent"

    def weigher(self, log: PassingLog) -> Weigher:
        """One over the place by recency."""

        def weigh(pairs: Pairs) -> Floats:
            last = log.before(pairs).last()
            order = np.lexsort((-last, pairs.passing))
            n = np.bincount(pairs.passing, minlength=pairs.n)
            out = np.empty(pairs.edge.size)
            out[order] = 1.0 / (1 + np.arange(order.size) - np.repeat(np.cumsum(n) - n, n))
            return out

        return weigh


@dataclass(frozen=True)
class LastN:
    """How often the edge was taken among the source's last ``n`` passings."""

    n: int = 10

    @property
    def name(self) -> str:
        """``last_<n>``."""
        return f"last_{self.n}"

    def weigher(self, log: PassingLog) -> Weigher:
        """The windowed count."""
        order = log.by_src.order
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        key = np.sort(log.edge * (order.size + 1) + place)
        start, end = log.of_src.start, log.of_src.end

        def weigh(pairs: Pairs) -> Floats:
            row = pairs.rows[pairs.passing]
            first = pairs.edge * (order.size + 1)
            until = np.searchsorted(key, first + end[row])
            since = np.searchsorted(key, first + np.maximum(start[row], end[row] - self.n))
            return (until - since).astype(np.float64)

        return weigh


@dataclass(frozen=True)
class HalfLife:
    """How often the edge was taken, older passings counting less: half after ``days``."""

    days: float = HALF_LIFE_DAYS
    name: str = "half_life"

    def weigher(self, log: PassingLog) -> Weigher:
        """The faded count."""
        rate = float(np.log(2.0) / self.days)
        ones = np.ones(log.us.size)
        return lambda pairs: log.before(pairs).fading(ones, rate)


@dataclass(frozen=True)
class PowerLaw:
    """How often the edge was taken, older passings fading by a power of their age, ``(1 + days) ** -exponent``."""

    exponent: float = 0.5
    name: str = "power_law"

    def weigher(self, log: PassingLog) -> Weigher:
        """The faded count."""
        ones = np.ones(log.us.size)
        return lambda pairs: log.before(pairs).power(ones, self.exponent)


@dataclass(frozen=True)
class Hierarchical:
    """Counts drawn towards those of the destination anywhere: ``n + k * n(destination) / n(all known to the source)``.

    A Dirichlet within a Dirichlet; ``k`` is the strength of the wider one, in passings.
    """

    k: float = 2.0
    name: str = "hierarchical"

    def weigher(self, log: PassingLog) -> Weigher:
        """The count and its share of the prior."""
        everywhere = Constant().weigher(log)

        def weigh(pairs: Pairs) -> Floats:
            wide = everywhere(pairs)
            total = summed(pairs.passing, wide, pairs.n)
            return log.before(pairs).count + self.k * wide / total[pairs.passing]

        return weigh


def edge_baselines() -> list[EdgeModel]:
    """The baselines that every table has."""
    return [Constant(), MostRecent(), LastN(10), HalfLife(), RawCounts(), Uniform()]


def edge_rivals() -> list[EdgeModel]:
    """Models beyond the memory's rule, with untuned parameters."""
    return [MnestWeights(ager=False, name="mnest_weights_no_ager"), PowerLaw(), Hierarchical()]


def sorted_rows(log: PassingLog, params: EdgeParams | None) -> Rows:
    """The passings as the fold takes them: by edge, then time, then order.

    Args:
        log: The passings.
        params: The edge rule, its decay for every edge; None: the log's rule with each edge's own decay.
    """
    order, code = log.by_edge.order, log.by_edge.code
    first = np.flatnonzero(np.append(True, np.diff(code) != 0)) if code.size else np.empty(0, dtype=np.int64)
    rule = params or log.params
    rate = np.full(first.size, rule.decay_lambda) if params is not None else log.edge_lambda[code[first]]
    return Rows(
        first=first,
        ts=log.us[order],
        decay_lambda=rate,
        floor=np.where(log.edge_proto[code[first]], live_floor("proto", rule), live_floor("active", rule)),
        untimed=log.untimed[order] if log.untimed.any() else None,
        start=np.full(first.size, rule.start_weight),
    )


@dataclass(frozen=True)
class Since:
    """How long ago rows were, as of later instants: what a rule does not change.

    Attributes:
        days: From the row to the instant; 0 where one of the two has no time.
        looked: From the row to the last ager in between; 0 where none looked.
    """

    days: Floats
    looked: Floats


def since(rows: Rows, ticks: Ints, row: Ints, us: Ints, untimed: np.ndarray) -> Since:
    """How long ago sorted rows were, as of instants."""
    clockless = untimed if rows.untimed is None else untimed | rows.untimed[row]
    then = rows.ts[row]
    days = np.where(clockless, 0.0, np.maximum(us - then, 0) / DAY_US)
    if ticks.size == 0:
        return Since(days, np.zeros(days.size))
    last = last_tick(ticks, us)
    looked = np.where((last >= 0) & ~clockless, (ticks[last] - then) / DAY_US, 0.0)
    return Since(days, np.maximum(looked, 0.0))


def weight_left(weight: Floats, gone: Since, rate: Floats, floor: Floats) -> Floats:
    """What weights have faded to; 0 where an ager ended the record in between."""
    left = weight * fraction_left(rate, gone.days, np.exp)
    ended = (weight * fraction_left(rate, gone.looked, np.exp) < floor) & (gone.looked > 0)
    left[ended] = 0.0
    return left


def _weights_before(log: PassingLog, rows: Rows, ticks: Ints, trajectory: Trajectory, pairs: Pairs) -> Floats:
    row, edge = log.before(pairs).end - 1, pairs.edge
    gone = since(rows, ticks, row, pairs.us, pairs.untimed)
    return weight_left(trajectory.weight[row], gone, rows.decay_lambda[edge], rows.floor[edge])
