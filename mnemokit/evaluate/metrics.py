"""How good probabilities and rankings are: log loss, Brier, calibration, AUC, hit@k, MRR, nDCG.

Probabilities ``p`` are of success; outcomes ``y`` are 1 (success) or 0. ``weights`` are how often each row counts, 1
if left out. Every function takes anything that numpy can read and gives a float, or a frame where it says so.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from mnemokit.errors import InvalidInput, NotEnoughData

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLIP = float(np.finfo(np.float64).eps)
"""A probability of 0 or 1 that turned out wrong costs ``-ln(CLIP)`` = 36.04; scikit-learn clips at the same place."""

BINS = 20
"""Equal bins of probability (width 0.05) for calibration and its RMSE."""


def log_loss(y: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Mean of ``-ln`` of the probability that was given to what happened, in nats; smaller is better.

    Raises:
        NotEnoughData: If there is no row.

    Example:
        >>> round(log_loss([1, 0], [0.5, 0.5]), 4)
        0.6931
    """
    outcome, probability, weight = _checked(y, p, weights)
    return _mean(log_losses(outcome, probability), weight)


def brier(y: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Mean squared difference of probability and outcome, 0 to 1; smaller is better (Brier 1950).

    Raises:
        NotEnoughData: If there is no row.

    Example:
        >>> brier([1, 0], [0.5, 0.5])
        0.25
    """
    outcome, probability, weight = _checked(y, p, weights)
    return _mean((probability - outcome) ** 2, weight)


def auc(y: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Probability that a success was given more than a failure, ties counting half (area under the ROC curve).

    Returns:
        0 to 1; 0.5 knows nothing; NaN where only one outcome occurs.

    Raises:
        NotEnoughData: If there is no row.

    Example:
        >>> auc([1, 0, 1], [0.9, 0.2, 0.2])
        0.75
    """
    outcome, probability, weight = _checked(y, p, weights)
    return float(auc_of_levels(outcome, level_numbers(probability), weight))


def rmse_bins(y: ArrayLike, p: ArrayLike, weights: ArrayLike | None = None, bins: int = BINS) -> float:
    """Root mean square distance of mean probability and success rate over equal bins; smaller is better.

    ``sqrt(sum_b n_b (mean p_b - mean y_b)^2 / sum_b n_b)``: how far off the calibration is, whatever the sharpness.

    Raises:
        NotEnoughData: If there is no row.

    Example:
        >>> round(rmse_bins([1, 0, 1, 0], [0.8, 0.8, 0.8, 0.8]), 6)
        0.3
    """
    outcome, probability, weight = _checked(y, p, weights)
    sums = np.stack(
        [summed(bin_numbers(probability, bins), weight * part, bins) for part in (probability, outcome, 1.0)]
    )
    return float(rmse_of_sums(sums))


def bin_table(y: ArrayLike, p: ArrayLike, bins: int = BINS) -> pl.DataFrame:
    """The calibration curve as a table: what was said and what happened, bin by bin.

    Args:
        y: Outcomes.
        p: Probabilities.
        bins: Number of equal bins.

    Returns:
        One row per bin that holds a prediction: ``bin, from, to, n``, ``predicted`` (mean probability), ``observed``
        (share that succeeded), ``low, high``; the interval of the share is Wilson's, 95 %, and takes rows for
        independent.

    Example:
        >>> bin_table([1, 0], [0.51, 0.52], bins=2).select("from", "to", "n", "observed").rows()
        [(0.5, 1.0, 2, 0.5)]
    """
    outcome, probability, _ = _checked(y, p, None)
    rows = pl.DataFrame({"bin": bin_numbers(probability, bins), "p": probability, "y": outcome})
    z = 1.959963984540054
    n, rate = pl.col("n"), pl.col("observed")
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (rate * (1 - rate) / n + z * z / (4 * n * n)).sqrt()
    return (
        rows.group_by("bin")
        .agg(n=pl.len().cast(pl.Int64), predicted=pl.col("p").mean(), observed=pl.col("y").mean())
        .sort("bin")
        .with_columns(low=(centre - half).clip(0, 1), high=(centre + half).clip(0, 1))
        .select(
            "bin",
            (pl.col("bin") / bins).alias("from"),
            ((pl.col("bin") + 1) / bins).alias("to"),
            "n",
            "predicted",
            "observed",
            "low",
            "high",
        )
    )


def hit_at(k: int, better: ArrayLike, tied: ArrayLike) -> Floats:
    """Probability, row by row, that what happened was among the first k.

    Args:
        k: Length of the list that is looked at.
        better: How many candidates were ranked above it.
        tied: How many had its score, itself included; 0 if it was no candidate. Ties are broken at random, and the
            expectation over that is returned, so that no model gains by the order of names.

    Example:
        >>> hit_at(1, [0, 0, 2], [1, 2, 1]).tolist()
        [1.0, 0.5, 0.0]
    """
    above, level = _ranks(better, tied)
    return np.where(level > 0, np.clip((k - above) / np.maximum(level, 1.0), 0.0, 1.0), 0.0)


def reciprocal_rank(better: ArrayLike, tied: ArrayLike) -> Floats:
    """One over the rank of what happened, row by row; 0 if it was no candidate. Ties: the expectation, as in `hit_at`.

    Example:
        >>> reciprocal_rank([0, 0, 1], [1, 2, 0]).tolist()
        [1.0, 0.75, 0.0]
    """
    above, level = _ranks(better, tied)
    longest = int((above + level).max(initial=0.0))
    harmonic = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, longest + 1))))
    first, last = above.astype(np.int64), (above + level).astype(np.int64)
    return np.where(level > 0, (harmonic[last] - harmonic[first]) / np.maximum(level, 1.0), 0.0)


