"""Is everything installed, and is a memory file in order?"""

from __future__ import annotations

import platform
from importlib import metadata

import polars as pl

from mnemokit.memory import Memory

PACKAGES = ("mnemokit", "duckdb", "polars", "pyarrow", "numpy", "scipy", "altair", "vl-convert-python")
OPTIONAL = {"pyspark": "spark", "wordllama": "embed", "jupyter": "notebook", "networkx": "graph"}


def versions() -> pl.DataFrame:
    """What is installed.

    Returns:
        Columns package, version; an optional package that is missing names its extra.
    """
    rows = [("python", platform.python_version())]
    rows += [(name, metadata.version(name)) for name in PACKAGES]
    rows += [(name, _version(name, extra)) for name, extra in OPTIONAL.items()]
    return pl.DataFrame(rows, schema=["package", "version"], orient="row")


def check_store(mem: Memory) -> pl.DataFrame:
    """Look for what must never be in a store.

    Returns:
        Columns check, found, ok: a row per check, found is how many rows break it.
    """
    rows = [(check, mem.sql(sql).item()) for check, sql in CHECKS.items()]
    return pl.DataFrame(rows, schema={"check": pl.String, "found": pl.Int64}, orient="row").with_columns(
        ok=pl.col("found") == 0
    )


CHECKS: dict[str, str] = {
    "runs of no reasonlet": "SELECT count(*) FROM runs ANTI JOIN reasonlets USING (reasonlet_id)",
    "versions whose parent is gone": """
        SELECT count(*) FROM reasonlets AS child
        ANTI JOIN reasonlets AS parent ON parent.reasonlet_id = child.parent_id
        WHERE child.parent_id IS NOT NULL""",
    "labels given twice in a lineage": """
        SELECT count(*) FROM (SELECT 1 FROM reasonlets GROUP BY root_id, version_no HAVING count(*) > 1)""",
    "labels above their lineage's high-water mark": """
        SELECT count(*) FROM reasonlets JOIN lineages USING (root_id) WHERE version_no > high_water""",
    "feedback on no run": "SELECT count(*) FROM feedback ANTI JOIN runs USING (run_id)",
    "two records of one edge and state": """
        SELECT count(*) FROM (SELECT 1 FROM mnests GROUP BY edge_no, state HAVING count(*) > 1)""",
    "weights outside 0 to 1": "SELECT count(*) FROM mnests WHERE NOT weight BETWEEN 0 AND 1",
    "protos with a version, or versions missing": """
        SELECT count(*) FROM mnests
        WHERE (state = 'proto' AND dst_version IS NOT NULL)
           OR (state IN ('active', 'decaying') AND dst_version IS NULL)""",
    "uses that are not the passings behind them": """
        WITH counted AS (
            SELECT life.record_no, count(*) FILTER (event.kind = 'passing') AS passings
            FROM edge_events AS event JOIN mnest_lives AS life USING (mnest_no)
            GROUP BY life.record_no
            HAVING passings > 0 AND NOT bool_or(event.kind = 'import')  -- uses that no event tells of
        )
        SELECT count(*) FROM mnests JOIN counted ON counted.record_no = mnests.mnest_no WHERE uses <> passings""",
    "replays that were cut off (replay again to finish them)": "SELECT count(*) FROM replays WHERE NOT finished",
    "session changes without a verdict": "SELECT count(*) FROM session_changes WHERE state IN ('candidate', 'applied')",
}


def _version(name: str, extra: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"not installed (mnemokit[{extra}])"
