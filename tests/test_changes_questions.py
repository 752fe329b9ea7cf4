"""What one asks of memory writes: timeline, blame, contributors, impact, audit."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from mnemokit import frames
from mnemokit.changes import questions as change_questions
from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import ChangeState, Step
from mnemokit.errors import NotFound, ReadOnly
from mnemokit.reasonlets.namespace import Reasonlets
from mnemokit.store import Store
from tests.support_changes import fail_at

T0 = datetime(2025, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


def session(changes: Changes, name: str = "s1", who: str = "lena"):
    return changes.session(name, user_id=who, brain_id="brain")


def words(snapshots: pl.Series) -> list[str | None]:
    return [None if text is None else json.loads(text)["content"] for text in snapshots]


def test_timeline_shows_every_write_by_whom_before_and_after_and_its_verdict(store, changes):
    trace = session(changes).add("one", at=T0).trace_ids[0]
    session(Changes(store, fail_at(Step.WRITE_VERDICT))).update(trace, content="never", at=T0 + DAY)
    otto = session(changes, "s2", "otto")
    update = otto.update(trace, content="two", contributor_ids=["vera"], at=T0 + 2 * DAY)
    otto.add("two", at=T0 + 3 * DAY)
    changes.revert(update.change_id, at=T0 + 4 * DAY)
    otto.delete(trace, at=T0 + 5 * DAY)
    told = changes.timeline(trace)
    assert told.select("move", "action", "user_id", "verdict").rows() == [
        ("write", "created", "lena", "kept"),
        ("write", "changed", "lena", "undone_unrecorded"),
        ("write", "changed", "otto", "reverted"),
        ("write", "resolved", "otto", "kept"),
        ("revert", "changed", "otto", "reverted"),
        ("write", "deleted", "otto", "kept"),
    ]
    assert words(told["before"]) == [None, "one", "one", "two", "two", "one"]
    assert words(told["after"]) == ["one", "never", "two", None, "one", None]
    assert told["contributor_ids"].to_list()[2] == ["vera", "lena"]
    assert told["ts"].to_list() == [T0 + n * DAY for n in range(6)]


def test_timeline_of_a_forgotten_trace_has_its_writes_without_a_word(changes):
    trace = session(changes).add("one", contributor_ids=["vera"]).trace_ids[0]
    changes.forget_user("vera")
    told = changes.timeline(trace)
    assert told.select("action", "before", "after", "forgotten").rows() == [("created", None, None, True)]


def test_blame_names_for_each_field_the_standing_write_that_set_it(changes):
    lena = session(changes)
    added = lena.add("one", tags=["a"])
    trace = added.trace_ids[0]
    tagged = lena.update(trace, tags=["b"])
    changes.revert(lena.update(trace, content="two").change_id)
    same = lena.update(trace, content="one", scope="s")
    told = dict(changes.blame(trace).select("field", "change_id").rows())
    assert told == {
        "content": added.change_id,
        "type": added.change_id,
        "scope": same.change_id,
        "tags": tagged.change_id,
        "metadata": added.change_id,
        "parents": added.change_id,
    }
    lena.delete(trace)
    assert changes.blame(trace).is_empty()


def test_contributors_lists_the_people_of_a_session_with_their_writes(changes):
    lena = session(changes)
    lena.add("one", contributor_ids=["vera", "anonymous"])
    lena.add("two")
    session(changes, "s2", "otto").add("three")
    assert changes.contributors("s1").select("user_id", "role", "changes").rows() == [
        ("lena", "learner", 2),
        ("vera", "visitor", 1),
    ]


def in_session(con, run_id: str, session_id: str, recall_id: str) -> None:
    """Say, as a replay would, in which session a run was made, and what it followed."""
    con.execute("UPDATE runs SET session_id = ?, recall_id = ? WHERE run_id = ?", [session_id, recall_id, run_id])
    con.execute(
        "INSERT INTO recalls (recall_id, scope, weight, shown, ts_recalled, seq) "
        "SELECT ?, 's', 1, 1, ts_run, seq FROM runs WHERE run_id = ?",
        [recall_id, run_id],
    )


def test_impact_names_later_writes_what_was_built_on_it_and_runs_and_recalls_of_sessions_that_had_it(store, changes):
    lena = session(changes)
    added = lena.add(["one", "two"], at=T0)
    one, two = added.trace_ids
    child = lena.add("child", parents=[one], at=T0 + DAY)
    grandchild = lena.rolling_summary("grandchild", parents=child.trace_ids, at=T0 + 2 * DAY)
    later = lena.update(two, content="zwei", at=T0 + 3 * DAY)
    session(changes, "s2", "otto").add("same brain, later", at=T0 + 4 * DAY)
    changes.session("s3", user_id="otto", brain_id="other").add("another brain", at=T0 + 4 * DAY)

    reasonlets = Reasonlets(store)
    graph = {"nodes": [{"id": "look"}], "edges": [], "properties": {}}
    ran: dict[str, tuple[str, str]] = {}
    for session_id, day in (("s1", 5), ("s2", 5), ("s3", 5), ("s1", -1)):
        recall_id = f"rc_{session_id}_{day}"
        run_id = reasonlets.capture(
            scope="s", question="what?", graph=graph, outcome="success", at=T0 + day * DAY
        ).run_id
        ran[f"{session_id} {day}"] = (run_id, recall_id)
        store.write(lambda con, run_id=run_id, row=(session_id, recall_id): in_session(con, run_id, *row))
    (run_1, recall_1), (run_2, recall_2) = ran["s1 5"], ran["s2 5"]
    told = changes.impact(added.change_id)
    named = told.select("what", "change_id", "trace_id", "depth", "run_id", "recall_id").rows()
    assert set(named) == {
        ("built_on", child.change_id, child.trace_ids[0], 1, None, None),
        ("built_on", grandchild.change_id, grandchild.trace_ids[0], 2, None, None),
        ("later_write", later.change_id, two, 1, None, None),
        ("run", None, None, None, run_1, recall_1),
        ("run", None, None, None, run_2, recall_2),
        ("recall", None, None, None, None, recall_1),
        ("recall", None, None, None, None, recall_2),
    }
    assert len(named) == len(set(named))


def test_impact_survives_traces_that_are_each_other_s_parents(changes):
    lena = session(changes)
    added = lena.add("one")
    child = lena.add("child", parents=added.trace_ids)
    lena.update(added.trace_ids[0], parents=child.trace_ids)
    assert changes.impact(added.change_id)["what"].to_list() == ["built_on", "later_write"]


def test_impact_of_an_unknown_write_is_not_found(changes):
    with pytest.raises(NotFound):
        changes.impact("ch_none")


def test_frames_have_their_schema_also_when_empty(changes):
    assert changes.timeline("tr_none").schema == pl.Schema(change_questions.TIMELINE)
    assert changes.blame("tr_none").schema == pl.Schema(change_questions.BLAME)
    assert changes.contributors("none").schema == pl.Schema(change_questions.CONTRIBUTORS)
    assert changes.traces().schema == pl.Schema(frames.schema_of("traces"))
    assert changes.traces(T0).schema == pl.Schema(frames.schema_of("traces"))
    assert changes.changes(T0).schema == pl.Schema(frames.schema_of("session_changes"))
    added = session(changes).add("one")
    assert changes.timeline(added.trace_ids[0]).schema == pl.Schema(change_questions.TIMELINE)
    assert changes.blame(added.trace_ids[0]).schema == pl.Schema(change_questions.BLAME)
    assert changes.contributors("s1").schema == pl.Schema(change_questions.CONTRIBUTORS)
    assert changes.impact(added.change_id).schema == pl.Schema(change_questions.IMPACT)


@pytest.mark.parametrize("table", ["change_traces", "tombstones", "session_rows"])
def test_rows_tombstones_and_history_are_tables_with_frames(store, changes, table):
    session(changes).add("one", at=T0)
    changes.forget_user("nobody", at=T0 + DAY)
    with store.read() as con:
        assert frames.read_table(con, table, None).height >= 1
        assert frames.read_table(con, table, T0 - DAY).height == 0


def test_an_audit_that_found_nothing_is_ok_and_a_mapping_of_empty_frames(changes):
    session(changes).add("one")
    audit = changes.audit()
    assert audit.ok
    assert set(audit) == {"open_candidates", "differs_from_plan", "left_of_forgotten", "conflicts", "not_undone"}
    assert all(frame.is_empty() for frame in audit.values())
    assert audit["conflicts"] is audit.conflicts
    with pytest.raises(KeyError):
        audit["ok"]


def test_a_read_only_store_answers_and_refuses_writes(tmp_path):
    path = tmp_path / "m.duckdb"
    writable = Store(path)
    trace = session(Changes(writable)).add("one").trace_ids[0]
    writable.close()
    changes = Changes(Store(path, read_only=True))
    assert changes.timeline(trace).height == 1
    assert changes.audit().ok
    for write in (
        lambda: session(changes).add("two"),
        lambda: changes.forget_user("lena"),
        lambda: changes.revert(changes.changes()["change_id"][0]),
    ):
        with pytest.raises(ReadOnly):
            write()


def test_every_state_but_the_first_is_reached_by_some_move():
    from mnemokit.changes.states import MOVES

    assert {move.target for move in MOVES} == set(ChangeState)
    assert [move.target for move in MOVES if move.source is None] == [ChangeState.CANDIDATE]
    finals = set(ChangeState) - {move.source for move in MOVES}
    assert finals == {ChangeState.REVERTED, ChangeState.UNDONE_FORGOTTEN, ChangeState.UNDONE_UNRECORDED}
