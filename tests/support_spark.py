"""Sessions of Spark for the tests, and logs that have everything a log can have."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import mnemokit as mk
from mnemokit.turns.frame import TURNS_SCHEMA

#: PySpark says so of every pandas from 3.0 on; nothing here uses pandas.
PANDAS_WARNING = r"ignore:PySpark does not yet fully support pandas:FutureWarning"

DAY = datetime(2025, 3, 1, 22, tzinfo=UTC)
KEYS = ["src_executor", "src_version", "dst_executor", "dst_version"]


def java_or_fail() -> None:
    """Fail where there is no Java: a test that is skipped would look like one that passed."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        pytest.fail(
            "mnemokit.spark cannot be tested: there is no Java on this machine; "
            "apt-get install openjdk-17-jre-headless (or set JAVA_HOME to a Java 17)",
            pytrace=False,
        )


def session(master: str, folder: Path, **more: str) -> Iterator:
    """A session with the Python that runs the tests, found by mnemokit itself; stopped at the end."""
    java_or_fail()
    from pyspark.sql import SparkSession

    given = os.environ.pop("PYSPARK_PYTHON", None)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
        # Half the processor time for a job that is over before the better compiler has paid for itself.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master(master).appName("tests of mnemokit")
    for name, value in (settings | more).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
        os.environ.pop("PYSPARK_PYTHON", None)
        if given is not None:
            os.environ["PYSPARK_PYTHON"] = given


def made_log(sessions: int, seed: int, *, timed: float = 0.7) -> pl.DataFrame:
    """Turns of many sessions, interleaved: parallel groups, repeats, versions, ties in time, untimed ones, long pauses.

    Args:
        sessions: How many.
        seed: Of the random numbers.
        timed: Share of the sessions that have times.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(sessions):
        start = DAY + timedelta(hours=int(rng.integers(0, 24 * 200)))
        has_times = rng.random() < timed
        steps = int(rng.integers(1, 12))
        group = 0
        for step in range(steps):
            group = step if rng.random() < 0.7 else group
            start += timedelta(hours=int(rng.choice([0, 0, 0, 1, 5, 24 * 30])))
            rows.append(
                {
                    "source": "first" if number < sessions // 2 else "second",
                    "session_id": f"s{number}",
                    "turn_id": f"t{step}",
                    "step": step,
                    "parallel_group": group,
                    "executor": None if rng.random() < 0.03 else f"tool{rng.integers(0, 4)}",
                    "executor_version": None if rng.random() < 0.2 else f"{rng.integers(1, 3)}",
                    "ts": start if has_times and rng.random() < 0.95 else None,
                    "ok": bool(rng.random() < 0.9),
                    "question": f"question {number % 7}",
                    "place": number + 3 * rng.random() + (0 if number < sessions // 2 else 10),
                }
            )
    schema = {name: dtype for name, dtype in TURNS_SCHEMA.items() if name in rows[0]}
    frame = pl.DataFrame(rows, schema=schema | {"place": pl.Float64})
    repeats = frame.sample(fraction=0.03, seed=seed).with_columns(
        question=pl.lit("said again, and not counted"), place=pl.col("place") + 5
    )
    return pl.concat([frame, repeats]).sort("place", maintain_order=True).drop("place")


def in_files(log: pl.DataFrame, folder: Path, files: int) -> str:
    """The log cut into Parquet files whose natural order is not that of their letters; returns the glob."""
    folder.mkdir()
    cuts = np.linspace(0, log.height, files + 1).astype(int)
    for number, (begin, end) in enumerate(pairwise(cuts)):
        log[int(begin) : int(end)].write_parquet(folder / f"part {number}.parquet", row_group_size=50)
    return str(folder / "*.parquet")


def table(out: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(out / name / "*.parquet")


def assert_same_memory(out: Path, mem: mk.Memory) -> None:
    """Records, events and nights of a Spark replay are those of the memory, to 1e-12. Ids are compared as names."""
    closely = {"rel_tol": 0, "abs_tol": 1e-12}
    order = [*KEYS, "state"]
    mnests = table(out, "mnests").sort(order)
    assert mnests["mnest_id"].is_unique().all()
    assert_frame_equal(mnests.drop("mnest_id"), mem.frame("mnests").sort(order).drop("mnest_id"), **closely)
    order = ["ts", "seq", "kind", *KEYS]
    events, expected = table(out, "mnest_events").sort(order), mem.frame("mnest_events").sort(order)
    told = ["mnest_id", "detail"]  # a merge's detail names a record by its id
    assert_frame_equal(events.drop(told), expected.drop(told), **closely)
    # Ids are other words for the same records: each stands for one, in both.
    same = pl.DataFrame({"here": events["mnest_id"], "there": expected["mnest_id"]}).unique()
    assert same["here"].is_unique().all()
    assert same["there"].is_unique().all()
    words = dict(same.iter_rows())
    detail = events["detail"].str.replace_many(list(words), list(words.values()))
    assert_frame_equal(detail.to_frame(), expected.select("detail"))
    named = table(out, "mnests").select(*KEYS, "state", there=pl.col("mnest_id").replace_strict(words))
    stored = mem.frame("mnests").select(*KEYS, "state", there="mnest_id")
    assert_frame_equal(named, stored, check_row_order=False)
    runs, nights = table(out, "ager_runs").sort("ts_ager"), mem.frame("ager_runs")
    assert_frame_equal(runs.drop("seconds"), nights.drop("seconds"))
