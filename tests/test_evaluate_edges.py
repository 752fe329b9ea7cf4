"""What is expected to come next is said from strictly earlier passings alone, by the memory's own weights."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import errors
from mnemokit.evaluate.edge_loss import EdgeLoss
from mnemokit.evaluate.edge_models import MnestWeights, RawCounts, edge_baselines, edge_rivals
from mnemokit.evaluate.next_executor import predict_next, predict_next_log
from mnemokit.evaluate.passing_log import passing_log
from mnemokit.records import EdgeParams
from tests.oracles import evaluate as oracle
from tests.oracles.edges import DAY, Fact

START = int(datetime(2025, 8, 1, tzinfo=UTC).timestamp()) * 1_000_000
CLOSE = 1e-9
NAMES = "abcd"


@st.composite
def histories(draw):
    """Passings with ties in time, bursts and gaps of weeks."""
    lambdas = draw(st.sampled_from([(0.018,), (0.018, 0.3, 0.0)]))
    rate = {(s, d): draw(st.sampled_from(lambdas)) for s in NAMES for d in NAMES}
    now, facts = START, []
    for seq in range(draw(st.integers(1, 40))):
        now += draw(st.sampled_from([0, 0, 3_600_000_000, DAY // 2, 5 * DAY, 30 * DAY]))
        src, dst = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
        facts.append(Fact("passing", now, seq, src, "1", dst, "1", rate[src, dst]))
    return facts


def frame(facts):
    return pl.DataFrame(
        {
            "src_executor": [fact.src for fact in facts],
            "src_version": [fact.src_version for fact in facts],
            "dst_executor": [fact.dst for fact in facts],
            "dst_version": [fact.dst_version for fact in facts],
            "ts": pl.Series([fact.ts for fact in facts]).cast(pl.Datetime("us", "UTC")),
            "decay_lambda": [fact.decay_lambda for fact in facts],
            "session_id": [f"s{i // 5}" for i in range(len(facts))],
            "seq": [fact.seq for fact in facts],
        }
    )


def nights_of(facts):
    first, last = facts[0].ts, facts[-1].ts
    night = first // DAY * DAY + 3 * DAY // 24
    nights = []
    while night <= last:
        if night > first:
            nights.append(night)
        night += DAY
    return nights


@given(histories(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_memorys_weights_before_each_passing_equal_the_night_by_night_oracle(facts, ager):
    nights = nights_of(facts) if ager else []
    predictions = predict_next(frame(facts), ager="daily" if ager else None, models=[])
    for i, fact in enumerate(facts):
        weights = oracle.edge_weights_before(facts, nights, fact.ts, fact.src)
        p = oracle.next_probability(weights, facts, fact.ts, fact.src, fact.dst)
        assert predictions.p["mnest_weights"][i] == pytest.approx(p, rel=CLOSE)
        losses = predictions.losses["mnest_weights"]
        assert losses["log_loss"][i] == pytest.approx(-math.log(p), rel=CLOSE)
        for k in (1, 3, 5):
            hit = oracle.expected_over_ties(weights, fact.dst, lambda rank, k=k: float(rank is not None and rank <= k))
            assert losses[f"hit@{k}"][i] == pytest.approx(hit, abs=1e-6)
        reciprocal = oracle.expected_over_ties(weights, fact.dst, lambda rank: 0.0 if rank is None else 1 / rank)
        assert losses["mrr"][i] == pytest.approx(reciprocal, abs=1e-6)
        assert losses["coverage"][i] == float(fact.dst in weights)


@given(histories())
@settings(max_examples=60, deadline=None)
def test_baselines_equal_plain_counts(facts):
    predictions = predict_next(frame(facts))
    for i, fact in enumerate(facts):
        earlier = [other for other in facts if other.ts < fact.ts]
        mine = [other for other in earlier if other.src == fact.src]
        known = {other.dst for other in mine}
        counts = {dst: sum(other.dst == dst for other in mine) for dst in known}
        recency = sorted(known, key=lambda dst: -max(other.seq for other in mine if other.dst == dst))
        expected = {
            "raw_counts": counts,
            "uniform": dict.fromkeys(known, 1.0),
            "constant": {dst: sum(other.dst == dst for other in earlier) for dst in known},
            "last_10": {dst: sum(other.dst == dst for other in mine[-10:]) for dst in known},
            "most_recent": {dst: 1 / (1 + place) for place, dst in enumerate(recency)},
            "half_life": {
                dst: sum(0.5 ** ((fact.ts - other.ts) / DAY / 7) for other in mine if other.dst == dst) for dst in known
            },
        }
        for name, weights in expected.items():
            p = oracle.next_probability(weights, facts, fact.ts, fact.src, fact.dst)
            assert predictions.p[name][i] == pytest.approx(p, rel=CLOSE), name


@given(histories(), st.integers(0, 40), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_nothing_from_the_future_is_used(facts, cut, random):
    """Replace everything from an instant on: what was said up to then stays as it was."""
    moment = facts[min(cut, len(facts) - 1)].ts
    shuffled = list(facts)
    later = [i for i, fact in enumerate(facts) if fact.ts >= moment]
    names = [(facts[i].src, facts[i].dst) for i in later]
    random.shuffle(names)
    for i, (src, dst) in zip(later, names, strict=True):
        known = [fact for fact in facts if (fact.src, fact.dst) == (src, dst)]
        shuffled[i] = Fact("passing", facts[i].ts, facts[i].seq, src, "1", dst, "1", known[0].decay_lambda)
    before, after = predict_next(frame(facts)), predict_next(frame(shuffled))
    same = [i for i, fact in enumerate(facts) if fact.ts < moment]
    for name, p in before.p.items():
        assert p[same] == pytest.approx(after.p[name][same], rel=1e-12), name


@given(histories())
@settings(max_examples=40, deadline=None)
def test_probabilities_over_every_destination_add_up_to_one(facts):
    """Of one passing, ask for every known destination and one unknown in its place."""
    now = facts[-1].ts
    earlier = [fact for fact in facts if fact.ts < now]
    known = sorted({fact.dst for fact in earlier})
    totals = {}
    for dst in [*known, "never seen"]:
        asked = [*earlier, Fact("passing", now, 999, facts[-1].src, "1", dst, "1")]
        for name, p in predict_next(frame(asked)).p.items():
            totals[name] = totals.get(name, 0.0) + p[-1]
    assert totals == pytest.approx(dict.fromkeys(totals, 1.0), rel=1e-9)


def test_passings_of_one_instant_are_predicted_before_any_is_learnt():
    facts = [Fact("passing", START, i, "a", "1", "b", "1") for i in range(5)]
    for name, p in predict_next(frame(facts)).p.items():
        assert p.tolist() == [1.0] * 5, name


def test_in_an_untimed_log_order_stands_for_time_and_nothing_fades():
    facts = [Fact("passing", START + i * 400 * DAY, i, "a", "1", "bc"[i % 2], "1") for i in range(6)]
    untimed = frame(facts).drop("ts")
    said = predict_next(untimed, models=[])
    assert said.losses["mnest_weights"]["coverage"].tolist() == [0, 0, 1, 1, 1, 1]


def test_an_edge_that_an_ager_demoted_is_out_of_the_running():
    facts = [Fact("passing", START + days * DAY, days, "a", "1", "b", "1") for days in (0, 30)]
    assert predict_next(frame(facts), models=[]).losses["mnest_weights"]["coverage"].tolist() == [0, 0]
    assert predict_next(frame(facts), ager=None, models=[]).losses["mnest_weights"]["coverage"].tolist() == [0, 1]


def test_collapsed_versions_share_what_was_learnt():
    facts = [Fact("passing", START + i, i, "a", str(i), "b", str(i)) for i in range(3)]
    assert predict_next(frame(facts)).rows["seen"].to_list() == [False, False, False]
    assert predict_next(frame(facts), versions="collapsed").rows["seen"].to_list() == [False, True, True]


def test_candidates_in_pieces_give_what_all_at_once_gives(monkeypatch):
    rng = np.random.default_rng(3)
    facts = [
        Fact("passing", START + i * DAY // 50, i, *(str(x) for x in (rng.integers(3), 1, rng.integers(9), 1)))
        for i in range(400)
    ]
    whole = predict_next(frame(facts))
    monkeypatch.setattr("mnemokit.evaluate.passing_log._PAIRS_AT_ONCE", 50)
    pieces = predict_next(frame(facts))
    for name in whole.p:
        assert np.array_equal(whole.p[name], pieces.p[name]), name


def test_other_parameters_decay_every_edge_alike():
    log = passing_log(frame([Fact("passing", START + i * DAY, i, "a", "1", "bbc"[i % 3], "1") for i in range(9)]))
    still = predict_next_log(log, models=[MnestWeights(EdgeParams(decay_lambda=0.0), name="still")])
    fast = predict_next_log(log, models=[MnestWeights(EdgeParams(decay_lambda=1.0), name="fast")])
    assert still.p["still"][-1] != fast.p["fast"][-1]
    assert still.p["mnest_weights"] == pytest.approx(fast.p["mnest_weights"], abs=0)


def test_every_baseline_is_in_the_table_and_two_models_of_one_name_are_refused():
    facts = [Fact("passing", START + i, i, "a", "1", "b", "1") for i in range(3)]
    names = predict_next(frame(facts)).table()["model"].unique().to_list()
    assert {model.name for model in [MnestWeights(), *edge_baselines(), *edge_rivals()]} == set(names)
    with pytest.raises(errors.InvalidInput, match="two models are called 'mnest_weights'"):
        predict_next(frame(facts), models=[MnestWeights(EdgeParams())])


def test_a_model_with_the_name_of_a_baseline_is_refused_unless_it_is_the_baseline():
    facts = [Fact("passing", START + i, i, "a", "1", "b", "1") for i in range(3)]
    with pytest.raises(errors.InvalidInput, match="a model is called 'raw_counts', which is the name of a baseline"):
        predict_next(frame(facts), models=[MnestWeights(name="raw_counts")])
    made = predict_next(frame(facts), models=[RawCounts()])
    assert sorted(made.p) == sorted(["mnest_weights", *(model.name for model in edge_baselines())])


def test_passings_without_a_session_are_said_to_be_drawn_one_by_one():
    facts = [Fact("passing", START + i * DAY, i, "a", "1", "bc"[i % 2], "1") for i in range(40)]
    table = predict_next(frame(facts).drop("session_id"), models=[]).table(replicates=50)
    assert table["note"].unique().to_list() == ["no sessions on record: rows drawn"]


def test_no_passings_give_a_table_that_says_so():
    table = predict_next(frame([Fact("passing", START, 0, "a", "1", "b", "1")]).clear()).table()
    assert table["note"].unique().to_list() == ["nothing to score"]
    assert table["value"].null_count() == table.height


@given(histories(), st.booleans(), st.sampled_from([None, 0.0, 0.05, 2.0]))
@settings(max_examples=80, deadline=None)
def test_the_loss_without_lists_equals_the_loss_with_them(facts, ager, decay_lambda):
    log = passing_log(frame(facts), ager="daily" if ager else None)
    params = None if decay_lambda is None else EdgeParams(decay_lambda=decay_lambda)
    listed = predict_next_log(log, models=[MnestWeights(params, name="listed")]).p["listed"]
    assert EdgeLoss(log).probabilities(params) == pytest.approx(listed, rel=1e-9)


def test_the_loss_without_lists_knows_untimed_passings():
    facts = [Fact("passing", START + i * DAY, i, "ab"[i % 2], "1", "bc"[i % 3 % 2], "1") for i in range(30)]
    some = frame(facts).with_columns(untimed=pl.Series([i % 4 == 0 for i in range(30)]))
    for passings in (some, frame(facts).drop("ts")):
        log = passing_log(passings)
        listed = predict_next_log(log, models=[]).p["mnest_weights"]
        assert EdgeLoss(log).probabilities() == pytest.approx(listed, rel=1e-9)
