"""The one table that every evaluation ends in: models and metrics, values and intervals, beside every baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

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
"""Columns of every result. ``baseline``: is the model one that others are compared with? ``versus`` null: the metric
itself; else the paired difference, the model's minus the baseline's. ``low`` and ``high``: 95 % interval over sessions.
``by``/``group``: ``all``, or one group of rows. ``seconds``: what the model's predictions took. ``note``: why a number
should not be believed, null if nothing is known against it."""

SMALLER_IS_BETTER = frozenset({"log_loss", "brier", "rmse_bins"})
"""Metrics where less is better; of all others more is."""

BIASED_BY_DRAWING = frozenset({"rmse_bins"})
"""Metrics that are larger in nearly every draw than in what is drawn from: repeated sessions add to what is in a bin by
chance. Their draws are moved by the bias that they show, so that the interval stands around the value."""

_RANGES: Mapping[str, tuple[float, float]] = {"log_loss": (0.0, float("inf"))}
_AUC_CELLS = 100_000_000


@dataclass(frozen=True)
class Scored:
    """What is known of each prediction of one target, ready to be put in a table.

    Attributes:
        target: What was predicted.
        session: Session number of each row, 0 and up.
        n_sessions: How many there are.
        losses: Model, then metric, then the row values whose mean is the metric; NaN where a row cannot be judged by
            it (the same rows for all models).
        seconds: What each model took.
        baselines: Models that the others are compared with.
        y: Outcomes, where the target is a probability ...
        p: ... with each model's probabilities; adds RMSE over bins and AUC.
        groups: Column name and label of each row, for a table by group.
        alone: Rows that have no session on record and are sessions of their own.
        notes: Model to what is to be said against its numbers.
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
    alone: NDArray[np.bool_] | None = None
    notes: Mapping[str, str] = field(default_factory=dict[str, str])


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


def note_on(n: int, n_sessions: int, alone: int = 0) -> str | None:
    """What is to be said against a number from so few sessions, or from rows whose session is not known.

    Args:
        n: Rows.
        n_sessions: Sessions they are in, a row without session being one of its own.
        alone: Rows without session.

    Example:
        >>> note_on(40, 3)
        '3 sessions: too few for an interval (10 needed)'
        >>> note_on(40, 40, alone=40)
        'no sessions on record: rows drawn'
    """
    if n == 0:
        return "nothing to score"
    few = None
    if n_sessions < MIN_SESSIONS:
        few = f"{n_sessions} session{'' if n_sessions == 1 else 's'}: too few for an interval ({MIN_SESSIONS} needed)"
    elif n_sessions < FEW_SESSIONS:
        few = f"{n_sessions} sessions: the interval is rough"
    return joined(few, note_on_rows_drawn(n, alone))


def note_on_rows_drawn(n: int, alone: int) -> str | None:
    """What is to be said of rows without session, which are drawn one by one as if nothing held them together.

    Example:
        >>> note_on_rows_drawn(40, 1)
        '1 of 40 rows has no session: drawn by itself'
    """
    if alone == 0:
        return None
    if alone == n:
        return "no sessions on record: rows drawn"
    if alone == 1:
        return f"1 of {n} rows has no session: drawn by itself"
    return f"{alone} of {n} rows have no session: drawn one by one"


