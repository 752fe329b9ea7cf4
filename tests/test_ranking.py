"""The ranking rule: its check values, its ties, its intervals, and its oracle on random lineages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.reasonlets.ranking import RANK_SCHEMA, beta_interval, rank
from tests.oracles import ranking as oracle

T0 = datetime(2025, 1, 1, tzinfo=UTC)
EXACT = 1e-12


def hours(n):
    return T0 + timedelta(hours=n)


def frames(reasonlets, runs, feedback=()):
    """Frames of plain rows, as a caller would give them."""
    return (
        pl.DataFrame(
            reasonlets,
            schema={
                "reasonlet_id": pl.String,
                "parent_id": pl.String,
                "scope": pl.String,
                "ts_captured": pl.Datetime("us", "UTC"),
            },
        ),
        pl.DataFrame(
            runs,
            schema={
                "run_id": pl.String,
                "reasonlet_id": pl.String,
                "outcome": pl.String,
                "ts_run": pl.Datetime("us", "UTC"),
            },
        ),
        pl.DataFrame(
            feedback,
            schema={"run_id": pl.String, "outcome": pl.String, "ts_given": pl.Datetime("us", "UTC")},
        ),
    )


def record(name, s, n, parent=None):
    """A reasonlet with s successes among n runs."""
    reasonlet = {"reasonlet_id": name, "parent_id": parent, "scope": "s", "ts_captured": T0}
    runs = [
        {
            "run_id": f"{name}-{i}",
            "reasonlet_id": name,
            "outcome": "success" if i < s else "failure",
            "ts_run": T0,
        }
        for i in range(n)
    ]
    return reasonlet, runs


def rates(*records, **settings):
    reasonlets, runs = zip(*records, strict=True)
    ranked = rank(*frames(list(reasonlets), [run for part in runs for run in part]), **settings)
    return {row["reasonlet_id"]: row for row in ranked.iter_rows(named=True)}


def test_the_check_values_of_a_good_parent_and_its_children():
    rows = rates(
        record("parent", 9, 10),
        record("1/1", 1, 1, "parent"),
        record("0/1", 0, 1, "parent"),
        record("4/5", 4, 5, "parent"),
        record("18/20", 18, 20, "parent"),
    )
    expected = {
        "parent": Fraction(10, 12),
        "1/1": (1 + 2 * Fraction(10, 12)) / 3,
        "0/1": (0 + 2 * Fraction(10, 12)) / 3,
        "4/5": (4 + 2 * Fraction(10, 12)) / 7,
        "18/20": (18 + 2 * Fraction(10, 12)) / 22,
    }
    assert [round(float(rate), 4) for rate in expected.values()] == [0.8333, 0.8889, 0.5556, 0.8095, 0.8939]
    for name, rate in expected.items():
        assert rows[name]["rate"] == pytest.approx(float(rate), abs=EXACT)
        assert rows[name]["prior_source"] == ("neutral" if name == "parent" else "parent")


def test_the_check_values_of_a_failing_parent_whose_fix_starts_neutral():
    rows = rates(record("failing", 2, 10), record("fix", 1, 1, "failing"))
    assert rows["failing"]["rate"] == pytest.approx(0.25, abs=EXACT)
    assert rows["fix"]["rate"] == pytest.approx(2 / 3, abs=EXACT)
    assert (rows["fix"]["prior"], rows["fix"]["prior_source"]) == (0.5, "neutral")
    assert rows["fix"]["parent_rate"] == pytest.approx(0.25, abs=EXACT)


def test_the_check_value_of_an_orphan():
    rows = rates(record("orphan", 1, 1, "nowhere"))
    assert rows["orphan"]["rate"] == pytest.approx(2 / 3, abs=EXACT)
    assert rows["orphan"]["parent_rate"] is None
    assert rows["orphan"]["prior_source"] == "neutral"


def test_the_prior_looks_one_level_up_only():
    rows = rates(record("a", 20, 20), record("b", 0, 0, "a"), record("c", 0, 0, "b"))
    assert rows["b"]["prior"] == pytest.approx(21 / 22, abs=EXACT)
    assert rows["c"]["prior"] == 0.5


def test_a_parent_at_exactly_one_half_is_a_neutral_prior():
    rows = rates(record("even", 1, 2), record("child", 0, 0, "even"))
    assert rows["child"]["prior_source"] == "neutral"


def test_raw_inherits_the_parents_share_and_one_half_without_runs():
    rows = rates(
        record("perfect", 3, 3),
        record("child", 1, 1, "perfect"),
        record("empty", 0, 0),
        record("under_empty", 0, 1, "empty"),
        parent_rate="raw",
    )
    assert rows["child"]["prior"] == 1.0
    assert rows["child"]["rate"] == 1.0
    assert (rows["child"]["rate_low"], rows["child"]["rate_high"]) == (1.0, 1.0)
    assert rows["under_empty"]["prior"] == 0.5
    assert rows["under_empty"]["rate"] == pytest.approx(1 / 3, abs=EXACT)


def test_raw_with_a_failure_under_a_perfect_parent_is_a_beta_again():
    rows = rates(record("perfect", 3, 3), record("child", 0, 1, "perfect"), parent_rate="raw")
    assert rows["child"]["rate"] == pytest.approx(2 / 3, abs=EXACT)
    assert 0 < rows["child"]["rate_low"] < 2 / 3 < rows["child"]["rate_high"] < 1


def test_an_unknown_outcome_counts_neither_way():
    known, runs = record("a", 1, 2)
    unknown = {"run_id": "u", "reasonlet_id": "a", "outcome": None, "ts_run": T0}
    row = rank(*frames([known], [*runs, unknown])).row(0, named=True)
    assert (row["n"], row["s"]) == (2, 1)


def test_the_latest_verdict_replaces_the_runs_own_outcome_and_a_run_counts_once():
    known, runs = record("a", 0, 1)

    def counted(*verdicts):
        feedback = [{"run_id": "a-0", "outcome": outcome, "ts_given": hours(h)} for h, outcome in verdicts]
        row = rank(*frames([known], runs, feedback)).row(0, named=True)
        return row["s"], row["n"]

    assert counted() == (0, 1)
    assert counted((1, "success")) == (1, 1)
    assert counted((2, "failure"), (1, "success")) == (0, 1)
    assert counted((1, "success"), (2, None)) == (0, 0)
    assert counted((1, "failure"), (1, "success")) == (1, 1), "of equally late verdicts the later row"


def test_ties_go_to_more_runs_then_newer_then_id():
    def one(name, s, n, hour):
        reasonlet, runs = record(name, s, n)
        return {**reasonlet, "ts_captured": hours(hour)}, runs

    reasonlets, runs = zip(
        one("b", 1, 2, 5),
        one("a", 1, 2, 5),
        one("old", 1, 2, 1),
        one("many", 2, 4, 0),
        one("none", 0, 0, 9),
        strict=True,
    )
    ranked = rank(*frames(list(reasonlets), [run for part in runs for run in part]))
    assert ranked["reasonlet_id"].to_list() == ["many", "a", "b", "old", "none"]
    assert set(ranked["rate"]) == {0.5}


def test_rates_that_are_equal_as_fractions_tie_though_their_floats_differ():
    # 7/9 both: one run of one under a parent at 2/3, and six of seven alone; the second has more runs.
    rows = rank(
        *frames(
            [record("parent", 1, 1)[0], record("child", 1, 1, "parent")[0], record("alone", 6, 7)[0]],
            [*record("parent", 1, 1)[1], *record("child", 1, 1, "parent")[1], *record("alone", 6, 7)[1]],
        )
    )
    assert rows["reasonlet_id"].to_list() == ["alone", "child", "parent"]


def test_the_interval_is_the_equal_tailed_one_of_the_beta():
    # Beta(1, 1) is uniform; Beta(2, 1) has the distribution x^2 and Beta(1, 3) has 1 - (1 - x)^3.
    low, high = beta_interval(np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0, 3.0]), 0.95)
    assert low == pytest.approx([0.025, 0.025**0.5, 1 - 0.975 ** (1 / 3)], abs=EXACT)
    assert high == pytest.approx([0.975, 0.975**0.5, 1 - 0.025 ** (1 / 3)], abs=EXACT)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.floats(0.5, 0.99), st.floats(0.1, 50))
def test_the_interval_agrees_with_bisection(s, failures, prior, k):
    alpha, beta = s + k * prior, failures + k * (1 - prior)
    low, high = beta_interval(np.array([alpha]), np.array([beta]), 0.95)
    for bound, mass in ((low[0], 0.025), (high[0], 0.975)):
        below, above = 0.0, 1.0
        for _ in range(200):
            middle = (below + above) / 2
            below, above = (middle, above) if special.betainc(alpha, beta, middle) < mass else (below, middle)
        assert bound == pytest.approx(below, abs=EXACT)


def test_zero_parameters_are_point_masses():
    low, high = beta_interval(np.array([0.0, 2.0]), np.array([2.0, 0.0]), 0.95)
    assert low.tolist() == high.tolist() == [0.0, 1.0]


@st.composite
def histories(draw):
    """Reasonlets in random lineages, with runs and verdicts at random hours, some of them before their parents'."""
    size = draw(st.integers(1, 8))
    hour = st.integers(0, 12).map(hours)
    outcome = st.sampled_from(["success", "failure", None])
    reasonlets = []
    for number in range(size):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        reasonlets.append(
            {
                "reasonlet_id": f"rl_{draw(st.integers(0, 9))}{number}",
                "parent_id": None if parent is None else reasonlets[parent]["reasonlet_id"],
                "scope": draw(st.sampled_from("xy")) if parent is None else reasonlets[parent]["scope"],
                "ts_captured": draw(hour),
                "seq": number,
            }
        )
    runs = [
        {
            "run_id": f"run_{number}",
            "reasonlet_id": reasonlets[draw(st.integers(0, size - 1))]["reasonlet_id"],
            "outcome": draw(outcome),
            "ts_run": draw(hour),
        }
        for number in range(draw(st.integers(0, 25)))
    ]
    feedback = [
        {
            "run_id": runs[draw(st.integers(0, len(runs) - 1))]["run_id"],
            "outcome": draw(outcome),
            "ts_given": draw(hour),
            "seq": number,
        }
        for number in range(draw(st.integers(0, 8)) if runs else 0)
    ]
    return reasonlets, runs, feedback


