"""An executor that dies in the middle of a replay costs its tasks, and changes nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

import mnemokit as mk
from tests.support_spark import PANDAS_WARNING, assert_same_memory, in_files, made_log, session, table

pytestmark = pytest.mark.filterwarnings(PANDAS_WARNING)

PATIENCE = 120.0


@pytest.fixture
def cluster(tmp_path):
    yield from session("local-cluster[2,1,1800]", tmp_path, **{"spark.executor.memory": "1g"})


def executors() -> list[int]:
    """Processes of executors that this process has started, by way of its Java."""
    parents, found = {}, []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                pid, stat = int(folder.name), (folder / "stat").read_text()
                parents[pid] = int(stat.rsplit(")", 1)[1].split()[1])
                if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                    found.append(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue

    def is_ours(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False

    return [pid for pid in found if is_ours(pid)]


def test_a_replay_whose_executor_is_killed_in_the_middle_ends_as_one_machine_does(cluster, tmp_path):
    begun, killed = tmp_path / "begun", tmp_path / "killed"

    def waiting(turns):
        # The first task to come here waits for a death in the cluster: then one executor is lost in the middle of this
        # step, with its running task and with what it had shuffled.
        from mnemokit.turns.passings import grouped

        if turns.height and not killed.exists():
            begun.touch()
            end = time.monotonic() + PATIENCE
            while not killed.exists() and time.monotonic() < end:
                time.sleep(0.05)
        return grouped(turns)

    victims: list[int] = []

    def kill_one() -> None:
        end = time.monotonic() + PATIENCE
        while not begun.exists() and time.monotonic() < end:
            time.sleep(0.05)
        victims.append(executors()[0])
        os.kill(victims[0], signal.SIGKILL)
        killed.touch()

    files = in_files(made_log(80, seed=6), tmp_path / "log", 4)
    killer = threading.Thread(target=kill_one)
    killer.start()
    report = mk.spark.replay(cluster, files, tmp_path / "out", passings=waiting, buckets=4)
    killer.join()
    assert victims
    assert victims[0] not in executors()
    with mk.open() as mem:
        one = mem.replay(files, captures="none")
        assert (report.turns, report.passings, report.duplicates) == (one.turns, one.passings, one.duplicates)
        assert_same_memory(tmp_path / "out", mem)
    turns = table(tmp_path / "out", "turns")
    assert not turns.select("source", "session_id", "turn_id", "step").is_duplicated().any()
