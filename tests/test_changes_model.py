"""Sessions, people, writes, forgets, reverts and crashes in any order, against the plain-Python model."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from mnemokit.changes.namespace import Changes
from mnemokit.changes.sessions import Session
from mnemokit.changes.states import Step
from mnemokit.errors import Conflict, Forgotten, MnemokitError
from mnemokit.records import Verdict
from mnemokit.store import Store
from tests.oracles.changes import Model, Trace, hashed

T0 = datetime(2025, 3, 1, tzinfo=UTC)
PEOPLE = ["ann", "ben", "cid", "anonymous"]
TEXTS = ["tea", "milk", "tea\nmilk", "sugar"]
UNRECORDED = (Step.APPLY, Step.COMMIT_APPLY, Step.READ_TOMBSTONES, Step.WRITE_VERDICT)

Effects = list[tuple[str, str, Trace | None]]


class Crash(BaseException):
    """Stands for the death of the process."""


places = st.tuples(
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(PEOPLE),
    st.sampled_from(["brain", "other"]),
    st.sampled_from([None, "talk"]),
)
people = st.lists(st.sampled_from(PEOPLE), max_size=2)
# What happens in the middle of a write: nothing, a crash, a failing verdict, or somebody forgotten.
meanwhile = st.one_of(
    st.just(("nothing", None)),
    st.just(("nothing", None)),
    st.tuples(st.just("crash"), st.sampled_from([Step.RECORD_CANDIDATE, *UNRECORDED, Step.DONE])),
    st.tuples(st.just("fail"), st.sampled_from([Step.READ_TOMBSTONES, Step.WRITE_VERDICT])),
    st.tuples(st.sampled_from(PEOPLE[:3]), st.sampled_from([Step.APPLY, Step.READ_TOMBSTONES])),
)
# Hours that a write is dated after (or before) the one before it.
hours = st.integers(min_value=-1, max_value=2)


class Memory(RuleBasedStateMachine):
    """The store and the model side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model()
        self.clock = 0
        self.made = 0
        self.hook: Callable[[Step], None] = lambda step: None
        self.open()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def open(self) -> None:
        self.store = Store(Path(self.folder.name) / "m.duckdb", threads=1)
        self.changes = Changes(self.store, self.observe)

    def observe(self, step: Step) -> None:
        self.hook(step)

    # Rules -------------------------------------------------------------------------------------------------------

    @rule(
        place=places,
        who=people,
        texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=2),
        then=meanwhile,
        h=hours,
    )
    def add(self, place, who, texts, then, h):
        trace = Trace(place[2], "semantic", None, "")
        self.write(
            place,
            who,
            then,
            h,
            operation="add",
            inherits=[],
            call=lambda session, at: session.add(texts, contributor_ids=who, at=at),
            effects=lambda new: self.model.add(new, texts, trace),
        )

    @rule(place=places, who=people, text=st.sampled_from(TEXTS), pick=st.integers(0, 9), then=meanwhile, h=hours)
    def update(self, place, who, text, pick, then, h):
        ids = self.ids(place[2])
        if ids:
            trace_id = ids[pick % len(ids)]
            self.write(
                place,
                who,
                then,
                h,
                operation="update",
                inherits=[trace_id],
                call=lambda session, at: session.update(trace_id, content=text, contributor_ids=who, at=at),
                effects=lambda new: self.model.update(trace_id, content=text),
            )

    @rule(place=places, who=people, picks=st.sets(st.integers(0, 9), min_size=1, max_size=3), then=meanwhile, h=hours)
    def delete(self, place, who, picks, then, h):
        ids = [*self.ids(place[2]), "tr_none"]
        chosen = [trace_id for n, trace_id in enumerate(ids) if n in picks] or ids[-1:]
        self.write(
            place,
            who,
            then,
            h,
            operation="delete",
            inherits=[trace_id for trace_id in chosen if trace_id in self.model.traces],
            call=lambda session, at: session.delete(chosen, contributor_ids=who, at=at),
            effects=lambda new: self.model.delete(chosen),
        )

    @rule(place=places, who=people, text=st.sampled_from([None, *TEXTS]), then=meanwhile, h=hours)
    def merge(self, place, who, text, then, h):
        chosen = self.ids(place[2])[:2]
        if len(chosen) == 2:
            self.write(
                place,
                who,
                then,
                h,
                operation="merge",
                inherits=chosen,
                call=lambda session, at: session.merge(chosen, text, contributor_ids=who, at=at),
                effects=lambda new: self.model.merge(new, chosen, text),
            )

    @rule(place=places, who=people, text=st.sampled_from(TEXTS), then=meanwhile, h=hours)
    def rolling_summary(self, place, who, text, then, h):
        there = self.model.standing_summary(place[2], place[3])
        self.write(
            place,
            who,
            then,
            h,
            operation="rolling_summary",
            inherits=[] if there is None else [there],
            call=lambda session, at: session.rolling_summary(text, contributor_ids=who, at=at),
            effects=lambda new: self.model.rolling_summary(new, place[2], place[3], text),
        )

    @precondition(lambda self: self.model.writes)
    @rule(pick=st.integers(0, 99), recent=st.booleans(), h=hours)
    def revert(self, pick, recent, h):
        known = [change for change in self.model.writes if change.startswith("ch_")]
        if not known:
            return
        change = known[-1] if recent else known[pick % len(known)]
        self.clock += h
        expected = self.model.revert(change, self.clock)
        if expected != "conflict":
            assert self.changes.revert(change, at=self.at()).verdict == expected
            return
        with pytest.raises(Conflict, match="|".join(self.model.later_writes(change))):
            self.changes.revert(change, at=self.at())

    @rule(who=st.sampled_from(PEOPLE[:3]))
    def forget(self, who):
        doomed = self.model.forget(who)
        assert self.changes.forget_user(who).traces == len(doomed)

    @rule(who=st.sampled_from(PEOPLE[:3]))
    def readmit(self, who):
        assert self.changes.readmit(who) == (who in self.model.tombstones)
        self.model.readmit(who)

    @rule()
    def open_again(self):
        self.store.close()
        self.open()

    # What always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def the_traces_are_the_model_s(self):
        assert self.seen(self.changes.traces()) == self.model.traces

    @invariant()
    def the_past_is_the_model_s(self):
        for ts in (self.clock - 2, self.clock):
            assert self.seen(self.changes.traces(T0 + timedelta(hours=ts))) == self.model.at(ts)

    @invariant()
    def the_verdicts_and_the_people_are_the_model_s(self):
        seen = {
            change: (verdict, user, *sorted(others))
            for change, verdict, user, others in self.changes.changes()
            .select("change_id", "verdict", "user_id", "contributor_ids")
            .iter_rows()
        }
        assert seen == {change: (write.state, *self.names(write)) for change, write in self.model.writes.items()}

    @invariant()
    def the_session_rows_are_the_model_s(self):
        with self.store.read() as con:
            rows = con.execute(
                "SELECT session_id, user_id, role, brain_id, conversation_id FROM session_rows"
            ).fetchall()
        expected = [(s, self.stored(u), r, b, c) for s, u, r, b, c in self.model.rows]
        assert sorted(rows, key=repr) == sorted(expected, key=repr)

    @invariant()
    def nothing_is_left_of_the_forgotten(self):
        assert self.changes.audit().ok

    # Helpers -------------------------------------------------------------------------------------------------------

    def write(
        self,
        place: tuple[str, str, str, str | None],
        who: list[str],
        then: tuple[str, Step | None],
        h: int,
        *,
        operation: str,
        inherits: list[str],
        call: Callable[[Session, datetime], Verdict],
        effects: Callable[[Iterator[str]], Effects],
    ) -> None:
        session_id, learner, brain, conversation = place
        self.clock += h
        what, step = then
        self.hook = self.interrupt(what, step)
        verdict = None
        try:
            session = self.changes.session(session_id, user_id=learner, brain_id=brain, conversation_id=conversation)
            verdict = call(session, self.at())
        except Forgotten:
            assert learner in self.model.tombstones
            return
        except (Crash, MnemokitError, duckdb.Error):
            assert what == "crash"
        finally:
            self.hook = lambda step: None
        assert learner not in self.model.tombstones
        if what == "crash":
            self.store.close()
            self.open()
            if step is Step.RECORD_CANDIDATE:
                return
        self.made += 1
        change = verdict.change_id if verdict else self.newest()
        if what == "crash" and step is Step.DONE:
            verdict = Verdict(change, "kept", self.trace_ids(change))
        place_names = {"session": session_id, "learner": learner, "brain": brain, "conversation": conversation}
        self.model.begin(change, **place_names, operation=operation, people=who, inherits=inherits)
        self.follow(change, verdict, what, step, effects)

    def follow(self, change: str, verdict: Verdict | None, what: str, step: Step | None, effects) -> None:
        """Do in the model what the write did."""
        forgotten = what if what in PEOPLE else None
        if forgotten and step is Step.APPLY:
            self.model.forget(forgotten)
        if self.model.writes[change].state == "candidate":
            new = iter(verdict.trace_ids) if verdict and verdict.trace_ids else self.nowhere()
            done = effects(self.only_new(new))
            self.model.apply(change, done, self.clock)
            touched = tuple(dict.fromkeys(trace_id for _, trace_id, _ in done))
        if forgotten and step is Step.READ_TOMBSTONES:
            self.model.forget(forgotten)
        if what == "fail" or (what == "crash" and step in UNRECORDED):
            self.model.undo_unrecorded(change)
        elif self.model.writes[change].state == "applied":
            self.model.keep(change)
            assert verdict is None or verdict.trace_ids == touched
        assert verdict is None or verdict.verdict == self.model.writes[change].state

    def only_new(self, ids: Iterator[str]) -> Iterator[str]:
        """The ids that are not there yet: those of created traces."""
        return (trace_id for trace_id in ids if trace_id not in self.model.born)

    def nowhere(self) -> Iterator[str]:
        return (f"gone {self.made} {n}" for n in itertools.count())

    def newest(self) -> str:
        (change,) = set(self.changes.changes()["change_id"]) - set(self.model.writes)
        return change

    def trace_ids(self, change: str) -> tuple[str, ...]:
        return tuple(self.changes.changes().filter(change_id=change)["trace_ids"].item())

    def interrupt(self, what: str, step: Step | None) -> Callable[[Step], None]:
        done: list[Step] = []

        def hook(now: Step) -> None:
            if now is not step or done:
                return
            done.append(now)
            if what == "crash":
                self.store.close()
                raise Crash
            if what == "fail":
                raise RuntimeError(now)
            self.changes.forget_user(what)

        return hook

    def ids(self, brain: str) -> list[str]:
        return sorted(
            (trace_id for trace_id, trace in self.model.traces.items() if trace.brain == brain),
            key=lambda trace_id: self.model.born[trace_id],
        )

    def seen(self, traces: pl.DataFrame) -> dict[str, Trace]:
        columns = traces.select("trace_id", "brain_id", "type", "scope", "content", "tags", "parents")
        return {row[0]: Trace(*row[1:5], tuple(row[5]), tuple(row[6])) for row in columns.iter_rows()}

    def stored(self, name: str) -> str:
        return next((self.store.keyed_hash(who) for who in PEOPLE if name == hashed(who)), name)

    def names(self, write) -> tuple[str, ...]:
        return self.stored(write.learner), *sorted(self.stored(name) for name in write.people)

    def at(self) -> datetime:
        return T0 + timedelta(hours=self.clock)


def check(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Memory,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_history_equals_the_model():
    check(examples=8, steps=12)


@pytest.mark.slow
def test_any_long_history_equals_the_model():
    check(examples=150, steps=40)
