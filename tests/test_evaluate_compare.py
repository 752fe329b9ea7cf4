"""Two groups of sessions: differences with support behind them, paired paths, and what else tells the groups apart."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import polars as pl
import pytest

import mnemokit as mk
from mnemokit.evaluate.comparing.confounds import cramers_v
from mnemokit.evaluate.comparing.resampling import Sums, benjamini_hochberg, compare_sums


def turns_of(sessions):
    """Turns from tuples: id, version, question, outcome, steps (a tuple in a step is a parallel group), ok."""
    rows = []
    for name, version, question, outcome, steps, ok in sessions:
        step = 0
        for place, group in enumerate(steps):
            for executor in group if isinstance(group, tuple) else (group,):
                rows.append(
                    {
                        "source": "made",
                        "session_id": name,
                        "step": step,
                        "parallel_group": place,
                        "executor": executor,
                        "executor_version": version,
                        "ok": ok,
                        "scope": "shop",
                        "question": question,
                        "session_outcome": outcome,
                        "meta": f'{{"commit":"{version[0]}","day":"monday"}}',
                    }
                )
                step += 1
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def versions():
    return mk.evaluate.compare_turns(mk.datasets.tau2(), by="executor_version")


def test_five_of_five_against_nothing_does_not_lead_the_list(versions):
    table = versions.edges(replicates=300)
    led = table.filter(pl.col("note").is_null())
    assert (led["sessions_a"] + led["sessions_b"] >= 5).all()
    assert (led["left_a"] > 0).all()
    assert (led["left_b"] > 0).all()
    alone = table.filter(pl.col("src_executor") == "set_apn_settings", pl.col("dst_executor") == "reboot_device").row(
        0, named=True
    )
    assert (alone["uses_b"], alone["left_b"], alone["left_a"], alone["difference"]) == (5, 5, 0, None)
    assert "never passed anything on in gpt-4.1" in alone["note"]
    assert table.with_row_index("row").filter(pl.col("note").is_not_null())["row"].min() == led.height


def test_a_single_stuck_session_does_not_lead_the_list(versions):
    led = versions.edges(replicates=300).filter(pl.col("note").is_null()).head(30)
    loop = led.filter(pl.col("src_executor") == "get_data_usage", pl.col("dst_executor") == "get_data_usage")
    assert loop.is_empty()
    stuck = versions.stuck(replicates=100).row(0, named=True)
    assert (stuck["src_executor"], stuck["uses"], stuck["sessions"]) == ("get_data_usage", 63, 1)
    assert (stuck["weight"], stuck["weight_once"]) == pytest.approx((1.0, 0.3), abs=1e-3)


def test_edge_uses_add_up_to_the_grouped_passings(versions):
    table = versions.edges(replicates=10)
    assert table["uses_a"].sum() + table["uses_b"].sum() == 4087


def test_an_edge_that_does_not_differ_has_an_interval_around_nothing_and_no_small_q():
    rng = np.random.default_rng(1)
    sessions = [
        (f"s{i}", "ab"[i % 2], "q", "success", ["x", "y" if rng.random() < 0.5 else "z"], True) for i in range(200)
    ]
    table = mk.evaluate.compare_turns(turns_of(sessions)).edges()
    assert (table["low"] < 0).all()
    assert (table["high"] > 0).all()
    assert (table["q"] > 0.05).all()


def test_the_false_discovery_rate_of_random_labels_is_kept():
    """Under no difference at all, one set of 40 edges in twenty or so may have anything below q = 0.05."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        taken = rng.poisson(0.5, (60, 40)).astype(float)
        told = compare_sums(
            Sums(taken[:30], np.full((30, 40), 5.0)), Sums(taken[30:], np.full((30, 40), 5.0)), rng=rng, replicates=400
        )
        found += bool((told.q < 0.05).any())
    assert found <= 4


def test_benjamini_and_hochberg_by_hand():
    assert benjamini_hochberg(np.array([0.04, 0.01, 0.03, np.nan])).tolist() == pytest.approx(
        [0.04, 0.03, 0.04, np.nan], nan_ok=True
    )


