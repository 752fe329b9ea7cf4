"""One ager run on a frame of mnests, with no store: what would this night do?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.fold.edge_keys import KEYS, number_keys, pair_numbers
from mnemokit.fold.edge_weights import floor_of, fraction_left, weight_at
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import DERIVED, FACTS, INSTANT, RECORDS
from mnemokit.given_frames import Frame, as_polars
from mnemokit.instants import DAY_US, Instant, as_utc, to_us
from mnemokit.records import AgerStats, EdgeParams, MnestState

NEEDED = (*KEYS, "weight", "uses", "ts_first", "ts_last", "ts_used", "decay_lambda", "state")


@dataclass(frozen=True, slots=True)
class AgeResult:
    """What an ager run leaves.

    Attributes:
        mnests: The records after it, with those columns of the given frame that a frame of mnests has.
        events: What changed state: mnest_id, ts, kind (demote, merge, purge), weight, old_state, new_state, joined_id
            (the record that a merged one became part of), detail (a purged proto's last state as JSON).
        stats: The counts.
    """

    mnests: pl.DataFrame
    events: pl.DataFrame
    stats: AgerStats


def age(mnests: Frame, *, now: Instant, params: EdgeParams | None = None) -> AgeResult:
    """Age a frame of mnests: decay, then demote (and merge), then purge.

    Args:
        mnests: Records, at most one per edge and state, with the columns of ``mem.frame("mnests")``; mnest_id, tags,
            desired_sig and untimed may be missing.
        now: Aware instant of the ager. A record with ts_last not before it is left alone.
        params: The edge rule; the default one if left out.

    Returns:
        Records, events and counts after the run.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> from datetime import UTC, datetime
        >>> day = datetime(2025, 8, 1, tzinfo=UTC)
        >>> frame = pl.DataFrame({
        ...     "src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"], "dst_version": ["1"],
        ...     "weight": [0.3], "uses": [1], "ts_first": [day], "ts_last": [day], "ts_used": [day],
        ...     "decay_lambda": [0.018], "state": ["active"]})
        >>> aged = age(frame, now="2025-09-01T00:00:00Z")
        >>> aged.mnests["state"].item(), aged.stats.demoted_to_decaying
        ('decaying', 1)
    """
    moment = as_utc(now, "now")
    mnests = as_polars(mnests, "mnests", "nothing was aged")
    params = params or EdgeParams()
    missing = [name for name in NEEDED if name not in mnests.columns]
    if missing:
        raise InvalidInput(f"a frame of mnests needs {', '.join(missing)}; it has {', '.join(mnests.columns)}")
    given = _complete(mnests)
    edge_no, keys = number_keys(given)
    prior = given.with_columns(
        life=pl.int_range(pl.len(), dtype=pl.Int32()), edge_no=pl.Series(edge_no, dtype=pl.Int32)
    ).select(list(RECORDS))
    edges = keys.with_columns(pair_numbers(), edge_no=pl.int_range(pl.len(), dtype=pl.Int32()))
    folded = fold_edges(
        pl.DataFrame(schema=FACTS), edges, np.array([to_us(moment)], dtype=np.int64), params, prior=prior
    )
    row_of = folded.lives.select("life", row="mnest_no")
    changed = folded.records.join(row_of, on="life", how="left")
    ids = given["mnest_id"]
    after = pl.concat(
        [
            given.with_row_index("row").join(row_of, on="row", how="anti"),
            changed.join(keys.with_row_index("edge_no"), on="edge_no", how="left")
            .with_columns(mnest_id=ids.gather(changed["row"]))
            .select("row", *given.columns),
        ],
        how="vertical_relaxed",
    ).sort("row")
    numbers = row_of.sort("life")["row"]
    derived = folded.derived
    events = derived.select(
        ids.gather(numbers.gather(derived["life"])).alias("mnest_id"),
        *(pl.col(name).cast(DERIVED[name]) for name in ("ts", "kind", "weight", "old_state", "new_state")),
        joined_id=ids.gather(numbers.gather(derived["other"])),
        detail="detail",
    )
    stats = AgerStats(**folded.nights.drop("ts_ager").row(0, named=True), **outlook(after, moment, params))
    if "weight_at" in mnests.columns:
        after = after.with_columns(weight_at(moment))
    return AgeResult(after.select(name for name in mnests.columns if name in after.columns), events, stats)


def outlook(mnests: pl.DataFrame, now: datetime, params: EdgeParams) -> dict[str, int]:
    """How many protos are recurring, and how many decaying records could be archived, at an instant."""
    recurring = (
        (pl.col("state") == MnestState.PROTO.value)
        & (pl.col("uses") >= params.recurring_uses)
        & (pl.col("weight") >= floor_of(params.recurring_weight, params))
    )
    unused = pl.lit(now, INSTANT) - pl.col("ts_used") >= params.archive_after
    days = (pl.lit(now, INSTANT) - pl.col("ts_last")).dt.total_microseconds() / DAY_US
    faded = pl.col("weight") * fraction_left(pl.col("decay_lambda"), days, pl.Expr.exp)
    faded = pl.when("untimed").then("weight").otherwise(faded)
    archivable = (
        (pl.col("state") == MnestState.DECAYING.value) & unused & (faded < floor_of(params.purge_below, params))
    )
    counts = mnests.select(recurring_protos=recurring.sum(), proposed_archive=archivable.sum())
    return {name: int(n) for name, n in counts.row(0, named=True).items()}


def _complete(mnests: pl.DataFrame) -> pl.DataFrame:
    """The frame with the columns that may be missing."""
    defaults = {
        "mnest_id": pl.format("row {}", pl.int_range(pl.len())),
        "tags": pl.lit([], pl.List(pl.String)),
        "desired_sig": pl.lit(None, pl.String()),
        "untimed": pl.lit(False),
    }
    wanted = ("mnest_id", *NEEDED, "tags", "desired_sig", "untimed")
    return mnests.with_columns(
        expr.alias(name) for name, expr in defaults.items() if name not in mnests.columns
    ).select(wanted)
