"""The replay as a Spark job: what is shuffled by which key, and what is written when.

    log --per row--> turns --by session--> out/turns
    out/turns --by slice of the log--> passings --> out/passings
    out/passings --by pair of executors, in order of time--> fold --> out/mnest_events, out/mnests, out/ager_runs

Every step reads what the one before has committed as Parquet, so that a lost executor costs its tasks of one step.
Every row has a place in an order that the log alone decides, so that a task that is run again does the same again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

import numpy as np
import polars as pl
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType

from mnemokit.errors import Conflict
from mnemokit.fold.edge_keys import PAIR
from mnemokit.fold.frames import NIGHTS
from mnemokit.frames import schema_of
from mnemokit.instants import from_us, to_us
from mnemokit.records import EdgeParams, params_to_json
from mnemokit.replay.ticks import Bounds, daily_ticks
from mnemokit.spark.columns import OverFrames, Schema, frame_of, over_batches, spark_schema
from mnemokit.spark.folding import OUTPUT, PASSED, fold_bucket
from mnemokit.spark.steps import (
    LOG_ROW,
    NUMBERED_PASSINGS,
    REJECTS,
    SESSION_ROW,
    columns_seen,
    function_of,
    numbered_passings,
    turns_schema,
    unusable_turns,
    usable_turns,
)
from mnemokit.turns.derive import PassingsPolicy, derive_passings
from mnemokit.turns.frame import TURN_KEY, as_turns
from mnemokit.turns.reading import natural_order

TABLES = ("turns", "rejects", "passings", "mnest_events", "mnests", "ager_runs")

ROWS_PER_BUCKET = 2_000_000
"""Rows of the log for each task, where the caller does not say how many buckets there are."""


@dataclass(frozen=True, slots=True)
class SparkReplayReport:
    """The account of one replay: ``turns + duplicates + rejects`` is every row of the log.

    Attributes:
        turns: Turns written.
        duplicates: Rows that repeat a turn (same source, session, turn and step); the first one counts.
        rejects: Rows that cannot be used; they are in the table rejects, with the reason.
        passings: Passings derived.
        ticks: Ager instants.
        mnests: Records that stand at the end.
        seconds: How long it took.
    """

    turns: int
    duplicates: int
    passings: int
    ticks: int
    mnests: int
    seconds: float
    rejects: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a caller asks of a replay; see ``mnemokit.spark.replay``."""

    out: str
    ager: str | None
    policy: str | PassingsPolicy
    params: EdgeParams
    buckets: int | None
    label: str | None
    tz: str | None


def run(spark: SparkSession, log: list[str], plan: Plan) -> SparkReplayReport:
    """Replay a log; see ``mnemokit.spark.replay``."""
    started = time.perf_counter()
    _refuse_to_overwrite(spark, plan)
    rows, height = _rows_of_the_log(spark, log, plan)
    buckets = plan.buckets or max(spark.sparkContext.defaultParallelism, math.ceil(height / ROWS_PER_BUCKET))
    turns = _write_turns(spark, rows, plan, buckets)
    # Only a log that has repeats or unusable rows is read again, to tell which.
    rejects = _write_rejects(spark, rows if turns < height else rows.limit(0), plan)
    passings, slices = _write_passings(spark, plan, buckets)
    ticks = _ticks(spark, plan)
    mnests = _write_fold(spark, plan, slices, ticks, buckets)
    return SparkReplayReport(
        turns=turns,
        duplicates=height - turns - rejects,
        passings=passings,
        ticks=len(ticks),
        mnests=mnests,
        seconds=time.perf_counter() - started,
        rejects=rejects,
    )


def _refuse_to_overwrite(spark: SparkSession, plan: Plan) -> None:
    for table in TABLES:
        try:
            spark.read.text(f"{plan.out}/{table}")
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                continue
            raise
        raise Conflict(f"{plan.out}/{table} is there already; nothing was written; give another folder, or remove it")


