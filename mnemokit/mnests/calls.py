"""Single writes of the edge memory, inside the caller's transaction.

A passing that is not earlier than anything its pair lived through changes one record; whatever comes late goes the way
of the bulk, which folds the pair's history again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.errors import Conflict, NotFound
from mnemokit.fold.ageing import age
from mnemokit.fold.edge_life import Fact, Pair, Record
from mnemokit.fold.edge_weights import floor_of
from mnemokit.fold.frames import INSTANT, NIGHTS
from mnemokit.instants import MICROSECOND, to_us
from mnemokit.mnests import tables
from mnemokit.mnests.ager import age_apart
from mnemokit.mnests.applying import apply
from mnemokit.mnests.reads import mnests_at
from mnemokit.reasonlets.keys import known_result, write_alone
from mnemokit.records import AgerStats, EdgeParams, MnestState, params_to_json
from mnemokit.store import Connection, new_ids, query, remember, take_numbers


@dataclass(frozen=True, slots=True)
class Passing:
    """A checked passing, about to be written."""

    src: str
    src_version: str
    dst: str
    dst_version: str | None
    decay_lambda: float
    tags: tuple[str, ...]
    desired_sig: str | None
    turn_id: str | None
    ts: datetime


def record_passing(con: Connection, params: EdgeParams, given: Passing, key_hash: str | None) -> str:
    """Write one passing; returns the id of the record that it opened or strengthened."""
    known = known_result(con, key_hash, "record_passing")
    if known is not None:
        return known["mnest_id"]
    mnest_id = _pass_now(con, params, given) or _pass_late(con, params, given)
    if key_hash is not None:
        remember(con, key_hash, "record_passing", json.dumps({"mnest_id": mnest_id}))
    return mnest_id


def _pass_now(con: Connection, params: EdgeParams, given: Passing) -> str | None:
    """One passing that nothing stored is later than; None if something is."""
    ts = to_us(given.ts)
    newest = con.execute("SELECT max(epoch_us(ts_ager)) FROM ager_runs").fetchall()[0][0]
    edges = con.execute(query("mnest_point_pair"), [given.src, given.src_version, given.dst]).fetchall()
    if any(later is not None and later > ts for later in (newest, *(acted for _, _, acted in edges))):
        return None
    edge_no = next((number for number, version, _ in edges if version == given.dst_version), None)
    pair = Pair(params)
    stored: tuple[int, str] | None = None
    if edge_no is None:
        edge_no = take_numbers(con, "edge_no")
        con.execute(
            "INSERT INTO edges BY NAME SELECT $edge_no AS edge_no, $src AS src_executor, $src_version AS src_version, "
            "$dst AS dst_executor, $dst_version AS dst_version",
            {
                "edge_no": edge_no,
                "src": given.src,
                "src_version": given.src_version,
                "dst": given.dst,
                "dst_version": given.dst_version,
            },
        )
    else:
        state = MnestState.PROTO if given.dst_version is None else MnestState.ACTIVE
        live = con.execute(query("mnest_point_record"), {"edge_no": edge_no, "state": state.value}).fetchall()
        if live:
            mnest_no, mnest_id, weight, uses, first, last, used, rate, tags, signature, untimed = live[0]
            if used > ts:
                return None
            record = Record(
                0,
                given.dst_version,
                state.value,
                weight,
                uses,
                first,
                last,
                used,
                rate,
                tuple(tags),
                signature,
                untimed,
            )
            pair.load(record, mnest_no)
            stored = (mnest_no, mnest_id)
    seq = take_numbers(con, "seq")
    fact = Fact(
        "passing", ts, seq, given.dst_version, given.decay_lambda, tags=given.tags, desired_sig=given.desired_sig
    )
    record = pair.passing(fact)
    if stored is None:
        stored = (take_numbers(con, "mnest_no"), new_ids("mn_")[0])
        _insert_record(con, record, edge_no, stored, given)
    else:
        con.execute(
            "UPDATE mnest_records SET weight = $weight, uses = $uses, ts_last = $ts, ts_used = $ts, untimed = false, "
            "desired_sig = $desired_sig WHERE mnest_no = $mnest_no",
            {
                "weight": record.weight,
                "uses": record.uses,
                "ts": given.ts,
                "desired_sig": record.desired_sig,
                "mnest_no": stored[0],
            },
        )
    con.execute(
        query("mnest_point_event"),
        {
            "seq": seq,
            "edge_no": edge_no,
            "mnest_no": stored[0],
            "ts": given.ts,
            "delta": pair.events[0].delta,
            "weight": record.weight,
            "turn_id": given.turn_id,
            "decay_lambda": given.decay_lambda,
            "tags": list(given.tags) or None,
            "desired_sig": given.desired_sig,
        },
    )
    return stored[1]


def _insert_record(con: Connection, record: Record, edge_no: int, named: tuple[int, str], given: Passing) -> None:
    mnest_no, mnest_id = named
    con.execute("INSERT INTO mnest_lives VALUES (?, ?, ?, ?)", [mnest_no, mnest_id, edge_no, mnest_no])
    con.execute(
        query("mnest_point_insert"),
        {
            "mnest_id": mnest_id,
            "src": given.src,
            "src_version": given.src_version,
            "dst": given.dst,
            "dst_version": given.dst_version,
            "weight": record.weight,
            "ts": given.ts,
            "decay_lambda": record.decay_lambda,
            "state": record.state,
            "tags": list(record.tags),
            "desired_sig": record.desired_sig,
            "mnest_no": mnest_no,
            "edge_no": edge_no,
        },
    )


def _pass_late(con: Connection, params: EdgeParams, given: Passing) -> str:
    """One passing that comes late: its pair is folded again."""
    frame = pl.DataFrame(
        {
            "src_executor": [given.src],
            "src_version": [given.src_version],
            "dst_executor": [given.dst],
            "dst_version": pl.Series([given.dst_version], dtype=pl.String),
            "ts": pl.Series([given.ts], dtype=INSTANT),
            "seq": [take_numbers(con, "seq")],
            "decay_lambda": [given.decay_lambda],
            "tags": pl.Series([list(given.tags)], dtype=pl.List(pl.String)),
            "desired_sig": pl.Series([given.desired_sig], dtype=pl.String),
            "turn_id": pl.Series([given.turn_id], dtype=pl.String),
        }
    )
    facts = frame.with_columns(edge_no=tables.number_edges(con, frame)).drop(tables.KEYS)
    return _standing_id(con, apply(con, params, facts, tell=True).told["mnest_id"].item())


def _standing_id(con: Connection, mnest_id: str) -> str:
    """The id of the record that a life is in now; its own if there is none any more."""
    rows = con.execute(query("mnest_standing_id"), {"mnest_id": mnest_id}).fetchall()
    return rows[0][0] if rows else mnest_id


@dataclass(frozen=True, slots=True)
class Act:
    """A change of state by hand: kind transition or promote."""

    kind: str
    mnest_id: str
    new_state: str
    reason: str | None
    ts: datetime
    dst_version: str | None = None


def act(con: Connection, params: EdgeParams, given: Act) -> None:
    """Do one act.

    Raises:
        NotFound: If there is no such record, or there was none at the act's instant.
        Conflict: If the rules refuse it.
    """
    record = _record_then(con, params, given)
    keys = {name: record[name] for name in tables.KEYS}
    frame = pl.DataFrame([keys], schema=dict.fromkeys(tables.KEYS, pl.String()))
    if given.kind == "promote":
        # The edge to the version that exists now has to be known before its proto can become it.
        tables.edges_for(con, frame.with_columns(dst_version=pl.lit(given.dst_version)))
    detail = json.dumps({"dst_version": given.dst_version}) if given.kind == "promote" else None
    facts = pl.DataFrame(
        [
            {
                "edge_no": int(tables.edges_for(con, frame).item()),
                "mnest_no": _number(con, given.mnest_id),
                "ts": given.ts,
                "seq": take_numbers(con, "seq"),
                "kind": given.kind,
                "untimed": False,
                "old_state": record["state"],
                "new_state": given.new_state,
                "reason": given.reason,
                "detail": detail,
            }
        ],
        schema_overrides={name: tables.HISTORY[name] for name in ("edge_no", "mnest_no", "ts", "detail", "reason")},
    )
    refusal = apply(con, params, facts, tell=True).told["refusal"].item()
    if refusal is not None:
        raise Conflict(f"{given.mnest_id}: {refusal}; nothing was written")


def supersede_version(
    con: Connection, params: EdgeParams, executor: str, old: str, new: str, reason: str | None, ts: datetime
) -> int:
    """Supersede every active or decaying edge from or to a version; returns how many."""
    from_it = (pl.col("src_executor") == executor) & (pl.col("src_version") == old)
    to_it = (pl.col("dst_executor") == executor) & (pl.col("dst_version") == old)
    ended = pl.col("state").is_in([MnestState.ACTIVE.value, MnestState.DECAYING.value])
    records = mnests_at(con, params, ts, executor).filter((from_it | to_it) & ended)
    if not records.height:
        return 0
    first = take_numbers(con, "seq", records.height)
    numbers = tables.numbers_of(con, records["mnest_id"])
    facts = records.select(
        edge_no=tables.number_edges(con, records),
        mnest_no=numbers,
        ts=pl.lit(ts, INSTANT),
        seq=pl.int_range(first, first + pl.len()),
        kind=pl.lit("transition"),
        old_state="state",
        new_state=pl.lit(MnestState.SUPERSEDED.value),
        reason=pl.lit(reason, pl.String()),
        detail=pl.lit(json.dumps({"executor": executor, "superseded_by": new})),
        decay_lambda=pl.lit(None, pl.Float64()),
    )
    return int(apply(con, params, facts, tell=True).told["refusal"].null_count())


def _record_then(con: Connection, params: EdgeParams, given: Act) -> dict[str, str]:
    """The record as it stood at the act's instant."""
    rows = con.execute("SELECT src_executor FROM mnest_records WHERE mnest_id = ?", [given.mnest_id]).fetchall()
    if not rows:
        raise NotFound(missing(con, given.mnest_id))
    then = mnests_at(con, params, given.ts, rows[0][0]).filter(pl.col("mnest_id") == given.mnest_id)
    if not then.height:
        raise NotFound(
            f"{given.mnest_id} was not there at {given.ts.isoformat()}; nothing was written; give a later instant"
        )
    return then.row(0, named=True)


