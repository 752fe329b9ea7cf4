"""A whole replay in plain Python, from rows of turns to edges and procedures: the slow truth."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from tests.oracles.edges import Fact, live_through

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NIGHT = timedelta(days=1)


def microseconds(ts):
    return (ts - EPOCH) // timedelta(microseconds=1)


def sessions_of(rows):
    """Rows with an executor, by session in the order of arrival, repeats left out."""
    seen, sessions = set(), defaultdict(list)
    for row in rows:
        key = (row["source"], row["session_id"], row["turn_id"], row["step"])
        if key in seen:
            continue
        seen.add(key)
        sessions[row["source"], row["session_id"]].append(row)
    return {
        key: sorted((r for r in steps if r["executor"]), key=lambda r: r["step"]) for key, steps in sessions.items()
    }


def passings_of(steps):
    """Each step of a group passes to each step of the next group."""
    groups, order = defaultdict(list), []
    for row in steps:
        if row["parallel_group"] not in groups:
            order.append(row["parallel_group"])
        groups[row["parallel_group"]].append(row)
    return [(a, b) for left, right in itertools.pairwise(order) for b in groups[right] for a in groups[left]]


def nights_between(first, last, hour=3):
    """Every night's instant after the first passing, up to the last."""
    night = first.replace(hour=hour, minute=0, second=0, microsecond=0)
    nights = []
    while night <= last:
        if night > first:
            nights.append(night)
        night += NIGHT
    return nights


def edges_of(rows, *, nightly=True, extra_nights=()):
    """The world of edges after a replay of timed turns."""
    facts = []
    for steps in sessions_of(rows).values():
        for a, b in passings_of(steps):
            facts.append(
                Fact(
                    "passing",
                    microseconds(b["ts"]),
                    len(facts),
                    a["executor"],
                    a["executor_version"] or "unversioned",
                    b["executor"],
                    b["executor_version"] or "unversioned",
                )
            )
    nights = []
    if nightly and facts:
        times = [EPOCH + timedelta(microseconds=fact.ts) for fact in facts]
        nights = nights_between(min(times), max(times))
    return live_through(facts, sorted({microseconds(night) for night in [*nights, *extra_nights]}))


def captures_of(rows):
    """Kind, label and parent of each session's capture, in the order of time: (session, kind, version)."""
    newest, numbers, graphs, made = {}, {}, {}, []
    ready = []
    for (source, session), steps in sessions_of(rows).items():
        if steps:
            ready.append((steps[-1]["ts"], source, session, steps))
    for _, source, session, steps in sorted(ready, key=lambda item: item[0]):
        last = steps[-1]
        scope, question = last["scope"] or source, last["question"]
        graph = json.dumps(
            [
                sorted({row["executor"] for row in steps}),
                sorted({(a["executor"], b["executor"]) for a, b in passings_of(steps)}),
            ]
        )
        parent = newest.get((scope, question)) if question is not None else None
        if parent is not None and graphs[parent] == graph:
            made.append((session, "execution_only", f"1.{parent[1]}"))
            continue
        root = session if parent is None else parent[0]
        numbers[root] = numbers.get(root, -1) + 1
        mine = (root, numbers[root])
        graphs[mine] = graph
        newest[scope, question] = mine
        made.append((session, "new_reasonlet" if parent is None else "new_version", f"1.{mine[1]}"))
    return made
