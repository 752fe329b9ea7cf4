"""The life of one pair of executors, fact by fact: what a single call does, and what the fold does to every edge.

A pair is one executor version and one destination, whatever the destination's version: ``(src_executor, src_version,
dst_executor)``. Its records are told apart by destination version and state, at most one of each. Facts come in order
of time; a tick (an ager instant) comes before facts of its instant. This is plain Python, for one record at a time;
``fold_kernel`` does the same for passings alone, for all edges together.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mnemokit.fold.edge_weights import fraction_left, is_empty_signature, live_floor
from mnemokit.instants import DAY_US
from mnemokit.records import EdgeParams, MnestState

ACTIVE, PROTO = MnestState.ACTIVE.value, MnestState.PROTO.value
DECAYING, SUPERSEDED = MnestState.DECAYING.value, MnestState.SUPERSEDED.value

DEMOTE_SEQ, MERGE_SEQ = -2, -1
"""Derived events of an ager carry these in place of a sequence number: they come first at their instant."""


@dataclass(slots=True)
class Record:
    """One mnest of the pair. ``life`` numbers the lives of a pair in order of birth; the one that names a record."""

    life: int
    dst_version: str | None
    state: str
    weight: float
    uses: int
    ts_first: int
    ts_last: int
    ts_used: int
    decay_lambda: float
    tags: tuple[str, ...]
    desired_sig: str | None
    untimed: bool

    @property
    def key(self) -> tuple[str | None, str]:
        """What tells it apart within its pair."""
        return (self.dst_version, self.state)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened to a pair.

    Attributes:
        kind: passing, transition, promote, or import (a record taken over as it stood elsewhere).
        ts: Microseconds since 1970.
        seq: Source order.
        dst_version: The edge it is about; None for a destination that did not exist.
        decay_lambda: Of a passing, per day.
        tags: Of a passing.
        desired_sig: Of a passing to a destination that did not exist.
        untimed: The passing has an order but no time.
        old_state: Of a transition: which record of the edge.
        new_state: Of a transition: what it becomes.
        promoted_to: Of a promotion: the version that now exists.
        imported: Of an import: the record as it stood at ``ts``.
        mnest_no: The stored record that it belonged to before; None for a new fact.
    """

    kind: str
    ts: int
    seq: int
    dst_version: str | None
    decay_lambda: float = 0.0
    tags: tuple[str, ...] = ()
    desired_sig: str | None = None
    untimed: bool = False
    old_state: str | None = None
    new_state: str | None = None
    promoted_to: str | None = None
    imported: Record | None = None
    mnest_no: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A row of history. ``fact`` is the index of the fact it tells of; None if it was derived."""

    kind: str
    ts: int
    seq: int
    life: int
    dst_version: str | None
    weight: float | None
    delta: float | None = None
    old_state: str | None = None
    new_state: str | None = None
    fact: int | None = None
    other: int | None = None
    last: Record | None = None
    refusal: str | None = None


@dataclass(slots=True)
class Pair:
    """The records of a pair, and what has happened to them since they were loaded.

    Attributes:
        params: The edge rule.
        ticks: Ager instants still to come, ascending.
        records: By destination version and state.
        numbers: The stored number of each life that has one.
        events: What happened, in order.
        ended: Lives that no longer name a record: the life that took them in, or None if they were purged.
        births: Lives so far.
        looked: Ticks already applied.
        aged: Of each stretch of ticks that a record decayed through: the first, the last, and whether it was a proto.
        ids: What to call the stored records in a message.
    """

    params: EdgeParams
    ticks: Sequence[int] = ()
    records: dict[tuple[str | None, str], Record] = field(default_factory=dict[tuple[str | None, str], Record])
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    events: list[Event] = field(default_factory=list[Event])
    ended: dict[int, int | None] = field(default_factory=dict[int, int | None])
    births: int = 0
    looked: int = 0
    aged: list[tuple[int, int, bool]] = field(default_factory=list[tuple[int, int, bool]])
    ids: Mapping[int, str] = field(default_factory=dict[int, str])
    taken: set[int] = field(default_factory=set[int])

    def load(self, record: Record, mnest_no: int) -> None:
        """Take in a stored record."""
        record.life = self.births
        self.births += 1
        self.numbers[record.life] = mnest_no
        self.taken.add(mnest_no)
        self.records[record.key] = record

    def live(self, facts: Sequence[Fact]) -> None:
        """Live through facts, sorted by time and source order, and through every tick that is left."""
        for index, fact in enumerate(facts):
            self.age_until(bisect_right(self.ticks, fact.ts))
            if fact.kind == "passing":
                self.passing(fact, index)
            elif fact.imported is not None:
                self.take_over(fact, fact.imported, index)
            else:
                self.act(fact, index)
        self.age_until(len(self.ticks))

    def passing(self, fact: Fact, index: int | None = 0) -> Record:
        """One passing: it strengthens the live record of its edge, or opens one."""
        params = self.params
        record = self.records.get((fact.dst_version, PROTO if fact.dst_version is None else ACTIVE))
        if record is None:
            record = self._open(fact)
            delta = params.start_weight
        else:
            days = 0.0 if record.untimed or fact.untimed else (fact.ts - record.ts_last) / DAY_US
            faded = record.weight * fraction_left(record.decay_lambda, days, math.exp)
            weight = min(faded + params.reinforcement, params.max_weight)
            delta = weight - record.weight
            record.weight = weight
            record.uses += 1
            record.ts_last = record.ts_used = fact.ts
            record.untimed = fact.untimed
            if fact.dst_version is None and not is_empty_signature(fact.desired_sig):
                record.desired_sig = fact.desired_sig
        self._keep_number(record.life, fact)
        self.events.append(
            Event("passing", fact.ts, fact.seq, record.life, fact.dst_version, record.weight, delta, fact=index)
        )
        return record

    def act(self, fact: Fact, index: int | None = 0) -> Event:
        """A transition or promotion asked for by a caller.

        It applies to the record of its edge in the state it was in when asked; else to the record it was asked of by
        id. Where neither is there, or the rules refuse it, it stays in history without effect: the event carries the
        refusal and no weight.
        """
        old_state = PROTO if fact.kind == "promote" else (fact.old_state or "")
        record = self.records.get((fact.dst_version, old_state)) or self._numbered(fact.mnest_no)
        refusal = "there is no such record" if record is None else self.refusal(record, fact)
        if record is None or refusal is not None:
            event = Event(fact.kind, fact.ts, fact.seq, -1, fact.dst_version, None, fact=index, refusal=refusal)
            self.events.append(event)
            return event
        old_state, state = record.state, ACTIVE if fact.kind == "promote" else (fact.new_state or "")
        event = Event(
            fact.kind,
            fact.ts,
            fact.seq,
            record.life,
            record.dst_version,
            record.weight,
            old_state=old_state,
            new_state=state,
            fact=index,
        )
        self.events.append(event)
        del self.records[record.key]
        if fact.kind == "promote":
            record.dst_version, record.desired_sig = fact.promoted_to, None
        self._enter(record, state, fact.ts, fact.seq)
        return event

    def take_over(self, fact: Fact, imported: Record, index: int | None = 0) -> None:
        """A record that lived elsewhere comes in as it stood; where one is there already, the two become one."""
        record = replace(imported, life=self.births)
        self.births += 1
        self._keep_number(record.life, fact)
        self.events.append(
            Event(fact.kind, fact.ts, fact.seq, record.life, record.dst_version, record.weight,
                  new_state=record.state, fact=index)
        )  # fmt: skip
        self._enter(record, record.state, fact.ts, fact.seq)

    def refusal(self, record: Record, fact: Fact) -> str | None:
        """Why the rules refuse to do this to a record; None if they do not."""
        if fact.kind == "promote":
            if record.state != PROTO:
                return f"it is {record.state}, and only a proto can be promoted"
            return self._taken(fact.promoted_to, ACTIVE)
        state = fact.new_state or ""
        if record.state == state:
            return f"it is {state} already"
        if state == PROTO:
            return "no record becomes a proto; a proto is made by a passing with dst_exists=False"
        if record.dst_version is None and state != SUPERSEDED:
            return "its destination has no version yet; promote it with promote_proto_to_active or supersede it"
        return self._taken(record.dst_version, state) if state == ACTIVE else None

    def age_until(self, tick: int) -> None:
        """Apply the ticks up to index ``tick`` (exclusive) to every live record, in closed form."""
        if tick <= self.looked:
            return
        since, self.looked = self.looked, tick
        for record in list(self.records.values()):
            if record.untimed or record.state not in (ACTIVE, PROTO):
                continue
            # A record that was brought up to date later than some of these ticks did not meet those.
            begin = max(since, bisect_right(self.ticks, record.ts_last))
            if begin >= tick:
                continue
            end = self._first_below(record, begin, tick)
            last = tick - 1 if end is None else end
            now = self.ticks[last]
            self.aged.append((begin, last, record.state == PROTO))
            record.weight = self._faded(record, now)
            record.ts_last = now
            if end is None:
                continue
            del self.records[record.key]
            if record.state == ACTIVE:
                self._derive("demote", now, DEMOTE_SEQ, record, DECAYING)
                self._enter(record, DECAYING, now, MERGE_SEQ)
            else:
                self._derive("purge", now, DEMOTE_SEQ, record, None)
                self.ended[record.life] = None

    def _open(self, fact: Fact) -> Record:
        state = PROTO if fact.dst_version is None else ACTIVE
        signature = None if fact.dst_version is not None or is_empty_signature(fact.desired_sig) else fact.desired_sig
        record = Record(
            life=self.births,
            dst_version=fact.dst_version,
            state=state,
            weight=self.params.start_weight,
            uses=1,
            ts_first=fact.ts,
            ts_last=fact.ts,
            ts_used=fact.ts,
            decay_lambda=fact.decay_lambda,
            tags=fact.tags,
            desired_sig=signature,
            untimed=fact.untimed,
        )
        self.births += 1
        self.records[record.key] = record
        return record

    def _enter(self, record: Record, state: str, ts: int, seq: int) -> None:
        """Give a record, taken out of ``records``, its new state; where one is there, the two become one."""
        record.state = state
        there = self.records.get(record.key)
        if there is None:
            self.records[record.key] = record
            return
        older, younger = (record, there) if record.ts_first < there.ts_first else (there, record)
        clock, other = (there, record) if there.ts_last > record.ts_last else (record, there)
        merged = Record(
            life=older.life,
            dst_version=record.dst_version,
            state=state,
            weight=clock.weight,
            uses=record.uses + there.uses,
            ts_first=older.ts_first,
            ts_last=clock.ts_last,
            ts_used=max(record.ts_used, there.ts_used),
            decay_lambda=clock.decay_lambda,
            tags=tuple(dict.fromkeys(older.tags + younger.tags)),
            desired_sig=other.desired_sig if is_empty_signature(clock.desired_sig) else clock.desired_sig,
            untimed=clock.untimed,
        )
        self.records[merged.key] = merged
        self.ended[younger.life] = older.life
        self.events.append(
            Event(
                "merge",
                ts,
                seq,
                younger.life,
                merged.dst_version,
                merged.weight,
                old_state=state,
                new_state=state,
                other=older.life,
            )
        )

    def _derive(self, kind: str, ts: int, seq: int, record: Record, new_state: str | None) -> None:
        last = None if new_state is not None else record
        self.events.append(
            Event(
                kind,
                ts,
                seq,
                record.life,
                record.dst_version,
                record.weight,
                old_state=record.state,
                new_state=new_state,
                last=last,
            )
        )

    def _first_below(self, record: Record, since: int, until: int) -> int | None:
        """Index of the first of these ticks that ends a record, if one does."""
        floor = live_floor(record.state, self.params)
        if self._faded(record, self.ticks[until - 1]) >= floor:
            return None
        return bisect_left(range(until), True, lo=since, key=lambda tick: self._faded(record, self.ticks[tick]) < floor)

    @staticmethod
    def _faded(record: Record, now: int) -> float:
        days = (now - record.ts_last) / DAY_US
        return record.weight * fraction_left(record.decay_lambda, days, math.exp)

    def _keep_number(self, life: int, fact: Fact) -> None:
        """A life keeps the number of the stored record that held its earliest known passing, unless it is taken."""
        if fact.mnest_no is None or life in self.numbers:
            return
        self.numbers[life] = NEW if fact.mnest_no in self.taken else fact.mnest_no
        self.taken.add(fact.mnest_no)

    def _numbered(self, mnest_no: int | None) -> Record | None:
        if mnest_no is None:
            return None
        found = (record for record in self.records.values() if self.numbers.get(record.life) == mnest_no)
        return next(found, None)

    def _taken(self, dst_version: str | None, state: str) -> str | None:
        there = self.records.get((dst_version, state))
        if there is None:
            return None
        number = self.numbers.get(there.life, NEW)
        return f"the same edge has the {state} record {self.ids.get(number, number)} already"


NEW = -1
"""In ``Pair.numbers``: this life needs a new number."""
