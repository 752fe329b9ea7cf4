"""Many writers at once: nothing is lost, nothing is there twice, and no write is left open."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from mnemokit.changes import traces
from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import Step
from mnemokit.errors import Conflict
from mnemokit.store import Store
from tests.support_changes import Once, contents, fail_at, words_left


def session(changes: Changes, name: str = "s1", who: str = "lena"):
    return changes.session(name, user_id=who, brain_id="brain")


def test_the_same_words_from_many_threads_become_one_trace():
    changes = Changes(Store())
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda n: session(changes, f"s{n % 4}").add("the same"), range(12)))
    assert {verdict.verdict for verdict in verdicts} == {"kept"}
    assert len({verdict.trace_ids for verdict in verdicts}) == 1
    assert contents(changes) == ["the same"]


def test_updates_of_one_trace_from_many_threads_follow_one_another_and_can_all_be_taken_back():
    changes = Changes(Store())
    trace = session(changes).add("start").trace_ids[0]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: session(changes, f"s{n % 4}").update(trace, content=f"version {n}"), range(12)))
    told = changes.timeline(trace)
    assert told.height == 13
    assert told["before"].to_list()[1:] == told["after"].to_list()[:-1]
    for change_id in reversed(told["change_id"].to_list()[1:]):
        changes.revert(change_id)
    assert contents(changes) == ["start"]


def test_one_session_row_from_many_threads_and_two_handles_on_one_file(tmp_path):
    handles = [Changes(Store(tmp_path / "m.duckdb")) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(
            pool.map(lambda n: session(handles[n % 2]).add(f"words {n % 3}", contributor_ids=["vera"]), range(12))
        )
    assert {verdict.verdict for verdict in verdicts} == {"kept"}
    assert sorted(contents(handles[0])) == ["words 0", "words 1", "words 2"]
    assert handles[1].contributors("s1").select("user_id", "role").rows() == [("lena", "learner"), ("vera", "visitor")]
    assert handles[0].audit().ok


def test_somebody_is_forgotten_while_others_write_about_them(tmp_path):
    store = Store(tmp_path / "m.duckdb")
    handles = [Changes(store), Changes(Store(tmp_path / "m.duckdb"))]

    done: list[str] = []
    before_the_forget: list[str] = []

    def write(n: int) -> None:
        words = f"vera's words {n}"
        if n == 6:
            before_the_forget.extend(done)
            handles[1].forget_user("vera")
        elif session(handles[n % 2], f"s{n}").add(words, contributor_ids=["vera"]).verdict == "kept":
            done.append(words)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(14)))
    assert words_left(store, "'vera'", '"vera"') == []
    assert handles[0].audit().ok
    assert before_the_forget
    assert set(before_the_forget).isdisjoint(contents(handles[0]))


def test_a_write_waits_for_the_verdict_of_another_one_on_the_same_trace(monkeypatch):
    store = Store()
    changes = Changes(store)
    trace = session(changes).add("start").trace_ids[0]
    monkeypatch.setattr(traces, "WAIT_SECONDS", 0.05)
    errors: list[Exception] = []

    def meanwhile() -> None:
        with pytest.raises(Conflict, match="no verdict") as caught:
            session(changes, "s2").update(trace, content="second")
        errors.append(caught.value)

    first = session(Changes(store, Once(Step.READ_TOMBSTONES, meanwhile))).update(trace, content="first")
    assert first.verdict == "kept"
    assert len(errors) == 1
    assert contents(changes) == ["first"]


def test_a_write_left_open_is_settled_by_recover_also_without_reopening():
    store = Store()
    changes = Changes(store)
    with pytest.raises(RuntimeError):
        session(Changes(store, fail_at(Step.UNDO))).apply(Broken())
    assert changes.recover()["verdict"].to_list() == ["undone_unrecorded"]


class Broken:
    """A change whose verdict cannot be written."""

    kind = "memory_write"
    actor = "tool:broken"
    target_id = None
    brain_id = "brain"
    contributor_ids = ()
    before = None
    after = None

    def apply(self) -> None:
        """Nothing."""

    def undo(self, result: object, reason: str) -> None:
        """Nothing."""

    def kept_after(self, result: object) -> object:
        raise OSError("no verdict")
