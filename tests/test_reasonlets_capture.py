"""Captures: what each becomes, what it leaves, and what is refused."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemokit as mk
from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.reasonlets import graph as graph_content

T0 = "2025-03-01T12:00:00+00:00"
T1 = "2025-03-02T12:00:00+00:00"


def plan(*ids):
    """A chain of steps."""
    return {
        "nodes": [{"id": name} for name in ids],
        "edges": [{"src": a, "dst": b} for a, b in itertools.pairwise(ids)],
    }


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


def everything(mem):
    tables = ("reasonlets", "runs", "feedback", "recalls")
    return {table: mem.frame(table) for table in tables}


def same(before, after):
    return all(before[table].equals(after[table]) for table in before)


def test_a_capture_without_a_parent_is_a_new_reasonlet_of_version_1_0(mem):
    receipt = mem.reasonlets.capture(scope="s", question="q", graph=plan("a", "b"), outcome="success", at=T0)
    assert (receipt.kind, receipt.version) == ("new_reasonlet", "1.0")
    got = mem.reasonlets.get(receipt.reasonlet_id)
    assert (got.parent_id, got.root_id, got.depth) == (None, receipt.reasonlet_id, 0)
    assert got.ts_captured == datetime(2025, 3, 1, 12, tzinfo=UTC)
    assert got.graph == {**plan("a", "b"), "properties": {}}


def test_an_equal_graph_under_a_parent_is_a_run_of_the_parent_and_nothing_else(mem):
    first = mem.reasonlets.capture(scope="s", question="q", graph=plan("a", "b"), outcome="success")
    again = mem.reasonlets.capture(
        scope="s", question="other words", graph=plan("a", "b"), outcome="failure", parent_id=first.reasonlet_id
    )
    assert (again.kind, again.reasonlet_id, again.version) == ("execution_only", first.reasonlet_id, "1.0")
    assert mem.frame("reasonlets").height == 1
    assert mem.frame("runs")["outcome"].to_list() == ["success", "failure"]


def test_a_different_graph_under_a_parent_is_a_new_version_linked_to_it(mem):
    first = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    second = mem.reasonlets.capture(scope="s", question="q", graph=plan("a", "b"), parent_id=first.reasonlet_id)
    third = mem.reasonlets.capture(scope="s", question="q", graph=plan("a", "c"), parent_id=second.reasonlet_id)
    assert (second.kind, second.version) == ("new_version", "1.1")
    assert (third.kind, third.version) == ("new_version", "1.2")
    got = mem.reasonlets.get(third.reasonlet_id)
    assert (got.parent_id, got.root_id, got.depth) == (second.reasonlet_id, first.reasonlet_id, 2)


def test_a_graph_that_a_sibling_has_is_a_new_version_all_the_same(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    one, two = (
        mem.reasonlets.capture(scope="s", question="q", graph=plan("b"), parent_id=root.reasonlet_id) for _ in range(2)
    )
    assert (one.kind, two.kind) == ("new_version", "new_version")
    assert {one.version, two.version} == {"1.1", "1.2"}


def test_the_same_graph_without_a_parent_is_a_new_reasonlet_again(mem):
    one, two = (mem.reasonlets.capture(scope="s", question="q", graph=plan("a")) for _ in range(2))
    assert two.kind == "new_reasonlet"
    assert one.reasonlet_id != two.reasonlet_id


@pytest.mark.parametrize("scope", ["other", "s"])
def test_a_parent_not_in_the_scope_or_nowhere_is_not_found_and_nothing_is_written(mem, scope):
    known = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    parent = known.reasonlet_id if scope == "other" else "rl_nowhere"
    before = everything(mem)
    with pytest.raises(NotFound, match="nothing was written"):
        mem.reasonlets.capture(scope=scope, question="q", graph=plan("b"), parent_id=parent, key="k")
    assert same(before, everything(mem))
    again = mem.reasonlets.capture(scope=scope, question="q", graph=plan("b"), key="k")
    assert again.kind == "new_reasonlet", "the key of a capture that was refused is free"


def test_every_capture_records_exactly_one_run(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    receipts = [root] + [
        mem.reasonlets.capture(scope="s", question="q", graph=plan(name), parent_id=root.reasonlet_id)
        for name in ("a", "b", "a")
    ]
    runs = mem.frame("runs")
    assert runs["run_id"].to_list() == [receipt.run_id for receipt in receipts]
    assert runs["reasonlet_id"].to_list() == [receipt.reasonlet_id for receipt in receipts]


def test_a_reasonlet_belongs_to_the_subject_of_its_first_capture(mem):
    first = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), subject="ada")
    mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), subject="bob", parent_id=first.reasonlet_id)
    version = mem.reasonlets.capture(
        scope="s", question="q", graph=plan("b"), subject="bob", parent_id=first.reasonlet_id
    )
    assert mem.reasonlets.get(first.reasonlet_id).subject == "ada"
    assert mem.reasonlets.get(version.reasonlet_id).subject == "bob"


def test_the_same_key_again_returns_the_first_receipt_and_writes_nothing(mem):
    first = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), outcome="success", key="k")
    before = everything(mem)
    again = mem.reasonlets.capture(scope="s", question="else", graph=plan("z"), outcome="failure", key="k")
    assert again == first
    assert same(before, everything(mem))


def test_keys_of_runs_and_feedback_work_likewise_and_belong_to_their_call(mem):
    made = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    run = mem.reasonlets.record_run(made.reasonlet_id, "success", key="run")
    given = mem.reasonlets.feedback(run, "failure", key="verdict")
    before = everything(mem)
    assert mem.reasonlets.record_run(made.reasonlet_id, "failure", key="run") == run
    assert mem.reasonlets.feedback(run, "success", key="verdict") == given
    with pytest.raises(Conflict, match="this key was used for record_run before"):
        mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), key="run")
    with pytest.raises(Conflict, match="was used for feedback before"):
        mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s"], "graph": ["{}"], "key": ["verdict"]}))
    assert same(before, everything(mem))


def test_a_capture_can_say_which_recall_it_followed(mem):
    mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    shown = mem.reasonlets.recall("q", scope="s")
    recall_id = shown["recall_id"].item()
    made = mem.reasonlets.capture(
        scope="s",
        question="q",
        graph=plan("a"),
        parent_id=shown["reasonlet_id"].item(),
        recall_id=recall_id,
    )
    run = mem.reasonlets.record_run(made.reasonlet_id, "success", recall_id=recall_id)
    followed = mem.frame("runs").filter(pl.col("recall_id") == recall_id)
    assert set(followed["run_id"]) == {made.run_id, run}
    with pytest.raises(NotFound, match="there is no recall 'rc_x'"):
        mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), recall_id="rc_x")


def test_two_captures_of_the_same_parent_at_once_are_siblings_with_different_numbers(tmp_path):
    path = tmp_path / "memory.duckdb"
    with mk.open(path) as one, mk.open(path) as two:
        root = one.reasonlets.capture(scope="s", question="q", graph=plan("a"))
        receipts, errors = [], []

        def work(mem, name):
            try:
                receipts.extend(
                    mem.reasonlets.capture(
                        scope="s", question="q", graph=plan("a", f"{name}{i}"), parent_id=root.reasonlet_id
                    )
                    for i in range(8)
                )
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(mem, name)) for name, mem in (("x", one), ("y", two))]
        threads += [threading.Thread(target=work, args=(one, "z"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert sorted(receipt.version for receipt in receipts) == sorted(f"1.{k}" for k in range(1, 25))
        lineage = two.reasonlets.lineage(root.reasonlet_id)
        assert lineage["version"].to_list() == [f"1.{k}" for k in range(25)]
        assert lineage["parent_id"].drop_nulls().unique().to_list() == [root.reasonlet_id]
        assert one.frame("runs").height == 25


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scope": ""}, "scope must be a text that is not empty"),
        ({"scope": None}, "scope must be a text that is not empty"),
        ({"scope": "\ud800"}, "scope holds a lone surrogate"),
        ({"question": 3}, "question must be a text, not int"),
        ({"outcome": "good"}, "outcome must be 'success', 'failure' or None"),
        ({"subject": ""}, "subject must be a text that is not empty"),
        ({"provenance": {"x": float("nan")}}, "provenance: property x is nan"),
        ({"at": "2025-03-01T12:00:00"}, "has no time zone"),
        ({"at": datetime(2025, 3, 1)}, "has no time zone"),  # noqa: DTZ001 - a naive instant is what is tested
        ({"graph": {"nodes": [{"id": "a", "x": float("nan")}]}}, "node 'a': property x is nan"),
        ({"key": ""}, "key must be a text that is not empty"),
        ({"parent_id": 3}, "parent_id must be a text, not int"),
        ({"recall_id": 3}, "recall_id must be a text, not int"),
    ],
)
def test_values_that_cannot_be_kept_are_refused_and_nothing_is_written(mem, change, why):
    with pytest.raises(InvalidInput, match=why):
        mem.reasonlets.capture(**{"scope": "s", "question": "q", "graph": plan("a"), **change})
    assert mem.frame("reasonlets").is_empty()
    assert mem.frame("runs").is_empty()


def test_provenance_is_kept_as_text_or_as_canonical_json(mem):
    one = mem.reasonlets.capture(scope="s", question="q", graph={}, provenance="by hand")
    two = mem.reasonlets.capture(scope="s", question="q", graph={}, provenance={"b": 1.0, "a": [None]})
    assert mem.reasonlets.get(one.reasonlet_id).provenance == "by hand"
    assert mem.reasonlets.get(two.reasonlet_id).provenance == '{"a":[null],"b":1}'


def test_a_run_of_an_unknown_reasonlet_and_feedback_on_an_unknown_run_are_not_found(mem):
    with pytest.raises(NotFound, match="there is no reasonlet 'rl_x'"):
        mem.reasonlets.record_run("rl_x", "success")
    with pytest.raises(NotFound, match="there is no run 'run_x'"):
        mem.reasonlets.feedback("run_x", "success")
    with pytest.raises(NotFound, match="there is no reasonlet 'rl_x'"):
        mem.reasonlets.get("rl_x")


def test_ids_of_another_type_are_refused_with_a_clear_line(mem):
    r = mem.reasonlets
    for call in (
        lambda: r.get(3),
        lambda: r.get(None),
        lambda: r.get("\ud800"),
        lambda: r.lineage(3),
        lambda: r.explain(3),
        lambda: r.diff(3),
        lambda: r.record_run(3, "success"),
        lambda: r.feedback(3, "success"),
    ):
        with pytest.raises(InvalidInput, match=r"^(reasonlet_id|run_id) (must be a text|holds a lone surrogate)"):
            call()
    made = r.capture(scope="s", question="q", graph=plan("a"))
    with pytest.raises(InvalidInput, match="other_id must be a text, not int"):
        r.diff(made.reasonlet_id, 3)
    with pytest.raises(InvalidInput, match="recall_id must be a text, not int"):
        r.record_run(made.reasonlet_id, "success", recall_id=3)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"limit": None}, "limit must be a whole number, not None"),
        ({"limit": "3"}, "limit must be a whole number, not '3'"),
        ({"limit": 2.5}, "limit must be a whole number, not 2.5"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"weight": "1"}, "weight must be a number, not '1'"),
        ({"min_similarity": "0.5"}, "min_similarity must be a number, not '0.5'"),
    ],
)
def test_settings_of_a_recall_that_are_no_numbers_are_refused(mem, change, why):
    mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    with pytest.raises(InvalidInput, match=why):
        mem.reasonlets.recall("q", scope="s", **change)
    assert mem.frame("recalls").is_empty()


def test_settings_of_a_ranking_that_are_no_numbers_are_refused(mem):
    made = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"))
    for call in (lambda: mem.reasonlets.rank(k="2"), lambda: mem.reasonlets.explain(made.reasonlet_id, k="2")):
        with pytest.raises(InvalidInput, match="k must be a number, not '2'"):
            call()
    with pytest.raises(InvalidInput, match="scope must be a text, not int"):
        mem.reasonlets.rank(scope=3)


def test_a_recall_of_another_scope_is_not_found_and_nothing_is_written(mem):
    here = mem.reasonlets.capture(scope="s", question="q", graph=plan("a")).reasonlet_id
    mem.reasonlets.capture(scope="elsewhere", question="q", graph=plan("a"))
    recall_id = mem.reasonlets.recall("q", scope="elsewhere")["recall_id"][0]
    before = everything(mem)
    why = f"there is no recall '{recall_id}' of scope 's'; nothing was written"
    with pytest.raises(NotFound, match=why):
        mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), recall_id=recall_id)
    with pytest.raises(NotFound, match=why):
        mem.reasonlets.record_run(here, "success", recall_id=recall_id)
    batch = pl.DataFrame({"scope": ["elsewhere", "s"], "graph": ["{}", "{}"], "recall_id": [recall_id, recall_id]})
    with pytest.raises(NotFound, match=f"capture 1: {why}"):
        mem.reasonlets.capture_many(batch)
    assert same(before, everything(mem))
    assert mem.reasonlets.capture_many(batch.head(1))["kind"].to_list() == ["new_reasonlet"]


# Batches ------------------------------------------------------------------------------------------------------------

CAPTURES = st.lists(
    st.fixed_dictionaries(
        {
            "scope": st.sampled_from("xy"),
            "question": st.sampled_from(["book a flight", "退款", None]),
            "graph": st.sampled_from([plan("a"), plan("a", "b"), plan("b", "a")]),
            "outcome": st.sampled_from(["success", "failure", None]),
            "hour": st.integers(0, 5),
            "key": st.none() | st.sampled_from("kl"),
        }
    ),
    max_size=12,
)


def described(mem):
    """What a memory holds, without its random ids."""
    reasonlets, runs = mem.frame("reasonlets"), mem.frame("runs")
    names = reasonlets.select("reasonlet_id", name=pl.format("{}|{}|{}", "root_id", "version", "graph_hash"))
    labels = reasonlets.select(
        "scope", "question", "version", "depth", "graph_hash", "ts_captured", has_parent=pl.col("parent_id").is_null()
    )
    outcomes = runs.join(names, on="reasonlet_id", how="left").select(
        "outcome", "ts_run", version=pl.col("name").str.split("|").list.get(1)
    )
    rank = mem.reasonlets.rank().select("version", "n", "s", "prior", "rate", "rate_low", "scope", "question")
    return labels.sort(pl.all()).rows(), outcomes.sort(pl.all()).rows(), rank.sort(pl.all()).rows()


@settings(max_examples=25, deadline=None)
@given(CAPTURES)
def test_a_batch_is_the_same_as_its_captures_one_by_one_in_the_order_of_their_instants(drawn):
    at = [datetime(2025, 3, 1, each["hour"], tzinfo=UTC) for each in drawn]
    with mk.open() as one, mk.open() as other:
        for moment, each in sorted(zip(at, drawn, strict=True), key=lambda pair: pair[0]):
            given_now = {name: value for name, value in each.items() if name != "hour"}
            one.reasonlets.capture(**given_now, at=moment)
        batch = pl.DataFrame(
            [
                {**each, "graph": graph_content.canonical(each["graph"]).text, "ts": moment}
                for moment, each in zip(at, drawn, strict=True)
            ],
            schema={
                "scope": pl.String,
                "question": pl.String,
                "graph": pl.String,
                "outcome": pl.String,
                "key": pl.String,
                "ts": pl.Datetime("us", "UTC"),
            },
        )
        keyed = batch.filter(pl.col("key").is_null() | pl.col("key").is_first_distinct()).sort(
            "ts", maintain_order=True
        )
        if keyed.height == batch.height:
            receipts = other.reasonlets.capture_many(batch)
            assert receipts.height == len(drawn)
            assert described(one) == described(other)


def test_a_batch_settles_parents_and_repeated_keys(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=plan("a"), at=T0, key="first")
    batch = pl.DataFrame(
        {
            "scope": ["s"] * 5,
            "question": ["q"] * 5,
            "graph": [graph_content.canonical(plan(*ids)).text for ids in ("a", "b", "c", "z", "c")],
            "outcome": ["success", None, "failure", "success", "success"],
            "parent_id": [root.reasonlet_id] * 5,
            "key": [None, None, "new", "first", "new"],
        }
    )
    receipts = mem.reasonlets.capture_many(batch)
    assert receipts["kind"].to_list() == [
        "execution_only",
        "new_version",
        "new_version",
        "new_reasonlet",
        "new_version",
    ]
    assert receipts["written"].to_list() == [True, True, True, False, False]
    assert receipts["run_id"][3] == root.run_id
    assert receipts.row(2)[:4] == receipts.row(4)[:4]
    assert mem.frame("runs").height == 4
    again = mem.reasonlets.capture_many(batch)
    assert again["written"].to_list() == [True, True, False, False, False]


def test_a_batch_takes_structs_and_leaves_their_null_fields_out(mem):
    graphs = [{"nodes": [{"id": "b", "kind": "x"}], "edges": []}, plan("a")]
    receipts = mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s", "s"], "graph": graphs}))
    for receipt, one in zip(receipts.iter_rows(named=True), graphs, strict=True):
        assert mem.reasonlets.get(receipt["reasonlet_id"]).graph_hash == graph_content.canonical(one).hash


@pytest.mark.parametrize(
    ("columns", "error", "why"),
    [
        ({"scope": ["s"]}, InvalidInput, "have no column graph"),
        ({"scope": ["s", ""], "graph": ["{}", "{}"]}, InvalidInput, "capture 1 has no scope"),
        ({"scope": ["s"], "graph": ["{}"], "outcome": ["good"]}, InvalidInput, "capture 0 has the outcome 'good'"),
        ({"scope": ["s"], "graph": ['{"nodes":[{}]}']}, InvalidInput, r"capture 0: nodes\[0\] has no id"),
        ({"scope": ["s"], "graph": ["{}"], "questoin": ["q"]}, InvalidInput, "have no column questoin"),
        (
            {"scope": ["s", "s"], "graph": ["{}", "{}"], "parent_id": [None, "rl_x"]},
            NotFound,
            "capture 1: there is no reasonlet 'rl_x' in scope 's' to be the parent; nothing was written",
        ),
        (
            {"scope": ["s", "s"], "graph": ["{}", "{}"], "recall_id": [None, "rc_x"]},
            NotFound,
            "capture 1: there is no recall 'rc_x' of scope 's'; nothing was written",
        ),
        ({"scope": ["s"], "graph": ["{}"], "subject": [""]}, InvalidInput, "capture 0 has an empty subject"),
        ({"scope": ["s", "s"], "graph": ["{}", "{}"], "key": ["k", ""]}, InvalidInput, "capture 1 has an empty key"),
        ({"scope": ["s"], "graph": ["{}"], "key": [7]}, InvalidInput, "the column key is Int64, not String"),
        ({"scope": [7], "graph": ["{}"]}, InvalidInput, "the column scope is Int64, not String"),
        ({"scope": ["s"], "graph": ["{}"], "ts": [T0]}, InvalidInput, "the column ts is String, not Datetime"),
        (
            {"scope": ["s"], "graph": ["{}"], "ts": [datetime(2025, 3, 1)]},  # noqa: DTZ001 - naive is what is tested
            InvalidInput,
            "the column ts has no time zone",
        ),
        (
            {"scope": ["s", "s"], "graph": ["{}", "{}"], "provenance": [{"x": 1.0}, {"x": float("nan")}]},
            InvalidInput,
            "capture 1: provenance: property x is nan",
        ),
    ],
)
def test_a_batch_with_one_bad_row_writes_nothing(mem, columns, error, why):
    with pytest.raises(error, match=why):
        mem.reasonlets.capture_many(pl.DataFrame(columns))
    assert mem.frame("reasonlets").is_empty()


def test_an_empty_batch_gives_no_rows_of_the_same_columns(mem):
    full = mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s"], "graph": ["{}"]}))
    empty = mem.reasonlets.capture_many(pl.DataFrame(schema={"scope": pl.String, "graph": pl.String}))
    assert empty.is_empty()
    assert empty.schema == full.schema


@pytest.mark.parametrize(
    ("captures", "why"),
    [
        ([{"scope": "s", "graph": "{}"}], "captures must be a frame .*, not list; nothing was written"),
        (None, "captures must be a frame .*, not NoneType"),
    ],
)
def test_a_batch_that_is_no_frame_is_refused(mem, captures, why):
    with pytest.raises(InvalidInput, match=why):
        mem.reasonlets.capture_many(captures)


def test_provenance_of_a_batch_is_kept_as_in_a_single_call(mem):
    given_now = [{"b": 1.0, "a": "y"}, None, {"a": "é", "c": [{"d": True}]}]
    fields = pl.Struct({"b": pl.Float64, "a": pl.String, "c": pl.List(pl.Struct({"d": pl.Boolean}))})
    structs = pl.Series(given_now, dtype=fields)
    mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s"] * 3, "graph": ["{}"] * 3, "provenance": structs}))
    mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s"], "graph": ["{}"], "provenance": ["by hand"]}))
    mem.reasonlets.capture_many(pl.DataFrame({"scope": ["s"], "graph": ["{}"], "provenance": [[1, 2]]}))
    kept = mem.frame("reasonlets")["provenance"].to_list()
    assert kept == ['{"a":"y","b":1}', None, '{"a":"é","c":[{"d":true}]}', "by hand", "[1,2]"]
    for value in (given_now[0], given_now[2], [1, 2]):
        mem.reasonlets.capture(scope="s", question=None, graph={}, provenance=value)
    assert mem.frame("reasonlets")["provenance"].to_list()[5:] == [kept[0], kept[2], kept[4]]


def test_a_batch_takes_instants_of_any_zone_and_texts_of_few_values(mem):
    moment = datetime(2025, 3, 1, 12, tzinfo=UTC)
    batch = pl.DataFrame({"scope": ["s"], "graph": ["{}"], "outcome": ["success"], "ts": [moment]}).with_columns(
        pl.col("scope", "outcome").cast(pl.Categorical), pl.col("ts").dt.convert_time_zone("Asia/Tokyo")
    )
    mem.reasonlets.capture_many(batch)
    assert mem.frame("runs").select("outcome", "ts_run").rows() == [("success", moment)]


def test_a_batch_with_an_instant_that_no_calendar_has_is_refused(mem):
    batch = pl.DataFrame({"scope": ["s", "s"], "graph": ["{}", "{}"], "ts": [0, 2**62]})
    with pytest.raises(InvalidInput, match="capture 1 has a ts that is not of the years 1 to 9999"):
        mem.reasonlets.capture_many(batch.cast({"ts": pl.Datetime("us", "UTC")}))


def test_a_known_key_of_a_batch_is_answered_before_its_recall_is_looked_for(mem):
    mem.reasonlets.capture(scope="s", question="q", graph={}, key="k")
    batch = pl.DataFrame({"scope": ["s"], "graph": ["{}"], "key": ["k"], "recall_id": ["rc_gone"]})
    assert mem.reasonlets.capture_many(batch)["written"].to_list() == [False]
