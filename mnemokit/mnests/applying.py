"""Facts and ticks into the store, whether they come in time or late, in the caller's transaction.

Whatever comes, the store ends as if everything had come in order of time. Edges whose news are later than all they
lived through go on from their records; edges that something comes late for are folded again from their facts; edges
that only a tick concerns fade where they are read, and are written only if the tick ends them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from mnemokit.fold.edge_keys import pair_numbers
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, INSTANT, NIGHTS, Folded, Schema
from mnemokit.fold.kernel import Ints
from mnemokit.instants import EPOCH, to_us
from mnemokit.mnests import tables
from mnemokit.mnests.ager import age_apart, no_nights
from mnemokit.mnests.writing import Written, write_continued, write_refolded
from mnemokit.reasonlets.keys import write_alone
from mnemokit.records import EdgeParams, params_to_json
from mnemokit.store import Connection, fetch, lend, query

LONG_AGO = EPOCH - timedelta(days=365 * 1000)

TOLD: Schema = {"row": pl.UInt32(), "mnest_id": pl.String(), "refusal": pl.String()}


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of new facts and ticks.

    Attributes:
        nights: A row per new tick: ts_ager and the counts.
        refolded: Edges folded again from their facts.
        told: By row of the facts, the id of the record that each went to, or why it had no effect (``TOLD``); empty if
            nobody asked.
    """

    nights: pl.DataFrame
    refolded: int
    told: pl.DataFrame


def apply(
    con: Connection,
    params: EdgeParams,
    facts: pl.DataFrame,
    ticks: Sequence[datetime] = (),
    *,
    kind: str = "daily",
    tell: bool = False,
    horizon: tables.Horizon | None = None,
) -> Applied:
    """Take in facts and ticks.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        facts: Columns of ``tables.HISTORY``; all but seq, edge_no and ts may be missing.
        ticks: Ager instants; those that the store has already are left out.
        kind: "daily" ticks are noted in ``ager_runs`` here; others are the caller's to note.
        tell: Also say what each fact did.
        horizon: How far the edges have lived, if the caller has looked already.
    """
    started = time.perf_counter()
    write_alone(con)
    _note_acts(con, facts)
    old = tables.ticks_so_far(con)
    new = np.setdiff1d(np.array([to_us(tick) for tick in ticks], dtype=np.int64), old)
    horizon = horizon or tables.horizon(con)
    facts = _plain_rates(facts, params).with_row_index("row")
    late = _late_edges(con, facts, new, horizon)
    done: list[_Done] = []
    on_time = facts
    if late.height:
        is_late = pl.col("edge_no").is_in(late["edge_no"].implode())
        on_time = facts.filter(~is_late)
        done.append(refold(con, params, late, facts.filter(is_late), np.union1d(old, new), tell=tell))
    going_on = tables.edge_frame(on_time["edge_no"])
    if going_on.height and ("kind" in facts.columns or horizon.act is not None):
        # The life of a promoted record is known by the edge that it was a proto of.
        going_on = with_acted_pairs(con, going_on)
    nights = no_nights(new)
    if len(new):
        nights = pl.concat([nights, age_apart(con, params, new, horizon, pl.concat([late, going_on]))])
    if going_on.height:
        newest = np.union1d(old[-1:], new)
        done.append(_go_on(con, params, going_on, on_time, new, newest=newest, tell=tell))
    nights = pl.concat([nights, *(part.nights for part in done)])
    nights = nights.group_by("ts_ager").agg(pl.col(NIGHTS).sum())
    nights = no_nights(new).select("ts_ager").join(nights, on="ts_ager", how="left", maintain_order="left")
    if nights.height and kind == "daily":
        tables.add_ticks(con, nights, kind, params_to_json(params), time.perf_counter() - started)
    told = pl.concat([pl.DataFrame(schema=TOLD), *(part.told for part in done)])
    return Applied(nights, late.height, told)


