"""What is asked of a memory: score, fit, sweep, what-if, what decay hid, credit. Nothing is ever written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import mnemokit as mk
from mnemokit.evaluate.crediting import CREDIT_SCHEMA, probability_better
from mnemokit.evaluate.hiding import HIDDEN_SCHEMA, hidden_edges
from mnemokit.evaluate.other_rules import DIFF_SCHEMA
from mnemokit.evaluate.passing_log import passing_log
from mnemokit.evaluate.reading import passing_log_of, passings_of
from mnemokit.evaluate.run_models import Constant
from mnemokit.evaluate.table import RESULT_SCHEMA

START = datetime(2025, 8, 1, tzinfo=UTC)
SPLIT = "2023-08-17T00:00:00+00:00"


def day(n: float) -> datetime:
    return START + timedelta(days=n)


def graph(*names: str) -> dict[str, object]:
    return {"nodes": [{"id": name} for name in names], "edges": [], "properties": {}}


def captured(mem, question, node, outcome, scope="s"):
    return mem.reasonlets.capture(scope=scope, question=question, graph=graph(node), outcome=outcome, at=day(0))


@pytest.fixture(scope="module")
def agb():
    with mk.open() as mem:
        mem.replay(mk.datasets.agb(), label="agb", progress=False)
        yield mem


@pytest.fixture(scope="module")
def tau2():
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2(), label="tau2", progress=False)
        yield mem


def everything(mem):
    return {table: mem.frame(table) for table in mem.tables()["table"].unique()}


# score ---------------------------------------------------------------------------------------------------------------


def test_the_samples_score_on_agb_has_every_baseline_and_the_counts_of_the_log(agb):
    table = mk.evaluate.score(agb, "runs", since=SPLIT, replicates=200)
    assert dict(table.schema) == RESULT_SCHEMA
    assert set(table["n"]) == {1368}
    assert set(table["n_sessions"]) == {112}
    baselines = set(table.filter("baseline")["model"])
    assert baselines == {"constant", "last_outcome", "last_10", "half_life", "own_record", "raw_counts", "uniform"}
    assert set(table.filter(pl.col("model") == "rank_rule")["versus"].drop_nulls()) == baselines


def test_a_model_chosen_before_the_split_beats_the_constant_rate_and_the_window_after_it(agb):
    fits = [mk.evaluate.fit(agb, "runs", family=f, until=SPLIT) for f in ("rank_rule", "power_law", "half_life")]
    best = min(fits, key=lambda fit: fit.log_loss)
    table = mk.evaluate.score(agb, "runs", models=[best], since=SPLIT)
    for baseline in ("constant", "last_10"):
        row = table.filter(pl.col("model") == best.name, pl.col("metric") == "brier", pl.col("versus") == baseline).row(
            0, named=True
        )
        assert row["value"] < 0
        assert row["high"] < 0


def test_the_memorys_rule_on_agb_is_mk_rank_just_before(agb):
    """Of some sessions, ask mk.rank itself as of a microsecond before."""
    made = mk.evaluate.predictions(agb, "runs", since=SPLIT)
    reasonlets, runs, feedback = agb.frame("reasonlets"), agb.frame("runs"), agb.frame("feedback")
    said = made.rows.with_columns(p=pl.Series(made.p["rank_rule"]))
    for instant in said["ts_run"].unique().sort().gather_every(25):
        ranked = mk.rank(reasonlets, runs.drop("verdict"), feedback, at=instant - timedelta(microseconds=1)).select(
            "reasonlet_id", "rate"
        )
        both = said.filter(ts_run=instant).join(ranked, on="reasonlet_id")
        assert both.height > 0
        assert both["p"].to_numpy() == pytest.approx(both["rate"].to_numpy(), abs=1e-12)


def test_next_executor_on_tau2_is_what_the_stored_edges_say_at_that_time(tau2):
    made = mk.evaluate.predictions(tau2, "next_executor", models=[])
    log = passing_log_of(tau2)
    rows = made.rows.with_row_index("row").filter(pl.col("seen")).gather_every(400)
    for row in rows.iter_rows(named=True):
        before = row["ts"] - timedelta(microseconds=1)
        edges = tau2.frame("mnests", at=before).filter(
            pl.col("src_executor") == row["src_executor"],
            pl.col("src_version") == row["src_version"],
            pl.col("state").is_in(["active", "proto"]),
        )
        own = edges.filter(dst_executor=row["dst_executor"], dst_version=row["dst_version"])["weight_at"].item()
        n, d = log.of_src.count[row["row"]], log.degree[row["row"]]
        known = log.vocabulary[row["row"]]
        p = n / (n + d) * own / edges["weight_at"].sum() + d / (n + d) / (known + 1)
        assert made.p["mnest_weights"][row["row"]] == pytest.approx(p, rel=1e-8)


def test_scoring_writes_nothing(agb):
    before = everything(agb)
    mk.evaluate.score(agb, "runs", replicates=50)
    mk.evaluate.score(agb, "next_executor", replicates=50)
    mk.evaluate.score(agb, "recall", replicates=50)
    mk.evaluate.sweep(agb, {"k": [1.0], "decay_lambda": [0.1]})
    mk.evaluate.what_if(agb, {"k": 5.0})
    mk.evaluate.hidden(agb)
    mk.evaluate.credit(agb)
    after = everything(agb)
    assert all(before[table].equals(after[table]) for table in before)


def test_an_empty_memory_says_that_there_is_nothing_to_score():
    with mk.open() as mem:
        for target in ("runs", "next_executor", "recall"):
            table = mk.evaluate.score(mem, target)
            assert dict(table.schema) == RESULT_SCHEMA
            assert table["note"].unique().to_list() == ["nothing to score"]
        assert dict(mk.evaluate.hidden(mem).schema) == HIDDEN_SCHEMA
        assert dict(mk.evaluate.credit(mem).schema) == CREDIT_SCHEMA
        assert dict(mk.evaluate.what_if(mem, {"k": 3}).diff.schema) == DIFF_SCHEMA
        with pytest.raises(mk.NotEnoughData):
            mk.evaluate.compare(mem)
        with pytest.raises(mk.NotEnoughData):
            mk.evaluate.policy_value(mem)
        with pytest.raises(mk.NotEnoughData):
            mk.evaluate.fit(mem, until=SPLIT)


def test_wrong_targets_and_models_are_refused(agb):
    with pytest.raises(mk.InvalidInput, match="target must be one of runs, next_executor, recall"):
        mk.evaluate.score(agb, "luck")
    with pytest.raises(mk.InvalidInput, match="target must be runs or next_executor"):
        mk.evaluate.fit(agb, "recall", until=SPLIT)
    with pytest.raises(mk.InvalidInput, match="it takes no models"):
        mk.evaluate.score(agb, "recall", models=[Constant()])
    with pytest.raises(mk.InvalidInput, match="'constant' is no model of edges"):
        mk.evaluate.score(agb, "next_executor", models=[Constant()])


def test_a_model_that_says_no_probability_is_refused(agb):
    class Sure:
        name = "sure"

        def predict(self, log):
            return np.full(log.us.size, 2.0)

    with pytest.raises(mk.InvalidInput, match="'sure' must give one number from 0 to 1"):
        mk.evaluate.score(agb, "runs", models=[Sure()])


def test_a_fit_of_a_memory_takes_versions_as_a_score_does(tau2):
    sessions = passings_of(tau2)["session_id"].drop_nulls().unique().sort().to_list()
    half = sessions[: len(sessions) // 2]
    fit = mk.evaluate.fit(tau2, "next_executor", family="mnest_decay", sessions=half, versions="collapsed")
    apart = mk.evaluate.fit(tau2, "next_executor", family="mnest_decay", sessions=half)
    assert fit.start_log_loss != apart.start_log_loss
    for each in (fit, apart):
        with pytest.raises(mk.InvalidInput, match="was fitted on"):
            mk.evaluate.score(tau2, "next_executor", models=[each], sessions=half, versions="collapsed")


def test_policy_value_can_leave_out_what_has_no_propensity():
    with mk.open() as mem:
        captured(mem, "book a flight", "a", "success")
        for i in range(12):
            shown = mem.reasonlets.recall("book a flight", scope="s", at=day(1 + i))
            mem.reasonlets.capture(
                scope="s",
                question="book a flight",
                graph=graph("a"),
                outcome="success",
                recall_id=shown["recall_id"][0],
                provenance={"propensity": 1.0} if i else {},
                at=day(1.5 + i),
            )
        with pytest.raises(mk.NotEnoughData, match="leave_out"):
            mk.evaluate.policy_value(mem)
        table = mk.evaluate.policy_value(mem, missing="leave_out")
        assert table["n"].unique().to_list() == [11]
        assert table["note"].str.contains("1 of 12 recalls left out").all()
        assert table["model"].to_list() == ["logged", "first_by_score", "first_by_score"]
        assert mk.evaluate.predictions(mem, "recall").long()["p"].is_null().all()


def test_recalls_of_a_live_memory_are_scored():
    with mk.open() as mem:
        rng = np.random.default_rng(2)
        for i in range(3):
            mem.reasonlets.capture(
                scope="s", question=f"book a flight {i}", graph=graph(str(i)), outcome="success", at=day(0)
            )
        for i in range(24):
            shown = mem.reasonlets.recall("book a flight", scope="s", at=day(1 + i))
            chosen = int(rng.integers(0, shown.height))
            outcome = "success" if rng.random() < 0.6 else "failure"
            mem.reasonlets.capture(
                scope="s",
                question="book a flight",
                graph=graph(shown["version"][chosen], str(i)),
                outcome=outcome,
                parent_id=shown["reasonlet_id"][chosen],
                recall_id=shown["recall_id"][0],
                provenance={"propensity": 1 / shown.height},
                at=day(1.5 + i),
            )
        credit = mk.evaluate.credit(mem)
        assert credit["followed"].sum() == 24
        assert credit["shown"].sum() == mem.frame("recall_rows").height
        assert credit["recalls"].max() == 24


# what if -------------------------------------------------------------------------------------------------------------


def live_memory():
    mem = mk.open()
    for d in (0, 1, 30, 31):
        mem.mnests.record_passing("a", "1", "b", "1", at=day(d))
    mem.mnests.record_passing("a", "1", "c", "1", at=day(0))
    for d in range(1, 40):
        mem.mnests.apply_ager(now=day(d + 0.5))
    return mem


def test_under_the_memorys_own_rules_nothing_differs(tau2):
    same = mk.evaluate.what_if(tau2, {"k": 2.0, "decay_lambda": 0.018})
    assert same.diff.filter(pl.col("kind") != "edge").is_empty()
    assert same.diff.filter(pl.col("before").sub(pl.col("after")).abs() > 1e-9).is_empty()


def test_other_rules_say_which_edges_would_have_faded_and_which_would_not():
    with live_memory() as mem:
        diff = mk.evaluate.what_if(mem, {"decay_lambda": 0.2}).diff
        assert diff.filter(kind="edge").select("id", "what").rows() == [("a 1 -> b 1", "would_have_faded")]
        slower = mk.evaluate.what_if(mem, {"decay_lambda": 0.001}).diff
        assert ("a 1 -> c 1", "would_not_have_faded") in slower.select("id", "what").rows()


def test_what_if_equals_a_memory_made_under_those_rules():
    params = mk.EdgeParams(decay_lambda=0.05, reinforcement=0.3, demote_below=0.1)
    with mk.open() as mem, mk.open(edge_params=params) as other:
        mem.replay(mk.datasets.tau2(), label="tau2", progress=False)
        other.replay(mk.datasets.tau2(), label="tau2", progress=False)
        key = ["src_executor", "src_version", "dst_executor", "dst_version", "state"]
        mine = mk.evaluate.what_if(mem, params).mnests.sort(key).select(*key, "weight", "uses")
        theirs = other.frame("mnests").sort(key).select(*key, "weight", "uses")
        assert mine.select(*key, "uses").equals(theirs.select(*key, "uses"))
        assert mine["weight"].to_numpy() == pytest.approx(theirs["weight"].to_numpy(), rel=1e-9)


def test_other_ranking_rules_say_which_procedures_move():
    with mk.open() as mem:
        steady = mem.reasonlets.capture(scope="s", question="q", graph=graph("a"), outcome="success", at=day(0))
        for i in range(9):
            mem.reasonlets.record_run(steady.reasonlet_id, "success" if i < 7 else "failure", at=day(1 + i))
        lucky = mem.reasonlets.capture(scope="s", question="q", graph=graph("b"), outcome="success", at=day(2))
        mem.reasonlets.record_run(lucky.reasonlet_id, "success", at=day(3))
        first = mk.evaluate.what_if(mem, {"k": 0.1}).ranking["reasonlet_id"][0]
        last = mk.evaluate.what_if(mem, {"k": 20.0}).ranking["reasonlet_id"][0]
        assert (first, last) == (lucky.reasonlet_id, steady.reasonlet_id)
        assert mk.evaluate.what_if(mem, {"k": 20.0}).diff.filter(kind="procedure").height in (0, 2)


def test_recalls_are_ranked_again_by_what_was_known_then():
    with mk.open() as mem:
        good = mem.reasonlets.capture(
            scope="s", question="pay the bill", graph=graph("a"), outcome="success", at=day(0)
        )
        poor = mem.reasonlets.capture(
            scope="s", question="pay the bill", graph=graph("b"), outcome="failure", at=day(0)
        )
        shown = mem.reasonlets.recall("pay the bill", scope="s", at=day(1))
        assert shown["reasonlet_id"].to_list() == [good.reasonlet_id, poor.reasonlet_id]
        for i in range(8):
            mem.reasonlets.record_run(good.reasonlet_id, "failure", at=day(2 + i))
        same = mk.evaluate.what_if(mem, {"k": 2.0}).recalls
        assert same["rank"].to_list() == same["rank_then"].to_list() == [1, 2]
        assert same["score"].to_numpy() == pytest.approx(same["score_then"].to_numpy(), abs=1e-12)
        blind = mk.evaluate.what_if(mem, {"weight": 0.0}).recalls
        assert blind["score"].to_numpy() == pytest.approx([1.0, 1.0])


def test_every_recall_whose_list_changes_is_told_with_what_changed():
    """One success of one stands above 12 of 18 at k = 2, below at k = 20; nine of nine stand above both."""
    records = {"a": 9 * ["success"], "b": ["success"], "c": 6 * ["failure"] + 12 * ["success"]}
    with mk.open() as mem:
        for scope, names in (("s", "abc"), ("t", "bc"), ("u", "a")):
            for name in names:
                made = captured(mem, "pay the bill", name, records[name][0], scope=scope)
                for outcome in records[name][1:]:
                    mem.reasonlets.record_run(made.reasonlet_id, outcome, at=day(0.5))
        recalls = {
            scope: mem.reasonlets.recall("pay the bill", scope=scope, at=day(1))["recall_id"][0] for scope in "stu"
        }
        told = mk.evaluate.what_if(mem, {"k": 20.0}).diff.filter(kind="recall")
    assert told.select("id", "what", "before", "after", "n").rows() == [
        (recalls["t"], "first", 1.0, 2.0, 2),
        (recalls["s"], "order", 2.0, 3.0, 2),
    ]


def test_what_if_looks_at_a_memory_as_of_its_last_verdict():
    with mk.open() as mem:
        made = captured(mem, "pay the bill", "a", "success")
        run = mem.frame("runs")["run_id"].item()
        mem.reasonlets.feedback(run, "failure", at=day(5))
        other = mk.evaluate.what_if(mem, {"k": 2.0})
        assert other.at == day(5)
        assert other.ranking.filter(reasonlet_id=made.reasonlet_id).select("n", "s").row(0) == (1, 0)
        mem.reasonlets.recall("pay the bill", scope="s", at=day(6))
        assert mk.evaluate.what_if(mem, {"k": 2.0}).recalls.height == 1


def test_what_if_takes_parameter_objects_and_refuses_other_names(tau2):
    assert mk.evaluate.what_if(tau2, mk.RankParams(k=4)).rank_params.k == 4
    with pytest.raises(mk.InvalidInput, match="'colour' is no parameter"):
        mk.evaluate.what_if(tau2, {"colour": 1.0})


# hidden --------------------------------------------------------------------------------------------------------------


def test_an_edge_that_had_faded_when_it_was_taken_again_is_told_with_how_long_ago():
    with mk.open() as mem:
        mem.mnests.record_passing("a", "1", "b", "1", at=day(0))
        for d in range(1, 40):
            mem.mnests.apply_ager(now=day(d))
        mem.mnests.record_passing("a", "1", "b", "1", at=day(40))
        row = mk.evaluate.hidden(mem).row(0, named=True)
    # 0.30 * exp(-0.018 d) < 0.20 from d = 22.53 on: the ager of day 23 ended it.
    assert (row["side"], row["kind"], row["name"]) == ("hidden_but_needed", "edge", "a 1 -> b 1")
    assert (row["ts_faded"], row["ts_needed"], row["ts_last_used"]) == (day(23), day(40), day(0))
    assert (row["days_faded"], row["days_unused"], row["uses"]) == (17.0, 40.0, 1)
    assert row["value"] == pytest.approx(0.3 * np.exp(-0.018 * 23))


def test_an_edge_kept_but_never_used_again_is_told_too():
    passings = pl.DataFrame(
        {
            "src_executor": ["a"] * 3,
            "dst_executor": ["b", "c", "c"],
            "ts": [day(0), day(0), day(20)],
            "session_id": ["s"] * 3,
        }
    )
    kept = hidden_edges(passing_log(passings))
    assert kept.select("side", "dst_executor", "days_unused").rows() == [("kept_unused", "b", 20.0)]
    assert kept["value"].item() == pytest.approx(0.3 * np.exp(-0.018 * 20))
    assert hidden_edges(passing_log(passings), unused_days=21).is_empty()


def test_a_procedure_ranked_below_a_new_one_that_then_succeeds_was_hidden():
    with mk.open() as mem:
        r = mem.reasonlets.capture(scope="s", question="q", graph=graph("a"), outcome="failure", at=day(0))
        mem.reasonlets.record_run(r.reasonlet_id, "failure", at=day(1))
        mem.reasonlets.record_run(r.reasonlet_id, "success", at=day(9))
        row = mk.evaluate.hidden(mem).filter(kind="procedure").row(0, named=True)
    assert (row["side"], row["ts_needed"], row["ts_faded"]) == ("hidden_but_needed", day(9), day(0))
    assert (row["days_faded"], row["uses"]) == (9.0, 2)
    assert row["value"] == pytest.approx(1 / 4)


def test_a_procedure_fades_when_it_is_judged_not_when_it_ran():
    """Success on day 2, judged failure on day 20, needed on day 21."""
    with mk.open() as mem:
        r = mem.reasonlets.capture(scope="s", question="q", graph=graph("a"), outcome="success", at=day(2))
        mem.reasonlets.feedback(r.run_id, "failure", at=day(20))
        mem.reasonlets.record_run(r.reasonlet_id, "success", at=day(21))
        row = mk.evaluate.hidden(mem).filter(kind="procedure", side="hidden_but_needed").row(0, named=True)
    assert (row["ts_faded"], row["days_faded"]) == (day(20), 1.0)
    assert (row["ts_last_used"], row["days_unused"], row["uses"]) == (day(2), 19.0, 1)


def test_a_version_fades_when_its_parent_does():
    """Its parent's record held it above a new one; the parent is judged anew on day 10."""
    with mk.open() as mem:
        parent = mem.reasonlets.capture(scope="s", question="q", graph=graph("a"), outcome="success", at=day(0))
        runs = [mem.reasonlets.record_run(parent.reasonlet_id, "success", at=day(1 + i / 10)) for i in range(8)]
        child = mem.reasonlets.capture(
            scope="s",
            question="q",
            graph=graph("a", "b"),
            outcome="failure",
            parent_id=parent.reasonlet_id,
            at=day(3),
        )
        for run in runs:
            mem.reasonlets.feedback(run, "failure", at=day(10))
        mem.reasonlets.record_run(child.reasonlet_id, "success", at=day(12))
        told = mk.evaluate.hidden(mem).filter(kind="procedure", reasonlet_id=child.reasonlet_id)
    assert told.select("ts_faded", "days_faded").rows() == [(day(10), 2.0)]