def _number(con: Connection, mnest_id: str) -> int:
    return con.execute("SELECT mnest_no FROM mnest_records WHERE mnest_id = ?", [mnest_id]).fetchall()[0][0]


def missing(con: Connection, mnest_id: str) -> str:
    """Why there is no record of this id."""
    life = con.execute(
        "SELECT taker.mnest_id FROM mnest_lives AS life LEFT JOIN mnest_lives AS taker "
        "ON taker.mnest_no = life.record_no WHERE life.mnest_id = ?",
        [mnest_id],
    ).fetchall()
    if not life:
        return f"there is no mnest {mnest_id!r}; check the id"
    if life[0][0] is None:
        return f"the mnest {mnest_id!r} was purged; its history is in mem.mnests.events({mnest_id!r})"
    return f"the mnest {mnest_id!r} was merged into {life[0][0]!r}; ask for that one"


def run_ager(con: Connection, params: EdgeParams, now: datetime) -> AgerStats:
    """Age the edges to an instant and note the run; nothing at all if a newer ager ran already."""
    started = time.perf_counter()
    horizon = tables.horizon(con)
    if horizon.ager is not None and now < horizon.ager:
        return AgerStats()
    if horizon.ager is not None and now == horizon.ager:
        # A call is a fact of its own: the night stays even if the log that it came with is taken back.
        con.execute("UPDATE ager_runs SET kind = 'explicit' WHERE ts_ager = ? AND kind = 'daily'", [now])
        if horizon.facts is not None and horizon.facts >= now:
            # As it was then; what happened at the same instant came after the ager.
            then = age(mnests_at(con, params, now - MICROSECOND), now=now, params=params).stats
            return AgerStats(recurring_protos=then.recurring_protos, proposed_archive=then.proposed_archive)
        return AgerStats(**_outlook(con, params, now))
    if horizon.facts is not None and horizon.facts >= now:
        before = mnests_at(con, params, now - MICROSECOND)
        apply(con, params, pl.DataFrame(schema=tables.HISTORY), [now], kind="explicit", horizon=horizon)
        stats = age(before, now=now, params=params).stats
    else:
        write_alone(con)
        nights = age_apart(con, params, np.array([to_us(now)]), horizon, tables.edge_frame([]))
        stats = AgerStats(**nights.select(NIGHTS).sum().row(0, named=True), **_outlook(con, params, now))
    tables.add_tick(con, now, stats, "explicit", params_to_json(params), time.perf_counter() - started)
    return stats


def _outlook(con: Connection, params: EdgeParams, now: datetime) -> dict[str, int]:
    bound = {
        "now": now,
        "recurring_uses": params.recurring_uses,
        "recurring_floor": floor_of(params.recurring_weight, params),
        "unused_since": now - params.archive_after,
        "archive_floor": floor_of(params.purge_below, params),
    }
    recurring, archivable = con.execute(query("mnest_outlook"), bound).fetchall()[0]
    return {"recurring_protos": recurring, "proposed_archive": archivable}
