"""What models say of a run comes from strictly earlier rows alone, and the rank rule's word is mk.rank's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import errors
from mnemokit.evaluate.past import Events, power_mixture
from mnemokit.evaluate.procedures import predict_log, predict_runs
from mnemokit.evaluate.run_log import run_log
from mnemokit.evaluate.run_models import (
    Constant,
    HalfLife,
    Hierarchical,
    LastN,
    PowerLaw,
    RankRule,
    run_baselines,
    run_rivals,
)
from mnemokit.reasonlets.ranking import rank
from mnemokit.records import RankParams
from tests.oracles import evaluate as oracle
from tests.oracles import ranking as rank_oracle

START = datetime(2025, 8, 1, tzinfo=UTC)
CLOSE = 1e-12


def at(step: int) -> datetime:
    return START + timedelta(hours=6 * step)


OUTCOMES = st.sampled_from(["success", "failure", None])


@st.composite
def histories(draw, feedback=True):
    """Reasonlets, runs and feedback as lists of dicts, with many ties in time."""
    n = draw(st.integers(1, 6))
    reasonlets = [
        {
            "reasonlet_id": f"r{i}",
            "parent_id": f"r{draw(st.integers(0, i - 1))}" if i and draw(st.booleans()) else None,
            "scope": draw(st.sampled_from(["a", "b"])),
            "question": draw(st.sampled_from(["p", "q"])),
            "ts_captured": at(draw(st.integers(0, 3)) + i),
            "seq": i,
        }
        for i in range(n)
    ]
    runs = []
    for i in range(draw(st.integers(1, 25))):
        own = draw(st.sampled_from(reasonlets))
        runs.append(
            {
                "run_id": f"x{i}",
                "reasonlet_id": own["reasonlet_id"],
                "outcome": draw(OUTCOMES),
                "ts_run": max(own["ts_captured"], at(draw(st.integers(0, 12)))),
                "session_id": f"s{draw(st.integers(0, 4))}",
                "seq": i,
            }
        )
    given_later = [
        {
            "run_id": draw(st.sampled_from(runs))["run_id"],
            "outcome": draw(OUTCOMES),
            "ts_given": at(draw(st.integers(0, 14))),
            "seq": i,
        }
        for i in range(draw(st.integers(0, 8)) if feedback else 0)
    ]
    return reasonlets, runs, given_later


def frames(history):
    reasonlets, runs, feedback = history
    instant = pl.Datetime("us", "UTC")
    return (
        pl.DataFrame(runs, schema_overrides={"outcome": pl.String, "ts_run": instant}),
        pl.DataFrame(reasonlets, schema_overrides={"parent_id": pl.String, "ts_captured": instant}),
        pl.DataFrame(
            feedback,
            schema={"run_id": pl.String, "outcome": pl.String, "ts_given": instant, "seq": pl.Int64},
        ),
    )


def said(history, model):
    """run_id -> what a model says, for every run."""
    log = run_log(*frames(history))
    return dict(zip(log.rows["run_id"], model.predict(log).tolist(), strict=True))


@given(histories(), st.sampled_from([1.0, 2.0, 5.5]), st.sampled_from(["smoothed", "raw"]))
@settings(max_examples=150, deadline=None)
def test_the_rank_rule_before_each_run_equals_the_oracle(history, k, parent_rate):
    reasonlets, runs, feedback = history
    expected = oracle.rates_before(reasonlets, runs, feedback, k=k, parent_rate=parent_rate)
    got = said(history, RankRule(RankParams(k=k, parent_rate=parent_rate)))
    assert got == pytest.approx({run: float(rate) for run, rate in expected.items()}, abs=CLOSE)


@given(histories())
@settings(max_examples=12, deadline=None)
def test_the_rank_rule_before_each_run_equals_mk_rank_as_of_just_before(history):
    runs, reasonlets, feedback = frames(history)
    got = said(history, RankRule())
    for run in runs.sort("ts_run").tail(4).iter_rows(named=True):
        before = run["ts_run"] - timedelta(microseconds=1)
        there = reasonlets.with_columns(
            ts_captured=pl.when(pl.col("reasonlet_id") == run["reasonlet_id"])
            .then(pl.min_horizontal("ts_captured", pl.lit(before)))
            .otherwise("ts_captured")
        )
        ranked = rank(there, runs, feedback, at=before)
        rate = ranked.filter(pl.col("reasonlet_id") == run["reasonlet_id"])["rate"].item()
        assert got[run["run_id"]] == pytest.approx(rate, abs=CLOSE)


@given(histories())
@settings(max_examples=60, deadline=None)
def test_own_record_and_constant_equal_the_oracle(history):
    reasonlets, runs, feedback = history
    own = oracle.rates_before(reasonlets, runs, feedback, inherit=False)
    constant = oracle.constant_before(runs, feedback)
    predicted = {model.name: said(history, model) for model in run_baselines()}
    assert predicted["own_record"] == pytest.approx({run: float(p) for run, p in own.items()}, abs=CLOSE)
    assert predicted["constant"] == pytest.approx({run: float(p) for run, p in constant.items()}, abs=CLOSE)


@given(histories(feedback=False))
@settings(max_examples=60, deadline=None)
def test_windows_and_fading_equal_plain_loops(history):
    _, runs, _ = history
    constant = oracle.constant_before(runs, [])
    ordered = sorted(runs, key=lambda run: (run["ts_run"], run["seq"]))
    for model, fade in (
        (LastN(3), None),
        (RankRule(half_life_days=2.0, inherit=False), lambda days: 0.5 ** (days / 2.0)),
        (PowerLaw(exponent=0.7), lambda days: (1 + days) ** -0.7),
    ):
        got = said(history, model)
        for run in ordered:
            earlier = [
                other
                for other in ordered
                if other["reasonlet_id"] == run["reasonlet_id"]
                and other["ts_run"] < run["ts_run"]
                and other["outcome"] is not None
            ]
            if fade is None:
                earlier, fading = earlier[-3:], lambda days: 1.0
            else:
                fading = fade
            parts = [fading((run["ts_run"] - other["ts_run"]) / timedelta(days=1)) for other in earlier]
            n = sum(parts)
            s = sum(part for part, other in zip(parts, earlier, strict=True) if other["outcome"] == "success")
            k, towards = (2.0, 0.5) if isinstance(model, RankRule) else (1.0, float(constant[run["run_id"]]))
            tolerance = 1e-5 if isinstance(model, PowerLaw) else CLOSE
            assert got[run["run_id"]] == pytest.approx((s + k * towards) / (n + k), abs=tolerance), model.name


@given(histories(feedback=False))
@settings(max_examples=40, deadline=None)
def test_the_hierarchical_beta_equals_plain_loops(history):
    reasonlets, runs, _ = history
    places = {row["reasonlet_id"]: row for row in reasonlets}
    rows = [
        {**run, "scope": places[run["reasonlet_id"]]["scope"], "question": places[run["reasonlet_id"]]["question"]}
        for run in runs
    ]
    levels = (("scope", "question"), ("reasonlet_id",))
    expected = oracle.hierarchical_before(rows, ("scope", "question"), levels, 2.0)
    assert said(history, Hierarchical(levels=levels, k=2.0)) == pytest.approx(expected, abs=1e-10)


@given(histories(), st.integers(0, 12), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_nothing_from_the_future_is_used(history, step, random):
    """Shuffle and turn over everything that happens from an instant on: what was said up to then stays as it was."""
    reasonlets, runs, feedback = history
    cut = at(step)
    later = [run for run in runs if run["ts_run"] >= cut]
    outcomes = [run["outcome"] for run in later]
    random.shuffle(outcomes)
    turned = {
        run["run_id"]: {"success": "failure", "failure": None, None: "success"}[outcome]
        for run, outcome in zip(later, outcomes, strict=True)
    }
    shuffled = [{**run, "outcome": turned.get(run["run_id"], run["outcome"])} for run in runs]
    kept = [given_row for given_row in feedback if given_row["ts_given"] < cut]
    changed = (reasonlets, shuffled, kept)
    past = {run["run_id"] for run in runs if run["ts_run"] <= cut}
    for model in [RankRule(), *run_rivals(), *run_baselines()]:
        before, after = said(history, model), said(changed, model)
        assert {run: before[run] for run in past} == {run: after[run] for run in past}, model.name


@given(histories(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_rows_of_one_instant_means_nothing(history, numbered, random):
    """To no model: ties are broken by ``seq``, and without it by the ids of the runs."""
    reasonlets, runs, feedback = history
    if not numbered:  # of verdicts on one run at one instant only the order of the rows can say which came last
        runs = [{name: value for name, value in run.items() if name != "seq"} for run in runs]
        feedback = list({(row["run_id"], row["ts_given"]): row for row in feedback}.values())
    shuffled = (reasonlets, random.sample(runs, len(runs)), random.sample(feedback, len(feedback)))
    for model in (RankRule(), *run_rivals(), *run_baselines()):
        assert said((reasonlets, runs, feedback), model) == said(shuffled, model), model.name


def test_with_no_sequence_ties_are_broken_by_the_ids_of_runs():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    tied = [
        {"run_id": name, "reasonlet_id": "r", "outcome": outcome, "ts_run": at(0), "session_id": "s"}
        for name, outcome in (("b", "failure"), ("a", "success"), ("c", None))
    ]
    later = {"run_id": "d", "reasonlet_id": "r", "outcome": "success", "ts_run": at(1), "session_id": "s"}
    log = run_log(*frames((reasonlets, [*tied, later], [])))
    assert log.rows["run_id"].to_list() == ["a", "b", "c", "d"]
    assert LastN(1).predict(log)[-1] == pytest.approx(0.25)


@given(histories(), st.integers(0, 14))
@settings(max_examples=60, deadline=None)
def test_what_was_known_before_an_instant_equals_the_oracle(history, step):
    _, runs, feedback = history
    cut = at(step)
    log = run_log(*frames(history))
    known = dict(zip(log.rows["run_id"], log.known_before(int(cut.timestamp()) * 1_000_000), strict=True))
    began = {run["run_id"]: run["ts_run"] for run in runs}
    verdicts = rank_oracle.latest_verdicts([row for row in feedback if row["ts_given"] < cut])
    for run in runs:
        outcome = verdicts.get(run["run_id"], run["outcome"]) if began[run["run_id"]] < cut else None
        expected = {"success": 1.0, "failure": 0.0, None: float("nan")}[outcome]
        assert known[run["run_id"]] == pytest.approx(expected, nan_ok=True)


def test_runs_of_one_instant_are_predicted_before_any_is_learnt():
    runs = [
        {"run_id": f"x{i}", "reasonlet_id": "r", "outcome": "success", "ts_run": at(0), "session_id": "s", "seq": i}
        for i in range(5)
    ]
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    for model in [RankRule(), *run_rivals(), *run_baselines()]:
        assert set(said((reasonlets, runs, []), model).values()) == {0.5}, model.name


def test_depth_counts_the_versions_above():
    reasonlets = [
        {"reasonlet_id": f"r{i}", "parent_id": f"r{i - 1}" if i else None, "ts_captured": at(i)} for i in range(13)
    ]
    runs = [
        {"run_id": f"x{i}", "reasonlet_id": f"r{i}", "outcome": "success", "ts_run": at(i), "session_id": "s", "seq": i}
        for i in range(13)
    ]
    assert run_log(*frames((reasonlets, runs, []))).rows["depth"].to_list() == list(range(13))


def test_a_verdict_counts_from_when_it_was_given():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [
        {"run_id": f"x{i}", "reasonlet_id": "r", "outcome": "success", "ts_run": at(i), "session_id": "s", "seq": i}
        for i in range(4)
    ]
    feedback = [{"run_id": "x0", "outcome": "failure", "ts_given": at(2), "seq": 0}]
    got = said((reasonlets, runs, feedback), RankRule())
    assert got == pytest.approx({"x0": 1 / 2, "x1": 2 / 3, "x2": 3 / 4, "x3": 3 / 5})


def test_what_happened_is_the_latest_verdict_and_unknown_runs_are_not_scored():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [
        {"run_id": f"x{i}", "reasonlet_id": "r", "outcome": outcome, "ts_run": at(i), "session_id": "s", "seq": i}
        for i, outcome in enumerate(["success", None, "success"])
    ]
    feedback = [{"run_id": "x2", "outcome": "failure", "ts_given": at(9), "seq": 0}]
    predictions = predict_runs(*frames((reasonlets, runs, feedback)))
    assert predictions.rows["run_id"].to_list() == ["x0", "x2"]
    assert predictions.y.tolist() == [1.0, 0.0]
    assert predictions.note == "1 run of unknown outcome left out"


def test_only_the_period_and_the_sessions_asked_for_are_scored_but_all_before_is_learnt():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [
        {"run_id": f"x{i}", "reasonlet_id": "r", "outcome": "success", "ts_run": at(i), "session_id": f"s{i}", "seq": i}
        for i in range(6)
    ]
    log = run_log(*frames((reasonlets, runs, [])))
    period = predict_log(log, since=at(2), until=at(4))
    assert period.rows["run_id"].to_list() == ["x2", "x3"]
    assert period.p["rank_rule"].tolist() == pytest.approx([3 / 4, 4 / 5])
    assert predict_log(log, sessions=["s5"]).rows["run_id"].to_list() == ["x5"]


def test_two_models_of_one_name_are_refused():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [{"run_id": "x", "reasonlet_id": "r", "outcome": "success", "ts_run": at(0), "session_id": "s", "seq": 0}]
    with pytest.raises(errors.InvalidInput, match="two models are called 'rank_rule'"):
        predict_runs(*frames((reasonlets, runs, [])), models=[RankRule(RankParams(k=3))])


def test_a_model_with_the_name_of_a_baseline_is_refused_unless_it_is_the_baseline():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [{"run_id": "x", "reasonlet_id": "r", "outcome": "success", "ts_run": at(0), "session_id": "s", "seq": 0}]
    with pytest.raises(errors.InvalidInput, match="a model is called 'constant', which is the name of a baseline"):
        predict_runs(*frames((reasonlets, runs, [])), models=[RankRule(name="constant")])
    with pytest.raises(errors.InvalidInput, match="'half_life'"):
        predict_runs(*frames((reasonlets, runs, [])), models=[HalfLife(days=1.0)])
    made = predict_runs(*frames((reasonlets, runs, [])), models=[Constant(), LastN(10)])
    assert sorted(made.p) == sorted(["rank_rule", *(model.name for model in run_baselines())])


def test_runs_without_a_session_are_said_to_be_drawn_one_by_one():
    reasonlets = [{"reasonlet_id": "r", "parent_id": None, "ts_captured": at(0)}]
    runs = [{"run_id": f"x{i}", "reasonlet_id": "r", "outcome": "success", "ts_run": at(i)} for i in range(40)]
    brier = predict_runs(*frames((reasonlets, runs, []))).table(replicates=50).filter(pl.col("metric") == "brier")
    assert brier["note"].unique().to_list() == ["no sessions on record: rows drawn"]
    assert brier["n_sessions"].unique().to_list() == [40]
    some = [{**run, "session_id": "s" if i < 5 else None} for i, run in enumerate(runs)]
    brier = predict_runs(*frames((reasonlets, some, []))).table(replicates=50).filter(pl.col("metric") == "brier")
    assert brier["note"].unique().to_list() == ["35 of 40 rows have no session: drawn one by one"]


def test_verdicts_without_their_times_are_refused():
    runs = pl.DataFrame({"run_id": ["x"], "reasonlet_id": ["r"], "outcome": ["success"], "verdict": ["failure"],
                         "ts_run": [at(0)]})  # fmt: skip
    with pytest.raises(errors.InvalidInput, match="give feedback="):
        run_log(runs, pl.DataFrame({"reasonlet_id": ["r"], "parent_id": [None]}))


@pytest.mark.parametrize("exponent", [0.1, 0.5, 1.0, 2.0])
def test_a_power_of_time_is_a_mixture_of_exponentials(exponent):
    ages = np.geomspace(1e-3, 3650, 200)
    rates, shares = power_mixture(exponent, 3650)
    mixture = (shares[:, None] * np.exp(-rates[:, None] * ages)).sum(axis=0)
    assert mixture == pytest.approx((1 + ages) ** -exponent, rel=1e-5)


@given(histories(feedback=False))
@settings(max_examples=15, deadline=None)
def test_power_sums_by_mixture_equal_those_by_pairs(history):
    log = run_log(*frames(history))
    past = log.past("reasonlet_id")
    by_pairs = past.power(log.event_n, 0.6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mnemokit.evaluate.past._PAIRS", 0)
        assert past.power(log.event_n, 0.6) == pytest.approx(by_pairs, rel=1e-5)


def test_fading_over_ten_years_at_a_fast_rate_does_not_overflow():
    days = np.arange(0, 3650, 5)
    us = (days * 86_400_000_000).astype(np.int64)
    code = np.zeros(days.size, dtype=np.int64)
    past = Events(code, us).before(code, us)
    expected, held = [], 0.0
    for _ in days:
        expected.append(held)
        held = (held + 1.0) * np.exp(-5.0 * 5)
    assert past.fading(np.ones(days.size), 5.0) == pytest.approx(np.array(expected), rel=1e-12, abs=0)