def _rows_of_the_log(spark: SparkSession, log: list[str], plan: Plan) -> tuple[DataFrame, int]:
    """The log's rows with file, file_row and log_row, and how many there are; files come in natural order."""
    read = spark.read.options(mergeSchema=True, recursiveFileLookup=True)
    raw = read.parquet(*log)
    wanted = _columns_with_values(raw, turns_schema(plan.policy))
    # Whatever is wrong with the columns is said before any work is done.
    empty = as_turns(frame_of(cast("object", raw.select(wanted).limit(0).toArrow())), tz=plan.tz, by_value=False)
    derive_passings(empty, plan.policy)
    heights = raw.groupBy(sf.col("_metadata.file_path").alias("file")).count().collect()
    first = 0
    files: list[tuple[str, int]] = []
    for file, height in sorted(((row[0], row[1]) for row in heights), key=lambda row: natural_order(unquote(row[0]))):
        files.append((file, first))
        first += height
    located = raw.select(
        *wanted,
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.row_index").alias("file_row"),
    ).join(sf.broadcast(spark.createDataFrame(files, "file STRING, first_row BIGINT")), "file")
    rows = located.withColumn("log_row", sf.col("first_row") + sf.col("file_row")).drop("first_row")
    return rows, first


def _columns_with_values(raw: DataFrame, schema: Schema) -> list[str]:
    """The canonical columns that the log has; not those of which Parquet knows only that all values are null.

    Such a column has no type of its own in Parquet, and Spark takes it for one of integers.
    """
    there = [name for name in schema if name in raw.columns]
    odd = [name for name in there if schema[name] != pl.Int64 and raw.schema[name].dataType == IntegerType()]
    if not odd:
        return there
    counts = raw.agg(*(sf.count(name).alias(name) for name in odd)).collect()[0].asDict()
    return [name for name in there if counts.get(name) != 0]


def _write_turns(spark: SparkSession, rows: DataFrame, plan: Plan, buckets: int) -> int:
    """Canonical turns, each once: of several rows with one key, the first in the log."""
    schema = turns_schema(plan.policy) | LOG_ROW
    tz, label = plan.tz, plan.label

    usable = _map(rows.drop("file", "file_row"), lambda frames: usable_turns(frames, tz, label), schema)
    session = Window.partitionBy("source", "session_id")
    repeats = Window.partitionBy(*TURN_KEY).orderBy("log_row")
    turns = (
        usable.repartition(buckets, "source", "session_id")
        .withColumn("nth_of_key", sf.row_number().over(repeats))
        .where("nth_of_key = 1")
        .withColumn("session_row", sf.min("log_row").over(session))
        .select(*schema, *SESSION_ROW)
    )
    return _write(spark, turns, plan, "turns")


def _write_rejects(spark: SparkSession, rows: DataFrame, plan: Plan) -> int:
    tz, label = plan.tz, plan.label
    rejects = _map(rows, lambda frames: unusable_turns(frames, tz, label), REJECTS)
    return _write(spark, rejects, plan, "rejects")


def _write_passings(spark: SparkSession, plan: Plan, buckets: int) -> tuple[int, list[tuple[int, int]]]:
    """Passings, and for each slice of the log how many there are before it.

    A slice holds whole sessions, those that begin in one part of the log. So the number of a passing within its slice
    and the passings of the slices before it make its number in the whole log, as one machine would count.
    """
    policy = function_of(plan.policy)
    slices = (
        _read(spark, plan, "turns")
        .select(*columns_seen(plan.policy), *LOG_ROW, *SESSION_ROW)
        .repartitionByRange(buckets, "session_row")
        .sortWithinPartitions("session_row", "log_row")
    )
    derived = _map(slices, lambda frames: numbered_passings(frames, policy), NUMBERED_PASSINGS)
    passings = derived.withColumn("slice", sf.spark_partition_id())
    _write(spark, passings, plan, "passings")
    before = 0
    offsets: list[tuple[int, int]] = []
    for part, height in sorted(row[:2] for row in _read(spark, plan, "passings").groupBy("slice").count().collect()):
        offsets.append((part, before))
        before += height
    return before, offsets


