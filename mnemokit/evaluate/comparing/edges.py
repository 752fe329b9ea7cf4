"""Which edges really differ between two groups, which precede failure, and which reward getting stuck."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.errors import NotEnoughData
from mnemokit.evaluate.comparing.groups import Groups, numbered_turns, sessions_of
from mnemokit.evaluate.comparing.resampling import (
    REPLICATES,
    Sums,
    benjamini_hochberg,
    compare_sums,
    evidence,
    interval_of_shares,
    ratio,
)
from mnemokit.evaluate.intervals import MIN_SESSIONS, SEED
from mnemokit.evaluate.metrics import Floats
from mnemokit.fold.passings import fold_passings
from mnemokit.records import EdgeParams
from mnemokit.turns.derive import derive_passings

EDGE = ("src_executor", "dst_executor")

MOST_EDGES = 2000
"""The most used edges that are compared; the rest could not be told apart anyway, and a note says so."""

SUPPORT = 5
"""Sessions that an edge must occur in, both groups together, for its difference to lead the list."""


@dataclass(frozen=True)
class EdgeCounts:
    """How often each session took each edge: rows are sessions, columns edges.

    Attributes:
        names: ``src_executor, dst_executor``, one row per edge.
        taken: Passings along it.
        left: Passings out of its source.
        sessions: Session numbers.
        dropped: Edges left out because there were too many.
    """

    names: pl.DataFrame
    taken: Floats
    left: Floats
    sessions: pl.Series
    dropped: int


def edges_that_differ(
    groups: Groups,
    *,
    passings: str = "grouped",
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Which edges do two groups really take differently often?

    An edge's share is how much of what left its source went along it. Executors are compared by name, versions aside.

    Args:
        groups: The sessions.
        passings: Policy that derives passings from turns.
        rng: Draws and shuffles sessions; left out, a generator with the documented seed.
        replicates: Draws, and shuffles.

    Returns:
        One row per edge: ``src_executor, dst_executor, uses_a, left_a, share_a, sessions_a, uses_b, left_b, share_b,
        sessions_b, difference`` (b less a), ``low, high`` (95 %, sessions drawn), ``p, q`` (labels shuffled; q is
        corrected for the number of edges), ``note``. Surest first: by q, then by how far the interval stays from 0.
        Edges whose source fewer than `SUPPORT` sessions of a group used come last, with a note: 5 of 5 against 0 of 0
        is no difference.

    Raises:
        NotEnoughData: If no session of either group made a passing.
    """
    counts = edge_counts(groups.turns, passings)
    group = _group_of(counts, groups)
    in_a, in_b = group == groups.a, group == groups.b
    a = Sums(counts.taken[in_a], counts.left[in_a])
    b = Sums(counts.taken[in_b], counts.left[in_b])
    told = compare_sums(a, b, rng=np.random.default_rng(SEED) if rng is None else rng, replicates=replicates)
    table = counts.names.with_columns(
        *_columns("a", a),
        *_columns("b", b),
        difference=pl.Series(told.difference),
        low=pl.Series(told.low),
        high=pl.Series(told.high),
        p=pl.Series(told.p),
        q=pl.Series(told.q),
        evidence=pl.Series(evidence(told.low, told.high)),
    )
    never = pl.when(pl.col("left_a") == 0).then(pl.lit(groups.a)).otherwise(pl.lit(groups.b))
    used_a, used_b = (_whole((side.bottom > 0).sum(axis=0)) for side in (a, b))
    table = table.with_columns(support=pl.min_horizontal(used_a, used_b))
    small = min(a.n_sessions, b.n_sessions)
    note = (
        pl.when((pl.col("left_a") == 0) | (pl.col("left_b") == 0))
        .then(pl.format("its source never passed anything on in {}: no share to compare", never))
        .when(pl.col("support") < SUPPORT)
        .then(pl.format("only {} sessions of one group used its source", "support"))
        .when(pl.col("sessions_a") + pl.col("sessions_b") < SUPPORT)
        .then(pl.format("only {} sessions took it", pl.col("sessions_a") + pl.col("sessions_b")))
        .when(pl.lit(small < MIN_SESSIONS))
        .then(pl.lit(f"only {small} sessions in one group"))
    )
    return _surest_first(table.with_columns(note=note).drop("support"))


