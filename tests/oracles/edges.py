"""The edge rules, one small step after another: the slow truth that the fast code is held to.

A history is a list of facts (passings, transitions, promotions) and a list of ager instants. ``live_through`` steps
through all of it in order of time, an ager before anything else of the same instant, facts of one instant by ``seq``.
Every record is decayed night by night, with nothing skipped and nothing in closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

DAY = 86_400_000_000  # microseconds
START, STEP, CAP = 0.30, 0.15, 1.0
DEMOTE, PURGE = 0.20, 0.05
TOLERANCE = 1e-9
ARCHIVE_DAYS = 90


@dataclass(frozen=True)
class Fact:
    """Something that happened: kind is passing, transition or promote."""

    kind: str
    ts: int
    seq: int
    src: str
    src_version: str
    dst: str
    dst_version: str | None  # None: to an executor that does not exist yet
    decay_lambda: float = 0.018
    tags: tuple[str, ...] = ()
    desired_sig: str | None = None
    untimed: bool = False
    old_state: str = ""  # transition: which record of the edge
    new_state: str = ""  # transition: what it becomes
    promoted_to: str = ""  # promote: the version that now exists
    life: int | None = None  # transition, promote: the record meant, where the edge and state do not find it


@dataclass
class Record:
    """A mnest, with the lives (numbered in order of birth) that are in it; the first one names it."""

    lives: list[int]
    src: str
    src_version: str
    dst: str
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
    def edge(self) -> tuple[str, str, str, str | None]:
        return (self.src, self.src_version, self.dst, self.dst_version)


@dataclass
class World:
    """Everything after the last step."""

    records: list[Record] = field(default_factory=list)
    events: list[tuple] = field(default_factory=list)
    # (kind, ts, seq, life, weight, delta, old_state, new_state); for a merge: life ends in life `other`, at the end
    nights: list[tuple[int, Counter]] = field(default_factory=list)
    births: int = 0
    without_effect: list[Fact] = field(default_factory=list)

    def find(self, edge: tuple, state: str) -> Record | None:
        for record in self.records:
            if record.edge == edge and record.state == state:
                return record
        return None


def live_through(facts: list[Fact], nights: list[int]) -> World:
    """The world after all facts and all nights."""
    world = World()
    steps = [(fact.ts, 1, fact.seq, fact) for fact in facts] + [(night, 0, 0, None) for night in set(nights)]
    for ts, _, _, fact in sorted(steps, key=lambda step: step[:3]):
        if fact is None:
            night_falls(world, ts)
        elif fact.kind == "passing":
            pass_over(world, fact)
        elif fact.kind == "transition":
            change_state(world, fact)
        else:
            promote(world, fact)
    return world


def days_between(before: Record, ts: int, untimed: bool) -> float:
    return 0.0 if before.untimed or untimed else (ts - before.ts_last) / DAY


def below(weight: float, threshold: float) -> bool:
    return weight < threshold * (1 - TOLERANCE)


def is_empty(signature: str | None) -> bool:
    return signature is None or signature.strip() in ("", "{}", "null")


def pass_over(world: World, fact: Fact) -> None:
    """One passing: it strengthens the live record of its edge, or opens one."""
    edge = (fact.src, fact.src_version, fact.dst, fact.dst_version)
    state = "proto" if fact.dst_version is None else "active"
    record = world.find(edge, state)
    if record is None:
        record = Record(
            [world.births], *edge, state, START, 1, fact.ts, fact.ts, fact.ts, fact.decay_lambda, fact.tags,
            None if is_empty(fact.desired_sig) else fact.desired_sig, fact.untimed,
        )  # fmt: skip
        world.births += 1
        world.records.append(record)
        delta = START
    else:
        before = record.weight
        decayed = before * math.exp(-record.decay_lambda * days_between(record, fact.ts, fact.untimed))
        record.weight = min(CAP, decayed + STEP)
        record.uses += 1
        record.ts_last = record.ts_used = fact.ts
        record.untimed = fact.untimed
        if not is_empty(fact.desired_sig):
            record.desired_sig = fact.desired_sig
        delta = record.weight - before
    world.events.append(("passing", fact.ts, fact.seq, record.lives[0], record.weight, delta, None, None))


def night_falls(world: World, now: int) -> None:
    """One ager run: decay, then demote, then purge."""
    counts: Counter = Counter()
    for record in world.records:
        if record.state in ("active", "proto") and not record.untimed and record.ts_last < now:
            record.weight *= math.exp(-record.decay_lambda * (now - record.ts_last) / DAY)
            record.ts_last = now
            counts["decayed"] += 1
            counts["decayed_protos"] += record.state == "proto"
    for record in list(world.records):
        if record.state == "active" and not record.untimed and below(record.weight, DEMOTE):
            counts["demoted_to_decaying"] += 1
            world.events.append(("demote", now, 0, record.lives[0], record.weight, None, "active", "decaying"))
            counts["merged"] += enter(world, record, "decaying", now, 0)
    for record in list(world.records):
        if record.state == "proto" and not record.untimed and below(record.weight, PURGE):
            counts["purged_protos"] += 1
            world.events.append(("purge", now, 0, record.lives[0], record.weight, None, "proto", None))
            world.records.remove(record)
    for record in world.records:
        if record.state == "proto" and record.uses >= 3 and not below(record.weight, 0.30):
            counts["recurring_protos"] += 1
        if record.state == "decaying":
            days = 0.0 if record.untimed else (now - record.ts_last) / DAY
            faded = below(record.weight * math.exp(-record.decay_lambda * days), PURGE)
            counts["proposed_archive"] += faded and now - record.ts_used >= ARCHIVE_DAYS * DAY
    world.nights.append((now, counts))


def enter(world: World, record: Record, state: str, ts: int, seq: int) -> bool:
    """Give a record a new state; if there is one of that edge and state, the two become one. Was it so?"""
    there = world.find(record.edge, state)
    record.state = state
    if there is None:
        return False
    older, younger = (record, there) if record.ts_first < there.ts_first else (there, record)
    clock = there if there.ts_last > record.ts_last else record
    other = there if clock is record else record
    merged = Record(
        older.lives + younger.lives, *record.edge, state, clock.weight, record.uses + there.uses,
        older.ts_first, clock.ts_last, max(record.ts_used, there.ts_used), clock.decay_lambda,
        tuple(dict.fromkeys(older.tags + younger.tags)),
        other.desired_sig if is_empty(clock.desired_sig) else clock.desired_sig, clock.untimed,
    )  # fmt: skip
    world.records.remove(there)
    world.records[world.records.index(record)] = merged
    world.events.append(("merge", ts, seq, younger.lives[0], merged.weight, None, state, state, older.lives[0]))
    return True


def change_state(world: World, fact: Fact) -> None:
    """A caller changes a record's state by hand."""
    edge = (fact.src, fact.src_version, fact.dst, fact.dst_version)
    record = world.find(edge, fact.old_state) or held_by(world, fact)
    refused = (
        record is None
        or record.state == fact.new_state
        or fact.new_state == "proto"
        or (record.dst_version is None and fact.new_state != "superseded")
        or (fact.new_state == "active" and world.find(record.edge, "active") is not None)
    )
    if refused:
        world.without_effect.append(fact)
        return
    old_state = record.state
    world.events.append(
        ("transition", fact.ts, fact.seq, record.lives[0], record.weight, None, old_state, fact.new_state)
    )
    enter(world, record, fact.new_state, fact.ts, fact.seq)


def promote(world: World, fact: Fact) -> None:
    """The wanted executor exists now."""
    edge = (fact.src, fact.src_version, fact.dst, None)
    record = world.find(edge, "proto")
    target = (*edge[:3], fact.promoted_to)
    if record is None or world.find(target, "active") is not None:
        world.without_effect.append(fact)
        return
    record.state, record.dst_version, record.desired_sig = "active", fact.promoted_to, None
    world.events.append(("promote", fact.ts, fact.seq, record.lives[0], record.weight, None, "proto", "active"))


def held_by(world: World, fact: Fact) -> Record | None:
    return next((record for record in world.records if fact.life is not None and fact.life in record.lives), None)


def weight_at(record: Record, at: int) -> float:
    """What a record's weight has faded to by an instant."""
    days = 0.0 if record.untimed else (at - record.ts_last) / DAY
    return record.weight * math.exp(-record.decay_lambda * days)


def as_of(facts: list[Fact], nights: list[int], at: int) -> World:
    """The world as it stood at an instant: nothing later has happened."""
    return live_through([replace(fact) for fact in facts if fact.ts <= at], [n for n in nights if n <= at])
