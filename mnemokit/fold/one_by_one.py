"""The fold of pairs on which somebody acted by hand, or whose decay rate changes: each lived through in turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mnemokit.fold.edge_life import MERGE_SEQ, NEW, Event, Fact, Pair, Record
from mnemokit.fold.frames import DERIVED, INSTANT, LIVES, NIGHTS, OUTCOMES, RECORDS, Folded
from mnemokit.fold.kernel import Ints
from mnemokit.instants import as_utc, from_us, to_us
from mnemokit.records import EdgeParams

Row = dict[str, Any]  # a row of a frame, whose columns have many types


def fold_one_by_one(
    facts: pl.DataFrame,
    edges: pl.DataFrame,
    ticks: Ints,
    params: EdgeParams,
    prior: pl.DataFrame | None,
    names: Mapping[int, str],
) -> Folded:
    """Live through each pair in turn.

    Args:
        facts: Columns of ``FACTS`` and row, the number by which outcomes and lives refer to a fact.
        edges: All edges of the pairs, columns of ``EDGES``.
        ticks: Ager instants, as for ``fold_edges``.
        params: The edge rule.
        prior: Records to go on from.
        names: What to call stored records where an act is refused, by mnest_no.

    Returns:
        The fold, its outcomes sorted by pair, then time, then source order.
    """
    order = ["ts", *(["seq"] if "seq" in facts.columns else []), "row"]
    facts_of_pair = _by_pair(facts, edges, order)
    records_of_pair = {} if prior is None else _by_pair(prior, edges, ["life"])
    lived = _Lived(ticks.tolist())
    for pair_no, versions in _by_pair(edges.select("edge_no"), edges, ["edge_no"]).items():
        pair = Pair(params, lived.ticks, ids=names)
        for row in records_of_pair.get(pair_no, ()):
            pair.load(record_of(row), row["life"])
        rows = facts_of_pair.get(pair_no, [])
        pair.live([fact_of(row, params) for row in rows])
        lived.add(pair, rows, {row["dst_version"]: row["edge_no"] for row in versions})
    return lived.folded()


def fact_of(row: Row, params: EdgeParams) -> Fact:
    """A row of ``FACTS``, with its edge's dst_version, as a fact."""
    kind = row.get("kind") or "passing"
    detail: Row = json.loads(row["detail"]) if kind in ("promote", "import") else {}
    rate = row.get("decay_lambda")
    seq = row.get("seq")
    return Fact(
        kind=kind,
        ts=row["ts_us"],
        seq=row.get("row", 0) if seq is None else seq,
        dst_version=row["dst_version"],
        decay_lambda=params.decay_lambda if rate is None else rate,
        tags=tuple(row.get("tags") or ()),
        desired_sig=row.get("desired_sig"),
        untimed=bool(row.get("untimed")),
        old_state=row.get("old_state"),
        new_state=row.get("new_state"),
        promoted_to=detail.get("dst_version"),
        imported=_imported(row, detail, params) if kind == "import" else None,
        mnest_no=row.get("mnest_no"),
    )


def _imported(row: Row, detail: Row, params: EdgeParams) -> Record:
    """The record that an import brings; its detail tells what the fact's own columns do not."""
    return Record(
        life=0,
        dst_version=row["dst_version"],
        state=row["new_state"],
        weight=detail["weight"],
        uses=detail["uses"],
        ts_first=to_us(as_utc(detail["ts_first"])),
        ts_last=row["ts_us"],
        ts_used=to_us(as_utc(detail["ts_used"])),
        decay_lambda=row.get("decay_lambda", params.decay_lambda),
        tags=tuple(row.get("tags") or ()),
        desired_sig=row.get("desired_sig"),
        untimed=False,
    )


def record_of(row: Row) -> Record:
    """A row of ``RECORDS``, with its edge's dst_version and instants in microseconds, as a record."""
    return Record(
        life=0,
        dst_version=row["dst_version"],
        state=row["state"],
        weight=row["weight"],
        uses=row["uses"],
        ts_first=row["ts_first_us"],
        ts_last=row["ts_last_us"],
        ts_used=row["ts_used_us"],
        decay_lambda=row["decay_lambda"],
        tags=tuple(row["tags"] or ()),
        desired_sig=row["desired_sig"],
        untimed=row["untimed"],
    )


