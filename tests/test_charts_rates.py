"""Rates are drawn with what they rest on: counts, intervals, and what is not known."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from scipy import stats

from mnemokit import charts, errors
from mnemokit.charts.rankings import errors_by_executor, sessions_by
from mnemokit.charts.scores import _OWN
from mnemokit.evaluate.edge_models import MnestWeights
from mnemokit.evaluate.run_models import RankRule
from tests import chart_frames as made
from tests.test_charts_edges import subtitle


def data(chart: charts.Drawing) -> list[dict[str, object]]:
    return next(iter(chart.to_dict()["datasets"].values()))


def test_procedures_stand_in_the_order_of_their_ranking_and_the_lower_ones_are_named():
    ranked = made.ranked(("good", None, "1.0", 9, 10), ("fair", None, "1.0", 1, 2), ("bad", None, "1.0", 0, 4))
    chart = charts.rates(ranked, top=2)
    assert [row["words"] for row in data(chart)] == ["how to good", "how to fair"]
    assert "2 of 3 procedures shown; left out, ranked lower: how to bad · 1.0." in subtitle(chart)
    assert data(chart)[0]["record"] == "9/10"


def test_the_interval_of_a_procedure_is_the_one_it_was_ranked_with():
    ranked = made.ranked(("good", None, "1.0", 9, 10))
    (row,) = data(charts.rates(ranked))
    assert (row["rate_low"], row["rate_high"]) == (ranked["rate_low"].item(), ranked["rate_high"].item())


TURNS = made.turns(
    ("s1", "find", True, "v1", "success"),
    ("s1", "buy", True, "v1", "success"),
    ("s2", "find", False, "v1", "failure"),
    ("s3", "find", None, "v1", None),
    ("s4", None, None, "v2", "success"),
)


def test_a_session_counts_once_however_many_calls_it_has_and_one_without_calls_counts_too():
    assert sessions_by(TURNS, "executor_version").rows() == [("v1", 1, 2, 1), ("v2", 1, 1, 0)]


def test_the_interval_of_a_group_is_that_of_a_beta_from_one_half():
    (row,) = data(charts.outcomes(pl.DataFrame({"executor_version": ["a"], "s": [82], "n": [140]})))
    low, high = stats.beta(83, 59).interval(0.95)
    assert row["low"] == pytest.approx(low, abs=1e-9)
    assert row["high"] == pytest.approx(high, abs=1e-9)
    assert (row["rate"], row["record"]) == (82 / 140, "82/140")


def test_sessions_can_be_grouped_by_any_column():
    assert "requestor" in charts.outcomes(TURNS.with_columns(requestor=pl.lit("user")), by="requestor").to_json()
    with pytest.raises(errors.InvalidInput, match="'weather'"):
        charts.outcomes(TURNS, by="weather")


def test_errors_are_counted_among_calls_whose_outcome_the_log_tells():
    assert errors_by_executor(TURNS).select("executor", "s", "n", "calls").rows() == [
        ("find", 1, 2, 3),
        ("buy", 0, 1, 1),
    ]


def test_executors_without_an_error_are_not_drawn():
    assert [row["executor"] for row in data(charts.tool_errors(TURNS))] == ["find"]
    assert charts.tool_errors(TURNS.filter(pl.col("executor") == "buy")).to_dict()["mark"]["type"] == "text"


def test_a_walk_is_drawn_path_by_path_and_says_when_it_was_cut_off():
    walk = made.walk((["a", "b"], 0.9), (["a", "c", "d"], 0.5), (["a", "e"], 0.2), truncated=True)
    chart = charts.walk_paths(walk, top=2)
    assert {row["path"] for row in data(chart)} == {"a → b", "a → c → d"}
    assert "2 of 3 paths shown" in subtitle(chart)
    assert "cut off at its limit" in subtitle(chart)
    with pytest.raises(errors.InvalidInput, match="lists of names"):
        charts.walk_paths(walk.with_columns(executors=pl.lit("a")))


def test_a_calibration_curve_leaves_empty_bins_out_and_names_models_beyond_six():
    curve = pl.DataFrame(
        {
            "model": [f"m{number}" for number in range(8)],
            "predicted": [0.5] * 8,
            "observed": [0.4] * 8,
            "n": [3] * 7 + [0],
        }
    )
    chart = charts.calibration(curve)
    models = {row["model"] for rows in chart.to_dict()["datasets"].values() for row in rows if "model" in row}
    assert models == {f"m{number}" for number in range(6)}
    assert "left out, the later ones: m6." in subtitle(chart)


SCORES = pl.DataFrame(
    {
        "model": ["memory", "constant", "memory", "constant"],
        "metric": ["brier", "brier", "auc", "auc"],
        "value": [0.2, 0.25, 0.7, 0.5],
        "low": [0.15, 0.2, 0.6, 0.4],
        "high": [0.25, 0.3, 0.8, 0.6],
        "baseline": [False, True, False, True],
    }
)


def test_every_metric_has_its_own_axis_that_says_which_way_is_better():
    titles = [panel["layer"][0]["encoding"]["x"]["title"] for panel in charts.scores(SCORES).to_dict()["concat"]]
    assert titles == ["brier (lower is better)", "auc (higher is better)"]


def test_baselines_are_always_in_the_picture_and_greyed_out():
    chart = charts.scores(SCORES, metric="brier").to_dict()
    kinds = {row["model"]: row["kind"] for rows in chart["datasets"].values() for row in rows}
    assert kinds == {"memory": "other model", "constant": "baseline"}


def kinds_and_colours(chart: charts.Drawing) -> tuple[list[str], list[str]]:
    scale = chart.to_dict()["concat"][0]["layer"][0]["encoding"]["color"]["scale"]
    return scale["domain"], scale["range"]


@pytest.mark.parametrize("own", ["rank_rule", "mnest_weights", "logged"])
def test_the_memorys_own_rule_has_a_colour_and_a_name_of_its_own_in_the_legend(own):
    table = pl.concat([SCORES.with_columns(pl.col("model").replace("memory", own)), SCORES])
    kinds, colours = kinds_and_colours(charts.scores(table.unique(maintain_order=True), metric="brier"))
    assert kinds == ["this memory's own rule", "other model", "baseline"]
    assert len(set(colours)) == 3


def test_the_own_rules_of_the_library_are_known_to_the_chart():
    assert {RankRule().name, MnestWeights().name} < _OWN


def test_overlapping_bars_are_not_said_to_decide():
    said = subtitle(charts.scores(SCORES))
    assert "Bars that overlap do not decide" in said
    assert "versus= draws the differences" in said


def test_rows_that_are_all_differences_name_what_draws_them():
    differences = SCORES.with_columns(versus=pl.lit("last_10"))
    chart = charts.scores(differences)
    assert "draw them with versus='last_10'." in data(chart)[0]["why"]
    assert "versus" not in data(charts.scores(differences, metric="no such metric"))[0]["why"]


SWEEP = pl.DataFrame(
    {
        "decay_lambda": [0.005, 0.018, 0.018],
        "half_life_days": [7.0, 7.0, None],
        "model": ["mnest_weights"] * 3,
        "metric": ["log_loss"] * 3,
        "value": [2.1, 2.2, 2.3],
        "low": [2.0, 2.1, 2.2],
        "high": [2.2, 2.3, 2.4],
        "seconds": [0.1, 0.2, 0.3],
    }
)


def test_rows_of_a_sweep_are_named_by_its_values():
    chart = charts.scores(SWEEP)
    assert [row["name"] for row in data(chart)] == [
        "decay lambda 0.005, half life days 7",
        "decay lambda 0.018, half life days 7",
        "decay lambda 0.018, half life days none",
    ]
    assert "the same name" not in subtitle(chart)


def test_rows_that_nothing_tells_apart_are_said_to_be_so():
    chart = charts.scores(SWEEP.drop("decay_lambda", "half_life_days"))
    assert "Several rows have the same name: the table does not hold what tells them apart." in subtitle(chart)


def test_groups_without_a_whole_are_rows_of_their_own():
    grouped = pl.concat([SCORES.with_columns(group=pl.lit(name)) for name in ("airline", "retail")])
    names = {row["name"] for row in data(charts.scores(grouped, metric="brier"))}
    assert names == {f"{model}, group {group}" for model in ("memory", "constant") for group in ("airline", "retail")}


def one_metric(*intervals: tuple[float, float, float]) -> pl.DataFrame:
    rows = [(f"m{number}", "log_loss", *interval) for number, interval in enumerate(intervals)]
    return pl.DataFrame(rows, schema=["model", "metric", "low", "value", "high"], orient="row")


def test_one_wide_interval_does_not_squeeze_the_others_and_its_numbers_are_written():
    chart = charts.scores(one_metric((0.55, 0.6, 0.65), (0.6, 0.65, 0.7), (0.6, 1.7, 2.8)))
    layers = chart.to_dict()["concat"][0]["layer"]
    assert layers[0]["encoding"]["x"]["scale"]["domain"] == [0.55, 0.7]
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert {"name": "m2", "words": "1.7 [0.6, 2.8]"} in rows
    assert {"name": "m2", "value": 0.7} in rows, "an arrow at the end of the axis"
    assert all(row["high"] <= 0.7 for row in rows if "high" in row)
    assert "Arrow: the bar goes on beyond the axis" in subtitle(chart)


def test_an_interval_without_an_end_is_cut_and_said_to_have_none():
    chart = charts.scores(one_metric((0.0, 0.6, float("inf")), (0.0, 0.9, float("inf"))))
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert {"name": "m0", "words": "0.6 [0, ∞]"} in rows
    low, high = chart.to_dict()["concat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < 0.6 < 0.9 < high


@pytest.mark.parametrize(
    "intervals",
    [
        [(0.55, 0.6, 0.65), (0.5, 0.6, 0.7)],
        [(0.5, 0.5, 0.5), (0.1, 0.5, 0.9)],
        [(0.1, 0.5, 0.9)],
        [(0.1, 0.11, 0.12), (0.9, 0.91, 0.92), (0.3, 0.5, 0.7)],
    ],
)
def test_an_axis_that_squeezes_nothing_is_left_whole(intervals):
    chart = charts.scores(one_metric(*intervals))
    assert "domain" not in chart.to_dict()["concat"][0]["layer"][0]["encoding"]["x"]["scale"]
    assert "Arrow" not in subtitle(chart)


def test_the_line_of_no_difference_stays_in_sight_where_a_wide_difference_is_cut():
    table = one_metric((0.1, 0.11, 0.12), (0.1, 0.12, 0.14), (-4.0, 1.0, 5.0)).with_columns(versus=pl.lit("constant"))
    panel = charts.scores(table, versus="constant").to_dict()["concat"][0]
    assert panel["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.0, 0.14]


def test_paired_differences_are_drawn_against_one_baseline_with_the_line_of_no_difference():
    table = pl.concat(
        [
            SCORES.with_columns(versus=pl.lit(None, dtype=pl.String)),
            SCORES.filter(~pl.col("baseline")).with_columns(value=pl.lit(-0.05), versus=pl.lit("constant")),
        ]
    )
    chart = charts.scores(table, metric="brier", versus="constant").to_dict()
    assert "better than constant" in chart["title"]["text"]
    (panel,) = chart["concat"]
    values = {name: [row["value"] for row in rows] for name, rows in chart["datasets"].items()}
    assert sorted(values.values()) == [[-0.05], [0.0]]
    assert panel["layer"][0]["mark"]["type"] == "rule"
    with pytest.raises(errors.InvalidInput, match="there are constant"):
        charts.scores(table, versus="nothing of the kind")


def test_of_scores_by_group_the_whole_is_drawn():
    grouped = pl.concat([SCORES.with_columns(group=pl.lit(name)) for name in ("all", "retail")])
    chart = charts.scores(grouped, metric="brier").to_dict()
    assert sum(len(rows) for rows in chart["datasets"].values()) == 2


def test_a_difference_of_shares_stands_beside_the_counts_that_it_rests_on():
    edges = pl.DataFrame(
        {
            "src_executor": ["a", "b"],
            "dst_executor": ["c", "d"],
            "uses_a": [14, 0],
            "left_a": [29, 4],
            "uses_b": [0, 1],
            "left_b": [31, 4],
            "difference": [-0.48, 0.25],
            "low": [-0.7, -0.2],
            "high": [-0.3, 0.6],
        }
    )
    chart = charts.differences(edges, names=("old", "new"), top=1)
    (row,) = next(rows for rows in chart.to_dict()["datasets"].values() if "counts" in rows[0])
    assert (row["name"], row["counts"]) == ("a → c", "14/29, 0/31")
    assert "1 of 2 edges shown; left out, those less supported: b → d." in subtitle(chart)


def test_a_write_has_the_colour_and_the_shape_of_its_verdict():
    changes = pl.concat([made.changes(2), made.changes(1, "reverted"), made.changes(1, None)])
    chart = charts.change_timeline(changes)
    spec = chart.to_dict()
    assert spec["encoding"]["color"]["field"] == spec["encoding"]["shape"]["field"] == "verdict"
    assert {row["verdict"] for row in data(chart)} == {"kept", "reverted", "candidate"}
    assert "4 writes: 2 kept, 1 candidate, 1 reverted." in subtitle(chart)


def test_a_write_that_was_kept_and_then_forgotten_is_shown_as_forgotten():
    changes = made.changes(1).with_columns(ts_forgotten=pl.lit(made.START))
    assert [row["verdict"] for row in data(charts.change_timeline(changes))] == ["forgotten"]


def test_writes_of_a_log_without_times_are_said_to_have_an_order_only():
    changes = made.changes(3).with_columns(ts_candidate=pl.lit(datetime(1970, 1, 1, tzinfo=UTC)))
    chart = charts.change_timeline(changes)
    assert "3 of them come from a log without times" in subtitle(chart)
    assert {row["when"] for row in data(chart)} == {"no time told"}
    assert len({row["ts_candidate"] for row in data(chart)}) == 3, "side by side, in their order"
    assert chart.to_dict()["encoding"]["x"]["axis"]["labels"] is False


def test_writes_without_times_have_no_place_beside_those_with_times_and_are_counted():
    untimed = made.changes(3).with_columns(ts_candidate=pl.lit(datetime(1970, 1, 1, tzinfo=UTC)))
    chart = charts.change_timeline(pl.concat([untimed, made.changes(2)]))
    assert [row["when"][:4] for row in data(chart)] == ["2025", "2025"]
    assert "5 writes: 5 kept. 3 of them come from a log without times: they have an order only, and no place here." in (
        subtitle(chart)
    )


def test_many_writes_are_counted_before_they_are_drawn_and_the_title_says_so():
    chart = charts.change_timeline(made.changes(5_000))
    assert len(data(chart)) <= 1_500
    assert sum(row["writes"] for row in data(chart)) == 5_000
    assert "More than 1,500 writes: counted per 6h." in subtitle(chart)


def test_lanes_beyond_the_limit_are_named():
    changes = pl.concat([made.changes(3 + number, actor=f"tool:{number}") for number in range(3)])
    assert "left out, those with fewer writes: tool:0" in subtitle(charts.change_timeline(changes, top=2))
