"""Which edges really differ between two groups, which precede failure, and which reward getting stuck."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.evaluate.comparing.groups import Groups, numbered_turns, sessions_of
from mnemokit.evaluate.comparing.resampling import (
    ANY_DIFFERENCE,
    REPLICATES,
    Sums,
    benjamini_hochberg,
    compare_sums,
    evidence,
    interval_of_draws,
    interval_of_shares,
    ratio,
    too_few,
)
from mnemokit.evaluate.intervals import MIN_SESSIONS, SEED
from mnemokit.evaluate.metrics import Floats
from mnemokit.fold.passings import fold_passings
from mnemokit.records import EdgeParams
from mnemokit.turns.derive import derive_passings

EDGE = ("src_executor", "dst_executor")

MOST_EDGES = 2000
"""How many edges are looked at unless told otherwise, the most used first; a warning says how many are left out."""

SUPPORT = 5
"""Sessions that an edge must occur in, both groups together, for its difference to lead the list."""


class EdgesLeftOut(UserWarning):
    """There are more edges than are looked at; the message says how many were left out, and how to have them too."""


@dataclass(frozen=True)
class EdgeCounts:
    """How often each session took each edge: rows are sessions, columns edges.

    Attributes:
        names: ``src_executor, dst_executor``, one row per edge.
        taken: Passings along it.
        left: Passings out of its source.
        sessions: Session numbers.
    """

    names: pl.DataFrame
    taken: Floats
    left: Floats
    sessions: pl.Series


def edges_that_differ(
    groups: Groups,
    *,
    passings: str = "grouped",
    most: int = MOST_EDGES,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Which edges do two groups really take differently often?

    An edge's share is how much of what left its source went along it. Executors are compared by name, versions aside.

    Args:
        groups: The sessions.
        passings: Policy that derives passings from turns.
        most: How many edges to look at, the most used first.
        rng: Draws and shuffles sessions; left out, a generator with the documented seed.
        replicates: Draws, and shuffles.

    Returns:
        One row per edge: ``src_executor, dst_executor, uses_a, left_a, share_a, sessions_a, uses_b, left_b, share_b,
        sessions_b, difference`` (b less a), ``low, high`` (95 %, sessions drawn), ``p, q`` (labels shuffled; q is
        corrected for the number of edges looked at), ``note``. Surest first: by q, then by how far the interval stays
        from 0. Edges whose source fewer than `MIN_SESSIONS` sessions of a group used, or that fewer than `SUPPORT`
        sessions took, come last, with a note, an interval from -1 to 1 and no p: 5 of 5 against 0 of 0 is no
        difference.

    Raises:
        InvalidInput: If ``most`` is below 1.
        NotEnoughData: If no session of either group made a passing.

    Warns:
        EdgesLeftOut: If there are more edges than ``most``.
    """
    counts = edge_counts(groups.turns, passings, most)
    group = _group_of(counts, groups)
    in_a, in_b = group == groups.a, group == groups.b
    a = Sums(counts.taken[in_a], counts.left[in_a])
    b = Sums(counts.taken[in_b], counts.left[in_b])
    told = compare_sums(a, b, rng=np.random.default_rng(SEED) if rng is None else rng, replicates=replicates)
    taken = ((a.top > 0).sum(axis=0) + (b.top > 0).sum(axis=0)).astype(np.float64)
    support = np.minimum(a.support, b.support)
    few = (support < MIN_SESSIONS) | (taken < SUPPORT)
    low, high = np.where(few, ANY_DIFFERENCE[0], told.low), np.where(few, ANY_DIFFERENCE[1], told.high)
    table = counts.names.with_columns(
        *_columns("a", a),
        *_columns("b", b),
        difference=pl.Series(told.difference),
        low=pl.Series(low),
        high=pl.Series(high),
        # A shuffle also mixes how often the source was used, and so finds a lone session surprising.
        p=pl.Series(np.where(few, np.nan, told.p)),
        q=pl.Series(np.where(few, np.nan, told.q)),
        evidence=pl.Series(evidence(low, high)),
        support=_whole(support),
    )
    never = pl.when(pl.col("left_a") == 0).then(pl.lit(groups.a)).otherwise(pl.lit(groups.b))
    note = pl.coalesce(
        pl.when((pl.col("left_a") == 0) | (pl.col("left_b") == 0)).then(
            pl.format("its source never passed anything on in {}: no share to compare", never)
        ),
        too_few(pl.col("support"), "of one group used its source"),
        too_few(pl.col("sessions_a") + pl.col("sessions_b"), "took it", SUPPORT),
    )
    return _surest_first(table.with_columns(note=note).drop("support"))


