"""The calls that read procedures: ranking, recall, lineages, explanations.

Here is only the thin shell: a call checks what a person gives and lets the rooms below work. Of these, only recall
writes, and only what it was asked and showed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.errors import InvalidInput, NotFound
from mnemokit.frames import INSTANT, INT, TEXT, conform
from mnemokit.instants import Instant, as_utc, at_or_now
from mnemokit.reasonlets import graph as graphs
from mnemokit.reasonlets import recall as recalls
from mnemokit.reasonlets.embedding import Embedder
from mnemokit.reasonlets.explain import Explanation, explain
from mnemokit.reasonlets.keys import (
    checked_count,
    checked_id,
    checked_number,
    checked_text,
    checked_words,
    erasure_after,
)
from mnemokit.reasonlets.ranking import needed_params, ranked
from mnemokit.records import ParentRate
from mnemokit.store import Connection, Store, fetch, query

LINEAGE_SCHEMA: dict[str, pl.DataType] = {
    "reasonlet_id": TEXT,
    "parent_id": TEXT,
    "root_id": TEXT,
    "version": TEXT,
    "depth": INT,
    "path": pl.List(TEXT),
    "siblings": INT,
    "children": INT,
    "descendants": INT,
    "high_water": INT,
    "scope": TEXT,
    "question": TEXT,
    "subject": TEXT,
    "graph_hash": TEXT,
    "ts_captured": INSTANT,
}
FOREST_SCHEMA: dict[str, pl.DataType] = {
    name: LINEAGE_SCHEMA[name]
    for name in ("reasonlet_id", "parent_id", "root_id", "version", "depth", "scope", "ts_captured")
}


@dataclass(frozen=True, slots=True)
class Reasonlet:
    """A procedure in one version.

    Attributes:
        reasonlet_id: Key.
        parent_id: What it is a version of; None for a root.
        root_id: Its lineage's first version.
        version: Its label.
        depth: Steps below the root.
        scope: Scope of its capture.
        question: What was asked; None is never recalled.
        subject: The person it belongs to.
        graph: The procedure: nodes, edges, properties.
        graph_hash: Hash of the graph's content.
        provenance: What the capture said of its origin.
        ts_captured: When it was captured, UTC.
        untimed: Its log had no times; the instant tells the order only.
        source: The replayed source; None if captured by a call.
    """

    reasonlet_id: str
    parent_id: str | None
    root_id: str
    version: str
    depth: int
    scope: str
    question: str | None
    subject: str | None
    graph: dict[str, object]
    graph_hash: str
    provenance: str | None
    ts_captured: datetime
    untimed: bool
    source: str | None


class ReasonletReads:
    """The reading half of ``mem.reasonlets``."""

    def __init__(self, store: Store) -> None:
        """Work on an open store."""
        self._store = store

    def rank(
        self,
        scope: str | None = None,
        at: Instant | None = None,
        k: float | None = None,
        parent_rate: ParentRate | None = None,
    ) -> pl.DataFrame:
        """Rank reasonlets by their rate, best first.

        Args:
            scope: Only this scope; None: all.
            at: As of this instant; None: as the store stands.
            k: Strength of the prior, in runs; None: the store's (2).
            parent_rate: ``"smoothed"`` or ``"raw"``; None: the store's (smoothed).

        Returns:
            One row per reasonlet; the columns of ``mk.rank``.

        Raises:
            InvalidInput: If k is no finite number above 0, parent_rate is unknown, scope is no text, or ``at`` has no
                time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     mem.reasonlets.rank().select("n", "s", "prior", "prior_source").rows()
            [(1, 1, 0.5, 'neutral')]
        """
        params, name = needed_params(self._store.rank_params, k, parent_rate), checked_words(scope, "scope")
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            return ranked(con, params, at=moment, scope=name)

    def recall(
        self,
        question: str,
        scope: str,
        limit: int = 10,
        min_similarity: float | None = None,
        weight: float | None = None,
        subject: str | None = None,
        at: Instant | None = None,
        log: bool = True,
        embedder: Embedder | None = None,
    ) -> pl.DataFrame:
        """Find the procedures that answer a question best: similar to it, and believed to be good.

        Args:
            question: What is asked.
            scope: Where to look.
            limit: How many rows at most.
            min_similarity: Leave out less similar ones (0 to 1); None: all that are similar at all.
            weight: How much the rate counts in the score, 0 to 1; None: the memory's (1).
            subject: The person who asks.
            at: As of this instant; None: as the store stands.
            log: Keep the recall and what it showed. A read-only store keeps nothing, and none keeps what is not later
                than an erasure of the scope or the subject. Given with ``at``, it is kept as of that instant, not of
                the present: pass ``log=False`` to look back without leaving a recall in the past.
            embedder: Compare by vectors instead of words (BM25).

        Returns:
            The columns of ``mk.rank``, and ``recall_id`` (null if nothing was kept), ``rank`` (from 1), ``similarity``
            and ``score``; best first. Empty if nothing is similar.

        Raises:
            InvalidInput: If an argument is out of its range, or the embedder is none, gives no proper vectors, or gives
                other dimensions than were kept under its name.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("shop", "refund an order", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     mem.reasonlets.recall("refund an order", scope="shop").select("rank", "similarity").rows()
            [(1, 1.0)]
        """
        most = checked_count(limit, "limit")
        least = 0.0 if min_similarity is None else checked_number(min_similarity, "min_similarity")
        if not 0 <= least <= 1:
            raise InvalidInput(f"min_similarity must be from 0 to 1, not {min_similarity!r}; nothing was recalled")
        params = self._store.rank_params
        asked = recalls.Asked(
            question=checked_text(question, "question"),
            scope=checked_text(scope, "scope"),
            limit=most,
            min_similarity=least,
            params=params if weight is None else dataclasses.replace(params, weight=checked_number(weight, "weight")),
            subject=None if subject is None else checked_text(subject, "subject"),
            at=None if at is None else as_utc(at),
            embedder=embedder,
        )
        if not log or self._store.read_only:
            with self._store.read() as con:
                return recalls.recall(con, asked, keep=False)
        now, keyed_hash = at_or_now(at), self._store.keyed_hash

        def work(con: Connection) -> pl.DataFrame:
            shown = recalls.recall(con, asked, keep=True)
            erased = erasure_after(con, keyed_hash, now, scope=asked.scope, subject=asked.subject)
            return shown if erased else recalls.log(con, asked, shown, now)

        return self._store.write(work)

    def get(self, reasonlet_id: str) -> Reasonlet:
        """One reasonlet.

        Args:
            reasonlet_id: Its id, as a receipt or a frame gives it.

        Returns:
            The reasonlet, with its graph as a mapping of nodes, edges and properties.

        Raises:
            NotFound: If it is unknown.
            InvalidInput: If the id is no text.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("shop", "refund an order", {"nodes": [{"id": "a"}]})
            ...     mem.reasonlets.get(made.reasonlet_id).graph
            {'edges': [], 'nodes': [{'id': 'a'}], 'properties': {}}
        """
        name = checked_id(reasonlet_id, "reasonlet_id")
        with self._store.read() as con:
            rows = fetch(con, query("reasonlet"), {"reasonlet_id": name}).rows(named=True)
        if not rows:
            raise NotFound(f"there is no reasonlet {reasonlet_id!r}; check the id")
        text = rows[0].pop("graph")
        return Reasonlet(graph=graphs.from_text(text), **rows[0])

    def diff(self, reasonlet_id: str, other_id: str | None = None) -> pl.DataFrame:
        """What a version changed: the difference from its parent (or from another reasonlet) to it.

        Args:
            reasonlet_id: The graph after.
            other_id: The graph before; None: the parent, or the empty graph for a root.

        Returns:
            One row per difference, the columns of ``graph.diff``: part, change (added, removed, changed), key, before,
            after (canonical JSON), property.

        Raises:
            NotFound: If one of them is unknown.
            InvalidInput: If an id is no text.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     old = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}).reasonlet_id
            ...     new = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}, {"id": "b"}]}, parent_id=old)
            ...     mem.reasonlets.diff(new.reasonlet_id).select("part", "change", "key").rows()
            [('node', 'added', 'b')]
        """
        with self._store.read():  # both as of one moment
            after = self.get(reasonlet_id)
            before_id = after.parent_id if other_id is None else checked_id(other_id, "other_id")
            before = {} if before_id is None else self.get(before_id).graph
        return graphs.diff(before, after.graph)

    def lineage(self, reasonlet_id: str, at: Instant | None = None) -> pl.DataFrame:
        """The whole lineage that a reasonlet belongs to.

        Args:
            reasonlet_id: Any version of it.
            at: As of this instant; None: as it stands. A parent that was captured later is not known then:
                ``parent_id`` is null, ``root_id``, ``depth`` and ``path`` begin at the version itself, and
                ``high_water`` is the highest number among the versions of that root at that time.

        Returns:
            One row per version, by label: ``reasonlet_id, parent_id, root_id, version, depth, path`` (ids from the root
            to it), ``siblings, children, descendants`` (how many), ``high_water`` (the highest number ever given out),
            ``scope, question, subject, graph_hash, ts_captured``.

        Raises:
            NotFound: If the reasonlet is unknown.
            InvalidInput: If the id is no text, or ``at`` has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     old = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}).reasonlet_id
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "b"}]}, parent_id=old)
            ...     mem.reasonlets.lineage(old).select("version", "depth", "descendants").rows()
            [('1.0', 0, 1), ('1.1', 1, 0)]
        """
        moment, name = None if at is None else as_utc(at), checked_id(reasonlet_id, "reasonlet_id")
        with self._store.read() as con:
            rows = con.execute("SELECT root_id FROM reasonlets WHERE reasonlet_id = ?", [name]).fetchall()
            if not rows:
                raise NotFound(f"there is no reasonlet {reasonlet_id!r}; check the id")
            found = conform(fetch(con, query("lineage"), {"root_id": rows[0][0], "at": moment}), LINEAGE_SCHEMA)
        own = found.filter(reasonlet_id=name)["root_id"]
        # As of a time, versions that only a later root joined stand apart.
        return found.filter(pl.col("root_id") == own.item()) if own.len() else found

    def forest(self, at: Instant | None = None) -> pl.DataFrame:
        """Where every reasonlet stands: its root and its depth.

        Args:
            at: As of this instant; None: as the store stands.

        Returns:
            One row per reasonlet: ``reasonlet_id, parent_id, root_id, version, depth`` (steps below the root), ``scope,
            ts_captured`` (UTC).

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     old = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}).reasonlet_id
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "b"}]}, parent_id=old)
            ...     sorted(mem.reasonlets.forest().select("version", "depth", "scope").rows())
            [('1.0', 0, 's'), ('1.1', 1, 's')]
        """
        with self._store.read() as con:
            moment = None if at is None else as_utc(at)
            return conform(fetch(con, query("forest"), {"at": moment}), FOREST_SCHEMA)

    def explain(
        self,
        reasonlet_id: str,
        at: Instant | None = None,
        k: float | None = None,
        parent_rate: ParentRate | None = None,
    ) -> Explanation:
        """Why a reasonlet ranks where it does.

        Args:
            reasonlet_id: The reasonlet.
            at: As of this instant; None: as the store stands.
            k: Strength of the prior, in runs; None: the store's (2).
            parent_rate: ``"smoothed"`` or ``"raw"``; None: the store's (smoothed).

        Returns:
            The sentence, the numbers, the parent's numbers, and what each run did to the rate (frame ``runs``: run_id,
            ts_run, outcome, verdict, counted, n, s, rate, change).

        Raises:
            NotFound: If it is unknown, or was captured later than ``at``.
            InvalidInput: If k is no finite number above 0, parent_rate is unknown, or ``at`` has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     why = mem.reasonlets.explain(made.reasonlet_id)
            >>> why.runs.select("n", "s", pl.col("rate", "change").round(4)).rows()
            [(1, 1, 0.6667, 0.1667)]
        """
        params = needed_params(self._store.rank_params, k, parent_rate)
        name = checked_id(reasonlet_id, "reasonlet_id")
        with self._store.read() as con:
            return explain(con, name, params, None if at is None else as_utc(at))
