"""Who handed work to whom, held to one-row-at-a-time policies."""

from collections import Counter
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import datasets, errors
from mnemokit.turns.derive import PASSINGS, PASSINGS_SCHEMA, UNVERSIONED, derive_captures, derive_passings, needs_values
from mnemokit.turns.frame import check_turns
from tests.oracles import turns as oracle


@st.composite
def logs(draw, values=False):
    """Frames of turns: several sessions, parallel groups, missing executors, exact repeats, rows in any order."""
    rows = [
        {
            "source": draw(st.sampled_from(["x", "y"])),
            "session_id": session,
            "turn_id": f"t{step // 3}",
            "step": step,
            "parallel_group": draw(st.sampled_from([step, step - step % 3, 7])),
            "executor": draw(st.sampled_from(["a", "b", "c", 'odd "name"', None])),
            "executor_version": draw(st.sampled_from(["1", "2", None])),
            "arg_values": draw(st.lists(st.integers(0, 5), max_size=2)) if values else [],
            "result_values": draw(st.lists(st.integers(0, 5), max_size=2)) if values else [],
        }
        for session in draw(st.lists(st.sampled_from(["s1", "s2", "s3"]), max_size=3, unique=True))
        for step in draw(st.lists(st.integers(0, 30), max_size=12, unique=True))
    ]
    rows += draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []
    rows = draw(st.permutations(rows))
    schema = {"source": pl.String, "session_id": pl.String, "turn_id": pl.String, "step": pl.Int64}
    schema |= {"parallel_group": pl.Int64, "executor": pl.String, "executor_version": pl.String}
    schema |= {"arg_values": pl.List(pl.UInt64), "result_values": pl.List(pl.UInt64)}
    return pl.DataFrame(rows, schema=schema), rows


def counted(passings):
    columns = ("source", "session_id", "src_executor", "src_version", "dst_executor", "dst_version", "turn_id", "step")
    return Counter(
        ((source, session), (a, av), (b, bv), turn, step)
        for source, session, a, av, b, bv, turn, step in passings.select(columns).iter_rows()
    )


@settings(max_examples=80, deadline=None)
@given(logs())
def test_grouped_always_equals_the_plain_policy(log):
    frame, rows = log
    assert counted(derive_passings(frame, "grouped")) == oracle.grouped_passings(rows)


@settings(max_examples=80, deadline=None)
@given(logs())
def test_successive_always_equals_the_plain_policy(log):
    frame, rows = log
    assert counted(derive_passings(frame, "successive")) == oracle.successive_passings(rows)


@settings(max_examples=80, deadline=None)
@given(logs(values=True))
def test_value_flow_always_equals_the_plain_policy(log):
    frame, rows = log
    flows = derive_passings(frame, "value_flow").select(
        "source", "session_id", "src_turn_id", "src_step", "turn_id", "step"
    )
    found = {((row[0], row[1]), *row[2:]) for row in flows.iter_rows()}
    assert found == oracle.flow_passings(rows)
    assert flows.height == len(found)


@settings(max_examples=60, deadline=None)
@given(logs(values=True))
def test_value_flow_or_successive_reaches_every_step_but_the_first(log):
    frame, rows = log
    reached = set(
        derive_passings(frame, "value_flow_or_successive").select("session_id", "source", "turn_id", "step").rows()
    )
    flown = {(key[1], key[0], turn, step) for key, _, _, turn, step in oracle.flow_passings(rows)}
    following = {
        (key[1], key[0], step["turn_id"], step["step"])
        for key, steps in oracle.sessions_of(rows).items()
        for step in sorted(steps, key=lambda step: step["step"])[1:]
    }
    assert reached == flown | following


@settings(max_examples=60, deadline=None)
@given(logs(values=True), st.sampled_from(sorted(PASSINGS)))
def test_the_order_of_rows_never_changes_an_edge(log, policy):
    frame, _ = log
    again = frame.sort("step", descending=True)
    assert counted(derive_passings(frame, policy)) == counted(derive_passings(again, policy))


@pytest.mark.parametrize(("policy", "total"), [("grouped", 4087), ("successive", 3586)])
def test_shuffling_the_rows_of_tau2_changes_no_edge(policy, total):
    turns = datasets.tau2()
    passings = derive_passings(turns, policy)
    assert passings.height == total
    for seed in range(3):
        shuffled = derive_passings(turns.sample(fraction=1, shuffle=True, seed=seed), policy)
        assert counted(shuffled) == counted(passings)