def _ticks(spark: SparkSession, plan: Plan) -> list[int]:
    """The nightly ager instants, in microseconds since 1970."""
    if plan.ager is None:
        return []
    us = sf.unix_micros("ts")
    row = _read(spark, plan, "passings").agg(sf.min(us), sf.max(us)).collect()[0]
    first, last = cast("tuple[int | None, int | None]", row)
    if first is None or last is None:
        return []
    return [to_us(tick) for tick in daily_ticks(Bounds(from_us(first), from_us(last)), plan.params.tick_hour)]


def _write_fold(spark: SparkSession, plan: Plan, slices: list[tuple[int, int]], ticks: list[int], buckets: int) -> int:
    """Events, records and ager runs: each bucket of pairs folded in order of time."""
    started = time.perf_counter()
    schema = {kind: pl.Struct(dict(columns)) for kind, columns in OUTPUT.items()}
    instants, params = np.array(ticks, dtype=np.int64), plan.params

    def fold(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for kind, rows in fold_bucket(frames, instants, params):
            others = {other: pl.lit(None, dtype) for other, dtype in schema.items() if other != kind}
            yield rows.select(pl.struct(pl.all()).alias(kind)).with_columns(**others)

    offsets = spark.createDataFrame(slices, "slice INT, before BIGINT")
    passed = (
        _read(spark, plan, "passings")
        .join(sf.broadcast(offsets), "slice")
        .withColumn("seq", sf.col("before") + sf.col("nth"))
        .withColumn("untimed", sf.col("ts").isNull())
        .withColumn("ts", sf.coalesce("ts", sf.timestamp_micros("seq")))
        .select(*PASSED, sf.pmod(sf.xxhash64(*PAIR), sf.lit(buckets)).cast("INT").alias("bucket"))
    )
    folded = (
        passed.repartitionById(buckets, "bucket")
        .sortWithinPartitions("bucket", "ts", "seq")
        .groupBy("bucket")
        .applyInArrow(over_batches(fold, schema), spark_schema(schema))
        .persist(StorageLevel.DISK_ONLY)
    )
    try:
        _write(spark, _of_kind(folded, "event"), plan, "mnest_events")
        mnests = _write(spark, _of_kind(folded, "mnest"), plan, "mnests")
        nights = _of_kind(folded, "night").groupBy("ts_ager").agg(*(sf.sum(name).alias(name) for name in NIGHTS))
        seconds = (time.perf_counter() - started) / max(1, len(ticks))
        _write(spark, _ager_runs(nights, params, seconds), plan, "ager_runs")
    finally:
        folded.unpersist()
    return mnests


def _ager_runs(nights: DataFrame, params: EdgeParams, seconds: float) -> DataFrame:
    """The counts of each tick, over all buckets, as the table ager_runs has them."""
    told = {"kind": sf.lit("daily"), "params": sf.lit(params_to_json(params)), "seconds": sf.lit(seconds)}
    unknown = {name: sf.lit(None).cast("BIGINT") for name in ("recurring_protos", "proposed_archive")}
    return nights.withColumns(told | unknown).select(*schema_of("ager_runs")).coalesce(1).sort("ts_ager")


def _of_kind(folded: DataFrame, kind: str) -> DataFrame:
    return folded.where(sf.col(kind).isNotNull()).select(f"{kind}.*")


def _map(rows: DataFrame, work: OverFrames, schema: Schema) -> DataFrame:
    """Rows through a function on frames, partition by partition."""
    return rows.mapInArrow(over_batches(work, schema), spark_schema(schema))


def _write(spark: SparkSession, frame: DataFrame, plan: Plan, table: str) -> int:
    """Write a table, and say how many rows it has, from what was written: a task that ran twice counts once."""
    frame.write.mode("errorifexists").parquet(f"{plan.out}/{table}")
    return _read(spark, plan, table).count()


def _read(spark: SparkSession, plan: Plan, table: str) -> DataFrame:
    return spark.read.parquet(f"{plan.out}/{table}")
