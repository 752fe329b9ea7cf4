"""Two groups of sessions, many shares at once: intervals by drawing sessions, and a test by shuffling group labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.evaluate.intervals import MIN_SESSIONS
from mnemokit.evaluate.metrics import Floats
from mnemokit.evaluate.table import widest_range

REPLICATES = 1000
"""Draws of sessions, and shuffles of labels, unless told otherwise."""

ANY_DIFFERENCE = widest_range("share", difference=True)
"""What a difference of two shares can be at all: its interval where too few sessions stand behind it."""


@dataclass(frozen=True)
class Sums:
    """Sums of each session: a row per session, a column per thing that is compared.

    Attributes:
        top: For instance passings along each edge.
        bottom: For instance passings out of the edge's source.
    """

    top: Floats
    bottom: Floats

    @property
    def n_sessions(self) -> int:
        """Rows."""
        return self.top.shape[0]

    @property
    def support(self) -> Floats:
        """Sessions behind each share: those whose bottom is not 0."""
        return (self.bottom > 0).sum(axis=0).astype(np.float64)

    def shares(self) -> Floats:
        """Top over bottom, all sessions added up; NaN where the bottom is 0."""
        return ratio(self.top.sum(axis=0), self.bottom.sum(axis=0))


@dataclass(frozen=True)
class Differences:
    """How two groups differ, thing by thing.

    Attributes:
        difference: Share in b less share in a.
        low: Its 95 % interval, sessions drawn within each group ...
        high: ... -1 to 1 where fewer than `MIN_SESSIONS` sessions of a group stand behind its share.
        p: Share of label shuffles with a difference at least as large (two-sided; the observed one counts as one).
        q: The same, corrected for looking at so many (Benjamini and Hochberg 1995).
    """

    difference: Floats
    low: Floats
    high: Floats
    p: Floats
    q: Floats


def compare_sums(a: Sums, b: Sums, *, rng: np.random.Generator, replicates: int = REPLICATES) -> Differences:
    """Compare the shares of two groups of sessions."""
    difference = b.shares() - a.shares()
    low, high = interval_of_differences(a, b, rng=rng, replicates=replicates)
    p = _shuffled(a, b, difference, rng, replicates)
    return Differences(difference, low, high, p, benjamini_hochberg(p))


def interval_of_differences(
    a: Sums, b: Sums, *, rng: np.random.Generator, replicates: int = REPLICATES
) -> tuple[Floats, Floats]:
    """95 % interval of each share in b less that in a, sessions drawn within each group."""
    drawn = _drawn(b, rng, replicates) - _drawn(a, rng, replicates)
    return interval_of_draws(drawn, np.minimum(a.support, b.support), ANY_DIFFERENCE)


def interval_of_shares(
    sums: Sums, widest: tuple[float, float], *, rng: np.random.Generator, replicates: int = REPLICATES
) -> tuple[Floats, Floats]:
    """95 % interval of each ratio of sums, sessions drawn; ``widest`` is what the ratio can be at all."""
    return interval_of_draws(_drawn(sums, rng, replicates), sums.support, widest)


def interval_of_draws(drawn: Floats, support: Floats, widest: tuple[float, float]) -> tuple[Floats, Floats]:
    """95 % interval of each column of draws: no narrower than what stands behind it allows.

    Where fewer than `MIN_SESSIONS` sessions do, it is the widest there is. Where every draw is the same, the sessions
    were all alike; that n of them were leaves room for a part of up to 1 - 0.025 ** (1 / n) that are not, and the
    interval reaches as far as that part could move a value of this range (if the range is bounded).

    Args:
        drawn: A row per draw, a column per thing.
        support: Sessions (or pairs, or tasks) behind each thing.
        widest: The range of the quantity.

    Example:
        >>> same = np.zeros((100, 2))
        >>> [side.round(2).tolist() for side in interval_of_draws(same, np.array([3.0, 134.0]), (-1.0, 1.0))]
        [[-1.0, -0.03], [1.0, 0.03]]
    """
    low, high = np.full(drawn.shape[1], widest[0]), np.full(drawn.shape[1], widest[1])
    usable = (support >= MIN_SESSIONS) & ((~np.isnan(drawn)).mean(axis=0) >= 0.5)
    if usable.any():
        low[usable], high[usable] = np.nanquantile(drawn[:, usable], [0.025, 0.975], axis=0)
    if np.isfinite(widest).all():
        alike = usable & (high - low < 1e-12)
        room = 1 - 0.025 ** (1 / support[alike])
        value = low[alike]
        low[alike], high[alike] = value - room * (value - widest[0]), value + room * (widest[1] - value)
    return low, high


def too_few(n: pl.Expr, did: str, needed: int = MIN_SESSIONS) -> pl.Expr:
    """The note on a row with so few sessions that it has no interval; null where there are enough."""
    sessions = pl.when(n == 1).then(pl.lit("session")).otherwise(pl.lit("sessions"))
    note = pl.format("{} {} {}: too few for an interval ({} needed)", n, sessions, pl.lit(did), pl.lit(needed))
    return pl.when(n < needed).then(note)


def benjamini_hochberg(p: Floats) -> Floats:
    """Each p-value's false discovery rate: the smallest rate at which it would still be called a discovery.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.02, 0.9])).round(3).tolist()
        [0.03, 0.03, 0.9]
    """
    known = ~np.isnan(p)
    out = np.full(p.size, np.nan)
    values = p[known]
    order = np.argsort(values)
    scaled = values[order] * values.size / np.arange(1, values.size + 1)
    best = np.minimum.accumulate(scaled[::-1])[::-1]
    ranked = np.empty(values.size)
    ranked[order] = np.minimum(best, 1.0)
    out[known] = ranked
    return out


def ratio(top: Floats, bottom: Floats) -> Floats:
    """Top over bottom, NaN where the bottom is 0."""
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)


def evidence(low: Floats, high: Floats) -> Floats:
    """How far an interval stays from 0: what lists are ordered by, so that a difference with nothing behind it is last.

    Example:
        >>> evidence(np.array([0.1, -0.2, -0.5]), np.array([0.3, 0.2, -0.4])).tolist()
        [0.1, -0.2, 0.4]
    """
    return np.where(np.isnan(low), -np.inf, np.maximum(low, -high))


def _drawn(sums: Sums, rng: np.random.Generator, replicates: int) -> Floats:
    counts = rng.multinomial(sums.n_sessions, np.full(sums.n_sessions, 1.0 / max(sums.n_sessions, 1)), replicates)
    weights = counts.astype(np.float64)
    return ratio(weights @ sums.top, weights @ sums.bottom)


def _shuffled(a: Sums, b: Sums, difference: Floats, rng: np.random.Generator, replicates: int) -> Floats:
    top, bottom = np.concatenate([a.top, b.top]), np.concatenate([a.bottom, b.bottom])
    labels = np.zeros(top.shape[0])
    labels[a.n_sessions :] = 1.0
    marks = rng.permuted(np.tile(labels, (replicates, 1)), axis=1)
    in_b = ratio(marks @ top, marks @ bottom)
    in_a = ratio((1.0 - marks) @ top, (1.0 - marks) @ bottom)
    larger = np.abs(in_b - in_a) >= np.abs(difference) - 1e-12
    usable = ~np.isnan(in_b - in_a)
    p = (1.0 + (larger & usable).sum(axis=0)) / (1.0 + usable.sum(axis=0))
    return np.where(np.isnan(difference), np.nan, p)
