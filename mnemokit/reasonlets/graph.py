"""A procedure as a graph: its canonical content, its hash, and what changed between two of them.

A graph is ``{"nodes": [{"id", ...}], "edges": [{"src", "dst", ...}], "properties": {...}}``. Two graphs are equal if
they hold the same nodes, edges and properties, in whatever order they were written down. The canonical text is the
RFC 8785 form of the graph with its nodes and its edges sorted; the hash is taken over the same items, each with its
length before it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import NamedTuple, cast

import polars as pl
import rfc8785

from mnemokit.errors import InvalidInput
from mnemokit.reasonlets.graph_parts import (
    MAX_INTEGER,
    Graph,
    Item,
    Items,
    Parts,
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
    "property": pl.String(),
}
"""What changed between two graphs: which part (node, node property, edge, property), how (added, removed, changed), the
key to read it by, the canonical JSON before and after, and the name of the property if the row is about one."""


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
            beyond, also as floats, lone surrogates), if a node id is missing or used twice, or if an edge leads to a
            missing node. The message names the node or edge and the property.

    Example:
        >>> one = {"nodes": [{"id": "a"}, {"id": "b", "retries": 1}], "edges": [{"src": "a", "dst": "b"}]}
        >>> two = {"edges": [{"dst": "b", "src": "a"}], "nodes": [{"retries": 1.0, "id": "b"}, {"id": "a"}]}
        >>> canonical(one).hash == canonical(two).hash
        True
        >>> canonical(one).text
        '{"edges":[{"dst":"b","src":"a"}],"nodes":[{"id":"a"},{"id":"b","retries":1}],"properties":{}}'
    """
    nodes, edges, properties = _checked_parts(graph)
    items = [*nodes, *edges, properties]
    try:
        plain = _plain(items)
        texts = _encode_plain(items) if plain else list(map(_item_text, items))
        if not plain and any(map(_MAYBE_LARGE, texts)):
            explain_items(items, len(nodes), len(edges))
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

    Nodes are matched by id, edges by their ends (both by content: 1 and 1.0 are one id, 1 and "1" are two), properties
    by name. Of parallel edges, equal ones are matched first; the rest are compared in canonical order.

    Args:
        before: The graph before, or its canonical text.
        after: The graph after.

    Returns:
        One row per difference; empty for equal graphs.

        | column | meaning |
        |---|---|
        | part | node, node property (of a node on both sides), edge, property (of the graph) |
        | change | added, removed, changed (never a node: its properties are) |
        | key | to read it by: the node's id, ``src -> dst``, or the graph's property; two ids may look alike |
        | before, after | canonical JSON of the node, edge or property's value; null where there is none |
        | property | the property's name; null for a whole node or edge |

    Raises:
        InvalidInput: If one of them is no graph, or holds what JSON cannot carry faithfully. Floats of 2^53 and beyond
            are compared all the same: older stores hold some.

    Example:
        >>> one = {"nodes": [{"id": "a", "tries": 1}]}
        >>> two = {"nodes": [{"id": "a", "tries": 2}, {"id": "b"}]}
        >>> diff(one, two).select("part", "change", "key", "property", "after").rows()
        [('node', 'added', 'b', None, '{"id":"b"}'), ('node property', 'changed', 'a', 'tries', '2')]
    """
    old, new = (_checked_parts(graph) for graph in (before, after))
    try:
        rows = [
            *_node_rows(_by_id(old[0]), _by_id(new[0])),
            *_edge_rows(_by_ends(old[1]), _by_ends(new[1])),
            *_property_rows("property", None, old[2], new[2]),
        ]
    except (UnicodeEncodeError, rfc8785.CanonicalizationError, RecursionError):
        for nodes, edges, properties in (old, new):
            explain_items([*nodes, *edges, properties], len(nodes), len(edges))
        raise
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


def _checked_parts(graph: Graph | str) -> Parts:
    parts = parts_of_text(graph) if isinstance(graph, str) else parts_of(graph)
    check_ends(parts[0], parts[1])
    return parts


# Canonical texts ----------------------------------------------------------------------------------------------------

# Only texts with such digits can hold a float of 2^53 and beyond; the fractions of other numbers do not look like it.
_MAYBE_LARGE = re.compile(r"(?<![.\d])\d{16}|e\+").search
_SCALARS = frozenset[type]({str, bool, type(None), int})
_BETWEEN = "\x1e"
_BETWEEN_TEXT = ',"\\u001e",'
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def _item_text(item: dict[str, object]) -> str:
    """The RFC 8785 text of an item."""
    return _encode_plain([item])[0] if _plain([item]) else _dumps(item)


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


_Row = tuple[str, str, str, str | None, str | None, str | None]
"""The columns of ``DIFF_SCHEMA``."""


class _Key(NamedTuple):
    """What an item is matched by; keys sort as they are read."""

    readable: str
    matched: tuple[str, ...]
    """Canonical JSON of the id, or of the ends: what is equal only to look at is not equal here."""


def _key(*ends: object) -> _Key:
    texts = tuple(map(_dumps, ends))
    readable = (end if isinstance(end, str) else text for end, text in zip(ends, texts, strict=True))
    return _Key(" -> ".join(readable), texts)


def _by_id(nodes: Items) -> dict[_Key, Item]:
    return {_key(node["id"]): node for node in nodes}


def _by_ends(edges: Items) -> dict[_Key, list[str]]:
    found: dict[_Key, list[str]] = {}
    for edge in edges:
        found.setdefault(_key(edge["src"], edge["dst"]), []).append(_dumps(edge))
    return found


def _node_rows(before: dict[_Key, Item], after: dict[_Key, Item]) -> list[_Row]:
    nodes: list[_Row] = []
    properties: list[_Row] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None:
            properties += _property_rows("node property", key.readable, old, new)
        else:
            nodes.append(_row("node", key.readable, *(None if node is None else _dumps(node) for node in (old, new))))
    return nodes + properties


def _edge_rows(before: dict[_Key, list[str]], after: dict[_Key, list[str]]) -> list[_Row]:
    rows: list[_Row] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = (Counter(side.get(key, ())) for side in (before, after))
        pairs = zip_longest(sorted((old - new).elements()), sorted((new - old).elements()))
        rows += [_row("edge", key.readable, *pair) for pair in pairs]
    return rows


def _property_rows(part: str, key: str | None, before: Item, after: Item) -> list[_Row]:
    """The properties that differ; ``key`` is whose they are, None: each stands for itself."""
    rows: list[_Row] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = (_dumps(side[name]) if name in side else None for side in (before, after))
        if old != new:
            rows.append(_row(part, name if key is None else key, old, new, name))
    return rows


def _row(part: str, key: str, before: str | None, after: str | None, name: str | None = None) -> _Row:
    change = "added" if before is None else "removed" if after is None else "changed"
    return (part, change, key, before, after, name)
