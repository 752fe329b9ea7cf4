"""Would the edges have been right? Which executor the memory expected next before each passing, against who came."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.edge_models import EdgeModel, MnestWeights, Weigher, edge_baselines, edge_rivals
from mnemokit.evaluate.metrics import Floats, Ints, hit_at, reciprocal_rank, summed
from mnemokit.evaluate.naming import with_baselines
from mnemokit.evaluate.passing_log import Pairs, PassingLog, passing_log
from mnemokit.evaluate.predictions import Predictions, scored_mask
from mnemokit.evaluate.training import notes_on_fits, passing_keys
from mnemokit.instants import Instant
from mnemokit.records import EdgeParams

HITS = (1, 3, 5)
"""Lengths of the lists for hit@k."""

_TIE = 1e-12


def predict_next(
    passings: pl.DataFrame,
    *,
    ager: Sequence[Instant] | pl.Series | str | None = "daily",
    edge_params: EdgeParams | None = None,
    versions: str = "separate",
    models: Sequence[EdgeModel] | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> Predictions:
    """Test, then learn, passing by passing in order of time: which executor would each model have expected next?

    All passings of one instant are predicted before any of them is learnt. A model's probability of an edge is its
    weight over the weights of all edges out of the same source, at that time. For edges never seen (or that a model
    gives no weight) every model gets the same escape, so that models differ by their weights alone: with ``n`` passings
    and ``d`` edges out of the source so far, ``d / (n + d)`` of the probability (all of it where nothing is known) is
    spread evenly over every destination known so far and one unknown (Witten and Bell 1991, method C).

    Args:
        passings: As `passing_log` takes them.
        ager: As `passing_log` takes it.
        edge_params: The memory's edge rule; the default one, with the decay that passings bring, if left out.
        versions: As `passing_log` takes it.
        models: Models beside the memory's weights and the baselines, which are always there; None adds the rivals of
            `edge_models.edge_rivals`.
        since: Only passings from this instant on are scored.
        until: Only passings before this instant are scored.
        sessions: Only passings of these sessions are scored.

    Returns:
        The predictions, with metrics log_loss, hit@1, hit@3, hit@5, mrr, and coverage: was the edge among those that
        the model gave a weight? ``rows`` says of each passing whether its edge had been seen.

    Raises:
        InvalidInput: If a column is missing, two models have one name, or one has that of a baseline.

    Example:
        >>> frame = pl.DataFrame({"src_executor": ["a"] * 3, "dst_executor": ["b", "b", "c"], "session_id": ["s"] * 3})
        >>> predict_next(frame, ager=None).rows["seen"].to_list()
        [False, True, False]
    """
    log = passing_log(passings, ager=ager, params=edge_params, versions=versions)
    return predict_next_log(log, models=models, since=since, until=until, sessions=sessions)


def predict_next_log(
    log: PassingLog,
    *,
    models: Sequence[EdgeModel] | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> Predictions:
    """As `predict_next`, from a log that was put in order already."""
    baselines = edge_baselines()
    every = with_baselines([MnestWeights(), *(edge_rivals() if models is None else models)], baselines)
    rows = np.flatnonzero(scored_mask(log.rows, "ts", since, until, sessions))
    notes = notes_on_fits(every, lambda: passing_keys(log, rows), log.us[rows])
    p: dict[str, Floats] = {}
    losses: dict[str, Mapping[str, Floats]] = {}
    seconds: dict[str, float] = {}
    for model in every:
        begun = time.perf_counter()
        said, better, tied = _said(log, rows, model.name, model.weigher(log))
        p[model.name] = said
        losses[model.name] = {
            "log_loss": -np.log(said),
            **{f"hit@{k}": hit_at(k, better, tied) for k in HITS},
            "mrr": reciprocal_rank(better, tied),
            "coverage": (tied > 0).astype(np.float64),
        }
        seconds[model.name] = time.perf_counter() - begun
    return Predictions(
        target="next_executor",
        rows=log.rows[rows].with_columns(
            seen=pl.Series(log.seen[rows], dtype=pl.Boolean), candidates=pl.Series(log.degree[rows], dtype=pl.Int64)
        ),
        p=p,
        losses=losses,
        seconds=seconds,
        baselines=[baseline.name for baseline in baselines],
        note=f"{int((~log.seen[rows]).sum())} of {rows.size} passings took an edge never seen before",
        notes=notes,
    )


def escape(log: PassingLog, rows: Ints) -> tuple[Floats, Floats]:
    """Probability kept for edges that have no weight, and the share of it that each single destination gets."""
    n, d = log.of_src.count[rows].astype(np.float64), log.degree[rows].astype(np.float64)
    kept = np.divide(d, n + d, out=np.ones(rows.size), where=n > 0)
    return kept, 1.0 / (log.vocabulary[rows].astype(np.float64) + 1.0)


def mixed(weight: Floats, total: Floats, kept: Floats, share: Floats) -> Floats:
    """The probability of what came: its weight's part, and its share of what was kept for the unknown."""
    known = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    kept = np.where(total > 0, kept, 1.0)
    return (1.0 - kept) * known + kept * share


def _said(log: PassingLog, rows: Ints, name: str, weigh: Weigher) -> tuple[Floats, Floats, Floats]:
    """Of each passing: the probability of what came, how many candidates were above it, and how many were level."""
    weight, total = np.zeros(rows.size), np.zeros(rows.size)
    better, tied = np.zeros(rows.size), np.zeros(rows.size)
    done = 0
    for pairs in log.pairs(rows):
        here = slice(done, done + pairs.n)
        done += pairs.n
        weights = np.asarray(weigh(pairs), dtype=np.float64)
        if weights.shape != pairs.edge.shape or not (weights >= 0).all():
            raise InvalidInput(
                f"the model {name!r} must give every candidate a weight of 0 or more; nothing was scored"
            )
        weight[here], total[here], better[here], tied[here] = _places(log, pairs, weights)
    kept, share = escape(log, rows)
    return mixed(weight, total, kept, share), better, tied


def _places(log: PassingLog, pairs: Pairs, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    came = log.edge[pairs.rows][pairs.passing] == pairs.edge
    own = summed(pairs.passing, weights * came, pairs.n)
    total = summed(pairs.passing, weights, pairs.n)
    level = own[pairs.passing]
    candidate = weights > 0
    above = candidate & (weights > level * (1 + _TIE))
    same = candidate & ~above & (weights >= level * (1 - _TIE)) & (level > 0)
    return own, total, _count(above, pairs), _count(same, pairs)


def _count(flags: NDArray[np.bool_], pairs: Pairs) -> Floats:
    return np.bincount(pairs.passing[flags], minlength=pairs.n).astype(np.float64)