def before_failure(
    turns: pl.DataFrame,
    *,
    passings: str = "grouped",
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Which passings precede failure although every step of the session was ok?

    Args:
        turns: A frame of turns; only sessions of known outcome in which no step failed are looked at.
        passings: Policy that derives passings.
        rng: Shuffles and draws.
        replicates: How often.

    Returns:
        One row per edge: ``src_executor, dst_executor, with_edge, failed_with, rate_with`` (sessions that took it, and
        how many failed), ``without_edge, failed_without, rate_without, difference, low, high, p, q, note``; surest
        first, by q, then by how far the interval of the difference stays above 0. What precedes failure need not cause
        it.

    Raises:
        NotEnoughData: If there is no such session, or all of them ended alike.
    """
    sessions = sessions_of(turns).filter(pl.col("all_ok"), pl.col("outcome").is_not_null(), pl.col("steps") > 0)
    failed_of = dict(sessions.select("session", pl.col("outcome") == "failure").iter_rows())
    counts = edge_counts(numbered_turns(turns).filter(pl.col("session").is_in(sessions["session"].implode())), passings)
    failed = np.array([failed_of[session] for session in counts.sessions.to_list()], dtype=np.float64)
    if failed.size == 0 or failed.min() == failed.max():
        raise NotEnoughData(
            f"{failed.size} sessions have every step ok and a known outcome"
            + ("" if failed.size == 0 else ", and all of them ended alike")
            + ": there is nothing to compare"
        )
    took = (counts.taken > 0).astype(np.float64)
    generator = np.random.default_rng(SEED) if rng is None else rng
    difference, low, high, p, q = _rates(took, failed, generator, replicates)
    table = counts.names.with_columns(
        with_edge=_whole(took.sum(axis=0)),
        failed_with=_whole(failed @ took),
        rate_with=pl.Series(ratio(failed @ took, took.sum(axis=0))),
        without_edge=_whole((1 - took).sum(axis=0)),
        failed_without=_whole(failed @ (1 - took)),
        rate_without=pl.Series(ratio(failed @ (1 - took), (1 - took).sum(axis=0))),
        difference=pl.Series(difference),
        low=pl.Series(low),
        high=pl.Series(high),
        p=pl.Series(p),
        q=pl.Series(q),
        evidence=pl.Series(np.where(np.isnan(low), -np.inf, low)),
    )
    note = (
        pl.when((pl.col("with_edge") == 0) | (pl.col("without_edge") == 0))
        .then(pl.lit("all sessions took it, or none"))
        .when(pl.col("with_edge") < SUPPORT)
        .then(pl.format("only {} sessions took it", pl.col("with_edge")))
    )
    return _surest_first(table.with_columns(note=note))


def stuck(
    turns: pl.DataFrame,
    *,
    passings: str = "grouped",
    params: EdgeParams | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Does reinforcement reward getting stuck? Uses against sessions, edge by edge.

    Args:
        turns: A frame of turns.
        passings: Policy that derives passings.
        params: The edge rule.
        rng: Draws sessions.
        replicates: How often.

    Returns:
        One row per edge, most uses per session first: ``src_executor, dst_executor, uses, sessions, uses_per_session,
        low, high`` (95 %, of the sessions that took it), ``top_share`` (part of the uses that the session using it most
        made), ``weight`` (reinforced by every use, no ager), ``weight_once`` (as if each session counted once),
        ``success_repeating, repeating, success_once, once`` (rate of success and number of the sessions of known
        outcome that took it three times or more, and less), ``note``.

    Raises:
        NotEnoughData: If there is no passing.
    """
    rows = numbered_turns(turns)
    counts = edge_counts(rows, passings)
    took = counts.taken > 0
    sums = Sums(counts.taken, took.astype(np.float64))
    low, high = interval_of_shares(sums, rng=np.random.default_rng(SEED) if rng is None else rng, replicates=replicates)
    outcome = dict(sessions_of(turns).select("session", "outcome").iter_rows())
    good = np.array([{"success": 1.0, "failure": 0.0}.get(outcome[s] or "", np.nan) for s in counts.sessions.to_list()])
    known = ~np.isnan(good)
    again, once = (counts.taken >= 3) & known[:, None], took & (counts.taken < 3) & known[:, None]
    succeeded = np.where(known, good, 0.0)
    sessions = took.sum(axis=0)
    table = counts.names.with_columns(
        uses=_whole(counts.taken.sum(axis=0)),
        sessions=_whole(sessions),
        uses_per_session=pl.Series(sums.shares()),
        low=pl.Series(low),
        high=pl.Series(high),
        top_share=pl.Series(counts.taken.max(axis=0) / counts.taken.sum(axis=0)),
        success_repeating=pl.Series(ratio(succeeded @ again, again.sum(axis=0).astype(np.float64)), nan_to_null=True),
        repeating=_whole(again.sum(axis=0)),
        success_once=pl.Series(ratio(succeeded @ once, once.sum(axis=0).astype(np.float64)), nan_to_null=True),
        once=_whole(once.sum(axis=0)),
    )
    derived = _named(derive_passings(rows, passings))
    every = _weights(derived, params).rename({"weight": "weight"})
    first = derived.unique([*EDGE, "source", "session_id"], keep="first", maintain_order=True)
    single = _weights(first, params).rename({"weight": "weight_once"})
    order = ["src_executor", "dst_executor", "uses", "sessions", "uses_per_session", "low", "high", "top_share"]
    rest = ["weight", "weight_once", "success_repeating", "repeating", "success_once", "once", "note"]
    note = pl.when(pl.col("sessions") < SUPPORT).then(pl.format("only {} sessions took it", pl.col("sessions")))
    return (
        table.join(every, on=EDGE, how="left")
        .join(single, on=EDGE, how="left")
        .with_columns(note=note)
        .sort("uses_per_session", "uses", *EDGE, descending=[True, True, False, False])
        .select(*order, *rest)
    )


def edge_counts(turns: pl.DataFrame, passings: str) -> EdgeCounts:
    """Count each session's passings along each edge, versions aside.

    Raises:
        NotEnoughData: If there is none.
    """
    sessions = turns.select("source", "session_id", "session").unique()
    derived = _named(derive_passings(turns.drop("session", "group", strict=False), passings)).join(
        sessions, on=["source", "session_id"], how="left"
    )
    if derived.is_empty():
        raise NotEnoughData("these sessions made no passing: there is no edge to look at")
    every = derived.group_by(EDGE).agg(n=pl.len()).sort("n", *EDGE, descending=[True, False, False])
    names = every.head(MOST_EDGES).select(EDGE).sort(EDGE)
    known = sessions.select("session").unique().sort("session")["session"]
    place = pl.DataFrame({"session": known, "row": np.arange(known.len())})
    edge = names.with_columns(column=pl.int_range(pl.len(), dtype=pl.Int64))
    cells = derived.join(edge, on=EDGE).join(place, on="session").group_by("row", "column").agg(n=pl.len())
    taken = np.zeros((known.len(), names.height))
    taken[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["n"].to_numpy()
    source = (
        names.select("src_executor")
        .unique()
        .sort("src_executor")
        .with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    out = derived.join(source, on="src_executor").join(place, on="session").group_by("row", "place").agg(n=pl.len())
    by_source = np.zeros((known.len(), source.height))
    by_source[out["row"].to_numpy(), out["place"].to_numpy()] = out["n"].to_numpy()
    of_edge = names.join(source, on="src_executor", how="left", maintain_order="left")["place"].to_numpy()
    return EdgeCounts(names, taken, by_source[:, of_edge], known, every.height - names.height)


def _rates(
    took: Floats, failed: Floats, rng: np.random.Generator, replicates: int
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Failure with an edge less failure without it: the difference, its interval, and the shuffle test."""
    with_edge, without = Sums(took * failed[:, None], took), Sums((1 - took) * failed[:, None], 1 - took)
    difference = with_edge.shares() - without.shares()
    n = failed.size
    counts = rng.multinomial(n, np.full(n, 1.0 / n), replicates).astype(np.float64)
    drawn = ratio(counts @ with_edge.top, counts @ with_edge.bottom) - ratio(
        counts @ without.top, counts @ without.bottom
    )
    low, high = np.full(took.shape[1], np.nan), np.full(took.shape[1], np.nan)
    usable = (~np.isnan(drawn)).mean(axis=0) >= 0.5
    if usable.any():
        low[usable], high[usable] = np.nanquantile(drawn[:, usable], [0.025, 0.975], axis=0)
    shuffled = rng.permuted(np.tile(failed, (replicates, 1)), axis=1)
    chance = ratio(shuffled @ took, np.tile(took.sum(axis=0), (replicates, 1))) - ratio(
        shuffled @ (1 - took), np.tile((1 - took).sum(axis=0), (replicates, 1))
    )
    p = (1.0 + (np.abs(chance) >= np.abs(difference) - 1e-12).sum(axis=0)) / (1.0 + replicates)
    p = np.where(np.isnan(difference), np.nan, p)

    return difference, low, high, p, benjamini_hochberg(p)


def _named(passings: pl.DataFrame) -> pl.DataFrame:
    """Passings whose executors are told apart by name alone."""
    return passings.with_columns(src_version=pl.lit("any"), dst_version=pl.lit("any"))


def _weights(passings: pl.DataFrame, params: EdgeParams | None) -> pl.DataFrame:
    return fold_passings(passings, params=params).mnests.select(*EDGE, "weight")


def _group_of(counts: EdgeCounts, groups: Groups) -> np.ndarray:
    label = groups.sessions.select("session", "group")
    return (
        pl.DataFrame({"session": counts.sessions})
        .join(label, on="session", how="left", maintain_order="left")["group"]
        .to_numpy()
    )


def _columns(name: str, sums: Sums) -> list[pl.Series]:
    return [
        _whole(sums.top.sum(axis=0)).alias(f"uses_{name}"),
        _whole(sums.bottom.sum(axis=0)).alias(f"left_{name}"),
        pl.Series(f"share_{name}", sums.shares(), nan_to_null=True),
        _whole((sums.top > 0).sum(axis=0)).alias(f"sessions_{name}"),
    ]


def _whole(values: np.ndarray) -> pl.Series:
    return pl.Series(values).cast(pl.Int64)


def _surest_first(table: pl.DataFrame) -> pl.DataFrame:
    """Rows without a note first, by q and evidence; then those with one."""
    floats = [name for name, dtype in table.schema.items() if dtype == pl.Float64]
    return (
        table.sort(pl.col("note").is_not_null(), pl.col("q").fill_nan(1.0), -pl.col("evidence"), *EDGE)
        .drop("evidence")
        .with_columns(pl.col(name).fill_nan(None) for name in floats if name != "evidence")
    )
