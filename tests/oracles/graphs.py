"""The content of a graph, written down as the rule says it, one item at a time."""

from __future__ import annotations

import hashlib

import rfc8785


def content_hash(graph):
    """RFC 8785 JSON of each node, each edge and the properties; sorted; length-prefixed; SHA-256."""
    nodes = sorted(rfc8785.dumps(node) for node in graph.get("nodes", []))
    edges = sorted(rfc8785.dumps(edge) for edge in graph.get("edges", []))
    properties = rfc8785.dumps(graph.get("properties", {}))
    digest = hashlib.sha256()
    digest.update(b"%d;%d;" % (len(nodes), len(edges)))
    for item in [*nodes, *edges, properties]:
        digest.update(b"%d:%s" % (len(item), item))
    return digest.hexdigest()


def content_text(graph):
    """The same content as one RFC 8785 text."""
    nodes = sorted(graph.get("nodes", []), key=rfc8785.dumps)
    edges = sorted(graph.get("edges", []), key=rfc8785.dumps)
    return rfc8785.dumps({"nodes": nodes, "edges": edges, "properties": graph.get("properties", {})}).decode()
