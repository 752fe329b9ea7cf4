"""``mk.spark.replay`` in ``local[2,4]``: what one machine makes of a log, Spark makes of it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import Conflict, InvalidInput, MnemokitError
from mnemokit.records import EdgeParams
from tests.support_spark import (
    KEYS,
    PANDAS_WARNING,
    assert_same_memory,
    in_files,
    java_or_fail,
    made_log,
    session,
    table,
)

pytestmark = pytest.mark.filterwarnings(PANDAS_WARNING)

TAU2 = Path(__file__).parents[1] / "data" / "tau2_turns.parquet"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    yield from session(
        "local[2,4]", tmp_path_factory.mktemp("spark"), **{"spark.sql.session.timeZone": "Asia/Kathmandu"}
    )


def test_tau2_makes_the_edges_that_one_machine_makes(spark, tmp_path):
    report = mk.spark.replay(spark, TAU2, tmp_path / "out")
    assert (report.turns, report.passings, report.duplicates, report.rejects) == (3866, 4087, 0, 0)
    with mk.open() as mem:
        one = mem.replay(TAU2, captures="none")
        assert (one.passings, one.ticks, mem.frame("mnests").height) == (report.passings, report.ticks, report.mnests)
        assert_same_memory(tmp_path / "out", mem)
    # What was written opens everywhere, and is a log and a frame of passings again.
    found = duckdb.execute("SELECT count(*), sum(uses) FROM read_parquet(?)", [f"{tmp_path}/out/mnests/*.parquet"])
    assert found.fetchall() == [(report.mnests, 4087)]
    folded = mk.fold_passings(pl.scan_parquet(tmp_path / "out" / "passings" / "*.parquet"), ager="daily")
    assert folded.mnests["uses"].sum() == 4087
    with mk.open() as mem:
        again = mem.replay(tmp_path / "out" / "turns" / "*.parquet")
        assert (again.turns, again.duplicates, again.rejects, again.captures) == (3866, 0, 0, 280)
        assert mem.frame("mnests").height == report.mnests
    with pytest.raises(Conflict, match="out/turns is there already; nothing was written"):
        mk.spark.replay(spark, TAU2, tmp_path / "out")


def test_a_log_with_everything_in_it_makes_the_edges_that_one_machine_makes(spark, tmp_path):
    log = made_log(150, seed=1).with_columns(user_id=pl.lit(None, pl.String))
    bad = log.head(3).with_columns(session_id=pl.Series(["", "s", "s"]), step=pl.Series([1, None, 1]),
                                   executor=pl.Series(["a", "a", ""]), turn_id=pl.lit("bad"))  # fmt: skip
    log = pl.concat([log[:100], bad, log[100:]])
    files = in_files(log, tmp_path / "a log", 11)
    # One file lacks a column that may be missing.
    last = tmp_path / "a log" / "part 10.parquet"
    pl.read_parquet(last).drop("user_id").write_parquet(last)
    with mk.open() as mem:
        one = mem.replay(files, captures="none")
        for buckets in (1, 5):
            out = tmp_path / f"out {buckets}"
            report = mk.spark.replay(spark, files, out, buckets=buckets)
            assert_same_memory(out, mem)
            assert (report.turns, report.duplicates, report.rejects) == (one.turns, one.duplicates, one.rejects)
            assert report.turns + report.duplicates + report.rejects == log.height
            assert (report.passings, report.ticks) == (one.passings, one.ticks)
            assert len(list((out / "turns").glob("*.parquet"))) <= buckets
        rejects, stored = table(out, "rejects").sort("place"), mem.frame("rejects").sort("place")
        assert rejects["reason"].to_list() == stored["reason"].to_list()
        assert rejects["place"].to_list() == stored["place"].to_list()
        assert [Path(file).name for file in stored["file"]] == [
            file.rsplit("/", 1)[1].replace("%20", " ") for file in rejects["file"]
        ]
    assert one.rejects == 3
    assert one.duplicates > 5
    assert table(out, "mnests").filter(state="decaying").height > 5
    assert table(out, "mnest_events").filter(kind="merge").height > 5
    assert 0 < table(out, "mnest_events").filter("untimed").height < one.passings
    turns = table(out, "turns").sort("log_row")
    assert turns["question"].str.contains("not counted").not_().all()
    assert turns.select(pl.col("log_row").min().over("source", "session_id"))["log_row"].equals(turns["session_row"])


def test_rates_protos_and_labels_of_a_policy_of_ones_own_are_folded_though_tasks_fail(spark, tmp_path):
    failed = str(tmp_path / "failed")

    def wishing(turns):
        # An executor runs this, and knows nothing of this module.
        from pathlib import Path

        import polars as pl

        from mnemokit.turns.passings import grouped

        passings = grouped(turns)
        if passings.height and not Path(failed).exists():
            Path(failed).touch()
            raise RuntimeError("a task that fails once")
        wish = pl.col("step") % 3 == 0
        return passings.with_columns(
            dst_version=pl.when(~wish).then("dst_version"),
            dst_exists=~wish,
            tags=pl.when(pl.col("step") % 2 == 0).then(pl.concat_list("source")),
            desired_sig=pl.when(wish).then(pl.concat_str(pl.lit('{"inputs": '), "step", pl.lit("}"))),
            decay_lambda=pl.when(pl.col("session_id").str.ends_with("7")).then(0.05),
        )

    files = in_files(made_log(60, seed=2, timed=1.0), tmp_path / "log", 3)
    params = EdgeParams(reinforcement=0.2, tick_hour=5)
    report = mk.spark.replay(spark, files, tmp_path / "out", passings=wishing, params=params, label="mine")
    assert Path(failed).exists()
    with mk.open(edge_params=params) as mem:
        one = mem.replay(files, captures="none", passings=wishing, label="mine")
        assert one.passings == report.passings
        assert_same_memory(tmp_path / "out", mem)
    assert set(table(tmp_path / "out", "mnests")["state"]) == {"active", "decaying", "proto"}
    assert "purge" in table(tmp_path / "out", "mnest_events")["kind"]
    assert table(tmp_path / "out", "turns")["source"].unique().to_list() == ["mine"]


def test_values_flow_without_an_ager(spark, tmp_path):
    start = datetime(2025, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    log = pl.DataFrame(
        {
            "session_id": [7, 7, 7],
            "step": [0, 1, 2],
            "executor": ["search", "look", "buy"],
            "ts": [start, start, start.replace(month=6)],
            "arg_values": [[], [1], [2**64 - 1]],
            "result_values": [[2**64 - 1], [], []],
        },
        schema_overrides={"step": pl.UInt64, "arg_values": pl.List(pl.UInt64), "result_values": pl.List(pl.UInt64)},
    )
    log.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InvalidInput, match="column 'ts' of a frame of turns has no time zone; give tz="):
        mk.spark.replay(spark, tmp_path / "log.parquet", tmp_path / "out")
    report = mk.spark.replay(
        spark, tmp_path / "log.parquet", tmp_path / "out", passings="value_flow", ager=None, tz="Europe/Rome"
    )
    assert (report.turns, report.passings, report.ticks, report.mnests) == (3, 1, 0, 1)
    edge = table(tmp_path / "out", "mnests").row(0, named=True)
    assert [edge[key] for key in KEYS] == ["search", "unversioned", "buy", "unversioned"]
    assert (edge["ts_first"], edge["weight"]) == (datetime(2025, 6, 1, 10, tzinfo=UTC), 0.30)
    assert table(tmp_path / "out", "ager_runs").schema == mk.open().frame("ager_runs").schema


def test_a_log_without_rows_makes_empty_tables_and_leaves_the_sessions_settings(spark, tmp_path):
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    made_log(3, seed=3).head(0).write_parquet(tmp_path / "log.parquet")
    report = mk.spark.replay(spark, tmp_path / "log.parquet", tmp_path / "out")
    assert (report.turns, report.passings, report.ticks, report.mnests) == (0, 0, 0, 0)
    mem = mk.open()
    for table_name in ("mnests", "mnest_events", "ager_runs"):
        assert table(tmp_path / "out", table_name).schema == mem.frame(table_name).schema
    assert spark.conf.get(name) == before
    assert spark.sparkContext.pythonExec == sys.executable


def test_a_log_whose_times_are_all_null_is_untimed(spark, tmp_path):
    log = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["a", "b"], "ts": [None, None]})
    log.write_parquet(tmp_path / "log.parquet")
    report = mk.spark.replay(spark, tmp_path / "log.parquet", tmp_path / "out")
    assert (report.passings, report.ticks) == (1, 0)
    edge = table(tmp_path / "out", "mnests").row(0, named=True)
    assert (edge["untimed"], edge["ts_first"]) == (True, datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC))


def test_what_cannot_be_replayed_is_told_in_one_line_and_nothing_is_written(spark, tmp_path):
    log = tmp_path / "log.parquet"
    pl.DataFrame({"session_id": ["s"], "step": [0]}).write_parquet(log)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")

    def refused(kind, match, turns=log, **more):
        with pytest.raises(kind, match=match) as caught:
            mk.spark.replay(spark, turns, tmp_path / "out", **more)
        assert "\n" not in str(caught.value)

    refused(InvalidInput, "column 'executor' is missing")
    refused(InvalidInput, "nowhere.*PATH_NOT_FOUND", turns=tmp_path / "nowhere.parquet")
    refused(InvalidInput, "an empty list of paths", turns=[])
    refused(MnemokitError, "replay of .*broken.parquet: ", turns=tmp_path / "broken.parquet")
    refused(InvalidInput, "'nearest' is no policy; use one of grouped", passings="nearest")
    refused(InvalidInput, "ager='hourly' is unknown", ager="hourly")
    refused(InvalidInput, "buckets must be at least 1, not 0", buckets=0)
    refused(InvalidInput, "tz='Mars' is no time zone", tz="Mars")
    made_log(2, seed=4).with_columns(step=pl.col("step").cast(pl.Float64)).write_parquet(log)
    refused(InvalidInput, "column 'step' of a frame of turns must be Int64, not Float64")
    made_log(2, seed=4).with_columns(pl.col("ts").cast(pl.Datetime("ns", "UTC"))).write_parquet(log)
    refused(InvalidInput, "Spark has no nanoseconds: write instants in microseconds")
    assert not (tmp_path / "out").exists()


def test_importing_mnemokit_does_not_import_pyspark():
    code = "import sys, mnemokit; assert 'spark' in dir(mnemokit); assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pyspark_one_line_says_what_to_install():
    code = (
        "import sys; from importlib.machinery import PathFinder\n"
        "class Without(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        return None if name.split('.')[0] == 'pyspark' else super().find_spec(name, path, target)\n"
        "sys.meta_path = [f for f in sys.meta_path if f is not PathFinder] + [Without]\n"
        "import mnemokit as mk\n"
        "try: mk.spark\n"
        "except mk.MissingExtra as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "mnemokit.spark needs PySpark 4.3 or later: pip install 'mnemokit[spark]' (and Java 17)\n"


def test_without_java_the_tests_fail_and_say_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.fail.Exception, match="there is no Java on this machine; apt-get install openjdk-17"):
        java_or_fail()