def test_the_columns_are_constant_also_when_empty():
    empty = datasets.tau2().head(0)
    for policy in PASSINGS:
        frame = empty.with_columns(
            arg_values=pl.lit([], dtype=pl.List(pl.UInt64)), result_values=pl.lit([], dtype=pl.List(pl.UInt64))
        )
        passings = derive_passings(frame, policy)
        assert (passings.height, dict(passings.schema)) == (0, PASSINGS_SCHEMA)


def test_ts_and_turn_are_the_destinations():
    ts = datetime(2025, 8, 1, tzinfo=UTC)
    turns = pl.DataFrame(
        {"session_id": ["s", "s"], "step": [0, 1], "executor": ["a", "b"], "turn_id": ["t0", "t1"], "ts": [ts, None]},
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    )
    (row,) = derive_passings(turns).iter_rows(named=True)
    assert (row["turn_id"], row["step"], row["src_turn_id"], row["src_step"]) == ("t1", 1, "t0", 0)
    assert row["ts"] is None
    assert (row["src_version"], row["dst_version"], row["dst_exists"]) == (UNVERSIONED, UNVERSIONED, True)


def test_sessions_of_two_sources_are_two_sessions():
    turns = pl.DataFrame({"source": ["x", "y"], "session_id": ["s", "s"], "step": [0, 1], "executor": ["a", "b"]})
    assert derive_passings(turns).height == 0


def test_a_parallel_group_that_lies_apart_is_one_group():
    turns = pl.DataFrame(
        {"session_id": ["s"] * 4, "step": [0, 1, 2, 3], "parallel_group": [0, 1, 0, 3], "executor": list("abcd")}
    )
    edges = derive_passings(turns).select("src_executor", "dst_executor").rows()
    assert sorted(edges) == [("a", "b"), ("b", "d"), ("c", "b")]


def test_a_row_without_executor_neither_passes_nor_is_passed_to():
    turns = pl.DataFrame({"session_id": ["s"] * 3, "step": [0, 1, 2], "executor": ["a", None, "b"]})
    assert derive_passings(turns).select("src_executor", "dst_executor").rows() == [("a", "b")]


def test_hand_offs_are_only_those_that_the_log_names():
    turns = pl.DataFrame(
        {
            "session_id": ["s"] * 4,
            "step": [0, 1, 2, 3],
            "executor": ["a", "clerk", "b", "c"],
            "meta": [
                None,
                '{"handoff_from":"desk","handoff_from_version":"3"}',
                '{"note":"handoff_from"}',
                "no json handoff_from",
            ],
        }
    )
    row = derive_passings(turns, "handoffs").select("src_executor", "src_version", "dst_executor", "step").rows()
    assert row == [("desk", "3", "clerk", 1)]


def test_value_flow_without_values_says_what_to_do():
    with pytest.raises(errors.InvalidInput, match="include_values=True"):
        derive_passings(datasets.tau2(), "value_flow")


def test_value_flow_or_successive_without_values_is_successive():
    turns = datasets.tau2()
    assert derive_passings(turns, "value_flow_or_successive").equals(derive_passings(turns, "successive"))


def test_an_unknown_policy_lists_those_there_are():
    with pytest.raises(errors.InvalidInput, match=r"passings='grupped' is no policy; use one of grouped, successive"):
        derive_passings(datasets.tau2(), "grupped")


def test_a_policy_can_be_a_function():
    def only_refunds(turns):
        return derive_passings(turns, "successive").filter(dst_executor="return_delivered_order_items")

    found = derive_passings(datasets.tau2(), only_refunds)
    assert set(found["dst_executor"]) == {"return_delivered_order_items"}


def test_a_policy_that_returns_the_wrong_columns_is_refused():
    with pytest.raises(
        errors.InvalidInput, match=r"the policy 'wrong' must return column 'source' as String, not missing"
    ):
        derive_passings(datasets.tau2(), wrong)


def wrong(_turns):
    return pl.DataFrame({"src_executor": ["a"]})


def test_only_policies_of_values_need_values():
    assert [name for name in PASSINGS if needs_values(name)] == ["value_flow", "value_flow_or_successive"]
    assert needs_values(None) is None
    assert needs_values(wrong) is False


def test_derive_accepts_any_frame_that_check_turns_accepts():
    small = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["a", "b"]})
    assert derive_passings(small).equals(derive_passings(check_turns(small)))
    assert derive_captures(small).equals(derive_captures(check_turns(small)))
