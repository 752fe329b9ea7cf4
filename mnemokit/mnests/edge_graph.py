"""The edge memory as a graph: for rustworkx and networkx, and as frames of groups and strengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl
import rustworkx as rx

from mnemokit.errors import InvalidInput, MissingExtra
from mnemokit.fold.frames import Schema

if TYPE_CHECKING:
    import networkx as nx

Node = tuple[str, str | None]
RustworkxGraph: TypeAlias = "rx.PyDiGraph[Node, dict[str, Any]]"
NetworkxGraph: TypeAlias = "nx.MultiDiGraph[Node]"
GraphKind = Literal["rustworkx", "networkx"]

NODES = ("executor", "version")
GROUPS: Schema = {"group": pl.Int64(), "size": pl.Int64(), "executor": pl.String(), "version": pl.String()}
STRENGTHS: Schema = {
    "executor": pl.String(),
    "version": pl.String(),
    "edges_out": pl.Int64(),
    "uses_out": pl.Int64(),
    "strength_out": pl.Float64(),
    "edges_in": pl.Int64(),
    "uses_in": pl.Int64(),
    "strength_in": pl.Float64(),
}


def graph_edges(
    mnests: pl.DataFrame,
    *,
    states: Sequence[str] = ("active",),
    min_weight: float = 0.0,
    collapse_versions: bool = False,
) -> pl.DataFrame:
    """The edges of a graph: records in these states and heavy enough, one row per pair of nodes and state.

    Args:
        mnests: Records, with weight_at.
        states: Which records are edges.
        min_weight: The least ``weight_at``.
        collapse_versions: Make one node of all versions of an executor; parallel edges become one with their uses
            together and the largest weight.

    Returns:
        Columns src_executor, src_version, dst_executor, dst_version, state, weight (``weight_at``), uses, records,
        mnest_ids; versions are null where they are collapsed.
    """
    chosen = mnests.filter(pl.col("state").is_in(list(states)) & (pl.col("weight_at") >= min_weight))
    if collapse_versions:
        nothing = pl.lit(None, pl.String())
        chosen = chosen.with_columns(src_version=nothing, dst_version=nothing)
    keys = ["src_executor", "src_version", "dst_executor", "dst_version", "state"]
    return (
        chosen.group_by(keys)
        .agg(
            weight=pl.col("weight_at").max(),
            uses=pl.col("uses").sum(),
            records=pl.len().cast(pl.Int64),
            mnest_ids=pl.col("mnest_id").sort(),
        )
        .sort(keys, nulls_last=False)
    )


def to_rustworkx(edges: pl.DataFrame) -> RustworkxGraph:
    """A directed multigraph; nodes are (executor, version), edges are rows of ``graph_edges`` as dicts.

    Example:
        >>> edges = pl.DataFrame({"src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"],
        ...                       "dst_version": ["1"], "state": ["active"], "weight": [0.3], "uses": [1]})
        >>> graph = to_rustworkx(edges)
        >>> graph.nodes(), graph.edges()[0]["weight"]
        ([('buy', '1'), ('find', '1')], 0.3)
    """
    nodes, numbered = _number_nodes(edges)
    graph: RustworkxGraph = rx.PyDiGraph()
    graph.add_nodes_from(list(nodes.select(NODES).iter_rows()))
    graph.add_edges_from(list(zip(numbered["src"], numbered["dst"], edges.iter_rows(named=True), strict=True)))
    return graph


def to_networkx(edges: pl.DataFrame) -> NetworkxGraph:
    """The same graph for networkx (extra ``graph``).

    Raises:
        MissingExtra: If networkx is not installed.
    """
    try:
        import networkx
    except ImportError:
        raise MissingExtra("networkx is not installed; pip install 'mnemokit[graph]'") from None
    graph: NetworkxGraph = networkx.MultiDiGraph()
    for row in edges.iter_rows(named=True):
        source, target = (row["src_executor"], row["src_version"]), (row["dst_executor"], row["dst_version"])
        graph.add_edge(source, target, key=row["state"], **row)
    return graph


def strong_groups(edges: pl.DataFrame) -> pl.DataFrame:
    """Strongly connected groups: executors that all reach each other; the largest first, singles included.

    Returns:
        Columns group (from 0), size, executor, version.
    """
    graph = to_rustworkx(edges)
    found = [sorted(graph[node] for node in group) for group in rx.strongly_connected_components(graph)]
    found.sort(key=lambda group: (-len(group), [(name, version or "") for name, version in group]))
    rows = [
        (number, len(group), executor, version) for number, group in enumerate(found) for executor, version in group
    ]
    return pl.DataFrame(rows, schema=GROUPS, orient="row")


def strengths(edges: pl.DataFrame) -> pl.DataFrame:
    """How much passes out of and into each node: edges, uses, and the sum of weights each way."""
    sides = [
        edges.group_by(pl.col(f"{end}_executor").alias("executor"), pl.col(f"{end}_version").alias("version")).agg(
            pl.len().cast(pl.Int64).alias(f"edges_{way}"),
            pl.col("uses").sum().alias(f"uses_{way}"),
            pl.col("weight").sum().alias(f"strength_{way}"),
        )
        for end, way in (("src", "out"), ("dst", "in"))
    ]
    both = sides[0].join(sides[1], on=list(NODES), how="full", coalesce=True, nulls_equal=True)
    counts = [name for name in STRENGTHS if name not in NODES]
    return (
        both.with_columns(pl.col(counts).fill_null(0))
        .select(pl.col(name).cast(dtype) for name, dtype in STRENGTHS.items())
        .sort("executor", "version", nulls_last=False)
    )


def checked_kind(kind: str) -> str:
    """The library a graph is for.

    Raises:
        InvalidInput: If it is neither rustworkx nor networkx.
    """
    if kind not in ("rustworkx", "networkx"):
        raise InvalidInput(f"kind must be 'rustworkx' or 'networkx', not {kind!r}")
    return kind


def _number_nodes(edges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    ends = [edges.select(executor=f"{end}_executor", version=f"{end}_version") for end in ("src", "dst")]
    nodes = pl.concat(ends).unique().sort(*NODES, nulls_last=False).with_row_index("node")
    places = [
        end.join(nodes, on=list(NODES), how="left", nulls_equal=True, maintain_order="left")["node"] for end in ends
    ]
    return nodes, pl.DataFrame({"src": places[0], "dst": places[1]})
