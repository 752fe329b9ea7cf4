"""A procedure as a graph: its canonical content, its hash, and what changed between two of them.

A graph is ``{"nodes": [{"id", ...}], "edges": [{"src", "dst", ...}], "properties": {...}}``. Two graphs are equal if
they hold the same nodes, edges and properties, in whatever order they were written down. The canonical text is the
RFC 8785 form of the graph with its nodes and its edges sorted; the hash is taken over the same items, each with its
length before it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple, cast

import polars as pl
import rfc8785

from mnemokit.errors import InvalidInput
from mnemokit.reasonlets.graph_parts import (
    MAX_INTEGER,
    Graph,
    Item,
    Items,
    check_ends,
    explain_items,
    parts_of,
    parts_of_text,
    refuse_foreign,
)

DIFF_SCHEMA: dict[str, pl.DataType] = {
    "part": pl.String(),
    "change": pl.String(),
    "key": pl.String(),
    "before": pl.String(),
    "after": pl.String(),
}


class Content(NamedTuple):
    """A graph's canonical text (JSON) and its hash (64 hex digits)."""

    text: str
    hash: str


def canonical(graph: Graph | str) -> Content:
    """The canonical content of a graph.

    Args:
        graph: The graph, or its JSON text.

    Returns:
        Its canonical text and hash: equal exactly for graphs of equal content.

    Raises:
        InvalidInput: If the graph holds what JSON cannot carry faithfully (NaN, infinities, integers of 2^53 and
            beyond, lone surrogates), if a node id is missing or used twice, or if an edge leads to a missing node. The
            message names the node or edge and the property.

    Example:
        >>> one = {"nodes": [{"id": "a"}, {"id": "b", "retries": 1}], "edges": [{"src": "a", "dst": "b"}]}
        >>> two = {"edges": [{"dst": "b", "src": "a"}], "nodes": [{"retries": 1.0, "id": "b"}, {"id": "a"}]}
        >>> canonical(one).hash == canonical(two).hash
        True
        >>> canonical(one).text
        '{"edges":[{"dst":"b","src":"a"}],"nodes":[{"id":"a"},{"id":"b","retries":1}],"properties":{}}'
    """
    nodes, edges, properties = parts_of_text(graph) if isinstance(graph, str) else parts_of(graph)
    check_ends(nodes, edges)
    items = [*nodes, *edges, properties]
    try:
        texts = _item_texts(items)
        return assemble(texts[: len(nodes)], texts[len(nodes) : -1], texts[-1])
    except (UnicodeEncodeError, rfc8785.CanonicalizationError, RecursionError):
        explain_items(items, len(nodes), len(edges))
        raise


def assemble(nodes: Iterable[str], edges: Iterable[str], properties: str = "{}") -> Content:
    """The content made of items that are canonical JSON texts already, in any order.

    Example:
        >>> assemble(['{"id":"b"}', '{"id":"a"}'], []).text
        '{"edges":[],"nodes":[{"id":"a"},{"id":"b"}],"properties":{}}'
    """
    node_texts, edge_texts = sorted(nodes), sorted(edges)
    text = f'{{"edges":[{",".join(edge_texts)}],"nodes":[{",".join(node_texts)}],"properties":{properties}}}'
    if text.isascii():
        prefixed = [f"{len(item)}:{item}" for item in chain(node_texts, edge_texts)]
        length = len(properties)
    else:
        prefixed = [f"{len(item.encode())}:{item}" for item in chain(node_texts, edge_texts)]
        length = len(properties.encode())
    counted = f"{len(node_texts)};{len(edge_texts)};{''.join(prefixed)}{length}:{properties}"
    return Content(text, hashlib.sha256(counted.encode()).hexdigest())


