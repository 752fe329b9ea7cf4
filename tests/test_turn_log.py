"""The turn log: lines of many writers never mix, and what was acknowledged replays."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemokit as mk
from mnemokit.turns import TURNS_SCHEMA, read_batches

DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]


def write_some(path: str, who: int, n: int, rotate_bytes: int | None) -> None:
    with mk.TurnLog(path, rotate_bytes=rotate_bytes) as log:
        for step in range(n):
            log.append(session_id=f"s{who}", step=step, executor=f"tool_{step % 5}", ok=True, meta={"text": "x" * 200})


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("rotate_bytes", [None, 20_000])
def test_lines_of_many_processes_never_mix_also_while_the_file_is_rotated(
    tmp_path: Path, rotate_bytes: int | None
) -> None:
    context = multiprocessing.get_context("spawn")
    path = str(tmp_path / "turns.jsonl")
    writers = [context.Process(target=write_some, args=(path, who, 300, rotate_bytes)) for who in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    rows = lines(tmp_path)
    assert len(rows) == 1200
    for who in range(4):
        assert [row["step"] for row in rows if row["session_id"] == f"s{who}"] == list(range(300))
    files = list(tmp_path.glob("*.jsonl"))
    assert len(files) == 1 if rotate_bytes is None else len(files) > 3


def test_lines_of_many_threads_never_mix(tmp_path: Path) -> None:
    with mk.TurnLog(tmp_path / "turns.jsonl") as log:
        threads = [
            threading.Thread(
                target=lambda who=who: [log.append(session_id=f"s{who}", step=i, executor="t") for i in range(500)]
            )
            for who in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(lines(tmp_path)) == 2000


def test_a_turn_acknowledged_to_a_killed_process_is_there(tmp_path: Path) -> None:
    code = (
        "import mnemokit as mk, sys, itertools\n"
        f"log = mk.TurnLog({str(tmp_path / 'turns.jsonl')!r})\n"
        "for i in itertools.count():\n"
        "    log.append(session_id='s', step=i, executor='t')\n"
        "    sys.stdout.write(f'{i}\\n'); sys.stdout.flush()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(200):
        acknowledged = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read().split()
    acknowledged = max([acknowledged, *map(int, rest[:-1])])
    child.wait()
    child.stdout.close()
    assert {row["step"] for row in lines(tmp_path)} >= set(range(acknowledged + 1))


def test_a_line_torn_by_a_crash_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_text('{"session_id":"s","step":0,"executor":"a","tur')
    with mk.TurnLog(path) as log:
        log.append(session_id="s", step=1, executor="b", ts="2025-01-01T00:00:00Z")
    with mk.open() as mem:
        report = mem.replay(path, label="live")
        assert (report.turns, report.rejects) == (1, 1)
        assert mem.frame("rejects")["place"].item() == "line 1"


def test_what_is_logged_is_what_replays(tmp_path: Path) -> None:
    moment = datetime(2025, 8, 1, 12, tzinfo=UTC)
    with mk.TurnLog(tmp_path / "turns.jsonl") as log:
        log.append(
            session_id="s", step=3, executor="find", executor_version="2", turn_id="t", parallel_group=1,
            requestor="user", ts=moment, ok=False, user_id="u", scope="shop", question="Wo ist 手机?",
            session_outcome="failure", meta={"k": [1, "ü"]},
        )  # fmt: skip
        log.append_many([{"session_id": "s", "step": 4, "executor": "buy", "ts": moment}])
    with mk.open() as mem:
        mem.replay(tmp_path / "turns.jsonl", label="live")
        row, second = mem.frame("turns").to_dicts()
    assert row == {
        "source": "live", "session_id": "s", "turn_id": "t", "step": 3, "parallel_group": 1, "executor": "find",
        "executor_version": "2", "requestor": "user", "ts": moment, "ok": False, "user_id": "u", "scope": "shop",
        "question": "Wo ist 手机?", "session_outcome": "failure", "meta": '{"k":[1,"ü"]}',
    }  # fmt: skip
    assert (second["turn_id"], second["parallel_group"], second["ok"]) == ("s:4", 4, None)


def test_the_present_stands_for_a_missing_instant(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with mk.TurnLog(tmp_path / "turns.jsonl") as log:
        log.append(session_id="s", step=0, executor="a")
    assert before <= datetime.fromisoformat(lines(tmp_path)[0]["ts"]) <= datetime.now(UTC)


@pytest.mark.parametrize(
    "turn",
    [
        {"session_id": "", "step": 0, "executor": "a"},
        {"session_id": "s", "step": -1, "executor": "a"},
        {"session_id": "s", "step": True, "executor": "a"},
        {"session_id": "s", "step": 0, "executor": ""},
        {"session_id": "s", "step": 0, "executor": "a", "ok": "yes"},
        {"session_id": "s", "step": 0, "executor": "a", "session_outcome": "won"},
        {"session_id": "s", "step": 0, "executor": "a", "ts": datetime(2025, 1, 1)},  # noqa: DTZ001
        {"session_id": "s", "step": 0, "executor": "a", "meta": {"x": float("nan")}},
        {"session_id": "s", "step": 0, "executor": "a", "question": "\ud800"},
        {"session_id": "s", "step": 0, "executor": "a", "scope": ""},
        {"session_id": "s", "step": 0, "executor": "a", "scope": 7},
        {"session_id": "s", "step": 0, "executor": "a", "question": ""},
        {"session_id": "s", "step": 0, "executor": "a", "question": ["x"]},
        {"session_id": "s", "step": 0, "executor": "a", "user_id": ""},
        {"session_id": "s", "step": 0, "executor": "a", "user_id": 7},
        {"session_id": "s", "step": 0, "executor": "a", "user_id": "x" * 513},
        {"session_id": "s", "step": 0, "executor": "a", "requestor": {}},
        {"session_id": "s", "step": 0, "executor": "a", "ok": 1},
        {"session_id": "s", "step": 2**62, "executor": "a"},
        {"session_id": "s", "step": 0, "executor": "a", "ts": "2500-01-01T00:00:00Z"},
        {"session_id": "s", "step": 0, "executor": "a", "ts": "1969-12-31T23:59:59Z"},
        {"session_id": "s", "step": 0, "executor": "a", "ts": "9999-12-31T23:59:59-12:00"},
        {"session_id": "s", "step": 0, "executor": "a", "meta": {"x": DEEP}},
    ],
)
def test_a_turn_that_cannot_be_one_is_refused_and_nothing_written(tmp_path: Path, turn: dict) -> None:
    with mk.TurnLog(tmp_path / "turns.jsonl") as log:
        with pytest.raises(mk.InvalidInput):
            log.append(**turn)
        with pytest.raises(mk.InvalidInput):
            log.append_many([{"session_id": "s", "step": 0, "executor": "fine"}, turn])
    assert lines(tmp_path) == []


def test_a_closed_log_refuses_turns(tmp_path: Path) -> None:
    log = mk.TurnLog(tmp_path / "turns.jsonl", fsync="always")
    log.append(session_id="s", step=0, executor="a")
    log.close()
    log.close()
    with pytest.raises(mk.InvalidInput, match="closed"):
        log.append(session_id="s", step=1, executor="a")
    for wrong in ({"fsync": "sometimes"}, {"rotate_bytes": 0}):
        with pytest.raises(mk.InvalidInput):
            mk.TurnLog(tmp_path / "other.jsonl", **wrong)


@pytest.mark.parametrize(
    "turn",
    [
        {"step": 0, "executor": "a"},
        {"session_id": "s", "step": 0, "exector": "a"},
        {"session_id": "s", "step": 0, "executor": "a", "source": ""},
        {"session_id": "s", "step": 0, "executor": "a", "arguments": {"x": float("inf")}},
        {"session_id": "s", "step": 0, "executor": "a", "meta": ""},
        {"session_id": "s", "step": 0, "executor": "a", "question": "x" * (64 * 1024 * 1024)},
    ],
)
def test_a_mapping_that_no_reader_takes_for_a_turn_is_refused_and_nothing_written(tmp_path: Path, turn: dict) -> None:
    with mk.TurnLog(tmp_path / "turns.jsonl") as log, pytest.raises(mk.InvalidInput) as caught:
        log.append_many([{"session_id": "s", "step": 0, "executor": "fine"}, turn])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert lines(tmp_path) == []


ODD = st.one_of(
    st.none(), st.text(max_size=3), st.integers(), st.booleans(), st.floats(), st.just("x" * 513), st.just("\ud800"),
    st.lists(st.text(max_size=2), max_size=2), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.integers(2**61, 2**64), st.just("1"), st.just("2025-01-01"), st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(["success", "failure", [[]], [float("nan")]]),
)  # fmt: skip
COLUMNS = st.sampled_from([*TURNS_SCHEMA, "arguments", "result", "other"])
SOUND = {"session_id": "s", "step": 0, "executor": "a"}
TURNS = st.dictionaries(COLUMNS, ODD, max_size=3).map(lambda odd: SOUND | odd)


@settings(max_examples=300, deadline=None)
@given(st.lists(TURNS, min_size=1, max_size=4))
def test_every_turn_that_a_log_takes_is_one_that_a_replay_takes(tmp_path_factory, turns) -> None:
    folder = tmp_path_factory.mktemp("log")
    written = 0
    with mk.TurnLog(folder / "turns.jsonl") as log:
        for turn in [SOUND, *turns]:
            with contextlib.suppress(mk.InvalidInput):
                written += log.append_many([turn])
    (batch,) = read_batches(folder / "turns.jsonl")
    assert batch.rejects.height == 0
    assert batch.turns.height == written


def test_a_log_without_a_line_yet_replays_as_nothing(tmp_path: Path) -> None:
    with mk.TurnLog(tmp_path / "turns.jsonl") as log, mk.open() as mem:
        report = mem.replay(tmp_path / "turns.jsonl", progress=False)
        assert report.records == 0
        assert "the file is empty" in report.why
        log.append(session_id="s", step=0, executor="a")
        with mk.TurnLog(tmp_path / "turns.other.jsonl"):
            report = mem.replay(str(tmp_path / "*.jsonl"), progress=False)
        assert (report.turns, report.source) == (1, "turns")
        assert "empty and passed over: turns.other.jsonl" in report.why


def test_a_line_that_is_still_being_written_is_no_reject_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    with mk.TurnLog(path) as log:
        for step in range(2):
            log.append(session_id="s", step=step, executor="a")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with mk.open() as mem:
        report = mem.replay(path, progress=False)
        assert (report.turns, report.rejects, report.ignored) == (1, 0, 1)
        path.write_bytes(whole)
        report = mem.replay(path, progress=False)
        assert (report.turns, report.duplicates, report.ignored) == (1, 1, 0)
        assert mem.frame("rejects").height == 0


@pytest.mark.parametrize(
    ("fsync", "expected"),
    [
        ("never", []),
        ("rotate", ["turns.jsonl", "logs", "turns.jsonl"]),
        ("always", [".", "logs", "turns.jsonl", "turns.jsonl", "logs", "logs", "turns.jsonl", "turns.jsonl"]),
    ],
)
def test_what_is_synced_and_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync, expected) -> None:
    """Each name is a file or a folder that was synced: a new name is on the disk only when its folder is."""
    synced: list[str] = []
    real = os.fsync

    def fsync_seen(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink().relative_to(tmp_path).name or ".")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync_seen)
    turn = {"session_id": "s", "step": 0, "executor": "a"}
    with mk.TurnLog(tmp_path / "logs" / "turns.jsonl", fsync=fsync, rotate_bytes=150) as log:
        log.append(**turn, question="x" * 150)  # rotates
        log.append(**turn, scope="small")
    assert synced == expected
