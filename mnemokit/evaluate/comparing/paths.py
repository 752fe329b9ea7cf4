"""The same task, two versions: where do the paths part, and did it pay?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.comparing.groups import Groups
from mnemokit.evaluate.comparing.resampling import ANY_DIFFERENCE, REPLICATES, interval_of_draws
from mnemokit.evaluate.intervals import SEED, Ratio, draws
from mnemokit.evaluate.table import note_on


def paths(groups: Groups, *, within: Sequence[str] | None = None) -> pl.DataFrame:
    """Pair the sessions of the same task, and say where each pair parts.

    A path is the list of a session's parallel groups, each with its executors in order of name: order inside a group
    means nothing. Where a task was run several times in a group, the first runs are paired with each other, and so on.

    Args:
        groups: The sessions.
        within: Columns that make a task; None: scope, question, and ``meta.mode`` where the log has it.

    Returns:
        One row per pair: the columns of ``within``, ``session_id_a, session_id_b, common`` (groups of steps in common),
        ``after`` (executors of the last one; null if they part at the start), ``then_a, then_b`` (what each did next;
        null where it had ended; both null where the paths never part), ``steps_a, steps_b, success_a, success_b``
        and ``gain`` (success_b less success_a).

    Raises:
        InvalidInput: If a column does not exist.
    """
    keys = _keys(groups, within)
    sides = [_side(groups, groups.a, keys), _side(groups, groups.b, keys)]
    pairs = (
        sides[0]
        .join(sides[1], on=[*keys, "turn"], suffix="_b", nulls_equal=True)
        .rename({name: f"{name}_a" for name in ("session", "session_id", "success", "steps")})
        .sort(*keys, "turn")
        .with_row_index("pair")
    )
    walked = _walks(groups)
    one = pairs.select("pair", session="session_a").join(walked, on="session").drop("session")
    other = pairs.select("pair", session="session_b").join(walked, on="session").drop("session")
    steps = one.join(other, on=["pair", "place"], how="full", coalesce=True, suffix="_b").sort("pair", "place")
    parts = steps.filter(pl.col("did").ne_missing(pl.col("did_b"))).group_by("pair", maintain_order=True).first()
    longest = steps.group_by("pair").agg(length=pl.len())
    told = (
        pairs.join(parts.select("pair", "place", then_a="did", then_b="did_b"), on="pair", how="left")
        .join(longest, on="pair", how="left")
        .with_columns(common=pl.coalesce("place", "length").fill_null(0).cast(pl.Int64))
    )
    last = steps.select("pair", common=pl.col("place") + 1, after="did")
    return (
        told.join(last, on=["pair", "common"], how="left")
        .with_columns(gain=pl.col("success_b") - pl.col("success_a"))
        .sort("pair")
        .select(
            *keys, "session_id_a", "session_id_b", "common", "after", "then_a", "then_b", "steps_a", "steps_b",
            "success_a", "success_b", "gain",
        )
    )  # fmt: skip


def partings(
    pairs: pl.DataFrame, *, rng: np.random.Generator | None = None, replicates: int = REPLICATES
) -> pl.DataFrame:
    """Add up `paths`: at which choice do pairs part most, and what did taking b's way earn?

    Args:
        pairs: What `paths` gave.
        rng: Draws pairs.
        replicates: How often.

    Returns:
        One row per (after, then_a, then_b), most pairs first, and one over all pairs (all three null, ``all`` true):
        ``all, after, then_a, then_b, n`` (pairs), ``n_sessions`` (two a pair), ``success_a, success_b, gain, low,
        high`` (95 %, pairs drawn), ``note``. Pairs of unknown outcome are left out.
    """
    known = pairs.drop_nulls("gain")
    generator = np.random.default_rng(SEED) if rng is None else rng
    parted = known.filter(pl.col("then_a").is_not_null() | pl.col("then_b").is_not_null())
    rows = [_summed(known, None, generator, replicates)]
    for key, part in parted.group_by("after", "then_a", "then_b", maintain_order=True):
        rows.append(_summed(part, key, generator, replicates))
    table = pl.DataFrame(rows, schema=_PARTINGS, orient="row", nan_to_null=True)
    return table.sort("all", "n", "after", "then_a", "then_b", descending=[True, True, False, False, False])


_PARTINGS: dict[str, pl.DataType] = {
    "all": pl.Boolean(),
    "after": pl.String(),
    "then_a": pl.String(),
    "then_b": pl.String(),
    "n": pl.Int64(),
    "n_sessions": pl.Int64(),
    "success_a": pl.Float64(),
    "success_b": pl.Float64(),
    "gain": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "note": pl.String(),
}


def _summed(
    part: pl.DataFrame, key: Sequence[object] | None, rng: np.random.Generator, replicates: int
) -> tuple[object, ...]:
    gain = part["gain"].cast(pl.Float64).to_numpy()
    n = gain.size
    low, high = ANY_DIFFERENCE
    if n:
        drawn = draws([Ratio(gain, np.ones(n))], n, replicates, rng).T
        low, high = (float(side[0]) for side in interval_of_draws(drawn, np.array([float(n)]), ANY_DIFFERENCE))
    note = note_on(n, n)
    said = None if note is None else note.replace("sessions", "pairs").replace("session", "pair")
    return (
        key is None,
        *(key if key is not None else (None, None, None)),
        n,
        2 * n,
        part["success_a"].mean(),
        part["success_b"].mean(),
        part["gain"].mean(),
        low,
        high,
        said,
    )


def _keys(groups: Groups, within: Sequence[str] | None) -> list[str]:
    if within is None:
        extra = ["meta.mode"] if "meta.mode" in groups.sessions.columns and groups.by != "meta.mode" else []
        return [name for name in ("scope", "question", *extra) if name != groups.by]
    missing = [name for name in within if name not in groups.sessions.columns]
    if missing:
        raise InvalidInput(
            f"there is no column {missing[0]!r} to make a task of; there are {', '.join(groups.sessions.columns)}"
        )
    return list(within)


def _side(groups: Groups, name: str, keys: list[str]) -> pl.DataFrame:
    success = pl.when(pl.col("outcome") == "success").then(1).when(pl.col("outcome") == "failure").then(0)
    return (
        groups.sessions.filter(group=name)
        .sort("ts", "session", nulls_last=True)
        .with_columns(turn=pl.int_range(pl.len()).over(keys), success=success.cast(pl.Int64))
        .filter(pl.col("question").is_not_null())
        .select(*keys, "turn", "session", "session_id", "success", "steps")
    )


def _walks(groups: Groups) -> pl.DataFrame:
    """What each session did, parallel group by parallel group: session, place, did."""
    return (
        groups.turns.filter(pl.col("executor").is_not_null())
        .group_by("session", "parallel_group")
        .agg(did=pl.col("executor").sort().str.join(" + "), step=pl.col("step").min())
        .sort("session", "step", "parallel_group")
        .select("session", "did", place=pl.int_range(pl.len(), dtype=pl.Int64).over("session"))
    )
