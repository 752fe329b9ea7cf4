"""The grid that edges are drawn on: sending executors by receiving ones, those that work together side by side."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl
import rustworkx as rx

MOST_EXECUTORS = 60
KEY = ("src_executor", "dst_executor")
NEEDED = ("src_executor", "src_version", "dst_executor", "dst_version", "weight", "uses", "state")
_STEP = 16


def grid(cells: pl.DataFrame, names: list[str]) -> alt.Chart:
    """A chart of cells with both axes ready; every name has its row and its column."""
    # The order of names is told by the domains: a list to sort by would be written into a program as text.
    return (
        alt.Chart(cells)
        .encode(
            x=alt.X(
                "dst_executor:N",
                title="receiving executor",
                scale=alt.Scale(domain=names),
                axis=alt.Axis(labelAngle=-50, labelLimit=170, grid=True, gridOpacity=0.25, tickBand="extent"),
            ),
            y=alt.Y(
                "src_executor:N",
                title="sending executor",
                scale=alt.Scale(domain=names),
                axis=alt.Axis(labelLimit=190, grid=True, gridOpacity=0.25, tickBand="extent"),
            ),
        )
        .properties(width=alt.Step(_STEP), height=alt.Step(_STEP))
    )


def with_drawn_weight(mnests: pl.DataFrame) -> pl.DataFrame:
    """The edges with ``drawn``: the weight at the instant asked for, where the frame has it, else the stored one."""
    return mnests.with_columns(drawn=pl.col("weight_at" if "weight_at" in mnests.columns else "weight"))


def not_shown(mnests: pl.DataFrame, states: Sequence[str]) -> str | None:
    """A sentence that says which edges are in other states, with how many passings; None if there are none.

    Example:
        >>> edges = pl.DataFrame({"state": ["active", "decaying", "decaying"], "uses": [9, 2, 1]})
        >>> not_shown(edges, ["active"])
        "Not shown: 2 faded (decaying) edges with 3 passings; states=['active', 'decaying'] shows them too."
    """
    others = (
        mnests.filter(~pl.col("state").is_in(list(states)))
        .group_by("state")
        .agg(pl.len().alias("edges"), pl.col("uses").sum())
        .sort("state")
    )
    if others.is_empty():
        return None
    parts = [
        f"{_several(edges, f'{_STATE_WORDS.get(state, state)} edge')} with {_several(uses, 'passing')}"
        for state, edges, uses in others.select("state", "edges", "uses").iter_rows()
    ]
    every = [*states, *others["state"].to_list()]
    return f"Not shown: {', '.join(parts)}; states={every!r} shows them too."


_STATE_WORDS = {"decaying": "faded (decaying)", "proto": "wanted (proto)"}


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def busiest_executors(edges: pl.DataFrame, top: int) -> tuple[list[str], list[str]]:
    """Names to draw, those that work together side by side, and the names that are left out."""
    busy = (
        pl.concat([edges.select(pl.col(end).alias("executor"), "uses") for end in KEY])
        .group_by("executor")
        .agg(pl.col("uses").sum())
        .sort(["uses", "executor"], descending=[True, False])["executor"]
        .to_list()
    )
    return _side_by_side(edges, busy[:top]), busy[top:]


def _side_by_side(edges: pl.DataFrame, names: list[str]) -> list[str]:
    """Order names so that those with strong edges between them are neighbours.

    Group by group (what no edge joins stays apart), in the order of the Fiedler vector: the second eigenvector of the
    normalised Laplacian, which puts what belongs together at the same end of a line.
    """
    place = {name: number for number, name in enumerate(names)}
    strength = np.zeros((len(names), len(names)))
    pairs = edges.filter(pl.all_horizontal(pl.col(KEY).is_in(names))).group_by(KEY).agg(pl.col("uses").sum())
    for src, dst, uses in pairs.sort(KEY).iter_rows():
        if src != dst:
            strength[place[src], place[dst]] += uses
            strength[place[dst], place[src]] += uses
    graph: rx.PyGraph[int, float] = rx.PyGraph.from_adjacency_matrix(strength)
    groups = [sorted(group) for group in rx.connected_components(graph)]
    ordered: list[str] = []
    for group in sorted(groups, key=lambda group: (-len(group), group)):
        line = _fiedler(strength[np.ix_(group, group)]) if len(group) > 2 else np.zeros(len(group))
        places: list[int] = np.argsort(line, kind="stable").tolist()
        ordered.extend(names[group[number]] for number in places)
    return ordered


def _fiedler(strength: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    root = 1 / np.sqrt(strength.sum(axis=1))
    laplacian = np.eye(len(strength)) - root[:, None] * strength * root[None, :]
    vectors: npt.NDArray[np.float64] = np.linalg.eigh(laplacian).eigenvectors
    line: npt.NDArray[np.float64] = root * vectors[:, 1]
    # The sign of an eigenvector means nothing; the busiest executor comes first. Equal places stay equal.
    sign = 1.0 if line[0] <= 0 else -1.0
    return (line * sign).round(9)