def check_against_oracle(history, at, k, parent_rate, scope):
    reasonlets, runs, feedback = history
    ranked = rank(*frames(*history), at=at, k=k, parent_rate=parent_rate, scope=scope)
    expected = oracle.rank(reasonlets, runs, feedback, at=at, k=Fraction(k), parent_rate=parent_rate, scope=scope)
    assert ranked.schema == pl.Schema(RANK_SCHEMA)
    assert ranked["reasonlet_id"].to_list() == [row["reasonlet_id"] for row in expected]
    for row, wanted in zip(ranked.iter_rows(named=True), expected, strict=True):
        assert (row["n"], row["s"], row["prior_source"]) == (wanted["n"], wanted["s"], wanted["prior_source"])
        assert row["prior"] == pytest.approx(float(wanted["prior"]), abs=EXACT)
        assert row["rate"] == pytest.approx(float(wanted["rate"]), abs=EXACT)
        low, high = beta_interval(np.array([float(wanted["alpha"])]), np.array([float(wanted["beta"])]), 0.95)
        assert row["rate_low"] == pytest.approx(low[0], abs=EXACT)
        assert row["rate_high"] == pytest.approx(high[0], abs=EXACT)
        assert row["rate_low"] <= row["rate_high"]


CASES = (
    st.none() | st.integers(-1, 13).map(hours),
    st.sampled_from([2, 1, 5, 0.5]),
    st.sampled_from(["smoothed", "raw"]),
    st.sampled_from([None, "x"]),
)


