"""A procedure as a graph: its canonical content, its hash, and what changed between two of them.

A graph is ``{"nodes": [{"id", ...}], "edges": [{"src", "dst", ...}], "properties": {...}}``. Two graphs are equal if
they hold the same nodes, edges and properties, in whatever order they were written down. The canonical text is the
RFC 8785 form of the graph with its nodes and its edges sorted; the hash is taken over the same items, each with its
length before it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, NoReturn, cast

import polars as pl
import rfc8785

from mnemokit.errors import InvalidInput

Item = Mapping[str, object]
Graph = Mapping[str, object]
"""``{"nodes": [...], "edges": [...], "properties": {...}}``; a missing part is empty."""

MAX_INTEGER = 2**53 - 1
"""The largest integer that JSON numbers carry exactly."""

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
    nodes, edges, properties = _parts_of_text(graph) if isinstance(graph, str) else _parts(graph)
    _check_ends(nodes, edges)
    items = [*nodes, *edges, properties]
    try:
        texts = _item_texts(items)
        return assemble(texts[: len(nodes)], texts[len(nodes) : -1], texts[-1])
    except (UnicodeEncodeError, rfc8785.CanonicalizationError, RecursionError):
        _explain_items(items, len(nodes), len(edges))
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
    sides = [_parts(from_text(canonical(graph).text)) for graph in (before, after)]
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
    _refuse_foreign(value, place, "")
    return _dumps(value)


# The parts of a graph ---------------------------------------------------------------------------------------------

_PARTS = ("nodes", "edges", "properties")
_SCALARS = frozenset[type]({str, bool, type(None), int})
_SPACED_COLON = re.compile(r'"\s+:')
_BETWEEN = "\x1e"
_BETWEEN_TEXT = ',"\\u001e",'
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


Items = list[dict[str, object]]


def _parts_of_text(text: str) -> tuple[Items, Items, dict[str, object]]:
    """The parts of a graph given as JSON text, in which no object may name anything twice."""
    parts = _parts(_parsed(text, None))
    # Looking for repeated names object by object is slow; where every name in the text can be counted, none was lost.
    named = sum(map(len, chain(parts[0], parts[1]))) + len(parts[2])
    certain = "\\" not in text and _SPACED_COLON.search(text) is None
    if certain and text.count('":') == named + sum(f'"{part}":' in text for part in _PARTS):
        return parts
    return _parts(_parsed(text, _unique_names))


def _parsed(text: str, hook: Callable[[list[tuple[str, object]]], dict[str, object]] | None) -> Graph:
    try:
        graph = json.loads(text, object_pairs_hook=hook)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the graph's text is no JSON that can be read ({error}); nothing was written") from None
    return cast("Graph", graph)


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidInput(f"the graph's text names {name!r} twice in one object; nothing was written")
    return found


def _stored_number(digits: str) -> int | float:
    number = int(digits)
    return number if -MAX_INTEGER <= number <= MAX_INTEGER else float(digits)


def _parts(graph: Graph) -> tuple[Items, Items, dict[str, object]]:
    if not isinstance(graph, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
        raise InvalidInput(
            f'a graph is {{"nodes": [...], "edges": [...], "properties": {{...}}}}, not {type(graph).__name__}; '
            "nothing was written"
        )
    if not graph.keys() <= set(_PARTS):
        unknown = next(name for name in graph if name not in _PARTS)
        raise InvalidInput(
            f"a graph has nodes, edges and properties, not {unknown!r}; put it under properties; nothing was written"
        )
    properties = graph.get("properties")
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping):
        raise InvalidInput(
            f"the graph's properties must be a mapping, not {type(properties).__name__}; nothing was written"
        )
    return _items(graph, "nodes"), _items(graph, "edges"), dict(cast("Item", properties))


def _items(graph: Graph, part: str) -> Items:
    items = graph.get(part)
    if items is None:
        return []
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise InvalidInput(f"the graph's {part} must be a list, not {type(items).__name__}; nothing was written")
    if isinstance(items, list) and set(map(type, cast("list[object]", items))) <= {dict}:
        return cast("Items", items)
    found: Items = []
    for place, item in enumerate(cast("Sequence[object]", items)):
        if not isinstance(item, Mapping):
            raise InvalidInput(f"{part}[{place}] must be a mapping, not {type(item).__name__}; nothing was written")
        found.append(dict(cast("Item", item)))
    return found


def _check_ends(nodes: Items, edges: Items) -> None:
    try:
        ids = [node["id"] for node in nodes]
        ends = [edge["src"] for edge in edges] + [edge["dst"] for edge in edges]
        known = set(ids)
        good = len(known) == len(ids) and known.issuperset(ends) and set(map(type, chain(ids, ends))) <= {str}
    except (KeyError, TypeError):
        good = False
    if not good:
        _explain_ends(nodes, edges)


def _explain_ends(nodes: Items, edges: Items) -> None:
    """Raise what is wrong with ids and ends; return if they are only unusual (numbers as ids)."""
    known: set[object] = set()
    for place, node in enumerate(nodes):
        if "id" not in node:
            raise InvalidInput(f"nodes[{place}] has no id; nothing was written")
        name = _end(node["id"], f"nodes[{place}].id")
        if name in known:
            raise InvalidInput(f"two nodes have the id {name!r}; node ids must be unique; nothing was written")
        known.add(name)
    for place, edge in enumerate(edges):
        for side in ("src", "dst"):
            if side not in edge:
                raise InvalidInput(f"edges[{place}] has no {side}; nothing was written")
            name = _end(edge[side], f"edges[{place}].{side}")
            if name not in known:
                raise InvalidInput(
                    f"edges[{place}] has {side} {name!r}, and there is no node of that id; nothing was written"
                )


def _end(value: object, place: str) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidInput(f"{place} must be a text or a number, not {value!r}; nothing was written")
    return value


# Canonical texts ----------------------------------------------------------------------------------------------------


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


def _explain_items(items: Items, nodes: int, edges: int) -> None:
    """Raise what is wrong with items that cannot be written as RFC 8785 text."""
    for place, item in enumerate(items):
        try:
            _refuse_foreign(item, _owner(place, item, nodes, edges), "")
        except RecursionError:
            raise InvalidInput(
                f"{_owner(place, item, nodes, edges)} is nested too deep to be kept; nothing was written"
            ) from None


def _owner(place: int, item: dict[str, object], nodes: int, edges: int) -> str:
    if place < nodes:
        return f"node {item['id']!r}"
    if place < nodes + edges:
        return f"edge {item['src']!r} -> {item['dst']!r}"
    return "the graph's properties"


def _refuse_foreign(value: object, owner: str, path: str) -> None:
    """Raise for what JSON cannot carry faithfully, naming where it is."""
    match value:
        case None | bool():
            return
        case str():
            _refuse_surrogates(value, owner, path)
        case int():
            if not -MAX_INTEGER <= value <= MAX_INTEGER:
                _refuse(owner, path, f"is the integer {value:.6g}, and JSON carries integers only below 2^53")
        case float():
            if not math.isfinite(value):
                _refuse(owner, path, f"is {value!r}, and JSON has no such number")
        case Mapping():
            for name, inner in cast("Mapping[object, object]", value).items():
                if not isinstance(name, str):
                    _refuse(owner, path, f"has the name {name!r}, and JSON names are texts")
                _refuse_surrogates(name, owner, f"{path}.{name!a}" if path else ascii(name))
                _refuse_foreign(inner, owner, f"{path}.{name}" if path else name)
        case list() | tuple():
            for position, inner in enumerate(cast("Sequence[object]", value)):
                _refuse_foreign(inner, owner, f"{path}[{position}]")
        case _:
            _refuse(owner, path, f"is of type {type(value).__name__}, which JSON does not know")


def _refuse_surrogates(text: str, owner: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(owner, path, f"is {text!a}, which holds a lone surrogate and is no Unicode text")


def _refuse(owner: str, path: str, why: str) -> NoReturn:
    where = f"{owner}: property {path}" if path else owner
    raise InvalidInput(f"{where} {why}; nothing was written")


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
