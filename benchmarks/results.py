"""Write docs/results.md: every table from the samples in data/, nothing tuned on what is scored.

    .venv/bin/python benchmarks/results.py [--check]

With --check nothing is written; the exit code says whether the file is up to date.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import polars as pl

import mnemokit as mk
from mnemokit.evaluate.comparing.writes import nth_write
from mnemokit.evaluate.edge_models import edge_rivals
from mnemokit.evaluate.fitting import RUN_FAMILIES, fit_edges
from mnemokit.evaluate.next_executor import predict_next_log
from mnemokit.evaluate.passing_log import passing_log
from mnemokit.evaluate.reading import passings_of
from mnemokit.evaluate.rendering import against, overview, to_markdown
from mnemokit.evaluate.run_models import run_rivals

PAGE = Path(__file__).parent.parent / "docs" / "results.md"
SPLIT = "2023-08-17T00:00:00+00:00"
WEEK_BEFORE = "2023-08-10T00:00:00+00:00"
FORGETS = r"^last_|half_life|power_law"
"""Models of runs that let what is old count less."""

FORGETTING = {"better": "better", "not told apart": "not told apart from it", "worse": "worse"}
"""Each verdict on them, as a list of them begins."""

EDGE_METRICS = ("log_loss", "hit@1", "hit@3", "mrr", "coverage")


def main() -> int:
    """Make the page; write it or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    given = parser.parse_args()
    text = page()
    if given.check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("up to date" if same else "docs/results.md is out of date: make results")
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote docs/results.md ({len(text.splitlines())} lines)")
    return 0


def page() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION, *procedures(), *edges(), *versions(), *notes()]) + "\n"


INTRODUCTION = """# Results

Made by `make results` (benchmarks/results.py) from the samples in data/; do not edit it by hand. What each word means
is in [evaluate.md](evaluate.md).

How to read it. Every prediction is made from what was known strictly before; what happens at one instant is predicted
as a whole before any of it is learnt. Square brackets are 95 % intervals from drawing whole sessions with replacement
(2,000 draws, fixed seed). "Better" and "worse" are paired: the same draws for both models, and an interval that
excludes 0. "Not told apart" means what it says. Parameters are fitted on the training part only, and which fitted model
is called *chosen* is decided by its log loss there. No parameter is fitted on what is scored, and no model is here
because of how it scored: two that were thought of after a first look at scores of the later period (half-lives counted
in runs) have been taken out of the library."""


def procedures() -> list[str]:
    """Auto-GPT-Benchmarks: will this agent pass this test this time?"""
    with mk.open() as mem:
        report = mem.replay(mk.datasets.agb(), label="agb", progress=False)
        fits = [mk.evaluate.fit(mem, "runs", family=family, until=SPLIT) for family in RUN_FAMILIES]
        chosen = min(fits, key=lambda fit: fit.log_loss)
        made = mk.evaluate.predictions(mem, "runs", models=[*run_rivals(), *fits], since=SPLIT)
        week = _the_week_before(mem)
        table = made.table(by=["scope"])
        runs = mem.frame("runs")
    rate = runs.filter(pl.col("ts_run") >= pl.lit(SPLIT).str.to_datetime(time_zone="UTC"))
    succeeded = rate.filter(verdict="success").height
    fitted = pl.DataFrame(
        [
            (
                fit.name,
                ", ".join(f"{name} = {value:.3g}" for name, value in fit.params.items()),
                fit.start_log_loss,
                fit.log_loss,
                "chosen" if fit is chosen else fit.note,
            )
            for fit in fits
        ],
        schema=["model", "found", "log loss at the start values", "log loss (training)", "note"],
        orient="row",
    )
    wanted = table.filter(pl.col("metric") != "rmse_bins")
    by_agent = (
        table.filter(pl.col("by") == "scope", pl.col("metric") == "brier", pl.col("versus").is_null())
        .filter(pl.col("model").is_in([chosen.name, "rank_rule", "last_10", "constant"]))
        .pivot("model", index=["group", "n_sessions", "n", "note"], values="value")
        .sort("n", descending=True)
    )
    verdicts = {
        baseline: against(table, chosen.name, "brier").filter(versus=baseline).row(0, named=True)
        for baseline in ("constant", "last_10")
    }
    days = dataclasses.replace(made, rows=made.rows.with_columns(session=pl.col("ts_run").dt.date().cast(pl.String)))
    by_day = against(days.table(), chosen.name, "brier").filter(versus="last_10").row(0, named=True)
    own = against(table, "rank_rule", "brier").filter(versus="last_10").row(0, named=True)
    return [
        "## Procedures: will this agent pass this test this time?",
        prose(
            f"""Sample `agb`: {report.captures:,} attempts at tests that were really made (un-attempted rows are no
            failures and are out), by eight agents; scope = agent, question = test, session = run folder. Trained on
            the {fits[0].n:,} attempts of {fits[0].n_sessions} sessions before 17 August 2023 (UTC), scored on the
            {made.rows.height:,} attempts of {made.n_sessions} sessions from then on, of which {succeeded:,}
            succeeded. All tests of a run carry the instant the run was completed; a run that began before another
            one ended is predicted from that one's outcomes, as the log does not say when each test began. Versions
            do not occur here, so that inheritance has nothing to do and `rank_rule` equals `own_record`."""
        ),
        "Fitted on the training period:",
        to_markdown(fitted),
        "Scored on the later one:",
        to_markdown(overview(wanted, sort_by="brier").drop("n_sessions", "n", "note")),
        f"The model chosen on the training period, `{chosen.name}`, against every baseline (Brier):",
        to_markdown(against(table, chosen.name, "brier")),
        "The memory's own rule, `rank_rule` with k = 2, against every baseline (Brier):",
        to_markdown(against(table, "rank_rule", "brier")),
        prose(
            f"""In words: the chosen model's Brier score is {_words(verdicts["constant"])} than the constant rate's
            ({verdicts["constant"]["difference"]}) and {_words(verdicts["last_10"])} than that of the window of the
            last ten ({verdicts["last_10"]["difference"]}). The memory's own rule is {_words(own)} than the window
            of the last ten ({own["difference"]}). It never forgets. {forgetting(table)}"""
        ),
        prose(
            f"""A harder test: eight agents that run on the same day may share what happened that day. With whole days
            drawn instead of sessions ({days.n_sessions} days, which is few), the chosen model against the window of the
            last ten: {by_day["difference"]}, {by_day["verdict"]}."""
        ),
        week,
        "By agent (Brier; the note says where there is too little to conclude from):",
        to_markdown(by_agent),
        "Calibration of `rank_rule` (bins of 0.05 with at least 20 predictions):",
        to_markdown(
            made.bins()
            .filter(pl.col("model") == "rank_rule", pl.col("n") >= 20)
            .select("from", "to", "n", "predicted", "observed", "low", "high"),
            digits=3,
        ),
    ]


