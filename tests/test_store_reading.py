"""Reading a store: frames with constant schemas, and SQL that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit import frames


@pytest.fixture(scope="module")
def filled() -> Iterator[mk.Memory]:
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2().head(400))
        yield mem


@pytest.mark.parametrize("table", list(frames.TABLES))
def test_a_frames_schema_does_not_depend_on_its_rows(table: str, filled: mk.Memory) -> None:
    with mk.open() as empty:
        schema = frames.schema_of(table)
        assert dict(empty.frame(table).schema) == schema
        assert dict(filled.frame(table).schema) == schema
        assert dict(filled.frame(table, at="2025-08-01T12:00:00Z").schema) == schema


def test_tables_lists_every_table_with_columns_units_and_rows(filled: mk.Memory) -> None:
    listed = filled.tables()
    assert set(listed["table"]) == set(frames.TABLES)
    rows = dict(listed.select("table", "rows").unique().iter_rows())
    assert rows["turns"] == filled.frame("turns").height == 400
    assert listed.filter(table="mnests", column="decay_lambda")["unit"].item() == "per day"
    assert listed.filter(pl.col("meaning") == "").height == 0


def test_every_public_table_can_be_read_by_sql_under_its_name(filled: mk.Memory) -> None:
    for table in frames.TABLES:
        n = filled.sql(f"SELECT count(*) AS n FROM {table}")["n"].item()
        assert n == filled.frame(table).height, table


def test_an_unknown_table_names_those_there_are(filled: mk.Memory) -> None:
    with pytest.raises(mk.NotFound, match="no table 'edges_of_mine'; there are reasonlets, runs"):
        filled.frame("edges_of_mine")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO store_info VALUES ('x', 'y')",
        "DELETE FROM runs",
        "UPDATE mnests SET weight = 1",
        "DROP TABLE runs",
        "CREATE TABLE mine AS SELECT 1 AS x",
        "CREATE TEMP TABLE mine AS SELECT 1 AS x",
        "ATTACH ':memory:' AS other",
        "CHECKPOINT",
        "PRAGMA version",
        "SET threads = 1",
        "COPY runs TO 'runs.csv'",
        "BEGIN",
        "EXPLAIN ANALYZE DELETE FROM runs",
    ],
)
def test_a_write_through_sql_is_refused_and_writes_nothing(statement: str, filled: mk.Memory) -> None:
    before = filled.frame("mnests")
    with pytest.raises(mk.MnemokitError, match="nothing was run"):
        filled.sql(statement)
    assert filled.frame("mnests").equals(before)


@pytest.mark.parametrize(
    "statement", ["SELECT 1; SELECT 2", "ROLLBACK; DELETE FROM runs", "SELECT 1; DELETE FROM runs", ""]
)
def test_sql_takes_exactly_one_statement(statement: str, filled: mk.Memory) -> None:
    before = filled.frame("runs")
    with pytest.raises(mk.QueryError, match="exactly one SELECT"):
        filled.sql(statement)
    assert filled.frame("runs").equals(before)


def test_sql_reads_no_file(filled: mk.Memory, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with pytest.raises(mk.QueryError):
        filled.sql("SELECT * FROM read_csv(?)", [str(secret)])
    with pytest.raises(mk.QueryError):
        filled.sql(f"SELECT * FROM '{secret}'")


def test_sql_sees_no_python_variable(filled: mk.Memory) -> None:
    my_frame = pl.DataFrame({"x": [1]})
    with pytest.raises(mk.QueryError, match="my_frame"):
        filled.sql("SELECT * FROM my_frame")
    assert my_frame.height == 1


def test_sql_errors_are_mnemokit_errors_in_one_line(filled: mk.Memory) -> None:
    with pytest.raises(mk.QueryError) as caught:
        filled.sql("SELECT nothing FROM runs")
    assert "\n" not in str(caught.value)
    with pytest.raises(mk.QueryError):
        filled.sql("SELEC 1")
    assert filled.sql("SELECT 1 AS x")["x"].item() == 1


def test_sql_binds_parameters_by_place_and_name(filled: mk.Memory) -> None:
    hostile = "x'; DROP TABLE runs; --"
    assert filled.sql("SELECT ? AS x", [hostile])["x"].item() == hostile
    assert filled.sql("SELECT $who AS x", {"who": hostile})["x"].item() == hostile


def test_integer_sums_come_as_integers(filled: mk.Memory) -> None:
    frame = filled.sql("SELECT sum(uses) AS uses, count(*) AS n FROM mnests")
    assert frame.schema == {"uses": pl.Int64, "n": pl.Int64}
    with pytest.raises(mk.QueryError, match="cast it to DOUBLE"):
        filled.sql("SELECT 170141183460469231731687303715884105727::HUGEINT AS big")


def test_a_naive_instant_is_refused_everywhere(filled: mk.Memory) -> None:
    for at in ("2025-08-01T00:00:00", datetime(2025, 8, 1), "yesterday", 5):  # noqa: DTZ001
        with pytest.raises(mk.InvalidInput):
            filled.frame("runs", at=at)  # type: ignore[arg-type]


def test_as_of_reads_show_no_row_of_the_future(filled: mk.Memory) -> None:
    moment = filled.frame("runs")["ts_run"].sort()[filled.frame("runs").height // 2]
    runs = filled.frame("runs", at=moment)
    assert runs["ts_run"].max() == moment
    assert 0 < runs.height < filled.frame("runs").height
    for table, column in (
        ("reasonlets", "ts_captured"),
        ("mnest_events", "ts"),
        ("turns", "ts"),
        ("mnests", "ts_used"),
    ):
        assert filled.frame(table, at=moment)[column].max() <= moment, table


def test_export_writes_every_table_and_overwrites_nothing(filled: mk.Memory, tmp_path: Path) -> None:
    files = filled.export(tmp_path / "out")
    assert {file.stem for file in files} == set(frames.TABLES)
    assert pl.read_parquet(tmp_path / "out" / "runs.parquet").equals(filled.frame("runs"))
    with pytest.raises(mk.Conflict, match="exists already"):
        filled.export(tmp_path / "out")


def test_the_memory_says_what_is_in_it(filled: mk.Memory) -> None:
    assert "400 turns" in repr(filled)


def test_a_read_sees_one_moment_and_reads_inside_it_the_same(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as one, mk.open(tmp_path / "m.duckdb") as two:
        one.mnests.record_passing("find", "1", "buy", "1", at="2025-03-01T00:00:00Z")
        with one._store.read() as con:
            before = con.execute("SELECT count(*) FROM mnest_records").fetchall()
            two.mnests.record_passing("find", "1", "sell", "1", at="2025-03-01T00:00:00Z")
            assert con.execute("SELECT count(*) FROM mnest_records").fetchall() == before
            assert one.mnests.frame().height == one.sql("SELECT * FROM mnests").height == 1
        assert one.mnests.frame().height == 2


def test_a_write_that_a_read_or_a_write_calls_is_refused_at_once() -> None:
    class Writes:
        def embed(self, texts: list[str]) -> list[list[float]]:
            mem.reasonlets.capture("s", "q", {})
            return [[1.0] for _ in texts]

    with mk.open() as mem:
        mem.reasonlets.capture("s", "q", {})
        for log, doing in ((True, "writes"), (False, "reads")):
            with pytest.raises(mk.Conflict, match=f"by a function that it calls while it {doing}; nothing of that was"):
                mem.reasonlets.recall("q", "s", embedder=Writes(), log=log)
        assert mem.frame("reasonlets").height == 1
        assert mem.frame("recalls").height == 0


def test_an_explanation_says_how_much_of_the_belief_its_interval_holds() -> None:
    with mk.open(rank_params=mk.RankParams(interval=0.5)) as mem:
        made = mem.reasonlets.capture("s", "q", {}, outcome="success")
        assert "(50 in 100 of its belief between" in mem.reasonlets.explain(made.reasonlet_id).sentence
