"""Forgetting people: the tombstone, what goes, what stays, and that nothing comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from mnemokit.changes.forgetting import forget_everywhere
from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import Step
from mnemokit.store import Store
from tests.support_changes import Once, contents, words_left

T0 = datetime(2025, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


def session(changes: Changes, name: str = "s1", who: str = "lena", brain: str = "brain"):
    return changes.session(name, user_id=who, brain_id=brain)


def test_forget_user_finds_the_session_though_the_person_never_wrote(store, changes):
    session(changes).add("vera's words", contributor_ids=["vera"])
    receipt = changes.forget_user("vera")
    assert (receipt.sessions, receipt.changes, receipt.traces, receipt.session_rows) == (1, 1, 1, 1)
    assert words_left(store, "vera") == []
    assert changes.audit().ok


def test_the_tombstone_comes_first_and_is_committed(store):
    def fail(step: Step) -> None:
        if step is Step.BLANK:
            raise RuntimeError(step)

    changes = Changes(store, fail)
    session(changes).add("vera's words", contributor_ids=["vera"])
    with pytest.raises(RuntimeError):
        changes.forget_user("vera")
    with store.read() as con:
        assert con.execute("SELECT count(*) FROM tombstones").fetchall() == [(1,)]
    assert not changes.audit().ok
    healed = Changes(store)
    assert healed.audit().ok
    assert words_left(store, "vera") == []


def test_the_tombstone_holds_a_keyed_hash_and_not_the_id(store, changes):
    changes.forget_user("vera", at=T0)
    with store.read() as con:
        assert con.execute("SELECT name_hash, realm, ts_forgotten FROM tombstones").fetchall() == [
            (store.keyed_hash("vera"), "user", T0)
        ]


def test_the_hash_is_another_one_in_every_store(store):
    assert store.keyed_hash("vera") != Store().keyed_hash("vera")


def test_every_trace_that_a_change_about_them_created_changed_or_deleted_is_gone_for_good(store, changes):
    lena = session(changes)
    created = lena.add("word one", contributor_ids=["vera"]).trace_ids[0]
    changed, deleted, other = lena.add(["word two", "word three", "other"]).trace_ids
    lena.update(changed, content="by vera", contributor_ids=["vera"])
    undone = lena.delete(deleted, contributor_ids=["vera"])
    changes.forget_user("vera")
    assert changes.traces()["trace_id"].to_list() == [other]
    assert changes.traces(datetime.now(UTC))["trace_id"].to_list() == [other]
    changes.revert(undone.change_id)
    assert changes.traces()["trace_id"].to_list() == [other]
    assert words_left(store, "word one", "word two", "word three", "by vera") == []
    assert changes.timeline(created)["forgotten"].to_list() == [True]


def test_the_learner_s_own_sessions_go_and_other_people_s_stay(store, changes):
    session(changes).add("lena's")
    session(changes, "s2", "otto").add("otto's")
    receipt = changes.forget_user("lena")
    assert (receipt.sessions, receipt.changes, receipt.traces) == (1, 1, 1)
    assert contents(changes) == ["otto's"]
    assert words_left(store, "lena") == []


def test_every_copy_of_a_removed_trace_in_other_people_s_changes_is_blanked(store, changes):
    otto = session(changes, "s1", "otto")
    ids = otto.add(["otto one", "otto two"]).trace_ids
    changes.revert(otto.delete(ids).change_id)
    session(changes, "s2", "lena").update(ids[0], content="lena here")
    receipt = changes.forget_user("lena")
    assert receipt.copies == 2
    assert contents(changes) == ["otto two"]
    assert words_left(store, "otto one", "lena") == []
    assert "otto two" in changes.changes()["kept"][0]


def test_somebody_else_s_plan_to_add_the_same_words_is_blanked_too(store, changes):
    session(changes, "s1", "lena").add("the very words")
    session(changes, "s2", "otto").add("the very words")
    changes.forget_user("lena")
    assert words_left(store, "the very words") == []


def test_the_past_of_an_erased_trace_is_gone_at_every_time(changes):
    lena = session(changes)
    one = lena.add("before vera", at=T0).trace_ids[0]
    assert contents(changes) == ["before vera"]
    lena.update(one, content="with vera", contributor_ids=["vera"], at=T0 + HOUR)
    changes.forget_user("vera", at=T0 + 2 * HOUR)
    for moment in (T0, T0 + HOUR, T0 + 3 * HOUR):
        assert changes.traces(moment).is_empty()


def test_a_revert_after_forget_never_resurrects(changes):
    lena = session(changes)
    one = lena.add("words", contributor_ids=["vera"])
    gone = lena.delete(one.trace_ids)
    update = lena.add("other")
    changes.forget_user("vera")
    for change_id in (gone.change_id, one.change_id, gone.change_id):
        verdict = changes.revert(change_id)
        assert (verdict.verdict, verdict.trace_ids) == ("reverted", ())
    assert contents(changes) == ["other"]
    assert changes.revert(update.change_id).verdict == "reverted"


def test_a_change_that_touched_an_erased_and_a_kept_trace_reverts_the_kept_one(changes):
    otto = session(changes, "s1", "otto")
    ids = otto.add(["one", "two"]).trace_ids
    gone = otto.delete(ids)
    changes.revert(gone.change_id)
    again = otto.delete(ids)
    changes.revert(again.change_id)
    session(changes, "s2", "lena").update(ids[0], tags=["t"])
    last = otto.delete([ids[1]])
    changes.forget_user("lena")
    assert contents(changes) == []
    assert changes.revert(last.change_id).trace_ids == (ids[1],)
    assert contents(changes) == ["two"]


def test_ids_become_keyed_hashes_wherever_they_stand(store, changes):
    own = changes.session("vera", user_id="lena", brain_id="vera", conversation_id="vera")
    added = own.add("in vera's brain", scope="vera")
    changes.forget_user("vera")
    assert words_left(store, "'vera'", '"vera"') == []
    assert contents(changes) == ["in vera's brain"]
    again = changes.session("vera", user_id="lena", brain_id="vera", conversation_id="vera")
    assert again.add("in vera's brain", scope="vera").trace_ids == added.trace_ids
    again.rolling_summary("one", scope="vera")
    assert again.rolling_summary("two", scope="vera").verdict == "kept"
    assert words_left(store, "'vera'", '"vera"') == []
    assert contents(changes) == ["in vera's brain", "two"]


def test_forgetting_twice_finds_nothing_more_and_says_so(changes):
    session(changes).add("words", contributor_ids=["vera"])
    changes.forget_user("vera")
    again = changes.forget_user("vera")
    assert again.repeated
    assert (again.changes, again.traces, again.copies, again.session_rows) == (0, 0, 0, 0)


def test_forgetting_somebody_who_never_was_leaves_a_tombstone_only(changes):
    session(changes).add("words")
    receipt = changes.forget_user("nobody here")
    assert (receipt.sessions, receipt.changes, receipt.traces, receipt.repeated) == (0, 0, 0, False)
    assert contents(changes) == ["words"]


def test_two_forgotten_people_of_one_change(store, changes):
    session(changes).add("words", contributor_ids=["vera", "otto"])
    changes.forget_user("vera")
    receipt = changes.forget_user("otto")
    assert (receipt.changes, receipt.traces) == (1, 0)
    assert words_left(store, "vera", "otto") == []


def test_readmitted_and_forgotten_again(store, changes):
    session(changes).add("first", contributor_ids=["vera"])
    changes.forget_user("vera", at=T0)
    changes.readmit("vera", at=T0 + HOUR)
    session(changes).add("second", contributor_ids=["vera"])
    receipt = changes.forget_user("vera", at=T0 + 2 * HOUR)
    assert (receipt.traces, receipt.repeated) == (1, True)
    assert words_left(store, "vera", "first", "second") == []
    with store.read() as con:
        assert con.execute("SELECT count(*) FROM session_rows").fetchall() == [(2,)]
        assert con.execute("SELECT ts_forgotten, ts_readmitted FROM tombstones").fetchall() == [(T0 + 2 * HOUR, None)]


def test_forgotten_before_the_candidate_is_recorded_the_contributor_is_only_a_hash(store, changes):
    watched = Changes(store, Once(Step.APPLY, lambda: None))
    changes.forget_user("vera")
    verdict = session(watched).add("words", contributor_ids=["vera"])
    assert verdict.verdict == "kept"
    assert words_left(store, "vera") == []


@pytest.mark.parametrize("step", [Step.APPLY, Step.READ_TOMBSTONES])
@pytest.mark.parametrize("who", ["vera", "lena"])
def test_forgotten_between_candidate_and_verdict_takes_the_forgotten_path(store, changes, step, who):
    there = session(changes, "s0", "otto").add("otto's").trace_ids[0]
    watched = Changes(store, Once(step, lambda: changes.forget_user(who)))
    verdict = session(watched).update(there, content="vera's words", contributor_ids=["vera"])
    assert verdict.verdict == "undone_forgotten"
    assert words_left(store, who, "vera's words") == []
    # Forgotten before the trace was touched, the write touched nothing.
    assert contents(changes) == (["otto's"] if step is Step.APPLY else [])
    assert changes.audit().ok


def test_an_undone_write_of_the_person_loses_its_words_and_leaves_the_trace(store, changes):
    there = session(changes, "s0", "otto").add("otto's").trace_ids[0]

    def fail(step: Step) -> None:
        if step is Step.WRITE_VERDICT:
            raise RuntimeError(step)

    verdict = session(Changes(store, fail)).update(there, content="vera's words", contributor_ids=["vera"])
    assert verdict.verdict == "undone_unrecorded"
    changes.forget_user("vera")
    assert words_left(store, "vera") == []
    assert contents(changes) == ["otto's"]


def test_what_is_left_of_somebody_is_found_by_audit(store, changes):
    session(changes).add("words")
    changes.forget_user("vera")
    store.write(lambda con: con.execute("UPDATE session_rows SET user_id = 'vera'"))
    assert changes.audit().left_of_forgotten.rows() == [(store.keyed_hash("vera"), "ids", 1)]
    assert not changes.audit().ok


@dataclass
class Procedures:
    """Stands for the procedures of a memory."""

    erased: list[str] = field(default_factory=list)

    def erase_subject(self, subject: str) -> str:
        self.erased.append(subject)
        return "7 reasonlets"


@dataclass
class Both:
    changes: Changes
    reasonlets: Procedures


def test_forget_everywhere_forgets_in_both_kinds_of_memory(changes):
    session(changes).add("words", contributor_ids=["vera"])
    mem = Both(changes, Procedures())
    receipt = forget_everywhere(mem, "vera")
    assert receipt.writes.traces == 1
    assert mem.reasonlets.erased == ["vera"]
    assert str(receipt).splitlines() == [str(receipt.writes), "7 reasonlets"]
    assert "traces gone for good: 1;" in str(receipt.writes)


def test_the_bytes_of_a_forgotten_person_are_gone_from_the_file_after_scrub(tmp_path):
    path = tmp_path / "m.duckdb"
    store = Store(path)
    changes = Changes(store)
    words = "zzverywordszz"
    session(changes).add(words, contributor_ids=["verazz"])
    session(changes).add("wordsthatstay")
    changes.forget_user("verazz")
    store.scrub()
    store.close()
    raw = path.read_bytes()
    assert b"wordsthatstay" in raw, "the file is stored so that a search finds its texts"
    for gone in (words, "verazz"):
        assert gone.encode() not in raw
