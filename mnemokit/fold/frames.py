"""What goes into a fold of the edge memory and what comes out of it: the frames and their columns."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

Schema = dict[str, pl.DataType]

INSTANT = pl.Datetime("us", "UTC")
TAGS = pl.List(pl.String())

EDGES: Schema = {"edge_no": pl.Int32(), "pair_no": pl.Int32(), "dst_version": pl.String()}
"""What a fold has to know of each edge: its pair, and the destination's version (null: there is none yet)."""

FACTS: Schema = {
    "edge_no": pl.Int32(),
    "ts": INSTANT,
    "seq": pl.Int64(),
    "kind": pl.String(),
    "decay_lambda": pl.Float64(),
    "untimed": pl.Boolean(),
    "tags": TAGS,
    "desired_sig": pl.String(),
    "old_state": pl.String(),
    "new_state": pl.String(),
    "detail": pl.String(),
    "mnest_no": pl.Int32(),
}
"""Facts to fold; all but edge_no and ts may be missing. mnest_no: the record that held it so far."""

RECORDS: Schema = {
    "life": pl.Int32(),
    "edge_no": pl.Int32(),
    "weight": pl.Float64(),
    "uses": pl.Int64(),
    "ts_first": INSTANT,
    "ts_last": INSTANT,
    "ts_used": INSTANT,
    "decay_lambda": pl.Float64(),
    "state": pl.String(),
    "tags": TAGS,
    "desired_sig": pl.String(),
    "untimed": pl.Boolean(),
}

OUTCOMES: Schema = {
    "row": pl.UInt32(),
    "edge_no": pl.Int32(),
    "life": pl.Int32(),
    "ts": INSTANT,
    "weight": pl.Float64(),
    "delta": pl.Float64(),
    "refusal": pl.String(),
}
"""What each fact did, by its row in the facts. life is null where it had no effect."""

DERIVED: Schema = {
    "kind": pl.String(),
    "ts": INSTANT,
    "seq": pl.Int64(),
    "edge_no": pl.Int32(),
    "life": pl.Int32(),
    "weight": pl.Float64(),
    "old_state": pl.String(),
    "new_state": pl.String(),
    "other": pl.Int32(),
    "detail": pl.String(),
}

LIVES: Schema = {
    "life": pl.Int32(),
    "edge_no": pl.Int32(),
    "mnest_no": pl.Int32(),
    "record": pl.Int32(),
    "first_row": pl.UInt32(),
}
"""mnest_no: the number it keeps, if any. record: the life that names the record it is in now; null if purged."""

NIGHTS = ("decayed", "decayed_protos", "demoted_to_decaying", "merged", "purged_protos")


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold found: see the schemas above. ``nights`` has a row per tick with the counts of ``NIGHTS``."""

    outcomes: pl.DataFrame
    derived: pl.DataFrame
    records: pl.DataFrame
    lives: pl.DataFrame
    nights: pl.DataFrame


def with_schema(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """These columns, in this order and of these types."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def last_state() -> pl.Expr:
    """What a purge tells of the record that it ends, as JSON; over columns of ``RECORDS``."""
    shown = [pl.col(name).dt.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00") for name in ("ts_first", "ts_used")]
    return pl.struct("uses", *shown, "decay_lambda", "tags", "desired_sig").struct.json_encode()
