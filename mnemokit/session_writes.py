"""One memory write from its candidate to its verdict, in the steps that leave no window.

    note rows and record the candidate -> apply -> read the tombstones again and write the verdict

Each arrow is a commit. A process that dies on the way leaves a candidate, which the next opening of the store resolves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast, runtime_checkable

from mnemokit import change_log
from mnemokit.change_blanking import blank_person
from mnemokit.change_log import Draft, Place, Recorded
from mnemokit.change_states import OPEN, ChangeState, Step
from mnemokit.errors import InvalidInput
from mnemokit.forgetting import forgotten_among
from mnemokit.records import Verdict
from mnemokit.store import Connection, Store, new_ids
from mnemokit.trace_operations import Operation
from mnemokit.traces import Overtaken, TraceChange, UndoReason, undo_unrecorded

OWN = "own"
"""What the log calls the operation of a caller's own change."""


@runtime_checkable
class SessionChange(Protocol):
    """A memory write of any kind, as a session applies it.

    A change may also have ``kept_after(result)``, which says what was really kept; without it the verdict holds the
    plan, ``after``. ``before``, ``after`` and what ``kept_after`` returns must be values that JSON can carry; an entry
    of theirs with a ``trace_id`` is taken as that trace's. An ``apply`` that raises must have left nothing behind.

    Attributes:
        kind: Always ``memory_write``.
        actor: What writes, for instance ``tool:memory_add``.
        target_id: A trace's id, or a set's.
        brain_id: The memory that is written.
        contributor_ids: The people whose words are in it.
        before: Snapshots of the traces it changes or deletes; None if it only adds.
        after: The plan.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102 - named above, like the rest
    @property
    def actor(self) -> str: ...  # noqa: D102
    @property
    def target_id(self) -> str: ...  # noqa: D102
    @property
    def brain_id(self) -> str: ...  # noqa: D102
    @property
    def contributor_ids(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def before(self) -> object: ...  # noqa: D102
    @property
    def after(self) -> object: ...  # noqa: D102

    def apply(self) -> object:
        """Do it, and commit it; what is returned is given to ``undo`` and ``kept_after``."""
        ...

    def undo(self, result: object, reason: UndoReason) -> None:
        """Take it back, also a second time: for good (``forgotten``), or to ``before`` (``unrecorded``, reverts)."""
        ...


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A caller's own change that was kept, with what its ``apply`` returned: what undoing it needs."""

    change: SessionChange
    result: object


@dataclass(frozen=True, slots=True)
class Judged:
    """What the verdict came to."""

    state: ChangeState
    trace_ids: tuple[str, ...] = ()
    forgotten: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Kept:
    """What was really kept, as JSON, and whether that is something else than the plan."""

    text: str | None
    differs: bool
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
        people = change_log.stored_people(con, self.store, place.user_id, change.contributor_ids, inherited)
        change_log.note_rows(con, self.store, stored, people, at)
        self._observe(Step.RECORD_CANDIDATE)
        hidden = forgotten_among(con, self.store.keyed_hash, {change.target_id, change.actor})
        recorded = change_log.record(
            con,
            Draft(
                change_id=change_id,
                kind=change.kind,
                operation=operation,
                actor=hidden.get(change.actor, change.actor),
                target_id=hidden.get(change.target_id, change.target_id),
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
        try:
            if not isinstance(change, TraceChange):
                self.store.write(lambda con: _mark_applied(con, recorded, result))
            kept = _kept(change, result)
            self._observe(Step.READ_TOMBSTONES)
            judged = self.store.write(lambda con: self._read_and_write_verdict(con, recorded, kept, at))
        except BaseException as error:
            self._undo_unrecorded(change, recorded, result, at)
            if not isinstance(error, Exception):
                raise
            return Verdict(recorded.change_id, "undone_unrecorded")
        if judged.state is ChangeState.UNDONE_FORGOTTEN:
            self._undo_forgotten(change, result, judged.forgotten, at)
            return Verdict(recorded.change_id, "undone_forgotten")
        if not isinstance(change, TraceChange):
            self._own[recorded.change_id] = OwnWrite(change, result)
        return Verdict(recorded.change_id, "kept", judged.trace_ids)

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
            differs=kept.differs,
            trace_ids=list(kept.trace_ids),
            ts_verdict=at,
        )
        return Judged(ChangeState.KEPT, kept.trace_ids)

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


def trace_ids_in(entries: object) -> tuple[str, ...]:
    """The trace ids that a change's ``before``, ``after`` or ``kept`` names.

    Example:
        >>> trace_ids_in([{"trace_id": "tr_1"}, {"note": "no trace"}])
        ('tr_1',)
    """
    if not isinstance(entries, list | tuple):
        return ()
    found: list[str] = []
    for entry in cast("list[object]", entries):
        if isinstance(entry, Mapping):
            trace_id = cast("Mapping[object, object]", entry).get("trace_id")
            if isinstance(trace_id, str):
                found.append(trace_id)
    return tuple(dict.fromkeys(found))


def check_change(change: object) -> None:
    """Refuse an object that is no ``SessionChange``.

    Raises:
        InvalidInput: The message names what is missing or wrong.
    """
    names = ("kind", "actor", "target_id", "brain_id", "contributor_ids", "before", "after", "apply", "undo")
    missing = [name for name in names if not hasattr(change, name)]
    if missing or not isinstance(change, SessionChange):
        raise InvalidInput(
            f"{type(change).__name__} is no SessionChange: it has no {', '.join(missing)}; nothing was written"
        )
    if change.kind != "memory_write":
        raise InvalidInput(f"kind={change.kind!r} is not known; it must be 'memory_write'; nothing was written")
    change_log.need_text(change.actor, "actor")
    change_log.need_text(change.brain_id, "brain_id")
    change_log.need_text(change.target_id, "target_id")
    change_log.need_texts(change.contributor_ids, "contributor_ids")
    change_log.as_json(change.before, "before")
    change_log.as_json(change.after, "after")


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
    return Kept(text, text != plan, trace_ids_in(None if text is None else json.loads(text)))
