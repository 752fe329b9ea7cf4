"""Captures: batches of 12-node graphs per second, hashing included, and single ones beside their bare statements.

taskset -c 0 .venv/bin/python benchmarks/bench_reasonlets_capture.py [BATCH] [SINGLE]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from common import emit, timed

import mnemokit as mk
from mnemokit.reasonlets import graph as graph_content
from mnemokit.store import query

NOW = datetime(2025, 3, 1, tzinfo=UTC)


def made_graph(number: int) -> dict[str, list[dict[str, object]]]:
    """A chain of 12 steps with a branch; no two numbers give the same graph."""
    nodes = [
        {"id": f"step_{number % 977}_{i}", "tool": f"tool_{(number * 7 + i) % 311}", "tries": i} for i in range(12)
    ]
    edges = [{"src": nodes[i]["id"], "dst": nodes[i + 1]["id"], "label": "then"} for i in range(11)]
    edges.append({"src": nodes[0]["id"], "dst": nodes[11]["id"], "label": f"or {number}"})
    return {"nodes": nodes, "edges": edges}


def batch(first: int, size: int) -> pl.DataFrame:
    """Captures as a log gives them: half new reasonlets' worth of questions, JSON text graphs."""
    numbers = range(first, first + size)
    return pl.DataFrame(
        {
            "scope": ["shop"] * size,
            "question": [f"refund order {number % 5000} bought in shop {number % 97}" for number in numbers],
            "graph": [json.dumps(made_graph(number)) for number in numbers],
            "outcome": [("success", "failure", None)[number % 3] for number in numbers],
            "subject": [f"user {number % 1000}" for number in numbers],
            "ts": [NOW + timedelta(seconds=number) for number in numbers],
            "key": [f"capture {number}" for number in numbers],
        }
    )


def batches(mem: mk.memory.Memory, size: int) -> float:
    """Captures per second of several batches."""
    made = [batch(first, size) for first in range(0, 5 * size, size)]
    mem.reasonlets.capture_many(batch(10 * size, 1000))
    _, seconds = timed(lambda: [mem.reasonlets.capture_many(part) for part in made])
    return 5 * size / seconds


def bare(con, number: int, root: str, question: str, content: graph_content.Content) -> None:
    """The statements of a capture of a new version, and nothing else: no checks, no rule."""
    name, terms = f"rl_{number:024d}", question.split()
    con.execute("BEGIN TRANSACTION")
    con.execute("SELECT call, result FROM idempotency_keys WHERE key_hash = ?", [name]).fetchall()
    con.execute("SELECT realm FROM tombstones WHERE name_hash = ? OR name_hash = ?", ["a", "b"]).fetchall()
    seq = con.execute(
        "UPDATE counters SET next_free = next_free + 1 WHERE name = ? RETURNING next_free", ["seq"]
    ).fetchall()[0][0]
    (parent,) = con.execute(query("capture_parent"), {"parent_id": root}).fetchall()
    con.execute(
        "INSERT INTO reasonlets (reasonlet_id, parent_id, root_id, version, version_no, depth, scope, question, "
        "subject, graph, graph_hash, ts_captured, seq, parent_no) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            name,
            root,
            root,
            f"1.{seq}",
            seq,
            1,
            "bare",
            question,
            "user",
            content.text,
            content.hash,
            NOW,
            seq,
            parent[1],
        ],
    )
    con.execute("UPDATE lineages SET high_water = ? WHERE root_id = ?", [seq, root])
    con.execute("INSERT INTO run_counts VALUES (?, 0, 0)", [seq])
    con.execute("INSERT INTO question_lengths VALUES (?, ?, ?, ?)", ["bare", seq, len(terms), NOW])
    con.execute(
        "INSERT INTO postings SELECT ?, unnest(?), ?, unnest(?), ?, ?",
        ["bare", terms, seq, [1] * len(terms), len(terms), NOW],
    )
    con.execute(
        "INSERT INTO runs (run_id, reasonlet_id, outcome, subject, ts_run, seq, reasonlet_no) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [f"run_{number:024d}", name, "success", "user", NOW, seq, seq],
    )
    con.execute("UPDATE run_counts SET n = n + 1, s = s + ? WHERE reasonlet_no = ?", [1, seq])
    con.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?)", [name, "capture", "{}"])
    con.execute("COMMIT")


def singles(mem: mk.memory.Memory, n: int) -> tuple[float, float]:
    """(median seconds of a capture, of its bare statements), taken in turns."""
    root = mem.reasonlets.capture(scope="bare", question="root", graph={}).reasonlet_id
    ours, theirs = [], []
    for number in range(n):
        graph, question = made_graph(number), f"refund order {number} bought in shop {number % 97}"
        content = graph_content.canonical(graph)
        started = time.perf_counter()
        mem.reasonlets.capture(
            scope="bare", question=question, graph=graph, outcome="success", subject="user", parent_id=root,
            key=f"single {number}",
        )  # fmt: skip
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        bare(mem._store._con, number, root, question, content)
        theirs.append(time.perf_counter() - started)
    return statistics.median(ours), statistics.median(theirs)


def main() -> None:
    size, single = (int(given) for given in (sys.argv[1:] or ["20000", "400"]))
    with tempfile.TemporaryDirectory() as folder, mk.open(Path(folder) / "memory.duckdb") as mem:
        per_second = batches(mem, size)
        ours, theirs = singles(mem, single)
        emit(
            "reasonlets_capture",
            batch=size,
            nodes=12,
            captures_per_second=per_second,
            seconds_per_capture=ours,
            bare_seconds_per_capture=theirs,
            speed_to_bare_statements=theirs / ours,
        )


if __name__ == "__main__":
    main()
