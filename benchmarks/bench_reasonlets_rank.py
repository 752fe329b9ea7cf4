"""Ranking a million reasonlets with ten million runs, beside bare SQL that does the same joins, filters and sort.

.venv/bin/python benchmarks/bench_reasonlets_rank.py [REASONLETS] [RUNS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from common import emit
from reasonlets_made import feedback, fill, lineages, runs

import mnemokit as mk
from mnemokit.store import fetch

# The same rows in the same order, written down without names for its steps; no intervals.
BARE = """
SELECT r.reasonlet_id, r.version, r.parent_id, coalesce(own.n, 0) AS n, coalesce(own.s, 0) AS s,
       greatest(0.5, coalesce((coalesce(above.s, 0) + 1) / (coalesce(above.n, 0) + 2), 0.5)) AS prior,
       (coalesce(own.s, 0) + 2 * greatest(0.5, coalesce((coalesce(above.s, 0) + 1) / (coalesce(above.n, 0) + 2), 0.5)))
           / (coalesce(own.n, 0) + 2) AS rate,
       r.scope, r.question, r.ts_captured
FROM reasonlets r
LEFT JOIN counted own ON own.no = r.seq
LEFT JOIN reasonlets p ON p.seq = r.parent_no
LEFT JOIN counted above ON above.no = p.seq
WHERE r.scope = 'shop'
ORDER BY rate DESC, n DESC, r.ts_captured DESC, r.reasonlet_id
"""
COUNTED = """
WITH counted AS (
    SELECT no, count(*) AS n, count(*) FILTER (outcome = 'success') AS s
    FROM (
        SELECT run.reasonlet_no AS no, CASE WHEN f.run_no IS NULL THEN run.outcome ELSE f.outcome END AS outcome
        FROM runs run
        LEFT JOIN (
            SELECT run_no, outcome FROM feedback
            QUALIFY row_number() OVER (PARTITION BY run_no ORDER BY ts_given DESC, seq DESC) = 1
        ) f ON f.run_no = run.seq
    )
    WHERE outcome IS NOT NULL
    GROUP BY no
)
"""


@dataclass
class Best:
    """The shortest of several runs; seconds of the processors too, which a busy machine lengthens less."""

    seconds: float = float("inf")
    cpu: float = float("inf")


def in_turns(*works: Callable[[], object], rounds: int) -> list[Best]:
    """Run several works in turns, so that a noisy minute meets all of them."""
    best = [Best() for _ in works]
    for _ in range(rounds):
        for work, found in zip(works, best, strict=True):
            started, cpu = time.perf_counter(), time.process_time()
            work()
            found.seconds = min(found.seconds, time.perf_counter() - started)
            found.cpu = min(found.cpu, time.process_time() - cpu)
    return best


def main() -> None:
    reasonlets, many = (int(given) for given in (sys.argv[1:] or ["1000000", "10000000"]))
    with mk.open() as mem:
        rows = lineages(reasonlets)
        made = runs(rows, many)
        fill(mem, {"reasonlets": rows, "runs": made, "feedback": feedback(made, many // 50)})
        del rows, made
        with mem._store.read() as con:
            ours, bare = in_turns(
                lambda: mem.reasonlets.rank(scope="shop"), lambda: fetch(con, COUNTED + BARE), rounds=5
            )
        emit(
            "reasonlets_rank",
            reasonlets=reasonlets,
            runs=many,
            feedback=many // 50,
            seconds=ours.seconds,
            bare_sql_seconds=bare.seconds,
            ratio_to_bare_sql=ours.seconds / bare.seconds,
            cpu_seconds=ours.cpu,
            bare_sql_cpu_seconds=bare.cpu,
            cpu_ratio_to_bare_sql=ours.cpu / bare.cpu,
        )


if __name__ == "__main__":
    main()
