"""One memory write from its candidate to its verdict, in the steps that leave no window.

    note rows and record the candidate -> apply -> read the tombstones again and write the verdict

Each arrow is a commit. A process that dies on the way leaves a candidate, which the next opening of the store resolves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from mnemokit.changes import log as change_log
from mnemokit.changes.blanking import blank_person
from mnemokit.changes.forgetting import forgotten_among
from mnemokit.changes.log import Draft, Place, Recorded
from mnemokit.changes.session_change import KIND, OWN, OwnWrite, SessionChange, check_change, trace_ids_in
from mnemokit.changes.states import OPEN, ChangeState, Step
from mnemokit.changes.trace_operations import Operation
from mnemokit.changes.traces import Applied, Overtaken, TraceChange, undo_unrecorded
from mnemokit.errors import InvalidInput
from mnemokit.records import Verdict
from mnemokit.store import Connection, Store, new_ids


@dataclass(frozen=True, slots=True)
class Judged:
    """What the verdict came to."""

    state: Literal[ChangeState.KEPT, ChangeState.UNDONE_FORGOTTEN, ChangeState.UNDONE_UNRECORDED]
    trace_ids: tuple[str, ...] = ()
    forgotten: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Kept:
    """What was really kept, as JSON: None where that is the plan."""

    text: str | None
    trace_ids: tuple[str, ...]


class Writer:
    """Takes memory writes through their steps.

    Args:
        store: Where.
        own: Callers' own changes that were kept, by change id; added to here.
        observe: Told of every step as it begins.
    """

    def __init__(self, store: Store, own: dict[str, OwnWrite], observe: Callable[[Step], None]) -> None:
        """Nothing is written yet."""
        self.store = store
        self._own = own
        self._observe = observe

    def write_traces(
        self, place: Place, operation: Operation, *, actor: str, contributor_ids: tuple[str, ...], at: datetime
    ) -> Verdict:
        """Write traces of the built-in table."""
        change_id = new_ids("ch_")[0]
        change = TraceChange(
            self.store,
            operation,
            change_id=change_id,
            place=place,
            target_id=new_ids("set_")[0],
            actor=actor,
            contributor_ids=contributor_ids,
            at=at,
            observe=self._observe,
        )
        return self._run(change, change_id, place, operation.name, at)

    def write_own(self, place: Place, change: SessionChange, *, at: datetime) -> Verdict:
        """Apply a caller's own change."""
        check_change(change)
        there = Place(place.session_id, place.user_id, change.brain_id, place.conversation_id)
        return self._run(change, new_ids("ch_")[0], there, OWN, at)

    def _run(self, change: SessionChange, change_id: str, place: Place, operation: str, at: datetime) -> Verdict:
        with change_log.under_way(change_id):
            recorded = self.store.write(lambda con: self._record(con, change, change_id, place, operation, at))
            try:
                result = change.apply()
            except Overtaken:
                return Verdict(change_id, "undone_forgotten")
            except BaseException as error:
                self._after_failed_apply(change, recorded, error, at)
                raise
            verdict = self._judge(change, recorded, result, at)
        self._observe(Step.DONE)
        return verdict

    def _record(
        self, con: Connection, change: SessionChange, change_id: str, place: Place, operation: str, at: datetime
    ) -> Recorded:
        self._observe(Step.NOTE_ROWS)
        stored = change_log.stored_place(con, self.store, place)
        if isinstance(change, TraceChange):
            inherited = change.prepare(con, stored)
        else:
            inherited = change_log.people_of_traces(con, trace_ids_in(change.before))
        given = change_log.need_texts(change.contributor_ids, "contributor_ids")
        people = change_log.stored_people(con, self.store, place.user_id, given, inherited)
        change_log.note_rows(con, self.store, stored, people, at)
        self._observe(Step.RECORD_CANDIDATE)
        names = {change.actor, change.target_id} - {None}
        hidden = forgotten_among(con, self.store.keyed_hash, cast("set[str]", names))
        recorded = change_log.record(
            con,
            Draft(
                change_id=change_id,
                kind=KIND,
                operation=operation,
                actor=hidden.get(change.actor, change.actor),
                target_id=None if change.target_id is None else hidden.get(change.target_id, change.target_id),
                place=stored,
                contributor_ids=tuple(people),
                before=None if change.before is None else change_log.as_json(change.before, "before"),
                after=None if change.after is None else change_log.as_json(change.after, "after"),
                at=at,
            ),
        )
        if isinstance(change, TraceChange):
            change.recorded_as(recorded)
        return recorded

    def _judge(self, change: SessionChange, recorded: Recorded, result: object, at: datetime) -> Verdict:
        kept = Kept(None, ())
        try:
            if not isinstance(change, TraceChange):
                self.store.write(lambda con: _mark_applied(con, recorded, result))
            kept = _kept(change, result)
            self._observe(Step.READ_TOMBSTONES)
            judged = self.store.write(lambda con, kept=kept: self._read_and_write_verdict(con, recorded, kept, at))
        except BaseException as error:
            # An interrupt can come just after the verdict was committed: then it stands.
            if self._is_kept(recorded):
                judged = Judged(ChangeState.KEPT, kept.trace_ids)
            else:
                self._undo_unrecorded(change, recorded, result, at)
                judged = Judged(ChangeState.UNDONE_UNRECORDED)
            if not isinstance(error, Exception):
                raise
        if judged.state is ChangeState.UNDONE_FORGOTTEN:
            self._undo_forgotten(change, result, judged.forgotten, at)
        elif judged.state is ChangeState.KEPT and not isinstance(change, TraceChange):
            self._own[recorded.change_id] = OwnWrite(change, result)
        return Verdict(recorded.change_id, judged.state.value, judged.trace_ids)

    def _read_and_write_verdict(self, con: Connection, recorded: Recorded, kept: Kept, at: datetime) -> Judged:
        if change_log.state_of(con, recorded) is ChangeState.UNDONE_FORGOTTEN:
            return Judged(ChangeState.UNDONE_FORGOTTEN)
        forgotten = forgotten_among(con, self.store.keyed_hash, change_log.noted_people(con, recorded))
        if forgotten:
            return Judged(ChangeState.UNDONE_FORGOTTEN, forgotten=forgotten)
        self._observe(Step.WRITE_VERDICT)
        change_log.move(
            con,
            recorded,
            ChangeState.KEPT,
            kept=kept.text,
            trace_ids=list(kept.trace_ids),
            ts_verdict=at,
        )
        return Judged(ChangeState.KEPT, kept.trace_ids)

    def _is_kept(self, recorded: Recorded) -> bool:
        try:
            with self.store.read() as con:
                return change_log.state_of(con, recorded) is ChangeState.KEPT
        except Exception:  # noqa: BLE001 - a verdict that cannot be read is taken for one that was not written
            return False

    def _undo_forgotten(
        self, change: SessionChange, result: object, forgotten: Mapping[str, str], at: datetime
    ) -> None:
        self._observe(Step.UNDO)
        change.undo(result, "forgotten")
        self._observe(Step.WRITE_UNDONE)
        self.store.write(lambda con: blank_people(con, forgotten, at))

    def _undo_unrecorded(self, change: SessionChange, recorded: Recorded, result: object, at: datetime) -> None:
        self._observe(Step.UNDO)
        change.undo(result, "unrecorded")
        self._observe(Step.WRITE_UNDONE)
        try:
            why = "the verdict could not be written"
            self.store.write(lambda con: settle_unrecorded(con, recorded, why, at))
        except Exception:  # noqa: BLE001 - the traces are as before; the next opening writes down that they are
            return

    def _after_failed_apply(
        self, change: SessionChange, recorded: Recorded, error: BaseException, at: datetime
    ) -> None:
        def settle(con: Connection) -> None:
            if isinstance(change, TraceChange):
                undo_unrecorded(con, recorded.seq)
            # The error's text may hold somebody's words; its type does not.
            settle_unrecorded(con, recorded, f"apply raised {type(error).__name__}", at)

        try:
            self.store.write(settle)
        except Exception:  # noqa: BLE001 - the caller must see apply's error; the next opening resolves the candidate
            return


