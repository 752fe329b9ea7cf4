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
# # Was the memory right?
#
# A memory that says "this works in 80 % of the cases" can be held to it. Here every prediction is made only from what
# was known before, and stands beside simple baselines, with intervals over sessions. Where a model loses to a simpler
# one, it is shown losing.

# %%
import polars as pl

import mnemokit as mk

pl.Config.set_tbl_hide_dataframe_shape(True)
pl.Config.set_tbl_rows(20)
pl.Config.set_tbl_cols(10)
pl.Config.set_fmt_str_lengths(120)
mk.charts.use_in_notebook()

# %% [markdown]
# ## Eight agents, a month, 4,698 attempts
#
# The public reports of Auto-GPT-Benchmarks say for eight agents which tests they attempted, when, and how it went.
# Each attempt is a run of a procedure (the test, in the agent's scope). We learn from the beginning on, and score the
# runs from 17 August 2023 on.

# %%
mem = mk.open()
report = mem.replay(mk.datasets.agb(), progress=False)
SCORED_FROM = "2023-08-17T00:00:00+00:00"
runs = mem.frame("runs")
report.sessions, runs.height, runs.filter(outcome="success").height

# %%
made = mk.evaluate.predictions(mem, "runs", since=SCORED_FROM)
table = made.table()
table.filter(pl.col("versus").is_null(), metric="brier").select(
    "model", "baseline", "value", "low", "high", "n_sessions", "n"
)

# %% [markdown]
# The default rule of this library is `rank_rule`. It beats a constant by far. But does it beat the share of the last
# ten runs, which is one line of code? (`rmse bins` asks only whether the probabilities come true on the whole; a
# constant can do that and know nothing.)

# %%
mk.charts.scores(table)

# %%
mk.charts.scores(table, versus="last_10")

# %% [markdown]
# No. On this log it loses to the last ten, and the paired interval excludes 0: agents got better and worse during the
# month, and a record that never forgets lags behind. `power_law`, in which older runs count less, does better, but as
# it comes out of the box it does not beat the last ten either; fitted on the earlier part (below) it does. (No
# procedure here has a parent, so inheriting cannot help: `own_record` is the same.) That is a finding about this log,
# not a law; and nothing was tuned on the scored period.

# %%
(
    table.filter(pl.col("versus").is_in(["constant", "last_10"]), metric="brier")
    .filter(pl.col("model").is_in(["rank_rule", "power_law", "own_record"]))
    .select("model", "versus", "value", "low", "high")
)

# %% [markdown]
# ## When it said 70 %, did it happen 70 % of the time?

# %%
mk.charts.calibration(made.bins(10).filter(pl.col("model").is_in(["rank_rule", "power_law"])))

# %% [markdown]
# Of what `rank_rule` put between 70 and 80 %, 80 % came true (interval 73 to 85 %). Between 20 and 40 % it is wrong: of
# these runs only 9 to 14 % succeeded.

# %% [markdown]
# ## Fitting, on the earlier part only
#
# `fit` finds parameters by maximum likelihood before the scored period, and its result competes in the same table. Its
# `curve` (not shown) has the log loss of other values, and so says how much the data say about a parameter at all.

# %%
fits = [mk.evaluate.fit(mem, "runs", until=SCORED_FROM, family=family) for family in ("rank_rule", "power_law")]
{fit.name: dict(fit.params) for fit in fits}

# %%
later = mk.evaluate.score(mem, "runs", models=fits, since=SCORED_FROM)
mk.charts.scores(later, metric="brier", versus="last_10")

# %% [markdown]
# A fit refuses to be scored on what it was fitted on.

# %%
try:
    mk.evaluate.score(mem, "runs", models=fits)
except mk.MnemokitError as refused:
    print(refused)

# %% [markdown]
# ## Which executor comes next?
#
# The edges of the tau2 log, scored on the sessions of half the tasks, learnt from what came before in time.

