"""The edge memory in bulk: many passings, ticks and acts at once, in time or late, in the caller's transaction.

Whatever comes, the store ends as if everything had come in order of time. Edges whose news are later than all they
lived through go on from their records; edges that something comes late for are folded again from their facts; edges
that only a tick concerns are aged by one UPDATE.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from mnemokit import mnest_tables as tables
from mnemokit.edge_fold import fold_edges
from mnemokit.edge_weights import live_floor
from mnemokit.errors import InvalidInput
from mnemokit.fold_frames import EDGES, INSTANT, NIGHTS, Folded, Schema
from mnemokit.fold_kernel import Ints
from mnemokit.instants import EPOCH, from_us, to_us
from mnemokit.reasonlet_keys import write_alone
from mnemokit.records import EdgeParams, MnestState, params_to_json
from mnemokit.store import Connection, fetch, lend, query

LONG_AGO = EPOCH - timedelta(days=365 * 1000)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of new facts and ticks.

    Attributes:
        outcomes: What each new fact did, by its row in the facts given: row, mnest_id, weight, refusal.
        nights: A row per new tick: ts_ager and the counts.
        refolded: Edges folded again from their facts.
    """

    outcomes: pl.DataFrame
    nights: pl.DataFrame
    refolded: int


def ingest(
    con: Connection,
    params: EdgeParams,
    passings: pl.DataFrame,
    *,
    ticks: Sequence[datetime] = (),
    kind: str = "daily",
) -> Applied:
    """Take in passings and ager instants, in order or late.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        passings: Columns src_executor, src_version, dst_executor, dst_version (null: it does not exist), ts, seq;
            and, where they differ from their defaults, untimed, turn_no, turn_id, tags, desired_sig, decay_lambda.
            A column dst_exists is not needed: it says what a null dst_version says.
        ticks: New ager instants; those that the store has already are left out.
        kind: What ``ager_runs`` calls them: daily or explicit.

    Returns:
        What each passing and tick did.

    Raises:
        InvalidInput: If a column is missing.
    """
    missing = [name for name in ("seq", "ts", *tables.KEYS) if name not in passings.columns]
    if missing:
        raise InvalidInput(f"passings need the columns {', '.join(missing)}; nothing was written")
    edge_no = tables.number_edges(con, passings)
    columns = [name for name in tables.HISTORY if name in passings.columns and name not in ("edge_no", "mnest_no")]
    facts = passings.select(edge_no.alias("edge_no"), *columns)
    if "decay_lambda" not in facts.columns:
        facts = facts.with_columns(decay_lambda=pl.lit(params.decay_lambda))
    return apply(con, params, facts, ticks, kind=kind)


def withdraw(con: Connection, params: EdgeParams, turn_nos: pl.DataFrame, ticks_now: Sequence[datetime]) -> int:
    """Take passings back, as if they had never been, and leave only the daily ticks that remain.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        turn_nos: Column turn_no: turns whose passings go.
        ticks_now: All daily ticks there should be; explicit ager calls stay whatever this says.

    Returns:
        How many passings were taken back.
    """
    write_alone(con)
    with lend(con, lent_turns=turn_nos.select(pl.col("turn_no").cast(pl.Int64)).unique()):
        touched = fetch(con, query("mnest_edges_of_turns"))
        con.execute("DELETE FROM edge_events WHERE turn_no IN (SELECT turn_no FROM lent_turns)")
    old = tables.ticks_so_far(con)
    _set_daily_ticks(con, params, ticks_now)
    new = tables.ticks_so_far(con)
    changed = np.setxor1d(old, new)
    edges = touched.select("edge_no")
    if len(changed):
        last = from_us(int(changed[-1]))
        begun = "SELECT edge_no FROM edge_events GROUP BY edge_no HAVING min(ts) < $last"
        edges = pl.concat([edges, fetch(con, begun, {"last": last})])
    edges = _with_acted_pairs(con, tables.edge_frame(edges["edge_no"]))
    if edges.height:
        _refold(con, params, edges, None, new)
    return int(touched["passings"].sum())


def withdraw_passings(con: Connection, params: EdgeParams, passings: pl.DataFrame) -> None:
    """Take some passings of turns back, as if they had never been; the ticks stay.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        passings: Columns turn_no, src_executor, src_version, dst_executor, dst_version and times: how many of the
            passings that this turn made over this edge go, the last ones first.
    """
    write_alone(con)
    gone = passings.select(
        pl.col("turn_no").cast(pl.Int64), tables.number_edges(con, passings).alias("edge_no"), "times"
    )
    edges = _with_acted_pairs(con, tables.edge_frame(gone["edge_no"]))
    with lend(con, lent_gone=gone):
        con.execute(query("mnest_withdraw_passings"))
    if edges.height:
        _refold(con, params, edges, None, tables.ticks_so_far(con))


