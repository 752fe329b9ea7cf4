"""A caller's own changes, through the SessionChange protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from mnemokit.changes.namespace import Changes
from mnemokit.changes.sessions import Session, SessionChange
from mnemokit.changes.states import Step
from mnemokit.errors import Conflict, InvalidInput
from mnemokit.store import Store
from tests.support_changes import Note, Once, fail_at, words_left


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


@pytest.fixture
def session(changes: Changes) -> Session:
    return changes.session("s1", user_id="lena", brain_id="brain")


class Counted(Note):
    """A change that says what was really kept."""

    def kept_after(self, result: list[str]) -> object:
        return [{"trace_id": "note_1", "words": result}]


def only(changes: Changes) -> dict:
    (row,) = changes.changes().rows(named=True)
    return row


def test_any_object_of_the_protocol_is_a_session_change():
    assert isinstance(Note([]), SessionChange)
    assert not isinstance(object(), SessionChange)


def test_without_kept_after_the_verdict_holds_the_plan(changes, session):
    box: list[str] = []
    verdict = session.apply(Note(box))
    assert (verdict.verdict, verdict.trace_ids, box) == ("kept", (), ["a note"])
    assert json.loads(only(changes)["kept"]) == json.loads(only(changes)["after"]) == ["a note"]


def test_with_kept_after_the_verdict_holds_what_was_kept(changes, session):
    verdict = session.apply(Counted([]))
    assert verdict.trace_ids == ("note_1",)
    assert json.loads(only(changes)["kept"]) == [{"trace_id": "note_1", "words": ["a note"]}]
    assert changes.audit().differs_from_plan.height == 1
    assert changes.timeline("note_1")["action"].to_list() == ["own"]


def test_a_revert_calls_undo_and_a_second_one_does_not(session, changes):
    box: list[str] = []
    note = Note(box)
    verdict = session.apply(note)
    assert changes.revert(verdict.change_id).verdict == "reverted"
    assert changes.revert(verdict.change_id).verdict == "reverted"
    assert (box, note.undone) == ([], ["unrecorded"])


def test_an_apply_that_raises_is_unrecorded_and_its_error_is_passed_on(changes, session):
    def explode() -> None:
        raise OSError("secret words")

    note = Note([], during=explode)
    with pytest.raises(OSError, match="secret"):
        session.apply(note)
    assert only(changes)["verdict"] == "undone_unrecorded"
    assert only(changes)["reason"] == "apply raised OSError"
    assert note.undone == []


def test_the_writer_forgotten_between_commit_and_verdict_takes_the_forgotten_path(store, changes, session):
    box: list[str] = []
    note = Note(box, contributor_ids=("vera",), after=["words of vera"])
    note.during = lambda: changes.forget_user("vera")
    verdict = session.apply(note)
    assert (verdict.verdict, box, note.undone) == ("undone_forgotten", [], ["forgotten"])
    assert words_left(store, "vera") == []


def test_the_learner_forgotten_meanwhile_takes_the_forgotten_path(store, changes, session):
    note = Note([], during=lambda: changes.forget_user("lena"))
    assert session.apply(note).verdict == "undone_forgotten"
    assert words_left(store, "lena", "a note") == []


@pytest.mark.parametrize("step", [Step.READ_TOMBSTONES, Step.WRITE_VERDICT])
def test_tombstone_unreadable_or_verdict_unwritable_takes_the_unrecorded_path(store, step):
    box: list[str] = []
    note = Note(box)
    verdict = Changes(store, fail_at(step)).session("s1", user_id="lena", brain_id="brain").apply(note)
    assert (verdict.verdict, box, note.undone) == ("undone_unrecorded", [], ["unrecorded"])
    assert only(Changes(store))["verdict"] == "undone_unrecorded"


def test_a_kept_after_that_cannot_be_written_down_takes_the_unrecorded_path(session):
    class Unspeakable(Note):
        def kept_after(self, result: list[str]) -> object:
            return {object()}

    box: list[str] = []
    assert session.apply(Unspeakable(box)).verdict == "undone_unrecorded"
    assert box == []


def test_forgetting_calls_undo_of_what_this_process_applied(store, changes, session):
    box: list[str] = []
    note = Note(box, contributor_ids=("vera",))
    session.apply(note)
    receipt = changes.forget_user("vera")
    assert (receipt.changes, receipt.not_undone, box, note.undone) == (1, (), [], ["forgotten"])
    assert changes.audit().not_undone.is_empty()
    assert words_left(store, "vera", "a note") == []


def test_forgetting_names_what_another_process_applied_and_erases_the_traces_it_names(store, changes, session):
    trace = session.add("its trace").trace_ids[0]
    session.apply(Note([], contributor_ids=("vera",), after=[{"trace_id": trace}]))
    receipt = Changes(store).forget_user("vera")
    assert len(receipt.not_undone) == 1
    assert receipt.traces == 1
    assert changes.traces().is_empty()
    assert Changes(store).audit().not_undone["change_id"].to_list() == list(receipt.not_undone)


def test_a_change_of_another_process_is_reverted_by_giving_its_object(store, session):
    box: list[str] = []
    verdict = session.apply(Note(box))
    elsewhere = Changes(store)
    with pytest.raises(Conflict, match="change="):
        elsewhere.revert(verdict.change_id)
    assert elsewhere.revert(verdict.change_id, change=Note(box)).verdict == "reverted"
    assert box == []


def test_a_change_within_a_change_has_a_verdict_of_its_own(changes, session):
    note = Note([], during=lambda: session.add("inner"))
    assert session.apply(note).verdict == "kept"
    assert changes.changes()["verdict"].to_list() == ["kept", "kept"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "other"},
        {"actor": ""},
        {"brain_id": 3},
        {"contributor_ids": "vera"},
        {"after": {1}},
        {"before": float("inf")},
    ],
)
def test_a_change_that_cannot_be_recorded_is_refused_and_not_applied(changes, session, wrong):
    box: list[str] = []
    with pytest.raises(InvalidInput):
        session.apply(replace(Note(box), **wrong))
    assert box == []
    assert changes.changes().is_empty()


def test_opening_the_file_a_second_time_leaves_a_write_under_way_alone(tmp_path):
    store = Store(tmp_path / "m.duckdb")
    changes = Changes(store)
    second: list[Changes] = []
    note = Note([], during=lambda: second.append(Changes(Store(tmp_path / "m.duckdb"))))
    assert changes.session("s1", user_id="lena", brain_id="brain").apply(note).verdict == "kept"
    assert second[0].changes()["verdict"].to_list() == ["kept"]


KILLED = """
import os, signal, sys
from mnemokit.changes.namespace import Changes
from mnemokit.store import Store
from tests.support_changes import Note
changes = Changes(Store(sys.argv[1]))
note = Note([], contributor_ids=("vera",), after=["words of vera"])
note.during = lambda: os.kill(os.getpid(), signal.SIGKILL)
changes.session("s1", user_id="lena", brain_id="brain").apply(note)
"""


def test_a_process_killed_in_apply_leaves_an_unrecorded_change_that_audit_names(tmp_path):
    path = tmp_path / "m.duckdb"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -9
    changes = Changes(Store(path))
    assert only(changes)["verdict"] == "undone_unrecorded"
    assert changes.audit().not_undone.height == 1
    assert changes.audit().ok


def test_a_failed_forget_path_is_finished_by_the_next_opening(store, changes):
    def observe(step: Step) -> None:
        if step is Step.WRITE_UNDONE:
            raise RuntimeError(step)

    note = Note([], contributor_ids=("vera",), after=["words of vera"])
    meanwhile = Once(Step.READ_TOMBSTONES, lambda: store.write(lambda con: lay(con, store)))
    broken = Changes(store, lambda step: (meanwhile(step), observe(step)))
    with pytest.raises(RuntimeError):
        broken.session("s1", user_id="lena", brain_id="brain").apply(note)
    assert Changes(store).changes()["verdict"].to_list() == ["undone_forgotten"]
    assert words_left(store, "vera") == []


def lay(con, store) -> None:
    from datetime import UTC, datetime

    from mnemokit.changes.forgetting import lay_tombstone

    lay_tombstone(con, store.keyed_hash("vera"), datetime.now(UTC))
