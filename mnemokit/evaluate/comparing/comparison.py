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
        """Which edges really differ? See `edges.edges_that_differ`."""
        return edges.edges_that_differ(self.groups, passings=passings, most=most, rng=rng, replicates=replicates)

    def paths(self, *, within: Sequence[str] | None = None) -> pl.DataFrame:
        """Same task, two groups: where do the paths part? See `paths.paths`."""
        return paths.paths(self.groups, within=within)

    def partings(
        self,
        *,
        within: Sequence[str] | None = None,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """At which choice do they part, and did it pay? Paired. See `paths.partings`."""
        return paths.partings(self.paths(within=within), rng=rng, replicates=replicates)

    def confounds(
        self,
        *,
        ignore: Sequence[str] | None = None,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Is each group one thing? See `confounds.confounds`."""
        return confounds.confounds(self.groups, ignore=ignore, rng=rng, replicates=replicates)

    def stuck(
        self,
        *,
        passings: str = "grouped",
        most: int = MOST_EDGES,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """Does reinforcement reward getting stuck? Over both groups. See `edges.stuck`."""
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
        """Which passings precede failure though every step was ok? Over both groups. See `edges.before_failure`."""
        return edges.before_failure(self._both, passings=passings, most=most, rng=rng, replicates=replicates)

    def parallel(
        self,
        *,
        orders: int = parallel.ORDERS,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """How uncertain is an edge, given unordered parallel calls? Over both groups. See `parallel.parallel`."""
        return parallel.parallel(self._both, orders=orders, rng=rng, replicates=replicates)

    def writes(self, *, rng: np.random.Generator | None = None, replicates: int = REPLICATES) -> pl.DataFrame:
        """Did the n-th memory write help? b less a, by task; a note says if a wrote too. See `writes.nth_write`."""
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
        InvalidInput: If there is no such column.
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
    turns: pl.DataFrame,
    by: str = "executor_version",
    groups: Sequence[str] | None = None,
    *,
    edge_params: EdgeParams | None = None,
) -> Comparison:
    """As `compare`, on a frame of turns that never touched a store; ``edge_params`` is the rule `stuck` weighs by."""
    return Comparison(split_sessions(turns, by, groups), turns, edge_params)
