"""A mistaken replay can be taken back, as if it had never been made."""

from __future__ import annotations

import polars as pl
import pytest

import mnemokit as mk

EDGE = ["src_executor", "src_version", "dst_executor", "dst_version", "state"]


def edges(mem: mk.Memory) -> pl.DataFrame:
    return mem.frame("mnests").drop("mnest_id").sort(EDGE)


def halves() -> tuple[pl.DataFrame, pl.DataFrame]:
    turns = mk.datasets.tau2()
    own = pl.col("session_id").hash(seed=1) % 2 == 0
    return turns.filter(own), turns.filter(~own)


def test_a_removed_source_leaves_the_edges_and_ticks_as_if_it_had_never_been_replayed() -> None:
    mine, mistake = halves()
    with mk.open() as mem, mk.open() as never:
        mem.replay(mistake, label="mistake")
        mem.replay(mine, label="mine")
        removed = mem.remove_source("mistake")
        never.replay(mine, label="mine")
        assert removed.turns == mistake.height
        assert edges(mem).drop("weight", "weight_at").equals(edges(never).drop("weight", "weight_at"))
        gap = (edges(mem)["weight"] - edges(never)["weight"]).abs().max()
        assert gap < 1e-12
        assert mem.frame("ager_runs")["ts_ager"].to_list() == never.frame("ager_runs")["ts_ager"].to_list()
        assert mem.frame("turns").drop_nulls("ts").equals(never.frame("turns").drop_nulls("ts"))
        assert mem.frame("mnest_events").height == never.frame("mnest_events").height


def test_reasonlets_with_runs_or_versions_from_elsewhere_stay_with_their_labels() -> None:
    mine, mistake = halves()
    with mk.open() as mem:
        mem.replay(mistake, label="mistake")
        mem.replay(mine, label="mine")
        before = mem.frame("reasonlets")
        mem.remove_source("mistake")
        after = mem.frame("reasonlets")
        kept = before.join(after, on="reasonlet_id", how="semi")
        assert (
            kept.select("reasonlet_id", "version")
            .sort("reasonlet_id")
            .equals(after.select("reasonlet_id", "version").sort("reasonlet_id"))
        )
        needed = set(after.filter(source="mine")["parent_id"].drop_nulls()) | set(mem.frame("runs")["reasonlet_id"])
        assert needed <= set(after["reasonlet_id"])
        assert mem.frame("runs")["source"].unique().to_list() == ["mine"]
        assert mem.frame("runs").height == mine["session_id"].n_unique()


def test_a_removed_source_can_be_replayed_again() -> None:
    mine, mistake = halves()
    with mk.open() as mem:
        mem.replay(mine, label="mine")
        mem.replay(mistake, label="mistake")
        before = edges(mem)
        mem.remove_source("mistake")
        again = mem.replay(mistake, label="mistake")
        assert again.turns == mistake.height
        assert again.captures == mistake["session_id"].n_unique()
        assert edges(mem).drop("weight", "weight_at").equals(before.drop("weight", "weight_at"))
        assert (edges(mem)["weight"] - before["weight"]).abs().max() < 1e-12


def test_removing_the_only_source_leaves_an_empty_memory() -> None:
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2().head(500))
        mem.remove_source("tau2")
        for table in ("turns", "runs", "reasonlets", "mnests", "mnest_events", "ager_runs", "rejects"):
            assert mem.frame(table).height == 0, table


def test_what_was_recorded_by_hand_stays() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("a", "1", "b", "1", at="2025-08-01T00:00:00Z")
        receipt = mem.reasonlets.capture(scope="s", question="q", graph={"nodes": [], "edges": []}, outcome="success")
        mem.replay(mk.datasets.tau2().head(500))
        mem.remove_source("tau2")
        assert mem.frame("mnests")["src_executor"].to_list() == ["a"]
        assert mem.frame("reasonlets")["reasonlet_id"].to_list() == [receipt.reasonlet_id]


def test_an_unknown_source_is_not_found() -> None:
    with mk.open() as mem, pytest.raises(mk.NotFound, match="no source 'nobody'"):
        mem.remove_source("nobody")
