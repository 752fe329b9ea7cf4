"""Edges as heatmaps: what a cell is, what is left out, and that a difference shows what it rests on."""

from __future__ import annotations

import polars as pl
import pytest

import mnemokit as mk
from mnemokit import charts, errors
from tests import chart_frames as made


def rows(chart: charts.Drawing) -> list[dict[str, object]]:
    """The data of a chart with one data set."""
    (data,) = chart.to_dict()["datasets"].values()
    return data


def subtitle(chart: charts.Drawing) -> str:
    return " ".join(chart.to_dict()["title"]["subtitle"])


def test_a_cell_is_coloured_by_the_heaviest_of_its_edges_and_counts_all_their_passings():
    both = pl.concat(
        [made.mnests(("find", "buy", 0.4, 2), version="1"), made.mnests(("find", "buy", 0.7, 5), version="2")]
    )
    (cell,) = rows(charts.edge_weights(both))
    assert (cell["weight"], cell["uses"], cell["edges"]) == (0.7, 7, 2)


def test_a_to_b_and_b_to_a_are_two_cells():
    cells = rows(charts.edge_weights(made.mnests(("a", "b", 0.4, 2), ("b", "a", 0.9, 3))))
    assert {(cell["src_executor"], cell["dst_executor"], cell["weight"]) for cell in cells} == {
        ("a", "b", 0.4),
        ("b", "a", 0.9),
    }


def test_only_the_states_asked_for_are_drawn():
    frame = pl.concat([made.mnests(("a", "b", 0.4, 2)), made.mnests(("a", "c", 0.1, 2), state="decaying")])
    assert len(rows(charts.edge_weights(frame))) == 1
    assert len(rows(charts.edge_weights(frame, states=("active", "decaying")))) == 2


def test_edges_in_other_states_are_counted_in_the_title_with_the_way_to_see_them():
    frame = pl.concat(
        [
            made.mnests(("a", "b", 0.4, 2)),
            made.mnests(("a", "c", 0.1, 2), ("b", "c", 0.1, 1), state="decaying"),
            made.mnests(("a", "d", 0.3, 1), state="proto"),
        ]
    )
    unseen = "2 faded (decaying) edges with 3 passings"
    wanted = "1 wanted (proto) edge with 1 passing"
    said = subtitle(charts.edge_weights(frame))
    assert f"Not shown: {unseen}, {wanted}; states=['active', 'decaying', 'proto'] shows them too." in said
    assert unseen not in subtitle(charts.edge_weights(frame, states=("active", "decaying")))
    assert "Not shown" not in subtitle(charts.edge_weights(frame, states=("active", "decaying", "proto")))
    assert unseen in subtitle(charts.edge_weights(frame.filter(pl.col("state") == "decaying")))
    assert "4 faded (decaying) edges with 6 passings" in subtitle(charts.edge_diff(frame, frame))


def test_a_passing_of_a_log_without_times_has_no_instant():
    frame = made.mnests(("a", "b", 0.4, 2))
    assert rows(charts.edge_weights(frame))[0]["last"] == "2025-08-01 12:00 UTC"
    untimed = frame.with_columns(untimed=pl.lit(value=True))
    assert rows(charts.edge_weights(untimed))[0]["last"] == "no time told"
    assert rows(charts.edge_weights(pl.concat([frame, untimed])))[0]["last"] == "2025-08-01 12:00 UTC"


def test_cells_can_be_coloured_by_passings_where_all_weights_are_near_one():
    chart = charts.edge_weights(made.mnests(("a", "b", 1.0, 2), ("a", "c", 1.0, 90)), by="uses")
    colour = chart.to_dict()["encoding"]["color"]
    assert (colour["field"], colour["title"], colour["scale"]["domain"]) == ("uses", "passings", [0, 90])
    assert "how often?" in chart.to_dict()["title"]["text"]


def test_cells_can_be_coloured_by_the_sessions_with_a_passing():
    calls = {"s1": "abab", "s2": "ab", "s3": "ac"}
    turns = pl.DataFrame(
        [(session, step, tool, True) for session, tools in calls.items() for step, tool in enumerate(tools)],
        schema=["session_id", "step", "executor", "ok"],
        orient="row",
    )
    with mk.open() as mem:
        mem.replay(turns, label="made")
        cells = rows(charts.edge_weights(mem, by="sessions"))
        panels = rows(charts.edge_weights(mem, by="sessions", by_version=True))
        assert {(cell["src_executor"] + cell["dst_executor"], cell["uses"], cell["sessions"]) for cell in cells} == {
            ("ab", 3, 2),
            ("ba", 1, 1),
            ("ac", 1, 1),
        }
        assert sorted(cell["sessions"] for cell in panels) == [1, 1, 2]
        with pytest.raises(errors.InvalidInput, match="needs the memory"):
            charts.edge_weights(mem.frame("mnests"), by="sessions")
        with pytest.raises(errors.InvalidInput, match="weight, uses, sessions"):
            charts.edge_weights(mem, by="weather")


