"""Metrics equal scikit-learn's and ranx's, or a formula worked by hand, to 1e-12."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import errors
from mnemokit.evaluate import metrics
from tests.oracles import evaluate as oracle

SEEDS = range(20)
CLOSE = 1e-12


def random_predictions(seed, n=500):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2) if seed % 2 else rng.random(n)
    y = (rng.random(n) < p).astype(float)
    return y, p


@pytest.mark.parametrize("seed", SEEDS)
def test_log_loss_brier_and_auc_equal_scikit_learn(seed):
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    y, p = random_predictions(seed)
    weights = np.random.default_rng(seed).random(y.size)
    for given_weights in (None, weights):
        assert metrics.log_loss(y, p, given_weights) == pytest.approx(
            log_loss(y, p, sample_weight=given_weights), abs=CLOSE, rel=CLOSE
        )
        assert metrics.brier(y, p, given_weights) == pytest.approx(
            brier_score_loss(y, p, sample_weight=given_weights), abs=CLOSE
        )
        assert metrics.auc(y, p, given_weights) == pytest.approx(
            roc_auc_score(y, p, sample_weight=given_weights), abs=CLOSE
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_calibration_curve_equals_scikit_learn(seed):
    from sklearn.calibration import calibration_curve

    y, p = random_predictions(2 * seed)
    rate, mean_p = calibration_curve(y, p, n_bins=10)
    table = metrics.bin_table(y, p, bins=10)
    assert table["observed"].to_numpy() == pytest.approx(rate, abs=CLOSE)
    assert table["predicted"].to_numpy() == pytest.approx(mean_p, abs=CLOSE)
    assert table["n"].sum() == y.size


@pytest.mark.parametrize("seed", SEEDS)
def test_rmse_over_bins_and_auc_equal_plain_loops(seed):
    y, p = random_predictions(seed, n=120)
    assert metrics.rmse_bins(y, p, bins=20) == pytest.approx(oracle.rmse_bins(y, p, 20), abs=CLOSE)
    assert metrics.auc(y, p) == pytest.approx(oracle.auc(y, p), abs=CLOSE)
    assert metrics.log_loss(y, p) == pytest.approx(oracle.log_loss(y, p), abs=CLOSE)


def test_rmse_over_bins_by_hand():
    # Two bins of ten: 0.25 said, 1 of 2 happened; 0.85 said, 3 of 3 happened: sqrt((2*0.25^2 + 3*0.15^2) / 5).
    y, p = [1, 0, 1, 1, 1], [0.25, 0.25, 0.85, 0.85, 0.85]
    assert metrics.rmse_bins(y, p, bins=10) == pytest.approx(math.sqrt((2 * 0.0625 + 3 * 0.0225) / 5), abs=CLOSE)


RANX_METRICS = ("hit_rate@1", "hit_rate@3", "hit_rate@5", "mrr", "ndcg@3", "ndcg@5", "ndcg@10")


def ranx_evaluate(qrels, run, names):
    """What ranx says, query by query, its kernels run as plain Python: compiling them takes half a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ranx's own source does not compile without warnings
        from ranx import Qrels, Run, evaluate

        return {name: np.asarray(evaluate(Qrels(qrels), Run(run), name, return_mean=False)) for name in names}


def test_hits_reciprocal_rank_and_ndcg_equal_ranx(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    rng = np.random.default_rng(7)
    qrels, run, better, relevances = {}, {}, [], []
    for q in range(300):
        n = int(rng.integers(2, 12))
        scores = rng.permutation(n) + rng.random()
        relevant = int(rng.integers(0, n))
        order = np.argsort(-scores)
        grades = rng.integers(0, 4, n) if q % 2 else np.zeros(n, dtype=int)
        grades[relevant] = 4
        run[f"q{q:03}"] = {f"d{i}": float(scores[i]) for i in range(n)}
        qrels[f"q{q:03}"] = {f"d{i}": int(grades[i]) for i in range(n) if grades[i] > 0}
        better.append(int((scores > scores[relevant]).sum()))
        relevances.append(grades[order])
    only = {q: {d: g for d, g in docs.items() if g == 4} for q, docs in qrels.items()}
    ones = np.ones(len(better))
    single = ranx_evaluate(only, run, RANX_METRICS[:4])
    for k in (1, 3, 5):
        assert metrics.hit_at(k, better, ones) == pytest.approx(single[f"hit_rate@{k}"], abs=CLOSE)
    assert metrics.reciprocal_rank(better, ones) == pytest.approx(single["mrr"], abs=CLOSE)
    graded = ranx_evaluate(qrels, run, RANX_METRICS[4:])
    for k in (3, 5, 10):
        mine = [metrics.ndcg(relevance, k) for relevance in relevances]
        assert mine == pytest.approx(graded[f"ndcg@{k}"], abs=CLOSE)


@given(
    weights=st.dictionaries(st.integers(0, 8), st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=1),
    came=st.integers(0, 8),
    k=st.integers(1, 5),
)
@settings(max_examples=200, deadline=None)
def test_ties_are_the_mean_over_every_order(weights, came, k):
    level = sum(w == weights.get(came) for w in weights.values()) if weights.get(came, 0.0) > 0 else 0
    better = sum(w > weights.get(came, 0.0) for w in weights.values())
    hit = oracle.expected_over_ties(weights, came, lambda rank: float(rank is not None and rank <= k))
    reciprocal = oracle.expected_over_ties(weights, came, lambda rank: 0.0 if rank is None else 1 / rank)
    assert metrics.hit_at(k, [better], [level])[0] == pytest.approx(hit, abs=CLOSE)
    assert metrics.reciprocal_rank([better], [level])[0] == pytest.approx(reciprocal, abs=CLOSE)


def test_a_list_in_which_nothing_is_relevant_cannot_be_judged():
    assert math.isnan(metrics.ndcg([0, 0], 5))


def test_auc_of_one_outcome_is_not_a_number():
    assert math.isnan(metrics.auc([1, 1], [0.2, 0.4]))


def test_a_sure_prediction_that_was_wrong_costs_36_nats():
    assert metrics.log_loss([0], [1.0]) == pytest.approx(-math.log(2.0**-52))


def test_nothing_to_score_is_refused():
    with pytest.raises(errors.NotEnoughData, match="no prediction"):
        metrics.brier([], [])


@pytest.mark.parametrize(
    ("y", "p", "words"),
    [([1, 0], [0.5], "equally long"), ([2], [0.5], "0 or 1"), ([1], [1.5], "from 0 to 1"), ([1], [math.nan], "0 to 1")],
)
def test_what_is_no_prediction_is_refused(y, p, words):
    with pytest.raises(errors.InvalidInput, match=words):
        metrics.log_loss(y, p)
