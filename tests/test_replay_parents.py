"""Where a replayed capture finds its parent: by question, by recall at that time, by a function, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.replay.parents import HALF, Recall

ASKED = ["refund an order", "refund the order", "refund an order now", "change an address", "change the address now"]


def log(sessions: range) -> pl.DataFrame:
    """Sessions an hour apart, of two steps, about five questions that resemble each other; some succeed."""
    rows = [
        {
            "session_id": f"s{n:03d}",
            "step": step,
            "executor": f"tool{(n * 7 + step * (n % 3 + 1)) % 5}",
            "ts": f"2025-03-{1 + n // 24:02d}T{n % 24:02d}:0{step}:00Z",
            "question": None if n % 11 == 10 else ASKED[n * n % 5],
            "session_outcome": "success" if n % 3 else "failure",
            "scope": "shop" if n % 4 else "bank",
        }
        for n in sessions
        for step in (0, 1)
    ]
    return mk.check_turns(pl.DataFrame(rows).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC")))


def lineage(mem: mk.Memory) -> list[tuple[str, str, str | None]]:
    """Of each run, in order of time: its session, its version, and the session that its parent came from."""
    runs = mem.frame("runs").sort("ts_run")
    first = runs.unique("reasonlet_id", keep="first").select("reasonlet_id", came_from="session_id")
    return (
        runs.join(mem.frame("reasonlets").select("reasonlet_id", "version", "parent_id"), on="reasonlet_id")
        .join(first.rename({"reasonlet_id": "parent_id"}), on="parent_id", how="left")
        .sort("ts_run")
        .select("session_id", "version", "came_from")
        .rows()
    )


def by_hand(turns: pl.DataFrame) -> list[tuple[str, str, str | None]]:
    """The same by single calls: recall, then capture, session by session."""
    with mk.open() as mem:
        for row in mk.derive_captures(turns).sort("ts").iter_rows(named=True):
            parent = None
            if row["question"] is not None:
                found = mem.reasonlets.recall(
                    row["question"], row["scope"], limit=1, min_similarity=HALF, at=row["ts"], log=False
                )
                parent = None if found.is_empty() else found["reasonlet_id"][0]
            mem.reasonlets.capture(
                row["scope"],
                row["question"],
                json.loads(row["graph"]),
                outcome=row["outcome"],
                parent_id=parent,
                at=row["ts"],
                key=row["session_id"],
            )
        sessions = mk.derive_captures(turns).sort("ts")["session_id"].to_list()
        ids = mem.frame("runs").sort("ts_run")["reasonlet_id"].to_list()
        known = {}
        for session, reasonlet_id in zip(sessions, ids, strict=True):
            known.setdefault(reasonlet_id, session)
        rows = {row["reasonlet_id"]: row for row in mem.frame("reasonlets").to_dicts()}
        return [
            (session, rows[one]["version"], known.get(rows[one]["parent_id"]))
            for session, one in zip(sessions, ids, strict=True)
        ]


def test_by_recall_a_capture_follows_what_was_recalled_first_at_its_time() -> None:
    turns = log(range(40))
    with mk.open() as mem:
        report = mem.replay(turns, parents="recall")
        assert report.captures == 40
        found = lineage(mem)
    assert found == by_hand(turns)
    assert any(parent is not None for _, _, parent in found)
    with mk.open() as mem:
        mem.replay(turns)
        assert lineage(mem) != found, "the same question alone gives another forest"


def test_by_recall_nothing_later_is_followed_whatever_is_stored_already() -> None:
    with mk.open() as mem:
        mem.replay(log(range(20, 40)), parents="recall")
        mem.replay(log(range(20)), parents="recall")
        early = [row for row in lineage(mem) if row[0] < "s020"]
    assert early == by_hand(log(range(20)))


@pytest.mark.parametrize("chunk_rows", [3, 17])
def test_by_recall_small_chunks_give_what_one_chunk_gives(chunk_rows: int) -> None:
    turns = log(range(30))
    with mk.open() as mem:
        mem.replay(turns, parents="recall", chunk_rows=chunk_rows)
        assert lineage(mem) == by_hand(turns)


def test_replayed_again_nothing_is_captured_twice() -> None:
    with mk.open() as mem:
        mem.replay(log(range(12)), parents="recall")
        before = lineage(mem)
        assert mem.replay(log(range(12)), parents="recall").captures == 0
        assert lineage(mem) == before


def test_without_parents_every_capture_is_a_root_of_its_own() -> None:
    with mk.open() as mem:
        report = mem.replay(log(range(12)), parents="none")
        assert report.capture_kinds == {"new_reasonlet": 12}


def test_a_function_says_which_parent() -> None:
    asked: list[object] = []

    def second_best(capture: Mapping[str, object], recall: Recall) -> str | None:
        asked.append(capture["session_id"])
        found = recall(limit=2)
        return found["reasonlet_id"][1] if found.height > 1 else None

    with mk.open() as mem:
        mem.replay(log(range(12)), parents=second_best)
        assert asked == [f"s{n:03d}" for n in range(12)]
        assert mem.frame("reasonlets")["parent_id"].null_count() < 12


def test_a_parent_of_another_scope_is_refused_and_nothing_is_captured() -> None:
    with mk.open() as mem:
        other = mem.reasonlets.capture("elsewhere", "q", {"nodes": [{"id": "a"}]}, at="2025-01-01T00:00:00Z")
        with pytest.raises(mk.NotFound, match="scope"):
            mem.replay(log(range(5)), parents=lambda capture, recall: other.reasonlet_id)
        assert mem.frame("reasonlets").height == 1


def test_an_unknown_name_lists_the_policies() -> None:
    with mk.open() as mem, pytest.raises(mk.InvalidInput, match="same_question, recall, none; nothing was read"):
        mem.replay(log(range(2)), parents="nearest")


@pytest.mark.parametrize("what", ["passings", "captures", "parents"])
def test_a_function_that_asks_mem_sql_while_its_replay_writes_is_told_so_and_mem_frame_answers(what: str) -> None:
    with mk.open() as mem:
        ask = {
            "passings": lambda turns: asking() and mk.derive_passings(turns),
            "captures": lambda turns, passings: asking() and mk.derive_captures(turns, passings),
            "parents": lambda capture, recall: asking() and None,
        }

        def asking() -> bool:
            if mem.frame("turns").height > 0:
                mem.sql("SELECT count(*) FROM turns")
            return True

        mem.replay(log(range(5)), label="before")
        with pytest.raises(mk.QueryError, match="called while this very memory is being written"):
            # Passings are derived ahead of the write, unless all is one transaction.
            mem.replay(log(range(5, 9)), strict=what == "passings", **{what: ask[what]})
        # Afterwards it answers again.
        assert mem.sql("SELECT count(*) AS n FROM runs WHERE source <> 'before'")["n"].item() == 0
