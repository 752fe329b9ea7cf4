"""What was known just before: sums, windows and fading sums over strictly earlier events of the same kind.

Every model of this package is built on `Past`, so that none can see its own instant or anything later: events of an
instant are learnt after everything of that instant was predicted.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.instants import DAY_US

_SAFE_EXPONENT = 300.0
"""A fading sum is rescaled before exp reaches e^300."""

_PAIRS = 100_000_000
"""Pairs of a question and an event that are added up one by one, at most."""

_PAIRS_AT_ONCE = 2_000_000

_LONGEST_DAYS = 36_525.0
"""Ages up to a century fade by the stated power; fixed, so that no prediction depends on how long the log goes on."""


class Events:
    """Events sorted by kind and time, to be asked about.

    Args:
        code: Kind of each event, for instance a procedure's number, 0 and up.
        us: When it was learnt, in microseconds.
        age_us: When what was learnt had happened, if that was earlier (a late verdict on a run); fading counts from
            there.
    """

    def __init__(self, code: Ints, us: Ints, age_us: Ints | None = None) -> None:
        """Sort once."""
        self.instants: Ints = _distinct(us)
        self.width = self.instants.size + 1
        key = code * self.width + np.searchsorted(self.instants, us)
        self.order: Ints = np.argsort(key, kind="stable")
        self.key: Ints = key[self.order]
        self.code: Ints = code[self.order]
        self.known_us: Ints = us[self.order]
        self.age_us: Ints = self.known_us if age_us is None else age_us[self.order]

    def before(self, code: Ints, us: Ints) -> Past:
        """What was known of a kind strictly before an instant, for each question; a code below 0 is no kind."""
        first = code * self.width
        end = np.searchsorted(self.key, first + np.searchsorted(self.instants, us), side="left")
        start = np.searchsorted(self.key, first, side="left")
        return Past(self, start.astype(np.int64), end.astype(np.int64), us)


class Past:
    """The known events of each question: sorted places ``start`` to ``end`` (exclusive) of its kind.

    Example:
        >>> events = Events(np.array([0, 0, 1]), np.array([10, 20, 20]))
        >>> past = events.before(np.array([0, 0, 1]), np.array([20, 21, 20]))
        >>> past.sum(np.array([1.0, 1.0, 1.0])).tolist()
        [1.0, 2.0, 0.0]
    """

    def __init__(self, events: Events, start: Ints, end: Ints, us: Ints) -> None:
        """Keep the places; get one from `Events.before`."""
        self.events = events
        self.start = start
        self.end = end
        self.us = us

    @cached_property
    def count(self) -> Ints:
        """How many events were known."""
        return self.end - self.start

    def sum(self, values: Floats) -> Floats:
        """Sum of the values of all known events; ``values`` are in the order the events were given in."""
        total = np.concatenate(([0.0], np.cumsum(values[self.events.order])))
        return total[self.end] - total[self.start]

    def window(self, values: Floats, n: int) -> tuple[Floats, Ints]:
        """Sum over the last ``n`` known events, and how many there were."""
        total = np.concatenate(([0.0], np.cumsum(values[self.events.order])))
        first = np.maximum(self.start, self.end - n)
        return total[self.end] - total[first], self.end - first

    def last(self) -> Ints:
        """Index (as given) of the last known event; -1 if there is none. At equal instants, the one given last."""
        found = self.end > self.start
        return np.where(found, self.events.order[np.maximum(self.end - 1, 0)] if self.events.order.size else -1, -1)

    def fading(self, values: Floats, per_day: float) -> Floats:
        """Sum of ``value * exp(-per_day * age in days)`` over the known events."""
        return self.fading_sorted(values[self.events.order], per_day)

    def fading_sorted(self, values: Floats, per_day: float) -> Floats:
        """As `fading`, of values that are in the events' sorted order already."""
        if per_day == 0 or self.events.order.size == 0:
            total = np.concatenate(([0.0], np.cumsum(values)))
            return total[self.end] - total[self.start]
        return self._faded(values, self.events.known_us, self.events.age_us, self.us, per_day)

    def _power_by_pairs(self, values: Floats, exponent: float) -> Floats:
        """Every pair of a question and an event it knows, in pieces that fit in memory."""
        out = np.empty(self.us.size)
        size = np.cumsum(self.count)
        done = 0
        while done < out.size:
            limit = (size[done - 1] if done else 0) + _PAIRS_AT_ONCE
            until = max(done + 1, int(np.searchsorted(size, limit, side="right")))
            count, start = self.count[done:until], self.start[done:until]
            query = np.repeat(np.arange(count.size), count)
            event = np.arange(query.size) + np.repeat(start - (np.cumsum(count) - count), count)
            days = (self.us[done:until][query] - self.events.age_us[event]) / DAY_US
            out[done:until] = summed(query, values[event] * (1.0 + days) ** -exponent, count.size)
            done = until
        return out

    def _faded(self, values: Floats, known: Ints, age: Ints, now: Ints, rate: float) -> Floats:
        """The fading sum on any clock: ``values``, ``known`` and ``age`` are those of the sorted events."""
        start, carried = _segments(self.events.code, known, rate)
        segment_of_event = np.repeat(np.arange(start.size), np.diff(np.append(start, values.size)))
        origin = known[start]
        running = _running_sums(values * np.exp(rate * (age - origin[segment_of_event]) / DAY_US), segment_of_event)
        held = _carry(running[np.append(start[1:], values.size) - 1], origin, carried, rate)
        found = self.end > self.start
        last = np.where(found, self.end - 1, 0)
        segment = segment_of_event[last]
        since = np.exp(-rate * np.where(found, now - origin[segment], 0) / DAY_US)
        return np.where(found, (running[last] + held[segment]) * since, 0.0)

    def power(self, values: Floats, exponent: float) -> Floats:
        """Sum of ``value * (1 + age in days) ** -exponent`` over the known events.

        Added up event by event while that is affordable. Beyond, by the mixture of exponentials that a power of time
        is, ``(1 + a)^-d = 1/Gamma(d) * integral of e^(ud - e^u (1 + a)) du``: the trapezoid rule over u is exact to
        about 1e-6 here, and costs a few dozen fading sums instead of a pair of every two events.
        """
        if int(self.count.sum()) <= _PAIRS:
            return self._power_by_pairs(values[self.events.order], exponent)
        rates, shares = power_mixture(exponent, _LONGEST_DAYS)
        out = np.zeros(self.us.size)
        for rate, share in zip(rates, shares, strict=True):
            out += share * self.fading(values, float(rate))
        return out


