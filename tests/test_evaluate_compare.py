"""Two groups of sessions: differences with support behind them, paired paths, and what else tells the groups apart."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import numpy as np
import polars as pl
import pytest

import mnemokit as mk
from mnemokit import EdgeParams
from mnemokit.evaluate.comparing.confounds import cramers_v
from mnemokit.evaluate.comparing.edges import EdgesLeftOut
from mnemokit.evaluate.comparing.resampling import Sums, benjamini_hochberg, compare_sums
from mnemokit.evaluate.comparing.writes import nth_write
from mnemokit.evaluate.intervals import MIN_SESSIONS

BASE, REFLEXION = "alfworld_runs/base_run_logs", "alfworld_runs/reflexion_run_logs"


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
    assert (alone["low"], alone["high"]) == (-1.0, 1.0)
    assert "never passed anything on in gpt-4.1" in alone["note"]
    assert table.with_row_index("row").filter(pl.col("note").is_not_null())["row"].min() == led.height


def test_a_single_stuck_session_does_not_lead_the_list(versions):
    led = versions.edges(replicates=300).filter(pl.col("note").is_null()).head(30)
    loop = led.filter(pl.col("src_executor") == "get_data_usage", pl.col("dst_executor") == "get_data_usage")
    assert loop.is_empty()
    stuck = versions.stuck(replicates=100).row(0, named=True)
    assert (stuck["src_executor"], stuck["uses"], stuck["sessions"]) == ("get_data_usage", 63, 1)
    assert (stuck["weight"], stuck["weight_once"]) == pytest.approx((1.0, 0.3), abs=1e-3)


def test_a_difference_with_few_sessions_behind_it_has_the_widest_interval_and_no_other_has(versions):
    """0 of 1 against 4 of 4 was a difference of 1 with an interval from 1 to 1."""
    table = versions.edges(replicates=100)
    few = table.filter(pl.col("note").is_not_null())
    assert set(few.select("low", "high", "p", "q").unique().rows()) == {(-1.0, 1.0, None, None)}
    led = table.filter(pl.col("note").is_null())
    assert (led["high"] - led["low"] < 2).all()
    assert (led["low"] < led["high"]).all()
    one = few.filter(pl.col("uses_a") == 0, pl.col("left_a") == 1, pl.col("uses_b") == 4, pl.col("left_b") == 4)
    assert one.height > 0
    assert one["note"].str.contains("too few for an interval").all()


@pytest.mark.parametrize("n", [MIN_SESSIONS - 1, MIN_SESSIONS])
def test_ten_sessions_of_each_group_are_needed_for_the_interval_of_an_edge(n):
    """How many sessions used the source counts, not how many the group has."""
    sessions = [(f"a{i}", "a", "q", "success", ["x", "y"], True) for i in range(30)]
    sessions += [(f"b{i}", "b", "q", "success", ["x", "z" if i % 2 else "y"], True) for i in range(n)]
    sessions += [(f"c{i}", "b", "q", "success", ["u", "v"], True) for i in range(30)]
    row = (
        mk.evaluate.compare_turns(turns_of(sessions)).edges(replicates=200).filter(dst_executor="z").row(0, named=True)
    )
    assert (row["left_a"], row["left_b"]) == (30, n)
    assert ((row["low"], row["high"]) == (-1.0, 1.0)) == (n < MIN_SESSIONS)
    if n < MIN_SESSIONS:
        assert row["note"] == "9 sessions of one group used its source: too few for an interval (10 needed)"


def test_uses_per_session_of_few_sessions_have_no_upper_bound(versions):
    table = versions.stuck(replicates=100)
    few = table.filter(pl.col("sessions") < MIN_SESSIONS)
    assert set(few.select("low", "high").unique().rows()) == {(1.0, float("inf"))}
    assert few["note"].str.contains("too few for an interval").all()
    assert table.filter(pl.col("sessions") >= MIN_SESSIONS)["note"].is_null().all()
    assert table.row(0, named=True)["note"] == "1 session took it: too few for an interval (10 needed)"


def test_an_edge_before_failure_in_few_sessions_has_the_widest_interval(versions):
    """One failed session that took an edge made +0.70 with an interval from 0.65 to 0.76."""
    table = versions.before_failure(replicates=100)
    few = table.filter(pl.min_horizontal("with_edge", "without_edge") < MIN_SESSIONS)
    assert few.height > 0
    assert set(few.select("low", "high").unique().rows()) == {(-1.0, 1.0)}
    assert few["note"].is_not_null().all()
    many = table.filter(pl.min_horizontal("with_edge", "without_edge") >= MIN_SESSIONS)
    assert many["note"].is_null().all()
    assert (many["high"] - many["low"] < 2).all()


def test_the_interval_of_a_difference_is_never_a_point_however_alike_the_sessions_are():
    """That n sessions were all alike leaves room for a part of at most 1 - 0.025 ** (1 / n) that are not."""
    sessions = [(f"a{i}", "a", "q", "success", ["x", "y"], True) for i in range(20)]
    sessions += [(f"b{i}", "b", "q", "failure", ["x", "z"], True) for i in range(30)]
    told = mk.evaluate.compare_turns(turns_of(sessions))
    row = told.edges(replicates=100).filter(dst_executor="z").row(0, named=True)
    room = 1 - 0.025 ** (1 / 20)
    assert (row["difference"], row["low"], row["high"]) == (1.0, pytest.approx(1 - 2 * room), 1.0)
    failing = told.before_failure(replicates=100).filter(dst_executor="z").row(0, named=True)
    assert (failing["difference"], failing["low"], failing["high"]) == (1.0, pytest.approx(1 - 2 * room), 1.0)


def test_edges_that_are_left_out_are_told(versions):
    with pytest.warns(EdgesLeftOut, match=r"432 edges: the 100 most used are looked at, 332 .* most=432 "):
        table = versions.edges(replicates=10, most=100)
    assert table.height == 100
    with pytest.warns(EdgesLeftOut):
        assert versions.stuck(replicates=10, most=100).height == 100
    with pytest.warns(EdgesLeftOut):
        versions.before_failure(replicates=10, most=100)
    assert versions.edges(replicates=10, most=432).height == 432
    with pytest.raises(mk.InvalidInput, match="most"):
        versions.edges(most=0)


def test_stuck_weighs_by_the_rule_of_the_memory_that_is_compared():
    params = EdgeParams(reinforcement=0.05)
    turns = mk.datasets.tau2()
    with mk.open(edge_params=params) as mem:
        mem.replay(turns, label="tau2", progress=False)
        own = mk.evaluate.compare(mem).stuck(replicates=10)
    given = mk.evaluate.compare_turns(turns, edge_params=params).stuck(replicates=10)
    assert own.select("src_executor", "dst_executor", "weight").equals(
        given.select("src_executor", "dst_executor", "weight")
    )
    assert not own["weight"].equals(mk.evaluate.compare_turns(turns).stuck(replicates=10)["weight"])


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


def test_partings_say_how_many_sessions_are_behind_each_row(versions):
    table = versions.partings(replicates=10)
    assert (table["n_sessions"] == 2 * table["n"]).all()
    assert table.filter("all")["n_sessions"].item() == 280


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


def test_a_difference_between_what_groups_are_made_of_has_an_interval_over_sessions(versions):
    table = versions.confounds()
    assert (table["difference"] - (table["share_b"] - table["share_a"])).abs().max() < 1e-12
    assert (table["low"] <= table["difference"]).all()
    assert (table["high"] >= table["difference"]).all()
    assert (table["low"] < table["high"]).all()
    assert table["n_sessions"].unique().to_list() == [280]
    few = mk.evaluate.compare_turns(
        turns_of([(f"s{i}", "ab"[i % 2], "q", "success", ["x"], True) for i in range(8)])
    ).confounds()
    assert set(few.select("low", "high").rows()) == {(-1.0, 1.0)}


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


def test_the_count_of_an_edge_over_orders_has_an_interval_over_sessions_too():
    """Orders are certain here, sessions are not: half of them go on to y."""
    sessions = [(f"s{i}", "ab"[i % 2], "q", None, ["x", "y" if i % 4 < 2 else "z"], True) for i in range(80)]
    row = mk.evaluate.compare_turns(turns_of(sessions)).parallel(orders=5).filter(dst_executor="y").row(0, named=True)
    assert (row["least"], row["low"], row["mean"], row["high"], row["most"]) == (40, 40.0, 40.0, 40.0, 40)
    spread = 1.96 * np.sqrt(80 * 0.5 * 0.5)
    assert row["low_sessions"] == pytest.approx(40 - spread, abs=2)
    assert row["high_sessions"] == pytest.approx(40 + spread, abs=2)
    assert row["note"] is None


def test_the_interval_over_sessions_stands_around_the_mean_over_all_orders():
    sessions = [(f"s{i}", "ab"[i % 2], "q", None, ["w", ("x", "y", "y", "z")], True) for i in range(12)]
    table = mk.evaluate.compare_turns(turns_of(sessions)).parallel(orders=50)
    for row in table.iter_rows(named=True):
        edge = (row["src_executor"], row["dst_executor"])
        orders = [("w", *order) for order in permutations(("x", "y", "y", "z"))]
        expected = 12 * np.mean([sum(pair == edge for pair in pairwise(path)) for path in orders])
        assert (row["low_sessions"], row["high_sessions"]) == pytest.approx((expected, expected)), edge


def test_the_count_of_an_edge_of_few_sessions_has_no_upper_bound(versions):
    table = versions.parallel(orders=5)
    few = table.filter(pl.col("n_sessions") < 5)
    assert few.height > 0
    assert set(few.select("low_sessions", "high_sessions").unique().rows()) == {(0.0, float("inf"))}
    assert few["note"].is_not_null().all()
    many = table.filter(pl.col("note").is_null())
    assert many["high_sessions"].is_finite().all()


def test_what_needs_one_group_only_can_be_asked_of_a_log_of_one_version():
    sessions = [(f"s{i}", "a", "q", ("success", "failure")[i % 2], ["x", "yz"[i % 2]], True) for i in range(40)]
    told = mk.evaluate.compare_turns(turns_of(sessions))
    assert told.stuck(replicates=10)["uses"].sum() == 40
    assert told.parallel(orders=2)["as_logged"].sum() == 40
    assert told.before_failure(replicates=100).filter(dst_executor="z")["difference"].item() == 1.0
    for ask in (told.edges, told.paths, told.partings, told.confounds, told.writes):
        with pytest.raises(mk.NotEnoughData, match="executor_version has 1 value among 40 sessions; two are needed"):
            ask()
    with pytest.raises(mk.NotEnoughData, match="two are needed"):
        _ = told.groups


def test_a_log_that_names_no_version_at_all_is_one_group():
    turns = turns_of([(f"s{i}", "a", "q", None, ["x", "y"], True) for i in range(12)])
    told = mk.evaluate.compare_turns(turns.with_columns(executor_version=pl.lit(None, pl.String)))
    assert told.stuck(replicates=10)["uses"].item() == 12
    with pytest.raises(mk.NotEnoughData, match="executor_version has 0 values among 12 sessions"):
        told.edges()


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


def attempts_of(tries):
    """Attempts from tuples: group, task, trial, notes held, success."""
    return pl.DataFrame(
        [
            {
                "source": "made",
                "session_id": f"{group}/{task}/{trial}",
                "step": 0,
                "parallel_group": 0,
                "executor": None,
                "ok": None,
                "scope": group,
                "question": task,
                "session_outcome": "success" if good else "failure",
                "meta": f'{{"notes":{notes},"trial":{trial}}}',
            }
            for group, task, trial, notes, good in tries
        ],
        schema_overrides={"executor": pl.String, "ok": pl.Boolean},
    )


def test_the_nth_write_is_held_against_the_same_task_at_the_same_trial():
    turns = mk.datasets.reflexion()
    told = mk.evaluate.compare_turns(turns, by="scope", groups=(BASE, REFLEXION))
    table = told.writes()
    again = table.filter(pl.col("trial").is_null()).row(0, named=True)
    first = table.filter(trial=0).row(0, named=True)
    assert (first["attempts_b"], first["succeeded_b"]) == (134, 84)
    assert (again["attempts_b"], again["succeeded_b"]) == (200, 50)
    assert table.filter(pl.col("trial").is_not_null())["attempts_b"].sum() == 334
    assert table.filter(pl.col("trial") == 9)["note"].item().startswith("no attempt in one group")
    assert table.equals(told.writes())
    tried = {
        (scope, task, int(json.loads(meta)["trial"])): outcome == "success"
        for scope, task, meta, outcome in turns.select("scope", "question", "meta", "session_outcome").iter_rows()
    }
    for row in table.filter(pl.col("trial").is_not_null()).iter_rows(named=True):
        both = [
            (good, tried[REFLEXION, task, trial])
            for (scope, task, trial), good in tried.items()
            if scope == BASE and trial == row["trial"] and (REFLEXION, task, trial) in tried
        ]
        assert (row["pairs"], row["n_sessions"]) == (len(both), 2 * len(both))
        assert row["only_a"] == sum(a and not b for a, b in both)
        assert row["only_b"] == sum(b and not a for a, b in both)
        if both:
            assert row["difference"] == pytest.approx((row["only_b"] - row["only_a"]) / len(both))


def test_the_same_outcomes_of_the_same_tasks_have_a_narrow_interval_around_nothing():
    """Drawn apart, 134 tasks with the very same outcomes differed by up to 0.12."""
    table = mk.evaluate.compare_turns(mk.datasets.reflexion(), by="scope", groups=(BASE, REFLEXION)).writes()
    first = table.filter(trial=0).row(0, named=True)
    room = 1 - 0.025 ** (1 / 134)
    assert (first["pairs"], first["only_a"], first["only_b"]) == (134, 0, 0)
    assert (first["difference"], first["low"], first["high"]) == (0.0, pytest.approx(-room), pytest.approx(room))


def test_tasks_are_drawn_whole_and_hard_tasks_stay_hard_in_both_groups():
    """Half of 200 tasks are hopeless; of the rest b solves all and a all but ten: drawn apart that could be chance."""
    tries = [("a", f"t{i}", 0, 0, False) for i in range(200)] + [("b", f"t{i}", 0, 0, False) for i in range(200)]
    tries += [("a", f"t{i}", 1, 0, 10 <= i < 100) for i in range(200)]
    tries += [("b", f"t{i}", 1, 1, i < 100) for i in range(200)]
    again = nth_write(attempts_of(tries)).filter(trial=1).row(0, named=True)
    assert (again["difference"], again["pairs"], again["only_b"]) == (pytest.approx(0.05), 200, 10)
    assert 0 < again["low"] < 0.05 < again["high"] < 0.1
    assert again["note"] is None


def test_a_task_that_one_group_never_tried_again_is_no_pair():
    tries = [(group, f"t{i}", 0, 0, False) for group in "ab" for i in range(20)]
    tries += [("a", f"t{i}", 1, 0, False) for i in range(12)] + [("b", f"t{i}", 1, 1, True) for i in range(8, 20)]
    row = nth_write(attempts_of(tries)).filter(trial=1).row(0, named=True)
    assert (row["attempts_a"], row["attempts_b"], row["pairs"], row["difference"]) == (12, 12, 4, 1.0)
    assert (row["low"], row["high"], row["note"]) == (-1.0, 1.0, "4 tasks: too few for an interval (10 needed)")


def test_where_both_groups_hold_notes_the_table_says_that_the_difference_is_not_that_of_writing():
    written = mk.datasets.reflexion_memory().filter(pl.col("brain_id").str.starts_with(f"{BASE}/"))
    assert written.height == 163
    table = mk.evaluate.compare_turns(mk.datasets.reflexion(), by="scope", groups=(BASE, REFLEXION)).writes()
    both = table.filter(pl.col("notes_a") > 0, pl.col("notes_b") > 0)
    assert both["trial"].to_list() == [1, 2, 3, 4, 5, 6, None]
    assert both["note"].str.contains("both groups hold notes: this is not the difference that writing makes").all()
    assert table.filter(trial=0)["note"].item() == "neither group holds a note yet"


def test_groups_that_are_not_there_are_refused(versions):
    turns = mk.datasets.tau2()
    with pytest.raises(mk.InvalidInput, match="cannot be grouped by 'colour'"):
        mk.evaluate.compare_turns(turns, by="colour")
    with pytest.raises(mk.InvalidInput, match="name two different groups"):
        mk.evaluate.compare_turns(turns, groups=("a", "a"))
    with pytest.raises(mk.NotEnoughData, match="no session has executor_version = 'gpt-9'"):
        mk.evaluate.compare_turns(turns, groups=("gpt-4.1", "gpt-9"))
    with pytest.raises(mk.NotEnoughData, match="two are needed"):
        mk.evaluate.compare_turns(turns, by="source").edges()
    with pytest.raises(mk.InvalidInput, match=r"do not say meta\.(notes|trial)"):
        versions.writes()
    with pytest.raises(mk.InvalidInput, match="to make a task of"):
        versions.paths(within=["colour"])


def test_groups_can_be_by_any_key_of_the_meta():
    told = mk.evaluate.compare_turns(mk.datasets.tau2(), by="meta.mode")
    assert {told.groups.a, told.groups.b} == {"default", "no-user"}
    assert told.confounds().filter(attribute="meta.agent")["cramers_v"][0] == pytest.approx(1.0)
