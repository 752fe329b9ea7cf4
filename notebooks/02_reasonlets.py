# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Procedures that are tried again and again
#
# [Reflexion](https://github.com/noahshinn/reflexion) agents try a household task in ALFWorld; where they fail, they
# write a note to themselves and try again. The log says for 134 tasks which attempts there were, how each ended, and
# when a note was written (not what it says, nor whether the agent was shown it). Each attempt is a run of a
# *procedure*: the task with the notes that had been written for it by then. A new note makes a new version of it.

# %%
from datetime import UTC, datetime, timedelta

import altair as alt
import polars as pl

import mnemokit as mk
from mnemokit.reasonlets.graph import diff

mk.charts.use_in_notebook()
pl.Config.set_tbl_hide_dataframe_shape(True)
pl.Config.set_fmt_str_lengths(100)

LOG = "alfworld_runs/reflexion_run_logs"
attempts = (
    mk.datasets.reflexion()
    .filter(pl.col("scope") == LOG)
    .with_columns(trial=pl.col("meta").str.json_path_match("$.trial").cast(pl.Int64))
)
notes = (
    mk.datasets.reflexion_memory()
    .filter(pl.col("session_id").str.starts_with(LOG + "/"))
    .with_columns(
        question=pl.col("brain_id").str.split("/").list.last(),
        trial=pl.col("meta").str.json_path_match("$.trial").cast(pl.Int64),
    )
)
{"attempts": attempts.height, "succeeded": attempts.filter(session_outcome="success").height, "notes": notes.height}

# %% [markdown]
# ## Capture every attempt
#
# A capture decides by itself what it is: a new procedure, a plain run of its parent, or a new version. We go trial by
# trial, since an attempt's parent is the attempt before it. The log has no times, so we give an order: a second per
# trial. A few attempts come out as plain runs: the agent had written a note that it had already.

# %%
mem = mk.open()
newest: dict[str, str] = {}


def procedure(task: str, before: int) -> dict:
    """The task, and the notes that had been written for it before this trial, in their order."""
    had = notes.filter(pl.col("question") == task, pl.col("trial") < before).sort("trial")
    digests = had["content_hash"].unique(maintain_order=True)
    steps = ["try", *(f"read note {digest[:8]}" for digest in digests)]
    return {"nodes": [{"id": step} for step in steps], "edges": [{"src": step, "dst": "try"} for step in steps[1:]]}


kinds = []
for row in attempts.sort("trial", "question").iter_rows(named=True):
    receipt = mem.reasonlets.capture(
        scope="alfworld",
        question=row["question"],
        graph=procedure(row["question"], row["trial"]),
        outcome=row["session_outcome"],
        parent_id=newest.get(row["question"]),
        at=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=row["trial"]),
        key=row["session_id"],
    )
    newest[row["question"]] = receipt.reasonlet_id
    kinds.append(str(receipt.kind))
pl.Series("kind", kinds).value_counts(sort=True)

# %% [markdown]
# `key` makes it repeatable: the same attempt captured again gives the first receipt and writes nothing.

# %%
first = attempts.sort("trial", "question").row(0, named=True)
again = mem.reasonlets.capture(
    scope="alfworld",
    question=first["question"],
    graph=procedure(first["question"], 0),
    outcome=first["session_outcome"],
    key=first["session_id"],
)
again.kind, again.version, mem.frame("runs").height

# %% [markdown]
# ## The lineages that were hardest
#
# Each row is a task, each dot a version of how it was tried. Orange is failing. Only the last dot of a row can succeed,
# because a solved task was not tried again; the white one failed first and then succeeded with the same notes.

# %%
ranked = mem.reasonlets.rank()
mk.charts.lineage(ranked, top=10)

# %% [markdown]
# ## What a version starts from
#
# A version starts from its parent's rate, but only where that is above one half: a fix of something that fails starts
# from one half, not from the failure. So every version here starts neutral, and one success lifts it to 2/3.

# %%
ranked.group_by("prior_source", "prior", "n", "s").agg(versions=pl.len(), rate=pl.col("rate").first()).sort("rate")

# %% [markdown]
# Now let a procedure that worked be run four more times, once without success. Its own record takes over, and a version
# made from it inherits 5/7 and not one half.

# %%
solved = ranked.filter(pl.col("s") == 1, pl.col("version") == "1.0").sort("question").row(0, named=True)
start = datetime(2025, 8, 1, 12, tzinfo=UTC)
for hour, outcome in enumerate(["success", "success", "failure", "success"]):
    last_run = mem.reasonlets.record_run(solved["reasonlet_id"], outcome, at=start + timedelta(hours=hour))
