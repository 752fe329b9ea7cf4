"""The walk, held to an enumeration of every path."""

from __future__ import annotations

import random
import time
import tracemalloc
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit.errors import InvalidInput
from mnemokit.mnests.namespace import Mnests
from mnemokit.mnests.walk import WALK, edges_in_frame, walk
from mnemokit.store import Store

AT = datetime(2025, 3, 1, tzinfo=UTC)
COLUMNS = ["mnest_id", "src_executor", "src_version", "dst_executor", "dst_version", "weight_at", "state"]


def frame_of(edges: list[tuple]) -> pl.DataFrame:
    rows = [(f"mn_{n}", *edge, "active") for n, edge in enumerate(edges)]
    schema = {name: pl.Float64 if name == "weight_at" else pl.String for name in COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row")


def every_path(edges: list[tuple], start: str, max_depth: int) -> list[tuple[list, list, list]]:
    leaving: dict = {}
    for src, version, dst, dst_version, weight in edges:
        leaving.setdefault((src, version), []).append((dst, dst_version, weight))
    paths = []

    def go_on(names: list, versions: list, weights: list) -> None:
        if weights:
            paths.append((names, versions, weights))
        if len(weights) == max_depth:
            return
        here = [(names[-1], versions[-1])] if weights else [node for node in leaving if node[0] == start]
        for node in here:
            for dst, version, weight in leaving.get(node, []):
                if dst not in names:
                    go_on([*names, dst], [*(versions or [node[1]]), version], [*weights, weight])

    go_on([start], [], [])
    return sorted(
        paths,
        key=lambda p: (-round(sum(p[2]) / len(p[2]) / 1e-12), len(p[2]), p[0], [v or "" for v in p[1]]),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4), st.sampled_from([1, 3, 5, 20, 1000]))
def test_a_walk_gives_the_best_of_all_paths_in_order(seed: int, depth: int, limit: int) -> None:
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(rng.randint(2, 6))]
    keys = {
        (rng.choice(names), rng.choice("12"), rng.choice(names), rng.choice(["1", "2", None]))
        for _ in range(rng.randint(1, 40))
    }
    edges = [(*key, rng.choice([0.3, 0.3, 0.5, 1.0, round(rng.random(), 3)])) for key in sorted(keys, key=str)]
    got = walk(edges_in_frame(frame_of(edges), ["active"]), "n0", max_depth=depth, limit=limit)
    want = every_path(edges, "n0", depth)
    assert got.schema == pl.Schema(WALK)
    assert got["executors"].to_list() == [path[0] for path in want[:limit]]
    assert got["versions"].to_list() == [path[1] for path in want[:limit]]
    assert got["mean_weight"].to_list() == pytest.approx([sum(p[2]) / len(p[2]) for p in want[:limit]])
    assert got["depth"].to_list() == [len(path[2]) for path in want[:limit]]
    assert (got["truncated"] == (len(want) > limit)).all()


@pytest.mark.parametrize("kind", ["equal", "random", "light_start"])
def test_a_complete_graph_of_21_nodes_is_walked_in_bounds(kind: str) -> None:
    rng = random.Random(1)
    names = [f"n{n:02d}" for n in range(21)]
    weight = {
        "equal": lambda _: 0.3,
        "random": lambda _: rng.random(),
        "light_start": lambda a: 0.3 if a == "n00" else 1.0,
    }[kind]
    edges = edges_in_frame(frame_of([(a, "1", b, "1", weight(a)) for a in names for b in names if a != b]), ["active"])
    walk(edges, "n00", max_depth=2)
    started = time.process_time()
    tracemalloc.start()
    found = walk(edges, "n00", max_depth=5, limit=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.height == 100
    assert found["truncated"].all()
    assert time.process_time() - started < 10
    assert peak < 200e6
    if kind == "light_start":
        assert found["executors"][0].to_list() == ["n00", "n01", "n02", "n03", "n04", "n05"]
        assert found["mean_weight"][0] == pytest.approx((0.3 + 4) / 5)


def test_a_walk_in_the_store_follows_versions_and_filters_states() -> None:
    mnests = Mnests(Store())
    mnests.record_passing("a", "1", "b", "1", at=AT)
    mnests.record_passing("b", "2", "c", "1", at=AT)  # another version of b: not reached
    mnests.record_passing("a", "2", "d", "1", at=AT)  # another version of the start: walked
    mnests.record_passing("d", "1", "a", "1", at=AT)  # back to a: never twice
    mnests.record_passing("b", "1", "wish", dst_exists=False, at=AT)
    ended = mnests.record_passing("a", "1", "z", "1", at=AT)
    mnests.transition_state(ended, "superseded", at=AT)
    assert mnests.walk("a")["path"].to_list() == ["a@1 -> b@1", "a@2 -> d@1"]
    assert not mnests.walk("a")["truncated"].any()
    assert mnests.walk("a", limit=1)["truncated"].all()
    assert mnests.walk("a", states=("active", "proto"))["path"].to_list() == [
        "a@1 -> b@1", "a@2 -> d@1", "a@1 -> b@1 -> wish",
    ]  # fmt: skip
    assert mnests.walk("a", states=("superseded",))["path"].to_list() == ["a@1 -> z@1"]
    assert mnests.walk("nobody").height == 0


def test_a_walk_as_of_an_instant_goes_by_the_weights_of_then() -> None:
    mnests = Mnests(Store())
    for _ in range(2):
        mnests.record_passing("a", "1", "fast", "1", decay_lambda=1.0, at=AT)
    mnests.record_passing("a", "1", "slow", "1", decay_lambda=0.0, at=AT)
    assert mnests.walk("a")["executors"].to_list() == [["a", "fast"], ["a", "slow"]]
    later = mnests.walk("a", at="2025-03-05T00:00:00Z")
    assert later["executors"].to_list() == [["a", "slow"], ["a", "fast"]]


def test_a_walk_refuses_what_it_cannot_do() -> None:
    mnests = Mnests(Store())
    with pytest.raises(InvalidInput):
        mnests.walk("a", max_depth=0)
    with pytest.raises(InvalidInput):
        mnests.walk("a", limit=0)
    with pytest.raises(InvalidInput):
        mnests.walk("a", states=("awake",))
