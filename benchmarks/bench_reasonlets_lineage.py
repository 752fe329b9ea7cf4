"""Roots and depths of a million reasonlets up to 50 deep, one lineage, and erasures that cut lineages.

.venv/bin/python benchmarks/bench_reasonlets_lineage.py [REASONLETS]
"""

from __future__ import annotations

import sys

from common import best_of, emit, timed
from reasonlets_made import fill, lineages, runs

import mnemokit as mk


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with mk.open() as mem:
        rows = lineages(size)
        fill(mem, {"reasonlets": rows, "runs": runs(rows, size)})
        deepest = rows.sort("depth")["reasonlet_id"][-1]
        forest = best_of(mem.reasonlets.forest, 5)
        one = best_of(lambda: mem.reasonlets.lineage(deepest), 10)
        get = best_of(lambda: mem.reasonlets.get(deepest), 10)
        explain = best_of(lambda: mem.reasonlets.explain(deepest), 10)
        mem._store.write(lambda con: con.execute("UPDATE reasonlets SET subject = 'gone' WHERE seq % 1000 = 7"))
        receipt, erasing = timed(lambda: mem.reasonlets.erase_subject("gone"))
        emit(
            "reasonlets_lineage",
            reasonlets=size,
            deepest=int(rows["depth"].max()),
            forest_seconds=forest,
            lineage_seconds=one,
            get_seconds=get,
            explain_seconds=explain,
            erased=receipt.reasonlets,
            new_roots=receipt.new_roots,
            erase_seconds=erasing,
        )


if __name__ == "__main__":
    main()
