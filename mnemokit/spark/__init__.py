"""``mk.spark.replay``: a log that is too large for one machine becomes edges, by the same pure fold, on Spark.

The extra ``spark`` brings PySpark; Java 17 comes from the system.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mnemokit.errors import InvalidInput, MissingExtra
from mnemokit.records import EdgeParams
from mnemokit.turns.frame import zone_of

if find_spec("pyspark") is None:
    raise MissingExtra("mnemokit.spark needs PySpark 4.3 or later: pip install 'mnemokit[spark]' (and Java 17)")

from mnemokit.spark.job import Plan, SparkReplayReport, run
from mnemokit.spark.session import in_one_line, settings, use_this_python
from mnemokit.spark.steps import function_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mnemokit.turns.derive import PassingsPolicy

__all__ = ["SparkReplayReport", "replay"]

_AGERS = ("daily", None)

_SETTINGS = {
    # Spark's default is a type without a time zone that counts nanoseconds; DuckDB and Polars read this one as UTC.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark measures a batch anew for each row that it adds: with its ten thousand rows each one costs twice as much.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


def replay(
    spark: SparkSession,
    turns: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    ager: str | None = "daily",
    passings: str | PassingsPolicy = "grouped",
    params: EdgeParams | None = None,
    buckets: int | None = None,
    label: str | None = None,
    tz: str | None = None,
) -> SparkReplayReport:
    """Turn a log of any size into edges, on Spark.

    The edges are those of ``mem.replay`` of the same files into an empty memory, to 1e-12, by the same functions. What
    is not made here are reasonlets: replay ``out/turns``, or a part of it, into a memory for them.

    Args:
        spark: A session. If nothing says which Python its executors run, they run the one that runs here; it needs
            mnemokit.
        turns: Parquet files of canonical turns: a path, a folder, a glob (as Hadoop has them) or several. Needed
            columns and how others are filled in: as `mnemokit.turns.frame.check_turns` says.
        out: Folder, new or empty, on storage that driver and executors see. Into it go, each a folder of Parquet:

            - ``turns``: canonical turns, each once; also ``log_row`` (its row in the log, from 0) and ``session_row``
              (that of its session's first turn). ``mem.replay`` reads it.
            - ``rejects``: rows that cannot be used, with file, place and reason.
            - ``passings``: the derived passings; ``mk.fold_passings`` reads them.
            - ``mnests``, ``mnest_events``, ``ager_runs``: the columns of ``mem.frame`` of these names. An id is made
              from the edge and its first passing, so that it is the same in every run.
        ager: "daily" or None, as for ``mem.replay``.
        passings: A policy's name, or a function from canonical turns to passings; it meets whole sessions.
        params: The edge rule; the default one if left out.
        buckets: Tasks of each shuffle. Left out: one for every two million rows, and at least one for every core.
            The result does not depend on it.
        label: What stands in the column source instead of what the log has.
        tz: Time zone of naive instants; without it they are refused.

    Returns:
        Counts, all taken from what was written.

    Raises:
        InvalidInput: If there is no such log, its columns are no frame of turns, or an argument is out of range.
        Conflict: If ``out`` holds a replay already.
        MissingExtra: If the executors' Python lacks mnemokit.
        MnemokitError: If the Spark job fails.

    Example (it needs Java)::

        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
        report = mk.spark.replay(spark, "logs/*.parquet", "edges")
        edges = pl.read_parquet("edges/mnests/*.parquet")
    """
    if ager not in _AGERS:
        raise InvalidInput(f"ager={ager!r} is unknown; use 'daily' or None; nothing was read")
    if buckets is not None and buckets < 1:
        raise InvalidInput(f"buckets must be at least 1, not {buckets}; nothing was read")
    function_of(passings)
    if tz is not None:
        zone_of(tz)
    log = [str(turns)] if isinstance(turns, (str, Path)) else [str(path) for path in turns]
    if not log:
        raise InvalidInput("an empty list of paths was given; nothing was read")
    plan = Plan(str(out).rstrip("/"), ager, passings, params or EdgeParams(), buckets, label, tz)
    with in_one_line(f"replay of {', '.join(log)}"), settings(spark, _SETTINGS):
        use_this_python(spark)
        return run(spark, log, plan)
