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
# # A first look
#
# 280 real sessions of an agent in two versions ([tau2-bench](https://github.com/sierra-research/tau2-bench): airline,
# retail and telecom customers, tools, and a reward at the end) become a memory. We look at what it learned: which
# procedures, in which versions; which tools hand work to which; what fades. Nothing is downloaded,
# and no model is asked.

# %%
import polars as pl

import mnemokit as mk

mk.charts.use_in_notebook()
pl.Config.set_tbl_cols(10)
mem = mk.open()  # in memory; mk.open("memory.duckdb") keeps it

# %% [markdown]
# ## Replay the log
#
# A log is one frame, a row per tool call. `replay` derives from it who passed work to whom, what each session did as a
# procedure, and how it ended, and ages the edges every night of the log.

# %%
turns = mk.datasets.tau2()
turns.select("session_id", "step", "executor", "executor_version", "requestor", "ts", "ok", "session_outcome").head()

# %%
report = mem.replay(turns, progress=False)
report

# %% [markdown]
# Doing it twice changes nothing, and says so: every record is a duplicate.

# %%
again = mem.replay(turns, progress=False)
assert again.turns == again.captures == 0
again.duplicates

# %% [markdown]
# ## Two versions
#
# The fine-tuned version got more sessions right. But is the *version* what made the difference?

# %%
mk.charts.outcomes(mem)

# %% [markdown]
# The chart cannot say: gpt-4.1 was not run from one commit only. 40 of its telecom sessions ran on another commit than
# their pair, so a difference in those may come from the code around the model.

# %%
(
    turns.unique("session_id", maintain_order=True)
    .with_columns(commit=pl.col("meta").str.json_path_match("$.git_commit").str.head(8))
    .group_by("executor_version", "scope", "commit")
    .agg(sessions=pl.len(), successes=(pl.col("session_outcome") == "success").sum())
    .sort("executor_version", "scope", "commit")
)

# %% [markdown]
# ## Procedures in versions
#
# What a session did is a *reasonlet*: a graph of the tools it called. The same task done in another way is a new
# version of it. A version starts from its parent's rate where that is above one half, else from one half (the prior),
# and then earns its own rate. With one or two runs each, the intervals are wide.

# %%
ranked = mem.reasonlets.rank()
ranked.select("question", "version", "n", "s", "prior", "prior_source", "rate", "rate_low", "rate_high").head(8)

# %%
mk.charts.rates(mem.reasonlets.rank(scope="airline"), top=20)

# %% [markdown]
# Lineages: each row is a task, each dot a version of how it was done, to the right what came later.

# %%
mk.charts.lineage(ranked, top=12)

# %% [markdown]
# Why does a version rank where it does?

# %%
deepest = ranked.filter(pl.col("version") == "1.3").row(0, named=True)
print(mem.reasonlets.explain(deepest["reasonlet_id"]))

# %% [markdown]
# ## Edges from tool to tool
#
# An edge grows with every passing and fades with time. It is telemetry: it says what came after what, not what helped.

# %%
mk.charts.edge_weights(mem, top=26)

# %%
mem.mnests.top_outgoing("get_user_details", k=6).select("dst_executor", "src_version", "weight", "uses")

# %% [markdown]
# The edges of the two versions against each other are in `03_mnests`.

# %% [markdown]
# ## One edge over time
#
# Four passings within a day, and then what happens if nothing comes: half of the weight is gone after 39 days, and in
# the middle of October a night of the ager would demote the edge.

# %%
mk.charts.weight_history(mem, src="toggle_data", dst="can_send_mms", until="2025-11-15T00:00:00+00:00")

# %% [markdown]
# No ager is needed to know a weight: any read can ask for any instant.

# %%
edge = mem.frame("mnests").filter(src_executor="toggle_data", dst_executor="can_send_mms", src_version="gpt-4.1")
pl.concat(
    [
        mem.frame("mnests", at=at)
        .filter(mnest_id=edge["mnest_id"].item())
        .select(pl.lit(at).alias("at"), "weight_at", "uses")
        for at in ("2025-08-01T00:00:00+00:00", "2025-08-02T00:00:00+00:00", "2025-10-01T00:00:00+00:00")
    ]
)

# %% [markdown]
# ## A page to hand on
#
# The same as one HTML file that opens anywhere, without a network.

# %%
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    page = mk.report(mem, Path(folder) / "memory.html")
    size = page.stat().st_size
f"{size / 1e6:.1f} MB, charts and the program that draws them included"

# %%
mem.close()
