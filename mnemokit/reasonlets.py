"""The procedural memory: procedures that were captured, their versions, and how their runs went.

``Reasonlets`` is the thin shell: it checks what a person gives, opens one transaction, and calls the rooms that do the
work (capture, ranking, recall, erasure, exchange).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from mnemokit import graph as graphs
from mnemokit import reasonlet_calls as calls
from mnemokit import reasonlet_erasure as erasure
from mnemokit import recall as recalls
from mnemokit.embedding import Embedder
from mnemokit.errors import InvalidInput, NotFound
from mnemokit.frames import INSTANT, INT, TEXT, conform
from mnemokit.instants import Instant, as_utc, at_or_now
from mnemokit.ranking import needed_params, ranked
from mnemokit.reasonlet_capture import RECEIPTS_SCHEMA, batch_from_frame, ingest
from mnemokit.reasonlet_erasure import ErasureReceipt, PruneReceipt
from mnemokit.reasonlet_explain import Explanation, explain
from mnemokit.reasonlet_keys import checked_outcome, checked_provenance, checked_text, checked_words, erasure_after
from mnemokit.records import Outcome, ParentRate, Receipt
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


class Reasonlets:
    """Procedures in versions, with their runs; hangs on a memory as ``mem.reasonlets``."""

    def __init__(self, store: Store) -> None:
        """Work on an open store."""
        self._store = store

    def capture(
        self,
        scope: str,
        question: str | None,
        graph: graphs.Graph | str,
        outcome: Outcome | None = None,
        subject: str | None = None,
        provenance: object = None,
        parent_id: str | None = None,
        recall_id: str | None = None,
        at: Instant | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Capture a procedure that was carried out, and the run that it was.

        Without a parent it is a new reasonlet; with a parent of equal graph it is one more run of that parent; with a
        parent of another graph it is a new version of it. All of it happens, or nothing.

        Args:
            scope: Where the procedure belongs; a parent must be of the same scope.
            question: What was asked. None is kept but never recalled.
            graph: ``{"nodes": [{"id", ...}], "edges": [{"src", "dst", ...}], "properties": {...}}``, or its JSON text.
            outcome: ``"success"``, ``"failure"``, or None if unknown (counts neither way).
            subject: The person it was done for.
            provenance: Where it came from: a text, or anything that JSON can carry.
            parent_id: The reasonlet that this is a version or a run of.
            recall_id: The recall that it followed.
            at: When; an aware instant. Left out: now.
            key: Idempotency key: the same key again returns the first receipt and writes nothing.

        Returns:
            The receipt: kind, reasonlet_id, version, run_id.

        Raises:
            InvalidInput: If a value cannot be kept; see ``graph.canonical``.
            NotFound: If the parent is not in this scope, or the recall is unknown.
            Forgotten: If scope or subject were erased later than ``at``.
            Conflict: If the key was used for another call.

        Example:
            >>> import mnemokit as mk
            >>> plan = {"nodes": [{"id": "look"}, {"id": "book"}], "edges": [{"src": "look", "dst": "book"}]}
            >>> with mk.open() as mem:
            ...     first = mem.reasonlets.capture("travel", "book a flight", plan, outcome="success")
            ...     plan["nodes"].append({"id": "pay"})
            ...     second = mem.reasonlets.capture("travel", "book a flight", plan, parent_id=first.reasonlet_id)
            >>> str(second.kind), second.version
            ('new_version', '1.1')
        """
        given = calls.Capture(
            scope=checked_text(scope, "scope"),
            question=checked_words(question, "question"),
            content=graphs.canonical(graph),
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            provenance=checked_provenance(provenance),
            parent_id=parent_id,
            recall_id=recall_id,
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.capture(con, given, self._store.keyed_hash))

    def capture_many(self, captures: pl.DataFrame) -> pl.DataFrame:
        """Capture a batch, set-based, in one transaction.

        Args:
            captures: ``scope`` and ``graph`` (JSON text; or structs of nodes, edges and properties, whose null fields
                are left out, since a struct cannot tell null from absent), and where there are any ``question,
                outcome, subject, provenance, parent_id, recall_id, ts`` (Datetime, UTC; null or left out: now),
                ``key``. Captures are settled in the order of their instants, then of their rows.

        Returns:
            A row per capture, in the order given: ``kind, reasonlet_id, version, run_id, written``. ``written`` is
            false for a key that was seen before; kind ``forgotten``, without ids, tells of a capture that an erasure
            refuses.

        Raises:
            InvalidInput: If a value cannot be kept; the row is named.
            NotFound: If a parent is not in the scope of its capture.

        Example:
            >>> import mnemokit as mk
            >>> captures = pl.DataFrame({"scope": ["s", "s"], "graph": ['{"nodes":[{"id":"a"}]}', "{}"]})
            >>> with mk.open() as mem:
            ...     mem.reasonlets.capture_many(captures)["kind"].to_list()
            ['new_reasonlet', 'new_reasonlet']
        """
        keyed_hash = self._store.keyed_hash
        batch = batch_from_frame(captures, at_or_now(None), keyed_hash)
        if batch.is_empty():
            return pl.DataFrame(schema=RECEIPTS_SCHEMA)
        return self._store.write(lambda con: ingest(con, batch, keyed_hash))

    def record_run(
        self,
        reasonlet_id: str,
        outcome: Outcome | None,
        subject: str | None = None,
        provenance: object = None,
        at: Instant | None = None,
        key: str | None = None,
        recall_id: str | None = None,
    ) -> str:
        """Record one more run of a reasonlet.

        Args:
            reasonlet_id: What was run.
            outcome: ``"success"``, ``"failure"``, or None if unknown.
            subject: The person it was run for.
            provenance: Where this is known from: a text, or anything that JSON can carry.
            at: When; left out: now.
            key: Idempotency key: the same key again returns the first run's id and writes nothing.
            recall_id: The recall that it followed.

        Returns:
            The run's id.

        Raises:
            NotFound: If the reasonlet or the recall is unknown.
            Forgotten: If scope or subject were erased later than ``at``.
        """
        given = calls.Run(
            reasonlet_id=reasonlet_id,
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            provenance=checked_provenance(provenance),
            recall_id=recall_id,
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.record_run(con, given, self._store.keyed_hash))

    def feedback(
        self,
        run_id: str,
        outcome: Outcome | None,
        subject: str | None = None,
        note: str | None = None,
        at: Instant | None = None,
        key: str | None = None,
    ) -> str:
        """Give a verdict on a run. The latest verdict replaces the run's own outcome; the run still counts once.

        Args:
            run_id: The run that is judged.
            outcome: ``"success"``, ``"failure"``, or None: unknown after all.
            subject: The person who judges.
            note: Their words.
            at: When; left out: now.
            key: Idempotency key: the same key again returns the first id and writes nothing.

        Returns:
            The feedback's id.

        Raises:
            NotFound: If the run is unknown.
            Forgotten: If the subject was erased later than ``at``.
        """
        given = calls.Feedback(
            run_id=run_id,
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            note=checked_words(note, "note"),
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.give_feedback(con, given, self._store.keyed_hash))

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

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     mem.reasonlets.rank().select("n", "s", "prior", "prior_source").rows()
            [(1, 1, 0.5, 'neutral')]
        """
        params = needed_params(self._store.rank_params, k, parent_rate)
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            return ranked(con, params, at=moment, scope=scope)

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
                than an erasure of the scope or the subject.
            embedder: Compare by vectors instead of words (BM25).

        Returns:
            The columns of ``mk.rank``, and ``recall_id`` (null if nothing was kept), ``rank`` (from 1), ``similarity``
            and ``score``; best first. Empty if nothing is similar.

        Raises:
            InvalidInput: If an argument is out of its range.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("shop", "refund an order", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     mem.reasonlets.recall("refund an order", scope="shop").select("rank", "similarity").rows()
            [(1, 1.0)]
        """
        if limit < 1:
            raise InvalidInput(f"limit must be at least 1, not {limit!r}; nothing was recalled")
        least = 0.0 if min_similarity is None else min_similarity
        if not 0 <= least <= 1:
            raise InvalidInput(f"min_similarity must be from 0 to 1, not {min_similarity!r}; nothing was recalled")
        params = self._store.rank_params
        asked = recalls.Asked(
            question=checked_text(question, "question"),
            scope=checked_text(scope, "scope"),
            limit=limit,
            min_similarity=least,
            params=params if weight is None else dataclasses.replace(params, weight=weight),
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

        Raises:
            NotFound: If it is unknown.
        """
        with self._store.read() as con:
            rows = fetch(con, query("reasonlet"), {"reasonlet_id": reasonlet_id}).rows(named=True)
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
            The rows of ``graph.diff``: part, change, key, before, after.

        Raises:
            NotFound: If one of them is unknown.
        """
        after = self.get(reasonlet_id)
        before_id = after.parent_id if other_id is None else other_id
        return graphs.diff({} if before_id is None else self.get(before_id).graph, after.graph)

    def lineage(self, reasonlet_id: str, at: Instant | None = None) -> pl.DataFrame:
        """The whole lineage that a reasonlet belongs to.

        Args:
            reasonlet_id: Any version of it.
            at: As of this instant; None: as it stands.

        Returns:
            One row per version, by label: ``reasonlet_id, parent_id, root_id, version, depth, path`` (ids from the root
            to it), ``siblings, children, descendants`` (how many), ``high_water`` (the highest number ever given out),
            ``scope, question, subject, graph_hash, ts_captured``.

        Raises:
            NotFound: If the reasonlet is unknown.
        """
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            rows = con.execute("SELECT root_id FROM reasonlets WHERE reasonlet_id = ?", [reasonlet_id]).fetchall()
            if not rows:
                raise NotFound(f"there is no reasonlet {reasonlet_id!r}; check the id")
            return conform(fetch(con, query("lineage"), {"root_id": rows[0][0], "at": moment}), LINEAGE_SCHEMA)

    def forest(self, at: Instant | None = None) -> pl.DataFrame:
        """Where every reasonlet stands: its root and its depth.

        Returns:
            One row per reasonlet: ``reasonlet_id, parent_id, root_id, version, depth, scope, ts_captured``.
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

        Returns:
            The sentence, the numbers, the parent's numbers, and what each run did to the rate.

        Raises:
            NotFound: If it is unknown, or was captured later than ``at``.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     why = mem.reasonlets.explain(made.reasonlet_id)
            >>> why.runs.select("n", "s", pl.col("rate", "change").round(4)).rows()
            [(1, 1, 0.6667, 0.1667)]
        """
        params = needed_params(self._store.rank_params, k, parent_rate)
        with self._store.read() as con:
            return explain(con, reasonlet_id, params, None if at is None else as_utc(at))

    def erase_scope(self, scope: str, at: Instant | None = None) -> ErasureReceipt:
        """Erase everything of a scope: reasonlets, runs, feedback, recalls, and what the log says of it.

        A keyed hash of the scope's name stays, so that replaying an old log recreates nothing. The bytes leave the file
        with ``mem.scrub()``.

        Args:
            scope: The scope.
            at: When it is erased; left out: now. What happens later can be recorded again.

        Returns:
            Counts of what went; all 0, and nothing written, if there was nothing.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     receipt = mem.reasonlets.erase_scope("s")
            >>> receipt.reasonlets, receipt.runs
            (1, 1)
        """
        name, moment = checked_text(scope, "scope"), at_or_now(at)
        return self._store.write(lambda con: erasure.erase_scope(con, name, moment, self._store.keyed_hash))

    def erase_subject(self, subject: str, at: Instant | None = None) -> ErasureReceipt:
        """Erase a person: what belongs to them, what they did elsewhere, and their words in the log.

        Everyone else's reasonlets stay; a kept child of an erased one becomes the root of its own lineage, keeps its
        label, and ranks with the neutral prior. A keyed hash of the id stays, so that replaying an old log recreates
        nothing. The bytes leave the file with ``mem.scrub()``.

        Args:
            subject: The person's id.
            at: When they are erased; left out: now. What happens later can be recorded again.

        Returns:
            Counts of what went; all 0, and nothing written, if there was nothing.
        """
        name, moment = checked_text(subject, "subject"), at_or_now(at)
        return self._store.write(lambda con: erasure.erase_subject(con, name, moment, self._store.keyed_hash))

    def prune(self, unused_for: timedelta, now: Instant | None = None, dry_run: bool = False) -> PruneReceipt:
        """Remove reasonlets that had no run, and no recall that showed them, for a time.

        One with a version below it that was used stays: no kept version ever loses its parent. What came from a log
        without times stays too, since nobody can tell when it was used. A lineage's labels are not given out again.

        Args:
            unused_for: For how long; use exactly so long ago is no use any more.
            now: The instant to count back from; left out: now.
            dry_run: Only tell what would go.

        Returns:
            Counts, and the ids of the reasonlets.

        Example:
            >>> from datetime import timedelta
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {}, at="2025-01-01T00:00:00Z")
            ...     mem.reasonlets.prune(timedelta(days=30), now="2025-03-01T00:00:00Z", dry_run=True).reasonlets
            1
        """
        moment = at_or_now(now, "now")
        if dry_run:
            with self._store.read() as con:
                return erasure.prune(con, unused_for, moment, dry_run=True)
        return self._store.write(lambda con: erasure.prune(con, unused_for, moment, dry_run=False))

    def _key(self, key: str | None) -> str | None:
        return None if key is None else self._store.keyed_hash(checked_text(key, "key"))
