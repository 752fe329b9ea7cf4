"""Views of the edge memory for research: paths, graphs, differences, forecasts. ``Mnests`` has them all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from mnemokit.fold.edge_keys import KEYS
from mnemokit.fold.edge_weights import LIVE_STATES
from mnemokit.frames import conform
from mnemokit.instants import Instant, as_utc
from mnemokit.mnests import edge_diff, edge_graph
from mnemokit.mnests import walk as walks
from mnemokit.mnests.edge_forecast import fades_at
from mnemokit.mnests.edge_graph import GraphKind, NetworkxGraph, RustworkxGraph
from mnemokit.mnests.reads import mnests_at
from mnemokit.store import Store, fetch, query

FOLLOWS: dict[str, pl.DataType] = {
    **dict.fromkeys(KEYS, pl.String()),
    "n": pl.Int64(),
    "sessions": pl.Int64(),
    "state": pl.String(),
    "weight": pl.Float64(),
    "weight_at": pl.Float64(),
}


class MnestViews:
    """What can be seen in the edge memory beside its records."""

    def __init__(self, store: Store) -> None:
        """Hang the views on a store."""
        self._store = store

    def walk(
        self,
        start: str,
        max_depth: int = 3,
        states: Sequence[str] = ("active",),
        limit: int = 100,
        at: Instant | None = None,
    ) -> pl.DataFrame:
        """The paths of the heaviest edges from an executor.

        Args:
            start: Name of the executor, in any version.
            max_depth: Edges that a path may have.
            states: States of the edges to follow.
            limit: Paths to give at most.
            at: As of when; the weights are those of that instant.

        Returns:
            Columns path (text), executors, versions, mnest_ids, weights, mean_weight, depth, truncated; best first: by
            mean weight, then fewer edges, then names. A path goes on from the version that it arrived at, and meets no
            executor twice. ``truncated`` is true in every row if there are more paths than these.

        Raises:
            InvalidInput: If a state is unknown, or max_depth or limit is below 1.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1", "buy", "2")
            ...     _ = mem.mnests.record_passing("buy", "2", "pay", "1")
            ...     mem.mnests.walk("find")["path"].to_list()
            ['find@1 -> buy@2', 'find@1 -> buy@2 -> pay@1']
        """
        chosen = walks.checked_states(states)
        with self._store.read() as con:
            if at is None:
                edges = walks.edges_in_store(con, chosen)
            else:
                edges = walks.edges_in_frame(mnests_at(con, self._store.edge_params, as_utc(at)), chosen)
            return walks.walk(edges, start, max_depth=max_depth, limit=limit)

    def graph(
        self,
        at: Instant | None = None,
        min_weight: float = 0.0,
        collapse_versions: bool = False,
        states: Sequence[str] = ("active",),
        kind: GraphKind = "rustworkx",
    ) -> RustworkxGraph | NetworkxGraph:
        """The edges as a directed graph.

        Args:
            at: As of when; None: as the store stands.
            min_weight: The least weight (at that instant, 0 to 1) of an edge.
            collapse_versions: One node per executor; parallel edges become one, with their uses together and the
                largest weight.
            states: Which records are edges.
            kind: "rustworkx" or "networkx" (extra ``graph``).

        Returns:
            A directed multigraph. Its nodes are (executor, version), the version None where versions are collapsed or
            the executor is only wished for. Its edges carry src_executor, src_version, dst_executor, dst_version,
            state, weight (at that instant), uses, records (how many became this edge) and mnest_ids.

        Raises:
            InvalidInput: If a state or kind is unknown.
            MissingExtra: If networkx is asked for and not installed.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     graph = mem.mnests.graph()
            >>> graph.nodes(), graph.edges()[0]["weight"]
            ([('buy', '1.0'), ('find', '1.0')], 0.3)
        """
        library = edge_graph.checked_kind(kind)
        edges = self._graph_edges(at, min_weight, collapse_versions, states)
        return edge_graph.to_networkx(edges) if library == "networkx" else edge_graph.to_rustworkx(edges)

    def strong_groups(
        self,
        at: Instant | None = None,
        min_weight: float = 0.0,
        collapse_versions: bool = False,
        states: Sequence[str] = ("active",),
    ) -> pl.DataFrame:
        """Strongly connected groups: executors that all reach each other along the edges.

        Args:
            at: As of when; None: as the store stands.
            min_weight: The least weight (at that instant, 0 to 1) of an edge.
            collapse_versions: One node per executor; parallel edges become one, with their uses together and the
                largest weight.
            states: Which records are edges.

        Returns:
            Columns group (a number from 0), size, executor, version: one row per executor that has an edge, also if it
            is alone in its group; the largest group first.

        Raises:
            InvalidInput: If a state is unknown.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for src, dst in (("find", "buy"), ("buy", "find"), ("buy", "pay")):
            ...         _ = mem.mnests.record_passing(src, "1", dst, "1", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.strong_groups().rows()
            [(0, 2, 'buy', '1'), (0, 2, 'find', '1'), (1, 1, 'pay', '1')]
        """
        return edge_graph.strong_groups(self._graph_edges(at, min_weight, collapse_versions, states))

    def strengths(
        self,
        at: Instant | None = None,
        min_weight: float = 0.0,
        collapse_versions: bool = False,
        states: Sequence[str] = ("active",),
    ) -> pl.DataFrame:
        """Edges, uses and summed weight out of and into each executor.

        Args:
            at: As of when; None: as the store stands.
            min_weight: The least weight (at that instant, 0 to 1) of an edge.
            collapse_versions: One node per executor; parallel edges become one, with their uses together and the
                largest weight.
            states: Which records are edges.

        Returns:
            Columns executor, version, edges_out, uses_out, strength_out, edges_in, uses_in, strength_in (a strength is
            a sum of weights); by name and version.

        Raises:
            InvalidInput: If a state is unknown.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1", "buy", "1", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.strengths().select("executor", "strength_out", "strength_in").rows()
            [('buy', 0.0, 0.3), ('find', 0.3, 0.0)]
        """
        return edge_graph.strengths(self._graph_edges(at, min_weight, collapse_versions, states))

    def directly_follows(self, at: Instant | None = None, collapse_versions: bool = False) -> pl.DataFrame:
        """How often one executor directly followed another, beside the edge's weight.

        Args:
            at: As of when; None: as the store stands.
            collapse_versions: Count names, whatever their versions; state and weights are the heaviest live edge's.

        Returns:
            Columns src_executor, src_version, dst_executor, dst_version, n (every passing there ever was), sessions
            (logged sessions behind them), state, weight and weight_at of the live record (null if there is none); most
            frequent first. The versions are null where they are collapsed.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for target in ("buy", "pay", "buy"):
            ...         _ = mem.mnests.record_passing("find", "1", target, "1", at="2025-08-01T00:00:00Z")
            ...     mem.mnests.directly_follows().select("src_executor", "dst_executor", "n", "state").rows()
            [('find', 'buy', 2, 'active'), ('find', 'pay', 1, 'active')]
        """
        moment = None if at is None else as_utc(at)
        bound = {"after": None, "until": moment, "collapse": collapse_versions}
        with self._store.read() as con:
            counts = fetch(con, query("mnest_counts"), bound)
            records = mnests_at(con, self._store.edge_params, moment)
        if collapse_versions:
            nothing = pl.lit(None, pl.String())
            records = records.with_columns(src_version=nothing, dst_version=nothing)
        live = (
            records.filter(pl.col("state").is_in(LIVE_STATES))
            .sort("weight_at", descending=True)
            .unique(list(KEYS), keep="first", maintain_order=True)
            .select(*KEYS, "state", "weight", "weight_at")
        )
        joined = counts.join(live, on=list(KEYS), how="left", nulls_equal=True)
        return conform(joined, FOLLOWS).sort("n", *KEYS, descending=[True] + [False] * 4, nulls_last=False)

    def diff(
        self, before: Instant | None = None, after: Instant | None = None, other: MnestViews | None = None
    ) -> pl.DataFrame:
        """What changed between two instants, or from this store to another.

        Args:
            before: As of when this store is looked at; left out, as it stands.
            after: The later instant (of the other store, if one is given); left out, as it stands.
            other: Another memory's ``mnests``.

        Returns:
            The columns of ``edge_diff.DIFF``: the edge, change (born, grown, faded, demoted, superseded, gone, same),
            weights and states before and after, passings and sessions behind each side (n_before, ...) and behind the
            change (n, sessions: those between the two instants, or of both stores); the largest change first.

        Raises:
            InvalidInput: If ``before`` or ``after`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1", "buy", "2", at="2025-08-01T00:00:00Z")
            ...     _ = mem.mnests.record_passing("find", "1", "buy", "2", at="2025-08-03T00:00:00Z")
            ...     mem.mnests.diff("2025-08-02T00:00:00Z").select("change", "n").row(0)
            ('grown', 1)
        """
        first = None if before is None else as_utc(before, "before")
        last = None if after is None else as_utc(after, "after")
        if other is not None:
            return edge_diff.diff(self._counted(first), other._counted(last))
        bound = {"after": first, "until": last, "collapse": False}
        # Held for all three, so that no writer comes between the sides.
        with self._store.read() as con:
            between = fetch(con, query("mnest_counts"), bound)
            return edge_diff.diff(self._counted(first), self._counted(last), behind=between)

    def fades_at(self, at: Instant | None = None) -> pl.DataFrame:
        """When each live edge will end if nothing comes.

        Args:
            at: Forecast from the store as of then; None: as it stands.

        Returns:
            The columns of ``mem.frame("mnests")`` for the active and proto records, with fades_at (UTC, when the weight
            meets its threshold), ends_at (UTC, the first nightly ager that finds it below) and ends_as (decaying or
            purged); the soonest first, both instants null if it never fades.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1", "buy", "1", at="2025-08-01T00:00:00Z")
            ...     row = mem.mnests.fades_at().row(0, named=True)
            >>> row["ends_at"].isoformat(), row["ends_as"]
            ('2025-08-24T03:00:00+00:00', 'decaying')
        """
        return fades_at(self._records(at), self._store.edge_params)

    def _records(self, at: Instant | None, executor: str | None = None) -> pl.DataFrame:
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            return mnests_at(con, self._store.edge_params, moment, executor)

    def _graph_edges(
        self, at: Instant | None, min_weight: float, collapse_versions: bool, states: Sequence[str]
    ) -> pl.DataFrame:
        return edge_graph.graph_edges(
            self._records(at),
            states=walks.checked_states(states),
            min_weight=min_weight,
            collapse_versions=collapse_versions,
        )

    def _counted(self, at: datetime | None) -> pl.DataFrame:
        """Records with the passings and sessions behind their edges."""
        with self._store.read() as con:
            counts = fetch(con, query("mnest_counts"), {"after": None, "until": at, "collapse": False})
            records = mnests_at(con, self._store.edge_params, at)
        return records.join(counts, on=list(KEYS), how="left", nulls_equal=True)
