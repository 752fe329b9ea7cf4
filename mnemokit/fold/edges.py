"""The fold of facts into records: frames in, frames out.

Edges that only passings touched, at one decay rate, go through the array kernel, all together; pairs on which somebody
acted by hand, or whose rate changes, are lived through one by one. Both give the same frames.

A *life* is a record from its first passing to its end (demotion, purge, merge). Lives are numbered as they come; what
number and id a life has in a store is the store's business.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from mnemokit.fold.frames import NIGHTS, Folded
from mnemokit.fold.kernel import Ints
from mnemokit.fold.one_by_one import fold_one_by_one
from mnemokit.fold.together import fold_together
from mnemokit.records import EdgeParams


def fold_edges(
    facts: pl.DataFrame,
    edges: pl.DataFrame,
    ticks: Ints,
    params: EdgeParams,
    prior: pl.DataFrame | None = None,
    *,
    names: Mapping[int, str] | None = None,
) -> Folded:
    """Fold facts into records.

    Args:
        facts: Columns of ``FACTS``, in any order of rows; ties in time go by seq, then by row.
        edges: Columns of ``EDGES``, each edge once.
        ticks: Ager instants in microseconds since 1970, ascending, without repeats. With ``prior`` only the new ones.
        params: The edge rule.
        prior: Records to go on from (``RECORDS`` with mnest_no for life), all facts and ticks being later than them.
        names: What to call stored records, by mnest_no, where an act is refused.

    Returns:
        The fold. Rows of ``outcomes`` are sorted by edge, then time, then source order, passings alone first.
    """
    by_hand = _pairs_to_live_through(facts, edges, prior, params)
    if not len(by_hand):
        return fold_together(facts, edges, ticks, params, prior)
    rows = facts.with_row_index("row").with_columns(pl.col("row").cast(pl.UInt32))
    aside = edges.filter(pl.col("pair_no").is_in(by_hand.implode()))
    apart = pl.col("edge_no").is_in(aside["edge_no"].implode())
    one_by_one = fold_one_by_one(
        rows.filter(apart), aside, ticks, params, None if prior is None else prior.filter(apart), names or {}
    )
    rest = rows.filter(~apart)
    together = fold_together(
        rest.drop("row"),
        edges.filter(~apart),
        ticks,
        params,
        None if prior is None else prior.filter(~apart),
    )
    together_rows = together.outcomes.with_columns(row=rest["row"].gather(together.outcomes["row"]))
    lives = together.lives.with_columns(first_row=rest["row"].gather(together.lives["first_row"]))
    return _join(Folded(together_rows, together.derived, together.records, lives, together.nights), one_by_one)


def _pairs_to_live_through(
    facts: pl.DataFrame, edges: pl.DataFrame, prior: pl.DataFrame | None, params: EdgeParams
) -> pl.Series:
    """Pairs that somebody acted on, or whose decay rate is not one and the same."""
    found: list[pl.DataFrame] = []
    if "kind" in facts.columns:
        found.append(facts.filter(pl.col("kind") != "passing").select("edge_no"))
    if "decay_lambda" in facts.columns:
        rates = [facts.select("edge_no", "decay_lambda")]
        if prior is not None:
            rates.append(prior.filter(pl.col("state").is_in(["active", "proto"])).select("edge_no", "decay_lambda"))
        low, high = pl.col("decay_lambda").min(), pl.col("decay_lambda").max()
        spread = pl.concat(rates)
        if spread.height and not spread.select(low == high).item():
            found.append(spread.group_by("edge_no").agg(low.alias("low"), high.alias("high"))
                         .filter(pl.col("low") != pl.col("high")).select("edge_no"))  # fmt: skip
    elif prior is not None and facts.height:
        # The facts are at the default rate; a record that they end in may have been opened at another.
        other = prior.filter(pl.col("state").is_in(["active", "proto"]), pl.col("decay_lambda") != params.decay_lambda)
        found.append(other.select("edge_no").join(facts.select("edge_no"), on="edge_no", how="semi"))
    touched = pl.concat(found) if found else pl.DataFrame(schema={"edge_no": pl.Int32()})
    if not touched.height:
        return pl.Series(dtype=pl.Int32)
    return edges.join(touched.unique(), on="edge_no", how="semi")["pair_no"].unique()


def _join(one: Folded, other: Folded) -> Folded:
    """Both folds as one; the second's lives are numbered after the first's."""
    offset = one.lives.height

    def shifted(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(
            pl.col(name) + offset for name in ("life", "record", "other") if name in frame.columns
        )

    nights = one.nights.with_columns(pl.col(name) + other.nights[name] for name in NIGHTS)
    return Folded(
        pl.concat([one.outcomes, shifted(other.outcomes)]),
        pl.concat([one.derived, shifted(other.derived)]),
        pl.concat([one.records, shifted(other.records)]),
        pl.concat([one.lives, shifted(other.lives)]),
        nights,
    )