def settle_unrecorded(con: Connection, recorded: Recorded, why: str, at: datetime) -> None:
    """Write down that a write was undone as unrecorded; one that has a verdict keeps it.

    No tombstone is read: whoever is being forgotten at this moment is blanked in this row too, since it names them.
    """
    if change_log.state_of(con, recorded) in OPEN:
        change_log.move(con, recorded, ChangeState.UNDONE_UNRECORDED, reason=why, trace_ids=[], ts_verdict=at)


def blank_people(con: Connection, forgotten: Mapping[str, str], at: datetime) -> None:
    """Blank everything about these people (name and keyed hash), open writes included: those get their verdict."""
    for name, name_hash in forgotten.items():
        blank_person(con, name, name_hash, at)


def _mark_applied(con: Connection, recorded: Recorded, result: object) -> None:
    # Forgotten meanwhile: the verdict's step finds that, and nothing of the result may be written down.
    if change_log.state_of(con, recorded) is ChangeState.UNDONE_FORGOTTEN:
        return
    try:
        text = change_log.as_json(result, "result")
    except InvalidInput:
        text = None
    change_log.move(con, recorded, ChangeState.APPLIED, result=text)


def _kept(change: SessionChange, result: object) -> Kept:
    kept_after = cast("Callable[[object], object] | None", getattr(change, "kept_after", None))
    kept = change.after if kept_after is None else kept_after(result)
    text = None if kept is None else change_log.as_json(kept, "kept_after(result)")
    plan = None if change.after is None else change_log.as_json(change.after, "after")
    # Nothing kept of a plan is told from a plan that was kept.
    told = None if text == plan else text or "null"
    if isinstance(result, Applied):
        return Kept(told, tuple(dict.fromkeys(result.trace_ids)))
    return Kept(told, trace_ids_in(None if text is None else json.loads(text)))