def assemble_many(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """The contents of many plain graphs at once.

    Args:
        nodes: Columns ``graph_no`` (Int64) and ``id`` (String), one row per node, ids unique within a graph.
        edges: Columns ``graph_no``, ``src`` and ``dst``, one row per edge; parallel edges count.

    Returns:
        One row per graph that has a node: ``graph_no``, ``graph`` (canonical JSON), ``graph_hash``; by ``graph_no``.

    Raises:
        InvalidInput: If an id repeats within a graph or an edge leads to a missing node.

    Example:
        >>> nodes = pl.DataFrame({"graph_no": [7, 7], "id": ["a", "b"]})
        >>> edges = pl.DataFrame({"graph_no": [7], "src": ["a"], "dst": ["b"]})
        >>> assemble_many(nodes, edges)["graph"].to_list()
        ['{"edges":[{"dst":"b","src":"a"}],"nodes":[{"id":"a"},{"id":"b"}],"properties":{}}']
    """
    _check_plain(nodes, edges)
    names = nodes.select(pl.col("id").unique())["id"]
    quoted = pl.Series([_dumps(name) for name in names.to_list()], dtype=pl.String)
    node_texts = (
        nodes.select("graph_no", text='{"id":' + pl.col("id").replace_strict(names, quoted) + "}")
        .group_by("graph_no")
        .agg(nodes=pl.col("text").sort())
    )
    edge_texts = (
        edges.select(
            "graph_no",
            text='{"dst":'
            + pl.col("dst").replace_strict(names, quoted)
            + ',"src":'
            + pl.col("src").replace_strict(names, quoted)
            + "}",
        )
        .group_by("graph_no")
        .agg(edges=pl.col("text").sort())
    )
    graphs = node_texts.join(edge_texts, on="graph_no", how="left").sort("graph_no")
    contents = [assemble(node, edge or ()) for node, edge in graphs.select("nodes", "edges").iter_rows()]
    return pl.DataFrame(
        {
            "graph_no": graphs["graph_no"],
            "graph": pl.Series([content.text for content in contents], dtype=pl.String),
            "graph_hash": pl.Series([content.hash for content in contents], dtype=pl.String),
        }
    )


def from_text(text: str) -> dict[str, object]:
    """The graph that a canonical text stands for.

    Example:
        >>> from_text(canonical({"nodes": [{"id": "a"}]}).text)
        {'edges': [], 'nodes': [{'id': 'a'}], 'properties': {}}
    """
    return cast("dict[str, object]", json.loads(text, parse_int=_stored_number))


def diff(before: Graph | str, after: Graph | str) -> pl.DataFrame:
    """What changed from one graph to another.

    Nodes are matched by id, edges by their ends, properties by name. Of parallel edges, equal ones are matched
    first; the rest are compared in canonical order.

    Args:
        before: The graph before, or its canonical text.
        after: The graph after.

    Returns:
        One row per difference: ``part`` (node, edge, property), ``change`` (added, removed, changed), ``key`` (the
        id, ``src -> dst``, or the name), ``before`` and ``after`` (canonical JSON, null where there is none). Empty
        for equal graphs.

    Example:
        >>> one = {"nodes": [{"id": "a", "tries": 1}]}
        >>> two = {"nodes": [{"id": "a", "tries": 2}, {"id": "b"}]}
        >>> diff(one, two).select("part", "change", "key").rows()
        [('node', 'changed', 'a'), ('node', 'added', 'b')]
    """
    sides = [parts_of(from_text(canonical(graph).text)) for graph in (before, after)]
    rows: list[tuple[str, str, str, str | None, str | None]] = []
    for part, key_of, items in (
        ("node", _node_key, [side[0] for side in sides]),
        ("edge", _edge_key, [side[1] for side in sides]),
        ("property", _property_key, [[{name: value} for name, value in side[2].items()] for side in sides]),
    ):
        rows += [(part, *row) for row in _differences(items[0], items[1], key_of)]
    return pl.DataFrame(rows, schema=DIFF_SCHEMA, orient="row")


def canonical_json(value: object, place: str) -> str:
    """The RFC 8785 text of any JSON value.

    Args:
        value: The value.
        place: What it is, for the error.

    Raises:
        InvalidInput: If JSON cannot carry it.

    Example:
        >>> canonical_json({"b": 1.0, "a": None}, "provenance")
        '{"a":null,"b":1}'
    """
    refuse_foreign(value, place)
    return _dumps(value)


# Canonical texts ----------------------------------------------------------------------------------------------------

_SCALARS = frozenset[type]({str, bool, type(None), int})
_BETWEEN = "\x1e"
_BETWEEN_TEXT = ',"\\u001e",'
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def _item_texts(items: Items) -> list[str]:
    """The RFC 8785 text of each item."""
    if _plain(items):
        return _encode_plain(items)
    return [_encode_plain([item])[0] if _plain([item]) else _dumps(item) for item in items]


def _plain(items: Items) -> bool:
    """Whether the standard encoder writes these items exactly as RFC 8785 does.

    It does for flat objects with ASCII names (other names may sort differently) whose values are texts, truth values,
    nulls and small integers. (Texts that are no Unicode are refused when they are encoded.)
    """
    try:
        names = "".join(chain.from_iterable(items))
    except TypeError:
        return False
    values = [value for item in items for value in item.values()]
    kinds = set(map(type, values))
    if not kinds <= _SCALARS or not names.isascii():
        return False
    if int not in kinds:
        return True
    numbers = [value for value in values if type(value) is int]
    return min(numbers) >= -MAX_INTEGER and max(numbers) <= MAX_INTEGER


def _encode_plain(items: Items) -> list[str]:
    """The texts of plain items, by one call of the encoder: a text that no flat object can hold stands between them."""
    spaced: list[object] = [_BETWEEN] * (2 * len(items) - 1)
    spaced[::2] = items
    return _encode(spaced)[1:-1].split(_BETWEEN_TEXT)


def _dumps(value: object) -> str:
    return rfc8785.dumps(cast("dict[str, object]", value)).decode()  # pyright: ignore[reportArgumentType]


def _stored_number(digits: str) -> int | float:
    number = int(digits)
    return number if -MAX_INTEGER <= number <= MAX_INTEGER else float(digits)


# Plain graphs in bulk -----------------------------------------------------------------------------------------------


def _check_plain(nodes: pl.DataFrame, edges: pl.DataFrame) -> None:
    twice = nodes.filter(nodes.select("graph_no", "id").is_duplicated())
    if twice.height:
        raise InvalidInput(
            f"graph {twice['graph_no'][0]} has two nodes of the id {twice['id'][0]!r}; nothing was written"
        )
    for side in ("src", "dst"):
        astray = edges.join(nodes, left_on=["graph_no", side], right_on=["graph_no", "id"], how="anti")
        if astray.height:
            raise InvalidInput(
                f"graph {astray['graph_no'][0]} has an edge with {side} {astray[side][0]!r}, and no node of that id; "
                "nothing was written"
            )


# Differences --------------------------------------------------------------------------------------------------------


def _node_key(item: Item) -> str:
    return _readable(item["id"])


def _edge_key(item: Item) -> str:
    return f"{_readable(item['src'])} -> {_readable(item['dst'])}"


def _property_key(item: Item) -> str:
    return next(iter(item))


def _readable(end: object) -> str:
    return end if isinstance(end, str) else _dumps(end)


def _differences(
    before: Items, after: Items, key_of: Callable[[Item], str]
) -> list[tuple[str, str, str | None, str | None]]:
    """Rows (change, key, before, after); items equal on both sides are dropped first."""
    sides = [Counter((key_of(item), _dumps(item)) for item in items) for items in (before, after)]
    removed, added = (_by_key(sides[0] - sides[1]), _by_key(sides[1] - sides[0]))
    rows: list[tuple[str, str, str | None, str | None]] = []
    for key in sorted(removed.keys() | added.keys()):
        old, new = removed.get(key, []), added.get(key, [])
        paired = min(len(old), len(new))
        rows += [("changed", key, one, two) for one, two in zip(old[:paired], new[:paired], strict=True)]
        rows += [("removed", key, one, None) for one in old[paired:]]
        rows += [("added", key, None, two) for two in new[paired:]]
    return rows


def _by_key(items: Counter[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, text in sorted(items.elements()):
        found.setdefault(key, []).append(text)
    return found
