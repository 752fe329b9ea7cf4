"""Memory writes, reverts and forgotten persons in plain Python, one rule at a time.

Nothing is fast here and nothing is shared with mnemokit. Traces are known by the ids that the tested store gave them:
the caller tells the model the id of a new trace, and the model says whether there should have been one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

OPEN = ("candidate", "applied")
LASTING = ("kept", "applied")


@dataclass(frozen=True)
class Trace:
    """A trace as it stands."""

    brain: str
    type: str
    scope: str | None
    content: str
    tags: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()


@dataclass
class Effect:
    """What a write did to one trace, and what the trace was before and after."""

    action: str
    trace_id: str
    before: Trace | None
    after: Trace | None


@dataclass
class Write:
    """One write. ``people`` are its contributors; a person forgotten is stored as a hashed name."""

    session: str
    learner: str
    brain: str
    conversation: str | None
    people: list[str]
    order: int
    operation: str = ""
    state: str = "candidate"
    blanked: bool = False
    effects: list[Effect] = field(default_factory=list)


@dataclass
class State:
    """A moment in a trace's past."""

    order: int
    ts: int
    trace_id: str
    trace: Trace | None
    write: str


def hashed(name: str) -> str:
    """Stands for the keyed hash of a name."""
    return f"#{name}"


