"""The log of memory writes: session rows, the candidate, and every move to another state."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import polars as pl

from mnemokit.changes.forgetting import forgotten_among, refuse_forgotten, tombstone_hashes
from mnemokit.changes.states import ChangeState, sources_of
from mnemokit.errors import Conflict, InvalidInput
from mnemokit.store import Connection, Store, lend, query, take_numbers


@dataclass(frozen=True, slots=True)
class Place:
    """Where a write happens, and whose session it is."""

    session_id: str
    user_id: str
    brain_id: str
    conversation_id: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A write before it is recorded. ``before`` and ``after`` are JSON texts."""

    change_id: str
    kind: str
    operation: str
    actor: str
    target_id: str | None
    place: Place
    contributor_ids: tuple[str, ...]
    before: str | None
    after: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """A write's place in the log. ``seq`` finds its row faster than its id does."""

    change_id: str
    seq: int


# People -------------------------------------------------------------------------------------------------------------


def stored_place(con: Connection, store: Store, place: Place) -> Place:
    """The place as it may be written down: an id that is a forgotten person's stands as its keyed hash.

    Raises:
        Forgotten: If the session's learner was forgotten.
    """
    if place.user_id not in store.anonymous_ids:
        refuse_forgotten(con, store, place.user_id)
    ids = [place.session_id, place.brain_id, *([] if place.conversation_id is None else [place.conversation_id])]
    hidden = forgotten_among(con, store.keyed_hash, ids)
    return Place(
        session_id=hidden.get(place.session_id, place.session_id),
        user_id=place.user_id,
        brain_id=hidden.get(place.brain_id, place.brain_id),
        conversation_id=None
        if place.conversation_id is None
        else hidden.get(place.conversation_id, place.conversation_id),
    )


def stored_people(
    con: Connection, store: Store, learner: str, given: Iterable[str], inherited: Iterable[str] = ()
) -> list[str]:
    """The contributors as they may be written down: those named, then those inherited; the forgotten as hashes."""
    named = list(dict.fromkeys(given))
    more = sorted(set(inherited) - store.anonymous_ids - {learner})
    hidden = forgotten_among(con, store.keyed_hash, [*named, *more])
    people = [hidden.get(name, name) for name in named]
    return list(dict.fromkeys([*people, *sorted(hidden.get(name, name) for name in more)]))


def people_of_traces(con: Connection, trace_ids: Sequence[str]) -> list[str]:
    """Everybody whose words are in these traces: learners and contributors of the writes that made them so."""
    if not trace_ids:
        return []
    rows = con.execute(query("trace_people"), {"trace_ids": list(trace_ids)}).fetchall()
    return [person for (person,) in rows]


def note_rows(con: Connection, store: Store, place: Place, people: Sequence[str], at: datetime) -> int:
    """Note who is in the session: one row per session, person, brain and conversation, however many writes.

    An anonymous id names no one, and a forgotten person stands there as a hash already: neither gets a row.
    """
    nobody = store.anonymous_ids | tombstone_hashes(con, people)
    present = [(place.user_id, "learner"), *((name, "visitor") for name in people if name != place.user_id)]
    wanted = pl.DataFrame(
        [(name, role) for name, role in present if name not in nobody],
        schema={"user_id": pl.String, "role": pl.String},
        orient="row",
    )
    if wanted.is_empty():
        return 0
    values: dict[str, object] = {
        "session_id": place.session_id,
        "brain_id": place.brain_id,
        "conversation_id": place.conversation_id,
        "at": at,
    }
    with lend(con, wanted=wanted):
        # Who was a visitor in this session and opens it now is its learner.
        con.execute(query("session_note_learner"), {name: values[name] for name in values if name != "at"})
        noted = con.execute(query("session_note_rows"), values).fetchall()
    return int(noted[0][0])


# The candidate and its moves ----------------------------------------------------------------------------------------


