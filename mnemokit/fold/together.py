"""The fold of passings alone, at one decay rate per edge: all edges together."""

from __future__ import annotations

import numpy as np
import polars as pl

from mnemokit.fold.edge_life import DEMOTE_SEQ, MERGE_SEQ
from mnemokit.fold.edge_weights import floor_of, fraction_left
from mnemokit.fold.frames import DERIVED, INSTANT, LIVES, NIGHTS, RECORDS, TAGS, Folded, last_state, with_schema
from mnemokit.fold.kernel import Flags, Floats, Ints, Rows, first_tick_below, fold_rows
from mnemokit.fold.order import InOrder, at_first, in_order, untimed_rows
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams, MnestState


def fold_together(
    facts: pl.DataFrame, edges: pl.DataFrame, ticks: Ints, params: EdgeParams, prior: pl.DataFrame | None
) -> Folded:
    """Fold passings of all edges at once; arguments and result as for ``fold_edges``."""
    edges = edges.sort("edge_no")
    carried = None
    if prior is not None:
        carried = prior.filter(pl.col("state").is_in(["active", "proto"]))
    rows = in_order(facts, edges, carried)
    proto = edges["dst_version"].is_null().to_numpy()[rows.edge]
    kernel_rows = Rows(
        first=rows.first,
        ts=rows.ts,
        decay_lambda=at_first(facts, carried, rows, "decay_lambda", params.decay_lambda),
        floor=np.where(proto, floor_of(params.purge_below, params), floor_of(params.demote_below, params)),
        untimed=untimed_rows(facts, carried, rows),
        start=at_first(facts.select("edge_no"), carried, rows, "weight", params.start_weight),
    )
    path = fold_rows(kernel_rows, ticks, params)
    begin = np.flatnonzero(path.opened)
    lengths = np.diff(begin, append=len(rows.ts))
    lives = _lives(facts, edges, carried, rows, kernel_rows, path.weight, begin, ticks)
    outcomes = pl.DataFrame(
        {
            "row": rows.source.astype(np.uint32),
            "edge_no": np.repeat(edges["edge_no"].to_numpy()[rows.edge], rows.counts),
            "life": np.repeat(np.arange(len(begin), dtype=np.int32), lengths),
            "ts": pl.Series(rows.ts).cast(INSTANT),
            "weight": path.weight,
            "delta": path.delta,
        }
    ).with_columns(refusal=pl.lit(None, pl.String()))
    if not rows.whole:
        outcomes = outcomes.filter(pl.Series(rows.source >= 0))
    decaying = None if prior is None else prior.filter(pl.col("state") == MnestState.DECAYING.value)
    nights = _nights(lives, kernel_rows, begin, ticks)
    return _settle(outcomes, lives, decaying, nights, ticks)


def _lives(
    facts: pl.DataFrame,
    edges: pl.DataFrame,
    carried: pl.DataFrame | None,
    rows: InOrder,
    kernel_rows: Rows,
    weight: Floats,
    begin: Ints,
    ticks: Ints,
) -> pl.DataFrame:
    """One row per life: what it became, and how it ended if it did."""
    end = np.append(begin[1:], len(rows.ts)) - 1 if len(begin) else begin
    nth_edge = np.searchsorted(rows.first, begin, side="right") - 1
    rate, floor = kernel_rows.decay_lambda[nth_edge], kernel_rows.floor[nth_edge]
    weight_used, used = weight[end], rows.ts[end]
    timed = np.ones(len(end), dtype=np.bool_) if kernel_rows.untimed is None else ~kernel_rows.untimed[end]
    end_tick = np.where(timed, first_tick_below(weight_used, used, rate, floor, ticks), len(ticks))
    ended = end_tick < len(ticks)
    last = used.copy()
    if len(ticks):
        looked = np.where(ended, ticks[np.minimum(end_tick, len(ticks) - 1)], ticks[-1])
        last = np.where(timed & (looked > used), looked, used)
    lives = pl.DataFrame(
        {
            "life": np.arange(len(begin), dtype=np.int32),
            "edge_no": edges["edge_no"].gather(rows.edge[nth_edge]),
            "proto": edges["dst_version"].is_null().gather(rows.edge[nth_edge]),
            "first_row": rows.source[begin],
            "weight": weight_used * fraction_left(rate, (last - used) / DAY_US, np.exp),
            "uses": end - begin + 1,
            "ts_first": pl.Series(rows.ts[begin]).cast(INSTANT),
            "ts_last": pl.Series(last).cast(INSTANT),
            "ts_used": pl.Series(used).cast(INSTANT),
            "decay_lambda": rate,
            "ended": ended,
            "end_tick": end_tick,
            "untimed": ~timed,
        }
    )
    lives = _label(lives, facts, rows, begin)
    return lives if carried is None else _carry_on(lives, carried)