@settings(max_examples=40, deadline=None)
@given(histories(), *CASES)
def test_random_lineages_rank_as_the_plain_python_rule_says_at_any_time(history, at, k, parent_rate, scope):
    check_against_oracle(history, at, k, parent_rate, scope)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(histories(), *CASES)
def test_many_more_random_lineages_rank_as_the_plain_python_rule_says(history, at, k, parent_rate, scope):
    check_against_oracle(history, at, k, parent_rate, scope)


def test_no_reasonlets_give_no_rows_of_the_same_columns():
    empty = rank(*frames([], []))
    assert empty.is_empty()
    assert empty.schema == pl.Schema(RANK_SCHEMA)


def test_runs_with_verdicts_need_no_feedback_beside_them():
    known, runs = record("a", 0, 1)
    reasonlets, plain, _ = frames([known], runs)
    judged = plain.with_columns(verdict=pl.lit("success"))
    assert rank(reasonlets, judged)["s"].item() == 1
    with pytest.raises(InvalidInput, match="give feedback= as well"):
        rank(reasonlets, judged, at=T0)
    same = plain.with_columns(verdict=pl.col("outcome"))
    assert rank(reasonlets, same, at=T0)["n"].item() == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"k": 0}, "k must be a finite number above 0"),
        ({"k": float("nan")}, "k must be a finite number above 0"),
        ({"parent_rate": "best"}, "parent_rate must be 'smoothed' or 'raw'"),
        ({"at": "2025-01-01T00:00:00"}, "has no time zone"),
        ({"k": "2"}, "k must be a number, not '2'"),
        ({"interval": "0.9"}, "interval must be a number, not '0.9'"),
        ({"scope": 3}, "scope must be a text, not int"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(change, why):
    with pytest.raises(InvalidInput, match=why):
        rank(*frames([], []), **change)


def test_a_missing_column_or_a_repeated_id_is_named():
    reasonlets, runs, feedback = frames([record("a", 0, 0)[0]], [])
    with pytest.raises(InvalidInput, match="the runs frame has no column outcome"):
        rank(reasonlets, runs.drop("outcome"))
    with pytest.raises(InvalidInput, match="the reasonlets frame has no column ts_captured"):
        rank(reasonlets.drop("ts_captured"), runs, at=T0)
    with pytest.raises(InvalidInput, match="the runs frame has no column run_id"):
        rank(reasonlets, runs.drop("run_id"), feedback)
    with pytest.raises(InvalidInput, match="has 'a' twice"):
        rank(pl.concat([reasonlets, reasonlets]), runs)
    assert rank(reasonlets, runs.drop("run_id")).height == 1


def test_lazy_frames_are_collected_and_what_is_no_frame_is_refused():
    reasonlets, runs, feedback = frames([record("a", 0, 0)[0]], [])
    assert rank(reasonlets.lazy(), runs, feedback.lazy()).equals(rank(reasonlets, runs, feedback))
    with pytest.raises(InvalidInput, match=r"runs must be a frame .*, not list; nothing was ranked"):
        rank(reasonlets, [])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"bm25_k1": float("nan")}, "bm25_k1 must be a finite number, 0 or more"),
        ({"bm25_k1": -1.0}, "bm25_k1 must be a finite number, 0 or more"),
        ({"bm25_b": 1.5}, "bm25_b must be from 0 to 1"),
        ({"bm25_b": "x"}, "bm25_b must be from 0 to 1, not 'x'"),
        ({"k": "2"}, "k must be a finite number above 0"),
        ({"interval": 1.0}, "interval must be between 0 and 1"),
        ({"weight": 2.0}, "weight must be from 0 to 1"),
    ],
)
def test_parameters_that_no_ranking_can_use_are_refused(change, why):
    with pytest.raises(InvalidInput, match=why):
        mk.RankParams(**change)