# %%
tau2 = mk.open()
tau2.replay(mk.datasets.tau2(), progress=False)
turns = tau2.frame("turns")
tasks = turns["question"].unique().sort()
half = turns.filter(pl.col("question").is_in(tasks.gather_every(2).implode()))["session_id"].unique().to_list()
following = mk.evaluate.score(tau2, "next_executor", sessions=half, versions="collapsed")
mk.charts.scores(following.filter(pl.col("metric").is_in(["log_loss", "hit@1", "hit@3", "mrr"])))

# %% [markdown]
# As an order of candidates the weights are as good as plain counts. As probabilities they are worse than plain counts
# and no better than a constant: in one busy day the edges that four fifths of the passings take reach 1, so a weight
# cannot tell six passings from four hundred. Nothing fades in a day either, so this log says little about the decay.

# %% [markdown]
# ## Two versions: what really differs?
#
# A difference without its n misleads. The list starts with what many sessions support, not with 5/5 against 0/0.

# %%
versions = mk.evaluate.compare(tau2, by="executor_version")
mk.charts.differences(versions.edges(), names=("gpt-4.1", "fine-tuned"), top=15)

# %% [markdown]
# The same 100 tasks (40 of them in two modes, so 140 sessions) were given to both, so they can be compared in pairs.
# The first row is all pairs. The others are pairs that parted at the same place: after `after`, gpt-4.1 (a) went on to
# `then_a`, the fine-tuned version (b) to `then_b`. Over all pairs b succeeds more often; no single parting shown here
# has a gain that is told apart from 0.

# %%
versions.partings().select(
    "after", "then_a", "then_b", "n", "success_a", "success_b", "gain", "low", "high", "note"
).head(5)

# %% [markdown]
# Which passings precede failure, though every single call was fine? `failed_with` of the `with_edge` sessions that have
# the passing failed; the interval is that of the difference to those without. The first row is a sign, not a cause: who
# cannot solve a task hands it over to a human.

# %%
versions.before_failure().select(
    "src_executor", "dst_executor", "failed_with", "with_edge", "rate_with", "rate_without", "low", "high"
).head(6)

# %% [markdown]
# And is a version one thing at all? gpt-4.1 is not: 40 of its 140 sessions ran on another commit.

# %%
versions.confounds().filter(pl.col("warning").is_not_null()).select("attribute", "value", "warning").unique(
    maintain_order=True
).head(8)

# %% [markdown]
# ## What if the rule were another one?
#
# A stronger prior (20 runs instead of 2) on the log of the eight agents: which procedures change their rank within
# their agent? Nothing is written, and only what differs is listed, the largest change first.

# %%
other = mk.evaluate.what_if(mem, {"k": 20.0})
names = mem.frame("reasonlets").select(pl.col("reasonlet_id").alias("id"), "scope", "question")
other.diff.join(names, on="id", maintain_order="left").select("scope", "question", "before", "after", "n").head(8)

# %% [markdown]
# What did the rule hide when it was needed, and what did it keep for nothing? A success counts as hidden if its
# procedure stood below a new one just before (a rate under one half; `days_faded` says for how long), a procedure as
# kept if it stands at one half or above and was not used in the last seven days of the log. Both columns are medians.

# %%
mk.evaluate.hidden(mem).group_by("side", "kind", maintain_order=True).agg(
    cases=pl.len(), days_faded=pl.col("days_faded").median(), days_unused=pl.col("days_unused").median()
)

# %% [markdown]
# ## Too little to say
#
# Six runs are not enough to tell anything: the interval is as wide as can be, and the note says why.

# %%
with mk.open() as small:
    procedure = small.reasonlets.capture(
        scope="s", question="q", graph={"nodes": [{"id": "a"}]}, outcome="success", at="2025-08-01T00:00:00+00:00"
    )
    for day in range(2, 7):
        small.reasonlets.record_run(procedure.reasonlet_id, "success", at=f"2025-08-0{day}T00:00:00+00:00")
    few = mk.evaluate.score(small, "runs")
few.filter(pl.col("versus").is_null(), metric="brier").select("model", "value", "low", "high", "n", "note").head(4)

# %%
tau2.close()
mem.close()