def _label(lives: pl.DataFrame, facts: pl.DataFrame, rows: InOrder, begin: Ints) -> pl.DataFrame:
    """Tags of the first passing, the last signature that says something, and the number kept from before."""
    opener = pl.Series(np.where(rows.source[begin] >= 0, rows.source[begin], 0))
    own = lives["first_row"] >= 0
    tags = pl.repeat(None, lives.height, dtype=TAGS, eager=True)
    if "tags" in facts.columns and facts["tags"].null_count() < facts.height:
        tags = facts["tags"].gather(opener)
    lives = lives.with_columns(tags.alias("tags"), pl.lit(None, pl.String()).alias("desired_sig"),
                               pl.lit(None, pl.Int32()).alias("mnest_no"))  # fmt: skip
    lives = lives.with_columns(pl.when(own).then("tags").fill_null([]).alias("tags"))
    columns = [name for name in ("desired_sig", "mnest_no") if name in facts.columns]
    columns = [name for name in columns if facts[name].null_count() < facts.height]
    if not columns:
        return lives
    nth_life = np.empty(facts.height, dtype=np.int32)
    rank = np.empty(facts.height, dtype=np.int64)
    own_rows = np.flatnonzero(rows.source >= 0)
    life_of_row = np.searchsorted(begin, np.arange(len(rows.source)), side="right") - 1
    nth_life[rows.source[own_rows]] = life_of_row[own_rows]
    rank[rows.source[own_rows]] = own_rows
    placed = facts.select(columns).with_columns(life=pl.Series(nth_life), rank=pl.Series(rank))
    if "desired_sig" in columns:
        saying = placed.filter(pl.col("desired_sig").is_not_null()).filter(
            pl.col("desired_sig").str.strip_chars().is_in(["", "{}", "null"]).not_()
        )
        last = saying.group_by("life").agg(pl.col("desired_sig").sort_by("rank").last())
        lives = lives.drop("desired_sig").join(last, on="life", how="left", maintain_order="left")
        lives = lives.with_columns(desired_sig=pl.when("proto").then("desired_sig"))
    if "mnest_no" in columns:
        known = placed.filter(pl.col("mnest_no").is_not_null()).group_by("life").agg(
            pl.col("mnest_no").sort_by("rank").first()
        )  # fmt: skip
        known = known.group_by("mnest_no").agg(pl.col("life").min())
        lives = lives.drop("mnest_no").join(known, on="life", how="left", maintain_order="left")
    return lives


