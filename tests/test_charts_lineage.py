"""Lineage trees: every version has a place of its own, below nothing that it did not come from."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import charts, errors
from mnemokit.charts.tree_layout import lay_out, with_roots
from tests import chart_frames as made
from tests.test_charts_edges import subtitle

parents = st.lists(st.integers(-1, 40), min_size=1, max_size=40).map(
    lambda picks: [
        (f"r{number}", None if pick < 0 or number == 0 else f"r{pick % number}") for number, pick in enumerate(picks)
    ]
)


def nodes(pairs: list[tuple[str, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(pairs, schema={"reasonlet_id": pl.String, "parent_id": pl.String}, orient="row")


@given(parents)
@settings(max_examples=60, deadline=None)
def test_root_and_depth_are_what_climbing_the_parents_one_by_one_gives(pairs):
    parent = dict(pairs)

    def climb(node: str) -> tuple[str, int]:
        depth = 0
        while parent[node] is not None:
            node, depth = parent[node], depth + 1
        return node, depth

    found = with_roots(nodes(pairs))
    assert found.select("reasonlet_id", "root_id", "depth").rows() == [(node, *climb(node)) for node, _ in pairs]


@given(parents)
@settings(max_examples=60, deadline=None)
def test_no_two_versions_share_a_place_and_no_line_crosses_another(pairs):
    placed = lay_out(with_roots(nodes(pairs)))
    assert placed.select("depth", "row").is_unique().all()
    # A child stands in its parent's row or below it, and the rows of a subtree are its own.
    below = placed.filter(pl.col("parent_row").is_not_null())
    assert (below["row"] >= below["parent_row"]).all()
    spans = (
        placed.group_by("root_id").agg(pl.col("row").min().alias("low"), pl.col("row").max().alias("high")).sort("low")
    )
    assert (spans["low"].slice(1) > spans["high"].head(spans.height - 1)).all()
    assert sorted(placed["row"].unique().to_list()) == list(range(placed["row"].n_unique()))


def test_a_parent_that_is_gone_makes_a_root():
    assert with_roots(nodes([("b", "gone")])).rows() == [("b", "gone", "b", 0)]


def test_parents_in_a_circle_are_refused():
    with pytest.raises(errors.InvalidInput, match="circle"):
        with_roots(nodes([("a", "b"), ("b", "a")]))


def test_a_lineage_of_depth_a_thousand_is_laid_out():
    chain = nodes([("r0", None), *((f"r{number}", f"r{number - 1}") for number in range(1, 1_000))])
    placed = lay_out(with_roots(chain))
    assert placed["depth"].max() == 999
    assert placed["row"].n_unique() == 1


def drawn(chart: charts.Drawing) -> list[dict[str, object]]:
    return next(data for data in chart.to_dict()["datasets"].values() if "version" in data[0])


FOREST = (
    ("a", None, "1.0", 5, 10),
    ("b", "a", "1.1", 7, 8),
    ("c", "a", "1.2", 1, 3),
    ("x", None, "1.0", 1, 1),
    ("y", None, "1.0", 0, 2),
)


def test_the_colour_is_the_rate_and_the_size_the_counted_runs():
    chart = charts.lineage(made.ranked(*FOREST))
    dots = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "circle")
    assert dots["encoding"]["color"]["field"] == "rate"
    assert dots["encoding"]["size"]["field"] == "n"
    b = next(row for row in drawn(chart) if row["label"] == "how to b")
    assert (b["n"], b["record"], b["version"], b["depth"]) == (8, "7 of 8", "1.1", 1)


def test_lineages_with_most_versions_come_first_then_those_with_most_runs():
    chart = charts.lineage(made.ranked(*FOREST), top=2)
    assert {row["label"] for row in drawn(chart)} == {"how to a", "how to b", "how to c", "how to y"}
    assert "2 of 3 lineages shown; left out, those with fewer versions: how to x." in subtitle(chart)


def test_one_lineage_can_be_asked_for_by_any_of_its_versions():
    assert {row["label"] for row in drawn(charts.lineage(made.ranked(*FOREST), root="c"))} == {
        "how to a",
        "how to b",
        "how to c",
    }
    assert charts.lineage(made.ranked(*FOREST), root="nobody").to_dict()["mark"]["type"] == "text"


def chain(versions: int) -> pl.DataFrame:
    return made.ranked(
        ("v0", None, "1.0", 1, 2),
        *((f"v{number}", f"v{number - 1}", f"1.{number}", 1, 2) for number in range(1, versions)),
    )


@pytest.mark.parametrize("versions", [12, 60, 61, 84, 400])
def test_a_long_lineage_is_no_wider_than_a_page(versions):
    spec = charts.lineage(chain(versions)).to_dict()
    assert spec["width"] <= 720
    dots = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "circle")
    assert {dots["encoding"][name]["legend"]["orient"] for name in ("color", "size")} == {"top"}, "in sight"


def test_the_middle_of_a_lineage_too_long_to_draw_is_left_out_and_counted():
    chart = charts.lineage(chain(84))
    places = {row["depth"]: row["x"] for row in drawn(chart)}
    assert sorted(places) == [*range(30), *range(55, 84)]
    assert [places[depth] for depth in sorted(places)] == [*range(30), *range(31, 60)]
    assert "25 versions are left out, 30 to 54 versions from the root" in subtitle(chart)
    x = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "circle")["encoding"]["x"]
    assert x["axis"]["labelExpr"] == "datum.value < 30 ? datum.value : datum.value + 24"
    assert 30 not in x["axis"]["values"]


def test_nothing_is_left_out_of_a_lineage_that_fits():
    chart = charts.lineage(chain(60))
    assert [row["x"] for row in drawn(chart)] == [row["depth"] for row in drawn(chart)] == [*range(60)]
    assert "left out" not in subtitle(chart)


def test_versions_beyond_the_limit_are_counted_and_the_first_ones_stay():
    many = made.ranked(
        ("v0", None, "1.0", 0, 1), *((f"v{number}", "v0", f"1.{number}", 0, 0) for number in range(1, 500))
    )
    chart = charts.lineage(many)
    assert len(drawn(chart)) == 400
    assert "100 later versions of these lineages are left out." in subtitle(chart)
    assert "1.0" in {row["version"] for row in drawn(chart)}
