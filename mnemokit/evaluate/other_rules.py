"""The same log under other rules: what would have faded, ranked elsewhere, been recalled first?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.reading import passings_of, runs_of
from mnemokit.evaluate.run_log import RunLog, run_log
from mnemokit.fold.edge_weights import decay
from mnemokit.fold.passings import fold_passings
from mnemokit.frames import INSTANT
from mnemokit.instants import Instant, as_utc
from mnemokit.memory import Memory
from mnemokit.reasonlets.ranking import rank
from mnemokit.records import EdgeParams, RankParams

EDGE = ("src_executor", "src_version", "dst_executor", "dst_version")

DIFF_SCHEMA: dict[str, pl.DataType] = {
    "kind": pl.String(),
    "id": pl.String(),
    "what": pl.String(),
    "before": pl.Float64(),
    "after": pl.Float64(),
    "n": pl.Int64(),
    "sessions": pl.Int64(),
}
"""Columns of `WhatIf.diff`. kind ``edge``: ``what`` is would_have_faded, would_not_have_faded or weight, before and
after are weights (0 where it is not live). kind ``procedure``: ``what`` is rank, its place in its scope. kind
``recall``: a list that would have been in another order; ``before`` is its first place that something else would have
had, ``after`` the place that what was shown there would have had, ``what`` first (something else would have led the
list) or order (only later places differ), ``n`` how many of the list would have had another place."""

P = TypeVar("P", EdgeParams, RankParams)
Params = EdgeParams | RankParams | Mapping[str, float | str]


@dataclass(frozen=True)
class WhatIf:
    """A memory under other rules.

    Attributes:
        edge_params: The edge rule.
        rank_params: The ranking rule.
        at: The instant it is looked at: the memory's last passing, run, verdict, recall or ager unless told
            otherwise.
        mnests: Edges under the other rule, with the columns of ``mem.frame("mnests")``.
        ranking: Procedures under the other rule, with the columns of ``mk.rank``.
        recalls: What was shown, ranked again: ``recall_id, reasonlet_id, rank, rank_then, score, score_then``. Only
            what was shown can be ranked again: what was left out has no similarity on record.
        diff: What differs from the memory's own rules, largest first within a kind; see `DIFF_SCHEMA`.
    """

    edge_params: EdgeParams
    rank_params: RankParams
    at: datetime | None
    mnests: pl.DataFrame
    ranking: pl.DataFrame
    recalls: pl.DataFrame
    diff: pl.DataFrame


def what_if(mem: Memory, params: Params, *, at: Instant | None = None) -> WhatIf:
    """What would a memory look like under other rules? Nothing is written.

    Edges are folded again from every stored passing, with the instants at which the memory's ager looked; transitions
    and promotions made by hand are left out on both sides. Unless ``decay_lambda`` is among the parameters, every edge
    keeps the decay it came with.

    Args:
        mem: A memory.
        params: Another edge rule, another ranking rule, or a mapping with names of either, for instance
            ``{"decay_lambda": 0.1, "k": 5}``.
        at: Look at it as of this instant.

    Raises:
        InvalidInput: If a name is no parameter.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.mnests.record_passing("a", "1", "b", "1", at="2025-08-01T00:00:00+00:00")
        ...     _ = mem.mnests.apply_ager(now="2025-08-11T00:00:00+00:00")
        ...     other = mk.evaluate.what_if(mem, {"decay_lambda": 0.1})
        >>> other.diff.select("what", pl.col("before", "after").round(4)).rows()
        [('would_have_faded', 0.2506, 0.0)]
    """
    edge_params, rank_params, one_decay = _rules(mem, params)
    runs, reasonlets, feedback = runs_of(mem)
    passings = passings_of(mem)
    ticks = mem.frame("ager_runs")["ts_ager"]
    moment = _moment(
        at, passings["ts"], ticks, runs["ts_run"], feedback["ts_given"], mem.frame("recalls")["ts_recalled"]
    )
    if moment is not None:
        passings = passings.filter(pl.col("ts") <= moment)
        ticks = ticks.filter(ticks <= moment)
    agers = ticks.to_list()
    own = fold_passings(passings, ager=agers, params=mem.edge_params).mnests
    changed = passings.with_columns(decay_lambda=pl.lit(edge_params.decay_lambda)) if one_decay else passings
    other = fold_passings(changed, ager=agers, params=edge_params).mnests
    ranked = [
        rank(
            reasonlets,
            runs.drop("verdict"),
            feedback,
            at=moment,
            k=rule.k,
            parent_rate=rule.parent_rate,
            interval=rule.interval,
        )
        for rule in (mem.rank_params, rank_params)
    ]
    again = _recalled(mem, run_log(runs, reasonlets, feedback), reasonlets, rank_params, at=moment)
    diff = pl.concat(
        [
            _edge_diff(own, other, passings, moment),
            _procedure_diff(ranked[0], ranked[1], runs),
            _recall_diff(again, runs),
        ]
    )
    return WhatIf(edge_params, rank_params, moment, other, ranked[1], again, diff)


def rates_at(log: RunLog, reasonlets: pl.DataFrame, asked: pl.DataFrame, params: RankParams) -> np.ndarray:
    """The rank rule's rate of procedures as of instants.

    Args:
        log: The runs.
        reasonlets: ``reasonlet_id, parent_id, ts_captured``.
        asked: ``reasonlet_id, ts``, one row per question.
        params: The rule.
    """
    numbers = log.rows.select("reasonlet_id", number=pl.Series(log.reasonlet)).unique("reasonlet_id")
    above = reasonlets.select("reasonlet_id", "parent_id").join(
        reasonlets.select(parent_id="reasonlet_id", parent_since="ts_captured"), on="parent_id", how="left"
    )
    rows = (
        asked.join(above, on="reasonlet_id", how="left", maintain_order="left")
        .join(numbers, on="reasonlet_id", how="left", maintain_order="left")
        .join(
            numbers.select(parent_id="reasonlet_id", parent_number="number"),
            on="parent_id",
            how="left",
            maintain_order="left",
        )
    )
    us = rows["ts"].cast(pl.Int64).to_numpy() + 1  # as of an instant includes the instant
    there = rows.select((pl.col("parent_since") <= pl.col("ts")).fill_null(value=False)).to_series().to_numpy()
    k = params.k

    def record(number: pl.Series) -> tuple[np.ndarray, np.ndarray]:
        past = log.past_events.before(number.fill_null(-1).to_numpy(), us)
        return past.sum(log.event_s), past.sum(log.event_n)

    s, n = record(rows["number"])
    parent_s, parent_n = record(rows["parent_number"])
    smoothed = (parent_s + k / 2) / (parent_n + k)
    raw = np.divide(parent_s, parent_n, out=np.full(us.size, 0.5), where=parent_n > 0)
    prior = np.where(there, np.maximum(0.5, smoothed if params.parent_rate == "smoothed" else raw), 0.5)
    return (s + k * prior) / (n + k)


def _rules(mem: Memory, params: Params) -> tuple[EdgeParams, RankParams, bool]:
    if isinstance(params, EdgeParams):
        return params, mem.rank_params, params.decay_lambda != mem.edge_params.decay_lambda
    if isinstance(params, RankParams):
        return mem.edge_params, params, False
    edge_names = {field.name for field in dataclasses.fields(EdgeParams)}
    rank_names = {field.name for field in dataclasses.fields(RankParams)}
    unknown = [name for name in params if name not in edge_names | rank_names]
    if unknown:
        raise InvalidInput(
            f"{unknown[0]!r} is no parameter; of edges there are {', '.join(sorted(edge_names))}; of procedures "
            f"{', '.join(sorted(rank_names))}; nothing was computed"
        )
    edges = {name: value for name, value in params.items() if name in edge_names}
    ranks = {name: value for name, value in params.items() if name in rank_names}
    return _replaced(mem.edge_params, edges), _replaced(mem.rank_params, ranks), "decay_lambda" in edges


def _replaced(rule: P, values: Mapping[str, float | str]) -> P:
    return dataclasses.replace(rule, **values)


def _moment(at: Instant | None, *instants: pl.Series) -> datetime | None:
    if at is not None:
        return as_utc(at)
    known = pl.concat([series.cast(INSTANT) for series in instants]).drop_nulls()
    return known.sort()[-1] if known.len() else None


def _live(mnests: pl.DataFrame, at: datetime | None, name: str) -> pl.DataFrame:
    live = mnests.filter(pl.col("state").is_in(["active", "proto"]))
    faded = live if at is None else decay(live, at=at)
    return faded.select(*EDGE, pl.col("weight_at").alias(name))


def _edge_diff(own: pl.DataFrame, other: pl.DataFrame, passings: pl.DataFrame, at: datetime | None) -> pl.DataFrame:
    seen = passings.group_by(EDGE).agg(
        n=pl.len().cast(pl.Int64), sessions=pl.coalesce("session_id", pl.col("seq").cast(pl.String)).n_unique()
    )
    both = (
        seen.join(_live(own, at, "before"), on=EDGE, how="left", nulls_equal=True)
        .join(_live(other, at, "after"), on=EDGE, how="left", nulls_equal=True)
        .with_columns(pl.col("before", "after").fill_null(0.0))
    )
    change = (pl.col("after") - pl.col("before")).abs()
    faded = pl.lit("would_have_faded")
    what = (
        pl.when((pl.col("before") > 0) & (pl.col("after") == 0))
        .then(faded)
        .when((pl.col("before") == 0) & (pl.col("after") > 0))
        .then(pl.lit("would_not_have_faded"))
        .otherwise(pl.lit("weight"))
    )
    return _shaped(
        both.with_columns(change=change, what=what)
        .filter(pl.col("change") > 1e-12)
        .sort(pl.col("what") == "weight", -pl.col("change"), *EDGE)
        .with_columns(kind=pl.lit("edge"), id=_edge_name())
    )


def _procedure_diff(own: pl.DataFrame, other: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    place = pl.int_range(1, pl.len() + 1).over("scope").cast(pl.Float64)
    ran = runs.group_by("reasonlet_id").agg(sessions=pl.coalesce("session_id", "run_id").n_unique())
    both = (
        own.select("reasonlet_id", "n", before=place)
        .join(other.select("reasonlet_id", after=place), on="reasonlet_id")
        .join(ran, on="reasonlet_id", how="left")
    )
    moved = both.with_columns(change=(pl.col("after") - pl.col("before")).abs()).filter(pl.col("change") > 0)
    return _shaped(
        moved.sort(-pl.col("change"), "reasonlet_id").with_columns(
            kind=pl.lit("procedure"), what=pl.lit("rank"), id="reasonlet_id"
        )
    )


def _recalled(
    mem: Memory, log: RunLog, reasonlets: pl.DataFrame, params: RankParams, *, at: datetime | None
) -> pl.DataFrame:
    """What was shown, under the other rule as of each recall."""
    recalls = mem.frame("recalls", at=at)
    shown = mem.frame("recall_rows", at=at).join(
        recalls.select("recall_id", "weight", ts="ts_recalled"), on="recall_id", maintain_order="left"
    )
    rate = rates_at(log, reasonlets, shown.select("reasonlet_id", "ts"), params)
    weight = pl.lit(params.weight) if params.weight != mem.rank_params.weight else pl.col("weight")
    score = pl.col("similarity") * ((1 - weight) + weight * pl.col("new_rate"))
    return (
        shown.with_columns(new_rate=pl.Series(rate, dtype=pl.Float64))
        .with_columns(new_score=score)
        .sort("recall_id", pl.col("new_score").round(12) * -1, "rank", maintain_order=True)
        .select(
            "recall_id",
            "reasonlet_id",
            rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("recall_id"),
            rank_then="rank",
            score="new_score",
            score_then="score",
        )
    )


def _recall_diff(again: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """The recalls of ``WhatIf.recalls`` whose lists would have been in another order, as rows of `DIFF_SCHEMA`."""
    followed = runs.filter(pl.col("recall_id").is_not_null()).group_by("recall_id").agg(sessions=pl.len())
    moved = (
        again.filter(pl.col("rank") != pl.col("rank_then"))
        .sort("recall_id", "rank_then")
        .group_by("recall_id", maintain_order=True)
        .agg(before=pl.col("rank_then").first(), after=pl.col("rank").first(), n=pl.len())
        .join(followed, on="recall_id", how="left")
    )
    return _shaped(
        moved.sort("before", -pl.col("after"), "recall_id").with_columns(
            kind=pl.lit("recall"),
            what=pl.when(pl.col("before") == 1).then(pl.lit("first")).otherwise(pl.lit("order")),
            id="recall_id",
        )
    )


def _edge_name() -> pl.Expr:
    return pl.format(
        "{} {} -> {} {}", "src_executor", "src_version", "dst_executor", pl.col("dst_version").fill_null("(proto)")
    )


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(name).cast(dtype) for name, dtype in DIFF_SCHEMA.items())
