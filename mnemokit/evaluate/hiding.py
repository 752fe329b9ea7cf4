"""What decay hid: what the rule had suppressed at the moment it was needed, and what it kept that nobody used again."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from mnemokit.evaluate.edge_models import sorted_rows
from mnemokit.evaluate.metrics import Floats, Ints
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.past import Events
from mnemokit.evaluate.reading import passing_log_of, run_log_of
from mnemokit.evaluate.run_log import RunLog
from mnemokit.evaluate.run_models import RankRule
from mnemokit.fold.kernel import first_tick_below, fold_rows, last_tick
from mnemokit.frames import INSTANT
from mnemokit.instants import DAY_US, from_us
from mnemokit.memory import Memory
from mnemokit.records import EdgeParams, RankParams

HIDDEN_SCHEMA: dict[str, pl.DataType] = {
    "side": pl.String(),
    "kind": pl.String(),
    "name": pl.String(),
    "ts_needed": INSTANT,
    "ts_faded": INSTANT,
    "days_faded": pl.Float64(),
    "ts_last_used": INSTANT,
    "days_unused": pl.Float64(),
    "value": pl.Float64(),
    "uses": pl.Int64(),
    "session_id": pl.String(),
    "reasonlet_id": pl.String(),
    "src_executor": pl.String(),
    "src_version": pl.String(),
    "dst_executor": pl.String(),
    "dst_version": pl.String(),
}
"""Columns of `hidden`. side ``hidden_but_needed``: an edge that an ager had ended before it was taken again
(``ts_faded``: when; ``value``: its weight then), or a procedure ranked below a new one (rate < 1/2) that then succeeded
(``ts_faded``: when the run, verdict or parent's change came that brought it there); ``days_faded`` up to the moment it
was needed. side ``kept_unused``: an edge still live, or a procedure still at 1/2 or above, not used for ``days_unused``
up to the log's end. ``uses``: before that moment."""


def hidden(mem: Memory, *, unused_days: float = 7.0) -> pl.DataFrame:
    """What had a memory's rules suppressed when it was needed, and what did they keep for nothing?

    Args:
        mem: A memory; it is only read.
        unused_days: What was kept counts as unused from so many days on.

    Returns:
        A frame of `HIDDEN_SCHEMA`: what was hidden, longest faded first; then what was kept, longest unused first.
        "Not used again" means not up to the end of the log: later use cannot be excluded.

    Raises:
        InvalidInput: If the memory is closed.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     for day in ("2025-08-01", "2025-09-10"):
        ...         _ = mem.mnests.record_passing("a", "1", "b", "1", at=f"{day}T00:00:00+00:00")
        ...         _ = mem.mnests.apply_ager(now=f"{day}T12:00:00+00:00")
        ...     _ = mem.mnests.apply_ager(now="2025-09-09T00:00:00+00:00")
        ...     mk.evaluate.hidden(mem).height
        0
    """
    edges = hidden_edges(passing_log_of(mem), unused_days=unused_days)
    procedures = hidden_procedures(run_log_of(mem), mem.rank_params, unused_days=unused_days)
    return in_order(pl.concat([edges, procedures]))


def hidden_edges(log: PassingLog, params: EdgeParams | None = None, *, unused_days: float = 7.0) -> pl.DataFrame:
    """The edges' part of `hidden`, from a log.

    Args:
        log: The passings.
        params: Another edge rule; None: the log's own, with each edge's decay.
        unused_days: As in `hidden`.
    """
    if log.us.size == 0:
        return pl.DataFrame(schema=HIDDEN_SCHEMA)
    rows = sorted_rows(log, params)
    ticks = log.ticks if not bool(log.untimed.all()) else log.ticks[:0]
    folded = fold_rows(rows, ticks, params or log.params)
    order, counts = log.by_edge.order, rows.counts
    rate, floor = np.repeat(rows.decay_lambda, counts), np.repeat(rows.floor, counts)
    place = np.arange(order.size) - np.repeat(rows.first, counts)
    again = np.flatnonzero(folded.opened & (place > 0))
    before = again - 1
    tick = first_tick_below(folded.weight[before], rows.ts[before], rate[before], floor[before], ticks)
    faded = ticks[np.minimum(tick, max(ticks.size - 1, 0))] if ticks.size else rows.ts[before]
    left = folded.weight[before] * np.exp(-rate[before] * (faded - rows.ts[before]) / DAY_US)
    needed = _edge_rows(log, order[again]).with_columns(
        side=pl.lit("hidden_but_needed"),
        ts_needed=_instants(rows.ts[again]),
        ts_faded=_instants(faded),
        days_faded=pl.Series((rows.ts[again] - faded) / DAY_US),
        ts_last_used=_instants(rows.ts[before]),
        days_unused=pl.Series((rows.ts[again] - rows.ts[before]) / DAY_US),
        value=pl.Series(left),
        uses=pl.Series(place[again]),
    )
    end = int(max(log.us.max(), ticks[-1] if ticks.size else log.us.max()))
    last = rows.first + counts - 1
    index = last_tick(ticks, np.full(last.size, end))
    until = ticks[index] if ticks.size else rows.ts[last]
    held = folded.weight[last] * np.exp(-rows.decay_lambda * np.maximum(until - rows.ts[last], 0) / DAY_US)
    ended = (until > rows.ts[last]) & (held < rows.floor) if ticks.size else np.zeros(last.size, dtype=np.bool_)
    unused = (end - rows.ts[last]) / DAY_US
    weight = folded.weight[last] * np.exp(-rows.decay_lambda * unused)
    clocked = np.ones(last.size, dtype=np.bool_) if rows.untimed is None else ~rows.untimed[last]
    live = np.flatnonzero(clocked & ~ended & (unused >= unused_days))
    kept = _edge_rows(log, order[last[live]]).with_columns(
        side=pl.lit("kept_unused"),
        ts_last_used=_instants(rows.ts[last[live]]),
        days_unused=pl.Series(unused[live]),
        value=pl.Series(weight[live]),
        uses=pl.Series(counts[live]),
        session_id=pl.lit(None, dtype=pl.String),
    )
    return in_order(pl.concat([_shaped(needed), _shaped(kept)]))


def hidden_procedures(log: RunLog, params: RankParams | None = None, *, unused_days: float = 7.0) -> pl.DataFrame:
    """The procedures' part of `hidden`, from a log.

    Args:
        log: The runs.
        params: The ranking rule.
        unused_days: As in `hidden`.
    """
    if log.us.size == 0:
        return pl.DataFrame(schema=HIDDEN_SCHEMA)
    rule = RankRule(params or RankParams())
    rate = rule.predict(log)
    seen = Events(log.reasonlet, log.us).before(log.reasonlet, log.us).count
    told = log.rows.select("reasonlet_id", "session_id", "scope", "question", "version", "ts_run", "y").with_columns(
        value=pl.Series(rate), low=pl.Series(rate < 0.5), uses=pl.Series(seen)
    )
    told = told.with_columns(
        ts_last_used=pl.col("ts_run").shift(1).over("reasonlet_id"), name=_procedure_name()
    ).join_asof(
        _since_when_low(log, rule.params),
        left_on="ts_run",
        right_on="ts_learnt",
        by="reasonlet_id",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    needed = told.filter(pl.col("low"), pl.col("y") == 1).with_columns(
        side=pl.lit("hidden_but_needed"),
        kind=pl.lit("procedure"),
        ts_needed="ts_run",
        days_faded=_days(pl.col("ts_run") - pl.col("ts_faded")),
        days_unused=_days(pl.col("ts_run") - pl.col("ts_last_used")),
    )
    end: datetime = from_us(int(log.us.max()))
    now = _rate_after(log, params or RankParams())
    last = told.group_by("reasonlet_id").agg(
        pl.col("name").last(), ts_last_used=pl.col("ts_run").last(), uses=pl.len().cast(pl.Int64)
    )
    kept = (
        last.join(now, on="reasonlet_id")
        .filter(pl.col("value") >= 0.5, pl.lit(end) - pl.col("ts_last_used") >= timedelta(days=unused_days))
        .with_columns(
            side=pl.lit("kept_unused"),
            kind=pl.lit("procedure"),
            days_unused=_days(pl.lit(end) - pl.col("ts_last_used")),
        )
    )
    return in_order(pl.concat([_shaped(needed), _shaped(kept)]))


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """What was hidden first, longest faded first; then what was kept, longest unused first."""
    return rows.sort(
        "side", "days_faded", "days_unused", "name", descending=[False, True, True, False], nulls_last=True
    )


def _rate_after(log: RunLog, params: RankParams) -> pl.DataFrame:
    """Each procedure's rate once everything is known: reasonlet_id, value."""
    distinct = _procedures(log)
    after = np.full(distinct.height, np.iinfo(np.int64).max)
    return distinct.select("reasonlet_id", value=_rates_before(log, params, distinct, after))


def _since_when_low(log: RunLog, params: RankParams) -> pl.DataFrame:
    """Each procedure after each instant that changed its rate: reasonlet_id, ts_learnt, ts_faded.

    ``ts_faded`` is the first instant of the stretch in which the rate has been below one half. What changes a rate is
    what is learnt of the procedure's own runs (when they ran, and when they were judged) and of its parent's.
    """
    distinct = _procedures(log)
    learnt = pl.DataFrame({"changed": log.reasonlet[log.event_run], "us": log.event_us})
    changes = (
        pl.concat([distinct.with_columns(changed="number"), distinct.with_columns(changed="parent")])
        .join(learnt, on="changed")
        .select("reasonlet_id", "number", "parent", "us")
        .unique()
        .sort("us", "reasonlet_id")
    )
    low = _rates_before(log, params, changes, changes["us"].to_numpy() + 1) < 0.5
    fell = pl.col("low") & ~pl.col("low").shift(1, fill_value=False).over("reasonlet_id")
    return changes.with_columns(low=low, ts_learnt=pl.col("us").cast(INSTANT)).select(
        "reasonlet_id",
        "ts_learnt",
        ts_faded=pl.when(fell).then("ts_learnt").forward_fill().over("reasonlet_id"),
    )


def _procedures(log: RunLog) -> pl.DataFrame:
    """The procedures that ran: reasonlet_id, number, and parent, the number of what they inherit from (-1: nothing).

    A parent that came later than a procedure's first runs counts from the start: it had no runs until it came, and
    without runs it hands nothing on.
    """
    rows = log.rows.select("reasonlet_id", number=pl.Series(log.reasonlet), parent=pl.Series(log.parent))
    return rows.unique("reasonlet_id", keep="last", maintain_order=True)


def _rates_before(log: RunLog, params: RankParams, asked: pl.DataFrame, us: Ints) -> pl.Series:
    """The rank rule's rate strictly before instants of procedures given by their number and their parent's."""
    k = params.k

    def record(number: pl.Series) -> tuple[Floats, Floats]:
        past = log.past_events.before(number.to_numpy(), us)
        return past.sum(log.event_s), past.sum(log.event_n)

    s, n = record(asked["number"])
    parent_s, parent_n = record(asked["parent"])
    inherited = (parent_s + k / 2) / (parent_n + k)
    if params.parent_rate == "raw":
        inherited = np.divide(parent_s, parent_n, out=np.full(n.size, 0.5), where=parent_n > 0)
    return pl.Series((s + k * np.maximum(0.5, inherited)) / (n + k), dtype=pl.Float64)


def _edge_rows(log: PassingLog, rows: Ints) -> pl.DataFrame:
    return log.rows[rows].with_columns(
        kind=pl.lit("edge"),
        name=pl.format(
            "{} {} -> {} {}", "src_executor", "src_version", "dst_executor", pl.col("dst_version").fill_null("(proto)")
        ),
    )


def _procedure_name() -> pl.Expr:
    return pl.concat_str([pl.col("scope"), pl.col("question"), pl.col("version")], separator=" / ", ignore_nulls=True)


def _instants(us: Ints) -> pl.Series:
    return pl.Series(us, dtype=pl.Int64).cast(INSTANT)


def _days(span: pl.Expr) -> pl.Expr:
    return span.dt.total_microseconds() / DAY_US


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in HIDDEN_SCHEMA.items()
    )
