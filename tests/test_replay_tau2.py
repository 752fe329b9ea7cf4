"""The bundled real log, replayed whole: every figure equals a plain count, every edge the plain-Python fold."""

from __future__ import annotations

import random
from collections import Counter

import polars as pl
import pytest

import mnemokit as mk
from tests.oracles import replay as oracle


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return mk.datasets.tau2().to_dicts()


@pytest.fixture(scope="module")
def replayed() -> tuple[mk.Memory, mk.ReplayReport]:
    mem = mk.open()
    return mem, mem.replay(mk.datasets.tau2())


def edges(mem: mk.Memory) -> dict[tuple, tuple]:
    return {
        (r["src_executor"], r["src_version"], r["dst_executor"], r["dst_version"], r["state"]): r
        for r in mem.frame("mnests").to_dicts()
    }


def assert_equal_to_the_oracle(mem: mk.Memory, world) -> None:
    mine = edges(mem)
    theirs = {(*record.edge, record.state): record for record in world.records}
    assert mine.keys() == theirs.keys()
    for key, record in theirs.items():
        row = mine[key]
        assert row["weight"] == pytest.approx(record.weight, rel=1e-9, abs=0)
        assert row["uses"] == record.uses
        for column in ("ts_first", "ts_last", "ts_used"):
            assert oracle.microseconds(row[column]) == getattr(record, column), (key, column)


def test_the_facts_of_the_log_come_out_exactly(rows: list[dict], replayed: tuple[mk.Memory, mk.ReplayReport]) -> None:
    mem, report = replayed
    sessions = oracle.sessions_of(rows)
    grouped = sum(len(oracle.passings_of(steps)) for steps in sessions.values())
    successive = sum(len(steps) - 1 for steps in sessions.values())
    kinds = Counter(kind for _, kind, _ in oracle.captures_of(rows))
    assert (len(sessions), len(rows)) == (280, 3866)
    assert sum(row["requestor"] == "user" for row in rows) == 902
    assert sum(row["ok"] is False for row in rows) == 49
    assert (grouped, successive) == (4087, 3586)
    assert kinds == {"new_reasonlet": 100, "new_version": 170, "execution_only": 10}
    assert (report.sessions, report.turns, report.passings, report.captures) == (280, 3866, 4087, 280)
    assert report.capture_kinds == kinds
    assert (report.duplicates, report.rejects, report.ignored, report.records) == (0, 0, 0, 3866)
    outcomes = mem.sql("SELECT outcome, count(*) AS n FROM runs GROUP BY outcome ORDER BY outcome").rows()
    assert outcomes == [("failure", 280 - 82 - 111), ("success", 82 + 111)]


def test_rewarded_sessions_of_the_two_versions(rows: list[dict]) -> None:
    won, all_of = Counter(), Counter()
    for steps in oracle.sessions_of(rows).values():
        all_of[steps[0]["executor_version"]] += 1
        won[steps[0]["executor_version"]] += steps[0]["session_outcome"] == "success"
    assert sorted((won[version], n) for version, n in all_of.items()) == [(82, 140), (111, 140)]


def test_every_edge_equals_the_plain_fold_with_its_nights(
    rows: list[dict], replayed: tuple[mk.Memory, mk.ReplayReport]
) -> None:
    assert_equal_to_the_oracle(replayed[0], oracle.edges_of(rows))


def test_every_capture_has_the_kind_and_label_of_the_plain_count(
    rows: list[dict], replayed: tuple[mk.Memory, mk.ReplayReport]
) -> None:
    mem, _ = replayed
    mine = mem.frame("runs").join(mem.frame("reasonlets"), on="reasonlet_id").select("session_id", "version")
    theirs = {session: version for session, _, version in oracle.captures_of(rows)}
    assert dict(mine.iter_rows()) == theirs


def test_the_same_log_twice_changes_nothing_and_says_how_many_duplicates(rows: list[dict]) -> None:
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2())
        before = {table: mem.frame(table) for table in mem.tables()["table"].unique()}
        again = mem.replay(mk.datasets.tau2())
        assert (again.turns, again.passings, again.captures, again.duplicates) == (0, 0, 0, len(rows))
        assert again.records == len(rows)
        for table, frame in before.items():
            assert mem.frame(table).equals(frame), table


def test_shuffling_the_rows_of_the_log_changes_no_edge(rows: list[dict]) -> None:
    order = list(range(len(rows)))
    random.Random(7).shuffle(order)
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2()[order])
        assert_equal_to_the_oracle(mem, oracle.edges_of(rows))
        theirs = {session: version for session, _, version in oracle.captures_of(rows)}
        mine = mem.frame("runs").join(mem.frame("reasonlets"), on="reasonlet_id").select("session_id", "version")
        assert dict(mine.iter_rows()) == theirs


@pytest.mark.parametrize("chunk_rows", [97, 1000])
def test_small_chunks_give_what_one_chunk_gives(rows: list[dict], chunk_rows: int) -> None:
    with mk.open() as mem:
        report = mem.replay(mk.datasets.tau2(), chunk_rows=chunk_rows)
        assert (report.turns, report.captures, report.sessions) == (3866, 280, 280)
        assert_equal_to_the_oracle(mem, oracle.edges_of(rows))
        mine = mem.frame("runs").join(mem.frame("reasonlets"), on="reasonlet_id").select("session_id", "version")
        assert dict(mine.iter_rows()) == {session: version for session, _, version in oracle.captures_of(rows)}


def test_parts_of_a_log_in_any_order_give_the_edges_of_the_whole(rows: list[dict]) -> None:
    turns = mk.datasets.tau2()
    parts = [turns.filter(pl.col("ts").dt.hour() % 3 == i) for i in (2, 0, 1)]
    with mk.open() as mem:
        for part in parts:
            mem.replay(part)
        assert mem.frame("turns").height == 3866
        assert_equal_to_the_oracle(mem, oracle.edges_of(rows))


def test_without_an_ager_the_edges_only_grow(rows: list[dict]) -> None:
    with mk.open() as mem:
        report = mem.replay(mk.datasets.tau2(), ager=None)
        assert report.ticks == 0
        assert mem.frame("ager_runs").height == 0
        assert_equal_to_the_oracle(mem, oracle.edges_of(rows, nightly=False))


def test_a_version_is_not_one_thing_and_the_turns_show_it() -> None:
    commits = (
        mk.datasets.tau2()
        .with_columns(commit=pl.col("meta").str.json_path_match("$.git_commit"))
        .group_by("executor_version")
        .agg(pl.col("commit").n_unique())
    )
    assert dict(commits.iter_rows()) == {"gpt-4.1": 2, "ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm": 1}
