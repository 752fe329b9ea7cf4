"""Odd rows of a log in a replay: they cost the good rows beside them nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.replay.ticks import Bounds, daily_ticks
from mnemokit.turns.frame import END_OF_INSTANTS

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


def session(name: str, **columns: object) -> pl.DataFrame:
    steps = {"session_id": [name] * 2, "step": [0, 1], "executor": ["find", "buy"], "ts": [NOON, NOON]}
    return pl.DataFrame(steps | {column: [value] * 2 for column, value in columns.items()})


def test_a_row_with_an_empty_scope_question_or_person_blocks_no_capture(tmp_path: Path) -> None:
    log = pl.concat(
        [session("s1", scope="", question="", user_id=""), session("s2", scope="x", question="q", user_id="u")]
    )
    log.write_parquet(tmp_path / "turns.parquet")
    log.with_columns(pl.col("ts").dt.to_string("iso:strict")).write_ndjson(tmp_path / "turns.jsonl")
    for given in (log, tmp_path / "turns.parquet", tmp_path / "turns.jsonl"):
        with mk.open() as mem:
            report = mem.replay(given, progress=False)
            assert (report.turns, report.captures, report.rejects) == (4, 2, 0)
            assert mem.frame("reasonlets").sort("scope")["scope"].to_list() == ["turns", "x"]
            assert mem.frame("turns").filter(session_id="s1")["user_id"].null_count() == 2


@pytest.mark.parametrize("year", [9999, 2500, 1969])
def test_a_row_of_an_impossible_year_is_a_reject_and_brings_no_night(year: int) -> None:
    odd = session("s2").with_columns(ts=pl.lit(datetime(year, 12, 31, 12, tzinfo=UTC)).cast(pl.Datetime("us", "UTC")))
    with mk.open() as mem:
        report = mem.replay(pl.concat([session("s1"), odd]))
        assert (report.turns, report.passings, report.captures, report.rejects, report.ticks) == (2, 1, 1, 2, 0)
        assert mem.frame("mnests")["weight"].item() == 0.30


def test_nights_end_where_instants_of_turns_do() -> None:
    """A passing that a caller recorded may be of any year; nightly agers follow it no further than logs can reach."""
    last = END_OF_INSTANTS - timedelta(days=2)
    for far in (END_OF_INSTANTS, datetime(2500, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)):
        ticks = daily_ticks(Bounds(last, far), 3)
        assert ticks == [last.replace(hour=3), last.replace(hour=3) + timedelta(days=1)]
    beyond = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert daily_ticks(Bounds(beyond, beyond), 3) == []


def test_rejects_of_a_frame_are_all_kept_whatever_the_chunks() -> None:
    bad = pl.DataFrame({"session_id": ["s", "", "", "", ""], "step": range(5), "executor": ["a"] * 5})
    with mk.open() as mem:
        assert mem.replay(bad, chunk_rows=1).rejects == 4
        assert mem.frame("rejects").select("file", "place").rows() == [("frame", f"row {row}") for row in range(1, 5)]
        assert mem.replay(bad, chunk_rows=3).rejects == 4
        assert mem.frame("rejects").height == 4
    with mk.open() as mem, pytest.raises(mk.CorruptLog, match="frame: row 1: session_id is empty; strict"):
        mem.replay(bad, strict=True, chunk_rows=1)


def test_an_empty_file_beside_a_log_is_passed_over_in_a_replay(tmp_path: Path) -> None:
    session("s1").write_parquet(tmp_path / "a.parquet")
    (tmp_path / "live.jsonl").write_text("")
    with mk.open() as mem:
        report = mem.replay(str(tmp_path / "*"), strict=True, progress=False)
        assert (report.turns, report.captures, report.source) == (2, 1, "turns")
        assert "empty and passed over: live.jsonl" in report.why


@pytest.mark.parametrize("chunk_rows", [1, 100])
@pytest.mark.parametrize("form", ["frame", "turns.parquet", "turns.csv"])
def test_a_source_that_is_removed_takes_its_rejects_along_and_no_others(
    tmp_path: Path, form: str, chunk_rows: int
) -> None:
    log = pl.DataFrame(
        {"source": ["a", "a", "b", "b"], "session_id": ["s", "t", "s", "t"], "step": range(4), "executor": ["x"] * 4}
    ).with_columns(session_outcome=pl.when(session_id=pl.lit("t")).then(pl.lit("won")))
    if form == "turns.parquet":
        log.write_parquet(tmp_path / form)
    elif form == "turns.csv":
        log.write_csv(tmp_path / form)
    with mk.open() as mem:
        report = mem.replay(log if form == "frame" else tmp_path / form, chunk_rows=chunk_rows, progress=False)
        assert (report.turns, report.rejects, report.source) == (2, 2, "a, b")
        assert sorted(mem.frame("rejects")["source"]) == ["a", "b"]
        removed = mem.remove_source("a")
        assert (removed.turns, removed.rejects) == (1, 1)
        assert mem.frame("rejects")["source"].to_list() == ["b"]


def test_an_erasure_finds_the_rejects_of_a_person_in_every_form(tmp_path: Path) -> None:
    log = session("s", user_id="Ada", session_outcome="won")
    log.write_parquet(tmp_path / "turns.parquet")
    log.with_columns(pl.col("ts").dt.to_string("iso:strict")).write_csv(tmp_path / "turns.csv")
    for given in (log, tmp_path / "turns.parquet", tmp_path / "turns.csv"):
        with mk.open() as mem:
            with pytest.warns(mk.RejectedRecords, match="not one of 2 records could be used"):
                assert mem.replay(given, progress=False).rejects == 2
            assert mem.frame("rejects")["excerpt"].null_count() == 0
            mem.reasonlets.erase_subject("Ada")
            assert mem.frame("rejects")["excerpt"].null_count() == 2
