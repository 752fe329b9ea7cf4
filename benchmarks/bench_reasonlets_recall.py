"""Recall over 100,000 questions and a million runs: milliseconds a query, and hit@10 beside a plain BM25 library.

    .venv/bin/python benchmarks/bench_reasonlets_recall.py [QUESTIONS] [RUNS] [QUERIES]

A query is a question of the set with some words lost, two foreign words added and the order gone; a hit is that
question among the first ten. The library (bm25s) gets the same terms, k1 and b. With weight 0 both rank by similarity
alone; with weight 1 the rate has its say, and hit@10 is expected to be another. The store is asked twice: as it was
filled, when much of it has not been packed yet, and opened again.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import bm25s
import numpy as np
import polars as pl
from common import emit, timed
from reasonlets_made import BEGIN, GRAPH, INSTANT, runs

import mnemokit as mk
from mnemokit.reasonlets import run_counts
from mnemokit.reasonlets.tokens import tokens
from mnemokit.store import fetch, lend

VOCABULARY = 30_000


def made_questions(n: int, rng: np.random.Generator) -> list[list[str]]:
    """Questions of 5 to 15 words, drawn as words of a language are: the commonest ones are in most questions."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.unique(["".join(rng.choice(letters, rng.integers(3, 10))) for _ in range(VOCABULARY)])
    rng.shuffle(words)
    share = 1 / (np.arange(len(words)) + 2.7)
    drawn = rng.choice(words, size=(n, 15), p=share / share.sum())
    return [list(row[:length]) for row, length in zip(drawn, rng.integers(5, 16, n), strict=True)]


def made_queries(questions: list[list[str]], n: int, rng: np.random.Generator) -> list[tuple[int, str]]:
    """(number of the question meant, query)."""
    made = []
    for meant in rng.integers(0, len(questions), n):
        words = questions[meant]
        kept = [word for word in words if rng.random() < 0.6] or words[:1]
        foreign = questions[rng.integers(0, len(questions))][:2]
        made.append((int(meant), " ".join(rng.permutation(kept + foreign))))
    return made


def fill(mem: mk.memory.Memory, questions: list[list[str]], many: int) -> list[str]:
    """Capture the questions in batches, put the runs beside them; returns the reasonlet_ids."""
    ids = []
    for first in range(0, len(questions), 20_000):
        part = questions[first : first + 20_000]
        batch = pl.DataFrame({"question": [" ".join(words) for words in part]}).with_columns(
            scope=pl.lit("shop"),
            graph=pl.lit(GRAPH.text),
            ts=pl.lit(BEGIN).cast(INSTANT) + pl.duration(seconds=pl.int_range(pl.len())),
        )
        ids += mem.reasonlets.capture_many(batch)["reasonlet_id"].to_list()

    def work(con):
        reasonlets = fetch(con, "SELECT reasonlet_id, seq FROM reasonlets ORDER BY seq")
        more = runs(reasonlets, many - len(questions)).with_columns(pl.col("seq") + 10_000_000)
        with lend(con, made=more):
            con.execute("INSERT INTO runs BY NAME SELECT * FROM made")
        run_counts.count_anew(con, reasonlets)
        con.execute("UPDATE counters SET next_free = 1000000000 WHERE name = 'seq'")

    mem._store.write(work)
    return ids


def milliseconds(
    mem: mk.memory.Memory, queries: list[tuple[int, str]], **settings: object
) -> tuple[list[float], float]:
    """How long each query took, sorted; and the median of the processors' time."""
    mem.reasonlets.recall(queries[0][1], scope="shop", **settings)
    took, worked = [], []
    for _, query in queries:
        started, cpu = time.perf_counter(), time.process_time()
        mem.reasonlets.recall(query, scope="shop", **settings)
        took.append((time.perf_counter() - started) * 1e3)
        worked.append((time.process_time() - cpu) * 1e3)
    return sorted(took), statistics.median(worked)


def hits(mem: mk.memory.Memory, ids: list[str], queries: list[tuple[int, str]], weight: float) -> float:
    """Share of queries whose question is among the first ten."""
    found = 0
    for meant, query in queries:
        shown = mem.reasonlets.recall(query, scope="shop", weight=weight, log=False)
        found += ids[meant] in shown["reasonlet_id"].to_list()
    return found / len(queries)


def library_hits(questions: list[list[str]], queries: list[tuple[int, str]]) -> tuple[float, float, float]:
    """(hit@10, seconds to index, milliseconds a query) of bm25s."""
    library = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    _, indexing = timed(lambda: library.index([tokens(" ".join(words)) for words in questions], show_progress=False))
    found, started = 0, time.perf_counter()
    for meant, query in queries:
        documents, _ = library.retrieve([tokens(query)], k=10, show_progress=False)
        found += meant in documents[0]
    return found / len(queries), indexing, (time.perf_counter() - started) / len(queries) * 1e3


def main() -> None:
    size, many, asked = (int(given) for given in (sys.argv[1:] or ["100000", "1000000", "200"]))
    rng = np.random.default_rng(1)
    questions = made_questions(size, rng)
    queries = made_queries(questions, asked, rng)
    library, library_indexing, library_ms = library_hits(questions, queries)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.duckdb"
        with mk.open(path) as mem:
            ids, filling = timed(lambda: fill(mem, questions, many))
            lines = {"just filled": measured(mem, ids, queries)}
        with mk.open(path) as mem:
            lines["opened again"] = measured(mem, ids, queries)
    for store, figures in lines.items():
        emit(
            "reasonlets_recall",
            store=store,
            questions=size,
            runs=many,
            queries=len(queries),
            **figures,
            fill_seconds=filling,
            library_hit_at_10=library,
            library_ms=library_ms,
            library_index_seconds=library_indexing,
        )


def measured(mem: mk.memory.Memory, ids: list[str], queries: list[tuple[int, str]]) -> dict[str, float]:
    """Milliseconds without and with the log of recalls, and how often the question meant is found."""
    quiet, quiet_cpu = milliseconds(mem, queries, log=False)
    logged, logged_cpu = milliseconds(mem, queries)
    return {
        "median_ms": statistics.median(quiet),
        "p95_ms": quiet[int(0.95 * len(quiet))],
        "median_cpu_ms": quiet_cpu,
        "median_ms_logged": statistics.median(logged),
        "p95_ms_logged": logged[int(0.95 * len(logged))],
        "median_cpu_ms_logged": logged_cpu,
        "hit_at_10": hits(mem, ids, queries, 0.0),
        "hit_at_10_with_rate": hits(mem, ids, queries, 1.0),
    }


if __name__ == "__main__":
    main()