# credit --------------------------------------------------------------------------------------------------------------


def test_credit_counts_shown_followed_and_never_shown():
    with mk.open() as mem:
        asked = mem.reasonlets.capture(
            scope="s", question="book a flight", graph=graph("a"), outcome="success", at=day(0)
        )
        never = mem.reasonlets.capture(
            scope="s", question="water the plants", graph=graph("b"), outcome="success", at=day(0)
        )
        other = captured(mem, "book a flight", "a", None, scope="t")
        shown = mem.reasonlets.recall("book a flight", scope="s", at=day(1))
        child = mem.reasonlets.capture(
            scope="s",
            question="book a flight",
            graph=graph("a", "c"),
            outcome="failure",
            parent_id=asked.reasonlet_id,
            recall_id=shown["recall_id"][0],
            at=day(2),
        )
        rows = {row["reasonlet_id"]: row for row in mk.evaluate.credit(mem).iter_rows(named=True)}
    first = rows[asked.reasonlet_id]
    assert (first["recalls"], first["shown"], first["shown_first"], first["never_shown"]) == (1, 1, 1, False)
    assert rows[never.reasonlet_id]["never_shown"] is True
    assert (rows[other.reasonlet_id]["recalls"], rows[other.reasonlet_id]["never_shown"]) == (0, False)
    mine = rows[child.reasonlet_id]
    assert (mine["followed"], mine["followed_succeeded"], mine["n"], mine["s"]) == (1, 0, 1, 0)
    assert (mine["parent_n"], mine["parent_s"], mine["note"]) == (1, 1, "fewer than five runs on one side")
    # Beta(1, 2) against Beta(2, 1): P = integral of 2y F(y) dy, worked by hand: 1/6.
    assert mine["p_better"] == pytest.approx(1 / 6, abs=1e-9)
    assert first["p_better"] is None


@pytest.mark.parametrize("seed", range(5))
def test_the_probability_of_being_better_equals_the_sum_for_whole_parameters(seed):
    """P(X > Y) for whole parameters is a finite sum (Miller 2015)."""
    from scipy.special import betaln

    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 60, 2)
    s, t = rng.integers(0, n + 1), rng.integers(0, m + 1)
    a, b, c, d = s + 1, n - s + 1, t + 1, m - t + 1  # X ~ Beta(a, b) is the child, Y ~ Beta(c, d) the parent
    total = sum(np.exp(betaln(c + i, b + d) - np.log(b + i) - betaln(1 + i, b) - betaln(c, d)) for i in range(a))
    p = probability_better(*(np.array([float(x)]) for x in (s, n, t, m)))
    assert p[0] == pytest.approx(total, abs=1e-9)


def test_two_procedures_with_the_same_record_are_better_with_probability_one_half():
    s, n = np.array([3.0, 40.0]), np.array([9.0, 90.0])
    assert probability_better(s, n, s, n) == pytest.approx(0.5, abs=1e-9)
