"""Intervals come from resampled sessions, differences are paired, and too little data is said to be too little."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from mnemokit import errors
from mnemokit.evaluate import metrics
from mnemokit.evaluate.intervals import (
    MIN_SESSIONS,
    OWN_SESSION,
    Auc,
    BinnedRmse,
    Ratio,
    draws,
    draws_of_means,
    per_session,
    session_interval,
)
from mnemokit.evaluate.predictions import probability_predictions
from mnemokit.evaluate.table import RESULT_SCHEMA, note_on, probability_losses


def sample(seed, n=300, n_sessions=25):
    rng = np.random.default_rng(seed)
    session = rng.integers(0, n_sessions, n)
    p = np.round(rng.random(n), 2)
    y = (rng.random(n) < np.clip(p + 0.3 * (rng.random(n_sessions) - 0.5)[session], 0, 1)).astype(float)
    return session, y, p


def predictions(seed, n_sessions=25, n=300):
    session, y, p = sample(seed, n, n_sessions)
    said = {"model": p, "constant": np.full(n, 0.5), "blunt": np.clip(p, 0.3, 0.7)}
    rows = pl.DataFrame({"session": session, "scope": np.where(session % 2 == 0, "even", "odd")})
    return probability_predictions(rows, y, said, dict.fromkeys(said, 0.0), ["constant"])


@pytest.mark.parametrize("seed", range(5))
def test_a_draw_equals_the_metric_over_the_drawn_sessions_rows(seed):
    session, y, p = sample(seed)
    counts = np.random.default_rng(seed).integers(0, 4, (6, 25)).astype(float)
    losses = probability_losses(y, p)
    ones = per_session(np.ones(y.size), session, 25)
    cell = session * metrics.BINS + metrics.bin_numbers(p, metrics.BINS)
    sums = np.stack(
        [np.bincount(cell, x, 25 * metrics.BINS).reshape(25, metrics.BINS) for x in (p, y, np.ones_like(p))], axis=1
    )
    statistics = {
        metrics.log_loss: Ratio(per_session(losses["log_loss"], session, 25), ones),
        metrics.brier: Ratio(per_session(losses["brier"], session, 25), ones),
        metrics.rmse_bins: BinnedRmse(sums),
        metrics.auc: Auc(y, metrics.level_numbers(p), session),
    }
    for metric, statistic in statistics.items():
        for draw, value in zip(counts, statistic.at(counts), strict=True):
            rows = np.repeat(np.arange(y.size), draw[session].astype(int))
            assert value == pytest.approx(metric(y[rows], p[rows]), abs=1e-12)


def test_sessions_are_drawn_whole_and_with_replacement():
    class Counts:
        def at(self, counts):
            assert (counts.sum(axis=1) == 12).all()
            return counts[:, 0]

    drawn = draws([Counts()], 12, 4000, np.random.default_rng(1))[0]
    assert set(drawn.tolist()) >= {0.0, 1.0, 2.0}
    assert drawn.mean() == pytest.approx(1.0, abs=0.1)


def test_many_means_at_once_are_the_means_one_by_one():
    session, y, p = sample(3)
    bottom = per_session(np.ones(y.size), session, 25)
    tops = np.stack([per_session(values, session, 25) for values in probability_losses(y, p).values()])
    one_by_one = draws([Ratio(top, bottom) for top in tops], 25, 300, np.random.default_rng(2))
    assert draws_of_means(tops, bottom, 300, np.random.default_rng(2)) == pytest.approx(one_by_one, rel=1e-12)


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    table = predictions(1).table()
    assert table.equals(predictions(1).table())
    assert not table.equals(predictions(1).table(rng=np.random.default_rng(9)))


def test_the_interval_of_a_mean_agrees_with_the_textbook_on_many_sessions():
    rng = np.random.default_rng(5)
    values = rng.normal(3.0, 1.0, 400)
    value, low, high = session_interval(Ratio(values, np.ones(400)), 400, replicates=4000)
    assert value == pytest.approx(values.mean())
    half = 1.96 * values.std() / 20
    assert (low, high) == pytest.approx((value - half, value + half), abs=0.01)


def test_rows_of_one_session_are_not_counted_as_independent():
    """Ten copies of every row, in the same sessions: the interval must not shrink."""
    session, y, p = sample(3)
    loss = (p - y) ** 2
    once = session_interval(Ratio(per_session(loss, session, 25), per_session(np.ones(300), session, 25)), 25)
    more, tenfold = np.repeat(session, 10), np.repeat(loss, 10)
    ten = session_interval(Ratio(per_session(tenfold, more, 25), per_session(np.ones(3000), more, 25)), 25)
    assert ten == pytest.approx(once)


def test_values_and_differences_stand_in_one_tidy_frame():
    table = predictions(2).table()
    assert dict(table.schema) == RESULT_SCHEMA
    values = {
        (model, metric): value
        for model, metric, value in table.filter(pl.col("versus").is_null())
        .select("model", "metric", "value")
        .iter_rows()
    }
    assert set(values) == {
        (model, metric)
        for model in ("model", "constant", "blunt")
        for metric in ("log_loss", "brier", "rmse_bins", "auc")
    }
    differences = table.filter(versus="constant")
    assert set(differences["model"]) == {"model", "blunt"}
    for row in differences.iter_rows(named=True):
        expected = values[row["model"], row["metric"]] - values["constant", row["metric"]]
        assert row["value"] == pytest.approx(expected, abs=1e-12)
        assert row["low"] <= row["value"] <= row["high"]


def test_the_interval_of_a_binned_error_stands_around_its_value():
    """Of a model that is calibrated, every draw has a larger error than the sample itself."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.0, 1.0, 400)
    y = (rng.uniform(0.0, 1.0, 400) < p).astype(np.float64)
    rows = pl.DataFrame({"session": np.arange(400) // 8})
    made = probability_predictions(rows, y, {"true": p, "flat": np.full(400, 0.4)}, {}, ["flat"])
    drawn = draws_of_sessions(y, p, rows["session"].to_numpy())
    assert np.quantile(drawn, 0.025) > metrics.rmse_bins(y, p), "without the correction the interval excludes its value"
    for row in made.table().filter(pl.col("metric") == "rmse_bins").iter_rows(named=True):
        assert row["low"] < row["value"] < row["high"]


def draws_of_sessions(y: np.ndarray, p: np.ndarray, session: np.ndarray) -> np.ndarray:
    """RMSE over bins of whole sessions drawn with replacement, by the plain metric."""
    rng, names = np.random.default_rng(1), np.unique(session)
    found = []
    for _ in range(300):
        rows = np.concatenate([np.flatnonzero(session == one) for one in rng.choice(names, len(names))])
        found.append(metrics.rmse_bins(y[rows], p[rows]))
    return np.array(found)


def test_a_paired_difference_is_surer_than_two_intervals():
    """Two models that differ by a constant: every draw has the same difference."""
    session, y, _ = sample(4)
    close = probability_predictions(
        pl.DataFrame({"session": session}),
        y,
        {"a": np.full(300, 0.5), "b": np.where(y == 1, 0.6, 0.4)},
        {},
        ["a"],
    ).table()
    row = close.filter(pl.col("metric") == "brier", pl.col("versus") == "a").row(0, named=True)
    assert row["low"] == pytest.approx(row["value"]) == pytest.approx(row["high"])


def test_groups_are_scored_apart():
    made = predictions(6)
    table = made.table(by=["scope"])
    assert table.filter(by="scope")["group"].unique().sort().to_list() == ["even", "odd"]
    even = made.rows["scope"].to_numpy() == "even"
    brier = table.filter(
        pl.col("group") == "even", pl.col("model") == "model", pl.col("metric") == "brier", pl.col("versus").is_null()
    )
    assert brier["value"].item() == pytest.approx(metrics.brier(made.y[even], made.p["model"][even]))
    assert brier["n"].item() == even.sum()
    with pytest.raises(errors.InvalidInput, match="no column 'colour'"):
        made.table(by=["colour"])


def test_too_few_sessions_give_the_widest_interval_and_a_note():
    table = predictions(7, n_sessions=MIN_SESSIONS - 1).table()
    assert table["note"].unique().to_list() == ["9 sessions: too few for an interval (10 needed)"]
    brier = table.filter(pl.col("metric") == "brier")
    values = brier.filter(pl.col("versus").is_null())
    assert set(values.select("low", "high").rows()) == {(0.0, 1.0)}
    assert set(brier.filter(pl.col("versus").is_not_null()).select("low", "high").rows()) == {(-1.0, 1.0)}
    loss = table.filter(pl.col("metric") == "log_loss", pl.col("versus").is_null())
    assert set(loss.select("low", "high").rows()) == {(0.0, float("inf"))}


def test_few_sessions_are_told_apart_from_enough():
    assert note_on(100, 1) == "1 session: too few for an interval (10 needed)"
    assert note_on(100, 10) == "10 sessions: the interval is rough"
    assert note_on(100, 30) is None
    assert note_on(0, 0) == "nothing to score"


def test_rows_without_session_are_said_to_be_drawn_one_by_one():
    assert note_on(40, 40, alone=40) == "no sessions on record: rows drawn"
    assert note_on(40, 40, alone=3) == "3 of 40 rows have no session: drawn one by one"
    assert (
        note_on(9, 9, alone=9) == "9 sessions: too few for an interval (10 needed); no sessions on record: rows drawn"
    )
    assert note_on(0, 0, alone=0) == "nothing to score"


def test_only_the_rows_of_a_group_count_as_without_session():
    made = predictions(6)
    named = made.rows.with_columns(
        session=pl.when(pl.col("scope") == "odd")
        .then(pl.concat_str(pl.lit(OWN_SESSION), pl.int_range(pl.len()).cast(pl.String)))
        .otherwise(pl.col("session").cast(pl.String))
    )
    table = dataclasses.replace(made, rows=named).table(by=["scope"])
    odd = named.filter(scope="odd").height
    notes = dict(table.filter(metric="brier").select("group", "note").unique().iter_rows())
    assert notes["all"] == f"{odd} of 300 rows have no session: drawn one by one"
    assert notes["odd"] == "no sessions on record: rows drawn"
    assert notes["even"] == "13 sessions: the interval is rough"


def test_what_is_said_against_a_model_stands_in_its_rows_only():
    made = dataclasses.replace(predictions(5, n_sessions=9), notes={"model": "doubtful"})
    for row in made.table().iter_rows(named=True):
        assert ("; doubtful" in row["note"]) == (row["model"] == "model")


def test_where_only_one_outcome_occurs_auc_is_null_and_says_why():
    session, y, p = sample(8)
    table = probability_predictions(pl.DataFrame({"session": session}), np.ones_like(y), {"a": p}, {}, []).table()
    row = table.filter(pl.col("metric") == "auc").row(0, named=True)
    assert (row["value"], row["low"], row["high"], row["note"]) == (None, None, None, "one outcome only")


def test_raw_predictions_and_calibration_are_there_on_request():
    made = predictions(9)
    long = made.long()
    assert long.height == 3 * 300
    assert {"model", "p", "log_loss", "brier", "session"} <= set(long.columns)
    assert long.filter(model="model")["brier"].to_numpy() == pytest.approx((made.p["model"] - made.y) ** 2)
    bins = made.bins(10)
    assert bins.group_by("model").agg(pl.col("n").sum()).sort("model").rows() == [
        ("blunt", 300),
        ("constant", 300),
        ("model", 300),
    ]
