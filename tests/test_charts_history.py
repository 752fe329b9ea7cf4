"""An edge's weight over time is the exact exponential, and nights of the ager are counted, not sampled."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import charts, errors
from mnemokit.charts.history import MOST_POINTS
from tests import chart_frames as made
from tests.test_charts_edges import subtitle


def curve(chart: charts.Drawing) -> list[tuple[datetime, float, bool]]:
    """The points of the curve, in order: when, weight, is it still ahead."""
    spec = chart.to_dict()
    name = spec["layer"][1]["data"]["name"]
    points = [(datetime.fromisoformat(row["at"]), row["weight"], row["ahead"]) for row in spec["datasets"][name]]
    return sorted(points, key=lambda point: point[0])


def dots(chart: charts.Drawing) -> list[dict[str, object]]:
    spec = chart.to_dict()
    return spec["datasets"][spec["layer"][2]["data"]["name"]] if len(spec["layer"]) > 2 else []


@given(
    days=st.lists(st.floats(0.01, 30), min_size=1, max_size=6),
    weights=st.lists(st.floats(0.05, 1), min_size=6, max_size=6),
    rate=st.floats(0, 0.5),
)
@settings(max_examples=25, deadline=None)
def test_between_events_the_curve_is_the_exponential(days, weights, rate):
    instants = [sum(days[: place + 1]) for place in range(len(days))]
    facts = [(when, "passing", weight) for when, weight in zip(instants, weights, strict=False)]
    frame = made.events(*facts)
    stored = [(moment, weight) for moment, weight in frame.select("ts", "weight").iter_rows()]
    for when, weight, _ in curve(charts.weight_history(frame, decay_lambda=rate)):
        candidates = [
            before * math.exp(-rate * ((when - moment) / timedelta(days=1)))
            for moment, before in stored
            if moment <= when + timedelta(milliseconds=2)
        ][-2:]
        assert any(weight == pytest.approx(each, rel=1e-4) for each in candidates)


def test_after_the_last_event_the_curve_says_what_happens_if_nothing_comes():
    points = curve(charts.weight_history(made.events((0, "passing", 0.3)), until=made.START + timedelta(days=100)))
    when, weight, ahead = points[-1]
    assert ahead
    assert when == made.START + timedelta(days=100)
    assert weight == pytest.approx(0.3 * math.exp(-0.018 * 100), rel=1e-9)


def test_each_edge_fades_at_its_own_rate():
    mnests = made.mnests(("find", "buy", 0.3, 1)).with_columns(decay_lambda=pl.lit(0.5))
    points = curve(
        charts.weight_history(
            made.events((0, "passing", 0.3)), decay_lambda=mnests, until=made.START + timedelta(days=4)
        )
    )
    assert points[-1][1] == pytest.approx(0.3 * math.exp(-2.0), rel=1e-9)


def test_events_are_marked_where_they_happened():
    chart = charts.weight_history(made.events((0, "passing", 0.3), (2, "passing", 0.44), (90, "demote", 0.19)))
    assert [(dot["kind"], dot["weight"]) for dot in dots(chart)] == [
        ("passing", 0.3),
        ("passing", 0.44),
        ("demote", 0.19),
    ]


def test_a_purged_edge_has_no_curve_after_its_purge():
    points = curve(charts.weight_history(made.events((0, "passing", 0.3), (100, "purge", 0.04))))
    assert max(when for when, _, _ in points) == made.START + timedelta(days=100)


def test_a_window_is_cut_out_with_the_weight_it_begins_with():
    since = made.START + timedelta(days=10)
    points = curve(
        charts.weight_history(made.events((0, "passing", 0.3)), since=since, until=made.START + timedelta(days=20))
    )
    assert points[0][0] == since
    assert points[0][1] == pytest.approx(0.3 * math.exp(-0.18), rel=1e-6)


def test_the_busiest_edges_are_drawn_and_the_others_named():
    frame = pl.concat(
        [
            made.events((0, "passing", 0.3), (1, "passing", 0.44), mnest_id="mn_1", dst="buy"),
            made.events((0, "passing", 0.3), mnest_id="mn_2", dst="pay"),
        ]
    )
    chart = charts.weight_history(frame)
    assert {row["edge"] for row in dots(chart)} == {"find → buy, both 1"}
    assert "left out, those with fewer passings: find → pay, both 1" in subtitle(chart)
    assert {row["edge"] for row in dots(charts.weight_history(frame, dst="pay"))} == {"find → pay, both 1"}
    assert {row["edge"] for row in dots(charts.weight_history(frame, mnest_id="mn_2"))} == {"find → pay, both 1"}


def test_ten_thousand_events_are_no_more_points_than_can_be_drawn_and_it_is_said():
    frame = made.events(*((number / 100, "passing", 1.0) for number in range(10_000)))
    chart = charts.weight_history(frame)
    assert len(curve(chart)) <= MOST_POINTS
    assert not dots(chart)
    assert "10,000 of the events have no mark of their own" in subtitle(chart)


def test_a_naive_instant_is_refused():
    with pytest.raises(errors.InvalidInput, match="until"):
        charts.weight_history(made.events((0, "passing", 0.3)), until=datetime(2025, 9, 1))  # noqa: DTZ001


def test_nights_that_change_no_state_are_counted_in_the_title():
    chart = charts.ager_nights(pl.concat([made.ager_runs(3), made.ager_runs(2, demoted=4)]))
    assert "5 runs, of which 3 changed no edge's state." in subtitle(chart)


def test_many_nights_are_summed_and_the_title_says_by_what():
    chart = charts.ager_nights(made.ager_runs(1_000, demoted=2))
    assert "Added up by week (above: the mean)" in subtitle(chart)
    spec = chart.to_dict()
    below = spec["datasets"][spec["vconcat"][1]["data"]["name"]]
    assert sum(row["edges"] for row in below) == 2_000


@pytest.mark.parametrize(("demoted", "ticks"), [(1, [0, 1]), (3, [0, 1, 2, 3]), (40, None)])
def test_an_axis_of_few_edges_has_no_tick_between_whole_numbers(demoted: int, ticks: list[int] | None) -> None:
    panel = charts.ager_nights(made.ager_runs(5, demoted=demoted)).to_dict()["vconcat"][1]
    assert panel["encoding"]["y"]["axis"].get("values") == ticks


def test_paths_that_are_left_out_name_each_end_once() -> None:
    walk = made.walk(*[(["find", "look", "buy" if n % 3 else "pay"], 0.9 - n / 100) for n in range(9)])
    assert "left out, the weaker ones, which end at: buy, pay, buy and 5 more" in subtitle(
        charts.walk_paths(walk, top=1)
    )
