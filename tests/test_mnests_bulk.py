"""Bulk doors of the edge memory: passings taken in, and taken back, as if they had never been."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.mnests.namespace import Mnests, ingest, withdraw, withdraw_passings
from mnemokit.store import Store

DAY0 = datetime(2025, 3, 1, 12, tzinfo=UTC)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
SCHEMA = {
    "seq": pl.Int64, "src_executor": pl.String, "src_version": pl.String, "dst_executor": pl.String,
    "dst_version": pl.String, "ts": pl.Datetime("us", "UTC"), "turn_no": pl.Int64, "turn_id": pl.String,
    "tags": pl.List(pl.String), "desired_sig": pl.String, "decay_lambda": pl.Float64, "untimed": pl.Boolean,
}  # fmt: skip


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


def passings(rows: list[tuple]) -> pl.DataFrame:
    """Rows of (seq, dst, dst_version, days, turn_no)."""
    told = [
        (seq, "a", "1", dst, version, day(n), turn, f"t{turn}", ["x"], None, 0.05, False)
        for seq, dst, version, n, turn in rows
    ]
    return pl.DataFrame(told, schema=SCHEMA, orient="row")


def state_of(mnests: Mnests) -> list[tuple]:
    """Everything but ids and numbers."""
    frame = mnests.frame().drop("mnest_id")
    events = mnests.audit(10**6).drop("mnest_id", "detail")
    events = events.with_columns(turn_id="turn_id").sort(
        "ts", "seq", "src_executor", "dst_executor", "dst_version", "kind"
    )
    return [
        *frame.sort("src_executor", "dst_executor", "dst_version", "state").rows(),
        *events.rows(),
    ]


def same(have: Mnests, want: Mnests) -> None:
    """The two stores agree in everything; weights to 1e-9 relative."""
    rows, others = state_of(have), state_of(want)
    assert len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):
        assert [pytest.approx(x, rel=1e-9) if isinstance(x, float) else x for x in row] == list(other)


def write(mnests: Mnests, work):
    return mnests._store.write(lambda con: work(con, mnests._store.edge_params))


@settings(max_examples=20, deadline=None, phases=PHASES)
@given(st.integers(0, 10**6))
def test_withdrawn_passings_leave_no_trace(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        (
            n + 1,
            rng.choice("bc"),
            rng.choice(["1", "2", None]),
            rng.choice([rng.randint(0, 60), rng.random() * 60]),
            n // 2,
        )
        for n in range(rng.randint(1, 40))
    ]
    gone = {turn for *_, turn in rows if rng.random() < 0.4}
    nights = [day(n + 0.625) for n in range(61)]
    left = [night for night in nights if rng.random() < 0.8]
    with_them, without = Mnests(Store()), Mnests(Store())
    write(with_them, lambda con, params: ingest(con, params, passings(rows), ticks=nights))
    explicit = with_them.apply_ager(day(62))
    n = write(
        with_them,
        lambda con, params: withdraw(
            con, params, pl.DataFrame({"turn_no": sorted(gone)}, schema={"turn_no": pl.Int64}), left
        ),
    )
    kept = [row for row in rows if row[4] not in gone]
    assert n == len(rows) - len(kept)
    if kept:
        write(without, lambda con, params: ingest(con, params, passings(kept), ticks=left))
    else:
        write(without, lambda con, params: ingest(con, params, passings([]), ticks=left))
    without.apply_ager(day(62))
    assert explicit is not None
    same(with_them, without)


def test_single_passings_of_a_turn_can_be_taken_back() -> None:
    rows = [(1, "b", "1", 0, 7), (2, "b", "1", 0, 7), (3, "b", "1", 1, 8), (4, "c", "1", 1, 7)]
    have, want = Mnests(Store()), Mnests(Store())
    write(have, lambda con, params: ingest(con, params, passings(rows), ticks=[day(0.5)]))
    stale = pl.DataFrame({"turn_no": [7], "src_executor": ["a"], "src_version": ["1"], "dst_executor": ["b"],
                          "dst_version": ["1"], "times": [1]})  # fmt: skip
    write(have, lambda con, params: withdraw_passings(con, params, stale))
    write(want, lambda con, params: ingest(con, params, passings([rows[0], *rows[2:]]), ticks=[day(0.5)]))
    same(have, want)


def test_bulk_and_calls_make_the_same_store() -> None:
    rows = [(n + 1, "bc"[n % 2], [None, "1"][n % 3 == 0], n * 1.7, None) for n in range(60)]
    bulk, calls = Mnests(Store()), Mnests(Store())
    nights = [day(n + 0.625) for n in range(102)]
    write(
        bulk, lambda con, params: ingest(con, params, passings(rows).with_columns(turn_id=pl.lit(None)), ticks=nights)
    )
    told = [(day(n), 1, (dst, version)) for _, dst, version, n, _ in rows]
    steps = sorted([*told, *((night, 0, None) for night in nights)], key=lambda step: step[:2])
    for at, _, edge in steps:
        if edge is None:
            calls.apply_ager(at)
        else:
            calls.record_passing("a", "1", *edge, dst_exists=edge[1] is not None, tags=["x"], decay_lambda=0.05, at=at)
    same(bulk, calls)


def test_untimed_passings_have_an_order_and_no_clock() -> None:
    untimed = passings([(n, "b", "1", 0, None) for n in (1, 2, 3)]).with_columns(
        ts=pl.from_epoch("seq", "us").dt.replace_time_zone("UTC"), untimed=True
    )  # fmt: skip
    mnests = Mnests(Store())
    write(mnests, lambda con, params: ingest(con, params, untimed))
    edge = mnests.find("a", "1", "b", "1")
    assert edge is not None
    got = mnests.get(edge)
    assert (got.weight, got.untimed, got.uses) == (pytest.approx(0.60), True, 3)
    assert mnests.apply_ager(day(0)).decayed == 0  # its clock has not started
    assert mnests.get(edge, at=day(1000)).weight_at == got.weight
    timed = passings([(10, "b", "1", 5, None)])
    write(mnests, lambda con, params: ingest(con, params, timed))
    got = mnests.get(edge)
    assert (got.weight, got.untimed, got.uses) == (pytest.approx(0.75), False, 4)  # 0 days next to an untimed passing
    assert mnests.apply_ager(day(15)).decayed == 1
    assert mnests.get(edge).weight < 0.75


def test_earlier_ticks_that_an_older_log_needs_leave_newer_edges_alone() -> None:
    mnests = Mnests(Store())
    new = passings([(1, "b", "1", 100, None), (2, "b", "1", 110, None)])
    write(mnests, lambda con, params: ingest(con, params, new, ticks=[day(101), day(105)]))
    before = mnests.frame().rows()
    old = passings([(3, "c", "1", 0, None)])
    done = write(mnests, lambda con, params: ingest(con, params, old, ticks=[day(n) for n in range(1, 100)]))
    assert mnests.frame().filter(pl.col("dst_executor") == "b").rows() == before
    assert mnests.frame().filter(pl.col("dst_executor") == "c")["state"].item() == "decaying"
    assert done.nights["decayed"].sum() > 0


def test_bulk_names_the_columns_it_needs() -> None:
    mnests = Mnests(Store())
    with pytest.raises(InvalidInput, match="dst_version"):
        write(mnests, lambda con, params: ingest(con, params, pl.DataFrame({"seq": [1]})))


def test_nightly_counts_are_kept_with_each_tick() -> None:
    mnests = Mnests(Store())
    rows = passings([(1, "b", "1", 0, None), (2, None, None, 0, None)]).with_columns(
        dst_executor=pl.col("dst_executor").fill_null("wish")
    )
    write(mnests, lambda con, params: ingest(con, params, rows, ticks=[day(n) for n in range(1, 40)]))
    with mnests._store.read() as con:
        runs = con.sql("SELECT * FROM ager_runs ORDER BY ts_ager").pl()
    edge = mnests.find("a", "1", "b", "1", state="decaying")
    assert edge is not None
    demoted = next(n for n in range(1, 40) if mnests.get(edge, at=day(n)).state == "decaying")
    assert runs.height == 39
    assert set(runs["kind"]) == {"daily"}
    assert runs["demoted_to_decaying"].to_list().index(1) + 1 == demoted
    assert runs["recurring_protos"].null_count() == 39
    assert runs["decayed"][0] == 2


def test_a_replayed_and_a_recorded_edge_are_one() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("a", "1", "b", "1", at=day(0))
        write(mem.mnests, lambda con, params: ingest(con, params, passings([(100, "b", "1", 1, None)])))
        assert mem.frame("mnests")["uses"].to_list() == [2]
