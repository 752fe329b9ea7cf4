"""Taking over a Metnos edge store."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.doctor import check_store
from mnemokit.errors import CorruptLog, NotFound
from mnemokit.mnests.metnos import import_metnos

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "metnos" / "mnest.sqlite"
ODD = "mn_9f41802ef49c7dde297f50ac"


def make(path: Path, mnests: list[tuple], events: list[tuple] = (), queries: list[tuple] = ()) -> Path:
    with closing(sqlite3.connect(SAMPLE)) as sample:
        tables = [row[0] for row in sample.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")]
    with closing(sqlite3.connect(path)) as con:
        for sql in tables:
            con.execute(sql)
        con.executemany(f"INSERT INTO mnests VALUES ({', '.join('?' * 13)})", mnests)
        con.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", events)
        con.executemany(f"INSERT INTO canonical_query_log VALUES ({', '.join('?' * 11)})", queries)
        con.commit()
    return path


def row(name: str, **changes: object) -> tuple:
    values = {
        "id": name, "src_executor": "a", "src_version": "1", "dst_executor": name, "dst_version": "1", "weight": 0.3,
        "uses": 1, "ts_first": "2025-03-01T00:00:00Z", "ts_last": "2025-03-01T00:00:00Z", "decay_lambda": 0.018,
        "state": "active", "tags": "[]", "desired_sig": None,
    }  # fmt: skip
    return tuple((values | changes).values())


def test_the_sample_ends_as_the_reference_store_did_with_its_ids() -> None:
    vector = json.loads((DATA / "edge_vectors" / "edges_400.json").read_text())
    before = hashlib.sha256(SAMPLE.read_bytes()).hexdigest()
    with mk.open() as mem:
        report = import_metnos(mem, SAMPLE)
        frame = mem.frame("mnests")
        events = mem.frame("mnest_events")
        runs = mem.frame("ager_runs")
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() == before
    assert (report.mnests, report.as_they_stood, report.queries) == (27, 0, 3)
    assert [(bad.table, bad.row) for bad in report.unusable] == [("mnests", ODD)]
    assert "not JSON" in report.unusable[0].reason
    names = ("src_executor", "src_version", "dst_executor", "dst_version", "state")
    rows = {tuple(r[name] for name in names): r for r in frame.to_dicts()}
    assert len(rows) == 27
    for want in vector["mnests"]:
        have = rows[tuple(want[name] for name in names)]
        assert have["weight"] == pytest.approx(want["weight"], rel=1e-9)
        assert have["uses"] == want["uses"]
        for name in ("ts_first", "ts_last"):
            assert have[name] == datetime.fromisoformat(want[name])
        if have["mnest_id"] != ODD:
            assert sorted(have["tags"]) == sorted(want["tags"])
        signature = json.loads(have["desired_sig"]) if have["desired_sig"] else None
        assert (signature or None) == (want["desired_sig"] or None)
    with closing(sqlite3.connect(f"file:{SAMPLE}?mode=ro", uri=True)) as con:
        ids = {r[0] for r in con.execute("SELECT id FROM mnests")}
        logged = con.execute(
            "SELECT mnest_id, ts, delta, turn_id FROM events WHERE kind = 'reinforce' ORDER BY id"
        ).fetchall()
        nights = con.execute("SELECT count(DISTINCT ts) FROM events WHERE kind = 'decay'").fetchone()[0]
    assert set(frame["mnest_id"]) == ids
    passings = events.filter(pl.col("kind") == "passing")
    mine = {(r["mnest_id"], r["ts"], r["turn_id"]): r["delta"] for r in passings.to_dicts()}
    assert len(mine) == len(logged) == 209
    for mnest_id, ts, delta, turn_id in logged:
        assert mine[mnest_id, datetime.fromisoformat(ts), turn_id] == pytest.approx(delta, abs=1e-9)
    assert runs.height == nights
    assert set(runs["kind"]) == {"explicit"}


def test_a_second_import_adds_nothing() -> None:
    with mk.open() as mem:
        import_metnos(mem, SAMPLE)
        before = {table: mem.frame(table) for table in ("mnests", "mnest_events", "ager_runs", "canonical_queries")}
        report = import_metnos(mem, SAMPLE)
        assert (report.mnests, report.events, report.nights, report.queries, report.already_there) == (0, 0, 0, 0, 27)
        for table, frame in before.items():
            assert mem.frame(table).equals(frame)


def test_a_record_without_its_history_is_taken_over_as_it_stands(tmp_path: Path) -> None:
    stood = row("b", weight=0.7, uses=12, ts_last="2025-03-09T03:00:00Z", tags='["x"]')
    half = row("c", weight=0.6, uses=5, ts_last="2025-03-05T00:00:00Z")
    proto = row("d", dst_version=None, state="proto", desired_sig='{"summary": "s"}', uses=4, weight=0.5)
    events = [(1, "c", "2025-03-05T00:00:00Z", "reinforce", 0.1, None, None, "t9")]
    with mk.open() as mem:
        report = import_metnos(mem, make(tmp_path / "m.sqlite", [stood, half, proto], events))
        assert (report.mnests, report.as_they_stood, len(report.unusable)) == (3, 3, 0)
        got = mem.mnests.get("b")
        assert (got.weight, got.uses, got.tags, got.state) == (0.7, 12, ("x",), "active")
        assert got.ts_first == datetime(2025, 3, 1, tzinfo=UTC)
        assert mem.mnests.events("b")["kind"].to_list() == ["import"]
        assert mem.mnests.events("c")["kind"].to_list() == ["logged", "import"]
        assert mem.mnests.get("d").desired_sig == '{"summary": "s"}'
        # It lives on like any other, and a late passing folds it again.
        assert mem.mnests.record_passing("a", "1", "b", "1", at="2025-03-10T03:00:00Z") == "b"
        mem.mnests.record_passing("a", "1", "b", "1", at="2025-03-09T15:00:00Z")
        assert mem.mnests.get("b").uses == 14
        assert mem.mnests.get("b").weight == pytest.approx(0.7 + 0.3, abs=0.02)


def test_rows_that_cannot_be_used_are_named_with_the_reason(tmp_path: Path) -> None:
    rows = [
        row("good"),
        row("bad_state", state="asleep"),
        row("no_version", dst_version=None),
        row("heavy", weight=7.0),
        row("never", uses=0),
        row("when", ts_first="yesterday"),
        row("naive", ts_last="2025-03-01T00:00:00"),
        row("backwards", decay_lambda=-1),
        row("", dst_executor="z"),
        row("again", dst_executor="good"),
        row("good", dst_executor="other"),
        row("list", tags='{"a": 1}'),
        row("long", tags=json.dumps(["x" * 513])),
    ]
    events = [
        (1, "good", "2025-03-01T00:00:00Z", "reinforce", 0.3, None, None, None),
        (2, "ghost", "2025-03-01T00:00:00Z", "reinforce", 0.3, None, None, None),
        (3, "good", "2025-03-02T00:00:00Z", "dance", None, None, None, None),
        (4, "good", "2025-03-02T00:00:00Z", "state_change", None, "asleep", None, None),
    ]
    queries = [(1, "", "t", "{}", 1, 1, 0, "2025-03-01T00:00:00Z", "2025-03-01T00:00:00Z", None, None)]
    with mk.open() as mem:
        report = import_metnos(mem, make(tmp_path / "m.sqlite", rows, events, queries))
        assert sorted(mem.frame("mnests")["mnest_id"]) == ["good", "list", "long"]
    reasons = {(bad.table, bad.row): bad.reason for bad in report.unusable}
    assert set(reasons) == {
        ("mnests", name)
        for name in (
            "bad_state",
            "no_version",
            "heavy",
            "never",
            "when",
            "naive",
            "backwards",
            "",
            "again",
            "good",
            "list",
            "long",
        )
    } | {("events", "2"), ("events", "3"), ("events", "4"), ("canonical_query_log", "1")}
    assert "asleep" in reasons["mnests", "bad_state"]
    assert "same edge and state" in reasons["mnests", "again"]
    assert "ghost" in reasons["events", "2"]
    assert "more than 512 characters" in reasons["mnests", "long"]
    assert "rows could not be used" in str(report)


def test_an_edge_that_the_store_has_already_takes_the_passings_in(tmp_path: Path) -> None:
    events = [(1, "b", "2025-03-01T00:00:00Z", "reinforce", 0.3, None, None, "t1")]
    with mk.open() as mem:
        own = mem.mnests.record_passing("a", "1", "b", "1", at="2025-02-28T00:00:00Z")
        report = import_metnos(mem, make(tmp_path / "m.sqlite", [row("b")], events))
        assert mem.mnests.get(own).uses == 2
        assert [(bad.row, own in bad.reason) for bad in report.unusable] == [("b", True)]
        with pytest.raises(NotFound):
            mem.mnests.get("b")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as con:
        con.execute("CREATE TABLE t (x)")
    text = tmp_path / "text.sqlite"
    text.write_text("not a database" * 100)
    with mk.open() as mem:
        for path in (other, text):
            with pytest.raises(CorruptLog, match="nothing was written"):
                import_metnos(mem, path)
        with pytest.raises(NotFound):
            import_metnos(mem, tmp_path / "nothing.sqlite")


def test_nights_of_the_file_are_taken_over_with_their_counts(tmp_path: Path) -> None:
    rows = [row("b", weight=0.3 * math.exp(-0.018), uses=1, ts_last="2025-03-02T00:00:00Z")]
    events = [
        (1, "b", "2025-03-01T00:00:00Z", "reinforce", 0.3, None, None, None),
        (2, "b", "2025-03-02T00:00:00Z", "decay", 0.3 * math.exp(-0.018) - 0.3, None, None, None),
    ]
    with mk.open() as mem:
        report = import_metnos(mem, make(tmp_path / "m.sqlite", rows, events))
        assert (report.mnests, report.as_they_stood) == (1, 0)
        night = mem.frame("ager_runs").row(0, named=True)
        assert (night["kind"], night["decayed"], night["demoted_to_decaying"]) == ("explicit", 1, 0)


def test_a_late_passing_leaves_what_the_file_logged_of_a_record_that_was_taken_over_as_it_stood(tmp_path: Path) -> None:
    half = row("c", weight=0.6, uses=5, ts_last="2025-03-05T00:00:00Z")
    events = [(1, "c", "2025-03-05T00:00:00Z", "reinforce", 0.1, None, None, "t9")]
    with mk.open() as mem:
        import_metnos(mem, make(tmp_path / "m.sqlite", [half], events))
        assert mem.mnests.events("c")["kind"].to_list() == ["logged", "import"]
        for day in (10, 9):
            mem.mnests.record_passing("a", "1", "c", "1", at=f"2025-03-{day:02d}T00:00:00Z")
        assert mem.mnests.events("c")["kind"].to_list() == ["logged", "import", "passing", "passing"]
        assert mem.mnests.events("c")["turn_id"].to_list()[0] == "t9"
        assert mem.mnests.get("c").uses == 7
        assert check_store(mem)["ok"].all()
