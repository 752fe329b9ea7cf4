"""The parts of a graph, and what is refused in them.

Every refusal names the node or edge and the property, and says that nothing was written.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NoReturn, cast

from mnemokit.errors import InvalidInput

Item = Mapping[str, object]
Graph = Mapping[str, object]
"""``{"nodes": [...], "edges": [...], "properties": {...}}``; a missing part is empty."""
Items = list[dict[str, object]]
Parts = tuple[Items, Items, dict[str, object]]
"""Nodes, edges, properties."""

MAX_INTEGER = 2**53 - 1
"""The largest integer that JSON numbers carry exactly."""

_PARTS = ("nodes", "edges", "properties")
_SPACED_COLON = re.compile(r'"\s+:')


def parts_of_text(text: str) -> Parts:
    """The parts of a graph given as JSON text, in which no object may name anything twice.

    Raises:
        InvalidInput: If it is no JSON, names something twice, or is no graph.
    """
    graph = _parsed(text, None)
    parts = parts_of(graph)
    # Looking for repeated names object by object is slow; where every name in the text can be counted, none was lost.
    named = len(graph) + sum(map(len, chain(parts[0], parts[1]))) + len(parts[2])
    certain = "\\" not in text and _SPACED_COLON.search(text) is None
    return parts if certain and text.count('":') == named else parts_of(_parsed(text, _unique_names))


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


def parts_of(graph: Graph) -> Parts:
    """Nodes, edges and properties of a graph; a missing part is empty.

    Raises:
        InvalidInput: If it is no graph.
    """
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


def check_ends(nodes: Items, edges: Items) -> None:
    """Refuse ids that are missing or used twice, and edges to missing nodes.

    Raises:
        InvalidInput: If there is such a node or edge; it is named.
    """
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


def explain_items(items: Items, nodes: int, edges: int) -> None:
    """Say what is wrong with items (nodes, edges, then the properties) that have no RFC 8785 text.

    Raises:
        InvalidInput: If there is something; the node or edge and the property are named.
    """
    for place, item in enumerate(items):
        try:
            refuse_foreign(item, _owner(place, item, nodes, edges))
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


def refuse_foreign(value: object, owner: str, path: str = "") -> None:
    """Refuse what JSON cannot carry faithfully.

    Raises:
        InvalidInput: If there is such a value; it is named as ``owner: property path``.
    """
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
            if abs(value) > MAX_INTEGER:
                # Every float from here on is an integer, and its text would be read back as one that is refused.
                _refuse(owner, path, f"is {value!r}, and JSON carries integers only below 2^53")
        case Mapping():
            for name, inner in cast("Mapping[object, object]", value).items():
                if not isinstance(name, str):
                    _refuse(owner, path, f"has the name {name!r}, and JSON names are texts")
                _refuse_surrogates(name, owner, f"{path}.{name!a}" if path else ascii(name))
                refuse_foreign(inner, owner, f"{path}.{name}" if path else name)
        case list() | tuple():
            for position, inner in enumerate(cast("Sequence[object]", value)):
                refuse_foreign(inner, owner, f"{path}[{position}]")
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