def ndcg(relevance: ArrayLike, k: int) -> float:
    """Normalised discounted cumulative gain of one ranked list (Jarvelin and Kekalainen 2002), 0 to 1.

    ``sum_i rel_i / log2(i + 1)`` over the first k places, over the same sum in the best order.

    Args:
        relevance: Relevance of what was shown, in the order it was shown; 0 and above.
        k: Places that count.

    Returns:
        NaN where nothing is relevant: the list cannot be judged.

    Example:
        >>> round(ndcg([0, 1, 0], 3), 6)
        0.63093
    """
    gains = np.asarray(relevance, dtype=np.float64)
    if k < 1:
        raise InvalidInput(f"k must be at least 1, not {k}; nothing was computed")
    discount = 1.0 / np.log2(np.arange(2, gains.size + 2))
    discount[k:] = 0.0
    ideal = float(np.sum(np.sort(gains)[::-1] * discount))
    return float(np.sum(gains * discount)) / ideal if ideal > 0 else float("nan")


# What the intervals share with the values --------------------------------------------------------------------------


def log_losses(y: Floats, p: Floats) -> Floats:
    """The log loss row by row."""
    clipped = np.clip(p, CLIP, 1.0 - CLIP)
    return -(y * np.log(clipped) + (1.0 - y) * np.log1p(-clipped))


def bin_numbers(p: Floats, bins: int) -> Ints:
    """The bin of each probability; 1 belongs to the last."""
    return np.minimum((p * bins).astype(np.int64), bins - 1)


def rmse_of_sums(sums: Floats) -> Floats:
    """RMSE over bins from ``(..., 3, bins)`` sums of p, of y and of weights."""
    n = sums[..., 2, :]
    squared = (sums[..., 0, :] - sums[..., 1, :]) ** 2 / np.maximum(n, np.finfo(np.float64).tiny)
    return np.sqrt(squared.sum(axis=-1) / n.sum(axis=-1))


def summed(code: Ints, values: Floats, n: int) -> Floats:
    """Sums of values by code, 0 to n - 1."""
    return np.bincount(code, values, n).astype(np.float64)


def level_numbers(p: Floats) -> Ints:
    """Each probability's place among the distinct ones, lowest first."""
    return np.unique(p, return_inverse=True)[1].astype(np.int64)


def auc_of_levels(y: Floats, levels: Ints, weights: Floats) -> float:
    """AUC of rows whose probabilities are given as `level_numbers`; NaN where one outcome has no weight."""
    n = int(levels.max(initial=-1)) + 1
    good = summed(levels, weights * y, n)
    bad = summed(levels, weights * (1.0 - y), n)
    pairs = good.sum() * bad.sum()
    if pairs <= 0:
        return float("nan")
    return float((good * (np.cumsum(bad) - bad / 2)).sum() / pairs)


def _checked(y: ArrayLike, p: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    outcome, probability = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
    weight = np.ones_like(outcome) if weights is None else np.asarray(weights, dtype=np.float64)
    if not outcome.shape == probability.shape == weight.shape or outcome.ndim != 1:
        raise InvalidInput(
            f"outcomes, probabilities and weights must be equally long rows, not {outcome.shape}, {probability.shape} "
            f"and {weight.shape}; nothing was computed"
        )
    if outcome.size == 0:
        raise NotEnoughData("there is no prediction to score")
    if not np.isin(outcome, (0.0, 1.0)).all():
        raise InvalidInput("outcomes must be 0 or 1; leave out rows whose outcome is unknown; nothing was computed")
    if not ((probability >= 0) & (probability <= 1)).all():
        raise InvalidInput("probabilities must be numbers from 0 to 1; nothing was computed")
    return outcome, probability, weight


def _mean(values: Floats, weights: Floats) -> float:
    return float(np.average(values, weights=weights))


def _ranks(better: ArrayLike, tied: ArrayLike) -> tuple[Floats, Floats]:
    return np.asarray(better, dtype=np.float64), np.asarray(tied, dtype=np.float64)
