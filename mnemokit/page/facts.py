"""What the page says about a store, read from it once, as small frames."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

if TYPE_CHECKING:
    from mnemokit.memory import Memory

_SOURCES = """
SELECT source, count(DISTINCT session_id) AS sessions, count(executor) AS calls,
       count(*) FILTER (NOT ok) AS errors,
       count(*) FILTER (executor IS NOT NULL AND ts IS NULL) AS untimed,
       count(*) FILTER (executor IS NOT NULL AND ok IS NULL) AS untold,
       min(ts) AS ts_first, max(ts) AS ts_last
FROM turns
GROUP BY source
ORDER BY sessions DESC, source
"""

_SESSIONS = """
WITH sessions AS (
    SELECT source, session_id, executor_version, any_value(scope) AS scope, any_value(session_outcome) AS outcome,
           bool_or(NOT ok) AS had_error
    FROM turns
    GROUP BY source, session_id, executor_version
)
SELECT executor_version, coalesce(scope, 'not told') AS scope,
       count(*) FILTER (outcome = 'success') AS s, count(outcome) AS n,
       count(*) FILTER (outcome IS NULL) AS unknown,
       count(*) FILTER (outcome = 'failure' AND had_error IS NOT NULL) AS failed_with_calls,
       count(*) FILTER (outcome = 'failure' AND NOT had_error) AS failed_without_error
