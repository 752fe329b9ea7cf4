"""What callers give: frames of any library, paths, and what is neither."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import mnemokit as mk
from mnemokit.given_frames import as_polars, is_frame

STEPS = {
    "session_id": ["a", "a", "b", "b"],
    "step": [0, 1, 0, 1],
    "executor": ["find", "buy", "find", None],
    "ok": [True, False, True, None],
    "ts": ["2025-03-01T10:00:00Z", "2025-03-01T10:01:00Z", "2025-03-02T10:00:00Z", None],
}


def in_pandas() -> pd.DataFrame:
    """The steps as they are in pandas after some work: an index, and whole numbers that became floats."""
    frame = pd.DataFrame(STEPS, index=[7, 8, 9, 10])
    frame["ts"] = pd.to_datetime(frame["ts"], utc=True)
    frame["step"] = frame["step"].astype(float)
    return frame


def in_polars() -> pl.DataFrame:
    return pl.DataFrame(STEPS).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC"))


@pytest.mark.parametrize(
    "given",
    [
        in_pandas(),
        in_polars(),
        in_polars().lazy(),
        in_polars().to_arrow(),
        in_polars().with_columns(ok=pl.col("ok").cast(pl.Int64), step=pl.col("step").cast(pl.Float64)),
    ],
    ids=["pandas", "polars", "lazy", "arrow", "numbers"],
)
def test_turns_may_be_a_frame_of_any_library(given: object) -> None:
    expected = mk.check_turns(in_polars())
    assert_frame_equal(mk.check_turns(given), expected)
    assert_frame_equal(mk.derive_passings(given), mk.derive_passings(expected))
    assert_frame_equal(mk.derive_captures(given), mk.derive_captures(expected))
    with mk.open() as mem, mk.open() as other:
        assert mem.replay(given).turns == 4
        other.replay(in_polars())
        assert_frame_equal(mem.frame("turns"), other.frame("turns"))


def test_a_relation_of_duckdb_is_a_frame() -> None:
    with duckdb.connect() as con:
        assert as_polars(con.sql("SELECT 1 AS step"), "turns").rows() == [(1,)]


def test_procedures_and_runs_may_be_frames_of_pandas() -> None:
    captures = pd.DataFrame(
        {"scope": ["s"], "question": ["q"], "graph": ['{"nodes": [{"id": "a"}]}'], "outcome": ["success"]}
    )
    with mk.open() as mem:
        mem.reasonlets.capture_many(captures)
        reasonlets, runs = mem.frame("reasonlets"), mem.frame("runs")
        assert_frame_equal(mk.rank(reasonlets.to_pandas(), runs.lazy()), mk.rank(reasonlets, runs))


@pytest.mark.parametrize("wrong", [{"session_id": ["a"]}, [{"session_id": "a"}], None, 7, b"log.json"])
def test_what_is_neither_frame_nor_path_is_refused(wrong: object) -> None:
    assert not is_frame(wrong)
    with mk.open() as mem:
        with pytest.raises(mk.InvalidInput, match=r"is no path to logs; nothing was read; give a file.* or a frame"):
            mem.replay(wrong)
        with pytest.raises(mk.InvalidInput, match=r"turns must be a frame \(Polars, pandas or Arrow\), not"):
            mk.check_turns(wrong)
        assert mem.frame("turns").is_empty()


def test_a_frame_whose_column_is_called_as_a_file_is_not_read_as_that_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    in_polars().write_csv("log.csv")
    with mk.open() as mem, pytest.raises(mk.InvalidInput, match="column 'session_id' is missing"):
        mem.replay(pd.DataFrame({"log.csv": [1]}))


@pytest.mark.parametrize(
    "path", ["nope.json", "logs/nope.json", "/nowhere/nope.json", "~/nope.json", "nodir/", "*.nope"]
)
def test_a_path_where_nothing_is_is_named(path: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (path, Path(path), [path]):
        with pytest.raises(mk.InvalidInput, match=r"there is no file at .*nope|there is no file at nodir"):
            mk.read_turns(given)
    in_polars().write_csv("log.csv")
    with mk.open() as mem:
        with pytest.raises(mk.InvalidInput, match="there is no file at"):
            mem.replay(["log.csv", path])
        assert mem.frame("turns").is_empty()


def test_a_step_that_is_not_whole_and_an_ok_that_is_no_flag_are_refused() -> None:
    with pytest.raises(mk.InvalidInput, match="column 'step' of a frame of turns must be Int64, not Float64"):
        mk.check_turns(in_polars().with_columns(step=pl.lit(0.5)))
    with pytest.raises(mk.InvalidInput, match="column 'ok' of a frame of turns must be Boolean, not Int32"):
        mk.check_turns(in_polars().with_columns(ok=pl.lit(2)))
    with mk.open() as mem, pytest.raises(mk.InvalidInput, match="column 'step'"):
        mem.replay(in_polars().with_columns(step=pl.Series([0.0, 1.0, 0.0, 0.5])), chunk_rows=1)


def test_a_column_whose_name_is_nearly_right_is_told() -> None:
    frame = in_polars().with_columns(sesion_outcome=pl.lit("success"), note=pl.lit("x"))
    with pytest.warns(
        mk.UnusedColumn, match="column 'sesion_outcome' of this frame is not used; did you mean 'session_outcome'"
    ):
        assert mk.check_turns(frame)["session_outcome"].null_count() == 4
    with mk.open() as mem, pytest.warns(mk.UnusedColumn, match="session_outcome"):
        mem.replay(frame)


def test_a_replay_that_could_use_nothing_says_why(tmp_path: Path) -> None:
    in_polars().head(3).with_columns(pl.col("ts").dt.replace_time_zone(None)).write_csv(tmp_path / "log.csv")
    with mk.open() as mem:
        with pytest.warns(mk.RejectedRecords, match=r"not one of 3 records could be used \(ts has no time zone.*: 3\)"):
            report = mem.replay(tmp_path / "log.csv")
        assert sum(report.reject_reasons.values()) == report.rejects == 3
        assert mem.replay(tmp_path / "log.csv", tz="UTC").turns == 3
    with pytest.warns(mk.RejectedRecords, match=r"3 records could not be used and are left out \(ts has no time zone"):
        assert mk.read_turns(tmp_path / "log.csv").is_empty()


def test_a_table_of_ones_own_is_told_which_columns_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("session,time,tool,ok\na,2025-03-01,find,1\n", encoding="utf-8")
    with pytest.raises(
        mk.UnknownFormat, match=r"needs the columns session_id, step, executor, and this has session, time, tool, ok"
    ):
        mk.read_turns(path)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.json", "log.parquet", "notes.txt"])
def test_a_file_of_data_is_not_opened_as_an_empty_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        in_polars().write_parquet(path)
    else:
        path.write_text('{"session_id": "a", "step": 0, "executor": "find"}\n', encoding="utf-8")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(mk.StoreVersion, match="is not a DuckDB file; it was left as it is; name another file"):
            mk.open(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_frame_with_the_name_of_no_reader_is_refused() -> None:
    with mk.open() as mem:
        with pytest.raises(mk.InvalidInput, match="no_such_reader"):
            mem.replay(in_polars(), source="no_such_reader")
        assert mem.frame("turns").is_empty()


@pytest.mark.parametrize("at", ["2025-06-01", "2025-06-01T00:00:00", "rubbish", "0001-01-01T00:00:00+02:00"])
def test_what_is_no_instant_with_a_time_zone_is_refused_by_every_read(at: str) -> None:
    with mk.open() as mem:
        for read in (mem.changes.traces, mem.changes.changes, mem.mnests.frame, mem.reasonlets.rank):
            with pytest.raises(mk.InvalidInput, match=r"at="):
                read(at=at)
        for table in mem.tables()["table"].unique():
            with pytest.raises(mk.InvalidInput, match=r"at="):
                mem.frame(table, at=at)


def test_what_is_looked_for_must_be_a_text_or_a_number() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("find", "1", "buy", "1", at="2025-03-01T00:00:00Z")
        for ask in (
            lambda: mem.mnests.by_tag(3),
            lambda: mem.mnests.find(3, "1", "buy", "1"),
            lambda: mem.mnests.find("find", "1", "buy", 1),
            lambda: mem.mnests.recurring_protos(min_uses="a"),
            lambda: mem.changes.timeline(3),
            lambda: mem.changes.blame(None),
            lambda: mem.changes.contributors(3),
            lambda: mem.changes.impact(3),
        ):
            with pytest.raises(mk.InvalidInput, match="must be a"):
                ask()


def test_edges_passings_and_comparisons_take_frames_of_pandas() -> None:
    with mk.open() as mem:
        mem.replay(in_polars(), label="mine")
        mnests = mem.frame("mnests")
    passings = mk.derive_passings(in_polars())
    now = "2025-06-01T00:00:00Z"
    for given in (mnests.to_arrow(), mnests.lazy()):
        assert_frame_equal(mk.age(given, now=now).mnests, mk.age(mnests, now=now).mnests)
        assert_frame_equal(mk.decay(given, at=now), mk.decay(mnests, at=now))
    in_one = mnests.drop("tags").to_pandas()
    assert mk.age(in_one, now=now).stats == mk.age(mnests, now=now).stats
    assert_frame_equal(
        mk.fold_passings(passings.to_arrow()).mnests, mk.fold_passings(passings).mnests, check_exact=False
    )
    versions = in_polars().with_columns(executor_version=pl.Series(["1", "1", "2", "2"]))
    compared = mk.evaluate.compare_turns(mk.check_turns(versions).to_arrow())
    assert (compared.groups.a, compared.groups.b) == ("1", "2")
    for call in (lambda: mk.age([], now=now), lambda: mk.decay({}, at=now), lambda: mk.fold_passings(None)):
        with pytest.raises(mk.InvalidInput, match=r"must be a frame \(Polars, pandas or Arrow\)"):
            call()


def test_the_index_of_pandas_is_left_out_and_its_nan_are_nulls() -> None:
    frame = pd.DataFrame({"n": [1.0, None]}, index=["a", "b"])
    assert as_polars(frame, "runs").to_dict(as_series=False) == {"n": [1.0, None]}
    assert as_polars(frame.rename_axis("reasonlet_id"), "runs").columns == ["n"]


def test_a_column_of_no_one_type_is_refused_in_one_line() -> None:
    with pytest.raises(mk.InvalidInput, match=r"runs cannot be read as a table: .*; nothing was read"):
        as_polars(pd.DataFrame({"x": [1, "a", {}]}), "runs")