def before_failure(
    turns: pl.DataFrame,
    *,
    passings: str = "grouped",
    most: int = MOST_EDGES,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Which passings precede failure although every step of the session was ok?

    Args:
        turns: A frame of turns; only sessions of known outcome in which no step failed are looked at.
        passings: Policy that derives passings.
        most: How many edges to look at, the most used first.
        rng: Shuffles and draws.
        replicates: How often.

    Returns:
        One row per edge: ``src_executor, dst_executor, with_edge, failed_with, rate_with`` (sessions that took it, and
        how many failed), ``without_edge, failed_without, rate_without, difference, low, high, p, q, note``; surest
        first, by q, then by how far the interval of the difference (95 %, sessions drawn) stays above 0. Edges that
        fewer than `MIN_SESSIONS` sessions took, or did not take, come last, with a note and an interval from -1 to 1.
        What precedes failure need not cause it.

    Raises:
        InvalidInput: If ``most`` is below 1.
        NotEnoughData: If there is no such session, or all of them ended alike.

    Warns:
        EdgesLeftOut: If there are more edges than ``most``.
    """
    sessions = sessions_of(turns).filter(pl.col("all_ok"), pl.col("outcome").is_not_null(), pl.col("steps") > 0)
    failed_of = dict(sessions.select("session", pl.col("outcome") == "failure").iter_rows())
    looked_at = numbered_turns(turns).filter(pl.col("session").is_in(sessions["session"].implode()))
    counts = edge_counts(looked_at, passings, most)
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
        evidence=pl.Series(low),
    )
    note = pl.coalesce(
        pl.when((pl.col("with_edge") == 0) | (pl.col("without_edge") == 0)).then(
            pl.lit("all sessions took it, or none")
        ),
        too_few(pl.col("with_edge"), "took it"),
        too_few(pl.col("without_edge"), "did not take it"),
    )
    return _surest_first(table.with_columns(note=note))


def stuck(
    turns: pl.DataFrame,
    *,
    passings: str = "grouped",
    most: int = MOST_EDGES,
    params: EdgeParams | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Does reinforcement reward getting stuck? Uses against sessions, edge by edge.

    Args:
        turns: A frame of turns.
        passings: Policy that derives passings.
        most: How many edges to look at, the most used first.
        params: The edge rule.
        rng: Draws sessions.
        replicates: How often.

    Returns:
        One row per edge, most uses per session first: ``src_executor, dst_executor, uses, sessions, uses_per_session,
        low, high`` (95 %, drawn from the sessions that took it; where these are fewer than `MIN_SESSIONS`, 1 to
        infinity and a note: a session that took it did so once, and nothing bounds it above), ``top_share`` (part of
        the uses that the session using it most made), ``weight`` (reinforced by every use, no ager), ``weight_once``
        (as if each session counted once), ``success_repeating, repeating, success_once, once`` (rate of success and
        number of the sessions of known outcome that took it three times or more, and less), ``note``.

    Raises:
        InvalidInput: If ``most`` is below 1.
        NotEnoughData: If there is no passing.

    Warns:
        EdgesLeftOut: If there are more edges than ``most``.
    """
    rows = numbered_turns(turns)
    counts = edge_counts(rows, passings, most)
    took = counts.taken > 0
    sums = Sums(counts.taken, took.astype(np.float64))
    generator = np.random.default_rng(SEED) if rng is None else rng
    low, high = interval_of_shares(sums, (1.0, float("inf")), rng=generator, replicates=replicates)
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
    return (
        table.join(every, on=EDGE, how="left")
        .join(single, on=EDGE, how="left")
        .with_columns(note=too_few(pl.col("sessions"), "took it"))
        .sort("uses_per_session", "uses", *EDGE, descending=[True, True, False, False])
        .select(*order, *rest)
    )


def edge_counts(turns: pl.DataFrame, passings: str, most: int = MOST_EDGES) -> EdgeCounts:
    """Count each session's passings along each of the ``most`` most used edges, versions aside.

    Raises:
        InvalidInput: If ``most`` is below 1.
        NotEnoughData: If there is no passing.

    Warns:
        EdgesLeftOut: If there are more edges than ``most``.
    """
    if most < 1:
        raise InvalidInput(f"most={most}: at least one edge must be looked at; nothing was counted")
    sessions = turns.select("source", "session_id", "session").unique()
    derived = _named(derive_passings(turns.drop("session", "group", strict=False), passings)).join(
        sessions, on=["source", "session_id"], how="left"
    )
    if derived.is_empty():
        raise NotEnoughData("these sessions made no passing: there is no edge to look at")
    every = derived.group_by(EDGE).agg(n=pl.len()).sort("n", *EDGE, descending=[True, False, False])
    if every.height > most:
        # Frames up from here: the question, the method of Comparison, and who called it.
        warnings.warn(
            f"{every.height:,} edges: the {most:,} most used are looked at, {every.height - most:,} with at most "
            f"{every['n'][most]} passings each are left out; most={every.height} takes them all",
            EdgesLeftOut,
            stacklevel=4,
        )
    names = every.head(most).select(EDGE).sort(EDGE)
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
    return EdgeCounts(names, taken, by_source[:, of_edge], known)


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
    low, high = interval_of_draws(drawn, np.minimum(with_edge.support, without.support), ANY_DIFFERENCE)
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
