"""Log loss of the memory's own weights under many edge rules, from work that is sorted once.

The sum of all weights out of a source fades as one and jumps by what each passing adds, so that the probability of what
came needs no list of candidates: one fold per rule, one fading sum per source. Equal to `MnestWeights`, which lists
them, and some hundred times faster on a source with many edges.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mnemokit.edge_weights import fraction_left
from mnemokit.evaluate.edge_models import MnestWeights, sorted_rows, weight_of_rows
from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.evaluate.next_executor import escape, mixed
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.past import Events, Past
from mnemokit.fold_kernel import Rows, first_tick_below, fold_rows
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams

_NOTHING = 1e-12
"""A sum of weights below this is rounding left by edges that were all demoted."""


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

    def log_loss(self, params: EdgeParams | None = None) -> float:
        """Mean log loss of the rule, in nats per passing."""
        return float(-np.log(self.probabilities(params)).mean())

    def _own(self, rows: Rows, ticks: Ints, weight: Floats) -> Floats:
        """What the weight of each passing's own edge had faded to; 0 if it had none."""
        edge = self.log.edge[self.rows]
        row = np.maximum(self._last, 0)
        faded = weight_of_rows(
            rows,
            ticks,
            weight,
            row,
            rows.decay_lambda[edge],
            rows.floor[edge],
            self.log.us[self.rows],
            self.log.untimed[self.rows],
        )
        return np.where(self._last >= 0, faded, 0.0)

    def _totals(self, rows: Rows, ticks: Ints, weight: Floats, opened: np.ndarray) -> Floats:
        """The weights out of each passing's source, added up, as they were before it."""
        log, order = self.log, self.log.by_edge.order
        rate = np.repeat(rows.decay_lambda, rows.counts)
        clocked = rows.untimed is None
        added = weight.copy()
        gap = np.diff(rows.ts, prepend=rows.ts[:1]) / DAY_US if clocked else np.zeros(rows.ts.size)
        faded = np.append(0.0, weight[:-1]) * fraction_left(rate, np.maximum(gap, 0.0), np.exp)
        added[~opened] -= faded[~opened]
        last = np.append(opened[1:], True)
        removed = np.flatnonzero(last)
        floor = np.repeat(rows.floor, rows.counts)[removed]
        tick = first_tick_below(weight[removed], rows.ts[removed], rate[removed], floor, ticks)
        ended = tick < ticks.size
        removed, tick = removed[ended], tick[ended]
        when = ticks[tick] if ticks.size else rows.ts[removed]
        taken = -weight[removed] * fraction_left(rate[removed], (when - rows.ts[removed]) / DAY_US, np.exp)
        change, change_rate = np.empty(added.size), np.empty(added.size)
        change[order], change_rate[order] = added, rate
        asked = self.rows[self._by_source]
        total = np.zeros(asked.size)
        for one in np.unique(rows.decay_lambda):
            total += self._past.fading(np.where(change_rate == one, change, 0.0), float(one) if clocked else 0.0)
            mine = rate[removed] == one
            if mine.any():
                # A tick comes before passings of its own instant: it is known to them.
                events = Events(log.src[order[removed[mine]]], when[mine] - 1, when[mine])
                gone = events.before(log.src[asked], log.us[asked])
                total += gone.fading(taken[mine], float(one))
                total[(gone.count > 0) & (total < _NOTHING)] = 0.0
        out = np.empty(total.size)
        out[self._by_source] = total
        return out

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
    def _last(self) -> Ints:
        """Sorted place of the last earlier passing of each passing's own edge; -1 if it is new."""
        past = self.log.by_edge.before(self.log.edge[self.rows], self.log.us[self.rows])
        return np.where(past.count > 0, past.end - 1, -1)

    @cached_property
    def _by_source(self) -> Ints:
        """The scored passings by source and time: looking up in order is several times faster than at random."""
        return np.lexsort((self.log.us[self.rows], self.log.src[self.rows]))

    @cached_property
    def _past(self) -> Past:
        asked = self.rows[self._by_source]
        return self.log.by_src.before(self.log.src[asked], self.log.us[asked])