class Model:
    """What a store of traces must hold after the same calls."""

    def __init__(self, anonymous: frozenset[str] = frozenset({"anonymous", "anonymous_user"})) -> None:
        self.anonymous = anonymous
        self.traces: dict[str, Trace] = {}
        self.writes: dict[str, Write] = {}
        self.past: list[State] = []
        self.rows: set[tuple[str, str, str, str, str | None]] = set()
        self.tombstones: set[str] = set()
        self.ever_forgotten: set[str] = set()
        self.born: dict[str, int] = {}
        self.order = 0

    # Persons ---------------------------------------------------------------------------------------------------------

    def stored(self, name: str) -> str:
        """A name as it may be written down now."""
        return hashed(name) if name in self.tombstones else name

    def people_of(self, trace_id: str) -> set[str]:
        """Everybody whose words are in a trace."""
        found: set[str] = set()
        for write in self.writes.values():
            wrote = any(e.trace_id == trace_id and e.action in ("created", "changed") for e in write.effects)
            if wrote and write.state in LASTING:
                found |= {write.learner, *write.people}
        return found

    def contributors(self, learner: str, given: list[str], traces: list[str]) -> list[str]:
        """The contributors of a write: those named, then those of the traces it replaces or names as parents."""
        inherited: set[str] = set()
        for trace_id in traces:
            inherited |= self.people_of(trace_id)
        inherited -= {learner} | self.anonymous
        people = [self.stored(name) for name in dict.fromkeys(given)]
        return people + sorted(name for name in map(self.stored, inherited) if name not in people)

    def note_rows(self, write: Write) -> None:
        """One row per session, person, brain and conversation; none for who is anonymous or forgotten."""
        for person, role in [(write.learner, "learner"), *((p, "visitor") for p in write.people)]:
            nobody = person in self.anonymous or person.startswith("#") or person in self.tombstones
            place = (write.session, write.brain, write.conversation)
            if nobody or (person == write.learner and role == "visitor"):
                continue
            there = {row for row in self.rows if (row[0], row[3], row[4]) == place and row[1] == person}
            if there and role == "learner":
                self.rows -= there
            if not there or role == "learner":
                self.rows.add((write.session, person, role, write.brain, write.conversation))

    # What each kind of write does: (action, trace id, the trace after it). New ids are the store's --------------------

    def add(self, new: Iterator[str], texts: list[str], trace: Trace) -> list[tuple[str, str, Trace | None]]:
        """A trace per text, unless the words are there already."""
        effects: list[tuple[str, str, Trace | None]] = []
        made: dict[str, str] = {}
        for text in texts:
            there = self.twin(replace(trace, content=text)) or made.get(text)
            if there is None:
                made[text] = next(new)
                effects.append(("created", made[text], replace(trace, content=text)))
            else:
                effects.append(("resolved", there, None))
        return effects

    def update(self, trace_id: str, **fields: object) -> list[tuple[str, str, Trace | None]]:
        """Only the given fields change."""
        return [("changed", trace_id, replace(self.traces[trace_id], **fields))]

    def delete(self, trace_ids: list[str]) -> list[tuple[str, str, Trace | None]]:
        """Those that are there go."""
        return [("deleted", trace_id, None) for trace_id in trace_ids if trace_id in self.traces]

    def merge(self, new: Iterator[str], trace_ids: list[str], text: str | None) -> list[tuple[str, str, Trace | None]]:
        """One new trace with the merged ones as parents, unless its words are there; the merged ones go."""
        merged = [self.traces[trace_id] for trace_id in trace_ids]
        content = "\n".join(trace.content for trace in merged) if text is None else text
        tags = tuple(dict.fromkeys(tag for trace in merged for tag in trace.tags))
        trace = replace(merged[0], content=content, tags=tags, parents=tuple(trace_ids))
        there = self.twin(trace, without=tuple(trace_ids))
        first = ("created", next(new), trace) if there is None else ("resolved", there, None)
        return [first, *self.delete(trace_ids)]

    def standing_summary(self, brain: str, conversation: str | None) -> str | None:
        """The rolling summary of this brain and conversation."""
        for trace_id in sorted(self.traces, key=lambda trace_id: -self.born[trace_id]):
            trace = self.traces[trace_id]
            for write in self.writes.values():
                made = any(e.trace_id == trace_id and e.action == "created" for e in write.effects)
                mine = (write.operation, write.brain, write.conversation) == ("rolling_summary", brain, conversation)
                if made and mine and trace.type == "summary":
                    return trace_id
        return None

    def rolling_summary(
        self, new: Iterator[str], brain: str, conversation: str | None, text: str
    ) -> list[tuple[str, str, Trace | None]]:
        """The summary so far is replaced in place."""
        there = self.standing_summary(brain, conversation)
        if there is None:
            return [("created", next(new), Trace(brain, "summary", None, text))]
        return [("changed", there, replace(self.traces[there], content=text, tags=(), parents=()))]

    # Writes ----------------------------------------------------------------------------------------------------------

    def begin(
        self,
        change: str,
        *,
        session: str,
        learner: str,
        brain: str,
        conversation: str | None = None,
        operation: str = "",
        people: list[str] | None = None,
        inherits: list[str] | None = None,
    ) -> Write:
        """The candidate, with its session rows."""
        self.order += 1
        contributors = self.contributors(learner, people or [], inherits or [])
        write = Write(session, learner, brain, conversation, contributors, self.order, operation)
        self.writes[change] = write
        self.note_rows(write)
        return write

    def twin(self, trace: Trace, without: tuple[str, ...] = ()) -> str | None:
        """The trace that holds the same words in the same brain, scope and type, the oldest if there are several."""
        for trace_id in sorted(self.traces, key=lambda trace_id: self.born[trace_id]):
            there = self.traces[trace_id]
            same = (there.brain, there.type, there.scope, there.content) == (
                trace.brain,
                trace.type,
                trace.scope,
                trace.content,
            )
            if same and trace_id not in without:
                return trace_id
        return None

    def apply(self, change: str, effects: list[tuple[str, str, Trace | None]], ts: int) -> None:
        """Do to the traces what the write does: (action, trace id, the trace after it)."""
        write = self.writes[change]
        write.state = "applied"
        for action, trace_id, after in effects:
            self.order += 1
            before = self.traces.get(trace_id)
            write.effects.append(Effect(action, trace_id, before, after))
            if action != "resolved":
                self.set_state(trace_id, after, ts, change)

    def set_state(self, trace_id: str, trace: Trace | None, ts: int, change: str) -> None:
        """Make a trace be so, from this instant or from the trace's latest one, whichever is later."""
        latest = max((state.ts for state in self.past if state.trace_id == trace_id), default=ts)
        self.past.append(State(self.order, max(ts, latest), trace_id, trace, change))
        if trace is None:
            self.traces.pop(trace_id, None)
        else:
            self.traces[trace_id] = trace
            self.born.setdefault(trace_id, self.order)

    def keep(self, change: str) -> None:
        """The verdict."""
        self.writes[change].state = "kept"

    def undo_unrecorded(self, change: str) -> None:
        """Created traces go, changed and deleted ones are back; the write never was."""
        write = self.writes[change]
        if write.state not in OPEN:
            return
        for effect in reversed(write.effects):
            if effect.action == "resolved":
                continue
            if effect.before is None:
                self.traces.pop(effect.trace_id, None)
            else:
                self.traces[effect.trace_id] = effect.before
        self.past = [state for state in self.past if state.write != change]
        write.state = "undone_unrecorded"

    # Reverts ---------------------------------------------------------------------------------------------------------

    def later_writes(self, change: str) -> set[str]:
        """Writes to the same traces after this one that still stand."""
        write = self.writes[change]
        mine = {effect.trace_id for effect in write.effects if effect.action != "resolved"}
        return {
            other_id
            for other_id, other in self.writes.items()
            if other.order > write.order
            and other.state in LASTING
            and any(e.trace_id in mine and e.action != "resolved" for e in other.effects)
        }

    def revert(self, change: str, ts: int) -> str:
        """Take a kept write back; the state it is in afterwards, or ``conflict``."""
        write = self.writes[change]
        if write.state != "kept":
            return write.state
        if self.later_writes(change):
            return "conflict"
        for effect in write.effects:
            if effect.action != "resolved":
                self.order += 1
                self.set_state(effect.trace_id, effect.before, ts, change)
        write.state = "reverted"
        return "reverted"

    # Forgetting ------------------------------------------------------------------------------------------------------

    def about(self, user: str) -> list[str]:
        """The changes about a person: they are the learner or a contributor."""
        names = {user, hashed(user)}
        return [change for change, write in self.writes.items() if names & {write.learner, *write.people}]

    def forget(self, user: str) -> set[str]:
        """Forget a person; the traces that are gone for good."""
        self.tombstones.add(user)
        self.ever_forgotten.add(user)
        about = self.about(user)
        doomed = {
            effect.trace_id
            for change in about
            if self.writes[change].state != "undone_unrecorded"
            for effect in self.writes[change].effects
            if effect.action != "resolved"
        }
        for trace_id in doomed:
            self.traces.pop(trace_id, None)
        self.past = [state for state in self.past if state.trace_id not in doomed]
        for change in about:
            write = self.writes[change]
            write.learner = hashed(user) if write.learner == user else write.learner
            write.people = list(dict.fromkeys(hashed(user) if name == user else name for name in write.people))
            write.blanked = True
            if write.state in OPEN:
                write.state = "undone_forgotten"
        for write in self.writes.values():
            write.effects = [effect for effect in write.effects if effect.trace_id not in doomed]
        for row in sorted(self.rows, key=repr):
            session, name, role, brain, conversation = row
            if name == user:
                self.rows.remove(row)
                already = any(
                    (s, u, b, c) == (session, hashed(user), brain, conversation) for s, u, _, b, c in self.rows
                )
                if not already:
                    self.rows.add((session, hashed(user), role, brain, conversation))
        return doomed

    def readmit(self, user: str) -> None:
        """Let a person in again; what was forgotten stays forgotten."""
        self.tombstones.discard(user)

    # Reading ---------------------------------------------------------------------------------------------------------

    def at(self, ts: int) -> dict[str, Trace]:
        """The traces as of an instant."""
        latest: dict[str, State] = {}
        for state in self.past:
            if state.ts <= ts:
                there = latest.get(state.trace_id)
                if there is None or (state.ts, state.order) >= (there.ts, there.order):
                    latest[state.trace_id] = state
        return {trace_id: replace(state.trace) for trace_id, state in latest.items() if state.trace is not None}
