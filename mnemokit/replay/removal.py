"""Taking a mistaken replay back, as if it had never been made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.mnests import bulk as mnest_bulk
from mnemokit.reasonlets import erasure as reasonlet_erasure
from mnemokit.replay.captures import capture_key
from mnemokit.replay.ticks import Bounds, daily_ticks
from mnemokit.store import Connection, Store, fetch, lend, query


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken away."""

    turns: int
    passings: int
    runs: int
    rejects: int
    ticks: int


def remove_source(con: Connection, store: Store, source: str) -> Removed:
    """Remove a source's turns, passings, captures, rejects and keys, inside the caller's transaction.

    Touched edges are folded anew from what is left. Nightly ticks stay where other sources' passings still need them.
    Reasonlets of the source that have runs or versions from elsewhere stay, with their labels, without its runs.
    """
    turns = fetch(
        con, "SELECT turn_no, session_id, turn_id, step FROM turns WHERE source = ? ORDER BY turn_no", [source]
    )
    runs = reasonlet_erasure.withdraw(con, source)
    with lend(con, gone=turns.select("turn_no")):
        passings = con.execute(query("removal_passings")).fetchall()[0][0]
        left = Bounds(*con.execute(query("removal_bounds_left")).fetchall()[0])
    rejects = con.execute("DELETE FROM rejects WHERE source = ? RETURNING 1", [source]).fetchall()
    con.execute("UPDATE replays SET sources = list_filter(sources, lambda s: s <> $source)", {"source": source})
    con.execute("DELETE FROM replays WHERE len(sources) = 0")
    before, after = _daily_ticks(con, store, left)
    mnest_bulk.withdraw(con, store.edge_params, turns.select("turn_no"), ticks_now=after)
    con.execute("DELETE FROM turns WHERE source = ?", [source])
    _forget_keys(con, store, source, turns)
    return Removed(turns.height, passings, runs, len(rejects), len(before) - len(after))


def _daily_ticks(con: Connection, store: Store, left: Bounds) -> tuple[list[datetime], list[datetime]]:
    """The nightly ticks there are, and those of them that the passings which are left still need."""
    stored = [row[0] for row in con.execute("SELECT ts_ager FROM ager_runs WHERE kind = 'daily'").fetchall()]
    aged = con.execute("SELECT count(*) FROM replays WHERE ager = 'daily'").fetchall()[0][0] > 0
    needed = set(daily_ticks(left, store.edge_params.tick_hour)) if aged else set[datetime]()
    return stored, sorted(needed.intersection(stored))


def _forget_keys(con: Connection, store: Store, source: str, turns: pl.DataFrame) -> None:
    # The source may be replayed again later, so its captures' keys go with it; those of other calls stay.
    sessions = turns.get_column("session_id").unique().to_list()
    keys = [store.keyed_hash(capture_key(source, session)) for session in sessions]
    steps = turns.select("session_id", "turn_id", "step").iter_rows()
    keys += [store.keyed_hash(capture_key(source, session, turn, step)) for session, turn, step in steps]
    with lend(con, gone=pl.DataFrame({"key_hash": keys}, schema={"key_hash": pl.String})):
        con.execute("DELETE FROM idempotency_keys WHERE key_hash IN (SELECT key_hash FROM gone)")
