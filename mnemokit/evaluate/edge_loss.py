"""Log loss of the memory's own weights under many edge rules, from work that is sorted once.

The sum of all weights out of a source fades as one and jumps by what each passing adds, so that the probability of what
came needs no list of candidates: one fold per rule, one fading sum per source. Equal to `MnestWeights`, which lists
them, and some hundred times faster on a source with many edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mnemokit.evaluate.edge_models import MnestWeights, Since, since, sorted_rows, weight_left
from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.evaluate.next_executor import escape, mixed
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.past import Past
from mnemokit.fold.edge_weights import fraction_left
from mnemokit.fold.kernel import Rows, first_tick_below, fold_rows
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams

_NOTHING = 1e-12
"""A sum of weights below this is rounding left by edges that were all demoted."""


@dataclass(frozen=True)
class Ended:
    """Records that agers ended.

    Attributes:
        src: Their source.
        place: The passing, by source and time, after which they no longer count.
        rate: Their decay, per day.
        weight: What was left of their weight at that passing.
    """

    src: Ints
    place: Ints
    rate: Floats
    weight: Floats


class EdgeLoss:
    """Scores edge rules on the same passings again and again.

    Args:
        log: The passings.
        rows: Row numbers of the passings that are scored; None for all.
    """

    def __init__(self, log: PassingLog, rows: Ints | None = None) -> None:
        """Look up, once, what does not depend on the rule."""
        self.log = log
        self.rows = np.arange(log.us.size) if rows is None else rows
        self.kept, self.share = escape(log, self.rows)
        self._gone: Since | None = None

    def probabilities(self, params: EdgeParams | None = None) -> Floats:
        """The probability that the rule gave to each scored passing; None: the log's rule, each edge's own decay."""
        log = self.log
        if log.us.size == 0:
            return np.empty(0)
        rows = sorted_rows(log, params)
        if rows.untimed is not None and not bool(log.untimed.all()):
            return self._listed(params)
        ticks = log.ticks if rows.untimed is None else log.ticks[:0]
        weight = fold_rows(rows, ticks, params or log.params)
        own = self._own(rows, ticks, weight.weight)
        total = self._totals(rows, ticks, weight.weight, weight.opened)
        return mixed(own, np.maximum(total, own), self.kept, self.share)

    def log_losses(self, params: EdgeParams | None = None) -> Floats:
        """Log loss of the rule at each scored passing, in nats."""
        return -np.log(self.probabilities(params))

    def log_loss(self, params: EdgeParams | None = None) -> float:
        """Mean log loss of the rule, in nats per passing."""
        return float(self.log_losses(params).mean())

    def _own(self, rows: Rows, ticks: Ints, weight: Floats) -> Floats:
        """What the weight of each passing's own edge had faded to; 0 if it had none."""
        row, edge = self._last, self._edge
        if self._gone is None:
            log = self.log
            self._gone = since(rows, ticks, row, log.us[self.rows], log.untimed[self.rows])
        faded = weight_left(weight[row], self._gone, rows.decay_lambda[edge], rows.floor[edge])
        faded[self._unseen] = 0.0
        return faded

    def _totals(self, rows: Rows, ticks: Ints, weight: Floats, opened: np.ndarray) -> Floats:
        """The weights out of each passing's source, added up, as they were before it."""
        log = self.log
        rate = np.repeat(rows.decay_lambda, rows.counts)
        clocked = rows.untimed is None
        faded = fraction_left(rate, self._gap_days if clocked else np.zeros(rate.size), np.exp)
        faded[1:] *= weight[:-1]
        faded[opened] = 0.0
        change = (weight - faded)[self._to_source]
        ended = self._ended(rows, ticks, weight, opened)
        total = np.zeros(self.rows.size)
        rates = np.unique(rows.decay_lambda)
        for one in rates:
            mine = change if rates.size == 1 else np.where(rate[self._to_source] == one, change, 0.0)
            these = ended.rate == one
            np.subtract.at(mine, ended.place[these], ended.weight[these])
            total += self._past.fading_sorted(mine, float(one) if clocked else 0.0)
        touched = np.zeros(int(log.src.max(initial=-1)) + 1, dtype=np.bool_)
        touched[ended.src] = True
        total[touched[log.src[self.rows[self._by_source]]] & (total < _NOTHING)] = 0.0
        out = np.empty(total.size)
        out[self._by_source] = total
        return out

    def _ended(self, rows: Rows, ticks: Ints, weight: Floats, opened: np.ndarray) -> Ended:
        """What agers ended, each to be taken out of the sums at its source's last passing before that ager.

        Whoever asks after that passing asks after the ager too, as everyone who asks is a passing.
        """
        log = self.log
        last = np.flatnonzero(np.append(opened[1:], True))
        edge = log.edge[log.by_edge.order[last]]
        tick = first_tick_below(weight[last], rows.ts[last], rows.decay_lambda[edge], rows.floor[edge], ticks)
        gone = tick < ticks.size
        last, edge, when = last[gone], edge[gone], ticks[tick[gone]]
        src, rate = log.edge_src[edge], rows.decay_lambda[edge]
        place = log.by_src.before(src, when).end - 1
        days = (log.by_src.known_us[place] - rows.ts[last]) / DAY_US
        return Ended(src, place, rate, weight[last] * fraction_left(rate, days, np.exp))

    def _listed(self, params: EdgeParams | None) -> Floats:
        """With every candidate listed: for logs of which some passings have no time."""
        weigh = MnestWeights(params).weigher(self.log)
        own, total, done = np.zeros(self.rows.size), np.zeros(self.rows.size), 0
        for pairs in self.log.pairs(self.rows):
            here = slice(done, done + pairs.n)
            done += pairs.n
            weights = weigh(pairs)
            came = self.log.edge[pairs.rows][pairs.passing] == pairs.edge
            own[here] = summed(pairs.passing, np.where(came, weights, 0.0), pairs.n)
            total[here] = summed(pairs.passing, weights, pairs.n)
        return mixed(own, total, self.kept, self.share)

    @cached_property
    def _own_past(self) -> Past:
        return self.log.by_edge.before(self._edge, self.log.us[self.rows])

    @cached_property
    def _edge(self) -> Ints:
        return self.log.edge[self.rows]

    @cached_property
    def _last(self) -> Ints:
        """Sorted place of the last earlier passing of each passing's own edge; any place if it is new."""
        return np.maximum(self._own_past.end - 1, 0)

    @cached_property
    def _unseen(self) -> np.ndarray:
        return self._own_past.count == 0

    @cached_property
    def _to_source(self) -> Ints:
        """Of each passing by source and time, its place by edge and time."""
        place = np.empty(self.log.us.size, dtype=np.int64)
        place[self.log.by_edge.order] = np.arange(place.size)
        return place[self.log.by_src.order]

    @cached_property
    def _gap_days(self) -> Floats:
        """From each sorted passing to the one before it, of the same edge or not."""
        ts = self.log.us[self.log.by_edge.order]
        return np.maximum(np.diff(ts, prepend=ts[:1]), 0) / DAY_US

    @cached_property
    def _by_source(self) -> Ints:
        """The scored passings by source and time: looking up in order is several times faster than at random."""
        return np.lexsort((self.log.us[self.rows], self.log.src[self.rows]))

    @cached_property
    def _past(self) -> Past:
        asked = self.rows[self._by_source]
        return self.log.by_src.before(self.log.src[asked], self.log.us[asked])