def power_mixture(exponent: float, longest_days: float) -> tuple[Floats, Floats]:
    """Rates (per day) and shares with ``sum(share * exp(-rate * a))`` = ``(1 + a) ** -exponent`` for ages up to a span.

    Example:
        >>> rates, shares = power_mixture(0.5, 365.0)
        >>> bool(abs((shares * np.exp(-rates * 99.0)).sum() - 0.1) < 1e-6)
        True
    """
    from scipy.special import gammaln

    step = 0.5
    lowest = -np.log1p(longest_days) - 18.0 / max(exponent, 0.05)
    u = np.arange(lowest, 3.6, step)
    log_share = u * exponent - np.exp(u) - gammaln(exponent) + np.log(step)
    return np.exp(u), np.exp(log_share)


def _distinct(us: Ints) -> Ints:
    """The distinct values, ascending; sorting is several times faster here than numpy's hashing unique."""
    ordered = np.sort(us)
    return ordered[np.append(True, np.diff(ordered) != 0)] if ordered.size else ordered


def _running_sums(values: Floats, segment: Ints) -> Floats:
    """Sums within each segment from its start; never across segments, whose scales differ by hundreds of digits."""
    frame = pl.DataFrame({"segment": segment, "value": values})
    return frame.select(pl.col("value").cum_sum().over("segment"))["value"].to_numpy()


def _segments(code: Ints, clock: Ints, rate: float) -> tuple[Ints, NDArray[np.bool_]]:
    """Cuts where a kind begins, and before exp could overflow within it: where, and does the kind go on there?"""
    new_kind = np.append(True, np.diff(code) != 0)
    kind_start = np.flatnonzero(new_kind)
    origin = np.repeat(clock[kind_start], np.diff(np.append(kind_start, code.size)))
    stretch = np.floor(rate * ((clock - origin) / DAY_US) / _SAFE_EXPONENT)
    start = np.flatnonzero(new_kind | np.append(True, np.diff(stretch) != 0)).astype(np.int64)
    return start, ~new_kind[start]


def _carry(inside: Floats, origin: Ints, carried: NDArray[np.bool_], rate: float) -> Floats:
    """What is left, at each segment's origin, of the segments of the same kind before it; all kinds at once."""
    held = np.zeros(inside.size)
    place = np.arange(inside.size) - np.maximum.accumulate(np.where(carried, 0, np.arange(inside.size)))
    order = np.argsort(place, kind="stable")
    cuts = np.searchsorted(place[order], np.arange(1, int(place.max(initial=0)) + 2))
    for j in range(cuts.size - 1):
        i = order[cuts[j] : cuts[j + 1]]
        held[i] = (held[i - 1] + inside[i - 1]) * np.exp(-rate * (origin[i] - origin[i - 1]) / DAY_US)
    return held
