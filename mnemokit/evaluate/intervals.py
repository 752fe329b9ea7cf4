"""Intervals by resampling sessions: rows of one session are not independent, so whole sessions are drawn.

A statistic is something that can be computed again when each session counts so many times. All statistics of one call
see the same draws, so that their differences are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mnemokit.evaluate.metrics import Floats, Ints, auc_of_levels, rmse_of_sums, summed

REPLICATES = 2000
"""Draws of the bootstrap, unless told otherwise."""

SEED = 20230817
"""Seed of the generator used where a caller gives none; the same input gives the same interval."""

MIN_SESSIONS = 10
"""With fewer sessions than this no interval can be had, and the widest possible one is given with a note."""

FEW_SESSIONS = 30
"""With fewer sessions than this a percentile interval tends to be too narrow, and a note says so."""

OWN_SESSION = "\x1f\x1f"
"""How the session of a row begins that has none on record, and so is a session of its own."""

_BATCH_CELLS = 4_000_000


class Statistic(Protocol):
    """Something that can be computed for any number of times that each session counts."""

    def at(self, counts: Floats) -> Floats:
        """The values under ``counts``, one row per draw and one column per session."""
        ...


@dataclass(frozen=True)
class Ratio:
    """A sum over a sum, for instance of losses over rows: one of each per session."""

    top: Floats
    bottom: Floats

    def at(self, counts: Floats) -> Floats:
        """The ratio of the sums; NaN where nothing counts."""
        below = counts @ self.bottom
        return np.divide(counts @ self.top, below, out=np.full(below.shape, np.nan), where=below > 0)


@dataclass(frozen=True)
class BinnedRmse:
    """RMSE over bins: sums of p, y and rows per session and bin, shape ``(sessions, 3, bins)``."""

    sums: Floats

    def at(self, counts: Floats) -> Floats:
        """The RMSE under each draw."""
        flat = counts @ self.sums.reshape(self.sums.shape[0], -1)
        shaped = flat.reshape(counts.shape[0], 3, -1)
        empty = shaped[:, 2].sum(axis=-1) <= 0
        shaped[empty, 2] = 1.0
        return np.where(empty, np.nan, rmse_of_sums(shaped))


@dataclass(frozen=True)
class Auc:
    """Area under the ROC curve; rows keep their session."""

    y: Floats
    levels: Ints
    session: Ints

    def at(self, counts: Floats) -> Floats:
        """The area under each draw."""
        return np.array([auc_of_levels(self.y, self.levels, draw[self.session]) for draw in counts])


def per_session(values: Floats, session: Ints, n_sessions: int) -> Floats:
    """Sums of row values by session number."""
    return summed(session, values, n_sessions)


def draws(statistics: Sequence[Statistic], n_sessions: int, replicates: int, rng: np.random.Generator) -> Floats:
    """Every statistic under the same draws of sessions, with replacement.

    Returns:
        Shape ``(statistics, replicates)``.
    """
    columns = [
        np.stack([statistic.at(counts) for statistic in statistics]) for counts in _counts(n_sessions, replicates, rng)
    ]
    return np.concatenate(columns, axis=1) if columns else np.empty((len(statistics), 0))


def draws_of_means(tops: Floats, bottom: Floats, replicates: int, rng: np.random.Generator) -> Floats:
    """Many means over the same rows under the same draws of sessions, faster than one by one.

    Args:
        tops: Sums of the row values by session, shape ``(means, sessions)``.
        bottom: Rows by session.
        replicates: How often sessions are drawn.
        rng: Draws them.

    Returns:
        Shape ``(means, replicates)``.
    """
    columns = [tops @ counts.T / (counts @ bottom) for counts in _counts(bottom.size, replicates, rng)]
    return np.concatenate(columns, axis=1) if columns else np.empty((tops.shape[0], 0))


def without_session(session: pl.Series) -> NDArray[np.bool_]:
    """Which rows have no session on record: their session's name says so.

    Example:
        >>> without_session(pl.Series([OWN_SESSION + "run 1", "s"])).tolist()
        [True, False]
    """
    if session.dtype != pl.String:
        return np.zeros(session.len(), dtype=np.bool_)
    return session.str.starts_with(OWN_SESSION).fill_null(value=False).to_numpy()


def session_numbers(session: pl.Series) -> Ints:
    """The session of each row as a number, 0 and up."""
    return session.rank("dense").to_numpy().astype(np.int64) - 1


def whole(statistic: Statistic, n_sessions: int) -> float:
    """The statistic where every session counts once."""
    return float(statistic.at(np.ones((1, n_sessions)))[0])


def percentiles(values: Floats, mass: float = 0.95) -> tuple[float, float]:
    """The equal-tailed percentile interval of the draws that have a value; NaN if fewer than half have one."""
    known = values[~np.isnan(values)]
    if known.size * 2 < values.size or known.size == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - mass) / 2, (1 + mass) / 2])
    return float(low), float(high)


def session_interval(
    statistic: Statistic,
    n_sessions: int,
    *,
    replicates: int = REPLICATES,
    rng: np.random.Generator | None = None,
) -> tuple[float, float, float]:
    """Value, low and high of one statistic by the session bootstrap.

    Example:
        >>> losses = Ratio(top=np.array([1.0, 3.0]), bottom=np.array([2.0, 2.0]))
        >>> value, low, high = session_interval(losses, 2)
        >>> value, low, high
        (1.0, 0.5, 1.5)
    """
    generator = np.random.default_rng(SEED) if rng is None else rng
    low, high = percentiles(draws([statistic], n_sessions, replicates, generator)[0])
    return whole(statistic, n_sessions), low, high


def _counts(n_sessions: int, replicates: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each session was drawn, draw by draw, in batches that fit in memory."""
    if n_sessions == 0:
        return
    batch = max(1, _BATCH_CELLS // n_sessions)
    for start in range(0, replicates, batch):
        size = min(batch, replicates - start)
        drawn = rng.integers(0, n_sessions, size=(size, n_sessions))
        drawn += np.arange(size)[:, None] * n_sessions
        yield np.bincount(drawn.ravel(), minlength=size * n_sessions).reshape(size, n_sessions).astype(np.float64)
