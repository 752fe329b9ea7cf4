"""Recalls: how high what turned out right was shown, and what another order would have earned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from mnemokit import errors
from mnemokit.evaluate import metrics
from mnemokit.evaluate.recalls import NDCG_AT, logged_choices, off_policy, predict_recalls

START = datetime(2025, 8, 1, tzinfo=UTC)


def logged(n=40, seed=1, propensity=True):
    rng = np.random.default_rng(seed)
    recalls, shown, runs = [], [], []
    for i in range(n):
        recalls.append({"recall_id": f"q{i}", "ts_recalled": START + timedelta(hours=i)})
        similarity, rate = np.sort(rng.random(5))[::-1], rng.random(5)
        score = similarity * rate
        order = np.argsort(-score)
        for place, which in enumerate(order):
            shown.append(
                {
                    "recall_id": f"q{i}",
                    "rank": place + 1,
                    "reasonlet_id": f"r{which}",
                    "similarity": float(similarity[which]),
                    "rate": float(rate[which]),
                    "score": float(score[which]),
                }
            )
        chosen = int(rng.integers(0, 5))
        if i % 10 != 9:
            runs.append(
                {
                    "run_id": f"x{i}",
                    "recall_id": f"q{i}",
                    "reasonlet_id": f"r{chosen}",
                    "verdict": "success" if rng.random() < rate[chosen] else "failure",
                    "session_id": f"s{i // 2}",
                    "provenance": '{"propensity": 0.2}' if propensity else "{}",
                }
            )
    return pl.DataFrame(recalls), pl.DataFrame(shown), pl.DataFrame(runs)


def test_ndcg_of_a_recall_is_that_of_its_list():
    recalls, shown, runs = logged()
    made = predict_recalls(recalls, shown, runs)
    for i, row in enumerate(made.rows.iter_rows(named=True)):
        mine = shown.filter(recall_id=row["recall_id"]).sort("rank")
        ran = runs.filter(recall_id=row["recall_id"]).row(0, named=True)
        good = ran["verdict"] == "success"
        relevance = [float(good and name == ran["reasonlet_id"]) for name in mine["reasonlet_id"]]
        for k in NDCG_AT:
            assert made.losses["logged"][f"ndcg@{k}"][i] == pytest.approx(metrics.ndcg(relevance, k), nan_ok=True)
        first = mine["reasonlet_id"][0] == ran["reasonlet_id"]
        assert made.losses["logged"]["first_followed"][i] == float(first)
        by_rate = mine.sort("rate", descending=True)["reasonlet_id"].to_list()
        again = [float(good and name == ran["reasonlet_id"]) for name in by_rate]
        assert made.losses["rate_only"]["ndcg@3"][i] == pytest.approx(metrics.ndcg(again, 3), nan_ok=True)


def test_every_run_of_a_recall_counts_for_what_was_relevant():
    """The first run that followed failed; two others of the same recall succeeded."""
    recalls, shown, runs = logged()
    more = pl.DataFrame(
        {
            "run_id": ["y0", "y1", "y2"],
            "recall_id": ["q0"] * 3,
            "reasonlet_id": ["r1", "r3", "r3"],
            "verdict": ["success", "failure", "success"],
            "session_id": ["s0"] * 3,
            "provenance": ["{}"] * 3,
        }
    )
    first = runs.with_columns(
        verdict=pl.when(pl.col("run_id") == "x0").then(pl.lit("failure")).otherwise("verdict"),
        reasonlet_id=pl.when(pl.col("run_id") == "x0").then(pl.lit("r0")).otherwise("reasonlet_id"),
    )
    made = predict_recalls(recalls, shown, pl.concat([first, more]))
    relevance = [float(name in ("r1", "r3")) for name in shown.filter(recall_id="q0").sort("rank")["reasonlet_id"]]
    for k in NDCG_AT:
        assert made.losses["logged"][f"ndcg@{k}"][0] == pytest.approx(metrics.ndcg(relevance, k))
    assert made.rows["success"][0] is False
    assert made.rows.height == 36


def test_the_first_run_of_a_recall_is_the_earliest():
    recalls, shown, runs = logged()
    timed = runs.with_columns(ts_run=pl.lit(START))
    earlier = timed.filter(run_id="x0").with_columns(
        run_id=pl.lit("y0"), verdict=pl.lit("success"), ts_run=pl.lit(START - timedelta(hours=1))
    )
    late = timed.with_columns(verdict=pl.lit("failure"))
    assert predict_recalls(recalls, shown, pl.concat([late, earlier])).rows["success"][0] is True


def test_raw_rows_of_recalls_have_one_success_and_no_probability():
    made = predict_recalls(*logged())
    long = made.long()
    assert long.height == 4 * 36
    assert long["p"].null_count() == long.height
    assert long["success"].dtype == pl.Boolean
    assert long.filter(model="rate_only")["success"].to_list() == made.rows["success"].to_list()
    assert long["ndcg@3"].is_nan().sum() == 0
    assert 0 < long["ndcg@3"].null_count() < long.height


def test_recalls_that_no_run_followed_are_left_out_and_counted():
    made = predict_recalls(*logged())
    assert made.rows.height == 36
    assert made.note == "4 of 40 recalls were followed by no run of known outcome"


def test_recalls_that_cannot_be_judged_count_for_ndcg_in_nothing():
    recalls, shown, runs = logged()
    table = predict_recalls(recalls, shown, runs).table()
    succeeded = runs.filter(verdict="success").height
    row = table.filter(pl.col("metric") == "ndcg@3", pl.col("model") == "logged", pl.col("versus").is_null())
    assert row["n"].item() == succeeded
    whole = table.filter(pl.col("metric") == "success").row(0, named=True)
    assert (whole["n"], whole["value"]) == (36, pytest.approx(succeeded / 36))


def test_recall_table_has_differences_from_other_orders():
    table = predict_recalls(*logged()).table()
    versus = table.filter(pl.col("metric") == "ndcg@5", pl.col("model") == "logged")["versus"].to_list()
    assert versus == [None, "similarity_only", "rate_only", "as_stored"]


def test_inverse_propensity_estimates_equal_the_formulas():
    rng = np.random.default_rng(4)
    n = 500
    propensity = rng.uniform(0.1, 0.9, n)
    target = rng.random(n)
    reward = (rng.random(n) < 0.4).astype(float)
    session = [f"s{i // 5}" for i in range(n)]
    table = off_policy(pl.DataFrame({"reward": reward, "propensity": propensity, "target": target, "session": session}))
    weight = target / propensity
    values = dict(table.select("estimator", "value").iter_rows())
    assert values["logged"] == pytest.approx(reward.mean(), abs=1e-12)
    assert values["ips"] == pytest.approx((weight * reward).mean(), abs=1e-12)
    assert values["snips"] == pytest.approx((weight * reward).sum() / weight.sum(), abs=1e-12)
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert table["effective_n"].to_list() == pytest.approx([n, effective, effective])
    assert ((table["low"] < table["value"]) & (table["value"] < table["high"])).all()


def test_inverse_propensity_recovers_a_policy_that_was_never_followed():
    """The logged policy chooses at random; the other always takes the better of two. SNIPS finds its value."""
    rng = np.random.default_rng(5)
    n = 4000
    better = rng.random(n) < 0.5
    reward = (rng.random(n) < np.where(better, 0.8, 0.3)).astype(float)
    table = off_policy(
        pl.DataFrame({"reward": reward, "propensity": 0.5, "target": better.astype(float), "session": np.arange(n)})
    )
    snips = table.filter(estimator="snips").row(0, named=True)
    assert snips["value"] == pytest.approx(0.8, abs=0.03)
    assert snips["low"] < 0.8 < snips["high"]


def test_without_propensities_no_estimate_is_given():
    recalls, shown, runs = logged(propensity=False)
    with pytest.raises(errors.NotEnoughData, match="36 of 36 recalls have no propensity"):
        off_policy(logged_choices(recalls, shown, runs))


def test_recalls_without_propensity_can_be_left_out_and_are_counted():
    recalls, shown, runs = logged()
    one_less = runs.with_columns(
        provenance=pl.when(pl.col("run_id") == "x3").then(pl.lit("{}")).otherwise("provenance")
    )
    choices = logged_choices(recalls, shown, one_less)
    with pytest.raises(errors.NotEnoughData, match=r'1 of 36 recalls have no propensity.*missing="leave_out"'):
        off_policy(choices)
    table = off_policy(choices, missing="leave_out")
    assert table["n"].unique().to_list() == [35]
    said = table.filter(estimator="logged")["note"].item()
    assert said.startswith("1 of 36 recalls left out: they have no propensity; ")
    assert table["value"].to_list() == off_policy(choices.filter(pl.col("recall_id") != "q3"))["value"].to_list()
    with pytest.raises(errors.InvalidInput, match="missing must be"):
        off_policy(choices, missing="guess")
    with pytest.raises(errors.NotEnoughData, match="nothing to estimate"):
        off_policy(choices.with_columns(propensity=pl.lit(None, dtype=pl.Float64)), missing="leave_out")


def test_estimates_have_the_columns_of_every_result():
    table = off_policy(logged_choices(*logged()), model="first_by_score")
    tidy = {"model", "target", "metric", "value", "low", "high", "n_sessions", "n", "seconds", "note"}
    assert tidy <= set(table.columns)
    assert table.select("model", "target", "metric").rows() == [
        ("logged", "recall", "reward"),
        ("first_by_score", "recall", "reward_ips"),
        ("first_by_score", "recall", "reward_snips"),
    ]


def test_a_propensity_of_zero_or_a_missing_column_is_refused():
    with pytest.raises(errors.InvalidInput, match="above 0 and at most 1"):
        off_policy(pl.DataFrame({"reward": [1.0], "propensity": [0.0], "target": [1.0], "session": ["s"]}))
    with pytest.raises(errors.InvalidInput, match="needs columns"):
        off_policy(pl.DataFrame({"reward": [1.0]}))
    empty = pl.DataFrame(
        schema={"reward": pl.Float64, "propensity": pl.Float64, "target": pl.Float64, "session": pl.String}
    )
    with pytest.raises(errors.NotEnoughData, match="nothing to estimate"):
        off_policy(empty)


def test_policies_that_hardly_meet_are_said_to():
    recalls, shown, runs = logged()
    table = off_policy(logged_choices(recalls, shown, runs, "similarity"))
    assert "share as little as" in table.filter(estimator="ips")["note"].item()


def test_few_sessions_and_policies_apart_are_both_said():
    choices = logged_choices(*logged(n=12))
    note = off_policy(choices).filter(estimator="ips")["note"].item()
    assert "too few for an interval (10 needed); the two policies share as little as" in note


def test_recalls_without_a_session_are_said_to_be_drawn_by_themselves():
    recalls, shown, runs = logged()
    alone = runs.with_columns(session_id=pl.lit(None, dtype=pl.String))
    assert (
        predict_recalls(recalls, shown, alone).table()["note"].str.contains("no sessions on record: rows drawn").all()
    )
    assert off_policy(logged_choices(recalls, shown, alone))["note"].str.contains("no sessions on record").all()


def test_logged_choices_put_the_target_on_the_first_of_the_order():
    recalls, shown, runs = logged()
    chosen = logged_choices(recalls, shown, runs, "score")
    first = dict(shown.filter(rank=1).select("recall_id", "reasonlet_id").iter_rows())
    ran = dict(runs.select("recall_id", "reasonlet_id").iter_rows())
    for row in chosen.iter_rows(named=True):
        assert row["target"] == float(first[row["recall_id"]] == ran[row["recall_id"]])
    with pytest.raises(errors.InvalidInput, match="order must be"):
        logged_choices(recalls, shown, runs, "colour")


def test_no_recalls_give_a_table_that_says_so():
    recalls, shown, runs = logged()
    table = predict_recalls(recalls.clear(), shown.clear(), runs.clear()).table()
    assert table["note"].unique().to_list() == ["nothing to score"]
