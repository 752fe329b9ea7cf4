"""What was done as one procedure, held to a plain count."""

import json
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings

from mnemokit import datasets, errors
from mnemokit.turns.derive import CAPTURES, CAPTURES_SCHEMA, default_policies, derive_captures, derive_passings
from tests.oracles import turns as oracle
from tests.test_derive_passings import logs


def graph_of(text):
    graph = json.loads(text)
    assert list(graph) == ["nodes", "edges", "properties"]
    assert graph["properties"] == {}
    nodes = [node["id"] for node in graph["nodes"]]
    edges = [(edge["src"], edge["dst"]) for edge in graph["edges"]]
    assert len(set(nodes)) == len(nodes)
    assert len(set(edges)) == len(edges)
    return set(nodes), set(edges)


@settings(max_examples=120, deadline=None)
@given(logs())
def test_a_session_is_captured_with_its_distinct_executors_and_passings(log):
    frame, rows = log
    captures = derive_captures(frame)
    found = {(row["source"], row["session_id"]): graph_of(row["graph"]) for row in captures.iter_rows(named=True)}
    assert found == oracle.session_graphs(rows, oracle.grouped_passings(rows))
    assert captures.height == len(found)


@settings(max_examples=60, deadline=None)
@given(logs())
def test_a_capture_stands_at_the_sessions_last_step(log):
    frame, rows = log
    for row in derive_captures(frame).iter_rows(named=True):
        steps = oracle.sessions_of(rows)[row["source"], row["session_id"]]
        assert row["step"] == max(step["step"] for step in steps)


def test_tau2_gives_100_new_170_versions_and_10_plain_runs():
    """The parent is the newest reasonlet of the same scope and question."""
    newest: dict = {}
    kinds: Counter = Counter()
    for row in derive_captures(datasets.tau2()).sort("ts").iter_rows(named=True):
        key = row["scope"], row["question"]
        graph = graph_of(row["graph"])
        kinds["new" if key not in newest else "run" if newest[key] == graph else "version"] += 1
        newest[key] = graph
    assert kinds == {"new": 100, "version": 170, "run": 10}


def test_shuffling_the_rows_of_tau2_changes_no_capture():
    turns = datasets.tau2()
    captures = derive_captures(turns).sort("session_id")
    shuffled = derive_captures(turns.sample(fraction=1, shuffle=True, seed=4)).sort("session_id")
    assert shuffled.equals(captures)


def test_outcome_subject_and_scope_are_the_sessions():
    turns = pl.DataFrame(
        {
            "session_id": ["s", "s", "t"],
            "step": [0, 1, 0],
            "executor": ["a", "b", "a"],
            "user_id": ["u", "u", None],
            "scope": ["shop", "shop", None],
            "question": ["q", "q", None],
            "session_outcome": ["failure", "failure", None],
        }
    )
    captures = derive_captures(turns).select("scope", "question", "outcome", "subject", "untimed")
    assert captures.rows() == [("shop", "q", "failure", "u", True), ("turns", None, None, None, True)]


TOLD = pl.DataFrame(
    {
        "session_id": ["s", "s", "s", "t", "t", "u", "v", "v"],
        "step": [0, 1, 2, 0, 1, 0, 0, 1],
        "executor": ["a", "b", None, "a", "b", "a", "a", None],
        "scope": ["shop", None, None, None, None, "inn", None, "late"],
        "question": ["q", None, None, "first", "last", None, None, None],
        "session_outcome": [None, None, "success", "failure", None, None, "failure", "success"],
    }
)


def test_the_outcome_is_the_last_one_that_a_row_of_the_session_tells_also_a_closing_one():
    captures = derive_captures(TOLD)
    assert dict(captures.select("session_id", "outcome").rows()) == {
        "s": "success",
        "t": "failure",
        "u": None,
        "v": "success",
    }
    assert captures["step"].to_list() == [1, 1, 0, 0]


def test_question_and_scope_that_the_last_step_lacks_are_those_told_last():
    captures = derive_captures(TOLD).select("session_id", "scope", "question")
    assert captures.rows() == [
        ("s", "shop", "q"),
        ("t", "turns", "last"),
        ("u", "inn", None),
        ("v", "late", None),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_what_a_session_told_last_does_not_depend_on_the_order_of_rows(seed):
    shuffled = TOLD.sample(fraction=1, shuffle=True, seed=seed)
    assert derive_captures(shuffled).sort("session_id").equals(derive_captures(TOLD).sort("session_id"))


def test_a_session_without_calls_is_no_capture():
    turns = pl.DataFrame(
        {"session_id": ["s"], "step": [0], "executor": [None]}, schema_overrides={"executor": pl.String}
    )
    assert derive_captures(turns).height == 0


def test_agb_is_captured_once_per_attempted_test():
    turns = datasets.agb()
    _, policy = default_policies("agb")
    captures = derive_captures(turns, policy)
    assert captures.height == 4698
    assert captures["outcome"].value_counts().sort("outcome").rows() == [("failure", 2522), ("success", 2176)]
    row = captures.row(0, named=True)
    assert (row["scope"], row["question"]) == ("Auto-GPT", "TestWriteFile")
    assert row["graph"] == '{"nodes":[{"id":"TestWriteFile"}],"edges":[],"properties":{}}'


def test_names_are_escaped_in_the_graph():
    turns = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ['a"\\\n', "é\u0001"]})
    assert graph_of(derive_captures(turns)["graph"].item()) == ({'a"\\\n', "é\u0001"}, {('a"\\\n', "é\u0001")})


def test_captures_take_passings_as_a_frame_or_as_a_policy():
    turns = datasets.tau2()
    by_policy = derive_captures(turns, passings="successive")
    by_frame = derive_captures(turns, passings=derive_passings(turns, "successive"))
    assert by_policy.equals(by_frame)
    assert not by_policy.equals(derive_captures(turns))


def test_the_columns_are_constant_also_when_empty():
    for policy in CAPTURES:
        captures = derive_captures(datasets.tau2().head(0), policy)
        assert (captures.height, dict(captures.schema)) == (0, CAPTURES_SCHEMA)


def test_an_unknown_policy_lists_those_there_are():
    with pytest.raises(errors.InvalidInput, match=r"captures='all' is no policy; use one of session, attempt, none"):
        derive_captures(datasets.tau2(), "all")
