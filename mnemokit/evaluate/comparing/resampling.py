"""Two groups of sessions, many shares at once: intervals by drawing sessions, and a test by shuffling group labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnemokit.evaluate.metrics import Floats

REPLICATES = 1000
"""Draws of sessions, and shuffles of labels, unless told otherwise."""


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

    def shares(self) -> Floats:
        """Top over bottom, all sessions added up; NaN where the bottom is 0."""
        return ratio(self.top.sum(axis=0), self.bottom.sum(axis=0))


@dataclass(frozen=True)
class Differences:
    """How two groups differ, thing by thing.

    Attributes:
        difference: Share in b less share in a.
        low: Its 95 % interval, sessions drawn within each group ...
        high: ... NaN where a share cannot be computed.
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
    drawn = _drawn(b, rng, replicates) - _drawn(a, rng, replicates)
    low, high = _interval(drawn)
    p = _shuffled(a, b, difference, rng, replicates)
    known = ~np.isnan(difference)
    return Differences(
        difference, np.where(known, low, np.nan), np.where(known, high, np.nan), p, benjamini_hochberg(p)
    )


def interval_of_shares(sums: Sums, *, rng: np.random.Generator, replicates: int = REPLICATES) -> tuple[Floats, Floats]:
    """95 % interval of each share, sessions drawn."""
    return _interval(_drawn(sums, rng, replicates))


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


def _interval(drawn: Floats) -> tuple[Floats, Floats]:
    enough = (~np.isnan(drawn)).mean(axis=0) >= 0.5
    low, high = np.full(drawn.shape[1], np.nan), np.full(drawn.shape[1], np.nan)
    if enough.any():
        low[enough], high[enough] = np.nanquantile(drawn[:, enough], [0.025, 0.975], axis=0)
    return low, high


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
