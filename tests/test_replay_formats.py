"""Every sample of every format replays, its account adds up, and a second time changes nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.doctor import check_store
from mnemokit.turns.reading import read_batches

DATA = Path(__file__).parent / "data"
ASIDE = (".py", ".md", ".txt", ".sqlite")
SAMPLES = sorted(
    path
    for folder in ("traces", "metnos")
    for path in (DATA / folder).rglob("*")
    if path.is_file() and path.suffix not in ASIDE and not path.name.startswith(("LICENSE", "README", "facts"))
)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.relative_to(DATA)))
def test_a_sample_replays_once_and_every_record_is_accounted_for(path: Path) -> None:
    read = list(read_batches(path))
    with mk.open() as mem:
        report = mem.replay(path)
        assert report.records == sum(batch.records for batch in read) > 0
        assert report.turns == mem.frame("turns").height
        assert report.rejects == mem.frame("rejects").height == sum(batch.rejects.height for batch in read)
        assert report.passings == mem.frame("mnest_events").filter(kind="passing").height
        assert report.captures == mem.frame("runs").height
        before = {table: mem.frame(table) for table in mem.tables()["table"].unique()}
        again = mem.replay(path)
        assert (again.turns, again.passings, again.captures) == (0, 0, 0)
        assert again.duplicates == report.turns + report.duplicates
        for table, frame in before.items():
            assert frame.equals(mem.frame(table)), table
        assert check_store(mem).filter(~pl.col("ok")).rows() == []


def test_all_samples_together_replay_into_one_memory() -> None:
    with mk.open() as mem:
        reports = [mem.replay(path) for path in SAMPLES]
        assert mem.frame("turns").height == sum(report.turns for report in reports)
        assert check_store(mem).filter(~pl.col("ok")).rows() == []


def test_the_repeated_turn_of_a_turn_log_is_a_duplicate_and_its_pending_line_is_not() -> None:
    with mk.open() as mem:
        report = mem.replay(DATA / "metnos" / "turns.jsonl")
        assert mem.frame("turns").select("session_id", "turn_id").unique().height >= 60
        assert report.duplicates > 0
        assert report.ignored >= 2
