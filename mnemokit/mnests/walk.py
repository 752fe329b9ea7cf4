"""Paths along the heaviest edges: a best-first branch-and-bound search, many paths at a time.

A path's value is the mean weight of its edges. Whatever is added to a path of ``d`` edges whose weights sum to ``S``,
no extension of it to ``D`` edges can have a mean above ``(S + (D - d) * heaviest) / D``, with ``heaviest`` the largest
weight of any edge. Paths of one length are extended in order of that bound, ``CHUNK`` at a time. Once ``limit`` paths
are known, a path all of whose extensions stay at or below the worst of them is not followed any further. (At, because
of two paths of equal mean the shorter one comes first, then the one with the smaller names.) So the paths given are
exactly the best ones, unless more than ``BEAM`` paths of one length could still win: then only the most promising are
followed. ``truncated`` says that there are more paths than are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.fold.frames import Schema, with_schema
from mnemokit.records import MnestState
from mnemokit.store import Connection, fetch, lend, query

CHUNK = 2_000
"""Paths that are extended together."""

BEAM = 100_000
"""Paths of one length that are followed at most."""

TEXTS = pl.List(pl.String())
WALK: Schema = {
    "path": pl.String(),
    "executors": TEXTS,
    "versions": TEXTS,
    "mnest_ids": TEXTS,
    "weights": pl.List(pl.Float64()),
    "mean_weight": pl.Float64(),
    "depth": pl.Int64(),
    "truncated": pl.Boolean(),
}
"""Columns of a walk. ``path`` is text for people: ``find@1.0 -> buy@2.0``."""

FOUND: Schema = {
    "path_no": pl.Int64(),
    "mnest_id": pl.String(),
    "src_version": pl.String(),
    "dst_executor": pl.String(),
    "dst_version": pl.String(),
    "weight": pl.Float64(),
}

Step = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Edges:
    """Where a walk goes: the weight of the heaviest edge, and how to take a step.

    Attributes:
        heaviest: No edge is heavier.
        step: From paths (path_no, src_executor, src_version, any_version, min_weight) to edges that go on from them and
            weigh more than min_weight: columns of ``FOUND``.
    """

    heaviest: float
    step: Step


def edges_in_store(con: Connection, states: Sequence[str]) -> Edges:
    """The edges of a store as it stands, in these states."""
    bound = {"states": list(states)}
    heaviest = con.execute(query("walk_heaviest"), bound).fetchall()[0][0]

    def step(paths: pl.DataFrame) -> pl.DataFrame:
        with lend(con, lent_paths=paths):
            return fetch(con, query("walk_step"), bound)

    return Edges(heaviest or 0.0, step)


def edges_in_frame(mnests: pl.DataFrame, states: Sequence[str]) -> Edges:
    """The edges of a frame of mnests, in these states, by their ``weight_at``."""
    edges = mnests.filter(pl.col("state").is_in(list(states))).select(
        "mnest_id", "src_executor", "src_version", "dst_executor", "dst_version", weight="weight_at"
    )

    def step(paths: pl.DataFrame) -> pl.DataFrame:
        columns = [*FOUND, "min_weight"]
        reached = paths.filter(~pl.col("any_version")).join(edges, on=["src_executor", "src_version"])
        at_start = paths.filter("any_version").drop("src_version").join(edges, on="src_executor")
        found = pl.concat([reached.select(columns), at_start.select(columns)])
        return found.filter(pl.col("weight") > pl.col("min_weight")).drop("min_weight")

    heaviest = edges.select(pl.col("weight").max().fill_null(0.0)).item()
    return Edges(float(heaviest), step)


def walk(edges: Edges, start: str, *, max_depth: int = 3, limit: int = 100) -> pl.DataFrame:
    """The best paths from an executor.

    Args:
        edges: Where to go.
        start: Name of the executor to start from, in any version.
        max_depth: Edges that a path may have.
        limit: Paths to give at most.

    Returns:
        Columns of ``WALK``, best first: by mean weight, then fewer edges, then names, then versions. A path follows
        versions and meets no executor twice. ``truncated`` is true in every row if there are more paths than these.

    Raises:
        InvalidInput: If max_depth or limit is below 1.
    """
    if max_depth < 1 or limit < 1:
        raise InvalidInput(f"max_depth and limit must be at least 1, not {max_depth} and {limit}")
    ahead = _start(start)
    best = ahead.clear()
    cut = False
    for depth in range(1, max_depth + 1):
        bound = _bound(depth, max_depth, edges.heaviest)
        longer: list[pl.DataFrame] = []
        for chunk in ahead.iter_slices(CHUNK):
            worst = _worst(best, limit)
            needed = _needed(depth, max_depth, edges.heaviest, worst)
            found = _extend(_winning(chunk, _bound(depth - 1, max_depth, edges.heaviest), worst), edges, needed)
            cut = cut or best.height + found.height > limit
            best = _best_first(pl.concat([best, found])).head(limit)
            longer.append(_winning(found, bound, _worst(best, limit)))
        if depth == max_depth:
            break
        ahead = pl.concat([ahead.clear(), *longer])
        ahead = _winning(ahead, bound, _worst(best, limit)).sort(bound, _names(), descending=[True, False])
        if ahead.height > BEAM:
            cut, ahead = True, ahead.head(BEAM)
        if not ahead.height:
            break
    if not cut and best.height == limit:
        # Exactly as many as were asked for: are there more?
        known = pl.concat([_start(start), best.filter(pl.col("depth") < max_depth)])
        cut = _extend(known, edges, pl.lit(-1.0)).height > limit
    return with_schema(best.with_columns(truncated=pl.lit(cut), path=_path_text()), WALK)


def checked_states(states: Sequence[str]) -> list[str]:
    """States that a walk may follow.

    Raises:
        InvalidInput: If there is no such state.
    """
    chosen = [states] if isinstance(states, str) else list(states)
    unknown = [state for state in chosen if state not in set(MnestState)]
    if unknown or not chosen:
        raise InvalidInput(f"states must be some of {', '.join(MnestState)}, not {unknown or 'none'}")
    return [str(state) for state in chosen]


PATHS: Schema = {
    "executors": TEXTS,
    "versions": TEXTS,
    "mnest_ids": TEXTS,
    "weights": pl.List(pl.Float64()),
    "total": pl.Float64(),
    "mean_weight": pl.Float64(),
    "depth": pl.Int64(),
}

SAME = 1e-12
"""Means that differ by less are equal."""


def _start(executor: str) -> pl.DataFrame:
    """The path of no edge; its version is open."""
    row = {"executors": [executor], "versions": [None], "mnest_ids": [], "weights": [], "total": 0.0,
           "mean_weight": 0.0, "depth": 0}  # fmt: skip
    return pl.DataFrame([row], schema=PATHS)


def _extend(paths: pl.DataFrame, edges: Edges, needed: pl.Expr) -> pl.DataFrame:
    """All paths of one edge more, that meet no executor twice and whose new edge weighs more than needed."""
    numbered = paths.with_row_index("path_no").with_columns(pl.col("path_no").cast(pl.Int64))
    asked = numbered.select(
        "path_no",
        src_executor=pl.col("executors").list.last(),
        src_version=pl.col("versions").list.last(),
        any_version=pl.col("depth") == 0,
        min_weight=needed,
    )
    found = edges.step(asked).join(numbered, on="path_no", how="left")
    found = found.filter(~pl.col("executors").list.contains(pl.col("dst_executor")))
    before = pl.when(pl.col("depth") == 0).then(pl.concat_list("src_version")).otherwise("versions")
    total = pl.col("total") + pl.col("weight")
    longer = found.select(
        executors=pl.concat_list("executors", "dst_executor"),
        versions=pl.concat_list(before, "dst_version"),
        mnest_ids=pl.concat_list("mnest_ids", "mnest_id"),
        weights=pl.concat_list("weights", "weight"),
        total=total,
        mean_weight=total / (pl.col("depth") + 1),
        depth=pl.col("depth") + 1,
    )
    return with_schema(longer, PATHS)


def _winning(paths: pl.DataFrame, bound: pl.Expr, worst: float | None) -> pl.DataFrame:
    """Paths that some extension may yet make one of the best."""
    return paths if worst is None else paths.filter(bound > worst + SAME)


def _worst(best: pl.DataFrame, limit: int) -> float | None:
    """What a path has to beat; nothing as long as there are too few."""
    return float(best.row(-1, named=True)["mean_weight"]) if best.height == limit else None


def _bound(depth: int, max_depth: int, heaviest: float) -> pl.Expr:
    """The largest mean that any extension of a path can have."""
    longer = range(depth + 1, max_depth + 1)
    bounds = [(pl.col("total") + (length - depth) * heaviest) / length for length in longer]
    return pl.max_horizontal(*bounds) if bounds else pl.lit(-1.0)


def _needed(depth: int, max_depth: int, heaviest: float, worst: float | None) -> pl.Expr:
    """What the next edge must weigh more than, for the path or an extension of it to beat the worst."""
    if worst is None:
        return pl.lit(-1.0)
    goal = worst + SAME
    return pl.min_horizontal(
        *(goal * length - pl.col("total") - (length - depth) * heaviest for length in range(depth, max_depth + 1))
    )


def _best_first(paths: pl.DataFrame) -> pl.DataFrame:
    """By mean weight, then fewer edges, then names, then versions."""
    versions = pl.col("versions").list.eval(pl.element().fill_null("")).list.join("\0")
    mean = (pl.col("mean_weight") / SAME).round()
    return paths.sort(mean, "depth", _names(), versions, descending=[True, False, False, False])


def _names() -> pl.Expr:
    return pl.col("executors").list.join("\0")


def _path_text() -> pl.Expr:
    """For people: ``find@1.0 -> buy@2.0``; an executor only wished for has no version."""
    steps = pl.struct("executors", "versions").map_elements(
        lambda path: " -> ".join(
            name if version is None else f"{name}@{version}"
            for name, version in zip(path["executors"], path["versions"], strict=True)
        ),
        return_dtype=pl.String,
    )
    return steps.alias("path")
