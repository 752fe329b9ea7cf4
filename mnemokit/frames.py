"""The public tables: their columns, units and meaning, and how each is read as of an instant.

A table's rows come from ``mnemokit/sql/frame_<table>.sql``, which takes the instant as ``$at`` (null: as it stands).
Tables whose past needs more than a look at the clock (mnests, traces) are read by their own rooms.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.errors import NotFound
from mnemokit.store import Connection, fetch, query

TEXT = pl.String()
INT = pl.Int64()
FLOAT = pl.Float64()
FLAG = pl.Boolean()
INSTANT = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String())


@dataclass(frozen=True, slots=True)
class Column:
    """One public column: its type, its unit (if it has one) and what it means."""

    name: str
    dtype: pl.DataType
    meaning: str
    unit: str = ""


def _instant(name: str, meaning: str) -> Column:
    return Column(name, INSTANT, meaning, "UTC")


_EDGE = (
    Column("src_executor", TEXT, "executor that produced the output"),
    Column("src_version", TEXT, "its version"),
    Column("dst_executor", TEXT, "executor that received it"),
    Column("dst_version", TEXT, "its version; null exactly for protos, superseded ones too"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "reasonlets": (
        Column("reasonlet_id", TEXT, "key"),
        Column("parent_id", TEXT, "the reasonlet this is a version of; null for a root"),
        Column("root_id", TEXT, "the lineage's first version"),
        Column("version", TEXT, "label 1.<k>, never given twice in a lineage"),
        Column("depth", INT, "steps below the root"),
        Column("scope", TEXT, "scope of the capture"),
        Column("question", TEXT, "what was asked; null is never recalled"),
        Column("subject", TEXT, "person it belongs to"),
        Column("graph", TEXT, "the procedure: nodes, edges, properties", "JSON"),
        Column("graph_hash", TEXT, "SHA-256 of the graph's content", "hex"),
        Column("provenance", TEXT, "what the capture said of its origin", "JSON"),
        _instant("ts_captured", "when it was captured"),
        Column("untimed", FLAG, "the log had no times: the instant tells the order only"),
        Column("source", TEXT, "the replayed source, null if captured by a call"),
    ),
    "runs": (
        Column("run_id", TEXT, "key"),
        Column("reasonlet_id", TEXT, "what was run"),
        Column("outcome", TEXT, "the run's own outcome: success, failure or null"),
        Column("verdict", TEXT, "what counts: the latest feedback's outcome if there is any, else the run's own"),
        Column("subject", TEXT, "person it was run for"),
        Column("provenance", TEXT, "what was said of its origin", "JSON"),
        Column("recall_id", TEXT, "the recall it followed"),
        _instant("ts_run", "when it ran"),
        Column("untimed", FLAG, "the log had no times: the instant tells the order only"),
        Column("source", TEXT, "the replayed source, null if recorded by a call"),
        Column("session_id", TEXT, "the logged session it stands for"),
    ),
    "feedback": (
        Column("feedback_id", TEXT, "key"),
        Column("run_id", TEXT, "the run it judges"),
        Column("outcome", TEXT, "success, failure or null (unknown)"),
        Column("subject", TEXT, "person who gave it"),
        Column("note", TEXT, "their words"),
        _instant("ts_given", "when it was given"),
    ),
    "recalls": (
        Column("recall_id", TEXT, "key"),
        Column("scope", TEXT, "scope that was searched"),
        Column("question", TEXT, "what was asked"),
        Column("subject", TEXT, "person who asked"),
        Column("weight", FLOAT, "how much the rate counted in the score", "0 to 1"),
        Column("shown", INT, "how many reasonlets were shown"),
        _instant("ts_recalled", "when"),
    ),
    "recall_rows": (
        Column("recall_id", TEXT, "the recall"),
        Column("rank", INT, "place in the list, from 1"),
        Column("reasonlet_id", TEXT, "what was shown"),
        Column("similarity", FLOAT, "to the question", "0 to 1"),
        Column("rate", FLOAT, "its rate then", "0 to 1"),
        Column("score", FLOAT, "its score then", "0 to 1"),
    ),
    "mnests": (
        Column("mnest_id", TEXT, "key"),
        *_EDGE,
        Column("weight", FLOAT, "as of ts_last", "0 to 1"),
        Column("weight_at", FLOAT, "at the instant asked for; equals weight if none was", "0 to 1"),
        Column("uses", INT, "passings, at least 1"),
        _instant("ts_first", "first passing"),
        _instant("ts_last", "when the weight was brought up to date, by a passing or an ager"),
        _instant("ts_used", "last passing"),
        Column("decay_lambda", FLOAT, "decay rate", "per day"),
        Column("state", TEXT, "active, proto, decaying or superseded"),
        Column("tags", TEXTS, "labels of the first passing"),
        Column("desired_sig", TEXT, "wanted signature of a proto", "JSON"),
        Column("untimed", FLAG, "its last passing had no time: its decay has not started"),
    ),
    "mnest_events": (
        Column("mnest_id", TEXT, "record it happened to, by the id it had then"),
        _instant("ts", "when"),
        Column("kind", TEXT, "passing, transition, promote, demote, merge or purge"),
        Column("delta", FLOAT, "net change of the stored weight"),
        Column("weight", FLOAT, "weight after it", "0 to 1"),
        Column("old_state", TEXT, "state before"),
        Column("new_state", TEXT, "state after"),
        Column("reason", TEXT, "the caller's words"),
        Column("turn_id", TEXT, "turn that made the passing"),
        Column("untimed", FLAG, "the log had no times: the instant tells the order only"),
        Column("detail", TEXT, "what else is known, for instance a purged proto's last state", "JSON"),
        *_EDGE,
        Column("seq", INT, "order of arrival"),
    ),
    "ager_runs": (
        _instant("ts_ager", "the instant the edges were aged to"),
        Column("kind", TEXT, "explicit (a call) or daily (a replay's nightly tick)"),
        Column("decayed", INT, "active and proto edges brought up to date, as reported when it ran"),
        Column("decayed_protos", INT, "protos among them"),
        Column("demoted_to_decaying", INT, "active edges that fell below the threshold"),
        Column("merged", INT, "those of them that joined a decaying record"),
        Column("purged_protos", INT, "protos deleted"),
        Column("recurring_protos", INT, "protos wanted again and again; null for a replay's tick"),
        Column("proposed_archive", INT, "decaying edges that could be archived; null for a replay's tick"),
        Column("params", TEXT, "the edge rule it ran under", "JSON"),
        Column("seconds", FLOAT, "how long it took", "s"),
    ),
    "canonical_queries": (
        Column("query", TEXT, "the query in its canonical words"),
        Column("tool", TEXT, "the tool that answered it"),
        Column("args_shape", TEXT, "shape of the arguments"),
        Column("uses", INT, "how often"),
        Column("ok", INT, "with success"),
        Column("fail", INT, "without"),
        _instant("ts_first", "first use"),
        _instant("ts_last", "last use"),
    ),
    "traces": (
        Column("trace_id", TEXT, "key"),
        Column("brain_id", TEXT, "the memory it is in"),
        Column("type", TEXT, "for instance semantic, episodic, summary"),
        Column("scope", TEXT, "scope within the brain"),
        Column("content", TEXT, "the words; null where a log was imported without them"),
        Column("tags", TEXTS, "labels"),
        Column("metadata", TEXT, "what else was said of it", "JSON"),
        Column("parents", TEXTS, "trace_ids it was made from"),
        _instant("ts_created", "when it was created"),
        _instant("ts_updated", "when it was last changed"),
        Column("untimed", FLAG, "the log had no times: the instant tells the order only"),
    ),
    "session_changes": (
        Column("change_id", TEXT, "key"),
        Column("kind", TEXT, "memory_write"),
        Column("operation", TEXT, "add, update, delete, merge, rolling_summary, import, or own (a caller's)"),
        Column("actor", TEXT, "what wrote, for instance tool:memory_add"),
        Column("target_id", TEXT, "a trace's id or a set's id"),
        Column("session_id", TEXT, "session it was made in"),
        Column("brain_id", TEXT, "the memory it is about"),
        Column("conversation_id", TEXT, "the write's conversation"),
        Column("user_id", TEXT, "the session's learner; a keyed hash once forgotten"),
        Column("contributor_ids", TEXTS, "persons whose words are in it; keyed hashes once forgotten"),
        Column("before", TEXT, "snapshots of the traces it changes or deletes; null if it only adds", "JSON"),
        Column("after", TEXT, "the plan", "JSON"),
        Column("kept", TEXT, "what was really kept", "JSON"),
        Column(
            "verdict",
            TEXT,
            "kept, undone_forgotten, undone_unrecorded, reverted, or null while it is a candidate",
        ),
        Column("reason", TEXT, "why it was undone or reverted"),
        Column("trace_ids", TEXTS, "traces it touched"),
        _instant("ts_candidate", "when it was recorded"),
        _instant("ts_verdict", "when the verdict was written"),
        _instant("ts_reverted", "when it was reverted"),
        _instant("ts_forgotten", "when a person in it was forgotten: its words are blanked since"),
    ),
    "change_traces": (
        Column("change_id", TEXT, "the write"),
        Column("trace_id", TEXT, "a trace it touched"),
        Column("move", TEXT, "write or revert"),
        Column("action", TEXT, "created, changed, deleted, or resolved (the words were there already)"),
        Column("counts", FLAG, "false once the write was undone or forgotten"),
        Column("forgotten", FLAG, "the words after it were erased"),
        Column("content", TEXT, "the trace's words after it"),
        _instant("ts", "from when the trace was so"),
        Column("seq", INT, "order of arrival"),
    ),
    "tombstones": (
        Column("name_hash", TEXT, "keyed hash of the name that was forgotten or erased", "hex"),
        Column("realm", TEXT, "user (memory writes), subject or scope (procedures and turns)"),
        _instant("ts_forgotten", "when"),
        _instant("ts_readmitted", "when a person was readmitted"),
    ),
    "session_rows": (
        Column("session_id", TEXT, "the session"),
        Column("user_id", TEXT, "the person; a keyed hash once forgotten"),
        Column("role", TEXT, "learner or visitor"),
        Column("brain_id", TEXT, "the write's brain"),
        Column("conversation_id", TEXT, "the write's conversation"),
        _instant("ts_noted", "when the row was written"),
    ),
    "turns": (
        Column("source", TEXT, "the reader's name, or the label given to replay"),
        Column("session_id", TEXT, "session"),
        Column("turn_id", TEXT, "turn (a message, a span)"),
        Column("step", INT, "order within the session"),
        Column("parallel_group", INT, "steps that were called together share it"),
        Column("executor", TEXT, "tool that was called; null for a session without calls"),
        Column("executor_version", TEXT, "its version, or the format's stated fallback"),
        Column("requestor", TEXT, "who called, for instance assistant or user"),
        _instant("ts", "when; null in an untimed log"),
        Column("ok", FLAG, "did the call succeed; null if the log does not say"),
        Column("user_id", TEXT, "person the session was for"),
        Column("scope", TEXT, "the log's domain"),
        Column("question", TEXT, "task or question as logged"),
        Column("session_outcome", TEXT, "success, failure or null"),
        Column("meta", TEXT, "what else the log says of the session", "JSON"),
    ),
    "rejects": (
        Column("source", TEXT, "the source that was read"),
        Column("file", TEXT, "file name"),
        Column("place", TEXT, "line, or path in the document"),
        Column("reason", TEXT, "why the record could not be used"),
        Column("excerpt", TEXT, "a short redacted piece of it"),
        _instant("ts_read", "when it was read"),
    ),
}


def schema_of(table: str) -> dict[str, pl.DataType]:
    """The constant schema of a public table's frame.

    Example:
        >>> schema_of("feedback")["ts_given"]
        Datetime(time_unit='us', time_zone='UTC')
    """
    return {column.name: column.dtype for column in _columns(table)}


def read_table(con: Connection, table: str, at: datetime | None) -> pl.DataFrame:
    """Rows of a public table as they stand, or as of an instant."""
    schema = schema_of(table)
    return conform(fetch(con, query(f"frame_{table}"), {"at": at}), schema)


def conform(frame: pl.DataFrame, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """The frame with exactly these columns, in this order and of these types."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def describe_tables(con: Connection) -> pl.DataFrame:
    """One row per public column: table, rows, column, dtype, unit, meaning."""
    counts = dict(con.execute(query("table_counts")).fetchall())
    return pl.DataFrame(
        [
            (table, counts[table], column.name, str(column.dtype), column.unit, column.meaning)
            for table, columns in TABLES.items()
            for column in columns
        ],
        schema={"table": TEXT, "rows": INT, "column": TEXT, "dtype": TEXT, "unit": TEXT, "meaning": TEXT},
        orient="row",
    )


def _columns(table: str) -> tuple[Column, ...]:
    if table not in TABLES:
        raise NotFound(f"there is no table {table!r}; there are {', '.join(TABLES)}")
    return TABLES[table]