def apply(
    con: Connection,
    params: EdgeParams,
    facts: pl.DataFrame,
    ticks: Sequence[datetime] = (),
    *,
    kind: str = "daily",
) -> Applied:
    """Take in facts by edge number (columns of ``mnest_tables.HISTORY``) and ticks."""
    started = time.perf_counter()
    write_alone(con)
    _note_acts(con, facts)
    old = tables.ticks_so_far(con)
    new = np.setdiff1d(np.array([to_us(tick) for tick in ticks], dtype=np.int64), old)
    newest = from_us(int(old[-1])) if len(old) else LONG_AGO
    late = _late_edges(con, facts, new, newest)
    is_late = pl.col("edge_no").is_in(late["edge_no"].implode())
    done: list[_Done] = []
    if late.height:
        done.append(_refold(con, params, late, facts.with_row_index("row").filter(is_late), np.union1d(old, new)))
    on_time = facts.with_row_index("row").filter(~is_late)
    going_on = tables.edge_frame(on_time["edge_no"])
    if "kind" in facts.columns and on_time.height:
        going_on = _with_acted_pairs(con, going_on)
    waiting = _no_nights(new)
    if len(new):
        now = from_us(int(new[-1]))
        with lend(con, lent_edges=pl.concat([late, going_on])):
            ending = fetch(con, query("mnest_ending"), {"now": now} | _floors(params))
        going_on = tables.edge_frame(pl.concat([going_on["edge_no"], ending["edge_no"].cast(pl.Int32)]))
        with lend(con, lent_edges=pl.concat([late, going_on])):
            waiting = _waiting_nights(con, now, new)
            con.execute(query("mnest_age"), {"now": now})
    if going_on.height:
        done.append(_go_on(con, params, going_on, on_time, new))
    nights = pl.concat([waiting, *(part.nights for part in done)]).group_by("ts_ager").agg(pl.col(NIGHTS).sum())
    nights = waiting.select("ts_ager").join(nights, on="ts_ager", how="left", maintain_order="left")
    if nights.height and kind == "daily":
        tables.add_ticks(con, nights, kind, params_to_json(params), time.perf_counter() - started)
    told = pl.concat([part.told for part in done]) if done else pl.DataFrame(schema=TOLD)
    return Applied(told, nights, late.height)


@dataclass(frozen=True, slots=True)
class _Done:
    told: pl.DataFrame
    nights: pl.DataFrame


TOLD: Schema = {"row": pl.UInt32(), "mnest_id": pl.String(), "weight": pl.Float64(), "refusal": pl.String()}


def _late_edges(con: Connection, facts: pl.DataFrame, new: Ints, newest: datetime) -> pl.DataFrame:
    """Edges that have lived past one of the new facts or ticks already."""
    found = [pl.DataFrame(schema={"edge_no": pl.Int32()})]
    if facts.height:
        found.append(_late_for_facts(con, facts, newest))
    horizon = con.execute(query("mnest_horizon")).fetchall()[0][0] or LONG_AGO
    behind = [from_us(int(tick)) for tick in new if from_us(int(tick)) <= max(horizon, newest)]
    if behind:
        lent = pl.DataFrame({"ts_ager": behind}, schema={"ts_ager": INSTANT})
        with lend(con, lent_ticks=lent):
            found.append(fetch(con, query("mnest_late_for"), {"newest": newest}).cast(pl.Int32))
    late = pl.concat(found).unique()
    return _with_acted_pairs(con, late) if late.height else late


def _late_for_facts(con: Connection, facts: pl.DataFrame, newest: datetime) -> pl.DataFrame:
    first = facts.group_by("edge_no").agg(pl.col("ts").min())
    edges = tables.pair_edges(con, first.select("edge_no"))
    with lend(con, lent_edges=edges.select("edge_no")):
        spans = fetch(con, query("mnest_spans"))
    known = edges.join(spans, on="edge_no", how="left").join(first, on="edge_no", how="left").with_columns(
        acted=pl.col("ts_acted").is_not_null().any().over("pair_no"),
        pair_end=pl.max_horizontal("ts_end", "ts_acted").max().over("pair_no"),
    )  # fmt: skip
    end = pl.when("acted").then("pair_end").otherwise("ts_end")
    return known.filter(pl.col("ts") < pl.max_horizontal(end, pl.lit(newest, INSTANT))).select("edge_no")


