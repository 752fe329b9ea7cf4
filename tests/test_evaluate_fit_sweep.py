"""A fit is made on a training period and refused on its own rows; a sweep shares its work and changes no answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from mnemokit import errors
from mnemokit.evaluate.edge_models import MnestWeights
from mnemokit.evaluate.fitting import EDGE_FAMILIES, RUN_FAMILIES, fit_edges, fit_runs
from mnemokit.evaluate.next_executor import predict_next_log
from mnemokit.evaluate.passing_log import passing_log
from mnemokit.evaluate.procedures import predict_log
from mnemokit.evaluate.run_log import run_log
from mnemokit.evaluate.run_models import RankRule
from mnemokit.evaluate.sweeping import sweep_logs
from mnemokit.records import EdgeParams, RankParams

START = datetime(2025, 8, 1, tzinfo=UTC)
MIDDLE = START + timedelta(days=50)


@pytest.fixture(scope="module")
def runs():
    """400 runs of 40 procedures whose rates come from Beta(1, 1): a prior of strength 2 is the truth."""
    rng = np.random.default_rng(11)
    rate = rng.random(40)
    which = rng.integers(0, 40, 400)
    frame = pl.DataFrame(
        {
            "run_id": [f"x{i}" for i in range(400)],
            "reasonlet_id": [f"r{i}" for i in which],
            "outcome": np.where(rng.random(400) < rate[which], "success", "failure"),
            "ts_run": [START + timedelta(hours=6 * i) for i in range(400)],
            "session_id": [f"s{i // 4}" for i in range(400)],
        }
    )
    reasonlets = pl.DataFrame({"reasonlet_id": [f"r{i}" for i in range(40)]}).with_columns(
        parent_id=pl.lit(None, dtype=pl.String), scope=pl.lit("a"), question=pl.col("reasonlet_id")
    )
    return run_log(frame, reasonlets)


@pytest.fixture(scope="module")
def passings():
    rng = np.random.default_rng(12)
    n = 600
    frame = pl.DataFrame(
        {
            "src_executor": rng.choice(list("abc"), n),
            "dst_executor": rng.choice(list("abcdef"), n, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05]),
            "ts": [START + timedelta(hours=4 * i) for i in range(n)],
            "session_id": [f"s{i // 6}" for i in range(n)],
        }
    )
    return passing_log(frame)


def test_a_fit_finds_the_prior_strength_that_the_data_came_from(runs):
    fit = fit_runs(runs, until=START + timedelta(days=200))
    assert 0.8 < fit.params["k"] < 5.0
    assert fit.note == ""


@pytest.mark.parametrize("family", RUN_FAMILIES)
def test_a_fit_of_runs_is_at_least_as_good_as_its_start_and_as_its_curve(runs, family):
    fit = fit_runs(runs, family, until=MIDDLE)
    assert fit.log_loss <= fit.start_log_loss + 1e-9
    assert fit.log_loss <= fit.curve["log_loss"].min() + 1e-4
    assert set(fit.curve["parameter"]) == set(fit.params)
    assert fit.curve.filter("best").height >= len(fit.params)
    assert fit.name == f"{family}_fitted"


@pytest.mark.parametrize("family", EDGE_FAMILIES)
def test_a_fit_of_edges_is_at_least_as_good_as_its_start(passings, family):
    fit = fit_edges(passings, family, until=MIDDLE)
    assert fit.log_loss <= fit.start_log_loss + 1e-9
    assert fit.n == 300
    assert fit.n_sessions == 50


def test_a_fit_looks_at_its_training_period_only(runs):
    """Turn every later outcome over: the fit stays what it was."""
    fit = fit_runs(runs, "hierarchical_half_life", until=MIDDLE)
    rows = runs.rows.with_columns(
        outcome=pl.when(pl.col("ts_run") < MIDDLE)
        .then(pl.when(pl.col("y") == 1).then(pl.lit("success")).otherwise(pl.lit("failure")))
        .otherwise(pl.when(pl.col("y") == 1).then(pl.lit("failure")).otherwise(pl.lit("success")))
    )
    reasonlets = rows.select("reasonlet_id", "parent_id", "scope", "question").unique(maintain_order=True)
    turned = run_log(rows.select("run_id", "reasonlet_id", "outcome", "ts_run", "session_id"), reasonlets)
    assert fit_runs(turned, "hierarchical_half_life", until=MIDDLE).params == fit.params


def test_a_fit_is_refused_on_its_own_training_rows(runs, passings):
    fit = fit_runs(runs, until=MIDDLE)
    with pytest.raises(errors.InvalidInput, match=r"was fitted on 200 of these 400 rows"):
        predict_log(runs, models=[fit])
    later = predict_log(runs, models=[fit], since=MIDDLE)
    assert later.p[fit.name].size == 200
    edge_fit = fit_edges(passings, "mnest_decay", until=MIDDLE)
    with pytest.raises(errors.InvalidInput, match=r"was fitted on 300 of these 600 rows"):
        predict_next_log(passings, models=[edge_fit])
    assert predict_next_log(passings, models=[edge_fit], since=MIDDLE).p[edge_fit.name].size == 300


def test_a_fit_on_some_sessions_is_scored_on_others(runs):
    half = [f"s{i}" for i in range(0, 100, 2)]
    other = [f"s{i}" for i in range(1, 100, 2)]
    fit = fit_runs(runs, sessions=half)
    assert predict_log(runs, models=[fit], sessions=other).p[fit.name].size == 200
    with pytest.raises(errors.InvalidInput, match="was fitted on 4 of these 204 rows"):
        predict_log(runs, models=[fit], sessions=[*other, "s0"])


def test_a_fit_needs_a_training_period_a_family_and_enough_sessions(runs, passings):
    with pytest.raises(errors.InvalidInput, match="needs a training period"):
        fit_runs(runs)
    with pytest.raises(errors.InvalidInput, match="cannot be fitted; choose from"):
        fit_edges(passings, "guess", until=MIDDLE)
    with pytest.raises(errors.NotEnoughData, match="too few to fit"):
        fit_runs(runs, until=START + timedelta(days=5))


def test_a_parameter_at_the_border_is_said_to_be_there(passings):
    fit = fit_edges(passings, until=MIDDLE)
    at_border = [name for name, value in fit.params.items() if value < EDGE_FAMILIES["mnest_weights"][name].low * 1.01]
    assert all(name in fit.note for name in at_border)


def test_a_sweep_says_what_each_rule_alone_would_have_said(runs, passings):
    grid = {"decay_lambda": [0.001, 0.1], "k": [0.5, 4.0], "half_life_days": [None, 10.0], "demote_below": [0.2, 0.29]}
    table = sweep_logs(grid, runs=runs, passings=passings, since=MIDDLE)
    assert table.height == 16 * 3
    for row in table.iter_rows(named=True):
        if row["target"] == "next_executor":
            rule = EdgeParams(decay_lambda=row["decay_lambda"], demote_below=row["demote_below"])
            made = predict_next_log(passings, models=[MnestWeights(rule, name="it")], since=MIDDLE)
            expected = made.losses["it"]["log_loss"].mean()
        else:
            model = RankRule(RankParams(k=row["k"]), half_life_days=row["half_life_days"], name="it")
            expected = predict_log(runs, models=[model], since=MIDDLE).losses["it"][row["metric"]].mean()
        assert row["value"] == pytest.approx(expected, rel=1e-9)


def test_a_sweep_of_one_kind_scores_that_kind_only(runs, passings):
    assert sweep_logs({"k": [1.0]}, runs=runs, passings=passings)["target"].unique().to_list() == ["runs"]
    edges = sweep_logs({"reinforcement": [0.1]}, runs=runs, passings=passings)
    assert edges["target"].unique().to_list() == ["next_executor"]


def test_a_sweep_refuses_what_is_no_parameter(runs):
    with pytest.raises(errors.InvalidInput, match="'colour' cannot be swept"):
        sweep_logs({"colour": [1.0]}, runs=runs)
    with pytest.raises(errors.InvalidInput, match="parent_rate must be"):
        sweep_logs({"parent_rate": ["both"]}, runs=runs)
    with pytest.raises(errors.InvalidInput, match="k must be a finite number above 0"):
        sweep_logs({"k": [-1.0]}, runs=runs)


def test_a_sweep_over_nothing_gives_nulls(passings):
    table = sweep_logs({"decay_lambda": [0.1]}, passings=passings, since="2030-01-01T00:00:00+00:00")
    assert table.select("value", "n").rows() == [(None, 0)]


def test_edges_with_decays_of_their_own_need_decay_in_the_grid():
    frame = pl.DataFrame(
        {"src_executor": ["a", "a"], "dst_executor": ["b", "c"], "ts": [START, MIDDLE], "decay_lambda": [0.1, 0.2]}
    )
    with pytest.raises(errors.InvalidInput, match="add decay_lambda to the grid"):
        sweep_logs({"reinforcement": [0.1]}, passings=passing_log(frame))
    assert sweep_logs({"decay_lambda": [0.1], "reinforcement": [0.1]}, passings=passing_log(frame)).height == 1