def record(con: Connection, draft: Draft) -> Recorded:
    """Write the candidate."""
    seq = take_numbers(con, "seq")
    con.execute(
        "INSERT INTO session_changes (change_id, kind, operation, actor, target_id, session_id, brain_id, "
        "conversation_id, user_id, contributor_ids, before, after, state, trace_ids, ts_candidate, seq) "
        "VALUES ($change_id, $kind, $operation, $actor, $target_id, $session_id, $brain_id, $conversation_id, "
        "$user_id, $contributor_ids, $before, $after, $state, [], $at, $seq)",
        {
            "change_id": draft.change_id,
            "kind": draft.kind,
            "operation": draft.operation,
            "actor": draft.actor,
            "target_id": draft.target_id,
            "session_id": draft.place.session_id,
            "brain_id": draft.place.brain_id,
            "conversation_id": draft.place.conversation_id,
            "user_id": draft.place.user_id,
            "contributor_ids": list(draft.contributor_ids),
            "before": draft.before,
            "after": draft.after,
            "state": ChangeState.CANDIDATE.value,
            "at": draft.at,
            "seq": seq,
        },
    )
    return Recorded(draft.change_id, seq)


def state_of(con: Connection, change: Recorded) -> ChangeState:
    """Where a write stands."""
    rows = con.execute("SELECT state FROM session_changes WHERE seq = ?", [change.seq]).fetchall()
    return ChangeState(rows[0][0])


def noted_people(con: Connection, change: Recorded) -> list[str]:
    """The learner and the contributors in a write's row; who was forgotten before it began stands there as a hash."""
    rows = con.execute("SELECT user_id, contributor_ids FROM session_changes WHERE seq = ?", [change.seq]).fetchall()
    user_id, contributor_ids = rows[0]
    return [*([] if user_id is None else [user_id]), *contributor_ids]


def move(con: Connection, change: Recorded, target: ChangeState, **columns: object) -> None:
    """Move a write to another state, together with other columns of its row.

    Raises:
        Conflict: If the table of moves does not allow it from where the write stands.
    """
    # Column names are the callers' own words in this package; the values are bound.
    also = "".join(f", {name} = ${name}" for name in columns)
    moved = con.execute(
        f"UPDATE session_changes SET state = $target{also} "  # noqa: S608
        "WHERE seq = $seq AND list_contains($sources, state) RETURNING seq",
        {"target": target.value, "seq": change.seq, "sources": sources_of(target), **columns},
    ).fetchall()
    if not moved:
        raise Conflict(
            f"the memory write {change.change_id} is {state_of(con, change).value} and cannot become {target.value}; "
            "nothing was changed"
        )


# Writes under way in this process -----------------------------------------------------------------------------------

_under_way: set[str] = set()
_under_way_lock = threading.Lock()


@contextmanager
def under_way(change_id: str) -> Generator[None, None, None]:
    """Mark a write as being made by this process, so that opening the file a second time leaves it alone."""
    with _under_way_lock:
        _under_way.add(change_id)
    try:
        yield
    finally:
        with _under_way_lock:
            _under_way.discard(change_id)


def is_under_way(change_id: str) -> bool:
    """Is this process making the write right now?"""
    with _under_way_lock:
        return change_id in _under_way


# Values -------------------------------------------------------------------------------------------------------------


def as_json(value: object, what: str) -> str:
    """A value as compact JSON.

    Raises:
        InvalidInput: If JSON cannot carry it.

    Example:
        >>> as_json({"a": [1, None]}, "metadata")
        '{"a":[1,null]}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} cannot be written as JSON ({error}); nothing was written") from None
    return text


def need_text(value: object, what: str) -> str:
    """The value, if it is text that can be stored and is not empty.

    Raises:
        InvalidInput: If it is not.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}; nothing was written")
    if not value:
        raise InvalidInput(f"{what} is empty; nothing was written")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds half a character (a lone surrogate); nothing was written") from None
    return value


def need_texts(values: object, what: str) -> tuple[str, ...]:
    """The values as a tuple, if they are several texts and not one by mistake.

    Raises:
        InvalidInput: If they are not.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a sequence of texts, not {values!r}; nothing was written")
    return tuple(need_text(value, what) for value in cast("Iterable[object]", values))
