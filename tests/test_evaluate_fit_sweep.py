"""A fit is made on a training period and refused on its own rows; a sweep shares its work and changes no answer."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemokit as mk
from mnemokit import errors
from mnemokit.evaluate.edge_models import EdgeModel, MnestWeights
from mnemokit.evaluate.fitting import EDGE_FAMILIES, RUN_FAMILIES, fit_edges, fit_runs
from mnemokit.evaluate.next_executor import predict_next_log
from mnemokit.evaluate.passing_log import passing_log
from mnemokit.evaluate.procedures import predict_log
from mnemokit.evaluate.reading import passings_of
from mnemokit.evaluate.run_log import run_log
from mnemokit.evaluate.run_models import RankRule, RunModel
from mnemokit.evaluate.sweeping import sweep_logs
from mnemokit.evaluate.training import FITTED_LATER
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


def judged(runs, given):
    """The same runs with verdicts."""
    rows = runs.rows.with_columns(
        outcome=pl.when(pl.col("y") == 1).then(pl.lit("success")).otherwise(pl.lit("failure"))
    )
    reasonlets = rows.select("reasonlet_id", "parent_id", "scope", "question").unique(maintain_order=True)
    feedback = pl.DataFrame(
        given,
        schema={"run_id": pl.String, "outcome": pl.String, "ts_given": pl.Datetime("us", "UTC")},
        orient="row",
    )
    return run_log(rows.select("run_id", "reasonlet_id", "outcome", "ts_run", "session_id"), reasonlets, feedback)


@given(
    st.lists(st.tuples(st.integers(0, 399), st.sampled_from(["success", "failure", None]), st.integers(0, 99))),
    st.sampled_from(["rank_rule", "half_life"]),
)
@settings(max_examples=12, deadline=None)
def test_feedback_given_after_the_training_period_changes_no_fit(runs, given, family):
    later = [(f"x{run}", outcome, MIDDLE + timedelta(days=day)) for run, outcome, day in given]
    bare, after = (fit_runs(judged(runs, rows), family, until=MIDDLE) for rows in ([], later))
    assert (after.params, after.log_loss, after.n) == (bare.params, bare.log_loss, bare.n)
    assert after.curve.equals(bare.curve)
    assert (after.trained_on == bare.trained_on).all()
    assert after.trained_until == bare.trained_until


def test_a_training_row_has_the_outcome_known_by_then_and_none_unless_one_was(runs):
    early = [(f"x{i}", None, MIDDLE - timedelta(days=1)) for i in range(20)]
    fit = fit_runs(judged(runs, early), until=MIDDLE)
    assert fit.n == 180
    told_later = [*early, *((f"x{i}", "success", MIDDLE) for i in range(20))]
    assert fit_runs(judged(runs, told_later), until=MIDDLE).params == fit.params


def test_a_fit_is_refused_on_its_rows_whatever_is_made_of_versions():
    rng = np.random.default_rng(13)
    frame = pl.DataFrame(
        {
            "src_executor": rng.choice(list("ab"), 200),
            "src_version": rng.choice(list("12"), 200),
            "dst_executor": rng.choice(list("abc"), 200),
            "dst_version": rng.choice(list("12"), 200),
            "ts": [START + timedelta(hours=i) for i in range(200)],
            "session_id": [f"s{i // 5}" for i in range(200)],
        }
    )
    half = [f"s{i}" for i in range(20)]
    logs = {versions: passing_log(frame, versions=versions) for versions in ("separate", "collapsed")}
    for fitted, scored in (("separate", "collapsed"), ("collapsed", "separate")):
        fit = fit_edges(logs[fitted], "mnest_decay", sessions=half)
        with pytest.raises(errors.InvalidInput, match="was fitted on 100 of these 100 rows"):
            predict_next_log(logs[scored], models=[fit], sessions=half)


def test_a_fit_is_refused_on_the_same_log_in_another_memory():
    """Ids of runs and of procedures differ from store to store; so do the numbers of what has no time."""
    timed, untimed = mk.datasets.agb().head(600), mk.datasets.reflexion()
    steps = mk.datasets.tau2().head(1500)
    half = steps["session_id"].unique(maintain_order=True)[::2]
    steps = steps.with_columns(ts=pl.when(pl.col("session_id").is_in(half.implode()).not_()).then("ts"))
    with mk.open() as mem, mk.open() as other:
        other.mnests.record_passing("x", "1", "y", "1", at="2020-01-01T00:00:00+00:00")
        other.reasonlets.capture(
            scope="s", question="q", graph={"nodes": [], "edges": [], "properties": {}}, outcome="success"
        )
        for each in (mem, other):
            each.replay(timed, label="agb", progress=False)
            each.replay(untimed, label="reflexion", progress=False)
            each.replay(steps, label="tau2", progress=False)
        assert mem.frame("runs")["untimed"].unique().sort().to_list() == [False, True]
        assert passings_of(mem)["untimed"].unique().sort().to_list() == [False, True]
        sessions = mem.frame("runs")["session_id"].drop_nulls().unique(maintain_order=True).to_list()
        fit = mk.evaluate.fit(mem, "runs", sessions=sessions)
        with pytest.raises(errors.InvalidInput, match=f"was fitted on {fit.n} of these {fit.n} rows"):
            mk.evaluate.score(other, "runs", models=[fit], sessions=sessions)
        mine, passed = (passings_of(each)["session_id"].drop_nulls().unique().sort() for each in (mem, other))
        assert mine.equals(passed)
        edge_fit = mk.evaluate.fit(mem, "next_executor", family="mnest_decay", sessions=mine.to_list())
        with pytest.raises(errors.InvalidInput, match=f"was fitted on {edge_fit.n} of these {edge_fit.n} rows"):
            mk.evaluate.score(other, "next_executor", models=[edge_fit], sessions=mine.to_list())


def test_a_fit_is_refused_on_the_same_timed_log_under_another_label():
    with mk.open() as mem, mk.open() as other:
        for each, label in ((mem, "one"), (other, "two")):
            each.replay(mk.datasets.tau2().head(1500), label=label, progress=False)
        fit = mk.evaluate.fit(mem, "next_executor", family="mnest_decay", until="2030-01-01T00:00:00+00:00")
        with pytest.raises(errors.InvalidInput, match=f"was fitted on {fit.n} of these {fit.n} rows"):
            mk.evaluate.score(other, "next_executor", models=[fit])


def test_a_fit_hands_out_no_model_that_forgets_what_it_was_fitted_on(runs, passings):
    """The fit itself is the model; nothing in it is one that would pass on the training rows."""
    for fit in (fit_runs(runs, until=MIDDLE), fit_edges(passings, "mnest_decay", until=MIDDLE)):
        held = [getattr(fit, field.name) for field in dataclasses.fields(fit)]
        assert not any(isinstance(value, (RunModel, EdgeModel)) for value in held)


def test_a_fit_that_is_scored_before_what_it_was_fitted_on_has_a_note(runs, passings):
    first, last = ([f"s{i}" for i in part] for part in (range(50), range(50, 100)))
    fit = fit_runs(runs, sessions=last)
    table = predict_log(runs, models=[fit], sessions=first).table(replicates=20)
    for row in table.iter_rows(named=True):
        assert (FITTED_LATER in (row["note"] or "")) == (row["model"] == fit.name)
    onwards = predict_log(runs, models=[fit_runs(runs, sessions=first)], sessions=last)
    assert not onwards.notes
    edge_fit = fit_edges(passings, "mnest_decay", sessions=last)
    assert predict_next_log(passings, models=[edge_fit], sessions=first).notes == {edge_fit.name: FITTED_LATER}


def test_a_verdict_given_late_counts_as_something_a_fit_was_fitted_on(runs):
    first, last = ([f"s{i}" for i in part] for part in (range(50), range(50, 100)))
    log = judged(runs, [("x0", "failure", START + timedelta(days=99))])
    assert predict_log(log, models=[fit_runs(log, sessions=first)], sessions=last).notes
    assert not predict_log(log, models=[fit_runs(log, until=MIDDLE)], since=MIDDLE).notes


def test_a_fit_on_rows_without_session_says_so(runs):
    rows = runs.rows.with_columns(
        outcome=pl.when(pl.col("y") == 1).then(pl.lit("success")).otherwise(pl.lit("failure"))
    )
    reasonlets = rows.select("reasonlet_id", "parent_id").unique(maintain_order=True)
    log = run_log(rows.select("run_id", "reasonlet_id", "outcome", "ts_run"), reasonlets)
    assert fit_runs(log, until=MIDDLE).note == "no sessions on record: rows drawn"


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


def test_a_sweep_has_the_columns_of_every_result_and_the_intervals_of_a_table(runs, passings):
    table = sweep_logs({"k": [2.0], "decay_lambda": [0.018]}, runs=runs, passings=passings, replicates=300)
    assert table.columns[2:] == [
        "model", "target", "metric", "value", "low", "high", "n_sessions", "n", "seconds", "note"
    ]  # fmt: skip
    assert set(table.select("model", "target").iter_rows()) == {
        ("rank_rule", "runs"),
        ("mnest_weights", "next_executor"),
    }
    told = {
        "runs": predict_log(runs, models=[]).table(replicates=300),
        "next_executor": predict_next_log(passings, models=[]).table(replicates=300),
    }
    for row in table.iter_rows(named=True):
        same = told[row["target"]].filter(
            pl.col("model") == row["model"], pl.col("metric") == row["metric"], pl.col("versus").is_null()
        )
        assert same["value"].item() == pytest.approx(row["value"])
        assert row["low"] == pytest.approx(same["low"].item(), abs=0.02)
        assert row["high"] == pytest.approx(same["high"].item(), abs=0.02)
        assert (row["n_sessions"], row["n"]) == same.select("n_sessions", "n").row(0)


def test_a_sweep_over_few_sessions_says_so(passings):
    table = sweep_logs({"decay_lambda": [0.1]}, passings=passings, sessions=["s99"])
    assert table.select("low", "high", "note").rows() == [
        (0.0, float("inf"), "1 session: too few for an interval (10 needed)")
    ]


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
    assert table.select("value", "n", "note").rows() == [(None, 0, "nothing to score")]


def test_edges_with_decays_of_their_own_need_decay_in_the_grid():
    frame = pl.DataFrame(
        {"src_executor": ["a", "a"], "dst_executor": ["b", "c"], "ts": [START, MIDDLE], "decay_lambda": [0.1, 0.2]}
    )
    with pytest.raises(errors.InvalidInput, match="add decay_lambda to the grid"):
        sweep_logs({"reinforcement": [0.1]}, passings=passing_log(frame))
    assert sweep_logs({"decay_lambda": [0.1], "reinforcement": [0.1]}, passings=passing_log(frame)).height == 1
