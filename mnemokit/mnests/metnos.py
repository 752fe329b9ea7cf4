"""Take over the edge store of a Metnos system: a SQLite file with tables mnests, events and canonical_query_log.

The file is only read. Its passings, changes of state and nightly ager runs become facts of this store, under the ids
that the file has, and are folded by this store's rules. A record whose history does not lead to what the file says of
it (because the file does not keep all its events) is taken over as it stands, with what history there is beside it.
An event "decay" of the file is what a night did to one record: the night is taken over, with its counts, and what it
did to each record follows from it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from mnemokit.fold.edge_keys import KEYS, number_keys, pair_numbers
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, INSTANT, Schema
from mnemokit.instants import to_us
from mnemokit.mnests import tables
from mnemokit.mnests.applying import apply
from mnemokit.mnests.metnos_file import MetnosFile, StoredEvent, StoredMnest, Unusable, read_metnos
from mnemokit.records import EdgeParams, MnestState, params_to_json
from mnemokit.store import Connection, Store, fetch, lend, query, take_numbers

SAME = 1e-9
"""Weights that differ by less, relatively, are the same."""

FACTS: Schema = {**dict.fromkeys(KEYS, pl.String()), "mnest_id": pl.String()} | {
    name: dtype for name, dtype in tables.HISTORY.items() if name not in ("edge_no", "mnest_no", "seq")
}


@dataclass(frozen=True, slots=True)
class MetnosReport:
    """What an import took over.

    Attributes:
        mnests: Records taken over.
        as_they_stood: Those of them whose history does not lead to what the file says.
        events: Passings and changes of state taken over.
        nights: Nightly ager runs taken over.
        queries: Canonical queries taken over.
        already_there: Records whose ids were in the store before; they were left alone.
        unusable: Rows that could not be used, or only in part, each with the reason.
    """

    mnests: int = 0
    as_they_stood: int = 0
    events: int = 0
    nights: int = 0
    queries: int = 0
    already_there: int = 0
    unusable: tuple[Unusable, ...] = ()

    def __str__(self) -> str:
        """For people."""
        head = (
            f"{self.mnests} mnests ({self.as_they_stood} as they stood), {self.events} events, {self.nights} nights "
            f"and {self.queries} canonical queries taken over; {self.already_there} mnests were there already; "
            f"{len(self.unusable)} rows could not be used, or only in part"
        )
        return "\n".join([head, *(f"  {row.table} {row.row}: {row.reason}" for row in self.unusable)])


class _HasMnests(Protocol):
    @property
    def mnests(self) -> _Imports: ...


class _Imports(Protocol):
    def import_metnos(self, path: str | os.PathLike[str]) -> MetnosReport: ...


def import_metnos(memory: _HasMnests, path: str | os.PathLike[str]) -> MetnosReport:
    """Take over a Metnos edge store into an open memory.

    Args:
        memory: The memory.
        path: The SQLite file; it is only read.

    Returns:
        What was taken over, and every row that could not be used, with the reason.

    Raises:
        NotFound: If there is no such file.
        CorruptLog: If it is no SQLite file of that kind; nothing was written.
    """
    return memory.mnests.import_metnos(path)


def take_over(store: Store, path: str | os.PathLike[str]) -> MetnosReport:
    """Read a file and write it into a store, in one transaction; a second time it adds nothing."""
    file = read_metnos(Path(path))
    return store.write(lambda con: _write(con, store.edge_params, file))


def _write(con: Connection, params: EdgeParams, file: MetnosFile) -> MetnosReport:
    ids = pl.DataFrame({"mnest_id": [mnest.mnest_id for mnest in file.mnests]}, schema={"mnest_id": pl.String})
    with lend(con, lent_ids=ids):
        there = set(fetch(con, "SELECT mnest_id FROM mnest_lives SEMI JOIN lent_ids USING (mnest_id)")["mnest_id"])
    new = [mnest for mnest in file.mnests if mnest.mnest_id not in there]
    histories = {mnest.mnest_id: _history(mnest, file.events.get(mnest.mnest_id, [])) for mnest in new}
    nights = sorted({event.ts for mnest in new for event in file.events.get(mnest.mnest_id, []) if event.nightly})
    astray = _astray(new, histories, [to_us(night) for night in nights], params)
    rows = [row for mnest in new for row in (_as_it_stood(mnest, file) if mnest.mnest_id in astray
                                             else histories[mnest.mnest_id])]  # fmt: skip
    counted = pl.DataFrame({"ts_ager": nights}, schema={"ts_ager": INSTANT})
    unusable = list(file.unusable)
    if rows:
        frame = pl.DataFrame(rows, schema=FACTS, orient="row").sort("ts", maintain_order=True)
        lost, counted = _write_facts(con, params, frame, counted)
        unusable += lost
    known = set(fetch(con, "SELECT ts_ager FROM ager_runs")["ts_ager"])
    fresh = counted.filter(~pl.col("ts_ager").is_in(list(known)))
    if fresh.height:
        tables.add_ticks(con, fresh, "explicit", params_to_json(params), 0.0)
    queries = pl.DataFrame(file.queries, schema=tables.QUERY_USES, orient="row")
    with lend(con, lent_uses=queries):
        before = con.execute("SELECT count(*) FROM query_uses").fetchall()[0][0]
        con.execute(query("metnos_queries"))
        after = con.execute("SELECT count(*) FROM query_uses").fetchall()[0][0]
    return MetnosReport(
        mnests=len(new),
        as_they_stood=len(astray),
        events=sum(row["kind"] != "import" for row in rows),
        nights=fresh.height,
        queries=after - before,
        already_there=len(file.mnests) - len(new),
        unusable=tuple(unusable),
    )


def _history(mnest: StoredMnest, events: list[StoredEvent]) -> list[dict[str, object]]:
    """A record's passings and acts, as facts.

    A change to active of a record that is active already was the promotion of a proto: what came before it went to a
    destination without a version.
    """
    promoted = _promotion(events) if mnest.dst_version is not None else None
    rows: list[dict[str, object]] = []
    state = MnestState.ACTIVE if mnest.dst_version is not None and promoted is None else MnestState.PROTO
    last_passing: dict[str, object] | None = None
    for event in events:
        version = mnest.dst_version if state is not MnestState.PROTO else None
        if event.kind == "reinforce":
            last_passing = _fact(mnest, version, event, "passing") | {
                "decay_lambda": mnest.decay_lambda,
                "tags": list(mnest.tags) if not rows and mnest.tags else None,
            }
            rows.append(last_passing)
        elif event.kind == "state_change" and event.new_state is not None:
            if event is promoted:
                detail = json.dumps({"dst_version": mnest.dst_version})
                rows.append(_act(mnest, None, event, "promote", state) | {"detail": detail})
            elif not event.nightly:
                rows.append(_act(mnest, version, event, "transition", state))
            state = MnestState(event.new_state)
    if last_passing is not None and mnest.dst_version is None:
        last_passing["desired_sig"] = mnest.desired_sig
    return rows


def _promotion(events: list[StoredEvent]) -> StoredEvent | None:
    state: str | None = "active"
    for event in events:
        if event.kind == "state_change":
            if event.new_state == "active" and state == "active":
                return event
            state = event.new_state
    return None


def _fact(mnest: StoredMnest, version: str | None, event: StoredEvent, kind: str) -> dict[str, object]:
    names = dict(zip(KEYS, (mnest.src_executor, mnest.src_version, mnest.dst_executor, version), strict=True))
    row: dict[str, object] = {**names, "mnest_id": mnest.mnest_id, "ts": event.ts, "kind": kind, "untimed": False}
    return row | {"turn_id": event.turn_id, "reason": event.reason}


def _act(
    mnest: StoredMnest, version: str | None, event: StoredEvent, kind: str, state: MnestState
) -> dict[str, object]:
    return _fact(mnest, version, event, kind) | {"old_state": state.value, "new_state": event.new_state}


def _as_it_stood(mnest: StoredMnest, file: MetnosFile) -> list[dict[str, object]]:
    """An import of the record, and its logged events as mere history."""
    events = [event for event in file.events.get(mnest.mnest_id, []) if event.kind != "decay"]
    logged: list[dict[str, object]] = []
    for event in events:
        told = json.dumps({"kind": event.kind, "delta": event.delta})
        logged.append(_fact(mnest, mnest.dst_version, event, "logged") | {"new_state": event.new_state, "detail": told})
    used = max((event.ts for event in events if event.kind == "reinforce"), default=mnest.ts_last)
    detail = {
        "weight": mnest.weight,
        "uses": mnest.uses,
        "ts_first": mnest.ts_first.isoformat(),
        "ts_used": min(used, mnest.ts_last).isoformat(),
    }
    stand = StoredEvent(mnest.ts_last, "import", None, mnest.state, None, None)
    return [
        *logged,
        _fact(mnest, mnest.dst_version, stand, "import")
        | {
            "new_state": mnest.state,
            "decay_lambda": mnest.decay_lambda,
            "tags": list(mnest.tags),
            "desired_sig": mnest.desired_sig,
            "detail": json.dumps(detail),
        },
    ]


def _astray(
    mnests: list[StoredMnest],
    histories: dict[str, list[dict[str, object]]],
    nights: list[int],
    params: EdgeParams,
) -> set[str]:
    """Records whose history, folded, does not lead to what the file says of them."""
    rows = [row for mnest in mnests for row in histories[mnest.mnest_id]]
    if not rows:
        return {mnest.mnest_id for mnest in mnests}
    frame = pl.DataFrame(rows, schema=FACTS, orient="row").sort("ts", maintain_order=True)
    targets = [(m.src_executor, m.src_version, m.dst_executor, m.dst_version) for m in mnests]
    keys = pl.concat([frame.select(KEYS), pl.DataFrame(targets, schema=dict.fromkeys(KEYS, pl.String()), orient="row")])
    number, edges = number_keys(keys)
    ids = [mnest.mnest_id for mnest in mnests]
    facts = frame.with_columns(
        edge_no=pl.Series(number[: frame.height], dtype=pl.Int32),
        mnest_no=pl.col("mnest_id").replace_strict(ids, list(range(len(ids))), return_dtype=pl.Int32),
        seq=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    edges = edges.with_columns(pair_numbers(), edge_no=pl.int_range(pl.len(), dtype=pl.Int32()))
    folded = fold_edges(facts, edges.select(list(EDGES)), np.array(nights, dtype=np.int64), params)
    numbered = folded.records.join(folded.lives.select("life", "mnest_no"), on="life")
    found = {row["mnest_no"]: row for row in numbered.iter_rows(named=True)}
    return {
        mnest.mnest_id
        for number, mnest in enumerate(mnests)
        if number not in found or not _agrees(mnest, found[number])
    }


def _agrees(mnest: StoredMnest, row: dict[str, object]) -> bool:
    same = (mnest.state, mnest.uses, mnest.ts_first, mnest.ts_last) == (
        row["state"], row["uses"], row["ts_first"], row["ts_last"],
    )  # fmt: skip
    return same and abs(float(str(row["weight"])) - mnest.weight) <= SAME * mnest.weight


def _write_facts(
    con: Connection, params: EdgeParams, frame: pl.DataFrame, nights: pl.DataFrame
) -> tuple[list[Unusable], pl.DataFrame]:
    """Write facts under the ids of the file; returns the ids that could not be kept, and what each night did."""
    named = frame.select("mnest_id").unique(maintain_order=True)
    first_no = take_numbers(con, "mnest_no", named.height)
    first_seq = take_numbers(con, "seq", frame.height)
    named = named.with_columns(mnest_no=pl.int_range(first_no, first_no + pl.len(), dtype=pl.Int32()))
    frame = frame.with_columns(
        edge_no=tables.number_edges(con, frame),
        seq=pl.int_range(first_seq, first_seq + pl.len(), dtype=pl.Int64),
    ).join(named, on="mnest_id", how="left", maintain_order="left")
    opened = frame.group_by("mnest_no", maintain_order=True).agg(pl.col("edge_no").first(), pl.col("mnest_id").first())
    with lend(con, lent_lives=opened):
        con.execute(
            "INSERT INTO mnest_lives BY NAME SELECT mnest_no, mnest_id, edge_no, mnest_no AS record_no FROM lent_lives"
        )
    promoted = frame.filter(pl.col("kind") == "promote").with_columns(
        dst_version=pl.col("detail").str.json_path_match("$.dst_version")
    )
    if promoted.height:
        tables.number_edges(con, promoted)
    logged = pl.col("kind") == "logged"
    facts = frame.filter(~logged).select(pl.col(name).cast(dtype) for name, dtype in tables.HISTORY.items())
    counted = apply(con, params, facts, nights["ts_ager"].to_list(), kind="import").nights
    columns = [name for name in tables.HISTORY if name in frame.columns]
    with lend(con, lent_events=frame.filter(logged).select(columns)):
        con.execute("INSERT INTO edge_events BY NAME SELECT * FROM lent_events")
    with lend(con, lent_lives=named):
        lost = fetch(con, query("metnos_lost_ids"))
        con.execute(query("metnos_forget_lost_ids"))
    unusable = [
        Unusable("mnests", mnest_id, f"the store had its edge already, as {other}; its passings were added to that")
        for mnest_id, other in lost.iter_rows()
    ]
    return unusable, counted
