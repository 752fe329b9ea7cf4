"""An outcome that a session tells late reaches its run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.doctor import check_store

CLOSED = pl.DataFrame(
    {
        "session_id": ["s", "s", "s", "t", "t"],
        "step": [0, 1, 2, 0, 1],
        "executor": ["find", "buy", None, "find", "buy"],
        "question": ["q", None, None, "q", None],
        "scope": ["shop", None, None, "shop", None],
        "session_outcome": [None, None, "success", None, "failure"],
    }
).with_columns(ts=pl.datetime(2025, 1, 1, time_zone="UTC") + pl.duration(minutes=pl.int_range(pl.len())))


def runs(mem: mk.Memory) -> list[tuple]:
    found = mem.frame("runs").join(mem.frame("reasonlets"), on="reasonlet_id")
    return sorted(found.select("session_id", "outcome", "scope", "question").rows())


TOLD = [("s", "success", "shop", "q"), ("t", "failure", "shop", "q")]


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_the_closing_row_of_a_session_tells_its_outcome(chunk_rows: int) -> None:
    with mk.open() as mem:
        mem.replay(CLOSED, chunk_rows=chunk_rows)
        assert runs(mem) == TOLD


def test_a_turn_log_tells_the_outcome_once_it_is_known(tmp_path: Path) -> None:
    with mk.TurnLog(tmp_path / "turns.jsonl") as log:
        log.append(session_id="s", step=0, executor="find")
        log.append(session_id="s", step=1, executor=None, session_outcome="success")
    with mk.open() as mem:
        mem.replay(tmp_path / "turns.jsonl")
        assert mem.frame("runs")["outcome"].to_list() == ["success"]


def parts() -> list[pl.DataFrame]:
    return [CLOSED.filter(pl.col("step") < 1), CLOSED.filter(pl.col("step") < 2), CLOSED]


@pytest.mark.parametrize("parents", ["same_question", "none", "recall"])
def test_an_outcome_that_becomes_known_in_a_later_call_reaches_the_run_once(parents: str) -> None:
    with mk.open() as mem:
        counts: list[list[tuple]] = []
        for part in [*parts(), CLOSED]:
            mem.replay(part, parents=parents)
            counts.append(mem.reasonlets.rank(scope="shop").select(pl.col("n", "s").sum()).rows())
            assert check_store(mem).filter(~pl.col("ok")).rows() == []
        assert runs(mem) == TOLD
        assert counts == [[(0, 0)], [(1, 0)], [(2, 1)], [(2, 1)]]
        assert mem.frame("runs").height == 2


def test_an_outcome_that_is_known_is_never_changed_by_a_later_turn() -> None:
    with mk.open() as mem:
        mem.replay(CLOSED.with_columns(session_outcome=pl.lit("failure")).head(2))
        mem.replay(CLOSED)
        assert runs(mem)[0][:2] == ("s", "failure")


def test_a_verdict_stands_over_an_outcome_that_becomes_known_later() -> None:
    with mk.open() as mem:
        mem.replay(CLOSED.head(2))
        mem.reasonlets.feedback(mem.frame("runs")["run_id"].item(), "failure", at="2025-02-01T00:00:00Z")
        mem.replay(CLOSED.head(3))
        run = mem.frame("runs").row(0, named=True)
        assert (run["outcome"], run["verdict"]) == ("success", "failure")
        assert mem.reasonlets.rank(scope="shop").select("n", "s").rows() == [(1, 0)]
        assert check_store(mem).filter(~pl.col("ok")).rows() == []


def test_a_source_whose_outcomes_came_late_is_taken_back_whole() -> None:
    with mk.open() as mem:
        for part in parts():
            mem.replay(part, label="mistake")
        mem.remove_source("mistake")
        for table in ("turns", "runs", "reasonlets", "mnests"):
            assert mem.frame(table).height == 0, table
        assert mem.sql("SELECT count(*) AS n FROM run_counts")["n"].item() == 0
        mem.replay(CLOSED, label="mistake")
        assert runs(mem) == TOLD
