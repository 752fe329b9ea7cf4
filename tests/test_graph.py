"""The content of graphs: what is equal, what is refused, what changed."""

from __future__ import annotations

import json
import random
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit.errors import InvalidInput
from mnemokit.reasonlets import graph
from tests.oracles import graphs as oracle

NAMES = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=6)
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2.0**53), 2.0**53, exclude_min=True, exclude_max=True)
SCALARS = st.none() | st.booleans() | NUMBERS | NAMES
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@st.composite
def graphs(draw, values=VALUES):
    ids = draw(st.lists(NAMES, max_size=6, unique=True))
    more = st.dictionaries(NAMES, values, max_size=3)
    nodes = [{**draw(more), "id": name} for name in ids]
    end = st.sampled_from(ids) if ids else st.nothing()
    edges = draw(st.lists(st.tuples(end, end, more), max_size=6)) if ids else []
    return {
        "nodes": nodes,
        "edges": [{**rest, "src": src, "dst": dst} for src, dst, rest in edges],
        "properties": draw(more),
    }


def shuffled(value, rng):
    """The same value with its mappings in another order."""
    if isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        return {name: shuffled(value[name], rng) for name in names}
    if isinstance(value, list):
        return [shuffled(each, rng) for each in value]
    return value


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_the_content_is_rfc_8785_of_each_item_sorted_length_prefixed_and_hashed(one):
    content = graph.canonical(one)
    assert content.hash == oracle.content_hash(one)
    assert content.text == oracle.content_text(one)


@settings(max_examples=150, deadline=None)
@given(graphs(values=NAMES | st.booleans() | st.none() | st.integers(-9, 9)))
def test_the_fast_way_for_plain_graphs_gives_the_same_content(one):
    assert graph.canonical(one).hash == oracle.content_hash(one)
    assert graph.canonical(one).text == oracle.content_text(one)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_equal_whatever_the_order_of_nodes_edges_and_properties(one, rng):
    other = shuffled(one, rng)
    rng.shuffle(other["nodes"])
    rng.shuffle(other["edges"])
    assert graph.canonical(other) == graph.canonical(one)
    assert graph.canonical(json.dumps(other)) == graph.canonical(one)
    assert graph.diff(one, other).is_empty()


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_the_canonical_text_stands_for_the_graph(one):
    text = graph.canonical(one).text
    assert graph.canonical(graph.from_text(text)).text == text


@settings(max_examples=60, deadline=None)
@given(graphs(), graphs())
def test_different_content_has_another_hash_and_a_difference(one, two):
    same = oracle.content_text(one) == oracle.content_text(two)
    assert (graph.canonical(one).hash == graph.canonical(two).hash) == same
    assert graph.diff(one, two).is_empty() == same


def test_node_ids_are_content():
    assert graph.canonical({"nodes": [{"id": "a"}]}) != graph.canonical({"nodes": [{"id": "b"}]})


def test_parallel_edges_count():
    edge = {"src": "a", "dst": "a"}
    one, two = ({"nodes": [{"id": "a"}], "edges": [edge] * n} for n in (1, 2))
    assert graph.canonical(one) != graph.canonical(two)
    assert graph.diff(one, two).rows() == [("edge", "added", "a -> a", None, '{"dst":"a","src":"a"}', None)]


def test_self_loops_and_empty_graphs_are_graphs():
    assert graph.canonical({"nodes": [{"id": "a"}], "edges": [{"src": "a", "dst": "a"}]}).hash
    assert graph.canonical({}) == graph.canonical({"nodes": [], "edges": [], "properties": {}})
    assert graph.canonical({}).text == '{"edges":[],"nodes":[],"properties":{}}'


def test_a_graph_of_ten_thousand_nodes_in_any_order():
    nodes = [{"id": f"n{i}", "weight": i / 8} for i in range(10_000)]
    edges = [{"src": f"n{i}", "dst": f"n{i + 1}"} for i in range(9_999)]
    one = graph.canonical({"nodes": nodes, "edges": edges})
    random.Random(7).shuffle(nodes)
    random.Random(8).shuffle(edges)
    assert graph.canonical({"nodes": nodes, "edges": edges}) == one


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0, -0.0), (-3, -3.0), (10**15, 1e15)])
def test_one_and_one_point_zero_are_equal(one, other):
    contents = [graph.canonical({"properties": {"x": value}}) for value in (one, other)]
    assert contents[0] == contents[1]