def with_acted_pairs(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """These edges, and every edge of those of their pairs that somebody acted on."""
    if not con.execute("SELECT count(ts_acted) FROM edges").fetchall()[0][0]:
        return edges
    pairs = tables.pair_edges(con, edges)
    acted = pl.col("ts_acted").is_not_null().any().over("pair_no")
    return pairs.filter(acted | pl.col("edge_no").is_in(edges["edge_no"].implode())).select("edge_no")


def refold(
    con: Connection,
    params: EdgeParams,
    edges: pl.DataFrame,
    new_facts: pl.DataFrame | None,
    ticks: Ints,
    *,
    tell: bool = False,
) -> _Done:
    """Fold these edges again from all their facts, with the new ones (which have a column row)."""
    facts = tables.facts_of(con, edges)
    stored = facts.height
    if new_facts is not None:
        facts = pl.concat([facts, _as_history(new_facts, params)])
    known = _numbered_pairs(tables.edges_of(con, edges))
    old_lives = tables.lives_of(con, edges)
    folded = fold_edges(facts, known.select(list(EDGES)), ticks, params, names=_names(known, old_lives))
    written = write_refolded(con, params, known, folded, facts, old_lives, ticks)
    rows = pl.Series(dtype=pl.UInt32) if new_facts is None else new_facts["row"]
    return _Done(folded.nights, _tell(folded, written, rows, stored) if tell else pl.DataFrame(schema=TOLD))


@dataclass(frozen=True, slots=True)
class _Done:
    nights: pl.DataFrame
    told: pl.DataFrame


def _go_on(
    con: Connection,
    params: EdgeParams,
    edges: pl.DataFrame,
    new_facts: pl.DataFrame,
    ticks: Ints,
    *,
    newest: Ints,
    tell: bool,
) -> _Done:
    """Go on from the records of these edges."""
    prior = tables.records_of(con, edges)
    known = _numbered_pairs(tables.edges_of(con, edges))
    old_lives = tables.lives_of(con, edges)
    facts = new_facts.drop("row")
    names = _names(known, old_lives)
    folded = fold_edges(
        facts, known.select(list(EDGES)), ticks, params, prior=prior if prior.height else None, names=names
    )
    written = write_continued(con, params, known, folded, facts, old_lives, newest)
    return _Done(folded.nights, _tell(folded, written, new_facts["row"], 0) if tell else pl.DataFrame(schema=TOLD))


def _late_edges(con: Connection, facts: pl.DataFrame, new: Ints, horizon: tables.Horizon) -> pl.DataFrame:
    """Edges that have lived past one of the new facts or ticks already."""
    newest = horizon.ager or LONG_AGO
    found = [pl.DataFrame(schema={"edge_no": pl.Int32()})]
    if facts.height:
        found.append(_late_for_facts(con, facts, newest, acted=horizon.act is not None))
    behind = new[new <= to_us(max(horizon.facts or LONG_AGO, newest))]
    if len(behind):
        lent = pl.DataFrame({"ts_ager": pl.Series(behind).cast(INSTANT)})
        with lend(con, lent_ticks=lent):
            found.append(fetch(con, query("mnest_late_for"), {"newest": newest}).cast(pl.Int32))
    late = pl.concat(found).unique()
    return with_acted_pairs(con, late) if late.height else late


def _late_for_facts(con: Connection, facts: pl.DataFrame, newest: datetime, *, acted: bool) -> pl.DataFrame:
    first = facts.group_by("edge_no").agg(pl.col("ts").min())
    edges = first.select("edge_no")
    if acted:
        edges = tables.pair_edges(con, edges).select("edge_no", "pair_no", "ts_acted")
    with lend(con, lent_edges=edges.select("edge_no")):
        ends = fetch(con, query("mnest_ends")).with_columns(pl.col("edge_no").cast(pl.Int32))
    known = edges.join(ends, on="edge_no", how="left").join(first, on="edge_no", how="left")
    end = pl.col("ts_end")
    if acted:
        # Where somebody acted, the edges of a pair hang together.
        together = pl.max_horizontal("ts_end", "ts_acted").max().over("pair_no")
        end = pl.when(pl.col("ts_acted").is_not_null().any().over("pair_no")).then(together).otherwise(end)
    return known.filter(pl.col("ts") < pl.max_horizontal(end, pl.lit(newest, INSTANT))).select("edge_no")


def _tell(folded: Folded, written: Written, rows: pl.Series, stored: int) -> pl.DataFrame:
    """What the new facts did: those whose row comes after the stored ones."""
    new = folded.outcomes.filter(pl.col("row") >= stored)
    return new.select(
        row=rows.gather(new["row"] - stored),
        mnest_id=written.mnest_id.gather(new["life"]),
        refusal="refusal",
    )


def _numbered_pairs(edges: pl.DataFrame) -> pl.DataFrame:
    return edges.with_columns(pair_numbers(), pl.col("edge_no").cast(pl.Int32))


def _names(known: pl.DataFrame, old_lives: pl.DataFrame) -> dict[int, str]:
    """What to call stored records in a refusal; only acts are refused."""
    acted = known.filter(pl.col("ts_acted").is_not_null().any().over("pair_no")).select("edge_no")
    if not acted.height:
        return {}
    return dict(old_lives.join(acted, on="edge_no", how="semi").select("mnest_no", "mnest_id").iter_rows())


def _as_history(facts: pl.DataFrame, params: EdgeParams) -> pl.DataFrame:
    """New facts with every column of history."""
    defaults: dict[str, object] = {"kind": "passing", "untimed": False, "decay_lambda": params.decay_lambda}
    return facts.select(
        (pl.col(name) if name in facts.columns else pl.lit(defaults.get(name)).alias(name)).cast(dtype)
        for name, dtype in tables.HISTORY.items()
    )


def _plain_rates(facts: pl.DataFrame, params: EdgeParams) -> pl.DataFrame:
    """The facts without their rates where those are the default one, as they nearly always are."""
    if "decay_lambda" not in facts.columns:
        return facts
    facts = facts.with_columns(pl.col("decay_lambda").fill_null(params.decay_lambda))
    low, high = facts["decay_lambda"].min(), facts["decay_lambda"].max()
    return facts.drop("decay_lambda") if low == high == params.decay_lambda else facts


def _note_acts(con: Connection, facts: pl.DataFrame) -> None:
    """Remember on the edges when somebody last acted by hand."""
    if "kind" not in facts.columns:
        return
    acts = facts.filter(pl.col("kind") != "passing").group_by("edge_no").agg(pl.col("ts").max())
    if acts.height:
        with lend(con, lent_acts=acts):
            con.execute(query("mnest_note_acts"))
