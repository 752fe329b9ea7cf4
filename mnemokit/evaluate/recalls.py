"""Was what was recalled worth following? nDCG of what was shown, success of what was followed, off-policy estimates.

A run names the recall it followed; a recall may be followed by several. What was shown and succeeded in one of them is
relevant; what nobody followed is unknown, and counts as not relevant: nDCG@k here says how high the list had put what
turned out to be right.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.evaluate.intervals import (
    MIN_SESSIONS,
    OWN_SESSION,
    REPLICATES,
    SEED,
    Ratio,
    draws,
    per_session,
    percentiles,
    session_numbers,
    whole,
    without_session,
)
from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.evaluate.predictions import Predictions, scored_mask
from mnemokit.evaluate.table import joined, note_on
from mnemokit.instants import Instant

NDCG_AT = (1, 3, 5, 10)

RECALL_BASELINES = ("similarity_only", "rate_only", "as_stored")
"""Other orders of what was shown; ``as_stored`` is by id, which knows nothing."""

OFF_POLICY_SCHEMA: dict[str, pl.DataType] = {
    "model": pl.String(),
    "target": pl.String(),
    "metric": pl.String(),
    "estimator": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n_sessions": pl.Int64(),
    "n": pl.Int64(),
    "effective_n": pl.Float64(),
    "seconds": pl.Float64(),
    "note": pl.String(),
}
"""Columns of `off_policy`. ``model``: whose value it is, ``logged`` or the other policy; ``metric``: ``reward``, and
``reward_ips`` and ``reward_snips`` where it is estimated. ``seconds``: what the whole call took."""

Missing = Literal["refuse", "leave_out"]


@dataclass(frozen=True)
class Shown:
    """What recalls showed, one row per reasonlet shown, of recalls that a judged run followed.

    Attributes:
        rows: ``recall_id, reasonlet_id, rank, similarity, rate, score, relevant``.
        recall: Number of each row's recall.
    """

    rows: pl.DataFrame
    recall: Ints


def predict_recalls(
    recalls: pl.DataFrame,
    recall_rows: pl.DataFrame,
    runs: pl.DataFrame,
    *,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> Predictions:
    """How well the lists that were shown put first what turned out to be right.

    Args:
        recalls: ``recall_id, ts_recalled``.
        recall_rows: ``recall_id, rank, reasonlet_id, similarity, rate, score``: what was shown.
        runs: ``run_id, reasonlet_id, recall_id`` and ``verdict`` (or ``outcome``); ``session_id`` and ``ts_run`` where
            there are any.
        since: Only recalls from this instant on.
        until: Only recalls before this instant.
        sessions: Only recalls whose first run was in one of these sessions.

    Returns:
        One row per recall that a run of known outcome followed. Models: ``logged``, the list as it was shown, and other
        orders of the same list as baselines. Metrics: nDCG@1, 3, 5 and 10 over the recalls in which something shown
        succeeded (relevant: whatever a run that followed this recall succeeded with), ``success`` (of the first run
        that followed it; the same for all), ``first_followed`` (did that run follow the first of the list?). A recall
        whose run has no session is a session of its own. There is no probability: ``p`` is empty.

    Raises:
        InvalidInput: If ``since`` or ``until`` is no instant, or has no time zone.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     made = mem.reasonlets.capture("s", "q", {}, at="2025-08-01T00:00:00Z").reasonlet_id
        ...     asked = mem.reasonlets.recall("q", scope="s", at="2025-08-02T00:00:00Z")["recall_id"][0]
        ...     _ = mem.reasonlets.record_run(made, "success", recall_id=asked, at="2025-08-02T01:00:00Z")
        ...     shown = predict_recalls(*(mem.frame(name) for name in ("recalls", "recall_rows", "runs")))
        >>> shown.rows["success"].to_list(), shown.losses["logged"]["first_followed"].tolist()
        ([True], [1.0])
    """
    followed = _followed(recalls, runs)
    keep = scored_mask(followed, "ts_recalled", since, until, sessions)
    followed = followed.filter(pl.Series(keep, dtype=pl.Boolean))
    shown = _shown(recall_rows, followed, runs)
    success = followed["success"].cast(pl.Float64).to_numpy()
    losses: dict[str, Mapping[str, Floats]] = {}
    seconds: dict[str, float] = {}
    orders: dict[str, Floats] = {
        "logged": -shown.rows["rank"].cast(pl.Float64).to_numpy(),
        "similarity_only": shown.rows["similarity"].to_numpy(),
        "rate_only": shown.rows["rate"].to_numpy(),
        "as_stored": -shown.rows["reasonlet_id"].rank("dense").cast(pl.Float64).to_numpy(),
    }
    first = _places(shown, orders["logged"])
    for model, order in orders.items():
        begun = time.perf_counter()
        place = first if model == "logged" else _places(shown, order)
        relevant = shown.rows["relevant"].cast(pl.Float64).to_numpy()
        mine = shown.rows["followed"].cast(pl.Float64).to_numpy()
        values: dict[str, Floats] = {
            f"ndcg@{k}": _ndcg(shown.recall, place, relevant, k, followed.height) for k in NDCG_AT
        }
        if model == "logged":
            values["success"] = success
        values["first_followed"] = summed(shown.recall, mine * (place == 0), followed.height)
        losses[model] = values
        seconds[model] = time.perf_counter() - begun
    unjudged = recalls.height - followed.height
    return Predictions(
        target="recall",
        rows=followed.select("recall_id", "ts_recalled", "session_id", "session", "success"),
        p={},
        losses=losses,
        seconds=seconds,
        baselines=list(RECALL_BASELINES),
        note=f"{unjudged} of {recalls.height} recalls were followed by no run of known outcome",
    )


def off_policy(
    logged: pl.DataFrame,
    *,
    missing: Missing | str = "refuse",
    model: str = "target",
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """What another policy would have earned, from what the logged one happened to try.

    Args:
        logged: One row per recall: ``reward`` (0 to 1), ``propensity`` (probability, above 0, with which the logged
            policy chose what was followed), ``target`` (probability with which the other policy would have chosen it),
            ``session``.
        missing: What becomes of recalls without propensity: ``refuse`` the estimate, or ``leave_out`` those recalls;
            ``note`` then says how many there were.
        model: What the other policy is called in the result.
        rng: Draws sessions; left out, a generator with the documented seed.
        replicates: Draws of the bootstrap.

    Returns:
        A frame of `OFF_POLICY_SCHEMA` with three rows: ``logged`` (mean reward as it was), ``ips`` (Horvitz and
        Thompson: mean of reward * target / propensity) and ``snips`` (Swaminathan and Joachims 2015: the same divided
        by the mean of target / propensity). ``effective_n`` is Kish's ``(sum w)^2 / sum w^2``.

    Raises:
        InvalidInput: If a column is missing, or a propensity is no probability.
        NotEnoughData: If a propensity is not known (with ``leave_out``: if none is): without it no such estimate means
            anything.

    Example:
        >>> logged = pl.DataFrame({"reward": [1.0, 0.0], "propensity": [0.5, 0.5], "target": [1.0, 0.0],
        ...                        "session": ["a", "b"]})
        >>> off_policy(logged).select("estimator", "value").rows()
        [('logged', 0.5), ('ips', 1.0), ('snips', 1.0)]
    """
    begun = time.perf_counter()
    absent = [name for name in ("reward", "propensity", "target", "session") if name not in logged.columns]
    if absent:
        raise InvalidInput(f"an off-policy estimate needs columns {', '.join(absent)}; nothing was estimated")
    if missing not in ("refuse", "leave_out"):
        raise InvalidInput(f"missing must be 'refuse' or 'leave_out', not {missing!r}; nothing was estimated")
    every = logged.height
    without = logged["propensity"].null_count()
    if without and missing == "refuse":
        raise NotEnoughData(
            f"{without} of {every} recalls have no propensity: how likely the logged policy was to choose what it "
            "chose. Without it no such estimate means anything. Log it in the run's provenance, "
            '{"propensity": 0.25}, or leave those recalls out: missing="leave_out"'
        )
    logged = logged.filter(pl.col("propensity").is_not_null())
    left_out = f"{without} of {every} recalls left out: they have no propensity" if without else None
    if logged.height == 0:
        raise NotEnoughData("no recall was followed with a known propensity: there is nothing to estimate from")
    reward, propensity, target = (
        logged[name].cast(pl.Float64).to_numpy() for name in ("reward", "propensity", "target")
    )
    if not ((propensity > 0) & (propensity <= 1)).all():
        raise InvalidInput("a propensity must be above 0 and at most 1; nothing was estimated")
    session = session_numbers(logged["session"])
    n_sessions = int(session.max()) + 1
    few = note_on(logged.height, n_sessions, int(without_session(logged["session"]).sum()))
    weight = target / propensity

    def by_session(values: Floats) -> Floats:
        return per_session(values, session, n_sessions)

    ones = by_session(np.ones(weight.size))
    estimators = {
        "logged": Ratio(by_session(reward), ones),
        "ips": Ratio(by_session(reward * weight), ones),
        "snips": Ratio(by_session(reward * weight), by_session(weight)),
    }
    generator = np.random.default_rng(SEED) if rng is None else rng
    enough = n_sessions >= MIN_SESSIONS
    drawn = draws(list(estimators.values()), n_sessions if enough else 0, replicates, generator)
    effective = float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0
    seconds = time.perf_counter() - begun
    rows: list[tuple[object, ...]] = []
    for (name, estimator), sample in zip(estimators.items(), drawn, strict=True):
        low, high = percentiles(sample) if enough else (0.0, float("inf") if name == "ips" else 1.0)
        size = float(weight.size) if name == "logged" else effective
        apart = None
        if name != "logged" and effective < MIN_SESSIONS:
            apart = f"the two policies share as little as {effective:.1f} recalls' worth"
        about = ("logged", "recall", "reward") if name == "logged" else (model, "recall", f"reward_{name}")
        value = (whole(estimator, n_sessions), low, high)
        rows.append((*about, name, *value, n_sessions, weight.size, size, seconds, joined(left_out, few, apart)))
    return pl.DataFrame(rows, schema=OFF_POLICY_SCHEMA, orient="row", nan_to_null=True)


def logged_choices(
    recalls: pl.DataFrame, recall_rows: pl.DataFrame, runs: pl.DataFrame, order: str = "score"
) -> pl.DataFrame:
    """Followed recalls as `off_policy` takes them, the other policy always taking the first by a column.

    Args:
        recalls: As `predict_recalls` takes them.
        recall_rows: As `predict_recalls` takes them.
        runs: With ``provenance``; the propensity is read from its ``propensity``.
        order: ``score``, ``similarity`` or ``rate``: whose first the other policy would have followed.

    Raises:
        InvalidInput: If the column is none of these.
    """
    if order not in ("score", "similarity", "rate"):
        raise InvalidInput(f"order must be 'score', 'similarity' or 'rate', not {order!r}; nothing was estimated")
    propensity = pl.col("provenance").str.json_path_match("$.propensity").cast(pl.Float64, strict=False)
    with_propensity = runs.select("run_id", propensity=propensity)
    best = (
        recall_rows.sort(["recall_id", order, "rank"], descending=[False, True, False])
        .group_by("recall_id", maintain_order=True)
        .agg(best=pl.col("reasonlet_id").first())
    )
    return (
        _followed(recalls, runs)
        .join(with_propensity, on="run_id", how="left")
        .join(best, on="recall_id", how="left")
        .select(
            "recall_id",
            "session",
            "propensity",
            reward=pl.col("success").cast(pl.Float64),
            target=(pl.col("best") == pl.col("reasonlet_id")).fill_null(value=False).cast(pl.Float64),
        )
    )


def _judged(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs of known outcome that followed a recall, in order of time, and whether they succeeded."""
    verdict = "verdict" if "verdict" in runs.columns else "outcome"
    have = runs.columns
    ordered = runs.sort("ts_run", maintain_order=True) if "ts_run" in have else runs
    return (
        ordered.filter(pl.col("recall_id").is_not_null(), pl.col(verdict).is_not_null())
        .with_columns(
            session_id=pl.col("session_id") if "session_id" in have else pl.lit(None, dtype=pl.String),
            success=pl.col(verdict) == "success",
        )
        .select("run_id", "recall_id", "reasonlet_id", "session_id", "success")
    )


