"""A replay that an error stopped ends, once it is called again, as one that nobody disturbed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.turns.passings import PASSINGS_SCHEMA, grouped

EDGE = ["src_executor", "src_version", "dst_executor", "dst_version", "weight", "uses", "ts_first", "ts_last", "state"]


def log(source: str, day: int, *, sessions: int = 3) -> pl.DataFrame:
    """Three sessions of three steps, one after the other."""
    places = pl.DataFrame({"n": range(sessions * 3)})
    return places.select(
        source=pl.lit(source),
        session_id=pl.format("{}{}", pl.lit(source), pl.col("n") // 3),
        step=pl.col("n") % 3,
        executor=pl.format("{}", pl.lit("abc").str.slice(pl.col("n") % 3, 1)),
        ts=pl.datetime(2025, 1, day, 1, time_zone="UTC") + pl.duration(hours=pl.col("n")),
        question=pl.lit(f"q{source}"),
        session_outcome=pl.lit("success"),
    )


def write(folder: Path, *sources: str) -> None:
    for source in sources:
        log(source, 1 + "ZAB".index(source)).write_parquet(folder / f"{source}.parquet")


def comparable(mem: mk.Memory) -> dict[str, list[tuple]]:
    runs = mem.frame("runs").join(mem.frame("reasonlets").select("reasonlet_id", "version"), on="reasonlet_id")
    return {
        "turns": sorted(mem.frame("turns").select("source", "session_id", "step").rows()),
        "edges": sorted(mem.frame("mnests").select(pl.col(EDGE).cast(pl.String)).rows()),
        "runs": sorted(runs.select("source", "session_id", "version", "outcome", "ts_run").rows()),
        "ticks": mem.frame("ager_runs")["ts_ager"].to_list(),
    }


def unfinished(mem: mk.Memory) -> list[tuple]:
    return mem.sql("SELECT replay_no, sources FROM replays WHERE NOT finished ORDER BY replay_no").rows()


def stop_after_a(mem: mk.Memory, folder: Path) -> None:
    """Replay A and a broken B: A's chunk stands, its sessions are not captured yet."""
    (folder / "B.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(mk.CorruptLog, match=r"B\.parquet.*9 turns of what was read before are in the store"):
        mem.replay([folder / "A.parquet", folder / "B.parquet"], source="turns", chunk_rows=5)
    assert (mem.frame("turns").height, mem.frame("runs").height) == (9, 0)


@pytest.mark.parametrize("files", ["ZAB", "AZB", "ZBA"])
def test_what_an_interrupted_call_left_is_captured_whichever_source_comes_first(tmp_path: Path, files: str) -> None:
    with mk.open() as mem, mk.open() as whole:
        write(tmp_path, "Z", "A", "B")
        stop_after_a(mem, tmp_path)
        write(tmp_path, "B")
        paths = [tmp_path / f"{name}.parquet" for name in files]
        report = mem.replay(paths, chunk_rows=5)
        undisturbed = whole.replay(paths, chunk_rows=5)
        assert (report.captures, report.sessions, report.duplicates) == (9, 9, 9)
        assert (undisturbed.captures, undisturbed.sessions) == (9, 9)
        assert comparable(mem) == comparable(whole)
        assert unfinished(mem) == []


def test_a_call_that_takes_up_one_source_of_an_interrupted_call_leaves_the_other_one_owed(tmp_path: Path) -> None:
    with mk.open() as mem:
        write(tmp_path, "Z", "A", "B")
        (tmp_path / "C.parquet").write_bytes(b"PAR1 and then nothing")
        broken = [tmp_path / "A.parquet", tmp_path / "B.parquet", tmp_path / "C.parquet"]
        with pytest.raises(mk.CorruptLog):
            mem.replay(broken, source="turns", chunk_rows=5)
        assert (mem.frame("turns").height, mem.frame("runs").height) == (18, 0)
        assert mem.replay(tmp_path / "A.parquet").captures == 3
        assert [sources for _, sources in unfinished(mem)] == [["B"]]
        report = mem.replay(tmp_path / "B.parquet")
        assert (report.turns, report.captures, report.sessions) == (0, 3, 3)
        assert unfinished(mem) == []


def test_a_call_with_another_ager_takes_up_what_is_not_captured(tmp_path: Path) -> None:
    with mk.open() as mem:
        write(tmp_path, "A")
        stop_after_a(mem, tmp_path)
        assert mem.replay(tmp_path / "A.parquet", ager=None).captures == 3
        assert unfinished(mem) == []


def test_a_resumed_call_counts_its_own_sessions_only(tmp_path: Path) -> None:
    with mk.open() as mem:
        write(tmp_path, "Z", "A")
        stop_after_a(mem, tmp_path)
        assert mem.replay(tmp_path / "Z.parquet").sessions == 3
        assert mem.replay(tmp_path / "A.parquet").sessions == 3


def reading(mem: mk.Memory) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A policy that looks into the memory that it is replayed into."""

    def policy(turns: pl.DataFrame) -> pl.DataFrame:
        mem.frame("mnests")
        return grouped(turns)

    return policy


@pytest.mark.parametrize("options", [{"strict": True}, {"dry_run": True}, {"chunk_rows": 2}])
def test_a_policy_that_reads_the_memory_it_is_replayed_into_does_not_hang(options: dict[str, int]) -> None:
    reports: list[mk.ReplayReport] = []
    with mk.open() as mem:
        turns = log("A", 1)
        work = threading.Thread(
            target=lambda: reports.append(mem.replay(turns, passings=reading(mem), **options)),
            daemon=True,
        )
        work.start()
        work.join(timeout=60)
        assert not work.is_alive()
        assert [report.passings for report in reports] == [6]


@pytest.mark.parametrize("chunk_rows", [2, 100])
@pytest.mark.parametrize("numbered", [True, False])
def test_a_passing_to_what_is_no_turn_is_refused(chunk_rows: int, numbered: bool) -> None:
    def elsewhere(turns: pl.DataFrame) -> pl.DataFrame:
        made = grouped(turns).with_columns(turn_id=pl.lit("nowhere"))
        return made if numbered else made.select(list(PASSINGS_SCHEMA))

    with mk.open() as mem:
        with pytest.raises(mk.InvalidInput, match=r"'elsewhere'.*turn_id='nowhere', step=1.*no turn") as caught:
            mem.replay(log("A", 1), passings=elsewhere, chunk_rows=chunk_rows)
        assert "\n" not in str(caught.value)
        assert mem.frame("mnest_events").height == 0
        assert mem.replay(log("A", 1)).captures == 3
