"""kill -9 at every step of a write, a forget and a revert: what is found after reopening is whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import Step
from mnemokit.store import Store
from tests.crash_changes import WORDS, WRITES, prepare
from tests.support_changes import words_left

NOT_RECORDED = (Step.NOTE_ROWS, Step.RECORD_CANDIDATE)
OPEN = (Step.APPLY, Step.COMMIT_APPLY, Step.READ_TOMBSTONES, Step.WRITE_VERDICT)


@dataclass
class Killer:
    """Runs a case in a process that is killed, on a copy of a prepared store."""

    server: subprocess.Popen[str]
    prepared: Path
    ids: list[str]
    before: pl.DataFrame

    def run(self, folder: Path, **case: object) -> Path:
        path = folder / "m.duckdb"
        if not path.exists():
            shutil.copy(self.prepared, path)
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps({"path": str(path), "ids": self.ids, **case}) + "\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline().strip() == "-9"
        return path


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killer]:
    path = tmp_path_factory.mktemp("prepared") / "m.duckdb"
    store = Store(path)
    ids = prepare(store)
    before = Changes(store).traces()
    store.close()
    root = Path(__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.crash_changes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as server:
        yield Killer(server, path, ids, before)
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture
def reopened() -> Iterator[Callable[[Path], tuple[Store, Changes]]]:
    stores: list[Store] = []

    def reopen(path: Path) -> tuple[Store, Changes]:
        stores.append(Store(path))
        return stores[-1], Changes(stores[-1])

    yield reopen
    for store in stores:
        store.close()


def last(changes: Changes) -> str | None:
    """The verdict of the killed write; None if it was not recorded."""
    return dict(changes.changes().select("session_id", "verdict").rows()).get("s1")


every_write = [pytest.param(write, marks=[] if write in ("add", "merge") else [pytest.mark.slow]) for write in WRITES]


@pytest.mark.parametrize("write", every_write)
@pytest.mark.parametrize("step", [*NOT_RECORDED, *OPEN, Step.DONE])
def test_killed_at_any_step_of_a_write(killer, reopened, tmp_path, write, step):
    store, changes = reopened(killer.run(tmp_path, write=write, step=step))
    if step is Step.DONE:
        assert last(changes) == "kept"
        changes.revert(changes.changes()["change_id"][-1])
    elif step in NOT_RECORDED:
        assert last(changes) is None
        assert words_left(store, "vera", "lena") == []
    else:
        assert last(changes) == "undone_unrecorded"
    assert_frame_equal(changes.traces(), killer.before)
    assert changes.audit().ok
    changes.forget_user("vera")
    assert words_left(store, "vera") == []


@pytest.mark.parametrize("write", every_write)
@pytest.mark.parametrize("step", [Step.UNDO, Step.WRITE_UNDONE])
def test_killed_while_undoing_what_cannot_be_recorded(killer, reopened, tmp_path, write, step):
    _, changes = reopened(killer.run(tmp_path, write=write, step=step, meanwhile="verdict fails"))
    assert last(changes) == "undone_unrecorded"
    assert_frame_equal(changes.traces(), killer.before)
    assert changes.audit().ok


@pytest.mark.parametrize("write", every_write)
@pytest.mark.parametrize(
    ("step", "meanwhile"),
    [
        (Step.UNDO, "forget"),
        (Step.WRITE_UNDONE, "forget"),
        (Step.BLANK, "tombstone only"),
    ],
)
def test_killed_after_somebody_was_forgotten_in_the_middle_of_a_write(
    killer, reopened, tmp_path, write, step, meanwhile
):
    store, changes = reopened(killer.run(tmp_path, write=write, step=step, meanwhile=meanwhile))
    assert last(changes) == "undone_forgotten"
    touched = {"add": [], "rolling_summary": ["so far"], "update": ["otto one"]}.get(write, ["otto one", "otto two"])
    left = killer.before.filter(~pl.col("content").is_in(touched))
    assert_frame_equal(changes.traces(), left)
    assert words_left(store, "vera", WORDS) == []
    assert changes.audit().ok


@pytest.mark.parametrize("step", [Step.LAY_TOMBSTONE, Step.BLANK])
def test_killed_while_forgetting(killer, reopened, tmp_path, step):
    store, changes = reopened(killer.run(tmp_path, write="merge", step=Step.DONE))
    store.close()
    store, changes = reopened(killer.run(tmp_path, write="forget", step=step))
    if step is Step.LAY_TOMBSTONE:
        assert changes.traces()["content"].to_list() == ["so far", WORDS]
    else:
        assert changes.traces()["content"].to_list() == ["so far"]
        assert words_left(store, "vera", WORDS, "otto one") == []
    assert changes.audit().ok


def test_killed_while_reverting(killer, reopened, tmp_path):
    store, changes = reopened(killer.run(tmp_path, write="merge", step=Step.DONE))
    change_id, was = changes.changes()["change_id"][-1], changes.traces()
    store.close()
    _, changes = reopened(killer.run(tmp_path, write="revert", change_id=change_id, step=Step.REVERT))
    assert last(changes) == "kept"
    assert_frame_equal(changes.traces(), was)
    assert changes.revert(change_id).verdict == "reverted"
    assert_frame_equal(changes.traces(), killer.before)


def test_opening_again_after_recovery_changes_nothing(killer, reopened, tmp_path):
    path = killer.run(tmp_path, write="merge", step=Step.WRITE_VERDICT)
    store, changes = reopened(path)
    settled = changes.changes()
    store.close()
    _, again = reopened(path)
    assert again.recover().is_empty()
    assert_frame_equal(again.changes(), settled)
