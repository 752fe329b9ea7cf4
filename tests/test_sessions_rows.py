"""Session rows: who is in a session, noted before a write starts."""

from __future__ import annotations

import pytest

from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import Step
from mnemokit.errors import Forgotten, InvalidInput
from mnemokit.store import Store
from tests.support_changes import Note, Once, contents, words_left


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


def rows(store: Store) -> list[tuple]:
    with store.read() as con:
        return con.execute(
            "SELECT session_id, user_id, role, brain_id, conversation_id FROM session_rows ORDER BY ALL"
        ).fetchall()


def contributors(changes: Changes, change_id: str) -> list[str]:
    return changes.changes().filter(change_id=change_id)["contributor_ids"].to_list()[0]


def test_learner_visitor_and_anonymous_give_one_learner_row_and_one_visitor_row_before_apply_starts(store):
    seen = []
    changes = Changes(store, Once(Step.APPLY, lambda: seen.append(rows(store))))
    session = changes.session("s1", user_id="learner", brain_id="brain", conversation_id="talk")
    session.add("words", contributor_ids=["learner", "visitor", "anonymous"])
    assert seen == [[("s1", "learner", "learner", "brain", "talk"), ("s1", "visitor", "visitor", "brain", "talk")]]
    assert rows(store) == seen[0]


def test_a_caller_s_own_change_finds_the_rows_there_when_it_applies(store, changes):
    seen = []
    note = Note([], contributor_ids=("visitor",), brain_id="elsewhere", during=lambda: seen.append(rows(store)))
    changes.session("s1", user_id="learner", brain_id="brain").apply(note)
    assert seen == [[("s1", "learner", "learner", "elsewhere", None), ("s1", "visitor", "visitor", "elsewhere", None)]]


def test_one_row_per_session_person_brain_and_conversation_however_many_writes(store, changes):
    for session_id, conversation in (("s1", None), ("s1", None), ("s1", "talk"), ("s2", None)):
        session = changes.session(session_id, user_id="learner", brain_id="brain", conversation_id=conversation)
        session.add(["one", "two"], contributor_ids=["visitor"])
        session.add("three", contributor_ids=["visitor"])
    assert len(rows(store)) == 6


def test_a_session_without_a_write_has_no_rows(store, changes):
    with changes.session("s1", user_id="learner", brain_id="brain"):
        pass
    assert rows(store) == []


def test_an_anonymous_learner_gets_no_row_and_writes(store, changes):
    changes.session("s1", user_id="anonymous_user", brain_id="brain").add("words")
    assert rows(store) == []
    assert contents(changes) == ["words"]


def test_which_ids_are_anonymous_is_the_opener_s_choice():
    store = Store(anonymous_ids=("nobody",))
    session = Changes(store).session("s1", user_id="nobody", brain_id="brain")
    session.add("words", contributor_ids=["anonymous"])
    assert rows(store) == [("s1", "anonymous", "visitor", "brain", None)]


def test_who_was_a_visitor_and_opens_the_session_is_its_learner(store, changes):
    changes.session("s1", user_id="learner", brain_id="brain").add("words", contributor_ids=["visitor"])
    changes.session("s1", user_id="visitor", brain_id="brain").add("more")
    assert rows(store) == [("s1", "learner", "learner", "brain", None), ("s1", "visitor", "learner", "brain", None)]


# Contributors that are inherited -----------------------------------------------------------------------------------


def test_update_merge_and_summary_inherit_the_contributors_of_what_they_replace(changes):
    session = changes.session("s1", user_id="learner", brain_id="brain")
    one = session.add("one", contributor_ids=["ann"]).trace_ids[0]
    two = session.add("two", contributor_ids=["ben"]).trace_ids[0]
    assert contributors(changes, session.update(one, content="uno").change_id) == ["ann"]
    merged = session.merge([one, two], contributor_ids=["cid"])
    assert contributors(changes, merged.change_id) == ["cid", "ann", "ben"]
    session.rolling_summary("so far", contributor_ids=["dan"])
    assert contributors(changes, session.rolling_summary("and more").change_id) == ["dan"]


def test_what_names_parents_inherits_their_contributors_and_learners_of_other_sessions(changes):
    first = changes.session("s1", user_id="ann", brain_id="brain").add("one", contributor_ids=["ben", "anonymous"])
    session = changes.session("s2", user_id="learner", brain_id="brain")
    child = session.add("built on it", parents=first.trace_ids)
    assert contributors(changes, child.change_id) == ["ann", "ben"]
    summary = session.rolling_summary("of all", parents=child.trace_ids)
    assert contributors(changes, summary.change_id) == ["ann", "ben"]
    assert changes.contributors("s2").select("user_id", "role", "changes").rows() == [
        ("learner", "learner", 2),
        ("ann", "visitor", 2),
        ("ben", "visitor", 2),
    ]


def test_the_contributors_of_a_reverted_write_are_not_inherited(changes):
    session = changes.session("s1", user_id="learner", brain_id="brain")
    one = session.add("one").trace_ids[0]
    changes.revert(session.update(one, content="uno", contributor_ids=["ann"]).change_id)
    assert contributors(changes, session.update(one, content="eins").change_id) == []


def test_words_that_came_into_a_trace_after_the_candidate_bring_their_people_before_it_is_touched(store, changes):
    session = changes.session("s1", user_id="learner", brain_id="brain")
    one = session.add("one").trace_ids[0]
    meanwhile = Once(Step.APPLY, lambda: session.update(one, content="uno", contributor_ids=["ann"]))
    watched = Changes(store, meanwhile)
    late = watched.session("s2", user_id="learner", brain_id="brain").update(one, tags=["t"])
    assert contributors(changes, late.change_id) == ["ann"]
    assert ("s2", "ann", "visitor", "brain", None) in rows(store)
    changes.forget_user("ann")
    assert contents(changes) == []
    assert words_left(store, "ann", "uno") == []


# Forgotten people ----------------------------------------------------------------------------------------------------


def test_an_already_forgotten_contributor_gets_no_row_and_the_write_is_kept(store, changes):
    changes.forget_user("visitor")
    session = changes.session("s1", user_id="learner", brain_id="brain")
    verdict = session.add("words", contributor_ids=["visitor"])
    assert verdict.verdict == "kept"
    assert rows(store) == [("s1", "learner", "learner", "brain", None)]
    assert contributors(changes, verdict.change_id) == [store.keyed_hash("visitor")]
    later = session.update(verdict.trace_ids[0], content="more")
    assert contributors(changes, later.change_id) == [store.keyed_hash("visitor")]
    assert len(rows(store)) == 1
    assert words_left(store, "visitor") == []
    assert contents(changes) == ["more"]


def test_a_session_opened_by_a_forgotten_person_is_refused_until_they_are_readmitted(changes):
    open_session = changes.session("s1", user_id="learner", brain_id="brain")
    changes.forget_user("learner")
    with pytest.raises(Forgotten):
        changes.session("s1", user_id="learner", brain_id="brain")
    with pytest.raises(Forgotten):
        open_session.add("words")
    assert changes.changes().is_empty()
    assert changes.readmit("learner")
    assert not changes.readmit("learner")
    assert changes.session("s1", user_id="learner", brain_id="brain").add("words").verdict == "kept"
    assert open_session.add("more").verdict == "kept"


def test_nobody_is_forgotten_by_an_anonymous_id(changes):
    changes.session("s1", user_id="anonymous", brain_id="brain").add("words")
    with pytest.raises(InvalidInput):
        changes.forget_user("anonymous")
    assert contents(changes) == ["words"]
