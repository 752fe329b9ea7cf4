"""``fold_passings``: from a frame of passings to the edges they make, with no store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.fold.edge_keys import KEYS, number_keys, pair_numbers
from mnemokit.fold.edge_weights import weight_at
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, INSTANT, Folded, Schema
from mnemokit.fold.kernel import Ints
from mnemokit.frames import conform, schema_of
from mnemokit.given_frames import Frame, as_polars
from mnemokit.instants import EPOCH, Instant, as_utc, to_us
from mnemokit.records import EdgeParams, MnestState
from mnemokit.replay.ticks import Bounds, daily_ticks

KIND = pl.Enum(["passing", "demote", "merge", "purge"])
STATE = pl.Enum([state.value for state in MnestState])
NAME = pl.Categorical()

TRAJECTORY: Schema = {
    "row": pl.UInt32(),
    "mnest_id": NAME,
    "ts": INSTANT,
    "kind": KIND,
    "delta": pl.Float64(),
    "weight": pl.Float64(),
    "old_state": STATE,
    "new_state": STATE,
    **dict.fromkeys(KEYS, NAME),
}
"""Columns of a trajectory. Texts are categories: few of them, repeated millions of times."""

Ager = Literal["daily"] | Sequence[Instant] | None


@dataclass(frozen=True, slots=True)
class FoldResult:
    """What passings make of edges.

    Attributes:
        mnests: A row per record, with the columns of ``mem.frame("mnests")``.
        events: The trajectory, columns of ``TRAJECTORY``: a row per passing (``row`` is its row in the passings), by
            edge, then time; then what the agers ended (demote, merge, purge; ``row`` is null).
        ager_runs: A row per ager instant: ts_ager, decayed, decayed_protos, demoted_to_decaying, merged,
            purged_protos.
    """

    mnests: pl.DataFrame
    events: pl.DataFrame
    ager_runs: pl.DataFrame


def fold_passings(passings: Frame, ager: Ager = None, params: EdgeParams | None = None) -> FoldResult:
    """Fold passings into weighted edges, with the nightly ager inside.

    Args:
        passings: Columns src_executor, src_version, dst_executor, dst_version (null: the executor is only wished for)
            and ts (aware; null: the log had no time). Where there are, also: dst_exists; seq (source order at equal
            times, else the order of rows); untimed; tags; desired_sig; decay_lambda (per day). A lazy frame is read
            without ever holding its key columns as text.
        ager: "daily" ages every night at ``params.tick_hour`` (UTC), after the first passing and up to the last; or
            the instants to age at; None does not age.
        params: The edge rule; the default one if left out.

    Returns:
        Records, trajectory and ager runs.

    Raises:
        InvalidInput: If a column is missing, a name is null, or a rate is negative or not finite.

    Example:
        >>> from datetime import UTC, datetime
        >>> passings = pl.DataFrame({
        ...     "src_executor": ["find", "find"], "src_version": ["1", "1"], "dst_executor": ["buy", "buy"],
        ...     "dst_version": ["1", "1"], "ts": [datetime(2025, 8, 1, tzinfo=UTC), datetime(2025, 9, 1, tzinfo=UTC)]})
        >>> folded = fold_passings(passings, ager="daily")
        >>> folded.mnests.select("state", "uses").rows()
        [('decaying', 1), ('active', 1)]
        >>> folded.events["kind"].to_list()
        ['passing', 'passing', 'demote']
    """
    params = params or EdgeParams()
    rows = _read(passings)
    edge_no, keys = number_keys(rows)
    facts = _facts(rows, edge_no, params)
    del rows
    ticks = _ticks(facts, ager, params)
    edges = keys.with_columns(edge_no=pl.int_range(pl.len(), dtype=pl.Int32())).with_columns(pair_numbers())
    folded = fold_edges(facts, edges.select(list(EDGES)), ticks, params)
    ids = _ids(folded)
    return FoldResult(_mnests(folded, keys, ids), _events(folded, keys, ids), folded.nights)


def _read(given: Frame) -> pl.DataFrame:
    """The columns that a fold uses, checked."""
    passings = given if isinstance(given, pl.LazyFrame) else as_polars(given, "passings", "nothing was folded")
    lazy = passings.lazy()
    there = lazy.collect_schema()
    missing = [name for name in (*KEYS, "ts") if name not in there]
    if missing:
        raise InvalidInput(f"passings need the columns {', '.join(missing)}; there are {', '.join(there)}")
    optional = ("dst_exists", "seq", "untimed", "tags", "desired_sig", "decay_lambda")
    names = [pl.col(name).cast(NAME) if isinstance(passings, pl.LazyFrame) else pl.col(name) for name in KEYS]
    rows = lazy.select(*names, "ts", *(name for name in optional if name in there)).collect()
    for name in KEYS[:3]:
        if rows[name].null_count():
            raise InvalidInput(f"passings: column {name} has nulls; every passing needs one")
    if "dst_exists" in rows.columns:
        odd = rows.filter(pl.col("dst_exists") != pl.col("dst_version").is_not_null())
        if odd.height:
            raise InvalidInput(
                f"passings: {odd.height} rows have a dst_version though dst_exists is false, or the other way round"
            )
    if "decay_lambda" in rows.columns:
        rates = rows["decay_lambda"].drop_nulls()
        if not (rates.is_finite() & (rates >= 0)).all():
            raise InvalidInput("passings: a decay_lambda is negative or not finite; rates are per day, 0 or more")
    return rows


def _facts(rows: pl.DataFrame, edge_no: np.ndarray, params: EdgeParams) -> pl.DataFrame:
    facts = rows.select(
        pl.Series("edge_no", edge_no),
        pl.col("ts").cast(INSTANT),
        *(name for name in ("seq", "untimed", "tags", "desired_sig", "decay_lambda") if name in rows.columns),
    )
    if "decay_lambda" in facts.columns:
        facts = facts.with_columns(pl.col("decay_lambda").cast(pl.Float64).fill_null(params.decay_lambda))
    if facts["ts"].null_count():
        order = pl.lit(EPOCH, INSTANT) + pl.duration(microseconds=pl.int_range(pl.len()))
        facts = facts.with_columns(untimed=pl.col("ts").is_null(), ts=pl.coalesce("ts", order.cast(INSTANT)))
    return facts


def _ticks(facts: pl.DataFrame, ager: Ager, params: EdgeParams) -> Ints:
    if ager is None:
        return np.empty(0, dtype=np.int64)
    if isinstance(ager, str):
        if ager != "daily":
            raise InvalidInput(f"ager must be 'daily', a list of instants or None, not {ager!r}")
        timed = facts.filter(~pl.col("untimed")) if "untimed" in facts.columns else facts
        first, last = timed.select(first=pl.col("ts").min(), last=pl.col("ts").max()).row(0)
        moments: Sequence[datetime] = daily_ticks(Bounds(first, last), params.tick_hour)
    else:
        moments = [as_utc(moment, "ager") for moment in ager]
    return np.unique(np.array([to_us(moment) for moment in moments], dtype=np.int64))


def _ids(folded: Folded) -> pl.Series:
    """An id for each life."""
    return pl.Series("mnest_id", [f"mn_{life}" for life in range(folded.lives.height)], dtype=pl.String)


def _mnests(folded: Folded, keys: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    records = folded.records
    named = keys.with_row_index("edge_no").cast({"edge_no": pl.Int32})
    frame = records.with_columns(mnest_id=ids.gather(records["life"])).join(named, on="edge_no", how="left")
    return conform(frame.sort("edge_no", "ts_first").with_columns(weight_at(None)), schema_of("mnests"))


def _events(folded: Folded, keys: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    told, derived = folded.outcomes, folded.derived
    names = keys.with_columns(pl.col(KEYS).cast(NAME))
    edge_no = told["edge_no"].cast(pl.UInt32)
    id_names = ids.cast(NAME)
    passed = pl.DataFrame(
        {
            "row": told["row"],
            "mnest_id": id_names.gather(told["life"].cast(pl.UInt32)),
            "ts": told["ts"],
            "kind": pl.repeat("passing", told.height, dtype=KIND, eager=True),
            "delta": told["delta"],
            "weight": told["weight"],
            "old_state": pl.repeat(None, told.height, dtype=STATE, eager=True),
            "new_state": pl.repeat(None, told.height, dtype=STATE, eager=True),
            **{name: names[name].gather(edge_no) for name in KEYS},
        }
    )
    if not derived.height:
        return passed
    ended = derived.select(
        pl.lit(None, pl.UInt32()).alias("row"),
        id_names.gather(derived["life"]).alias("mnest_id"),
        "ts",
        pl.col("kind").cast(KIND),
        pl.lit(None, pl.Float64()).alias("delta"),
        "weight",
        pl.col("old_state", "new_state").cast(STATE),
        *(names[name].gather(derived["edge_no"]) for name in KEYS),
    )
    return pl.concat([passed, ended.sort(*KEYS, "ts", "kind")])
