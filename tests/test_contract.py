"""The calls that other people's programs make: names, argument names and columns, exactly."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl

import mnemokit as mk

GRAPH = {"nodes": [{"id": "find"}, {"id": "buy"}], "edges": [{"src": "find", "dst": "buy"}], "properties": {}}
OTHER = {"nodes": [{"id": "find"}], "edges": [], "properties": {}}
AT = "2025-08-01T00:00:00+00:00"
LATER = "2025-08-02T00:00:00+00:00"
RANK = ["reasonlet_id", "version", "parent_id", "n", "s", "prior", "prior_source", "rate", "rate_low", "rate_high"]


def test_reasonlets() -> None:
    with mk.open() as mem:
        calls = mem.reasonlets
        first = calls.capture(
            scope="shop", question="buy a thing", graph=GRAPH, outcome="success", subject="ann", provenance={"run": 1},
            parent_id=None, recall_id=None, at=AT, key="k1",
        )  # fmt: skip
        assert (first.kind, first.version) == ("new_reasonlet", "1.0")
        assert first == calls.capture(scope="shop", question="buy a thing", graph=GRAPH, outcome="success", key="k1")
        child = calls.capture(
            scope="shop", question="buy a thing", graph=OTHER, outcome="failure", parent_id=first.reasonlet_id, at=LATER
        )
        assert (child.kind, child.version) == ("new_version", "1.1")
        same = calls.capture(
            scope="shop", question="x", graph=OTHER, outcome=None, parent_id=child.reasonlet_id, at=LATER
        )
        assert (same.kind, same.reasonlet_id) == ("execution_only", child.reasonlet_id)
        run_id = calls.record_run(child.reasonlet_id, "failure", subject="bob", provenance=None, at=LATER, key="k2")
        assert isinstance(run_id, str)
        calls.feedback(run_id, "success", subject="eve", note="fine", at=LATER, key="k3")
        ranked = calls.rank(scope="shop", at=LATER, k=2, parent_rate="smoothed")
        assert ranked.columns[: len(RANK)] == RANK
        assert calls.rank(scope=None, parent_rate="raw").height == 2
        found = calls.recall(
            "buy", scope="shop", limit=10, min_similarity=None, weight=1.0, subject="bob", at=LATER, log=True
        )
        assert set(RANK) | {"recall_id", "rank", "similarity", "score"} <= set(found.columns)
        assert mem.frame("recalls").height == 1
        assert calls.recall("buy", scope="shop", log=False).height == 2
        assert calls.get(child.reasonlet_id).version == "1.1"
        assert calls.lineage(child.reasonlet_id).height == 2
        assert "Version 1.1" in calls.explain(child.reasonlet_id).sentence
        assert calls.prune(unused_for=timedelta(days=1), now=LATER, dry_run=True).reasonlets == 0
        assert calls.erase_subject("ann").reasonlets == 1
        assert calls.erase_scope("shop").reasonlets == 1
        assert mem.frame("reasonlets").height == 0


def test_mnests() -> None:
    with mk.open() as mem:
        calls = mem.mnests
        edge = calls.record_passing(
            "find", "1", "buy", dst_version="1", dst_exists=True, desired_sig=None, tags=["shop"], decay_lambda=0.018,
            turn_id="t1", at=AT, key="k",
        )  # fmt: skip
        assert edge.startswith("mn_")
        assert edge == calls.record_passing("find", "1", "buy", dst_version="1", at=AT, key="k")
        wish = calls.record_passing("find", "1", "wish", dst_exists=False, desired_sig={"summary": "s"}, at=AT)
        stats = calls.apply_ager(now=LATER)
        assert (stats.decayed, stats.decayed_protos, stats.demoted_to_decaying, stats.merged) == (2, 1, 0, 0)
        assert (stats.purged_protos, stats.recurring_protos, stats.proposed_archive) == (0, 0, 0)
        assert calls.find("find", "1", "buy", dst_version="1", state="active") == edge
        assert calls.find("find", "1", "nothing", dst_version="1") is None
        assert calls.get(edge).uses == 1
        assert calls.events(edge).height == 1
        for frame in (
            calls.top_outgoing("find", k=10), calls.top_incoming("buy", k=10), calls.by_tag("shop"), calls.decaying(),
            calls.recurring_protos(min_uses=1, min_weight=0.1), calls.audit(limit=50),
        ):  # fmt: skip
            assert isinstance(frame, pl.DataFrame)
        assert calls.top_outgoing("find").height == 2
        assert calls.summary("find").outgoing.edges == 1
        assert calls.stats().total_mnests == 2
        calls.promote_proto_to_active(wish, "0.1.0", reason="built", at=LATER)
        calls.transition_state(edge, "superseded", reason="replaced", at=LATER)
        paths = calls.walk("find", max_depth=3, states=("active",), limit=100)
        assert {"path", "executors", "mean_weight", "depth", "truncated"} <= set(paths.columns)
        assert mem.queries.record("buy a thing", "buy", "{}", ok=True, at=AT) is None
        assert mem.frame("canonical_queries")["uses"].to_list() == [1]


def test_session_changes() -> None:
    with mk.open() as mem:
        with mem.session("s1", user_id="ann", brain_id="b1", conversation_id=None) as session:
            added = session.add(
                "likes tea", type="semantic", scope=None, tags=(), metadata=None, parents=(), contributor_ids=("bob",),
                actor="tool:memory_add", at=AT,
            )  # fmt: skip
            assert added.verdict == "kept"
            (trace,) = added.trace_ids
            updated = session.update(trace, content="likes green tea")
            second = session.add("likes cake")
            merged = session.merge([trace, second.trace_ids[0]], content=None)
            session.rolling_summary("tea and cake", contributor_ids=("bob",))
            gone = session.delete([merged.trace_ids[0]])
            assert gone.verdict == "kept"
        assert mem.changes.revert(gone.change_id).verdict == "reverted"
        assert mem.changes.timeline(trace).height >= 2
        assert mem.changes.audit().ok
        mem.changes.forget_user("bob")
        mem.changes.readmit("bob")
        assert updated.change_id != added.change_id
        for table in ("traces", "session_changes", "session_rows"):
            assert isinstance(mem.frame(table), pl.DataFrame)


def test_replay_and_reading(tmp_path: Path) -> None:
    turns = mk.datasets.tau2()
    turns.write_parquet(tmp_path / "turns.parquet")
    assert mk.read_turns(str(tmp_path / "turns.parquet"), source="auto").height == 3866
    with mk.open(tmp_path / "memory.duckdb") as mem:
        report = mem.replay(turns, source="auto", label=None, ager="daily", strict=False, dry_run=False)
        assert report.turns + report.duplicates + report.rejects + report.ignored == 3866
        assert (report.passings, report.captures) == (4087, 280)
        assert report.seconds > 0
        assert mem.sql("SELECT count(*) AS n FROM runs WHERE outcome = ?", ["success"])["n"].item() == 193
        tables = set(mem.tables()["table"])
        assert tables >= {
            "reasonlets", "runs", "feedback", "recalls", "mnests", "mnest_events", "ager_runs", "canonical_queries",
            "traces", "session_changes", "session_rows", "turns", "rejects",
        }  # fmt: skip
        for table in tables:
            mem.frame(table, at=LATER)
        mem.export(tmp_path / "out")
        mem.copy_to(tmp_path / "copy.duckdb")
        mem.scrub()
        mem.remove_source("tau2")
        assert mem.frame("turns").height == 0


def test_pure_functions() -> None:
    passings = mk.derive_passings(mk.datasets.tau2())
    folded = mk.fold_passings(passings, ager=None, params=mk.EdgeParams())
    assert folded.mnests["uses"].sum() == 4087
    assert "weight_at" in mk.decay(folded.mnests, at=LATER).columns
    assert mk.age(folded.mnests, now=LATER).stats.decayed == folded.mnests.height
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2())
        ranked = mk.rank(mem.frame("reasonlets"), mem.frame("runs"))
        assert ranked.columns[: len(RANK)] == RANK
        assert ranked.equals(mem.reasonlets.rank())


def test_evaluate_charts_and_page(tmp_path: Path) -> None:
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2())
        for target in ("runs", "next_executor"):
            assert isinstance(mk.evaluate.score(mem, target=target), pl.DataFrame)
        for name in ("sweep", "fit", "what_if", "compare"):
            assert callable(getattr(mk.evaluate, name))
        assert mk.report(mem, tmp_path / "memory.html").exists()
        assert mk.charts.edge_weights(mem.frame("mnests")) is not None
