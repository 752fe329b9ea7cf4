"""Small made frames with the public columns, for the tests of charts and of the page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from mnemokit import frames
from mnemokit.reasonlets.ranking import RANK_SCHEMA, rank

START = datetime(2025, 8, 1, 12, tzinfo=UTC)


def of(table: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    """Rows as the public table has them; what a row does not name is null."""
    schema = frames.schema_of(table)
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def mnests(*edges: tuple[str, str, float, int], version: str = "1", state: str = "active") -> pl.DataFrame:
    """Edges given as (from, to, weight, uses)."""
    return of(
        "mnests",
        [
            {
                "mnest_id": f"mn_{number}_{version}_{state}",
                "src_executor": src,
                "src_version": version,
                "dst_executor": dst,
                "dst_version": version,
                "weight": weight,
                "weight_at": weight,
                "uses": uses,
                "ts_first": START,
                "ts_last": START,
                "ts_used": START,
                "decay_lambda": 0.018,
                "state": state,
                "tags": [],
                "untimed": False,
            }
            for number, (src, dst, weight, uses) in enumerate(edges)
        ],
    )


def events(*facts: tuple[float, str, float], mnest_id: str = "mn_1", dst: str = "buy") -> pl.DataFrame:
    """Events of one record, given as (days after the start, kind, weight after it)."""
    return of(
        "mnest_events",
        [
            {
                "mnest_id": mnest_id,
                "ts": START + timedelta(days=days),
                "kind": kind,
                "weight": weight,
                "src_executor": "find",
                "src_version": "1",
                "dst_executor": dst,
                "dst_version": "1",
                "seq": number,
                "untimed": False,
            }
            for number, (days, kind, weight) in enumerate(facts)
        ],
    )


def ranked(*versions: tuple[str, str | None, str, int, int]) -> pl.DataFrame:
    """Ranked procedures, given as (id, parent, version label, successes, counted runs)."""
    if not versions:
        return pl.DataFrame(schema=RANK_SCHEMA)
    reasonlets = pl.DataFrame(
        [(name, parent, label, "shop", f"how to {name}") for name, parent, label, _, _ in versions],
        schema=["reasonlet_id", "parent_id", "version", "scope", "question"],
        orient="row",
    )
    runs = pl.DataFrame(
        [
            (f"{name}{number}", name, "success" if number < s else "failure")
            for name, _, _, s, n in versions
            for number in range(n)
        ],
        schema={"run_id": pl.String, "reasonlet_id": pl.String, "outcome": pl.String},
        orient="row",
    )
    return rank(reasonlets, runs)


def turns(*calls: tuple[str, str | None, bool | None, str, str | None]) -> pl.DataFrame:
    """Turns, given as (session, executor, ok, version, outcome of the session)."""
    return of(
        "turns",
        [
            {
                "source": "made",
                "session_id": session,
                "turn_id": f"{session}:{number}",
                "step": number,
                "parallel_group": number,
                "executor": executor,
                "executor_version": version,
                "ts": START + timedelta(minutes=number),
                "ok": ok,
                "session_outcome": outcome,
            }
            for number, (session, executor, ok, version, outcome) in enumerate(calls)
        ],
    )


def ager_runs(nights: int, demoted: int = 0) -> pl.DataFrame:
    """Nights in a row."""
    return of(
        "ager_runs",
        [
            {
                "ts_ager": START + timedelta(days=night),
                "kind": "daily",
                "decayed": 10,
                "decayed_protos": 0,
                "demoted_to_decaying": demoted,
                "merged": 0,
                "purged_protos": 0,
                "params": "{}",
                "seconds": 0.0,
            }
            for night in range(nights)
        ],
    )


def changes(n: int, verdict: str | None = "kept", actor: str = "tool:memory_add") -> pl.DataFrame:
    """Memory writes, one an hour."""
    return of(
        "session_changes",
        [
            {
                "change_id": f"ch_{number}",
                "kind": "memory_write",
                "actor": actor,
                "session_id": "s1",
                "verdict": verdict,
                "ts_candidate": START + timedelta(hours=number),
            }
            for number in range(n)
        ],
    )


def walk(*paths: tuple[list[str], float], truncated: bool = False) -> pl.DataFrame:
    """Paths given as (executors, mean weight)."""
    return pl.DataFrame(
        [(names, weight, len(names) - 1, truncated) for names, weight in paths],
        schema={
            "executors": pl.List(pl.String),
            "mean_weight": pl.Float64,
            "depth": pl.Int64,
            "truncated": pl.Boolean,
        },
        orient="row",
    )