def test_paths_part_at_the_first_group_that_differs_whatever_the_order_inside():
    table = mk.evaluate.compare_turns(
        turns_of(
            [
                ("s1", "a", "q1", "failure", ["find", ("x", "y"), "buy"], True),
                ("s2", "b", "q1", "success", ["find", ("y", "x"), "ask", "buy"], True),
                ("s3", "a", "q2", "success", ["find", "buy"], True),
                ("s4", "b", "q2", "success", ["find", "buy"], True),
                ("s5", "a", "q3", "success", ["find"], True),
                ("s6", "b", "q3", "failure", ["find", "buy"], True),
            ]
        )
    ).paths()
    assert table.select("question", "common", "after", "then_a", "then_b", "gain").rows() == [
        ("q1", 2, "x + y", "buy", "ask", 1),
        ("q2", 2, "buy", None, None, 0),
        ("q3", 1, "find", None, "buy", -1),
    ]


def test_on_tau2_every_task_is_paired_within_its_mode(versions):
    pairs = versions.paths()
    assert pairs.height == 140
    assert pairs.group_by("meta.mode").len().sort("meta.mode").rows() == [("default", 100), ("no-user", 40)]
    assert (pairs["success_a"].sum(), pairs["success_b"].sum()) == (82, 111)
    whole = versions.partings().filter("all").row(0, named=True)
    assert (whole["n"], whole["gain"]) == (140, pytest.approx(29 / 140))
    assert 0 < whole["low"] < whole["gain"] < whole["high"]


def test_few_pairs_are_said_to_be_few(versions):
    few = versions.partings().filter(~pl.col("all"), pl.col("n") < 10)
    assert few["note"].str.contains("too few for an interval").all()
    assert set(few.select("low", "high").unique().rows()) == {(-1.0, 1.0)}


def test_a_version_is_not_one_thing_and_that_is_warned_of(versions):
    """The base version's sessions without a user ran on another commit than their pair."""
    table = versions.confounds()
    commit = table.filter(pl.col("attribute") == "meta.git_commit", pl.col("value").str.starts_with("4df5527c")).row(
        0, named=True
    )
    assert (commit["sessions_a"], commit["sessions_b"]) == (40, 0)
    assert commit["warning"].startswith("only in gpt-4.1")
    assert table.filter(pl.col("attribute") == "meta.mode")["warning"].null_count() == 2
    assert table.filter(attribute="meta.reward").is_empty()


def test_cramers_v_equals_scipys():
    from scipy.stats.contingency import association

    rng = np.random.default_rng(3)
    counts = rng.integers(1, 30, (4, 2))
    assert cramers_v(counts.astype(float)) == pytest.approx(association(counts, method="cramer"), abs=1e-12)
    assert cramers_v(np.array([[5.0, 5.0]])) == 0.0


def test_passings_before_failure_are_looked_for_only_where_every_step_was_ok():
    sessions = [(f"bad{i}", "a", "q", "failure", ["find", "ask"], True) for i in range(12)]
    sessions += [(f"good{i}", "a", "q", "success", ["find", "buy"], True) for i in range(12)]
    sessions += [(f"broken{i}", "b", "q", "failure", ["find", "buy"], False) for i in range(12)]
    told = mk.evaluate.compare_turns(turns_of(sessions)).before_failure()
    first = told.row(0, named=True)
    assert (first["src_executor"], first["dst_executor"]) == ("find", "ask")
    assert (first["with_edge"], first["failed_with"], first["without_edge"], first["failed_without"]) == (12, 12, 12, 0)
    assert first["q"] < 0.01


def test_where_all_sessions_ended_alike_nothing_can_be_said():
    sessions = [(f"s{i}", "ab"[i % 2], "q", "success", ["find", "buy"], True) for i in range(12)]
    with pytest.raises(mk.NotEnoughData, match="all of them ended alike"):
        mk.evaluate.compare_turns(turns_of(sessions)).before_failure()