def forgetting(table: pl.DataFrame) -> str:
    """Which models that forget do better (Brier) than the rule that never does, and which do not.

    ``own_record``, the rule without inheritance, stands for it: it is a baseline, so that the table has the paired
    difference of every model from it.
    """
    models = table.filter(pl.col("versus") == "own_record", pl.col("model").str.contains(FORGETS))["model"]
    told: dict[str, list[str]] = {verdict: [] for verdict in FORGETTING}
    for model in models.unique(maintain_order=True).to_list():
        row = against(table, model, "brier").filter(versus="own_record").row(0, named=True)
        told[row["verdict"]].append(f"`{model}` ({row['difference']})")
    parts = [f"{said}: {', '.join(told[verdict]) or 'none'}" for verdict, said in FORGETTING.items()]
    return f"Of the models that forget, held against `own_record` (the rule without inheritance), {'; '.join(parts)}."


def _the_week_before(mem: mk.Memory) -> str:
    """The same question once more inside the training part, whose scores had no part in any choice."""
    fits = [mk.evaluate.fit(mem, "runs", family=family, until=WEEK_BEFORE) for family in RUN_FAMILIES]
    chosen = min(fits, key=lambda fit: fit.log_loss)
    made = mk.evaluate.predictions(mem, "runs", models=[chosen], since=WEEK_BEFORE, until=SPLIT)
    table = made.table()
    row = {
        versus: against(table, chosen.name, "brier").filter(versus=versus).row(0, named=True)
        for versus in ("constant", "last_10")
    }
    found = ", ".join(f"{name} = {value:.3g}" for name, value in chosen.params.items())
    return prose(
        f"""The same once more a week earlier, within the training part: fitted and chosen on what came before 10 August
        ({fits[0].n:,} attempts), scored on the {made.rows.height:,} attempts of {made.n_sessions} sessions from then
        until 17 August. Chosen: `{chosen.name}` ({found}). Against the constant rate {row["constant"]["difference"]},
        {row["constant"]["verdict"]}; against the window of the last ten {row["last_10"]["difference"]},
        {row["last_10"]["verdict"]}."""
    )


