"""Ticks that come late, or bring nights from before a record, and what an ager counts: as if all had come in order."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import mnemokit as mk
from mnemokit.mnests.bulk import ingest

STANDING = ("dst_version", "state", "weight", "uses", "ts_first", "ts_last", "ts_used")


def day(n: int, hour: int = 0) -> datetime:
    return datetime(2025, 3, n, hour, tzinfo=UTC)


def standing(mem: mk.Memory, at: datetime | None = None) -> pl.DataFrame:
    return mem.mnests.frame(at).filter(src_executor="A").select(STANDING).sort("dst_version", "state")


def told(mem: mk.Memory) -> list[tuple[datetime, str]]:
    return mem.frame("mnest_events").filter(src_executor="A").sort("ts", "seq").select("ts", "kind").rows()


def log(*steps: tuple[str, str, datetime]) -> pl.DataFrame:
    """Sessions of two steps at one instant, from executor to executor."""
    return mk.check_turns(
        pl.DataFrame(
            [
                {"session_id": f"s{n}", "step": step, "executor": name, "executor_version": "1", "ts": ts}
                for n, (src, dst, ts) in enumerate(steps)
                for step, name in enumerate((src, dst))
            ]
        )
    )


def promoted(mem: mk.Memory, rate: float = 0.3) -> str:
    """A proto of A, first passed to on day 1, that became version 1 on day 2."""
    mnest_id = mem.mnests.record_passing("A", "1", "B", dst_exists=False, decay_lambda=rate, at=day(1))
    mem.mnests.promote_proto_to_active(mnest_id, "1", at=day(2))
    return mnest_id


def test_a_late_ager_finds_the_life_of_a_promoted_record_from_its_time_as_a_proto() -> None:
    with mk.open() as late, mk.open() as in_order:
        for mem in (late, in_order):
            promoted(mem)
        stats = in_order.mnests.apply_ager(day(6))
        for mem in (late, in_order):
            mem.mnests.record_passing("A", "1", "B", "1", decay_lambda=0.3, at=day(11))
        assert late.mnests.apply_ager(day(6)) == stats
        assert stats.demoted_to_decaying == 1
        assert_frame_equal(standing(late), standing(in_order), rel_tol=1e-12)
        assert told(late) == told(in_order)


def test_nights_that_a_log_brings_late_find_it_too() -> None:
    with mk.open() as late, mk.open() as in_order:
        for mem in (late, in_order):
            promoted(mem)
        nights = log(("X", "Y", day(11)))
        in_order.replay(nights, captures="none")
        for mem in (late, in_order):
            mem.mnests.record_passing("A", "1", "B", "1", at=day(11))
        late.replay(nights, captures="none")
        assert_frame_equal(standing(late), standing(in_order), rel_tol=1e-12)


def test_an_ager_comes_before_an_act_of_its_instant_also_on_a_promoted_record() -> None:
    with mk.open() as late, mk.open() as in_order:
        for mem in (late, in_order):
            mnest_id = promoted(mem, rate=0.018)
            if mem is in_order:
                mem.mnests.apply_ager(day(10))
            mem.mnests.transition_state(mnest_id, "superseded", at=day(10))
        late.mnests.apply_ager(day(10))
        assert standing(late)["weight"].item() == pytest.approx(0.30 * 2.718281828459045 ** (-0.018 * 9), abs=1e-12)
        assert_frame_equal(standing(late), standing(in_order), rel_tol=1e-12)


@pytest.mark.parametrize("rate", [0.5, 0.018])
def test_nights_from_before_a_record_leave_it_alone_and_do_not_count_it(rate: float) -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("A", "1", "B", "2", at=day(10, 12))
        mem.mnests.record_passing("A", "1", "B", "1", decay_lambda=rate, at=day(10, 12))
        other = mem.mnests.record_passing("A", "1", "B", "3", at=day(10, 12))
        mem.mnests.transition_state(other, "superseded", at=day(10, 12))
        mem.mnests.apply_ager(day(10, 13))
        before = standing(mem)
        mem.replay(log(("X", "Y", day(1)), ("A", "B", day(10, 14))), captures="none")
        untouched = pl.col("dst_version").is_in(["2", "3"])
        assert_frame_equal(standing(mem).filter(untouched), before.filter(untouched))
        nights = mem.frame("ager_runs").filter(kind="daily")
        assert nights.height == 10
        assert nights["decayed"].to_list() == [1] * 10, "only X to Y was there"


@pytest.mark.parametrize(
    "params", [{"purge_below": 0.0}, {"demote_below": 0.0}, {"purge_below": 0.0, "demote_below": 0.0}], ids=str
)
def test_a_threshold_of_zero_takes_no_edge_out_of_the_count(params: dict[str, float]) -> None:
    def filled() -> mk.Memory:
        mem = mk.open(edge_params=mk.EdgeParams(**params))
        for n in range(3):
            mem.mnests.record_passing("A", "1", f"p{n}", dst_exists=False, at=day(1))
        for n in range(2):
            mem.mnests.record_passing("A", "1", f"a{n}", "1", at=day(1))
        return mem

    with filled() as in_time, filled() as late:
        late.mnests.record_passing("Z", "1", "a", "1", at=day(3))
        for mem in (in_time, late):
            stats = mem.mnests.apply_ager(day(2))
            assert (stats.decayed, stats.decayed_protos) == (5, 3)


def test_the_same_tick_again_tells_what_was_so_before_the_passings_of_its_instant() -> None:
    with mk.open() as mem:
        for n in (1, 2):
            mem.mnests.record_passing("A", "1", "B", dst_exists=False, at=day(n))
        assert mem.mnests.apply_ager(day(3)).recurring_protos == 0
        mem.mnests.record_passing("A", "1", "B", dst_exists=False, at=day(3))
        assert mem.mnests.apply_ager(day(3)).recurring_protos == 0


def test_a_record_that_an_ager_demotes_keeps_its_row_and_the_instant() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("A", "1", "B", "1", decay_lambda=0.1, at=day(1))
        mem.mnests.apply_ager(day(9))
        row = mem.sql("SELECT state, weight, ts_last, ts_demoted FROM mnest_records").row(0)
        assert row == ("active", 0.30, day(1), day(9))
        shown = standing(mem).row(0, named=True)
        assert (shown["state"], shown["ts_last"], shown["ts_used"]) == ("decaying", day(9), day(1))
        assert shown["weight"] == pytest.approx(0.30 * 2.718281828459045 ** (-0.1 * 8), abs=1e-15)
        # A later ager leaves it as it is, and a passing opens a new record.
        mem.mnests.apply_ager(day(12))
        mem.mnests.record_passing("A", "1", "B", "1", at=day(13))
        assert standing(mem).select("state", "uses", "ts_last").rows() == [
            ("active", 1, day(13)),
            ("decaying", 1, day(9)),
        ]


def test_a_batch_whose_passings_have_no_tags_after_one_that_had_is_taken_in() -> None:
    with mk.open() as mem, mk.open() as one_by_one:
        rows = [("C", day(20), ["y"]), ("B", day(5), []), ("C", day(21), [])]
        for each in (mem, one_by_one):
            each.mnests.record_passing("A", "1", "B", "1", tags=["x"], at=day(10))
        for dst, ts, tags in rows:
            one_by_one.mnests.record_passing("A", "1", dst, "1", tags=tags, at=ts)
        batch = pl.DataFrame(
            {
                "src_executor": "A",
                "src_version": "1",
                "dst_executor": [dst for dst, _, _ in rows],
                "dst_version": "1",
                "ts": [ts for _, ts, _ in rows],
                "tags": [tags for _, _, tags in rows],
                "seq": [101, 102, 103],
            }
        )
        mem._store.write(lambda con: ingest(con, mem.edge_params, batch))
        columns = ["dst_executor", "weight", "uses", "tags"]
        assert_frame_equal(
            mem.mnests.frame().select(columns).sort("dst_executor"),
            one_by_one.mnests.frame().select(columns).sort("dst_executor"),
        )