def _followed(recalls: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Recalls that a run of known outcome followed: the first such run of each, and whether it succeeded."""
    first = _judged(runs).unique("recall_id", keep="first", maintain_order=True)
    return (
        recalls.select("recall_id", "ts_recalled")
        .join(first, on="recall_id", maintain_order="left")
        .with_columns(session=pl.coalesce("session_id", pl.concat_str(pl.lit(OWN_SESSION), "recall_id")))
    )


def _shown(recall_rows: pl.DataFrame, followed: pl.DataFrame, runs: pl.DataFrame) -> Shown:
    numbered = followed.select("recall_id", ran="reasonlet_id").with_row_index("number")
    right = _judged(runs).filter("success").select("recall_id", "reasonlet_id", relevant=pl.lit(value=True)).unique()
    rows = (
        recall_rows.join(numbered, on="recall_id", maintain_order="left")
        .join(right, on=["recall_id", "reasonlet_id"], how="left", maintain_order="left")
        .with_columns(pl.col("relevant").fill_null(value=False), followed=pl.col("ran") == pl.col("reasonlet_id"))
    )
    return Shown(rows, rows["number"].cast(pl.Int64).to_numpy())


def _places(shown: Shown, score: Floats) -> Ints:
    """Place in its list of each row by a score, best first, from 0; ties in the order they were shown."""
    rank = shown.rows["rank"].to_numpy()
    order = np.lexsort((rank, -score, shown.recall))
    sizes = np.bincount(shown.recall) if shown.recall.size else np.empty(0, dtype=np.int64)
    out = np.empty(order.size, dtype=np.int64)
    out[order] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out


def _ndcg(recall: Ints, place: Ints, relevant: Floats, k: int, n: int) -> Floats:
    """nDCG@k of each recall; NaN where nothing is relevant: it cannot be judged."""
    gain = np.where(place < k, relevant / np.log2(place + 2.0), 0.0)
    found = summed(recall, relevant, n).astype(np.int64)
    # The best order has what is relevant in the first places, as many of them as count.
    ideal = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(k) + 2.0))))[np.minimum(found, k)]
    return np.divide(summed(recall, gain, n), ideal, out=np.full(n, np.nan), where=found > 0)