def edges() -> list[str]:
    """tau2: which tool comes next?"""
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2(), label="tau2", progress=False)
        passings = passings_of(mem)
        ticks = mem.frame("ager_runs")["ts_ager"]
    turns = mk.datasets.tau2()
    out = [
        "## Edges: which tool comes next?",
        prose(
            """Sample `tau2`: two versions of an agent on the same tasks in three domains. Within each version, domain
            and mode the half of the tasks whose sessions began first is for training, the other half is scored; the
            edge rule is fitted on the training sessions alone. Sessions ran side by side within a day, so
            decay and the nightly ager have next to nothing to do here: what is compared is how reinforcement,
            counts and recency turn the same passings into an order. For edges never seen, every model has the same
            escape."""
        ),
    ]
    for version in turns["executor_version"].unique().sort().to_list():
        train, test = _halves(turns.filter(executor_version=version))
        mine = passings.filter(pl.col("src_version") == version)
        training = passing_log(mine.filter(pl.col("session_id").is_in(train)), ager=ticks)
        fit = fit_edges(training, "mnest_weights", sessions=train)
        log = passing_log(mine, ager=ticks)
        made = predict_next_log(log, models=[*edge_rivals(), fit], sessions=test)
        table = made.table()
        found = ", ".join(f"{name} = {value:.3g}" for name, value in fit.params.items())
        out += [
            f"### {version}",
            prose(
                f"""{len(train)} sessions to learn from, {made.n_sessions} scored with {made.rows.height:,} passings;
                {made.note}. Fitted: {found} (log loss {fit.start_log_loss:.4f} at the defaults, {fit.log_loss:.4f}
                as fitted, training{"; " + fit.note if fit.note else ""})."""
            ),
            to_markdown(
                overview(table.filter(pl.col("metric").is_in(EDGE_METRICS)), sort_by="log_loss").drop(
                    "n_sessions", "n", "note"
                ),
                digits=3,
            ),
            "The memory's weights against every baseline (log loss, then hit@1):",
            to_markdown(_side_by_side(table, "mnest_weights", "log_loss", "hit@1")),
        ]
    return out


def versions() -> list[str]:
    """tau2: what differs between the two versions?"""
    told = mk.evaluate.compare_turns(mk.datasets.tau2(), by="executor_version")
    differ = told.edges()
    parts = told.partings()
    stuck = told.stuck()
    failing = told.before_failure()
    confounded = told.confounds().filter(pl.col("warning").is_not_null())
    unsure = told.parallel()
    whole = parts.filter("all").row(0, named=True)
    sure = differ.filter(pl.col("note").is_null(), pl.col("q") < 0.05)
    return [
        "## What differs between two versions of an agent",
        prose(
            f"""Sample `tau2`; a = `{told.groups.a}`, b = `{told.groups.b}`. {sure.height} of {differ.height} edges
            differ with a false discovery rate below 5 % (session labels shuffled); the surest ten:"""
        ),
        to_markdown(
            differ.head(10).select(
                "src_executor",
                "dst_executor",
                "uses_a",
                "left_a",
                "sessions_a",
                "uses_b",
                "left_b",
                "sessions_b",
                "difference",
                "low",
                "high",
                "q",
            ),
            digits=3,
        ),
        prose(
            f"""Same task, both versions ({whole["n"]} pairs): b succeeded in {whole["success_b"]:.3f} of them, a in
            {whole["success_a"]:.3f}; paired gain {whole["gain"]:+.3f} [{whole["low"]:+.3f}, {whole["high"]:+.3f}].
            Where they part most often, and what b's way earned there (an interval of -1 to 1 says: too few pairs):"""
        ),
        to_markdown(parts.filter(~pl.col("all")).head(5).drop("all"), digits=3),
        "Is each group one thing? What else tells them apart:",
        to_markdown(
            confounded.select(
                "attribute",
                "value",
                "sessions_a",
                "sessions_b",
                "difference",
                "low",
                "high",
                "cramers_v",
                "warning",
            ),
            digits=3,
        ),
        prose(
            """Does reinforcement reward getting stuck? The edges with most uses per session (weight as reinforced by
            every use, and as if each session counted once; an interval from 1 to infinity says: too few sessions took
            it):"""
        ),
        to_markdown(
            stuck.head(5).select(
                "src_executor",
                "dst_executor",
                "uses",
                "sessions",
                "uses_per_session",
                "low",
                "high",
                "top_share",
                "weight",
                "weight_once",
                "note",
            ),
            digits=2,
        ),
        "Which passings precede failure though every step was ok? (It need not be their doing.)",
        to_markdown(
            failing.head(5).select(
                "src_executor",
                "dst_executor",
                "with_edge",
                "failed_with",
                "without_edge",
                "failed_without",
                "difference",
                "low",
                "high",
                "q",
            ),
            digits=3,
        ),
        prose(
            f"""How uncertain is an edge, given parallel calls whose order means nothing?
            {unsure.filter(~pl.col("certain")).height} of {unsure.height} edges change their count with the order;
            the most uncertain three (`low` to `high`: 95 % of the orders of this log; `low_sessions` to
            `high_sessions`: 95 % of the mean over all orders, sessions drawn):"""
        ),
        to_markdown(unsure.head(3), digits=1),
    ]


