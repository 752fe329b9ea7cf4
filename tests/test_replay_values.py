"""Policies that look at values see all of a session, however it was cut into chunks and calls."""

from __future__ import annotations

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.turns.frame import VALUE_COLUMNS

EDGES = ["src_executor", "dst_executor", "weight", "uses", "ts_first", "ts_last"]


def flowing(sessions: int = 1, *, user_id: str | None = None) -> pl.DataFrame:
    """Sessions of six steps: what a and b give out flows into c to f; nothing flows into b."""
    taken: list[list[int]] = [[], [], [1], [1, 2], [2], [3]]
    given: list[list[int]] = [[1], [2], [3], [], [], []]
    frames = [
        pl.DataFrame(
            {
                "session_id": [f"s{n}"] * 6,
                "step": range(6),
                "executor": list("abcdef"),
                "ts": [f"2025-01-01T00:{minute:02}:00Z" for minute in range(n, n + 6)],
                "user_id": [user_id] * 6,
                "arg_values": taken,
                "result_values": given,
            },
            schema_overrides={**VALUE_COLUMNS, "user_id": pl.String},
        ).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC"))
        for n in range(sessions)
    ]
    return pl.concat(frames)


def edges(mem: mk.Memory) -> list[tuple]:
    rounded = mem.frame("mnests").select(EDGES).with_columns(pl.col("weight").round(12))
    return sorted(rounded.rows())


@pytest.mark.parametrize("policy", ["value_flow", "value_flow_or_successive"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 4, 5, 7, 100])
def test_small_chunks_see_the_values_that_one_chunk_sees(policy: str, chunk_rows: int) -> None:
    with mk.open() as mem, mk.open() as whole:
        mem.replay(flowing(3), passings=policy, chunk_rows=chunk_rows)
        whole.replay(flowing(3), passings=policy)
        assert edges(mem) == edges(whole)
        expected = 5 if policy == "value_flow" else 6
        assert mem.frame("mnest_events").filter(kind="passing").height == 3 * expected


@pytest.mark.parametrize("policy", ["value_flow", "value_flow_or_successive"])
def test_a_session_that_goes_on_in_a_later_call_sees_the_values_of_its_earlier_part(policy: str) -> None:
    with mk.open() as mem, mk.open() as whole:
        turns = flowing()
        for part in (turns[[0, 3]], turns[[2]], turns.head(5), turns):
            mem.replay(part, passings=policy)
        whole.replay(turns, passings=policy)
        assert edges(mem) == edges(whole)


def test_the_policy_of_the_format_sees_them_too() -> None:
    turns = flowing().with_columns(source=pl.lit("metnos"))
    with mk.open() as mem, mk.open() as whole:
        mem.replay(turns, chunk_rows=2)
        whole.replay(turns)
        assert edges(mem) == edges(whole)
        assert len(edges(mem)) == 6


def test_only_hashes_are_stored_and_only_where_there_are_any() -> None:
    stored = "SELECT count(arg_values) AS args, count(result_values) AS results FROM turns"
    with mk.open() as mem:
        mem.replay(flowing().drop("arg_values", "result_values"))
        assert mem.sql(stored).row(0) == (0, 0)
        mem.replay(flowing(), label="valued", passings="value_flow")
        assert mem.sql(stored).row(0) == (6, 6)
        assert "arg_values" not in mem.frame("turns").columns


@pytest.mark.parametrize("realm", ["subject", "scope"])
def test_an_erasure_blanks_the_hashes(realm: str) -> None:
    with mk.open() as mem:
        mem.replay(flowing(user_id="anna"), passings="value_flow")
        receipt = mem.reasonlets.erase_subject("anna") if realm == "subject" else mem.reasonlets.erase_scope("turns")
        assert receipt.turns == 6
        assert mem.sql("SELECT count(arg_values) + count(result_values) AS n FROM turns")["n"].item() == 0


@pytest.mark.parametrize("policy", ["value_flow", "value_flow_or_successive"])
def test_passings_whose_values_are_gone_are_never_taken_back(policy: str) -> None:
    """An erasure, or a store made before values were kept: what was told by values then cannot be disproved now."""
    turns = flowing(user_id="anna")
    with mk.open() as mem:
        mem.replay(turns.head(4), passings=policy)
        before = edges(mem)
        mem.reasonlets.erase_subject("anna")
        later = turns.tail(2).with_columns(user_id=pl.lit(None, dtype=pl.String))
        mem.replay(later, passings=policy)
        now = edges(mem)
        assert set(before) <= set(now)
        assert {edge[1] for edge in now if edge not in before} <= {"e", "f"}


def test_without_any_values_a_step_in_between_takes_back_the_passing_it_disproves() -> None:
    turns = flowing().drop("arg_values", "result_values").with_columns(source=pl.lit("metnos"))
    with mk.open() as mem:
        mem.replay(turns[[0, 2]])
        mem.replay(turns.head(3))
        assert [edge[:2] for edge in edges(mem)] == [("a", "b"), ("b", "c")]
