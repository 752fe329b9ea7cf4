"""Writing a fold into the edge memory's tables, set by set."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mnemokit.fold.edge_keys import KEYS
from mnemokit.fold.edge_weights import LIVE_STATES
from mnemokit.fold.frames import INSTANT, Folded
from mnemokit.fold.kernel import Ints
from mnemokit.instants import from_us
from mnemokit.mnests import tables
from mnemokit.records import EdgeParams
from mnemokit.store import Connection, lend, new_ids, take_numbers

DELETE_EDGES = (
    "DELETE FROM mnest_records WHERE edge_no IN (SELECT edge_no FROM lent_edges)",
    "DELETE FROM mnest_lives WHERE edge_no IN (SELECT edge_no FROM lent_edges)",
    # What an imported log says of the time before it was taken over is no fact that a fold gives again.
    "DELETE FROM edge_events WHERE kind <> 'logged' AND edge_no IN (SELECT edge_no FROM lent_edges)",
)


@dataclass(frozen=True, slots=True)
class Written:
    """Lives by number: what each life of a fold is called in the store."""

    mnest_no: pl.Series
    mnest_id: pl.Series


def write_continued(
    con: Connection,
    params: EdgeParams,
    edges: pl.DataFrame,
    folded: Folded,
    facts: pl.DataFrame,
    old_lives: pl.DataFrame,
    ticks: Ints,
) -> Written:
    """Write a fold that went on from stored records, through all these ticks: what it changed takes their place."""
    numbers = _number_lives(con, folded, old_lives)
    lives = folded.lives.with_columns(numbers=numbers.mnest_no.gather(folded.lives["life"]))
    kept = lives.filter(pl.col("mnest_no").is_not_null())
    record_no = numbers.mnest_no.gather(lives["record"])
    with lend(con, lent_kept=kept.select("mnest_no")):
        con.execute("DELETE FROM mnest_records WHERE mnest_no IN (SELECT mnest_no FROM lent_kept)")
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
    _insert_records(con, edges, folded, numbers, ticks)
    _insert_events(con, params, folded, facts, numbers)
    return numbers


def write_refolded(
    con: Connection,
    params: EdgeParams,
    edges: pl.DataFrame,
    folded: Folded,
    facts: pl.DataFrame,
    old_lives: pl.DataFrame,
    ticks: Ints,
) -> Written:
    """Write the fold of the whole history of these edges, through all these ticks, over what they had."""
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
    _insert_records(con, edges, folded, numbers, ticks)
    _insert_events(con, params, folded, facts, numbers)
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


def _insert_records(con: Connection, edges: pl.DataFrame, folded: Folded, numbers: Written, ticks: Ints) -> None:
    records = folded.records
    if not records.height:
        return
    if len(ticks):
        # A live record that the newest tick did not bring up to date was no live one then: somebody made it one later.
        newest = pl.lit(from_us(int(ticks[-1]))).cast(INSTANT)
        passed = pl.col("state").is_in(LIVE_STATES) & ~pl.col("untimed") & (pl.col("ts_last") < newest)
        records = records.with_columns(aged_until=pl.when(passed).then(newest))
    named = records.drop("life").with_columns(
        mnest_no=numbers.mnest_no.gather(records["life"]), mnest_id=numbers.mnest_id.gather(records["life"])
    ).join(edges.select("edge_no", *KEYS), on="edge_no", how="left")  # fmt: skip
    with lend(con, lent_records=named):
        con.execute("INSERT INTO mnest_records BY NAME SELECT * FROM lent_records")


def _insert_events(con: Connection, params: EdgeParams, folded: Folded, facts: pl.DataFrame, numbers: Written) -> None:
    for events in (_fact_events(params, folded, facts, numbers), _derived_events(folded, numbers)):
        if events.height:
            with lend(con, lent_events=events):
                con.execute("INSERT INTO edge_events BY NAME SELECT * FROM lent_events")


def _fact_events(params: EdgeParams, folded: Folded, facts: pl.DataFrame, numbers: Written) -> pl.DataFrame:
    """A row of history per fact; columns that no fact fills are left to the table's default."""
    told = folded.outcomes
    defaults = {"kind": "passing", "untimed": False, "decay_lambda": params.decay_lambda}
    taken = [name for name in tables.HISTORY if name in facts.columns and name not in ("edge_no", "ts", "mnest_no")]
    taken = [name for name in taken if facts[name].null_count() < facts.height]
    given = [pl.lit(value).alias(name) for name, value in defaults.items() if name not in facts.columns]
    mnest_no = numbers.mnest_no.gather(told["life"]).alias("mnest_no")
    events = told.select(
        "edge_no", "ts", "weight", "delta", *given, *(facts[name].gather(told["row"]) for name in taken), mnest_no
    )
    if told["life"].null_count():
        asked = facts["mnest_no"].gather(told["row"])
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
        untimed=pl.lit(value=False),
    )
