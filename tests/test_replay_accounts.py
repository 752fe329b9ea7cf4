"""Every record read is accounted for, and a log that cannot be read leaves the store untouched."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk

TURNS = pl.DataFrame(
    {
        "session_id": ["s1", "s1", "s2"],
        "step": [0, 1, 0],
        "executor": ["find", "buy", "find"],
        "ts": ["2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z", "2025-01-02T00:00:00Z"],
        "question": ["q", "q", "q"],
        "session_outcome": ["success", "success", None],
    }
).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC"))


def everything(mem: mk.Memory) -> dict[str, pl.DataFrame]:
    return {table: mem.frame(table) for table in mem.tables()["table"].unique()}


def assert_untouched(mem: mk.Memory, before: dict[str, pl.DataFrame]) -> None:
    for table, frame in everything(mem).items():
        assert frame.equals(before[table]), table


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.json", "", "empty"),
        ("cut.json", None, "cut"),
        ("words.json", "this is not JSON at all", "words.json"),
        ("other.json", '{"hello": [1, 2, 3]}', "no reader"),
    ],
)
def test_a_document_that_cannot_be_read_gives_one_line_and_leaves_the_store_untouched(
    tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    path = tmp_path / name
    if content is None:
        whole = {"timestamp": "", "info": {"environment_info": {"domain_name": "d"}, "agent_info": {"llm": "x"}},
                 "tasks": [], "simulations": [{"id": "a", "task_id": "1", "messages": []}]}  # fmt: skip
        content = json.dumps(whole)[:-20]
    path.write_text(content)
    with mk.open() as mem:
        mem.replay(TURNS)
        before = everything(mem)
        with pytest.raises(mk.CorruptLog) as caught:
            mem.replay(path)
        text = str(caught.value)
        assert name in text
        assert "\n" not in text
        if content and says != "cut":
            assert says in text
        assert_untouched(mem, before)


def test_one_broken_document_among_many_leaves_the_store_untouched(tmp_path: Path) -> None:
    TURNS.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.json").write_text("{")
    with mk.open() as mem:
        before = everything(mem)
        with pytest.raises(mk.CorruptLog, match=r"b\.json"):
            mem.replay(str(tmp_path))
        assert_untouched(mem, before)


def test_unusable_rows_become_rejects_and_the_rest_goes_on() -> None:
    bad = TURNS.with_columns(session_id=pl.Series(["s1", "", "s2"]))
    with mk.open() as mem:
        report = mem.replay(bad)
        assert (report.turns, report.rejects, report.records) == (2, 1, 3)
        assert mem.frame("rejects").select("source", "place", "reason").rows() == [
            ("turns", "row 1", "session_id is empty")
        ]
        again = mem.replay(bad)
        assert (again.turns, again.duplicates, again.rejects) == (0, 2, 1)
        assert mem.frame("rejects").height == 1


def test_strict_stops_at_the_first_reject_with_nothing_written() -> None:
    bad = TURNS.with_columns(session_id=pl.Series(["s1", "s1", ""]))
    with mk.open() as mem:
        before = everything(mem)
        with pytest.raises(mk.CorruptLog, match="session_id is empty"):
            mem.replay(bad, strict=True, chunk_rows=1)
        assert_untouched(mem, before)
        assert mem.replay(TURNS, strict=True).turns == 3


def test_a_dry_run_reports_what_would_be_done_and_writes_nothing() -> None:
    with mk.open() as mem:
        before = everything(mem)
        dry = mem.replay(mk.datasets.tau2(), dry_run=True, chunk_rows=1000)
        assert_untouched(mem, before)
        real = mem.replay(mk.datasets.tau2())
        assert dry.dry_run
        assert not real.dry_run
        for name in ("turns", "passings", "captures", "duplicates", "rejects", "ignored", "capture_kinds", "sessions"):
            assert getattr(dry, name) == getattr(real, name), name


def test_a_label_names_the_source_and_is_never_a_path(tmp_path: Path) -> None:
    TURNS.write_parquet(tmp_path / "turns.parquet")
    with mk.open() as mem:
        mem.replay(tmp_path / "turns.parquet", label="mine")
        assert mem.frame("turns")["source"].unique().to_list() == ["mine"]
        assert mem.frame("reasonlets")["source"].unique().to_list() == ["mine"]
        assert mem.replay(tmp_path / "turns.parquet", label="other").turns == 3


def test_a_session_without_calls_counts_but_makes_no_passing_and_no_capture() -> None:
    silent = pl.DataFrame(
        {"session_id": ["quiet"], "step": [0], "executor": [None], "session_outcome": ["failure"]},
        schema_overrides={"executor": pl.String},
    )
    with mk.open() as mem:
        report = mem.replay(silent)
        assert (report.turns, report.passings, report.captures, report.sessions) == (1, 0, 0, 1)
        assert mem.frame("turns")["session_outcome"].item() == "failure"


def test_an_untimed_log_keeps_its_order_and_is_flagged() -> None:
    untimed = TURNS.drop("ts")
    with mk.open() as mem:
        report = mem.replay(untimed)
        assert report.ticks == 0
        edge = mem.frame("mnests").row(0, named=True)
        assert edge["untimed"]
        assert edge["ts_used"].year == 1970
        assert mem.frame("runs")["untimed"].all()
        assert mem.frame("runs")["session_id"].to_list() == ["s1", "s2"]
        assert mem.mnests.apply_ager("2026-01-01T00:00:00Z").decayed == 0
        assert mem.frame("mnests")["weight"].item() == 0.30


def test_a_session_that_goes_on_in_a_later_log_gets_its_passings_and_keeps_its_capture() -> None:
    first, rest = TURNS.head(1), TURNS
    with mk.open() as mem, mk.open() as whole:
        mem.replay(first)
        report = mem.replay(rest)
        assert (report.turns, report.duplicates, report.passings) == (2, 1, 1)
        whole.replay(TURNS)
        columns = ["src_executor", "dst_executor", "weight", "uses", "ts_first", "ts_last", "state"]
        assert mem.frame("mnests").select(columns).equals(whole.frame("mnests").select(columns))
        assert mem.frame("runs").height == 2


def test_a_step_that_arrives_in_between_takes_back_the_passing_it_disproves() -> None:
    late = pl.DataFrame({"session_id": ["s"] * 3, "step": [0, 1, 2], "executor": ["a", "b", "c"]}).with_columns(
        ts=pl.datetime(2025, 1, 1, time_zone="UTC") + pl.duration(minutes=pl.col("step"))
    )
    with mk.open() as mem, mk.open() as whole:
        mem.replay(late[[0, 2]])
        assert mem.frame("mnests").select("src_executor", "dst_executor").rows() == [("a", "c")]
        mem.replay(late)
        whole.replay(late)
        columns = ["src_executor", "dst_executor", "weight", "uses", "ts_first", "ts_last", "state"]
        mine = mem.frame("mnests").select(columns).sort(columns)
        assert mine.equals(whole.frame("mnests").select(columns).sort(columns))


def test_wrong_options_are_refused_before_anything_is_read() -> None:
    with mk.open() as mem:
        for wrong in ({"ager": "hourly"}, {"chunk_rows": 0}, {"passings": "psychic"}, {"captures": "none of it"},
                      {"parents": "adopted"}, {"tz": "Mars"}):  # fmt: skip
            with pytest.raises(mk.InvalidInput):
                mem.replay(TURNS, **wrong)
            assert mem.frame("turns").height == 0, wrong


def test_naive_instants_are_refused_unless_a_zone_is_given() -> None:
    naive = TURNS.with_columns(pl.col("ts").dt.replace_time_zone(None))
    with mk.open() as mem:
        with pytest.raises(mk.InvalidInput, match="tz="):
            mem.replay(naive)
        mem.replay(naive, tz="Europe/Rome")
        assert str(mem.frame("turns")["ts"].max()) == "2025-01-01 23:00:00+00:00"
