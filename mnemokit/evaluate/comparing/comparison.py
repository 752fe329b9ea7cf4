"""``mk.evaluate.compare``: each question one call, each answer a frame with n, sessions and an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.errors import NotEnoughData
from mnemokit.evaluate.comparing import confounds, edges, parallel, paths, writes
from mnemokit.evaluate.comparing.edges import MOST_EDGES
from mnemokit.evaluate.comparing.groups import Groups, OneGroup, split_sessions
from mnemokit.evaluate.comparing.resampling import REPLICATES
from mnemokit.evaluate.reading import turns_of
from mnemokit.given_frames import Frame, as_polars
from mnemokit.memory import Memory
from mnemokit.records import EdgeParams


@dataclass(frozen=True)
class Comparison:
    """Two groups of sessions, ready to be asked about.

    Where the log has one group only, what needs no second one can still be asked: `stuck`, `before_failure` and
    `parallel`; everything else raises `NotEnoughData`.

    Attributes:
        split: The sessions in two groups, or in one.
        turns: Every turn of the log, of other groups too.
        edge_params: The edge rule by which `stuck` weighs; None: the default.
    """

    split: Groups | OneGroup
    turns: pl.DataFrame
    edge_params: EdgeParams | None = None

    @property
    def groups(self) -> Groups:
        """The sessions and what tells them apart: ``groups.a``, ``groups.b``, ``groups.sessions``.

        Raises:
            NotEnoughData: If there are not two groups.
        """
        if isinstance(self.split, OneGroup):
            raise NotEnoughData(self.split.why)
        return self.split

    def edges(
        self,
        *,
        passings: str = "grouped",
        most: int = MOST_EDGES,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Which edges really differ? See `edges.edges_that_differ`.

        Args:
            passings: Name of the policy that derives passings from turns.
            most: How many edges to look at, the most used first.
            rng: Draws and shuffles sessions; left out, a generator with the documented seed.
            replicates: How many draws, and shuffles.

        Returns:
            One row per edge, surest first: src_executor, dst_executor, uses_a, left_a, share_a, sessions_a, uses_b,
            left_b, share_b, sessions_b, difference (share b less share a), low, high (95 %), p, q, note (why a number
            says little).

        Raises:
            InvalidInput: If ``most`` is below 1.
            NotEnoughData: If there are not two groups, or no session made a passing.

        Warns:
            EdgesLeftOut: If there are more edges than ``most``.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.edges().select("dst_executor", "share_a", "share_b").sort("dst_executor").rows()
            [('buy', 1.0, 0.0), ('pay', 0.0, 1.0)]
        """
        return edges.edges_that_differ(self.groups, passings=passings, most=most, rng=rng, replicates=replicates)

    def paths(self, *, within: Sequence[str] | None = None) -> pl.DataFrame:
        """Same task, two groups: where do the paths part? See `paths.paths`.

        A session without a question is in no pair, whatever ``within`` says.

        Args:
            within: Columns that make a task; None: scope, question, and ``meta.mode`` where the log has it.

        Returns:
            One row per pair of sessions: the columns of ``within``, session_id_a, session_id_b, common (groups of steps
            in common), after (the last of them), then_a, then_b, steps_a, steps_b, success_a, success_b (0 or 1), gain.

        Raises:
            InvalidInput: If a column does not exist.
            NotEnoughData: If there are not two groups.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "question": "q",
            ...     "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.paths().select("common", "after", "then_a", "then_b", "gain").rows()
            [(1, 'find', 'buy', 'pay', -1)]
        """
        return paths.paths(self.groups, within=within)

    def partings(
        self,
        *,
        within: Sequence[str] | None = None,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """At which choice do they part, and did it pay? Paired. See `paths.partings`.

        Args:
            within: Columns that make a task, as for `paths`.
            rng: Draws pairs; left out, a generator with the documented seed.
            replicates: How many draws.

        Returns:
            One row over all pairs (``all`` true), then one per choice, most pairs first: all, after, then_a, then_b, n
            (pairs), n_sessions, success_a, success_b, gain (success b less success a), low, high (95 %), note.

        Raises:
            InvalidInput: If a column does not exist.
            NotEnoughData: If there are not two groups.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "question": "q",
            ...     "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.partings().select("all", "then_a", "then_b", "n", "gain").rows()
            [(True, None, None, 1, -1.0), (False, 'buy', 'pay', 1, -1.0)]
        """
        return paths.partings(self.paths(within=within), rng=rng, replicates=replicates)

    def confounds(
        self,
        *,
        ignore: Sequence[str] | None = None,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Is each group one thing? See `confounds.confounds`.

        Args:
            ignore: Attributes to leave out; None leaves out those that say how a session went.
            rng: Draws sessions; left out, a generator with the documented seed.
            replicates: How many draws.

        Returns:
            One row per attribute and value, attributes that differ most first: attribute, value, sessions_a,
            sessions_b, share_a, share_b, difference, low, high (95 %), n_sessions, cramers_v (0 unrelated, 1 one
            decides the other), warning.

        Raises:
            NotEnoughData: If there are not two groups.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "scope": list("xxyy"),
            ...     "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.confounds().select("attribute", "value", "sessions_a", "sessions_b").rows()
            [('scope', 'x', 1, 0), ('scope', 'y', 0, 1)]
        """
        return confounds.confounds(self.groups, ignore=ignore, rng=rng, replicates=replicates)

    def stuck(
        self,
        *,
        passings: str = "grouped",
        most: int = MOST_EDGES,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Does reinforcement reward getting stuck? Over both groups. See `edges.stuck`.

        Args:
            passings: Name of the policy that derives passings from turns.
            most: How many edges to look at, the most used first.
            rng: Draws sessions; left out, a generator with the documented seed.
            replicates: How many draws.

        Returns:
            One row per edge, most uses per session first: src_executor, dst_executor, uses, sessions, uses_per_session,
            low, high (95 %), top_share, weight, weight_once, success_repeating, repeating, success_once, once, note.

        Raises:
            InvalidInput: If ``most`` is below 1.
            NotEnoughData: If no session made a passing.

        Warns:
            EdgesLeftOut: If there are more edges than ``most``.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.stuck().select("dst_executor", "uses", "sessions", "weight").rows()
            [('buy', 1, 1, 0.3), ('pay', 1, 1, 0.3)]
        """
        return edges.stuck(
            self._both, passings=passings, params=self.edge_params, most=most, rng=rng, replicates=replicates
        )

    def before_failure(
        self,
        *,
        passings: str = "grouped",
        most: int = MOST_EDGES,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Which passings precede failure though every step was ok? Over both groups. See `edges.before_failure`.

        Args:
            passings: Name of the policy that derives passings from turns.
            most: How many edges to look at, the most used first.
            rng: Draws sessions; left out, a generator with the documented seed.
            replicates: How many draws.

        Returns:
            One row per edge, surest first: src_executor, dst_executor, with_edge (sessions), failed_with, rate_with,
            without_edge, failed_without, rate_without, difference, low, high (95 %), p, q, note.

        Raises:
            InvalidInput: If ``most`` is below 1.
            NotEnoughData: If no session of known outcome has every step ok, or all of them ended alike.

        Warns:
            EdgesLeftOut: If there are more edges than ``most``.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns.with_columns(ok=True)))
            >>> both.before_failure().select("dst_executor", "rate_with", "rate_without").sort("dst_executor").rows()
            [('buy', 0.0, 1.0), ('pay', 1.0, 0.0)]
        """
        return edges.before_failure(self._both, passings=passings, most=most, rng=rng, replicates=replicates)

    def parallel(
        self,
        *,
        orders: int = parallel.ORDERS,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """How uncertain is an edge, given unordered parallel calls? Over both groups. See `parallel.parallel`.

        Args:
            orders: How many random orders of parallel calls to try.
            rng: Shuffles, then draws sessions; left out, a generator with the documented seed.
            replicates: How many draws of sessions.

        Returns:
            One row per edge, most uncertain first: src_executor, dst_executor, and its uses: grouped, as_logged, least,
            low, mean, high, most, sessions, certain, low_sessions, high_sessions, n_sessions, note.

        Raises:
            NotEnoughData: If the log has no step.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
            ...     "executor_version": list("1122"), "session_outcome": ["success"] * 2 + ["failure"] * 2,
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
            >>> both.parallel().select("dst_executor", "least", "most", "certain").rows()
            [('buy', 1, 1, True), ('pay', 1, 1, True)]
        """
        return parallel.parallel(self._both, orders=orders, rng=rng, replicates=replicates)

    def writes(self, *, rng: np.random.Generator | None = None, replicates: int = REPLICATES) -> pl.DataFrame:
        """Did the n-th memory write help? b less a, by task; a note says if a wrote too. See `writes.nth_write`.

        Args:
            rng: Draws tasks; left out, a generator with the documented seed.
            replicates: How many draws.

        Returns:
            One row per trial, and one for all repeated trials (trial null): trial, and of each group attempts,
            succeeded, rate, notes (``_a``, ``_b``), then pairs, only_a, only_b, n_sessions, difference, low, high (95
            %), note.

        Raises:
            InvalidInput: If the log's meta does not say ``trial`` and ``notes``.
            NotEnoughData: If there are not two groups, or no task was tried again.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({
            ...     "session_id": ["a0", "a1", "b0", "b1"], "step": 0, "executor": None, "question": "q",
            ...     "scope": ["plain", "plain", "noted", "noted"], "session_outcome": ["failure"] * 3 + ["success"],
            ...     "meta": ['{"trial": 0, "notes": 0}', '{"trial": 1, "notes": 0}',
            ...              '{"trial": 0, "notes": 0}', '{"trial": 1, "notes": 1}'],
            ... })
            >>> both = mk.evaluate.compare_turns(mk.check_turns(turns), "scope", ["plain", "noted"])
            >>> both.writes().select("trial", "rate_a", "rate_b", "difference").rows()
            [(0, 0.0, 0.0, 0.0), (1, 0.0, 1.0, 1.0), (None, 0.0, 1.0, 1.0)]
        """
        return writes.nth_write(
            self.turns, by=self.groups.by, groups=(self.groups.a, self.groups.b), rng=rng, replicates=replicates
        )

    @property
    def _both(self) -> pl.DataFrame:
        return self.split.turns.drop("session", "group", strict=False)


def compare(mem: Memory, by: str = "executor_version", groups: Sequence[str] | None = None) -> Comparison:
    """Compare two groups of a memory's sessions.

    Args:
        mem: A memory whose turns were replayed; it is only read.
        by: What tells the groups apart: ``executor_version``, ``scope``, ``source``, ``user_id``, ``session_outcome``,
            or a key of the log's meta, ``meta.<key>``.
        groups: The two values; None takes the two with the most sessions, in order of time.

    Returns:
        The comparison; its methods are the questions: ``edges, paths, partings, confounds, stuck, before_failure,
        parallel, writes``. Of one group only ``stuck, before_failure, parallel`` can be asked.

    Raises:
        InvalidInput: If there is no such column, or not exactly two groups are named.
        NotEnoughData: If there is no session, or a group that was named has none.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.replay(mk.datasets.tau2(), label="tau2", progress=False)
        ...     versions = mk.evaluate.compare(mem, by="executor_version")
        >>> versions.groups.a
        'gpt-4.1'
        >>> versions.confounds().filter(attribute="meta.git_commit")["warning"].drop_nulls()[0]
        'only in gpt-4.1: a difference between the groups may be its doing'
    """
    return compare_turns(turns_of(mem), by, groups, edge_params=mem.edge_params)


def compare_turns(
    turns: Frame,
    by: str = "executor_version",
    groups: Sequence[str] | None = None,
    *,
    edge_params: EdgeParams | None = None,
) -> Comparison:
    """As `compare`, on a frame of turns that never touched a store.

    Args:
        turns: Canonical turns, as ``mk.read_turns`` or ``mk.check_turns`` gives them.
        by: What tells the groups apart, as for `compare`.
        groups: The two values; None takes the two with the most sessions, in order of time.
        edge_params: The edge rule that `Comparison.stuck` weighs by; None: the default.

    Returns:
        The comparison.

    Raises:
        InvalidInput: If there is no such column, or not exactly two groups are named.
        NotEnoughData: If there is no session, or a group that was named has none.

    Example:
        >>> import mnemokit as mk
        >>> import polars as pl
        >>> turns = pl.DataFrame({
        ...     "session_id": list("aabb"), "step": [0, 1] * 2, "executor": ["find", "buy", "find", "pay"],
        ...     "executor_version": list("1122"), "session_outcome": ["success"] * 2 + ["failure"] * 2,
        ... })
        >>> both = mk.evaluate.compare_turns(mk.check_turns(turns))
        >>> both.groups.a, both.groups.b, both.groups.sessions.height
        ('1', '2', 2)
    """
    given = as_polars(turns, "turns", "nothing was compared")
    return Comparison(split_sessions(given, by, groups), given, edge_params)