def _carry_on(lives: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """Give the lives that were going on already what they had before."""
    before = carried.select(
        pl.col("edge_no"),
        pl.col("life").alias("mnest_no"),
        pl.col("uses").alias("uses_before"),
        pl.col("ts_first").alias("first_before"),
        pl.col("ts_used").alias("used_before"),
        pl.col("tags").alias("tags_before"),
        pl.col("desired_sig").alias("sig_before"),
    )
    on = pl.col("first_row") < 0
    lives = lives.drop("mnest_no").join(before, on="edge_no", how="left", maintain_order="left")
    return lives.with_columns(
        mnest_no=pl.when(on).then("mnest_no"),
        uses=pl.when(on).then(pl.col("uses") - 1 + pl.col("uses_before")).otherwise("uses"),
        ts_first=pl.when(on).then("first_before").otherwise("ts_first"),
        ts_used=pl.when(on & (pl.col("uses") == 1)).then("used_before").otherwise("ts_used"),
        tags=pl.when(on).then("tags_before").otherwise("tags"),
        desired_sig=pl.when(on).then(pl.coalesce("desired_sig", "sig_before")).otherwise("desired_sig"),
    ).drop("uses_before", "first_before", "used_before", "tags_before", "sig_before")


def _settle(
    outcomes: pl.DataFrame,
    lives: pl.DataFrame,
    decaying: pl.DataFrame | None,
    nights: dict[str, Ints],
    ticks: Ints,
) -> Folded:
    """Turn lives into records: those still live, those demoted and joined per edge; and tell how the others ended."""
    live = lives.filter(~pl.col("ended")).with_columns(
        state=pl.when("proto").then(pl.lit("proto")).otherwise(pl.lit("active"))
    )
    purged = lives.filter(pl.col("ended") & pl.col("proto"))
    demoted = lives.filter(pl.col("ended") & ~pl.col("proto"))
    members = demoted.with_columns(step=pl.int_range(1, pl.len() + 1).over("edge_no"))
    members = members.with_columns(step=pl.col("step").cast(pl.Int64))
    kept = lives.height
    if decaying is not None and decaying.height:
        decaying = decaying.join(demoted.select("edge_no").unique(), on="edge_no", how="semi")
        before = decaying.with_columns(
            mnest_no=pl.col("life"),
            life=pl.int_range(kept, kept + pl.len(), dtype=pl.Int32()),
            step=pl.lit(0, pl.Int64()),
            end_tick=pl.lit(-1, pl.Int64()),
            first_row=pl.lit(-1, pl.Int64()),
        )
        columns = [name for name in members.columns if name in before.columns]
        members = pl.concat([before.select(columns), members.select(columns)])
    members = members.sort("edge_no", "step")
    merged = (
        members.group_by("edge_no", maintain_order=True)
        .agg(
            pl.col("life").sort_by("ts_first", "step").first(),
            pl.col("uses").sum(),
            pl.col("ts_first").min(),
            pl.col("ts_used").max(),
            pl.col("weight", "ts_last", "decay_lambda", "untimed").last(),
        )
        .with_columns(state=pl.lit("decaying"), desired_sig=pl.lit(None, pl.String()))
    )
    merged = merged.join(_united_tags(members), on="edge_no", how="left").with_columns(pl.col("tags").fill_null([]))
    names = merged.select("edge_no", pl.col("life").alias("record"))
    all_lives = pl.concat(
        [
            live.select("life", "edge_no", "mnest_no", pl.col("life").alias("record"), "first_row"),
            purged.select("life", "edge_no", "mnest_no", pl.lit(None, pl.Int32()).alias("record"), "first_row"),
            members.join(names, on="edge_no", how="left").select("life", "edge_no", "mnest_no", "record", "first_row"),
        ]
    ).with_columns(first_row=pl.when(pl.col("first_row") >= 0).then("first_row").cast(pl.UInt32))
    merges = _merges(members)
    counts = np.bincount(merges["end_tick"].to_numpy(), minlength=len(ticks)) if merges.height else 0
    nights = nights | {"merged": np.zeros(len(ticks), dtype=np.int64) + counts}
    return Folded(
        outcomes=outcomes,
        derived=pl.concat([_endings(demoted, "demote"), _endings(purged, "purge"), merges.drop("end_tick")]),
        records=pl.concat([with_schema(live, RECORDS), with_schema(merged, RECORDS)]),
        lives=with_schema(all_lives, LIVES),
        nights=_night_frame(nights, ticks),
    )


def _united_tags(members: pl.DataFrame) -> pl.DataFrame:
    """Tags of all members of a decaying record, oldest first, each once."""
    tagged = members.filter(pl.col("tags").list.len() > 0).sort("edge_no", "ts_first", "step")
    return (
        tagged.select("edge_no", "tags")
        .explode("tags")
        .group_by("edge_no", maintain_order=True)
        .agg(pl.col("tags").unique(maintain_order=True))
    )


def _endings(lives: pl.DataFrame, kind: str) -> pl.DataFrame:
    if kind == "demote":
        old, new, detail = "active", "decaying", pl.lit(None, pl.String())
    else:
        old, new, detail = "proto", None, last_state()
    return with_schema(
        lives.with_columns(
            detail.alias("detail"),
            kind=pl.lit(kind),
            ts=pl.col("ts_last"),
            seq=pl.lit(DEMOTE_SEQ),
            old_state=pl.lit(old),
            new_state=pl.lit(new, pl.String()),
            other=pl.lit(None, pl.Int32()),
        ),
        DERIVED,
    )


def _merges(members: pl.DataFrame) -> pl.DataFrame:
    """Where a demoted life met a decaying record of its edge: the younger of the two ends in the older."""
    older = pl.col("ts_first").cum_min().over("edge_no").shift(1).over("edge_no")
    met = (
        members.with_columns(first_before=older, place=pl.int_range(pl.len()).over("edge_no"))
        .with_columns(
            # The life that names the record before this one joins it; only a first joiner can be the older one.
            name_before=pl.when(pl.col("first_before").is_null() | (pl.col("ts_first") < pl.col("first_before")))
            .then("life").forward_fill().over("edge_no").shift(1).over("edge_no")
        )
        .filter(pl.col("place") > 0)
    )  # fmt: skip
    wins = pl.col("ts_first") < pl.col("first_before")
    return met.select(
        kind=pl.lit("merge"),
        ts=pl.col("ts_last"),
        seq=pl.lit(MERGE_SEQ, pl.Int64()),
        edge_no=pl.col("edge_no"),
        life=pl.when(wins).then("name_before").otherwise("life"),
        weight=pl.col("weight"),
        old_state=pl.lit("decaying"),
        new_state=pl.lit("decaying"),
        other=pl.when(wins).then("life").otherwise("name_before"),
        detail=pl.lit(None, pl.String()),
        end_tick=pl.col("end_tick"),
    )


def _nights(lives: pl.DataFrame, rows: Rows, begin: Ints, ticks: Ints) -> dict[str, Ints]:
    """How many records each tick decayed, demoted and purged."""
    n = len(ticks)
    if n == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in NIGHTS}
    proto, ended = lives["proto"].to_numpy(), lives["ended"].to_numpy()
    last = np.minimum(lives["end_tick"].to_numpy(), n - 1)
    if rows.untimed is None:
        since, until, of_proto = np.searchsorted(ticks, rows.ts[begin], side="right"), last + 1, proto
    else:
        # Only the stretches between a timed row and the next row, or the life's end, are looked at.
        timed = np.flatnonzero(~rows.untimed)
        life_of_row = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(rows.ts)))
        following = np.append(rows.ts[1:], 0)
        is_last = np.append(np.diff(life_of_row) != 0, True)
        since = np.searchsorted(ticks, rows.ts[timed], side="right")
        before_next = np.searchsorted(ticks, following[timed], side="right")
        until = np.where(is_last[timed], last[life_of_row[timed]] + 1, before_next)
        of_proto = proto[life_of_row[timed]]
    until = np.maximum(since, until)

    def total(chosen: Flags) -> Ints:
        starts = np.bincount(since[chosen], minlength=n + 1)
        stops = np.bincount(until[chosen], minlength=n + 1)
        return np.cumsum(starts - stops)[:n]

    end_tick = lives["end_tick"].to_numpy()
    return {
        "decayed": total(np.ones(len(since), dtype=np.bool_)),
        "decayed_protos": total(of_proto),
        "demoted_to_decaying": np.bincount(end_tick[ended & ~proto], minlength=n),
        "purged_protos": np.bincount(end_tick[ended & proto], minlength=n),
    }


def _night_frame(nights: dict[str, Ints], ticks: Ints) -> pl.DataFrame:
    return pl.DataFrame({"ts_ager": pl.Series(ticks, dtype=pl.Int64).cast(INSTANT)}).with_columns(
        pl.Series(name, nights[name], dtype=pl.Int64) for name in NIGHTS
    )
