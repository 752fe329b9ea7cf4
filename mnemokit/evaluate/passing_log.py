"""Passings in order of time, with every edge that could have been next: what edge models predict from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.intervals import OWN_SESSION
from mnemokit.evaluate.metrics import Floats, Ints
from mnemokit.evaluate.past import Events, Past
from mnemokit.frames import INSTANT
from mnemokit.instants import Instant, as_utc, to_us
from mnemokit.records import EdgeParams

_NEEDED = ("src_executor", "dst_executor")
_EDGE = ("src_executor", "src_version", "dst_executor", "dst_version")
_PAIRS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Pairs:
    """Candidates: for each passing, each edge that its source had taken before.

    Attributes:
        rows: The passings, as row numbers of the log.
        passing: Which of them each candidate belongs to, 0 and up.
        edge: Number of the candidate edge.
        us: When the passing is, microseconds.
        untimed: The passing has no time.
    """

    rows: Ints
    passing: Ints
    edge: Ints
    us: Ints
    untimed: np.ndarray

    @property
    def n(self) -> int:
        """How many passings there are."""
        return self.rows.size


@dataclass(frozen=True)
class PassingLog:
    """Passings in order of time, in columns of numbers. Make one with `passing_log`.

    Attributes:
        rows: One row per passing: the edge's four names, ``session_id, session, ts, untimed``.
        us: When each was, microseconds; untimed ones in their order.
        untimed: The log had no time for it.
        edge: Number of each passing's edge,
        src: of its source (name and version),
        dst: of its destination (name and version).
        edge_src: Source of each edge.
        edge_dst: Destination of each edge.
        edge_lambda: Decay of each edge, per day: its first passing's.
        edge_proto: The destination did not exist.
        ticks: Ager instants, ascending, microseconds.
    """

    rows: pl.DataFrame
    us: Ints
    untimed: np.ndarray
    edge: Ints
    src: Ints
    dst: Ints
    edge_src: Ints
    edge_dst: Ints
    edge_lambda: Floats
    edge_proto: np.ndarray
    ticks: Ints
    params: EdgeParams = field(default_factory=EdgeParams)

    @cached_property
    def by_edge(self) -> Events:
        """The passings, to be asked about by edge."""
        return Events(self.edge, self.us)

    @cached_property
    def by_src(self) -> Events:
        """The passings, to be asked about by source."""
        return Events(self.src, self.us)

    @cached_property
    def by_dst(self) -> Events:
        """The passings, to be asked about by destination."""
        return Events(self.dst, self.us)

    @cached_property
    def of_src(self) -> Past:
        """What was known of each passing's source before it."""
        return self.by_src.before(self.src, self.us)

    @cached_property
    def degree(self) -> Ints:
        """How many edges each passing's source had taken before it."""
        return self._known[1]

    @cached_property
    def seen(self) -> np.ndarray:
        """Had the edge of each passing been taken before?"""
        return self.by_edge.before(self.edge, self.us).count > 0

    @cached_property
    def vocabulary(self) -> Ints:
        """How many destinations were known, from any source, before each passing."""
        first = np.full(int(self.edge_dst.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, self.dst, self.us)
        return np.searchsorted(np.sort(first), self.us, side="left").astype(np.int64)

    def before(self, pairs: Pairs) -> Past:
        """What was known of each candidate edge before its passing.

        Args:
            pairs: Candidates, as `pairs` gives them.

        Returns:
            A question per candidate, in their order; ask it for ``count``, ``sum(values)``, ...

        Example:
            >>> from mnemokit.evaluate.reading import passing_log_of
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for day in ("2025-08-01", "2025-08-02", "2025-08-03"):
            ...         _ = mem.mnests.record_passing("find", "1", "buy", "1", at=f"{day}T00:00:00Z")
            ...     log = passing_log_of(mem)
            >>> [log.before(pairs).count.tolist() for pairs in log.pairs()]
            [[1, 2]]
        """
        return self.by_edge.before(pairs.edge, pairs.us)

    def pairs(self, rows: Ints | None = None) -> Iterator[Pairs]:
        """Candidates of these passings (all if left out), in pieces that fit in memory."""
        chosen = np.arange(self.us.size) if rows is None else rows
        start, degree, order = self._known
        size = np.cumsum(degree[chosen])
        done = 0
        while done < chosen.size:
            limit = (size[done - 1] if done else 0) + _PAIRS_AT_ONCE
            until = max(done + 1, int(np.searchsorted(size, limit, side="right")))
            here = chosen[done:until]
            n = degree[here]
            passing = np.repeat(np.arange(here.size), n)
            within = np.arange(passing.size) - np.repeat(np.cumsum(n) - n, n)
            place = here[passing]
            yield Pairs(
                rows=here,
                passing=passing,
                edge=order[start[place] + within],
                us=self.us[place],
                untimed=self.untimed[place],
            )
            done = until

    @cached_property
    def _known(self) -> tuple[Ints, Ints, Ints]:
        """Edges sorted by source and first passing: where each passing's candidates begin, how many, and the order."""
        first = np.full(self.edge_src.size, np.iinfo(np.int64).max)
        np.minimum.at(first, self.edge, self.us)
        edges = Events(self.edge_src, first)
        known = edges.before(self.src, self.us)
        return known.start, known.count, edges.order


def passing_log(
    passings: pl.DataFrame,
    *,
    ager: Sequence[Instant] | pl.Series | str | None = "daily",
    params: EdgeParams | None = None,
    versions: str = "separate",
) -> PassingLog:
    """Put passings in order of time and number what they join.

    Args:
        passings: ``src_executor, dst_executor``; ``src_version, dst_version, ts, session_id, source, decay_lambda``
            and ``seq`` where there are any. Rows without ``ts`` (or with ``untimed``) keep their order; a row without
            session is a session of its own. Passings of one instant are in the order of ``seq``, without it in that of
            the rows: within a session that order is what a log with coarse instants has to say.
        ager: Instants at which an ager looked; ``"daily"``: nightly from the first passing to the last, as a replay
            does; None: never.
        params: The edge rule; gives the default decay and the hour of the nightly ager.
        versions: ``"separate"``: another version is another executor; ``"collapsed"``: versions are left out.

    Raises:
        InvalidInput: If a column is missing, or an argument is none of the above.
    """
    rule = params or EdgeParams()
    missing = [name for name in _NEEDED if name not in passings.columns]
    if missing:
        raise InvalidInput(
            f"the passings frame has no column {', '.join(missing)}; it has {', '.join(passings.columns)}; "
            "nothing was scored"
        )
    if versions not in ("separate", "collapsed"):
        raise InvalidInput(f"versions must be 'separate' or 'collapsed', not {versions!r}; nothing was scored")
    rows = _completed(passings, collapsed=versions == "collapsed")
    us, untimed = rows["us"].to_numpy(), rows["untimed"].to_numpy()
    src = _number(rows, ["src_executor", "src_version"])
    dst = _number(rows, ["dst_executor", "dst_version"])
    edge = _number(rows, list(_EDGE))
    n_edges = int(edge.max(initial=-1)) + 1
    first = np.zeros(n_edges, dtype=np.int64)
    first[edge[::-1]] = np.arange(edge.size)[::-1]
    rate = rows["decay_lambda"].fill_null(rule.decay_lambda).to_numpy()
    return PassingLog(
        rows=rows.select(*_EDGE, "session_id", "session", "ts", "untimed"),
        us=us,
        untimed=untimed,
        edge=edge,
        src=src,
        dst=dst,
        edge_src=src[first],
        edge_dst=dst[first],
        edge_lambda=rate[first],
        edge_proto=rows["dst_exists"].not_().to_numpy()[first],
        ticks=_ticks(ager, us[~untimed], rule),
        params=rule,
    )


def _completed(passings: pl.DataFrame, *, collapsed: bool) -> pl.DataFrame:
    have = passings.columns

    def text(name: str) -> pl.Expr:
        return (pl.col(name) if name in have else pl.lit(None)).cast(pl.String).alias(name)

    ts = pl.col("ts").cast(INSTANT) if "ts" in have else pl.lit(None, dtype=INSTANT)
    untimed = pl.col("untimed").fill_null(value=False) if "untimed" in have else pl.lit(value=False)
    version = pl.lit("any version") if collapsed else None
    rows = passings.select(
        "src_executor",
        "dst_executor",
        (text("src_version").fill_null("unversioned") if version is None else version).alias("src_version"),
        (text("dst_version") if version is None else version).alias("dst_version"),
        text("session_id"),
        text("source"),
        (pl.col("decay_lambda") if "decay_lambda" in have else pl.lit(None)).cast(pl.Float64).alias("decay_lambda"),
        (pl.col("dst_exists") if "dst_exists" in have else pl.col("dst_version").is_not_null() if "dst_version" in have
         else pl.lit(value=True)).alias("dst_exists"),
        (pl.col("seq") if "seq" in have else pl.int_range(pl.len())).cast(pl.Int64).alias("seq"),
        ts.alias("ts"),
        untimed=untimed | ts.is_null(),
    )  # fmt: skip
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = rows.with_columns(us=pl.coalesce(pl.col("ts").cast(pl.Int64), number)).sort("us", "seq", maintain_order=True)
    return rows.with_columns(
        ts=pl.col("us").cast(INSTANT),
        session=pl.coalesce(
            pl.concat_str(pl.col("source").fill_null(""), pl.lit("\x1f"), "session_id"),
            pl.concat_str(pl.lit(OWN_SESSION), number.cast(pl.String)),
        ),
    )


def _number(rows: pl.DataFrame, columns: list[str]) -> Ints:
    return rows.select(pl.struct(columns).rank("dense")).to_series().to_numpy().astype(np.int64) - 1


def _ticks(ager: Sequence[Instant] | pl.Series | str | None, us: Ints, rule: EdgeParams) -> Ints:
    if ager is None or (isinstance(ager, str) and us.size == 0):
        return np.empty(0, dtype=np.int64)
    if isinstance(ager, str):
        if ager != "daily":
            raise InvalidInput(f"ager must be 'daily', None or the instants themselves, not {ager!r}")
        day, offset = 86_400_000_000, rule.tick_hour * 3_600_000_000
        first = -(-(int(us.min()) + 1 - offset) // day) * day + offset
        return np.arange(first, int(us.max()) + 1, day, dtype=np.int64)
    if isinstance(ager, pl.Series):
        return ager.cast(INSTANT).cast(pl.Int64).drop_nulls().unique().sort().to_numpy()
    return np.unique(np.array([to_us(as_utc(instant, "ager")) for instant in ager], dtype=np.int64))
