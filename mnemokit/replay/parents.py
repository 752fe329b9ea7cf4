"""Policies that say which procedure a replayed capture goes on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

import polars as pl

from mnemokit.reasonlets import capture as reasonlet_capture
from mnemokit.reasonlets.recall import RECALL_SCHEMA, Asked, recall
from mnemokit.store import Connection, Store

HALF = 0.5
"""How similar a question must be for the policy ``recall``: half of what the question itself would get."""


class Recall(Protocol):
    """What the memory would have recalled for the question of a capture, at its instant."""

    def __call__(self, *, limit: int = 1, min_similarity: float = 0.0) -> pl.DataFrame:
        """The rows of ``Reasonlets.recall``, best first; none if the capture has no question."""
        ...


ParentPolicy = Callable[[Mapping[str, object], Recall], str | None]
"""From a capture (scope, question, graph as JSON text, ts, subject, source, session_id) and its recall to the
reasonlet_id of its parent, or None."""


def recalled(_capture: Mapping[str, object], recall: Recall) -> str | None:
    """The procedure that a recall of the capture's question puts first, of those that are at least half as similar."""
    found = recall(limit=1, min_similarity=HALF)
    return None if found.is_empty() else found["reasonlet_id"][0]


PARENTS: dict[str, ParentPolicy | None] = {"same_question": None, "recall": recalled, "none": None}
"""Policies for parents, by name. Those without a function are settled for all captures of a replay at once:
``same_question`` takes the newest procedure of the same scope and question, ``none`` takes none."""


def capture_one_by_one(con: Connection, store: Store, captures: pl.DataFrame, policy: ParentPolicy) -> pl.DataFrame:
    """Write captures in the order of their instants, each with the parent that the policy finds among those before.

    Args:
        con: In a transaction.
        store: Whose ranking rule and keyed hash are used.
        captures: As ``reasonlets.capture.ingest`` takes them.
        policy: Which parent.

    Returns:
        The receipts, in the order of the captures' instants.
    """
    newest = _newest(con)
    receipts: list[pl.DataFrame] = []
    for row in captures.sort("ts", maintain_order=True).iter_slices(1):
        capture = row.select(_SHOWN).row(0, named=True)
        # As of an instant that nothing in the store is later than, it is as it stands, which is quicker to ask for.
        at = None if newest is None or capture["ts"] >= newest else capture["ts"]
        parent = policy(capture, _recall_for(con, store, capture, at))
        given = row.with_columns(parent_id=pl.lit(parent, pl.String))
        receipts.append(reasonlet_capture.ingest(con, given, store.keyed_hash, parents="given"))
    return pl.concat(receipts)


_SHOWN = ("scope", "question", "graph", "ts", "subject", "source", "session_id")


def _recall_for(con: Connection, store: Store, capture: Mapping[str, object], at: datetime | None) -> Recall:
    def asked(*, limit: int = 1, min_similarity: float = 0.0) -> pl.DataFrame:
        question = capture["question"]
        if question is None:
            return pl.DataFrame(schema=RECALL_SCHEMA)
        return recall(
            con,
            Asked(
                question=str(question),
                scope=str(capture["scope"]),
                limit=limit,
                min_similarity=min_similarity,
                params=store.rank_params,
                subject=None,
                at=at,
                embedder=None,
            ),
            keep=False,
        )

    return asked


def _newest(con: Connection) -> datetime | None:
    """The newest instant of anything that a recall looks at."""
    return con.execute(
        "SELECT greatest((SELECT max(ts_captured) FROM reasonlets), (SELECT max(ts_run) FROM runs), "
        "(SELECT max(ts_given) FROM feedback))"
    ).fetchall()[0][0]