def test_the_weight_at_the_instant_is_drawn_where_the_frame_has_it():
    faded = made.mnests(("a", "b", 0.4, 2)).with_columns(weight_at=pl.lit(0.25))
    assert rows(charts.edge_weights(faded))[0]["weight"] == 0.25
    assert rows(charts.edge_weights(faded.drop("weight_at")))[0]["weight"] == 0.4


def test_executors_beyond_the_limit_are_named_as_left_out_with_their_share_of_the_passings():
    frame = made.mnests(("a", "b", 0.9, 80), ("c", "d", 0.4, 15), ("e", "f", 0.3, 5))
    said = subtitle(charts.edge_weights(frame, top=4))
    assert "4 of 6 executors shown" in said
    assert "left out, the least used: e, f (5% of the passings)" in said
    assert "left out" not in subtitle(charts.edge_weights(frame, top=6))


def test_two_thousand_executors_become_no_more_cells_than_fit():
    wide = made.mnests(*((f"a{number}", f"b{number}", 0.3, 1) for number in range(1_000)))
    chart = charts.edge_weights(wide, top=60)
    assert len(rows(chart)) <= 60 * 60
    assert "60 of 2,000 executors shown" in subtitle(chart)


def test_executors_that_work_together_stand_together():
    frame = made.mnests(
        ("a1", "b1", 1.0, 90), ("a2", "b2", 1.0, 80), ("b1", "c1", 1.0, 70), ("b2", "c2", 1.0, 60), ("c1", "c2", 0.3, 1)
    )
    order = charts.edge_weights(frame).to_dict()["encoding"]["y"]["scale"]["domain"]
    assert {name[1] for name in order[:3]} in ({"1"}, {"2"})
    assert order == charts.edge_weights(frame.reverse()).to_dict()["encoding"]["y"]["scale"]["domain"]


def test_versions_are_panels_on_the_same_axes_and_at_most_four():
    frame = pl.concat([made.mnests(("a", "b", 0.5, 10 - number), version=f"v{number}") for number in range(6)])
    chart = charts.edge_weights(frame, by_version=True)
    assert {row["src_version"] for row in rows(chart)} == {"v0", "v1", "v2", "v3"}
    assert "4 of 6 versions shown; left out, the least used: v4, v5" in subtitle(chart)


def test_a_difference_is_after_minus_before_and_an_absent_edge_counts_nothing():
    before = made.mnests(("a", "b", 0.9, 9), ("a", "c", 0.3, 1))
    after = made.mnests(("a", "b", 0.4, 3), ("b", "c", 0.6, 4), version="2")
    cells = {(cell["src_executor"], cell["dst_executor"]): cell for cell in rows(charts.edge_diff(before, after))}
    assert cells["a", "b"]["difference"] == pytest.approx(-0.5)
    assert cells["a", "c"]["difference"] == pytest.approx(-0.3)
    assert cells["b", "c"]["difference"] == pytest.approx(0.6)
    assert (cells["a", "b"]["uses"], cells["a", "b"]["uses_b"]) == (9, 3)


def test_a_difference_is_drawn_as_large_as_the_passings_behind_it():
    spec = charts.edge_diff(made.mnests(("a", "b", 0.9, 9)), made.mnests(("a", "b", 0.4, 3))).to_dict()
    assert spec["encoding"]["size"]["field"] == "passings"
    assert next(iter(spec["datasets"].values()))[0]["passings"] == 12


def test_pairs_with_too_few_passings_are_left_out_and_counted():
    before = made.mnests(("a", "b", 0.9, 9), ("a", "c", 0.3, 1))
    chart = charts.edge_diff(before, made.mnests(("a", "b", 0.4, 3)), min_uses=2)
    assert len(rows(chart)) == 1
    assert "1 pairs with fewer than 2 passings left out" in subtitle(chart)
    assert charts.edge_diff(before, before, min_uses=100).to_dict()["mark"]["type"] == "text"


def test_two_sides_of_the_same_name_are_refused():
    with pytest.raises(errors.InvalidInput, match="two different names"):
        charts.edge_diff(made.mnests(), made.mnests(), names=("v", "v"))


def test_a_diff_of_two_times_is_drawn_as_it_is():
    diff = pl.DataFrame(
        {
            "src_executor": ["a", "a"],
            "dst_executor": ["b", "c"],
            "weight_before": [0.9, None],
            "weight_after": [0.5, 0.3],
            "n_before": [9, 0],
            "n_after": [9, 1],
            "n": [0, 1],
        }
    )
    cells = {cell["dst_executor"]: cell for cell in rows(charts.edge_diff(diff, names=("July", "August")))}
    assert cells["b"]["difference"] == pytest.approx(-0.4)
    assert (cells["b"]["passings"], cells["c"]["passings"]) == (9, 1)
    assert cells["c"]["difference"] == pytest.approx(0.3)