FROM sessions
GROUP BY executor_version, scope
ORDER BY executor_version, scope
"""

_CONFIGURATIONS = """
WITH sessions AS (
    SELECT source, session_id, executor_version, any_value(scope) AS scope, any_value(meta) AS meta
    FROM turns
    WHERE meta IS NOT NULL AND executor_version IS NOT NULL
    GROUP BY source, session_id, executor_version
    HAVING count(DISTINCT meta) = 1
)
SELECT executor_version, scope, meta, count(*) AS sessions
FROM sessions
GROUP BY executor_version, scope, meta
ORDER BY executor_version, scope, meta
LIMIT $most
"""

_ERRORS = """
SELECT executor, count(*) FILTER (NOT ok) AS s, count(ok) AS n, count(*) AS calls
FROM turns
WHERE executor IS NOT NULL
GROUP BY executor
ORDER BY s DESC, n DESC, executor
"""

_REQUESTORS = """
SELECT coalesce(requestor, 'not told') AS requestor, count(*) AS calls
FROM turns
WHERE executor IS NOT NULL
GROUP BY requestor
ORDER BY calls DESC, requestor
"""

_EDGE_SESSIONS = """
WITH passed AS (
    SELECT DISTINCT mnest_id, turn_id
    FROM mnest_events
    WHERE kind = 'passing' AND mnest_id IN (SELECT unnest($mnest_ids))
),
known AS (
    SELECT DISTINCT turn_id, source, session_id FROM turns
)
SELECT passed.mnest_id, count(DISTINCT (known.source, known.session_id)) AS sessions
FROM passed
JOIN known ON known.turn_id = passed.turn_id
GROUP BY passed.mnest_id
"""

_VERSION_SOURCES = """
SELECT DISTINCT executor_version AS version, source
FROM turns
WHERE executor IS NOT NULL AND executor_version IS NOT NULL
ORDER BY version, source
"""

_REJECTS = """
SELECT source, reason, count(*) AS rejects
FROM rejects
GROUP BY source, reason
ORDER BY rejects DESC, source, reason
LIMIT 20
"""

_EDGE_ORDER = ("uses", "src_executor", "dst_executor", "src_version")
MOST_CONFIGURATIONS = 20_000
_RESULTS = frozenset({"reward", "termination_reason", "trial", "seed", "duration", "cost"})
_MOST_VALUES = 8


@dataclass(frozen=True, slots=True)
class Facts:
    """The frames that the page is made of. ``rows`` is the number of rows of each public table."""

    rows: dict[str, int]
    sources: pl.DataFrame
    sessions: pl.DataFrame
    configurations: pl.DataFrame
    errors: pl.DataFrame
    requestors: pl.DataFrame
    rejects: pl.DataFrame
    version_sources: pl.DataFrame
    ranked: pl.DataFrame
    mnests: pl.DataFrame
    ager_runs: pl.DataFrame
    changes: pl.DataFrame


def read_facts(mem: Memory) -> Facts:
    """Read everything the page shows."""
    return Facts(
        rows=dict(mem.tables().select("table", "rows").unique("table").iter_rows()),
        sources=mem.sql(_SOURCES),
        sessions=mem.sql(_SESSIONS),
        configurations=configurations(mem.sql(_CONFIGURATIONS, {"most": MOST_CONFIGURATIONS})),
        errors=mem.sql(_ERRORS),
        requestors=mem.sql(_REQUESTORS),
        rejects=mem.sql(_REJECTS),
        version_sources=mem.sql(_VERSION_SOURCES),
        ranked=mem.reasonlets.rank(),
        mnests=mem.frame("mnests"),
        ager_runs=mem.frame("ager_runs"),
        changes=mem.frame("session_changes"),
    )


def strongest_edges(mem: Memory, mnests: pl.DataFrame, top: int) -> pl.DataFrame:
    """The heaviest active edges, with the number of sessions that each rests on (null: no log tells it).

    Weights that read the same to three decimals are the same; then those with more passings come first.
    """
    heaviest = (
        mnests.filter(pl.col("state") == "active")
        .sort(
            [pl.col("weight_at").round(3), *(pl.col(name) for name in _EDGE_ORDER)],
            descending=[True, True, False, False, False],
        )
        .head(top)
    )
    sessions = mem.sql(_EDGE_SESSIONS, {"mnest_ids": heaviest["mnest_id"].to_list()})
    return heaviest.join(sessions, on="mnest_id", how="left", maintain_order="left")


def configurations(metas: pl.DataFrame) -> pl.DataFrame:
    """Settings that differ among the sessions of one version: a version is not one thing then.

    What changes from step to step within a session is no setting, and is left out before. What is different in nearly
    every session (over all versions fewer than two sessions a value) is the session's id, and no setting either.

    Args:
        metas: ``executor_version``, ``scope``, ``meta`` (a JSON object or null) and ``sessions``.

    Returns:
        ``executor_version, setting, value, scopes, sessions``, only for settings that have more than one value within a
        version, and no more than eight.

    Example:
        >>> metas = pl.DataFrame({"executor_version": ["v", "v"], "scope": ["a", "b"], "sessions": [3, 1],
        ...     "meta": ['{"git_commit": "1f", "reward": 1}', '{"git_commit": "2e", "reward": 0, "slug": "a-b"}']})
        >>> configurations(metas).rows()
        [('v', 'git_commit', '1f', 'a', 3), ('v', 'git_commit', '2e', 'b', 1)]
    """
    rows = [
        (version, setting, value if isinstance(value, str) else json.dumps(value), scope, sessions)
        for version, scope, meta, sessions in metas.select("executor_version", "scope", "meta", "sessions").iter_rows()
        for setting, value in _settings(meta).items()
    ]
    told = pl.DataFrame(rows, schema=_TOLD, orient="row")
    values = told.group_by("executor_version", "setting").agg(pl.col("value").n_unique().alias("values"))
    ids = (
        told.group_by("setting")
        .agg(pl.col("value").n_unique().alias("values"), pl.col("sessions").sum())
        # Two values in three sessions are too little to call them ids.
        .filter(
            (pl.col("sessions") < 2 * pl.col("values"))
            & ((pl.col("values") > 2) | (pl.col("values") == pl.col("sessions")))
        )
    )
    return (
        told.join(ids, on="setting", how="anti")
        .join(
            values.filter(pl.col("values").is_between(2, _MOST_VALUES)),
            on=["executor_version", "setting"],
            nulls_equal=True,
        )
        .group_by("executor_version", "setting", "value")
        .agg(
            pl.col("scope").drop_nulls().unique().sort().str.join(", ").alias("scopes"),
            pl.col("sessions").sum(),
        )
        .sort(["executor_version", "setting", "sessions", "value"], descending=[False, False, True, False])
    )


_TOLD = {
    "executor_version": pl.String,
    "setting": pl.String,
    "value": pl.String,
    "scope": pl.String,
    "sessions": pl.Int64,
}


def _settings(meta: str) -> dict[str, object]:
    """What a session's meta says of how it was run, without what came out of it."""
    try:
        told: object = json.loads(meta)
    except ValueError:
        return {}
    if not isinstance(told, dict):
        return {}
    settings = cast("dict[str, object]", told)
    return {name: value for name, value in settings.items() if isinstance(value, (str, bool)) and name not in _RESULTS}
