"""Lineages: root, depth, path, siblings, descendants; what a version changed; why it ranks where it does."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import NotFound
from mnemokit.reasonlets.explain import RUN_STEPS_SCHEMA
from mnemokit.reasonlets.reads import FOREST_SCHEMA, LINEAGE_SCHEMA
from tests.oracles import lineages as oracle

T0 = datetime(2025, 3, 1, tzinfo=UTC)


def hour(n):
    return T0 + timedelta(hours=n)


def one(name):
    return {"nodes": [{"id": name}]}


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


@pytest.fixture
def grown(mem):
    """Three random lineages; returns the memory and reasonlet_id -> parent_id."""
    rng = random.Random(11)
    parents = {}
    for number in range(40):
        parent = None if number < 3 else rng.choice(list(parents))
        made = mem.reasonlets.capture(
            scope="s", question="q", graph=one(str(number)), parent_id=parent, at=hour(number)
        )
        parents[made.reasonlet_id] = parent
    return mem, parents


def test_every_reasonlet_has_the_root_and_depth_that_climbing_finds(grown):
    mem, parents = grown
    forest = mem.reasonlets.forest()
    assert forest.schema == pl.Schema(FOREST_SCHEMA)
    found = {row["reasonlet_id"]: (row["root_id"], row["depth"]) for row in forest.iter_rows(named=True)}
    assert found == {name: place[:2] for name, place in oracle.places(parents).items()}


def test_a_lineage_has_paths_siblings_children_and_descendants(grown):
    mem, parents = grown
    places, relatives = oracle.places(parents), oracle.relatives(parents)
    for start in list(parents)[:6]:
        lineage = mem.reasonlets.lineage(start)
        assert lineage.schema == pl.Schema(LINEAGE_SCHEMA)
        members = {name for name, place in places.items() if place[0] == places[start][0]}
        assert set(lineage["reasonlet_id"]) == members
        for row in lineage.iter_rows(named=True):
            name = row["reasonlet_id"]
            assert (row["root_id"], row["depth"], row["path"]) == places[name]
            assert (row["siblings"], row["children"], row["descendants"]) == relatives[name]
        assert lineage["version"].to_list() == [f"1.{k}" for k in range(len(members))]
        assert lineage["high_water"].unique().to_list() == [len(members) - 1]


def test_a_lineage_as_of_a_time_shows_no_later_version(grown):
    mem, parents = grown
    names = list(parents)
    root = names[0]
    for n in (0, 10, 39):
        seen = mem.reasonlets.lineage(root, at=hour(n))
        assert set(seen["reasonlet_id"]) <= set(names[: n + 1])
    assert mem.reasonlets.forest(at=hour(9)).height == 10


def test_a_version_whose_parent_was_captured_later_by_the_clock_stands_alone_until_then(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=one("r"), outcome="success", at=hour(9)).reasonlet_id
    child = mem.reasonlets.capture(
        scope="s", question="q", graph=one("c"), outcome="success", parent_id=root, at=hour(1)
    ).reasonlet_id
    before = mem.reasonlets.lineage(child, at=hour(5))
    assert before["path"].to_list() == [[child]]
    row = mem.reasonlets.rank(at=hour(5)).row(0, named=True)
    assert (row["prior"], row["parent_rate"]) == (0.5, None)
    after = {row["reasonlet_id"]: row["prior_source"] for row in mem.reasonlets.rank(at=hour(9)).iter_rows(named=True)}
    assert after == {root: "neutral", child: "parent"}


@pytest.fixture
def tangled():
    """Lineages whose versions came in any order of the clock; the memory, id -> (parent_id, hour), and id -> label."""
    rng = random.Random(7)
    with mk.open() as mem:
        made, labels = {}, {}
        for number in range(40):
            parent = None if number < 3 else rng.choice(list(made))
            moment = rng.randrange(30)
            receipt = mem.reasonlets.capture(
                scope="s", question="q", graph=one(str(number)), parent_id=parent, at=hour(moment)
            )
            made[receipt.reasonlet_id] = (parent, moment)
            labels[receipt.reasonlet_id] = receipt.version
        yield mem, made, labels


@pytest.mark.parametrize("n", [0, 3, 8, 15, 22, 29])
def test_reads_as_of_a_time_name_no_parent_and_no_root_that_came_later(tangled, n):
    mem, made, labels = tangled
    seen = {name: parent for name, (parent, moment) in made.items() if moment <= n}
    parents = {name: parent if parent in seen else None for name, parent in seen.items()}
    places, relatives = oracle.places(parents), oracle.relatives(parents)
    for frame in (mem.reasonlets.forest(at=hour(n)), mem.frame("reasonlets", at=hour(n))):
        rows = {row["reasonlet_id"]: row for row in frame.iter_rows(named=True)}
        assert {name: (row["root_id"], row["depth"]) for name, row in rows.items()} == {
            name: place[:2] for name, place in places.items()
        }
        assert {name: row["parent_id"] for name, row in rows.items()} == parents
    ranked = mem.reasonlets.rank(at=hour(n))
    assert dict(ranked.select("reasonlet_id", "parent_id").iter_rows()) == parents
    tables = [mem.frame(name) for name in ("reasonlets", "runs", "feedback")]
    assert mk.rank(*tables, at=hour(n)).equals(ranked)
    recalled = mem.reasonlets.recall("q", scope="s", limit=100, at=hour(n), log=False)
    assert dict(recalled.select("reasonlet_id", "parent_id").iter_rows()) == parents
    for name, parent in parents.items():
        assert mem.reasonlets.explain(name, at=hour(n)).numbers["parent_id"] == parent
        row = mem.reasonlets.lineage(name, at=hour(n)).row(by_predicate=pl.col("reasonlet_id") == name, named=True)
        assert (row["root_id"], row["depth"], row["path"], row["parent_id"]) == (*places[name], parent)
        assert (row["siblings"], row["children"], row["descendants"]) == relatives[name]
        numbers = [int(labels[other][2:]) for other in parents if places[other][0] == places[name][0]]
        assert row["high_water"] == max(numbers)


def test_reads_as_it_stands_and_late_enough_give_the_same_lineages(tangled):
    mem, _, _ = tangled
    assert mem.reasonlets.forest(at=hour(99)).sort("reasonlet_id").equals(mem.reasonlets.forest().sort("reasonlet_id"))
    assert mem.frame("reasonlets", at=hour(99)).equals(mem.frame("reasonlets"))
    assert mem.reasonlets.rank(at=hour(99)).equals(mem.reasonlets.rank())
    for name in mem.reasonlets.forest()["root_id"].unique():
        assert mem.reasonlets.lineage(name, at=hour(99)).equals(mem.reasonlets.lineage(name))


def test_the_high_water_mark_as_it_stands_counts_pruned_labels_too(mem):
    root = mem.reasonlets.capture("s", "q", one("a"), at=hour(0)).reasonlet_id
    mem.reasonlets.capture("s", "q", one("b"), parent_id=root, subject="ada", at=hour(1))
    mem.reasonlets.erase_subject("ada")
    assert mem.reasonlets.lineage(root)["high_water"].to_list() == [1]
    assert mem.reasonlets.lineage(root, at=hour(0))["high_water"].to_list() == [0]


def test_an_unknown_reasonlet_has_no_lineage(mem):
    for call in (mem.reasonlets.lineage, mem.reasonlets.explain, mem.reasonlets.diff):
        with pytest.raises(NotFound, match="there is no reasonlet 'rl_x'"):
            call("rl_x")


def test_a_version_shows_what_it_changed(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=one("a")).reasonlet_id
    child = mem.reasonlets.capture(
        scope="s", question="q", graph={"nodes": [{"id": "a", "retries": 2}, {"id": "b"}]}, parent_id=root
    ).reasonlet_id
    assert mem.reasonlets.diff(child).rows() == [
        ("node", "added", "b", None, '{"id":"b"}', None),
        ("node property", "added", "a", None, "2", "retries"),
    ]
    assert mem.reasonlets.diff(root)["change"].to_list() == ["added"]
    assert mem.reasonlets.diff(root, child).select("part", "change").rows() == [
        ("node", "removed"),
        ("node property", "removed"),
    ]


def test_the_explanation_gives_the_sentence_the_numbers_and_what_each_run_did(mem):
    root = mem.reasonlets.capture(
        scope="s", question="book", graph=one("a"), outcome="success", at=hour(0)
    ).reasonlet_id
    for n in range(9):
        mem.reasonlets.record_run(root, "success" if n < 8 else "failure", at=hour(1 + n))
    made = mem.reasonlets.capture(
        scope="s", question="book", graph=one("b"), outcome="success", parent_id=root, at=hour(20)
    )
    mem.reasonlets.record_run(made.reasonlet_id, None, at=hour(21))
    turned = mem.reasonlets.record_run(made.reasonlet_id, "success", at=hour(22))
    mem.reasonlets.feedback(turned, "failure", at=hour(23))
    why = mem.reasonlets.explain(made.reasonlet_id)
    prior = 10 / 12
    assert why.numbers["prior"] == pytest.approx(prior, abs=1e-12)
    assert (why.parent["s"], why.parent["n"]) == (9, 10)
    assert why.runs.schema == pl.Schema(RUN_STEPS_SCHEMA)
    assert why.runs.select("outcome", "verdict", "counted", "n", "s").rows() == [
        ("success", "success", True, 1, 1),
        (None, None, False, 1, 1),
        ("success", "failure", True, 2, 1),
    ]
    steps = [prior, (1 + 2 * prior) / 3, (1 + 2 * prior) / 3, (1 + 2 * prior) / 4]
    assert why.runs["rate"].to_list() == pytest.approx(steps[1:], abs=1e-12)
    assert why.runs["change"].to_list() == pytest.approx(
        [after - before for before, after in itertools.pairwise(steps)], abs=1e-12
    )
    assert why.numbers["rate"] == pytest.approx(steps[-1], abs=1e-12)
    for part in ("Version 1.1", "1 of 2 counted runs succeeded (1 of unknown outcome left out)", "9 of 10, 0.8333"):
        assert part in str(why)
    assert "the prior is neutral, for it has no parent" in mem.reasonlets.explain(root).sentence
    early = mem.reasonlets.explain(root, at=hour(0))
    assert (early.numbers["n"], early.runs.height) == (1, 1)
    with pytest.raises(NotFound, match="at 2025-03-01T00:00:00"):
        mem.reasonlets.explain(made.reasonlet_id, at=hour(0))


def test_a_failing_parent_is_named_as_not_inherited(mem):
    root = mem.reasonlets.capture(scope="s", question="q", graph=one("a"), outcome="failure").reasonlet_id
    made = mem.reasonlets.capture(scope="s", question="q", graph=one("b"), parent_id=root)
    assert "is not above one half and nothing bad is inherited" in mem.reasonlets.explain(made.reasonlet_id).sentence


def test_the_same_rule_over_frames_of_the_store_gives_the_same_rows(grown):
    mem, parents = grown
    rng = random.Random(3)
    for n in range(60):
        run = mem.reasonlets.record_run(
            rng.choice(list(parents)), rng.choice(["success", "failure", None]), at=hour(rng.randrange(50))
        )
        if n % 5 == 0:
            mem.reasonlets.feedback(run, rng.choice(["success", "failure", None]), at=hour(rng.randrange(60)))
    tables = [mem.frame(name) for name in ("reasonlets", "runs", "feedback")]
    for settings in ({}, {"at": hour(20)}, {"k": 5}, {"parent_rate": "raw"}, {"scope": "s"}, {"scope": "none"}):
        assert mk.rank(*tables, **settings).equals(mem.reasonlets.rank(**settings))
    assert mk.rank(tables[0], tables[1]).equals(mem.reasonlets.rank())
