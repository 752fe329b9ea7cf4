"""The built-in change over traces: what each write does, what its verdict records, and what undoing it leaves."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mnemokit.changes.namespace import Changes
from mnemokit.changes.sessions import Session
from mnemokit.changes.states import Step
from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.store import Store
from tests.support_changes import Once, contents, fail_at

T0 = datetime(2025, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


@pytest.fixture
def session(changes: Changes) -> Session:
    return changes.session("s1", user_id="learner", brain_id="brain")


def row(changes: Changes, change_id: str) -> dict:
    return changes.changes().filter(pl.col("change_id") == change_id).row(0, named=True)


def broken(store: Store) -> Session:
    """A session whose verdicts cannot be written."""
    return Changes(store, fail_at(Step.WRITE_VERDICT)).session("s1", user_id="learner", brain_id="brain")


def forgotten_meanwhile(store: Store, who: str = "visitor") -> Session:
    """A session in which somebody is forgotten between the commit of a write and its verdict."""
    changes = Changes(store)
    watched = Changes(store, Once(Step.READ_TOMBSTONES, lambda: changes.forget_user(who)))
    return watched.session("s1", user_id="learner", brain_id="brain")


# Undoing ----------------------------------------------------------------------------------------------------------


def test_add_only_before_is_none_and_unrecorded_removes_the_trace(store, changes):
    verdict = broken(store).add("words")
    assert verdict.verdict == "undone_unrecorded"
    assert verdict.trace_ids == ()
    assert row(changes, verdict.change_id)["before"] is None
    assert contents(changes) == []


def test_add_only_forgotten_removes_the_trace(store, changes):
    verdict = forgotten_meanwhile(store).add("words", contributor_ids=["visitor"])
    assert verdict.verdict == "undone_forgotten"
    assert row(changes, verdict.change_id)["before"] is None
    assert contents(changes) == []


def test_update_unrecorded_restores_exactly(store, changes, session):
    added = session.add("old", tags=["a"], metadata={"x": [1, None]}, scope="s", at=T0)
    was = changes.traces()
    verdict = broken(store).update(added.trace_ids[0], content="new", tags=[], metadata=None, scope=None, at=T0 + DAY)
    assert verdict.verdict == "undone_unrecorded"
    assert_frame_equal(changes.traces(), was)


def test_update_forgotten_removes_for_good(store, changes, session):
    added = session.add("old")
    verdict = forgotten_meanwhile(store).update(added.trace_ids[0], content="new", contributor_ids=["visitor"])
    assert verdict.verdict == "undone_forgotten"
    assert contents(changes) == []
    assert changes.traces(datetime.now(UTC)).is_empty()


def test_delete_unrecorded_brings_back(store, changes, session):
    added = session.add("old", at=T0)
    was = changes.traces()
    assert broken(store).delete(added.trace_ids).verdict == "undone_unrecorded"
    assert_frame_equal(changes.traces(), was)


def test_delete_forgotten_stays_gone(store, changes, session):
    added = session.add("old")
    verdict = forgotten_meanwhile(store).delete(added.trace_ids, contributor_ids=["visitor"])
    assert verdict.verdict == "undone_forgotten"
    assert contents(changes) == []
    changes.revert(verdict.change_id)
    changes.revert(added.change_id)
    assert contents(changes) == []


def test_merge_unrecorded_brings_the_merged_ones_back(store, changes, session):
    ids = session.add(["one", "two"], at=T0).trace_ids
    was = changes.traces()
    assert broken(store).merge(ids).verdict == "undone_unrecorded"
    assert_frame_equal(changes.traces(), was)


def test_unreadable_tombstones_take_the_unrecorded_path(store, changes, session):
    added = session.add("old")
    watched = Changes(store, fail_at(Step.READ_TOMBSTONES))
    verdict = watched.session("s1", user_id="learner", brain_id="brain").update(added.trace_ids[0], content="new")
    assert verdict.verdict == "undone_unrecorded"
    assert contents(changes) == ["old"]
    assert row(changes, verdict.change_id)["verdict"] == "undone_unrecorded"


def test_an_apply_that_raises_is_unrecorded_and_passes_its_error_on(store, changes, session):
    added = session.add("old")
    watched = Changes(store, Once(Step.APPLY, lambda: session.delete(added.trace_ids)))
    with pytest.raises(NotFound):
        watched.session("s2", user_id="learner", brain_id="brain").update(added.trace_ids[0], content="new")
    left = changes.changes().filter(pl.col("session_id") == "s2")
    assert left["verdict"].to_list() == ["undone_unrecorded"]
    assert left["reason"].to_list() == ["apply raised NotFound"]


def test_a_candidate_whose_undone_verdict_cannot_be_written_is_settled_at_the_next_opening(store, changes):
    def observe(step: Step) -> None:
        if step in (Step.WRITE_VERDICT, Step.WRITE_UNDONE):
            raise RuntimeError(step)

    with pytest.raises(RuntimeError):
        Changes(store, observe).session("s1", user_id="learner", brain_id="brain").add("words")
    assert contents(changes) == []
    assert changes.audit().open_candidates.height == 1
    assert not changes.audit().ok
    assert Changes(store).changes()["verdict"].to_list() == ["undone_unrecorded"]


@pytest.mark.parametrize(("interrupted_write", "left"), [(1, []), (2, []), (3, ["words"])])
def test_an_interrupt_just_after_a_commit_leaves_no_half_done_write(
    store, changes, monkeypatch, interrupted_write, left
):
    commit, count = store.write, itertools.count(1)

    def write(work):
        done = commit(work)
        if next(count) == interrupted_write:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(store, "write", write)
    with pytest.raises(KeyboardInterrupt):
        changes.session("s1", user_id="learner", brain_id="brain").add("words")
    monkeypatch.undo()
    assert contents(changes) == left
    verdicts = Changes(store).changes()["verdict"].to_list()
    assert verdicts == (["kept"] if left else ["undone_unrecorded"])
    assert contents(changes) == left


# What the verdict records ---------------------------------------------------------------------------------------------


def test_a_plan_of_two_traces_one_of_which_is_there_records_that_and_a_revert_leaves_the_existing_one(changes, session):
    there = session.add("known").trace_ids[0]
    verdict = session.add(["known", "new"])
    assert verdict.trace_ids[0] == there
    kept = json.loads(row(changes, verdict.change_id)["kept"])
    assert [entry["action"] for entry in kept] == ["resolved", "created"]
    assert [entry["action"] for entry in json.loads(row(changes, verdict.change_id)["after"])] == ["created"] * 2
    assert changes.audit().differs_from_plan["change_id"].to_list() == [verdict.change_id]
    changes.revert(verdict.change_id)
    assert contents(changes) == ["known"]


def test_words_resolve_only_within_brain_scope_and_type_and_code_point_by_code_point(changes, session):
    first = session.add("caf\u00e9").trace_ids
    assert session.add("caf\u00e9").trace_ids == first
    other_brain = changes.session("s2", user_id="learner", brain_id="other")
    for other in (
        session.add("cafe\u0301"),
        session.add("caf\u00e9", type="episodic"),
        session.add("caf\u00e9", scope="here"),
        other_brain.add("caf\u00e9"),
    ):
        assert other.trace_ids != first
    assert changes.traces().height == 5


def test_the_same_words_twice_in_one_write_become_one_trace(changes, session):
    verdict = session.add(["same", "same"])
    assert len(set(verdict.trace_ids)) == 1
    assert contents(changes) == ["same"]
    changes.revert(verdict.change_id)
    assert contents(changes) == []


def test_a_plan_to_delete_three_that_deleted_two_names_two_and_a_revert_restores_two(changes, session):
    ids = session.add(["one", "two", "three"]).trace_ids
    session.delete([ids[1]])
    verdict = session.delete(ids)
    assert verdict.trace_ids == (ids[0], ids[2])
    assert len(json.loads(row(changes, verdict.change_id)["after"])) == 3
    reverted = changes.revert(verdict.change_id)
    assert set(reverted.trace_ids) == {ids[0], ids[2]}
    assert contents(changes) == ["one", "three"]


def test_deleting_nothing_wrote_nothing_and_reverts_to_nothing(changes, session):
    verdict = session.delete(["tr_of_old"])
    assert (verdict.verdict, verdict.trace_ids) == ("kept", ())
    assert changes.revert(verdict.change_id).trace_ids == ()


def test_update_changes_only_the_given_fields(changes, session):
    added = session.add("words", scope="s", tags=["a"], metadata={"x": 1}, at=T0)
    session.update(added.trace_ids[0], tags=["b", "c"], at=T0 + DAY)
    assert changes.traces().row(0, named=True) == {
        "trace_id": added.trace_ids[0],
        "brain_id": "brain",
        "type": "semantic",
        "scope": "s",
        "content": "words",
        "tags": ["b", "c"],
        "metadata": '{"x":1}',
        "parents": [],
        "ts_created": T0,
        "ts_updated": T0 + DAY,
        "untimed": False,
    }


def test_merge_joins_the_texts_in_order_and_names_the_merged_as_parents(changes, session):
    ids = session.add(["one", "two"], tags=["t"]).trace_ids
    verdict = session.merge([ids[1], ids[0]])
    (trace,) = changes.traces().rows(named=True)
    assert (trace["content"], trace["parents"], trace["tags"]) == ("two\none", [ids[1], ids[0]], ["t"])
    assert verdict.trace_ids == (trace["trace_id"], ids[1], ids[0])


def test_merge_into_words_that_are_there_names_the_trace_there(changes, session):
    ids = session.add(["one", "two", "both"]).trace_ids
    verdict = session.merge(ids[:2], content="both")
    assert verdict.trace_ids == (ids[2], ids[0], ids[1])
    assert contents(changes) == ["both"]
    changes.revert(verdict.change_id)
    assert contents(changes) == ["one", "two", "both"]


def test_merge_into_the_words_of_a_merged_trace_makes_a_new_one(changes, session):
    ids = session.add(["one", "two"]).trace_ids
    verdict = session.merge(ids, content="one")
    assert verdict.trace_ids[0] not in ids
    assert contents(changes) == ["one"]


def test_a_rolling_summary_replaces_the_previous_one_of_its_brain_scope_and_conversation(changes, session):
    first = session.rolling_summary("so far", contributor_ids=["visitor"])
    second = session.rolling_summary("so far and more")
    assert first.trace_ids == second.trace_ids
    assert contents(changes) == ["so far and more"]
    assert row(changes, second.change_id)["actor"] == "memory:rolling_summary"
    assert row(changes, second.change_id)["contributor_ids"] == ["visitor"]
    session.rolling_summary("elsewhere", scope="s")
    talk = changes.session("s2", user_id="learner", brain_id="brain", conversation_id="talk")
    talk.rolling_summary("a talk")
    assert contents(changes) == ["so far and more", "elsewhere", "a talk"]
    changes.revert(second.change_id)
    assert contents(changes)[0] == "so far"


# Reverts ---------------------------------------------------------------------------------------------------------


def test_a_double_revert_is_a_no_op(changes, session):
    added = session.add("words")
    session.delete(added.trace_ids)
    deleted = changes.changes()["change_id"][-1]
    first = changes.revert(deleted)
    state = changes.changes()
    second = changes.revert(deleted)
    assert first == second
    assert_frame_equal(changes.changes(), state)
    assert contents(changes) == ["words"]


def test_a_revert_under_a_later_write_is_a_conflict_naming_it(changes, session):
    added = session.add("old")
    updated = session.update(added.trace_ids[0], content="new")
    with pytest.raises(Conflict, match=updated.change_id):
        changes.revert(added.change_id)
    assert contents(changes) == ["new"]
    assert changes.audit().conflicts.rows() == [
        (added.change_id, [updated.change_id], changes.audit().conflicts["ts_conflict"][0])
    ]
    changes.revert(updated.change_id)
    assert changes.revert(added.change_id).verdict == "reverted"
    assert contents(changes) == []


def test_an_undone_write_is_no_later_write(store, changes, session):
    added = session.add("old")
    assert broken(store).update(added.trace_ids[0], content="new").verdict == "undone_unrecorded"
    assert changes.revert(added.change_id).verdict == "reverted"


def test_a_revert_of_an_undone_write_does_nothing(store, changes):
    undone = broken(store).add("words")
    assert changes.revert(undone.change_id) == undone
    assert contents(changes) == []


def test_reverts_restore_exactly_what_was_there(changes, session):
    ids = session.add(["one", "two"], scope="s", tags=["t"], metadata={"m": 1}, at=T0).trace_ids
    states = [changes.traces()]
    done = []
    for write in (
        lambda: session.update(ids[0], content="uno", at=T0 + DAY),
        lambda: session.merge(ids, at=T0 + 2 * DAY),
        lambda: session.add("three", at=T0 + 3 * DAY),
        lambda: session.delete(changes.traces()["trace_id"].to_list(), at=T0 + 4 * DAY),
    ):
        done.append(write().change_id)
        states.append(changes.traces())
    while done:
        assert_frame_equal(changes.traces(), states.pop())
        changes.revert(done.pop(), at=T0 + 5 * DAY)
    assert_frame_equal(changes.traces(), states.pop())


def test_a_revert_of_what_is_not_there_is_not_found(changes):
    with pytest.raises(NotFound):
        changes.revert("ch_none")


# Past moments --------------------------------------------------------------------------------------------------------


def test_traces_as_of_any_time_show_merges_deletions_and_reverts_as_they_stood(changes, session):
    ids = session.add(["one", "two"], at=T0).trace_ids
    merged = session.merge(ids, at=T0 + DAY)
    changes.revert(merged.change_id, at=T0 + 2 * DAY)
    session.delete(ids[0], at=T0 + 3 * DAY)
    shown = [changes.traces(T0 + n * DAY + timedelta(hours=1))["content"].to_list() for n in range(-1, 4)]
    assert shown == [[], ["one", "two"], ["one\ntwo"], ["one", "two"], ["two"]]
    assert changes.traces(T0)["content"].to_list() == ["one", "two"]


def test_a_write_dated_before_the_latest_one_counts_from_that_one_on(changes, session):
    added = session.add("first", at=T0)
    session.update(added.trace_ids[0], content="second", at=T0 + 2 * DAY)
    session.update(added.trace_ids[0], content="third", at=T0 + DAY)
    assert contents(changes) == ["third"]
    assert changes.traces(T0 + DAY)["content"].to_list() == ["first"]
    assert changes.traces(T0 + 2 * DAY)["content"].to_list() == ["third"]


def test_verdicts_as_of_any_time(changes, session):
    added = session.add("words", at=T0)
    changes.revert(added.change_id, at=T0 + DAY)
    assert changes.changes(T0 - DAY).is_empty()
    assert changes.changes(T0)["verdict"].to_list() == ["kept"]
    assert changes.changes(T0)["ts_reverted"].to_list() == [None]
    assert changes.changes(T0 + DAY)["verdict"].to_list() == ["reverted"]


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.add(""),
        lambda s: s.add([]),
        lambda s: s.add(3),
        lambda s: s.add(["x", 3]),
        lambda s: s.add("x", metadata="text"),
        lambda s: s.add("x", tags="tag"),
        lambda s: s.add("x", contributor_ids="anna"),
        lambda s: s.add("x", metadata={"n": float("nan")}),
        lambda s: s.add("x", metadata={"n": {1}}),
        lambda s: s.add("\ud800"),
        lambda s: s.add("x", at="2025-01-01"),
        lambda s: s.update("tr_1"),
        lambda s: s.update("tr_1", parents=["tr_1"]),
        lambda s: s.delete([]),
        lambda s: s.merge(["tr_1", "tr_1"]),
        lambda s: s.apply(object()),
    ],
)
def test_unusable_values_are_refused_and_nothing_is_written(changes, session, write):
    with pytest.raises(InvalidInput):
        write(session)
    assert changes.changes().is_empty()


@pytest.mark.parametrize(
    "write",
    [
        lambda s, there: s.update("tr_none", content="x"),
        lambda s, there: s.merge([there, "tr_none"]),
        lambda s, there: s.add("x", parents=["tr_none"]),
    ],
)
def test_traces_that_are_not_there_are_not_found_and_nothing_is_written(changes, session, write):
    there = session.add("here").trace_ids[0]
    with pytest.raises(NotFound):
        write(session, there)
    assert changes.changes().height == 1


def test_a_session_writes_only_its_own_brain(changes, session):
    there = session.add("here").trace_ids[0]
    other = changes.session("s2", user_id="learner", brain_id="other")
    for write in (lambda: other.delete(there), lambda: other.update(there, content="x")):
        with pytest.raises(NotFound, match="brain 'brain'"):
            write()
    assert contents(changes) == ["here"]


def test_a_session_that_has_ended_refuses_writes(changes):
    with changes.session("s1", user_id="learner", brain_id="brain") as session:
        session.add("words")
    with pytest.raises(InvalidInput):
        session.add("more")


@pytest.mark.parametrize("text", ["nul\0l", "\u2028", '"quoted" \\ /', "\U0001f600", "\x01", " "])
def test_any_text_survives_a_round_through_snapshots_and_reverts(changes, session, text):
    added = session.add(text, tags=[text], metadata={text: text}, at=T0)
    was = changes.traces()
    session.delete(added.trace_ids)
    changes.revert(changes.changes()["change_id"][-1])
    assert_frame_equal(changes.traces(), was)
    assert contents(changes) == [text]
    assert json.loads(row(changes, added.change_id)["kept"])[0]["content"] == text
