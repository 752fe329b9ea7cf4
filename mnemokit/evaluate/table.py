"""The one table that every evaluation ends in: models and metrics, values and intervals, beside every baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from mnemokit.evaluate.intervals import (
    FEW_SESSIONS,
    MIN_SESSIONS,
    REPLICATES,
    SEED,
    Auc,
    BinnedRmse,
    Ratio,
    Statistic,
    draws,
    per_session,
    percentiles,
    whole,
)
from mnemokit.evaluate.metrics import BINS, Floats, Ints, bin_numbers, level_numbers, log_losses, summed

RESULT_SCHEMA: dict[str, pl.DataType] = {
    "target": pl.String(),
    "by": pl.String(),
    "group": pl.String(),
    "model": pl.String(),
    "baseline": pl.Boolean(),
    "metric": pl.String(),
    "versus": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n_sessions": pl.Int64(),
    "n": pl.Int64(),
    "seconds": pl.Float64(),
    "note": pl.String(),
}
"""Columns of every result. ``baseline``: is the model one that others are compared with? ``versus`` null: the metric itself; else the paired difference, the model's minus the
baseline's. ``low`` and ``high``: 95 % interval over sessions. ``by``/``group``: ``all``, or one group of rows.
``seconds``: what the model's predictions took. ``note``: why a number should not be believed, null if nothing is known
against it."""

SMALLER_IS_BETTER = frozenset({"log_loss", "brier", "rmse_bins"})
"""Metrics where less is better; of all others more is."""

_RANGES: Mapping[str, tuple[float, float]] = {"log_loss": (0.0, float("inf"))}
_AUC_CELLS = 100_000_000


@dataclass(frozen=True)
class Scored:
    """What is known of each prediction of one target, ready to be put in a table.

    Attributes:
        target: What was predicted.
        session: Session number of each row, 0 and up.
        n_sessions: How many there are.
        losses: Model, then metric, then the row values whose mean is the metric.
        seconds: What each model took.
        baselines: Models that the others are compared with.
        y: Outcomes, where the target is a probability ...
        p: ... with each model's probabilities; adds RMSE over bins and AUC.
        groups: Column name and label of each row, for a table by group.
    """

    target: str
    session: Ints
    n_sessions: int
    losses: Mapping[str, Mapping[str, Floats]]
    seconds: Mapping[str, float]
    baselines: Sequence[str]
    y: Floats | None = None
    p: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    groups: Mapping[str, pl.Series] = field(default_factory=dict[str, pl.Series])


def probability_losses(y: Floats, p: Floats) -> dict[str, Floats]:
    """Row values of the metrics of a probability that are means over rows."""
    return {"log_loss": log_losses(y, p), "brier": (p - y) ** 2}


def tabulate(scored: Scored, *, rng: np.random.Generator | None = None, replicates: int = REPLICATES) -> pl.DataFrame:
    """The result frame of `RESULT_SCHEMA`: every model and metric, and every paired difference from a baseline.

    Args:
        scored: The predictions.
        rng: Draws the sessions; left out, a generator seeded with `intervals.SEED`.
        replicates: Draws of the session bootstrap; AUC takes fewer (at least 200) above 50,000 rows.
    """
    generator = np.random.default_rng(SEED) if rng is None else rng
    parts = [_one_group(scored, "all", "all", None, generator, replicates)]
    for by, labels in scored.groups.items():
        for label in labels.drop_nulls().unique().sort().to_list():
            rows = (labels == label).fill_null(value=False).to_numpy().nonzero()[0]
            parts.append(_one_group(scored, by, str(label), rows, generator, replicates))
    return pl.concat(parts)


def note_on(n: int, n_sessions: int) -> str | None:
    """What is to be said against a number from so few sessions.

    Example:
        >>> note_on(40, 3)
        '3 sessions: too few for an interval (10 needed)'
    """
    if n == 0:
        return "nothing to score"
    if n_sessions < MIN_SESSIONS:
        return f"{n_sessions} session{'' if n_sessions == 1 else 's'}: too few for an interval ({MIN_SESSIONS} needed)"
    if n_sessions < FEW_SESSIONS:
        return f"{n_sessions} sessions: the interval is rough"
    return None


def interval_of(values: Floats, n_sessions: int, widest: tuple[float, float]) -> tuple[float, float]:
    """The percentile interval, or the widest one there is if too few sessions stand behind it."""
    return percentiles(values) if n_sessions >= MIN_SESSIONS else widest


def widest_range(metric: str, *, difference: bool) -> tuple[float, float]:
    """The whole range of a metric, or of a difference of two.

    Example:
        >>> widest_range("brier", difference=True)
        (-1.0, 1.0)
    """
    low, high = _RANGES.get(metric, (0.0, 1.0))
    return (low - high, high - low) if difference else (low, high)


def _one_group(
    scored: Scored, by: str, group: str, rows: Ints | None, rng: np.random.Generator, replicates: int
) -> pl.DataFrame:
    session = scored.session if rows is None else scored.session[rows]
    here, session = np.unique(session, return_inverse=True)
    n, n_sessions = session.size, here.size
    by_metric = _statistics(scored, rows, session.astype(np.int64), n_sessions)
    note = note_on(n, n_sessions)
    out: list[tuple[object, ...]] = []
    for metric, statistics in by_metric.items():
        values = {model: whole(s, n_sessions) if n else float("nan") for model, s in statistics.items()}
        wanted = replicates if metric != "auc" else min(replicates, max(200, _AUC_CELLS // max(n, 1)))
        enough = n_sessions >= MIN_SESSIONS
        drawn = dict(
            zip(
                statistics,
                draws(list(statistics.values()), n_sessions if enough else 0, wanted, rng),
                strict=True,
            )
        )
        for model, value in values.items():
            versus = [None, *(name for name in scored.baselines if name != model and name in values)]
            for baseline in versus:
                difference = baseline is not None
                sample = drawn[model] - drawn[baseline] if baseline is not None else drawn[model]
                shown = value - values[baseline] if baseline is not None else value
                low, high = interval_of(sample, n_sessions, widest_range(metric, difference=difference))
                if n == 0:
                    shown, (low, high) = float("nan"), widest_range(metric, difference=difference)
                said = note
                if np.isnan(shown) and n:
                    low, high, said = float("nan"), float("nan"), "one outcome only"
                out.append(
                    (scored.target, by, group, model, model in scored.baselines, metric, baseline, _null(shown), _null(low), _null(high),
                     n_sessions, n, scored.seconds.get(model), said)
                )  # fmt: skip
    return pl.DataFrame(out, schema=RESULT_SCHEMA, orient="row")


def _statistics(scored: Scored, rows: Ints | None, session: Ints, n_sessions: int) -> dict[str, dict[str, Statistic]]:
    """Metric, then model, then the statistic over these rows."""
    ones = per_session(np.ones(session.size), session, n_sessions)
    out: dict[str, dict[str, Statistic]] = {}
    for model, losses in scored.losses.items():
        for metric, loss in losses.items():
            chosen = loss if rows is None else loss[rows]
            out.setdefault(metric, {})[model] = Ratio(per_session(chosen, session, n_sessions), ones)
    if scored.y is not None:
        y = scored.y if rows is None else scored.y[rows]
        for model, every in scored.p.items():
            p = every if rows is None else every[rows]
            out.setdefault("rmse_bins", {})[model] = _binned(y, p, session, n_sessions)
            out.setdefault("auc", {})[model] = Auc(y, level_numbers(p), session)
    return out


def _binned(y: Floats, p: Floats, session: Ints, n_sessions: int) -> BinnedRmse:
    cell = session * BINS + bin_numbers(p, BINS)
    sums = [summed(cell, values, n_sessions * BINS) for values in (p, y, np.ones_like(p))]
    return BinnedRmse(np.stack([part.reshape(n_sessions, BINS) for part in sums], axis=1))


def _null(value: float) -> float | None:
    return None if np.isnan(value) else value