def test_the_count_of_an_edge_lies_between_its_counts_over_all_orders():
    group = ("x", "y", "y", "z")
    table = mk.evaluate.compare_turns(
        turns_of([("s1", "a", "q", None, ["w", group, "v"], True), ("s2", "b", "q", None, ["w", "x"], True)])
    ).parallel(orders=400)
    for row in table.iter_rows(named=True):
        edge = (row["src_executor"], row["dst_executor"])
        counts = []
        for order in permutations(group):
            path = ("w", *order, "v")
            counts.append(sum(pair == edge for pair in pairwise(path)) + (edge == ("w", "x")))
        assert (row["least"], row["most"]) == (min(counts), max(counts)), edge
        assert row["mean"] == pytest.approx(np.mean(counts), abs=0.12)


def test_shuffling_the_rows_of_the_log_changes_no_answer():
    turns = mk.datasets.tau2()
    shuffled = turns.sample(fraction=1.0, shuffle=True, seed=5)
    one, other = mk.evaluate.compare_turns(turns), mk.evaluate.compare_turns(shuffled)
    assert one.edges(replicates=50).equals(other.edges(replicates=50))
    assert one.paths().equals(other.paths())
    assert one.stuck(replicates=50).equals(other.stuck(replicates=50))
    assert one.before_failure(replicates=50).equals(other.before_failure(replicates=50))
    order_free = ["src_executor", "dst_executor", "grouped"]
    assert (
        one.parallel(orders=5)
        .select(order_free)
        .sort(order_free)
        .join(other.parallel(orders=5).select(order_free).sort(order_free), on=order_free[:2], suffix="_b")
        .filter(pl.col("grouped") != pl.col("grouped_b"))
        .is_empty()
    )


def test_the_nth_write_is_held_against_trying_again_without_it():
    groups = ("alfworld_runs/base_run_logs", "alfworld_runs/reflexion_run_logs")
    table = mk.evaluate.compare_turns(mk.datasets.reflexion(), by="scope", groups=groups).writes()
    again = table.filter(pl.col("trial").is_null()).row(0, named=True)
    first = table.filter(trial=0).row(0, named=True)
    assert (first["attempts_b"], first["succeeded_b"]) == (134, 84)
    assert (again["attempts_b"], again["succeeded_b"]) == (200, 50)
    assert table.filter(pl.col("trial").is_not_null())["attempts_b"].sum() == 334
    assert table.filter(pl.col("trial") == 9)["note"].item() == "no attempt in one group"
    again_twice = mk.evaluate.compare_turns(mk.datasets.reflexion(), by="scope", groups=groups).writes()
    assert table.equals(again_twice)


def test_groups_that_are_not_there_are_refused(versions):
    turns = mk.datasets.tau2()
    with pytest.raises(mk.InvalidInput, match="cannot be grouped by 'colour'"):
        mk.evaluate.compare_turns(turns, by="colour")
    with pytest.raises(mk.InvalidInput, match="name two different groups"):
        mk.evaluate.compare_turns(turns, groups=("a", "a"))
    with pytest.raises(mk.NotEnoughData, match="no session has executor_version = 'gpt-9'"):
        mk.evaluate.compare_turns(turns, groups=("gpt-4.1", "gpt-9"))
    with pytest.raises(mk.NotEnoughData, match="two are needed"):
        mk.evaluate.compare_turns(turns, by="source")
    with pytest.raises(mk.InvalidInput, match=r"do not say meta\.(notes|trial)"):
        versions.writes()
    with pytest.raises(mk.InvalidInput, match="to make a task of"):
        versions.paths(within=["colour"])


def test_groups_can_be_by_any_key_of_the_meta():
    told = mk.evaluate.compare_turns(mk.datasets.tau2(), by="meta.mode")
    assert {told.groups.a, told.groups.b} == {"default", "no-user"}
    assert told.confounds().filter(attribute="meta.agent")["cramers_v"][0] == pytest.approx(1.0)