def joined(*notes: str | None) -> str | None:
    """Several notes as one; null where there is nothing to say.

    Example:
        >>> joined("3 sessions", None, "rows drawn")
        '3 sessions; rows drawn'
    """
    return "; ".join(note for note in notes if note) or None


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
    shown: list[tuple[object, ...]] = []
    compared: list[tuple[object, ...]] = []
    every_size = (n, n_sessions)
    alone = _alone(scored, rows, session, n_sessions)
    for metric, statistics in _statistics(scored, rows, session.astype(np.int64), n_sessions).items():
        n, n_sessions, n_alone = _judged(statistics, every_size, alone)
        note = note_on(n, n_sessions, n_alone)
        value, drawn = _drawn(statistics, metric, n, n_sessions, every_size[1], rng, replicates)
        for model in statistics:
            about = (scored.target, by, group, model, model in scored.baselines, metric)
            size = (n_sessions, n, scored.seconds.get(model))
            own = joined(note, scored.notes.get(model) if n else None)
            said = _said(metric, value[model], drawn[model], n, n_sessions, difference=False)
            shown.append((*about, None, *said[:3], *size, said[3] or own))
            for other in scored.baselines:
                if other != model and other in statistics:
                    gain = value[model] - value[other]
                    said = _said(metric, gain, drawn[model] - drawn[other], n, n_sessions, difference=True)
                    compared.append((*about, other, *said[:3], *size, said[3] or own))
    return pl.DataFrame(shown + compared, schema=RESULT_SCHEMA, orient="row")


def _alone(scored: Scored, rows: Ints | None, session: Ints, n_sessions: int) -> NDArray[np.bool_]:
    """Which of these sessions are rows without session."""
    out = np.zeros(n_sessions, dtype=np.bool_)
    if scored.alone is not None:
        out[session[scored.alone if rows is None else scored.alone[rows]]] = True
    return out


def _judged(
    statistics: Mapping[str, Statistic], size: tuple[int, int], alone: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Rows that a metric can judge, the sessions they are in, and how many of those are rows without session."""
    first = next(iter(statistics.values()))
    if not isinstance(first, Ratio):
        return *size, int(alone.sum())
    return int(first.bottom.sum()), int((first.bottom > 0).sum()), int((alone & (first.bottom > 0)).sum())


def _drawn(
    statistics: Mapping[str, Statistic],
    metric: str,
    n: int,
    n_sessions: int,
    every: int,
    rng: np.random.Generator,
    replicates: int,
) -> tuple[dict[str, float], dict[str, Floats]]:
    """Each model's value, and its values under the same draws of sessions; no draws where there are too few."""
    wanted = replicates if metric != "auc" else min(replicates, max(200, _AUC_CELLS // max(n, 1)))
    sample = draws(list(statistics.values()), every if n_sessions >= MIN_SESSIONS else 0, wanted, rng)
    value = {model: whole(statistic, every) if n else float("nan") for model, statistic in statistics.items()}
    drawn: dict[str, Floats] = dict(zip(statistics, sample, strict=True))
    if metric in BIASED_BY_DRAWING and n_sessions >= MIN_SESSIONS:
        drawn = {model: each - (float(np.nanmean(each)) - value[model]) for model, each in drawn.items()}
    return value, drawn


def _said(
    metric: str, value: float, sample: Floats, n: int, n_sessions: int, *, difference: bool
) -> tuple[float | None, float | None, float | None, str | None]:
    """Value, low and high of one row, and the note where rows have no value."""
    if n and np.isnan(value):
        return None, None, None, "one outcome only"
    widest = widest_range(metric, difference=difference)
    low, high = np.clip(interval_of(sample, n_sessions, widest) if n else widest, *widest).tolist()
    return _null(value), _null(low), _null(high), None


def _statistics(scored: Scored, rows: Ints | None, session: Ints, n_sessions: int) -> dict[str, dict[str, Statistic]]:
    """Metric, then model, then the statistic over these rows."""
    ones = per_session(np.ones(session.size), session, n_sessions)
    out: dict[str, dict[str, Statistic]] = {}
    for model, losses in scored.losses.items():
        for metric, loss in losses.items():
            chosen = loss if rows is None else loss[rows]
            judged = ~np.isnan(chosen)
            below = ones if judged.all() else per_session(judged.astype(np.float64), session, n_sessions)
            above = per_session(np.where(judged, chosen, 0.0), session, n_sessions)
            out.setdefault(metric, {})[model] = Ratio(above, below)
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