def last_state_of(record: Record) -> str:
    """What a purge tells of the record that it ends, as JSON: as ``frames.last_state`` does for frames."""
    first, used = (from_us(ts).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00") for ts in (record.ts_first, record.ts_used))
    told = {
        "uses": record.uses,
        "ts_first": first,
        "ts_used": used,
        "decay_lambda": record.decay_lambda,
        "tags": list(record.tags),
        "desired_sig": record.desired_sig,
    }
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def _by_pair(frame: pl.DataFrame, edges: pl.DataFrame, order: Sequence[str]) -> dict[int, list[Row]]:
    """Rows of each pair, in order, with the destination's version, and instants also in microseconds."""
    in_us = [
        pl.col(name).dt.timestamp("us").alias(f"{name}_us") for name, dtype in frame.schema.items() if dtype == INSTANT
    ]
    rows = frame.with_columns(in_us).join(edges, on="edge_no", how="inner").sort("pair_no", *order)
    found: dict[int, list[Row]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(row["pair_no"], []).append(row)
    return found


class _Lived:
    """What the pairs lived through, collected column by column."""

    def __init__(self, ticks: list[int]) -> None:
        self.ticks = ticks
        self.births = 0
        self.rows: dict[str, list[Row]] = {"outcomes": [], "derived": [], "records": [], "lives": []}
        self.starts = np.zeros((len(NIGHTS), len(ticks) + 1), dtype=np.int64)

    def add(self, pair: Pair, facts: Sequence[Row], edge_no: Mapping[str | None, int]) -> None:
        """Take in one pair that has lived."""
        offset = self.births
        self.births += pair.births
        first_row: dict[int, int] = {}
        edge_of: dict[int, int] = {}
        for event in pair.events:
            if event.fact is None:
                self.rows["derived"].append(_derived(event, offset, edge_no))
                self._count_ending(event)
            else:
                row = facts[event.fact]["row"]
                first_row.setdefault(event.life, row)
                self.rows["outcomes"].append(_outcome(event, offset, row, facts[event.fact]["edge_no"]))
            edge_of.setdefault(event.life, edge_no[event.dst_version])
        for record in pair.records.values():
            self.rows["records"].append(_record(record, offset, edge_no))
            edge_of.setdefault(record.life, edge_no[record.dst_version])
        for life in range(pair.births):
            number = pair.numbers.get(life, NEW)
            record = _last_name(pair, life)
            self.rows["lives"].append(
                {
                    "life": offset + life,
                    "edge_no": edge_of.get(life),
                    "mnest_no": None if number == NEW else number,
                    "record": None if record is None else offset + record,
                    "first_row": first_row.get(life),
                }
            )
        for since, last, proto in pair.aged:
            for name in ("decayed", "decayed_protos") if proto else ("decayed",):
                self._count(name, since, 1)
                self._count(name, last + 1, -1)

    def folded(self) -> Folded:
        """Everything as frames."""

        def frame(name: str, schema: dict[str, pl.DataType]) -> pl.DataFrame:
            return pl.DataFrame(self.rows[name], schema=schema, orient="row")

        nights = np.cumsum(self.starts, axis=1)[:, : len(self.ticks)]
        return Folded(
            outcomes=_instants(frame("outcomes", _in_us(OUTCOMES)), OUTCOMES),
            derived=_instants(frame("derived", _in_us(DERIVED)), DERIVED),
            records=_instants(frame("records", _in_us(RECORDS)), RECORDS),
            lives=frame("lives", LIVES),
            nights=pl.DataFrame({"ts_ager": pl.Series(self.ticks, dtype=pl.Int64).cast(INSTANT)}).with_columns(
                pl.Series(name, nights[i]) for i, name in enumerate(NIGHTS)
            ),
        )

    def _count_ending(self, event: Event) -> None:
        """Count what an ager ended; a merge by hand is no ager's."""
        name = {"demote": "demoted_to_decaying", "purge": "purged_protos"}.get(event.kind)
        if event.kind == "merge" and event.seq == MERGE_SEQ:
            name = "merged"
        if name is not None:
            tick = int(np.searchsorted(self.ticks, event.ts))
            self._count(name, tick, 1)
            self._count(name, tick + 1, -1)

    def _count(self, name: str, tick: int, n: int) -> None:
        self.starts[NIGHTS.index(name), tick] += n


def _outcome(event: Event, offset: int, row: int, edge_no: int) -> Row:
    return {
        "row": row,
        "edge_no": edge_no,
        "life": None if event.life < 0 else offset + event.life,
        "ts": event.ts,
        "weight": event.weight,
        "delta": event.delta,
        "refusal": event.refusal,
    }


def _derived(event: Event, offset: int, edge_no: Mapping[str | None, int]) -> Row:
    return {
        "kind": event.kind,
        "ts": event.ts,
        "seq": event.seq,
        "edge_no": edge_no[event.dst_version],
        "life": offset + event.life,
        "weight": event.weight,
        "old_state": event.old_state,
        "new_state": event.new_state,
        "other": None if event.other is None else offset + event.other,
        "detail": None if event.last is None else last_state_of(event.last),
    }


def _record(record: Record, offset: int, edge_no: Mapping[str | None, int]) -> Row:
    return {
        "life": offset + record.life,
        "edge_no": edge_no[record.dst_version],
        "weight": record.weight,
        "uses": record.uses,
        "ts_first": record.ts_first,
        "ts_last": record.ts_last,
        "ts_used": record.ts_used,
        "decay_lambda": record.decay_lambda,
        "state": record.state,
        "tags": list(record.tags),
        "desired_sig": record.desired_sig,
        "untimed": record.untimed,
    }


def _last_name(pair: Pair, life: int) -> int | None:
    """The life that names the record that this one ended up in; None if it was purged."""
    name: int | None = life
    while name is not None and name in pair.ended:
        name = pair.ended[name]
    return name


def _in_us(schema: dict[str, pl.DataType]) -> dict[str, pl.DataType]:
    return {name: pl.Int64() if dtype == INSTANT else dtype for name, dtype in schema.items()}


def _instants(frame: pl.DataFrame, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return frame.with_columns(pl.col(name).cast(INSTANT) for name, dtype in schema.items() if dtype == INSTANT)
