"""Policies that say what was done as one procedure: from turns and passings to captures, set-based."""

from __future__ import annotations

import polars as pl

from mnemokit.turns.frame import UTC_INSTANT
from mnemokit.turns.ordering import KEY, ordered_steps, session_numbers

#: The columns of a frame of captures. ``graph`` is JSON text with keys nodes, edges and properties.
CAPTURES_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.String,
    "session_id": pl.String,
    "turn_id": pl.String,
    "step": pl.Int64,
    "scope": pl.String,
    "question": pl.String,
    "graph": pl.String,
    "outcome": pl.String,
    "subject": pl.String,
    "ts": UTC_INSTANT,
    "untimed": pl.Boolean,
    "executor_version": pl.String,
    "meta": pl.String,
}


def session(turns: pl.DataFrame, passings: pl.DataFrame) -> pl.DataFrame:
    """One capture per session with a step, at its last step.

    Nodes are the distinct executors without their versions, edges the distinct passings between them; the scope is
    the log's domain, else the source. The outcome is the last one that a row of the session tells, also a closing row
    without an executor. Other attributes are those of the last step; question and scope, where that has none, the
    session's last ones.
    """
    steps = ordered_steps(turns)
    last = steps.filter(pl.col("session_no").diff(-1).fill_null(-1) != 0)
    done = pl.concat([turns[last.get_column("row")], last.select("session_no")], how="horizontal")
    called = pl.concat(
        [turns.select("executor")[steps.get_column("row")], steps.select("session_no")], how="horizontal"
    )
    passed = passings.select("src_executor", "dst_executor").with_columns(
        session_numbers(passings, done.select(*KEY, "session_no"))
    )
    nodes = _listed(called, "nodes", id="executor")
    edges = _listed(passed, "edges", src="src_executor", dst="dst_executor")
    closing = turns.filter(pl.col("executor").is_null() & pl.col("session_outcome").is_not_null())
    done = _with_last_told(done, turns, "session_outcome", also_of=closing)
    for name in ("question", "scope"):
        done = _with_last_told(done, turns, name, also_of=turns.head(0))
    captures = done.join(nodes, on="session_no", how="left", maintain_order="left").join(
        edges, on="session_no", how="left", maintain_order="left"
    )
    return _captures(captures, outcome=pl.col("session_outcome"))


def attempt(turns: pl.DataFrame, passings: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG001 - a policy takes both
    """One capture per step: a procedure of one node, with the step's own outcome.

    For logs whose steps are whole attempts at a task, as benchmark reports are: scope and question are the step's.
    """
    steps = turns.filter(pl.col("executor").is_not_null()).with_columns(
        nodes=pl.struct(id="executor").struct.json_encode(), edges=pl.lit("")
    )
    outcome = pl.when("ok").then(pl.lit("success")).when(pl.col("ok").not_()).then(pl.lit("failure"))
    return _captures(steps, outcome=outcome)


def none(turns: pl.DataFrame, passings: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG001 - a policy takes both
    """No captures."""
    return pl.DataFrame(schema=CAPTURES_SCHEMA)


def _with_last_told(done: pl.DataFrame, turns: pl.DataFrame, name: str, *, also_of: pl.DataFrame) -> pl.DataFrame:
    """The last steps of sessions with what their session told last in this column, where they have nothing there.

    Args:
        done: The last step of each session, with session_no.
        turns: All rows of these sessions.
        name: The column.
        also_of: Rows of sessions of which that is asked in any case.
    """
    sessions = done.select(*KEY, "session_no")
    asked = done.get_column(name).is_null() | sessions["session_no"].is_in(session_numbers(also_of, sessions).implode())
    if not asked.any() or turns.get_column(name).null_count() == turns.height:
        return done
    # Most sessions tell it in every row or in none; only rows that can change something are sorted.
    last = (
        turns.filter(pl.col(name).is_not_null())
        .select(*KEY, "turn_id", "step", "parallel_group", told=name)
        .join(sessions.filter(asked), on=list(KEY))
        .sort("step", "parallel_group", "turn_id")
        .group_by("session_no")
        .agg(pl.col("told").last())
    )
    return (
        done.join(last, on="session_no", how="left", maintain_order="left")
        .with_columns(pl.coalesce("told", name).alias(name))
        .drop("told")
    )


def _listed(rows: pl.DataFrame, name: str, **fields: str) -> pl.DataFrame:
    """The distinct objects of each session as JSON, sorted, joined with commas.

    Works on numbers of the distinct objects, in the order of their JSON, because there are few of them.
    """
    columns = list(fields.values())
    as_json = pl.struct([pl.col(column).alias(field) for field, column in fields.items()]).struct.json_encode()
    objects = rows.select(columns).unique().with_columns(json=as_json).sort("json").with_row_index("object_no")
    size = max(1, objects.height)
    packed = (
        rows.join(objects, on=columns)
        .select(packed=pl.col("session_no") * size + pl.col("object_no").cast(pl.Int64))
        .get_column("packed")
        .drop_nulls()
        .unique()
        .sort()
    )
    return (
        pl.DataFrame({"session_no": packed // size, "object_no": packed % size})
        .with_columns(objects.get_column("json").gather(packed % size).alias(name))
        .group_by("session_no", maintain_order=True)
        .agg(pl.col(name).str.join(","))
    )


def _captures(rows: pl.DataFrame, outcome: pl.Expr) -> pl.DataFrame:
    graph = pl.concat_str(
        pl.lit('{"nodes":['),
        "nodes",
        pl.lit('],"edges":['),
        pl.col("edges").fill_null(""),
        pl.lit('],"properties":{}}'),
    )
    return rows.select(
        "source",
        "session_id",
        "turn_id",
        "step",
        "question",
        "ts",
        "executor_version",
        "meta",
        scope=pl.coalesce("scope", "source"),
        graph=graph,
        outcome=outcome.cast(pl.String),
        subject="user_id",
        untimed=pl.col("ts").is_null(),
    ).select(list(CAPTURES_SCHEMA))