def notes() -> list[str]:
    """Reflexion: did the n-th memory write help?"""
    turns = mk.datasets.reflexion()
    a, b = groups = ("alfworld_runs/base_run_logs", "alfworld_runs/reflexion_run_logs")
    table = nth_write(turns, by="scope", groups=groups)
    memory = mk.datasets.reflexion_memory().with_columns(
        scope=pl.col("brain_id").str.replace(r"/[^/]+$", ""),
        task=pl.col("brain_id").str.extract(r"([^/]+)$"),
        trial=pl.col("meta").str.json_path_match("$.trial").cast(pl.Int64),
    )
    wrote_a, wrote_b = (memory.filter(scope=name) for name in groups)
    first_a, first_b = (side.filter(trial=0).select("task", "content_hash").sort("task") for side in (wrote_a, wrote_b))
    start = table.filter(trial=0).row(0, named=True)
    again = table.filter(pl.col("trial").is_null()).row(0, named=True)
    one_run = first_a.equals(first_b) and start["only_a"] == start["only_b"] == 0
    each = table.filter(pl.col("trial").is_not_null())
    failed_a, failed_b = (int((each[f"attempts_{side}"] - each[f"succeeded_{side}"]).sum()) for side in "ab")
    return [
        "## Did the n-th memory write help?",
        prose(
            f"""Sample `reflexion`; a = `{a}`, b = `{b}`: single runs over the same {start["pairs"]} tasks, each task
            tried again after each failure. **This log cannot say whether writing helped, because a wrote notes too.**
            Of a, {wrote_a.height} notes are logged after {failed_a} failed attempts (none after trial
            {wrote_a["trial"].max()}), of b {wrote_b.height} after {failed_b}: the agent's own reflections on the
            attempt before. So a and b hold equally many notes up to trial {_alike_until(table)}, and a holds fewer
            from then on (`notes_a`, `notes_b`). Whether a note that was held was also shown to the agent is not
            logged. The script published for a (`alfworld_runs/run_base.sh` of noahshinn/reflexion) runs without
            memory, but the `main.py` published with it would then have written no note at all: how a was run is not
            known."""
        ),
        prose(
            f"""{_first_trial(start["pairs"], first_a.height) if one_run else ""} What can be said: on the same task at
            the same trial, the run b succeeded more often than the run a in the repeated trials together, by
            {again["difference"]:.3f} [{again["low"]:.3f}, {again["high"]:.3f}]; not that notes did it. The success rate
            falls from trial to trial in both, because the easy tasks are gone, so that only pairs of the same task and
            trial are compared, and tasks are drawn. The last row is all repeated trials together. Nowhere in the sample
            was a task tried again without notes: of the WebShop runs, `base_run_logs_1` has one trial, and
            `base_run_logs_2` holds notes too."""
        ),
        to_markdown(table, digits=3),
    ]


def _first_trial(tasks: int, notes: int) -> str:
    return f"Trial 0 is one and the same run in both folders: all {tasks} outcomes and all {notes} notes are equal."


def _alike_until(table: pl.DataFrame) -> int:
    """The last trial up to which both groups hold the same number of notes."""
    unlike = table.filter(pl.col("notes_a") != pl.col("notes_b"), pl.col("trial").is_not_null())
    return int(unlike["trial"].to_list()[0]) - 1


def prose(text: str) -> str:
    """One paragraph on one line."""
    return " ".join(text.split())


def _halves(turns: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Sessions of the half of the tasks that began first, and of the other half, within domain and mode."""
    tasks = (
        turns.with_columns(mode=pl.col("meta").str.json_path_match("$.mode"))
        .group_by("scope", "mode", "question")
        .agg(ts=pl.col("ts").min(), sessions=pl.col("session_id").unique())
        .sort("scope", "mode", "ts", "question")
        .with_columns(early=pl.int_range(pl.len()).over("scope", "mode") < pl.len().over("scope", "mode") // 2)
    )
    first = tasks.filter("early")["sessions"].explode().sort().to_list()
    return first, tasks.filter(~pl.col("early"))["sessions"].explode().sort().to_list()


def _side_by_side(table: pl.DataFrame, model: str, one: str, other: str) -> pl.DataFrame:
    left = against(table, model, one).rename({"difference": one, "verdict": f"{one}: verdict"})
    right = against(table, model, other).rename({"difference": other, "verdict": f"{other}: verdict"})
    return left.join(right, on="versus", maintain_order="left")


def _words(row: dict[str, str]) -> str:
    return {"better": "better", "worse": "worse"}.get(row["verdict"], "not told apart from, neither better nor worse")


if __name__ == "__main__":
    sys.exit(main())