child = mem.reasonlets.capture(
    scope="alfworld",
    question=solved["question"],
    graph={"nodes": [{"id": "try"}, {"id": "check the result"}], "edges": [{"src": "try", "dst": "check the result"}]},
    outcome="failure",
    parent_id=solved["reasonlet_id"],
    at=start + timedelta(hours=5),
)
mine = [solved["reasonlet_id"], child.reasonlet_id]
mk.charts.rates(mem.reasonlets.rank().filter(pl.col("reasonlet_id").is_in(mine)))

# %%
print(mem.reasonlets.explain(child.reasonlet_id))

# %% [markdown]
# What changed between the two versions:

# %%
graphs = dict(mem.frame("reasonlets").select("reasonlet_id", "graph").iter_rows())
diff(graphs[solved["reasonlet_id"]], graphs[child.reasonlet_id])

# %% [markdown]
# Somebody looks at the last run and says that it did not really succeed. The latest verdict counts, the run itself is
# never counted twice, and the past can still be asked for as it stood.

# %%
mem.reasonlets.feedback(last_run, "failure", note="the lamp was on already", at=start + timedelta(hours=6))
pl.concat(
    [
        mem.reasonlets.rank(at=start + timedelta(hours=hour))
        .filter(pl.col("reasonlet_id") == solved["reasonlet_id"])
        .select(pl.lit(f"{12 + hour}:00").alias("as of"), "s", "n", "rate", "rate_low", "rate_high")
        for hour in (0, 1, 2, 3, 5, 7)
    ]
)

# %% [markdown]
# ## Did writing notes help? This log cannot say
#
# Success per trial falls, but that alone says nothing: only the hard tasks are left. The log has a second set of runs
# over the same tasks, meant as the baseline. It holds notes as well (163, none after trial 3), and whether the agent
# was shown them is not logged. Both start from the same first trial, with 50 tasks unsolved.

# %%
BASE = "alfworld_runs/base_run_logs"
both = (
    mk.datasets.reflexion()
    .filter(pl.col("scope").is_in([LOG, BASE]))
    .with_columns(
        trial=pl.col("meta").str.json_path_match("$.trial").cast(pl.Int64),
        runs=pl.when(pl.col("scope") == LOG).then(pl.lit("reflexion runs")).otherwise(pl.lit("base runs")),
    )
)
by_trial = (
    both.group_by("runs", "trial")
    .agg(s=(pl.col("session_outcome") == "success").sum().cast(pl.Int64), n=pl.len().cast(pl.Int64))
    .sort("runs", "trial")
    .with_columns(solved=pl.col("s").cum_sum().over("runs"))
)
alt.Chart(by_trial).mark_line(point=True).encode(
    x=alt.X("trial:Q", title="trial"),
    y=alt.Y("solved:Q", title="tasks solved so far, of 134", scale=alt.Scale(domain=[0, 134])),
    color=alt.Color("runs:N", title=None, scale=alt.Scale(range=["#D55E00", "#0072B2"])),
    tooltip=["runs", "trial", "s", "n", "solved"],
).properties(
    title=alt.TitleParams("How many tasks are solved after each trial, in the two sets of runs?", anchor="start"),
    width=480,
    height=260,
)

# %% [markdown]
# Of those 50 tasks, how many were solved within six more trials? A task counts once, since attempts at the same task
# are not independent. The intervals do not meet: the two sets differ by more than the luck of the tasks; that notes did
# it, this log cannot show. Nor does an interval over tasks say what a second run of either set would give.

# %%
left = both.filter(pl.col("trial") == 0, pl.col("session_outcome") == "failure").select("runs", "question")
within_six = (
    both.filter(pl.col("trial").is_between(1, 6))
    .join(left, on=["runs", "question"], how="semi")
    .group_by("runs", "question")
    .agg(solved=(pl.col("session_outcome") == "success").any())
    .group_by("runs")
    .agg(s=pl.col("solved").sum().cast(pl.Int64), n=pl.len().cast(pl.Int64))
)
mk.charts.outcomes(within_six, by="runs", of="tasks")

# %% [markdown]
# ## Recall
#
# Questions are found by their words (BM25); the score is the similarity times the rate. Here in the tau2 log, whose
# questions have words.

# %%
with mk.open() as tau2:
    tau2.replay(mk.datasets.tau2(), progress=False)
    found = tau2.reasonlets.recall("airplane mode on, bad network preference", scope="telecom", limit=6)
found.select("rank", "question", "version", "similarity", "rate", "score")

# %%
mem.close()
