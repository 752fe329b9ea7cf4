"""The edge memory: weighted edges from executor to executor, with everything that ever happened to them.

``Mnests`` is the thin shell: it checks what a person gives, opens one transaction, and calls the rooms that do the
work. ``ingest``, ``withdraw`` and ``withdraw_passings`` are its bulk doors, for replay.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from mnemokit.errors import InvalidInput, NotFound
from mnemokit.fold.edge_weights import LIVE_STATES, floor_of
from mnemokit.frames import conform
from mnemokit.instants import Instant, as_utc, at_or_now
from mnemokit.mnests import calls, metnos
from mnemokit.mnests.bulk import ingest, withdraw, withdraw_passings
from mnemokit.mnests.metnos import MetnosReport
from mnemokit.mnests.names import (
    Signature,
    asked_text,
    checked_count,
    checked_name,
    checked_rate,
    checked_signature,
    checked_tags,
)
from mnemokit.mnests.reads import (
    MNEST_EVENTS,
    ExecutorSummary,
    Mnest,
    MnestStats,
    count_states,
    mnests_at,
    one_record,
    summarise,
    superseded_for,
)
from mnemokit.mnests.views import MnestViews
from mnemokit.mnests.walk import checked_states
from mnemokit.reasonlets.keys import checked_number
from mnemokit.records import AgerStats, MnestState
from mnemokit.store import Connection, fetch, query

__all__ = ["Mnests", "ingest", "withdraw", "withdraw_passings"]


class Mnests(MnestViews):
    """Weighted edges between executors: telemetry that a caller passed one's output to another.

    Every read takes ``at``: left out, the store as it stands (column ``weight_at`` equals ``weight``); given, the store
    as of that instant, with ``weight_at`` what each weight has faded to by then, which is what filters, order and means
    go by.

    Every call raises ``InvalidInput`` once the memory is closed, and for an instant that is none or has no time zone;
    every call that writes raises ``ReadOnly`` if the memory was opened for reading only.
    """

    # Writing ---------------------------------------------------------------------------------------------------

    def record_passing(
        self,
        src: str,
        src_version: str,
        dst: str,
        dst_version: str | None = None,
        dst_exists: bool = True,
        desired_sig: Signature | None = None,
        tags: Sequence[str] | None = None,
        decay_lambda: float | None = None,
        turn_id: str | None = None,
        at: Instant | None = None,
        key: str | None = None,
    ) -> str:
        """Record that a caller passed one executor's output to another.

        The first passing of an edge opens it at weight 0.30; each later one lets the weight decay and adds 0.15, up
        to 1. It may come late: the result is that of arrival in order.

        Args:
            src: Executor whose output was passed.
            src_version: Its version.
            dst: Executor that received it.
            dst_version: Its version; None only if it does not exist yet.
            dst_exists: False makes or strengthens a proto: a wish for an executor.
            desired_sig: Wanted signature of a proto (summary, inputs, outputs, errors), as JSON text or a mapping; a
                later one that says something replaces the old one.
            tags: Labels, kept from the passing that opens an edge.
            decay_lambda: Decay rate per day of an edge that this opens; the store's default (0.018) if left out.
            turn_id: The turn it happened in.
            at: When; the present if left out.
            key: Idempotency key: the same key again returns the first id and writes nothing.

        Returns:
            The id of the record that the passing opened or strengthened.

        Raises:
            InvalidInput: If a name is empty or too long, a version is missing, or the rate is negative or not finite.
            Conflict: If the key belongs to another call.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     day = "2025-08-01T00:00:00+00:00"
            ...     edge = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at=day)
            ...     same = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at=day)
            ...     edge == same, round(mem.mnests.get(edge).weight, 9)
            (True, 0.45)
        """
        params = self._store.edge_params
        src, src_version = checked_name(src, "src"), checked_name(src_version, "src_version")
        dst = checked_name(dst, "dst")
        if dst_exists and dst_version is None:
            raise InvalidInput(
                f"dst_version is missing, and {dst!r} exists; nothing was written; give its version, or "
                "dst_exists=False if it is only wished for"
            )
        if not dst_exists and dst_version is not None:
            raise InvalidInput(
                f"dst_version={dst_version!r} is given though dst_exists=False; nothing was written; leave one out"
            )
        if dst_exists and desired_sig is not None:
            raise InvalidInput("desired_sig is what a missing executor should look like; give dst_exists=False with it")
        version = None if dst_version is None else checked_name(dst_version, "dst_version")
        rate = checked_rate(params.decay_lambda if decay_lambda is None else decay_lambda)
        labels, signature = checked_tags(tags), checked_signature(desired_sig)
        turn = None if turn_id is None else checked_name(turn_id, "turn_id")
        moment = None if at is None else as_utc(at)
        key_hash = None if key is None else self._store.keyed_hash(checked_name(key, "key"))

        def work(con: Connection) -> str:
            # Without an instant the present is taken inside the transaction, so that writers at once are in order.
            given = calls.Passing(src, src_version, dst, version, rate, labels, signature, turn, at_or_now(moment))
            return calls.record_passing(con, params, given, key_hash)

        return self._store.write(work)

    def apply_ager(self, now: Instant | None = None) -> AgerStats:
        """Let the edges age to an instant: decay, then demote the weak, then delete protos nobody wants any more.

        Args:
            now: The instant; the present if left out. Older than the newest run: nothing changes, and it is no run.

        Returns:
            What it did, counted in edges: decayed, decayed_protos, demoted_to_decaying, merged, purged_protos,
            recurring_protos, proposed_archive. The same instant again does nothing more.

        Raises:
            InvalidInput: If ``now`` is no instant, or has no time zone.
            ReadOnly: If the memory was opened for reading only.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.apply_ager("2025-09-01T00:00:00Z").demoted_to_decaying
            1
        """
        moment = None if now is None else as_utc(now, "now")
        params = self._store.edge_params
        return self._store.write(lambda con: calls.run_ager(con, params, at_or_now(moment, "now")))

    def transition_state(self, mnest_id: str, state: str, reason: str | None = None, at: Instant | None = None) -> None:
        """Give a record another state by hand.

        Args:
            mnest_id: The record.
            state: active, decaying or superseded. Nothing becomes a proto, and a proto can only be superseded or
                promoted. Where a decaying or superseded record of the edge is there already, the two become one.
            reason: Why.
            at: When; the present if left out.

        Raises:
            InvalidInput: If there is no such state.
            NotFound: If there is no such record, or there was none at that instant.
            Conflict: If it has that state already, or the rules refuse it, or the edge has an active record already.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     edge = mem.mnests.record_passing("find", "1.0", "buy", "1.0")
            ...     mem.mnests.transition_state(edge, "superseded", reason="replaced")
            ...     mem.mnests.get(edge).state
            'superseded'
        """
        if state not in set(MnestState):
            raise InvalidInput(f"state must be one of {', '.join(MnestState)}, not {state!r}; nothing was written")
        self._act("transition", mnest_id, str(state), reason, at)

    def promote_proto_to_active(
        self, mnest_id: str, dst_version: str, reason: str | None = None, at: Instant | None = None
    ) -> None:
        """The executor that a proto wished for exists now: the proto becomes an active edge to it.

        Args:
            mnest_id: The proto.
            dst_version: The version that exists now.
            reason: Why.
            at: When; the present if left out.

        Raises:
            InvalidInput: If the version is no text, is blank or too long, or ``at`` has no time zone.
            NotFound: If there is no such record, or there was none at that instant.
            Conflict: If it is no proto, or there is an active edge to that version already; the message names both.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     proto = mem.mnests.record_passing("find", "1.0", "buy", dst_exists=False, at="2025-08-01T00:00:00Z")
            ...     mem.mnests.promote_proto_to_active(proto, "1.0", reason="built", at="2025-08-02T00:00:00Z")
            ...     mem.mnests.get(proto).state, mem.mnests.get(proto).dst_version
            ('active', '1.0')
        """
        self._act("promote", mnest_id, MnestState.ACTIVE, reason, at, checked_name(dst_version, "dst_version"))

    def supersede_version(
        self,
        executor: str,
        old_version: str,
        new_version: str,
        reason: str | None = None,
        at: Instant | None = None,
    ) -> int:
        """A newer version takes an older one's place: every active or decaying edge from or to the old one ends.

        Args:
            executor: The executor.
            old_version: The version that is replaced.
            new_version: The version that replaces it; the history of each edge names it.
            reason: Why.
            at: When; the present if left out.

        Returns:
            How many records became superseded.

        Raises:
            InvalidInput: If a name or version is no text, is blank or too long, or both versions are the same.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0")
            ...     mem.mnests.supersede_version("buy", "1.0", "1.1", reason="released")
            1
        """
        name, old = checked_name(executor, "executor"), checked_name(old_version, "old_version")
        new = checked_name(new_version, "new_version")
        if old == new:
            raise InvalidInput(f"{name} {old} cannot supersede itself; nothing was written")
        moment = None if at is None else as_utc(at)
        params = self._store.edge_params
        return self._store.write(
            lambda con: calls.supersede_version(con, params, name, old, new, reason, at_or_now(moment))
        )

    def import_metnos(self, path: str | os.PathLike[str]) -> MetnosReport:
        """Take over the edge store of a Metnos system, with ids and history; see ``mnemokit.mnests.metnos``.

        Args:
            path: The SQLite file, with tables mnests, events and canonical_query_log; it is only read.

        Returns:
            Counts of what was taken over, and every row that could not be used, with the reason. A second time nothing
            is added.

        Raises:
            NotFound: If there is no such file.
            CorruptLog: If it is no SQLite file, or lacks a table or column; nothing was written.

        Example:
            >>> import sqlite3, tempfile
            >>> import mnemokit as mk
            >>> from mnemokit.mnests.metnos_file import COLUMNS
            >>> with tempfile.TemporaryDirectory() as folder, mk.open() as mem:
            ...     con = sqlite3.connect(f"{folder}/mnest.sqlite")
            ...     for name, columns in COLUMNS.items():
            ...         _ = con.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            ...     con.close()
            ...     mem.mnests.import_metnos(f"{folder}/mnest.sqlite").mnests
            0
        """
        return metnos.take_over(self._store, path)

    # Reading ---------------------------------------------------------------------------------------------------

    def frame(self, at: Instant | None = None) -> pl.DataFrame:
        """All records, in every state.

        Args:
            at: As of when; None: as they stand.

        Returns:
            The columns of ``mem.frame("mnests")``: weights from 0 to 1, decay_lambda per day, instants UTC.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.frame(at="2025-08-11T00:00:00Z").select("weight", pl.col("weight_at").round(4)).row(0)
            (0.3, 0.2506)
        """
        return self._records(at)

    def find(
        self,
        src: str,
        src_version: str,
        dst: str,
        dst_version: str | None = None,
        state: str = "active",
        at: Instant | None = None,
    ) -> str | None:
        """The id of the record of an edge in a state, or None.

        Args:
            src: Executor whose output is passed.
            src_version: Its version.
            dst: Executor that receives it.
            dst_version: Its version; None finds a proto, whose executor does not exist yet.
            state: active, proto, decaying or superseded.
            at: As of when; None: as the store stands.

        Returns:
            The id; None if there is no such record.

        Raises:
            InvalidInput: If a name or version is no text, there is no such state, or ``at`` is no instant with a time
                zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     edge = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.find("find", "1.0", "buy", "1.0") == edge, mem.mnests.find("find", "1.0", "pay", "1.0")
            (True, None)
        """
        checked_states([str(state)])
        for name, value in (("src", src), ("src_version", src_version), ("dst", dst)):
            asked_text(value, name)
        if dst_version is not None:
            asked_text(dst_version, "dst_version")
        found = self._records(at, src).filter(
            (pl.col("src_executor") == src)
            & (pl.col("src_version") == src_version)
            & (pl.col("dst_executor") == dst)
            & pl.col("dst_version").eq_missing(pl.lit(dst_version, pl.String()))
            & (pl.col("state") == str(state))
        )
        return found["mnest_id"].item() if found.height else None

    def get(self, mnest_id: str, at: Instant | None = None) -> Mnest:
        """One record.

        Args:
            mnest_id: Its id.
            at: As of when; None: as it stands.

        Returns:
            The record; its attributes are the columns of ``mem.frame("mnests")``.

        Raises:
            NotFound: If there is none of this id (at that instant); the message says whether it was merged or purged.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     edge = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     record = mem.mnests.get(edge, at="2025-08-11T00:00:00Z")
            ...     record.weight, round(record.weight_at, 4), record.uses
            (0.3, 0.2506, 1)
        """
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            rows = con.execute(
                "SELECT src_executor FROM mnest_lives JOIN edges USING (edge_no) WHERE mnest_id = ?", [mnest_id]
            ).fetchall()
            found = None
            if rows:
                everything = mnests_at(con, self._store.edge_params, moment, rows[0][0])
                found = everything.filter(pl.col("mnest_id") == mnest_id)
            if found is None or not found.height:
                then = "" if moment is None else f" (as of {moment.isoformat()})"
                raise NotFound(calls.missing(con, mnest_id) + then)
        return one_record(found)

    def events(self, mnest_id: str, at: Instant | None = None, linked: bool = False) -> pl.DataFrame:
        """History of a record, oldest first: its own, and that of every record that was merged into it.

        Args:
            mnest_id: The record.
            at: Up to this instant.
            linked: Also the history of the records whose place it took when a version was superseded by a newer one.

        Returns:
            The columns of ``mem.frame("mnest_events")``; ts in UTC.

        Raises:
            NotFound: If there never was such a record.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     _ = mem.mnests.supersede_version("buy", "1.0", "1.1", at="2025-08-02T00:00:00Z")
            ...     new = mem.mnests.record_passing("find", "1.0", "buy", "1.1", at="2025-08-03T00:00:00Z")
            ...     mem.mnests.events(new, linked=True).select("kind", "dst_version").rows()
            [('passing', '1.0'), ('transition', '1.0'), ('passing', '1.1')]
        """
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            if not con.execute("SELECT 1 FROM mnest_lives WHERE mnest_id = ?", [mnest_id]).fetchall():
                raise NotFound(calls.missing(con, mnest_id))
            ids = superseded_for(con, mnest_id, moment) if linked else []
            parts = [fetch(con, query("mnest_events_of"), {"mnest_id": one, "at": moment}) for one in [mnest_id, *ids]]
            events = pl.concat(parts).unique(maintain_order=True)
            return conform(events.sort("ts", "seq", maintain_order=True) if linked else events, MNEST_EVENTS)

    def top_outgoing(self, executor: str, k: int = 10, at: Instant | None = None) -> pl.DataFrame:
        """The heaviest active and proto edges from an executor, whatever its version; ties by name and version.

        Args:
            executor: Its name.
            k: How many at most.
            at: As of when; None: as the store stands.

        Returns:
            The columns of ``mem.frame("mnests")``, heaviest ``weight_at`` first.

        Raises:
            InvalidInput: If k is no whole number of at least 1.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for target in ("pay", "buy", "pay"):
            ...         _ = mem.mnests.record_passing("find", "1.0", target, "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.top_outgoing("find").select("dst_executor", "weight").rows()
            [('pay', 0.44999999999999996), ('buy', 0.3)]
        """
        checked_count(k, "k")
        chosen = (pl.col("src_executor") == executor) & pl.col("state").is_in(LIVE_STATES)
        return _heaviest(self._records(at, executor).filter(chosen), "dst_executor", "dst_version", "src_version").head(
            k
        )

    def top_incoming(self, executor: str, k: int = 10, at: Instant | None = None) -> pl.DataFrame:
        """The heaviest active edges to an executor, whatever its version; ties by name and version.

        Args:
            executor: Its name.
            k: How many at most.
            at: As of when; None: as the store stands.

        Returns:
            The columns of ``mem.frame("mnests")``, heaviest ``weight_at`` first.

        Raises:
            InvalidInput: If k is no whole number of at least 1.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for source in ("ask", "find", "find"):
            ...         _ = mem.mnests.record_passing(source, "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.top_incoming("buy", k=1).select("src_executor", "uses").rows()
            [('find', 2)]
        """
        checked_count(k, "k")
        chosen = (pl.col("dst_executor") == executor) & (pl.col("state") == MnestState.ACTIVE.value)
        return _heaviest(self._records(at, executor).filter(chosen), "src_executor", "src_version", "dst_version").head(
            k
        )

    def by_tag(self, tag: str, at: Instant | None = None) -> pl.DataFrame:
        """Records with a tag, in any state, heaviest first.

        Args:
            tag: The whole tag, as it was given to the passing that opened the edge.
            at: As of when; None: as the store stands.

        Returns:
            The columns of ``mem.frame("mnests")``; empty if no record has the tag.

        Raises:
            InvalidInput: If the tag is no text, or ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", tags=["shop"], at="2025-08-01T00:00:00Z")
            ...     mem.mnests.by_tag("shop")["dst_executor"].to_list(), mem.mnests.by_tag("travel").height
            (['buy'], 0)
        """
        return _heaviest(self._records(at).filter(pl.col("tags").list.contains(asked_text(tag, "tag"))))

    def decaying(self, at: Instant | None = None) -> pl.DataFrame:
        """Records that an ager demoted (or a call to ``transition_state``), heaviest first.

        Args:
            at: As of when; None: as the store stands.

        Returns:
            The columns of ``mem.frame("mnests")``.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     _ = mem.mnests.apply_ager("2025-09-01T00:00:00Z")
            ...     mem.mnests.decaying().select("dst_executor", "state").rows()
            [('buy', 'decaying')]
        """
        return _heaviest(self._records(at).filter(pl.col("state") == MnestState.DECAYING.value))

    def recurring_protos(
        self, min_uses: int | None = None, min_weight: float | None = None, at: Instant | None = None
    ) -> pl.DataFrame:
        """Protos wanted again and again, heaviest first.

        Args:
            min_uses: At least so many uses; the store's ``recurring_uses`` (3) if left out.
            min_weight: At least this ``weight_at``; the store's ``recurring_weight`` (0.30) if left out.
            at: As of when; None: as the store stands.

        Returns:
            The columns of ``mem.frame("mnests")``.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for day in ("2025-08-01", "2025-08-02", "2025-08-03"):
            ...         _ = mem.mnests.record_passing("find", "1.0", "buy", dst_exists=False, at=f"{day}T00:00:00Z")
            ...     mem.mnests.recurring_protos().select("dst_executor", "uses").rows()
            [('buy', 3)]
        """
        params = self._store.edge_params
        uses = params.recurring_uses if min_uses is None else checked_number(min_uses, "min_uses")
        least = params.recurring_weight if min_weight is None else checked_number(min_weight, "min_weight")
        weight = floor_of(least, params)
        wanted = (pl.col("state") == MnestState.PROTO.value) & (pl.col("uses") >= uses)
        return _heaviest(self._records(at).filter(wanted & (pl.col("weight_at") >= weight)))

    def summary(self, executor: str, at: Instant | None = None) -> ExecutorSummary:
        """Edges, uses and mean weight of active edges each way, and how many protos want the executor.

        Args:
            executor: Its name; all its versions count.
            at: As of when; None: as the store stands.

        Returns:
            The summary: executor, outgoing and incoming (each: edges, uses, mean_weight, the mean of ``weight_at``),
            and proto_incoming. Zeros for an executor without edges.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.summary("buy").incoming
            Flow(edges=1, uses=1, mean_weight=0.3)
        """
        return summarise(self._records(at, executor), executor)

    def audit(self, limit: int = 50, at: Instant | None = None) -> pl.DataFrame:
        """The latest events of all edges, newest first.

        Args:
            limit: How many at most.
            at: Up to this instant; None: up to the last.

        Returns:
            The columns of ``mem.frame("mnest_events")``; ts in UTC.

        Raises:
            InvalidInput: If limit is no whole number of at least 1.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     edge = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.transition_state(edge, "superseded", at="2025-08-02T00:00:00Z")
            ...     mem.mnests.audit().select("kind", "new_state").rows()
            [('transition', 'superseded'), ('passing', None)]
        """
        checked_count(limit, "limit")
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            return conform(fetch(con, query("mnest_audit"), {"at": moment, "limit": limit}), MNEST_EVENTS)

    def stats(self, at: Instant | None = None) -> MnestStats:
        """How many records there are, in all and by state.

        Args:
            at: As of when; None: as the store stands.

        Returns:
            Counts total_mnests, active, proto, decaying, superseded.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.stats()
            MnestStats(total_mnests=1, active=1, proto=0, decaying=0, superseded=0)
        """
        return count_states(self._records(at))

    def _act(
        self,
        kind: str,
        mnest_id: str,
        new_state: str,
        reason: str | None,
        at: Instant | None,
        dst_version: str | None = None,
    ) -> None:
        moment = None if at is None else as_utc(at)
        params = self._store.edge_params

        def work(con: Connection) -> None:
            ts: datetime = at_or_now(moment)
            calls.act(con, params, calls.Act(kind, mnest_id, new_state, reason, ts, dst_version))

        self._store.write(work)


def _heaviest(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Heaviest first, ties by names."""
    ties = [*names, "src_executor", "src_version", "dst_executor", "dst_version", "state"]
    ties = list(dict.fromkeys(ties))
    return frame.sort("weight_at", *ties, descending=[True] + [False] * len(ties), nulls_last=False)