def test_numbers_as_node_ids_are_equal_as_numbers_and_not_to_texts():
    one = {"nodes": [{"id": 1}], "edges": [{"src": 1.0, "dst": 1}]}
    assert graph.canonical(one).hash == oracle.content_hash(one)
    assert graph.canonical({"nodes": [{"id": 1}]}) == graph.canonical({"nodes": [{"id": 1.0}]})
    assert graph.canonical({"nodes": [{"id": 1}]}) != graph.canonical({"nodes": [{"id": "1"}]})
    with pytest.raises(InvalidInput, match="two nodes have the id 1"):
        graph.canonical({"nodes": [{"id": 1}, {"id": 1.0}]})


def test_strings_are_equal_only_code_point_by_code_point():
    composed, decomposed = "\u00e9", "e\u0301"
    assert graph.canonical({"nodes": [{"id": composed}]}) != graph.canonical({"nodes": [{"id": decomposed}]})
    assert graph.canonical({"nodes": [{"id": composed}, {"id": decomposed}]}).hash


def test_names_sort_as_rfc_8785_says_beyond_the_basic_plane():
    one = {"properties": {"\ue000": 1, "\U0001f600": 2}}
    assert graph.canonical(one).text == '{"edges":[],"nodes":[],"properties":{"\U0001f600":2,"\ue000":1}}'


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (float("nan"), "is nan, and JSON has no such number"),
        (float("inf"), "is inf, and JSON has no such number"),
        (float("-inf"), "is -inf, and JSON has no such number"),
        (2**53, "JSON carries integers only below 2^53"),
        (-(2**53), "JSON carries integers only below 2^53"),
        (2.0**53, "JSON carries integers only below 2^53"),
        (-(2.0**60), "JSON carries integers only below 2^53"),
        (1e300, "JSON carries integers only below 2^53"),
        ("\ud800", "holds a lone surrogate"),
        (b"bytes", "is of type bytes, which JSON does not know"),
        ({1: "x"}, "has the name 1, and JSON names are texts"),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_what_json_cannot_carry_is_refused_with_its_place(bad, why, deep):
    value = {"deep": [0, bad]} if deep else bad
    path = "p.deep[1]" if deep else "p"
    places = {
        "node 'a'": {"nodes": [{"id": "a", "p": value}]},
        "edge 'a' -> 'b'": {"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"src": "a", "dst": "b", "p": value}]},
        "the graph's properties": {"properties": {"p": value}},
    }
    for owner, one in places.items():
        with pytest.raises(InvalidInput, match="nothing was written") as caught:
            graph.canonical(one)
        assert f"{owner}: property {path} {why}" in str(caught.value) or (
            f"{owner}: property {path}" in str(caught.value) and why in str(caught.value)
        )


def test_the_largest_integers_are_carried():
    one = {"properties": {"x": 2**53 - 1, "y": -(2**53) + 1}}
    assert graph.from_text(graph.canonical(one).text)["properties"] == {"x": 2**53 - 1, "y": -(2**53) + 1}


def test_whatever_is_kept_is_taken_again_from_its_own_text():
    for value in (
        2.0**53 - 1,
        -(2.0**53) + 1,
        0.1 + 0.2,
        1e-300,
        5e-324,
        4503599627370497.5,
        "9007199254740992",
        "1e+21",
    ):
        content = graph.canonical({"nodes": [{"id": "a", "p": value, "q": [value]}]})
        assert graph.canonical(content.text) == content
    with pytest.raises(InvalidInput, match=r"node 'a': property p is 1\.152921504606847e\+18, and JSON"):
        graph.canonical({"nodes": [{"id": "a", "p": 2.0**60}]})


def test_what_an_older_version_kept_of_large_numbers_can_still_be_read_and_compared():
    old = graph.from_text('{"edges":[],"nodes":[{"id":"a","p":1152921504606847000}],"properties":{}}')
    assert old["nodes"] == [{"id": "a", "p": 2.0**60}]
    assert graph.diff(old, {"nodes": [{"id": "a", "p": 1}]})["before"].to_list() == ["1152921504606847000"]


def test_a_lone_surrogate_in_an_id_or_a_name_is_refused():
    with pytest.raises(InvalidInput, match="lone surrogate"):
        graph.canonical({"nodes": [{"id": "\udc00"}]})
    with pytest.raises(InvalidInput, match="lone surrogate"):
        graph.canonical({"properties": {"\udc00": 1}})


@pytest.mark.parametrize(
    ("one", "why"),
    [
        ({"nodes": [{"id": "a"}, {"id": "a"}]}, "two nodes have the id 'a'"),
        ({"nodes": [{"id": "a"}], "edges": [{"src": "a", "dst": "b"}]}, "edges[0] has dst 'b', and there is no node"),
        ({"nodes": [{"id": "a"}], "edges": [{"src": "c", "dst": "a"}]}, "edges[0] has src 'c', and there is no node"),
        ({"nodes": [{"name": "a"}]}, "nodes[0] has no id"),
        ({"nodes": [{"id": None}]}, "nodes[0].id must be a text or a number, not None"),
        ({"nodes": [{"id": True}]}, "nodes[0].id must be a text or a number, not True"),
        ({"nodes": [{"id": "a"}], "edges": [{"src": "a"}]}, "edges[0] has no dst"),
        ({"nodes": ["a"]}, "nodes[0] must be a mapping, not str"),
        ({"nodes": "a"}, "the graph's nodes must be a list, not str"),
        ({"properties": [1]}, "the graph's properties must be a mapping, not list"),
        ({"node": []}, "not 'node'; put it under properties"),
        ([], "not list"),
        ("{", "the graph's text is no JSON"),
        ('{"properties": {"a": 1, "a": 2}}', "names 'a' twice"),
        ('{"edges":[],"properties":{"nodes":1,"a":1,"a":2}}', "names 'a' twice"),
        ('{"properties": {"a" : 1, "a": 2}}', "names 'a' twice"),
        ('{"nodes": [], "nodes": []}', "names 'nodes' twice"),
        ('{"nodes": [{"id": "x", "a": {"b": 1, "b": 2}}]}', "names 'b' twice"),
        ('{"nodes": [{"id": "x\\":", "a": 1, "a": 2}]}', "names 'a' twice"),
        ('{"properties": {"a": NaN}}', "property a is nan"),
        ('{"properties": {"a": 9007199254740993}}', "below 2^53"),
    ],
)
def test_a_malformed_graph_is_refused_with_its_place(one, why):
    with pytest.raises(InvalidInput, match=re.escape(why)):
        graph.canonical(one)


def test_a_difference_names_nodes_edges_and_properties_added_removed_and_changed():
    before = {
        "nodes": [{"id": "a", "tool": "x"}, {"id": "b"}],
        "edges": [{"src": "a", "dst": "b", "label": "then"}],
        "properties": {"kept": 1, "old": 2, "moved": 3},
    }
    after = {
        "nodes": [{"id": "a", "tool": "y"}, {"id": "c"}],
        "edges": [{"src": "a", "dst": "c"}],
        "properties": {"kept": 1.0, "new": 2, "moved": 4},
    }
    assert graph.diff(before, after).select("part", "change", "key", "property").rows() == [
        ("node", "removed", "b", None),
        ("node", "added", "c", None),
        ("node property", "changed", "a", "tool"),
        ("edge", "removed", "a -> b", None),
        ("edge", "added", "a -> c", None),
        ("property", "changed", "moved", "moved"),
        ("property", "added", "new", "new"),
        ("property", "removed", "old", "old"),
    ]
    assert graph.diff({}, {}).schema == pl.Schema(graph.DIFF_SCHEMA)


def test_each_property_of_a_node_that_was_added_removed_or_changed_has_its_own_row():
    before = {"nodes": [{"id": "a", "kept": 1, "old": "x", "moved": [1]}]}
    after = {"nodes": [{"id": "a", "kept": 1.0, "new": None, "moved": [2]}]}
    assert graph.diff(before, after).rows() == [
        ("node property", "changed", "a", "[1]", "[2]", "moved"),
        ("node property", "added", "a", None, "null", "new"),
        ("node property", "removed", "a", '"x"', None, "old"),
    ]


def test_nodes_are_matched_by_the_content_of_their_ids_not_by_how_they_look():
    assert graph.diff({"nodes": [{"id": 1}]}, {"nodes": [{"id": "1"}]}).rows() == [
        ("node", "added", "1", None, '{"id":"1"}', None),
        ("node", "removed", "1", '{"id":1}', None, None),
    ]
    assert graph.diff({"nodes": [{"id": 1, "p": 2}]}, {"nodes": [{"id": 1.0, "p": 2.0}]}).is_empty()


def test_edges_are_matched_by_the_content_of_their_ends_not_by_how_they_look():
    nodes = [{"id": name} for name in ("a", "a -> b", "b -> c", "c")]
    one = {"nodes": nodes, "edges": [{"src": "a -> b", "dst": "c"}]}
    two = {"nodes": nodes, "edges": [{"src": "a", "dst": "b -> c"}]}
    assert sorted(graph.diff(one, two)["change"]) == ["added", "removed"]


def test_a_difference_of_what_json_cannot_carry_is_refused_with_its_place():
    for value, why in ((float("nan"), "is nan"), ("\ud800", "lone surrogate"), (2**53, "below 2^53")):
        with pytest.raises(InvalidInput, match=rf"node 'a': property p .*{re.escape(why)}"):
            graph.diff({}, {"nodes": [{"id": "a", "p": value}]})


def test_an_edge_with_the_same_ends_and_other_properties_is_changed():
    nodes = [{"id": "a"}]
    one, two = ({"nodes": nodes, "edges": [{"src": "a", "dst": "a", "n": n}, {"src": "a", "dst": "a"}]} for n in (1, 2))
    assert graph.diff(one, two).rows() == [
        ("edge", "changed", "a -> a", '{"dst":"a","n":1,"src":"a"}', '{"dst":"a","n":2,"src":"a"}', None)
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.integers(0, 4)), max_size=4),
    st.randoms(use_true_random=False),
)
def test_plain_graphs_in_bulk_have_the_content_of_each(drawn, rng):
    ones, nodes, edges = {}, [], []
    for number, (ids, count) in enumerate(drawn):
        ends = [(rng.choice(ids), rng.choice(ids)) for _ in range(count)]
        ones[number] = {
            "nodes": [{"id": name} for name in ids],
            "edges": [{"src": src, "dst": dst} for src, dst in ends],
        }
        nodes += [(number, name) for name in ids]
        edges += [(number, src, dst) for src, dst in ends]
    frame = graph.assemble_many(
        pl.DataFrame(nodes, schema={"graph_no": pl.Int64, "id": pl.String}, orient="row"),
        pl.DataFrame(edges, schema={"graph_no": pl.Int64, "src": pl.String, "dst": pl.String}, orient="row"),
    )
    expected = [(number, *graph.canonical(one)) for number, one in ones.items()]
    assert frame.rows() == expected
    assert frame.schema == pl.Schema({"graph_no": pl.Int64, "graph": pl.String, "graph_hash": pl.String})


def test_plain_graphs_in_bulk_refuse_what_single_ones_refuse():
    ends = {"graph_no": pl.Int64, "src": pl.String, "dst": pl.String}
    with pytest.raises(InvalidInput, match="graph 3 has two nodes of the id 'a'"):
        graph.assemble_many(pl.DataFrame({"graph_no": [3, 3], "id": ["a", "a"]}), pl.DataFrame(schema=ends))
    with pytest.raises(InvalidInput, match="graph 3 has an edge with dst 'b'"):
        graph.assemble_many(
            pl.DataFrame({"graph_no": [3], "id": ["a"]}),
            pl.DataFrame({"graph_no": [3], "src": ["a"], "dst": ["b"]}),
        )


def test_what_is_nested_too_deep_is_refused():
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="node 'a' is nested too deep"):
        graph.canonical({"nodes": [{"id": "a", "p": deep}]})
    with pytest.raises(InvalidInput, match="no JSON that can be read"):
        graph.canonical('{"properties": {"p": ' + "[" * 100_000 + "]" * 100_000 + "}}")
