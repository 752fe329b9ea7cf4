"""The edge memory's tables, read and written set by set: edges, facts, ticks, lives, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.edge_keys import KEYS, number_keys
from mnemokit.fold_frames import INSTANT, TAGS, Folded, Schema
from mnemokit.fold_kernel import Ints
from mnemokit.store import Connection, fetch, lend, new_ids, query, take_numbers

HISTORY: Schema = {
    "seq": pl.Int64(),
    "edge_no": pl.Int32(),
    "mnest_no": pl.Int32(),
    "ts": INSTANT,
    "kind": pl.String(),
    "untimed": pl.Boolean(),
    "turn_no": pl.Int64(),
    "turn_id": pl.String(),
    "decay_lambda": pl.Float64(),
    "tags": TAGS,
    "desired_sig": pl.String(),
    "old_state": pl.String(),
    "new_state": pl.String(),
    "reason": pl.String(),
    "detail": pl.String(),
}
"""Facts as they are stored; mnest_no is null for a fact that is new."""

QUERY_USES: Schema = {
    "query": pl.String(),
    "tool": pl.String(),
    "args_shape": pl.String(),
    "uses": pl.Int64(),
    "ok": pl.Int64(),
    "fail": pl.Int64(),
    "ts_first": INSTANT,
    "ts_last": INSTANT,
}
"""Columns of uses of canonical queries."""

DELETE_EDGES = (
    "DELETE FROM mnests WHERE edge_no IN (SELECT edge_no FROM lent_edges)",
    "DELETE FROM mnest_lives WHERE edge_no IN (SELECT edge_no FROM lent_edges)",
    "DELETE FROM edge_events WHERE edge_no IN (SELECT edge_no FROM lent_edges)",
)


def edge_frame(edge_nos: pl.Series | Sequence[int]) -> pl.DataFrame:
    """Edge numbers as a frame to lend."""
    return pl.DataFrame({"edge_no": pl.Series(edge_nos, dtype=pl.Int32)}).unique()


def edges_for(con: Connection, keys: pl.DataFrame) -> pl.Series:
    """Edge numbers of these keys (``KEYS``, each once), in their order; edges not met before get a number."""
    numbered = keys.select(KEYS).with_row_index("key_no")
    with lend(con, lent_keys=numbered):
        known = fetch(con, query("mnest_known_edges"))
        if known.height < keys.height:
            new = numbered.join(known.select(pl.col("key_no").cast(pl.UInt32)), on="key_no", how="anti")
            first = take_numbers(con, "edge_no", new.height)
            new = new.with_columns(edge_no=pl.int_range(first, first + new.height, dtype=pl.Int32()))
            with lend(con, lent_edges=new):
                con.execute(
                    "INSERT INTO edges BY NAME "
                    "SELECT edge_no, src_executor, src_version, dst_executor, dst_version FROM lent_edges"
                )
            known = pl.concat(
                [known.select(pl.col("key_no").cast(pl.UInt32), pl.col("edge_no").cast(pl.Int32)),
                 new.select("key_no", "edge_no")]
            )  # fmt: skip
    return known.sort("key_no")["edge_no"].cast(pl.Int32)


def number_edges(con: Connection, passings: pl.DataFrame) -> pl.Series:
    """The edge number of each passing."""
    place, keys = number_keys(passings)
    return edges_for(con, keys).gather(pl.Series(place))


def pair_edges(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Every edge of the pairs that these edges belong to: ``fold_frames.EDGES``, ``KEYS`` and ts_acted."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_edges_of_pairs")).with_columns(pl.col("edge_no", "pair_no").cast(pl.Int32))


def ticks_so_far(con: Connection) -> Ints:
    """All ager instants, ascending, in microseconds since 1970."""
    rows = fetch(con, "SELECT DISTINCT epoch_us(ts_ager) AS tick FROM ager_runs ORDER BY tick")
    return rows["tick"].to_numpy().astype(np.int64)


def newest_tick(con: Connection) -> datetime | None:
    """The newest ager instant."""
    return con.execute("SELECT max(ts_ager) FROM ager_runs").fetchall()[0][0]


def facts_of(con: Connection, edges: pl.DataFrame, before: datetime | None = None) -> pl.DataFrame:
    """Facts of these edges, up to an instant if one is given, in order of time: ``HISTORY``."""
    with lend(con, lent_edges=edges):
        found = fetch(con, query("mnest_facts_of"), {"before": before})
    return found.select(pl.col(name).cast(dtype) for name, dtype in HISTORY.items())


def records_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Records of these edges, for a fold to go on from."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_records_of")).with_columns(pl.col("life", "edge_no").cast(pl.Int32))


def lives_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Every life that these edges ever had: mnest_no, mnest_id, edge_no, record_no."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_lives_of"))


def numbers_of(con: Connection, mnest_ids: pl.Series) -> pl.Series:
    """The numbers of these records, in their order."""
    lives = fetch(con, "SELECT mnest_no, mnest_id FROM mnest_lives WHERE list_contains($ids, mnest_id)",
                  {"ids": mnest_ids.to_list()})  # fmt: skip
    found = mnest_ids.to_frame("mnest_id").join(lives, on="mnest_id", how="left", maintain_order="left")
    return found["mnest_no"].cast(pl.Int32)


def add_ticks(con: Connection, nights: pl.DataFrame, kind: str, params_json: str, seconds: float) -> None:
    """Note ager instants with their counts: ts_ager and the counts that there are."""
    rows = nights.with_columns(
        kind=pl.lit(kind), params=pl.lit(params_json), seconds=pl.lit(seconds / max(1, nights.height))
    )
    with lend(con, lent_nights=rows):
        con.execute("INSERT INTO ager_runs BY NAME SELECT * FROM lent_nights")


@dataclass(frozen=True, slots=True)
class Written:
    """Lives by number: what each life of a fold is called in the store."""

    mnest_no: pl.Series
    mnest_id: pl.Series


def write_continued(con: Connection, folded: Folded, facts: pl.DataFrame, old_lives: pl.DataFrame) -> Written:
    """Write a fold that went on from stored records: what it changed takes their place."""
    numbers = _number_lives(con, folded, old_lives)
    lives = folded.lives.with_columns(numbers=numbers.mnest_no.gather(folded.lives["life"]))
    kept = lives.filter(pl.col("mnest_no").is_not_null())
    record_no = numbers.mnest_no.gather(lives["record"])
    with lend(con, lent_kept=kept.select("mnest_no")):
        con.execute("DELETE FROM mnests WHERE mnest_no IN (SELECT mnest_no FROM lent_kept)")
    moved = (
        lives.select(before="mnest_no", now=record_no)
        .filter(pl.col("before").is_not_null() & pl.col("before").ne_missing(pl.col("now")))
    )  # fmt: skip
    if moved.height:
        with lend(con, lent_moved=moved):
            con.execute(
                "UPDATE mnest_lives SET record_no = lent_moved.now FROM lent_moved WHERE record_no = lent_moved.before"
            )
    _insert_lives(con, folded, numbers, lives["mnest_no"].is_null())
    _insert_records_and_events(con, folded, facts, numbers)
    return numbers


def write_refolded(
    con: Connection, edges: pl.DataFrame, folded: Folded, facts: pl.DataFrame, old_lives: pl.DataFrame
) -> Written:
    """Write the fold of the whole history of these edges over what they had."""
    numbers = _number_lives(con, folded, old_lives)
    with lend(con, lent_edges=edges):
        for statement in DELETE_EDGES:
            con.execute(statement)
    _insert_lives(con, folded, numbers, pl.repeat(True, folded.lives.height, eager=True))
    refused = folded.outcomes.filter(pl.col("life").is_null())
    if refused.height:
        # A fact without effect stays with the record that it was asked of, even if nothing else is left of that one.
        asked = facts["mnest_no"].gather(refused["row"]).unique()
        gone = old_lives.filter(pl.col("mnest_no").is_in(asked.implode())).filter(
            ~pl.col("mnest_no").is_in(numbers.mnest_no.implode())
        )
        with lend(con, lent_lives=gone):
            con.execute("INSERT INTO mnest_lives SELECT mnest_no, mnest_id, edge_no, NULL FROM lent_lives")
    _insert_records_and_events(con, folded, facts, numbers)
    return numbers


def _number_lives(con: Connection, folded: Folded, old_lives: pl.DataFrame) -> Written:
    """Lives that go on keep number and id; the others get new ones."""
    lives = folded.lives.select("life", "mnest_no").sort("life").join(
        old_lives.select(pl.col("mnest_no").cast(pl.Int32), "mnest_id"), on="mnest_no", how="left",
        maintain_order="left",
    )  # fmt: skip
    fresh = lives["mnest_no"].is_null()
    n = int(fresh.sum())
    if not n:
        return Written(lives["mnest_no"], lives["mnest_id"])
    first = take_numbers(con, "mnest_no", n)
    place = fresh.cum_sum().cast(pl.Int64) - 1
    ids = pl.Series(new_ids("mn_", n))
    lives = lives.with_columns(
        mnest_no=pl.when(fresh).then((place + first).cast(pl.Int32)).otherwise("mnest_no"),
        mnest_id=pl.when(fresh).then(ids.gather(place.clip(0))).otherwise("mnest_id"),
    )
    return Written(lives["mnest_no"], lives["mnest_id"])


def _insert_lives(con: Connection, folded: Folded, numbers: Written, chosen: pl.Series) -> None:
    lives = folded.lives.select(
        mnest_no=numbers.mnest_no.gather(folded.lives["life"]),
        mnest_id=numbers.mnest_id.gather(folded.lives["life"]),
        edge_no="edge_no",
        record_no=numbers.mnest_no.gather(folded.lives["record"]),
    ).filter(chosen)
    if lives.height:
        with lend(con, lent_lives=lives):
            con.execute("INSERT INTO mnest_lives BY NAME SELECT * FROM lent_lives")


def _insert_records_and_events(con: Connection, folded: Folded, facts: pl.DataFrame, numbers: Written) -> None:
    records = folded.records.with_columns(mnest_no=numbers.mnest_no.gather(folded.records["life"]))
    if records.height:
        with lend(con, lent_records=records):
            con.execute(query("mnest_insert_records"))
    for events in (_fact_events(folded, facts, numbers), _derived_events(folded, numbers)):
        if events.height:
            with lend(con, lent_events=events):
                con.execute(query("mnest_insert_events"))


def _fact_events(folded: Folded, facts: pl.DataFrame, numbers: Written) -> pl.DataFrame:
    told = folded.outcomes
    rows = told["row"]
    columns = [
        facts[name].gather(rows) if name in facts.columns else pl.lit(None).alias(name)
        for name in HISTORY
        if name not in ("mnest_no", "kind", "edge_no", "untimed", "ts")
    ]
    kind = facts["kind"].gather(rows) if "kind" in facts.columns else pl.lit("passing").alias("kind")
    untimed = facts["untimed"].gather(rows) if "untimed" in facts.columns else pl.lit(False).alias("untimed")
    events = told.select("edge_no", "ts", "weight", "delta", kind, untimed, *columns,
                         numbers.mnest_no.gather(told["life"]).alias("mnest_no"))  # fmt: skip
    if told["life"].null_count():
        asked = facts["mnest_no"].gather(rows)
        events = events.with_columns(mnest_no=pl.coalesce("mnest_no", asked))
    return events


def _derived_events(folded: Folded, numbers: Written) -> pl.DataFrame:
    derived = folded.derived
    joined = derived.select(into=numbers.mnest_id.gather(derived["other"]))
    joined = joined.select(
        pl.when(pl.col("into").is_not_null()).then(pl.struct("into").struct.json_encode())
    ).to_series()
    return derived.select(
        "seq",
        "edge_no",
        "ts",
        "kind",
        "weight",
        "old_state",
        "new_state",
        numbers.mnest_no.gather(derived["life"]).alias("mnest_no"),
        pl.coalesce("detail", joined).alias("detail"),
        untimed=pl.lit(False),
        **{
            name: pl.lit(None)
            for name in ("delta", "turn_no", "turn_id", "decay_lambda", "tags", "desired_sig", "reason")
        },
    )
