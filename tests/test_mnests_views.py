"""Graphs, differences, forecasts and superseding of the edge memory."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import networkx
import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import InvalidInput, NotFound
from mnemokit.mnests.edge_forecast import fades_at
from mnemokit.mnests.namespace import Mnests
from mnemokit.store import Store

DAY0 = datetime(2025, 3, 1, 12, tzinfo=UTC)


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


@pytest.fixture
def mnests() -> Mnests:
    return Mnests(Store())


def ring(mnests: Mnests, *names: str, version: str = "1", at: float = 0) -> None:
    for src, dst in zip(names, [*names[1:], names[0]], strict=True):
        mnests.record_passing(src, version, dst, version, at=day(at))


def test_a_graph_for_rustworkx_and_one_for_networkx_hold_the_same_edges(mnests: Mnests) -> None:
    ring(mnests, "a", "b", "c")
    mnests.record_passing("c", "1", "d", "2", at=day(0))
    rusty, py = mnests.graph(), mnests.graph(kind="networkx")
    assert isinstance(py, networkx.MultiDiGraph)
    edges = {(rusty[s], rusty[t]) for s, t in rusty.edge_list()}
    assert edges == set(py.edges()) == {
        (("a", "1"), ("b", "1")), (("b", "1"), ("c", "1")), (("c", "1"), ("a", "1")), (("c", "1"), ("d", "2")),
    }  # fmt: skip
    assert {edge["weight"] for edge in rusty.edges()} == {0.30}


def test_a_graph_can_leave_out_light_edges_and_collapse_versions(mnests: Mnests) -> None:
    mnests.record_passing("a", "1", "b", "1", at=day(0))
    mnests.record_passing("a", "1", "b", "1", at=day(0))
    mnests.record_passing("a", "2", "b", "1", at=day(0))
    assert mnests.graph(min_weight=0.4).num_edges() == 1
    assert mnests.graph(at=day(30), min_weight=0.3).num_edges() == 0
    graph = mnests.graph(collapse_versions=True)
    assert graph.nodes() == [("a", None), ("b", None)]
    assert graph.edges()[0]["uses"] == 3
    assert graph.edges()[0]["weight"] == pytest.approx(0.45)
    with pytest.raises(InvalidInput):
        mnests.graph(kind="igraph")


def test_strong_groups_are_executors_that_reach_each_other(mnests: Mnests) -> None:
    ring(mnests, "a", "b", "c")
    ring(mnests, "x", "y")
    mnests.record_passing("c", "1", "x", "1", at=day(0))
    groups = mnests.strong_groups().group_by("group", maintain_order=True).agg("executor")["executor"].to_list()
    assert groups == [["a", "b", "c"], ["x", "y"]]


def test_strengths_sum_weights_each_way(mnests: Mnests) -> None:
    mnests.record_passing("a", "1", "b", "1", at=day(0))
    mnests.record_passing("a", "1", "c", "1", at=day(0))
    mnests.record_passing("b", "1", "c", "1", at=day(0))
    rows = {row["executor"]: row for row in mnests.strengths().to_dicts()}
    assert rows["a"]["strength_out"] == pytest.approx(0.6)
    assert (rows["a"]["edges_in"], rows["c"]["edges_in"], rows["b"]["uses_out"]) == (0, 2, 1)


def test_directly_follows_counts_every_passing_whatever_became_of_the_edge() -> None:
    with mk.open() as mem:
        turns = mk.datasets.tau2()
        mem.replay(turns, progress=False)
        follows = mem.mnests.directly_follows(collapse_versions=True)
        derived = mk.derive_passings(turns)
        counted = Counter(zip(derived["src_executor"], derived["dst_executor"], strict=True))
        assert {(s, d): n for s, d, n in follows.select("src_executor", "dst_executor", "n").rows()} == counted
        sessions = {
            (s, d): n
            for s, d, n in derived.group_by("src_executor", "dst_executor").agg(pl.col("session_id").n_unique()).rows()
        }
        assert {(s, d): n for s, d, n in follows.select("src_executor", "dst_executor", "sessions").rows()} == sessions


def test_directly_follows_counts_are_those_of_a_process_mining_library() -> None:
    """PM4Py sorts by time alone, so it is given instants that are those of the steps, one second each."""
    import pm4py

    turns = mk.datasets.tau2().filter(pl.col("executor").is_not_null())
    log = turns.sort("session_id", "step").select(
        pl.col("session_id").alias("case:concept:name"),
        pl.col("executor").alias("concept:name"),
        pl.from_epoch(pl.col("step")).dt.replace_time_zone("UTC").alias("time:timestamp"),
    )
    found, _, _ = pm4py.discover_dfg(log.to_pandas())
    with mk.open() as mem:
        mem.replay(turns, passings="successive", captures="none", progress=False)
        follows = mem.mnests.directly_follows(collapse_versions=True)
    assert {(src, dst): n for src, dst, n in follows.select("src_executor", "dst_executor", "n").rows()} == dict(found)
    assert sum(found.values()) == 3586, "the number of successive passings of this log is known"


def test_a_diff_of_two_instants_names_what_happened_to_each_edge(mnests: Mnests) -> None:
    for name in ("grows", "fades", "demoted", "same"):
        mnests.record_passing("a", "1", name, "1", decay_lambda=0.1 if name == "demoted" else 0.0, at=day(0))
    mnests.record_passing("a", "1", "fades2", "1", decay_lambda=0.01, at=day(0))
    mnests.record_passing("a", "1", "wish", dst_exists=False, decay_lambda=1.0, at=day(0))
    superseded = mnests.record_passing("a", "1", "old", "1", at=day(0))
    mnests.apply_ager(day(6))
    mnests.record_passing("a", "1", "grows", "1", at=day(7))
    mnests.record_passing("a", "1", "new", "1", at=day(7))
    mnests.transition_state(superseded, "superseded", at=day(7))
    diff = mnests.diff(day(1), day(8))
    changes = dict(diff.select("dst_executor", "change").rows())
    assert changes == {
        "grows": "grown", "fades2": "faded", "fades": "same", "same": "same", "demoted": "demoted", "wish": "gone",
        "old": "superseded", "new": "born",
    }  # fmt: skip
    row = diff.filter(pl.col("dst_executor") == "grows").row(0, named=True)
    assert (row["n_before"], row["n_after"], row["n"]) == (1, 2, 1)
    assert row["delta"] == pytest.approx(0.15)
    assert diff["delta"].abs().is_sorted(descending=True)


def test_a_diff_of_two_stores_adds_up_what_is_behind_both(mnests: Mnests) -> None:
    other = Mnests(Store())
    mnests.record_passing("a", "1", "b", "1", at=day(0))
    other.record_passing("a", "1", "b", "1", at=day(0))
    other.record_passing("a", "1", "b", "1", at=day(0))
    other.record_passing("a", "1", "c", None, dst_exists=False, at=day(0))
    rows = {row["dst_executor"]: row for row in mnests.diff(other=other).to_dicts()}
    assert (rows["b"]["change"], rows["b"]["n"], rows["c"]["change"], rows["c"]["n"]) == ("grown", 3, "born", 1)


def test_sessions_behind_a_diff_are_the_logged_ones() -> None:
    with mk.open() as mem:
        turns = mk.datasets.tau2()
        mem.replay(turns, progress=False)
        diff = mem.mnests.diff(datetime(2000, 1, 1, tzinfo=UTC))
        assert (diff["change"] == "born").all()
        assert (diff["sessions"] >= 1).all()
        assert (diff["sessions"] <= diff["n"]).all()
        assert diff["n"].sum() <= 4087


@pytest.mark.parametrize("rate", [0.001, 0.018, 0.4, 5.0])
@pytest.mark.parametrize("proto", [True, False])
def test_the_forecast_is_the_night_on_which_the_ager_ends_the_edge(mnests: Mnests, rate: float, proto: bool) -> None:
    edge = mnests.record_passing(
        "a", "1", "b", None if proto else "1", dst_exists=not proto, decay_lambda=rate, at=day(0.3)
    )
    row = mnests.fades_at().row(0, named=True)
    night = row["ends_at"]
    assert (night.hour, night.minute) == (3, 0)
    assert night - timedelta(days=1) <= max(row["fades_at"], day(0.3)) <= night
    mnests.apply_ager(night - timedelta(days=1))
    assert mnests.get(edge).state == ("proto" if proto else "active")
    mnests.apply_ager(night)
    if proto:
        with pytest.raises(NotFound):
            mnests.get(edge)
        assert row["ends_as"] == "purged"
    else:
        assert mnests.get(edge).state == row["ends_as"] == "decaying"


def test_an_edge_that_never_fades_has_no_forecast(mnests: Mnests) -> None:
    mnests.record_passing("a", "1", "b", "1", decay_lambda=0.0, at=day(0))
    mnests.record_passing("a", "1", "c", "1", decay_lambda=1e-9, at=day(0))
    mnests.record_passing("a", "1", "d", "1", at=day(0))
    frame = mnests.fades_at()
    assert frame["dst_executor"].to_list() == ["d", "b", "c"]
    assert frame["fades_at"].null_count() == frame["ends_at"].null_count() == 2
    with pytest.raises(InvalidInput):
        fades_at(pl.DataFrame({"weight": [1.0]}))


def test_superseding_a_version_ends_its_edges_and_links_their_history(mnests: Mnests) -> None:
    ring(mnests, "a", "b")
    keep = mnests.record_passing("a", "2", "b", "2", at=day(0))
    faded = mnests.record_passing("b", "1", "z", "1", decay_lambda=0.1, at=day(0))
    mnests.apply_ager(day(6))
    fresh = mnests.record_passing("b", "1", "z", "1", at=day(7))
    assert mnests.supersede_version("b", "1", "2", reason="released", at=day(8)) == 4
    assert mnests.get(keep).state == "active"
    assert mnests.stats().superseded == 3  # the two of b -> z became one
    assert mnests.get(faded).uses == 2
    with pytest.raises(NotFound):
        mnests.get(fresh)
    event = mnests.events(faded).filter(pl.col("kind") == "transition").row(0, named=True)
    assert json.loads(event["detail"]) == {"executor": "b", "superseded_by": "2"}
    assert event["reason"] == "released"
    assert mnests.supersede_version("b", "1", "2", at=day(9)) == 0
    with pytest.raises(InvalidInput):
        mnests.supersede_version("b", "1", "1")


def test_ageing_a_frame_is_what_the_ager_does_to_the_store(mnests: Mnests) -> None:
    for n in range(12):
        mnests.record_passing("a", "1", f"t{n % 5}", "1", decay_lambda=0.02 * (n % 5), tags=[f"x{n}"], at=day(n))
        mnests.record_passing("a", "1", f"w{n % 3}", dst_exists=False, decay_lambda=0.1 * (n % 3), at=day(n))
    mnests.apply_ager(day(30))
    for n in range(3):
        mnests.record_passing("a", "1", f"t{n + 2}", "1", decay_lambda=0.05, tags=[f"y{n}"], at=day(31))
    before = mnests.frame()
    aged = mk.age(before, now=day(60))
    stats = mnests.apply_ager(day(60))
    assert aged.stats == stats
    assert stats.merged >= 1
    assert stats.purged_protos >= 1
    columns = [name for name in before.columns if name not in ("weight", "weight_at")]
    have, want = (frame.sort("mnest_id") for frame in (aged.mnests, mnests.frame()))
    assert have.select(columns).equals(want.select(columns))
    assert have["weight"].to_list() == pytest.approx(want["weight"].to_list(), rel=1e-12)
    assert mk.age(aged.mnests, now=day(60)).stats.decayed == 0


def test_decay_of_a_frame_composes(mnests: Mnests) -> None:
    mnests.record_passing("a", "1", "b", "1", at=day(0))
    frame = mnests.frame()
    assert mk.decay(frame, at=day(10))["weight_at"].item() == pytest.approx(
        mnests.frame(day(10))["weight_at"].item(), rel=1e-12
    )
    assert mk.decay(frame.drop("untimed"), at=day(10)).columns == frame.drop("untimed").columns
    with pytest.raises(InvalidInput):
        mk.decay(pl.DataFrame({"weight": [1.0]}), at=day(0))