def _with_acted_pairs(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """These edges, and every edge of those of their pairs that somebody acted on."""
    pairs = tables.pair_edges(con, edges)
    acted = pl.col("ts_acted").is_not_null().any().over("pair_no")
    return pairs.filter(acted | pl.col("edge_no").is_in(edges["edge_no"].implode())).select("edge_no")


def _refold(
    con: Connection, params: EdgeParams, edges: pl.DataFrame, new_facts: pl.DataFrame | None, ticks: Ints
) -> _Done:
    """Fold these edges again from all their facts, with the new ones (which have a column row)."""
    facts = tables.facts_of(con, edges)
    stored = facts.height
    if new_facts is not None:
        facts = pl.concat([facts, _as_history(new_facts)])
    known = tables.pair_edges(con, edges).join(edges, on="edge_no", how="semi")
    old_lives = tables.lives_of(con, edges)
    ids = dict(old_lives.select("mnest_no", "mnest_id").iter_rows())
    folded = fold_edges(facts, known.select(list(EDGES)), ticks, params, names=ids)
    numbers = tables.write_refolded(con, edges, folded, facts, old_lives)
    rows = pl.Series(dtype=pl.UInt32) if new_facts is None else new_facts["row"]
    return _Done(_tell(folded, numbers, rows, stored), folded.nights)


def _go_on(con: Connection, params: EdgeParams, edges: pl.DataFrame, new_facts: pl.DataFrame, ticks: Ints) -> _Done:
    """Go on from the records of these edges."""
    prior = tables.records_of(con, edges)
    known = tables.pair_edges(con, edges).join(edges, on="edge_no", how="semi")
    old_lives = tables.lives_of(con, edges)
    ids = dict(old_lives.select("mnest_no", "mnest_id").iter_rows())
    facts = new_facts.drop("row")
    folded = fold_edges(
        facts, known.select(list(EDGES)), ticks, params, prior=prior if prior.height else None, names=ids
    )
    numbers = tables.write_continued(con, folded, facts, old_lives)
    return _Done(_tell(folded, numbers, new_facts["row"], 0), folded.nights)


def _tell(folded: Folded, numbers: tables.Written, rows: pl.Series, stored: int) -> pl.DataFrame:
    """What the new facts did: those whose row comes after the stored ones."""
    new = folded.outcomes.filter(pl.col("row") >= stored)
    return new.select(
        row=rows.gather(new["row"] - stored),
        mnest_id=numbers.mnest_id.gather(new["life"]),
        weight="weight",
        refusal="refusal",
    )


def _as_history(facts: pl.DataFrame) -> pl.DataFrame:
    """New facts with every column of history."""
    defaults: dict[str, object] = {"kind": "passing", "untimed": False}
    return facts.select(
        (pl.col(name) if name in facts.columns else pl.lit(defaults.get(name)).alias(name)).cast(dtype)
        for name, dtype in tables.HISTORY.items()
    )


def _floors(params: EdgeParams) -> dict[str, object]:
    return {
        "proto_floor": live_floor(MnestState.PROTO, params),
        "active_floor": live_floor(MnestState.ACTIVE, params),
    }


def _no_nights(ticks: Ints) -> pl.DataFrame:
    zero = np.zeros(len(ticks), dtype=np.int64)
    return pl.DataFrame({"ts_ager": pl.Series(ticks, dtype=pl.Int64).cast(INSTANT)} | dict.fromkeys(NIGHTS, zero))


def _waiting_nights(con: Connection, now: datetime, ticks: Ints) -> pl.DataFrame:
    """How many records that no tick ends are decayed by each tick."""
    waiting = fetch(con, query("mnest_waiting"), {"now": now})
    first = np.searchsorted(ticks, waiting["since"].to_numpy(), side="right")
    n, proto = waiting["n"].to_numpy(), (waiting["state"] == MnestState.PROTO.value).to_numpy()
    return _no_nights(ticks).with_columns(
        decayed=np.cumsum(np.bincount(first, n, len(ticks)))[: len(ticks)].astype(np.int64),
        decayed_protos=np.cumsum(np.bincount(first, n * proto, len(ticks)))[: len(ticks)].astype(np.int64),
    )


def _note_acts(con: Connection, facts: pl.DataFrame) -> None:
    """Remember on the edges when somebody last acted by hand."""
    if "kind" not in facts.columns:
        return
    acts = facts.filter(pl.col("kind") != "passing").group_by("edge_no").agg(pl.col("ts").max())
    if acts.height:
        with lend(con, lent_acts=acts):
            con.execute(query("mnest_note_acts"))


def _set_daily_ticks(con: Connection, params: EdgeParams, ticks: Sequence[datetime]) -> None:
    """Make the daily ticks exactly these."""
    kept = pl.DataFrame({"ts_ager": list(ticks)}, schema={"ts_ager": INSTANT}).unique()
    with lend(con, lent_ticks=kept):
        con.execute("DELETE FROM ager_runs WHERE kind = 'daily' AND ts_ager NOT IN (SELECT ts_ager FROM lent_ticks)")
        new = fetch(con, "SELECT ts_ager FROM lent_ticks ANTI JOIN ager_runs USING (ts_ager) ORDER BY ts_ager")
    if new.height:
        tables.add_ticks(con, new, "daily", params_to_json(params), 0.0)
