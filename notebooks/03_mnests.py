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
# # Edges that grow with use and fade with time
#
# A *mnest* is an edge from one executor (in a version) to another: the second was called with the output of the first,
# or after it. Its weight starts at 0.30, grows by 0.15 with each passing up to 1, and fades by 1.8 % a day. It is
# telemetry and proves nothing by itself; here is what it can show.

# %%
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

import mnemokit as mk

pl.Config.set_tbl_hide_dataframe_shape(True)
pl.Config.set_tbl_rows(20)
mk.charts.use_in_notebook()

# %% [markdown]
# ## A year in a small office
#
# This log is made up, so that a year of decay can be seen: mail is filed about three times a week, a report is written
# on Fridays, taxes are done in May, and one project ended in March. Every session is two calls.

# %%
rng = np.random.default_rng(7)
new_year = datetime(2025, 1, 1, 8, tzinfo=UTC)
habits = [
    (["read_mail", "file_mail"], lambda day: day % 7 < 5 and rng.random() < 0.6),
    (["collect_numbers", "write_report"], lambda day: day % 7 == 2),
    (["read_bills", "fill_tax_form"], lambda day: 120 <= day < 150 and rng.random() < 0.3),
    (["open_project", "plan_sprint"], lambda day: day < 75 and rng.random() < 0.25),
]
calls = [
    {
        "session_id": f"{tools[0]} on day {day}",
        "step": step,
        "executor": tool,
        "executor_version": "1.0",
        "ts": new_year + timedelta(days=day, minutes=3 * step),
        "session_outcome": "success",
    }
    for day in range(365)
    for tools, happens in habits
    if happens(day)
    for step, tool in enumerate(tools)
]
office = mk.open()
report = office.replay(pl.DataFrame(calls), label="office", progress=False)
report.turns, report.passings, report.ticks

# %%
mk.charts.weight_history(office, top=4, until="2026-03-01T00:00:00+00:00")

# %% [markdown]
# Filing mail is soon at 1 and then never below 0.83. The Friday report grows more slowly, since it comes once a week
# and loses 12 % from one Friday to the next. The project fades after March and is demoted by a night of the ager in
# June (the triangle), the taxes in August. After a demotion a new passing would not revive the old edge: it opens a new
# one.

# %%
mk.charts.ager_nights(office)

# %% [markdown]
# `weight` is as of the last passing or night of the ager; that of a demoted edge, as of the night that demoted it.

# %%
office.frame("mnests").select("src_executor", "dst_executor", "state", "weight", "uses", "ts_used")

# %% [markdown]
# Any instant can be asked for, with no ager: exponential decay composes, so `weight_at` is exact at every moment.

# %%
pl.concat(
    [
        office.frame("mnests", at=at).select(
            pl.lit(at[:10]).alias("at"), "src_executor", "dst_executor", "state", "weight_at"
        )
        for at in ("2025-03-15T12:00:00+00:00", "2025-06-15T12:00:00+00:00", "2025-12-15T12:00:00+00:00")
    ]
).pivot("at", index=["src_executor", "dst_executor", "state"], values="weight_at")

# %% [markdown]
# What changed between spring and summer, and when will each active edge end if nothing comes any more?

# %%
office.mnests.diff("2025-04-01T00:00:00+00:00", "2025-07-01T00:00:00+00:00").select(
    "src_executor", "dst_executor", "change", "weight_before", "weight_after", "n", "sessions"
)

# %%
office.mnests.fades_at().select("src_executor", "dst_executor", "weight", "fades_at", "ends_at", "ends_as")

# %% [markdown]
# ## What one night does
#
# The bundled tau2 log covers less than a day. Let 24 days pass without a call, and look at one night: everything
# decays, and what was passed only once falls below 0.20.

# %%
mem = mk.open()
mem.replay(mk.datasets.tau2(), progress=False)
before = mem.frame("mnests")
night = mem.mnests.apply_ager("2025-08-26T03:00:00+00:00")
night

# %%
after = mem.frame("mnests")
(
    before.select("mnest_id", "uses", pl.col("weight").alias("weight before"))
    .join(after.select("mnest_id", "state", "weight"), on="mnest_id")
    .group_by("uses", "state")
    .agg(pl.len().alias("edges"), pl.col("weight before").mean(), pl.col("weight").mean().alias("weight after"))
    .filter(pl.col("uses") <= 4)
    .sort("uses", "state")
)

# %% [markdown]
# The same night again changes nothing, and neither does one that comes late with an older clock.

# %%
mem.mnests.apply_ager("2025-08-26T03:00:00+00:00"), mem.mnests.apply_ager("2025-08-20T03:00:00+00:00")

# %% [markdown]
# ## Two agent versions side by side
#
# The two versions of the agent used 60 tools each, 59 of them the same. First each by itself, then the difference: blue
# is heavier in the fine-tuned version, and a small square rests on few passings.

# %%
BASE, TUNED = "gpt-4.1", "ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm"
mk.charts.edge_weights(before, by_version=True, top=20)

# %%
mk.charts.edge_diff(
    before.filter(src_version=BASE),
    before.filter(src_version=TUNED),
    names=("gpt-4.1", "fine-tuned"),
    min_uses=5,
    top=26,
)

# %% [markdown]
# Before believing the dark squares: how many *sessions* are behind them? An edge that one stuck session walked 63
# times is as heavy as one that 63 sessions walked once.

# %%
passings = mem.frame("mnest_events").filter(kind="passing").select("mnest_id", "turn_id")
sessions = mem.frame("turns").select("turn_id", "session_id").unique()
rests_on = (
    passings.join(sessions, on="turn_id")
    .group_by("mnest_id")
    .agg(
        passings=pl.len(),
        sessions=pl.col("session_id").n_unique(),
        busiest=pl.col("session_id").value_counts().struct[1].max(),
    )
    .with_columns(share_of_busiest=pl.col("busiest") / pl.col("passings"))
)
(
    before.join(rests_on, on="mnest_id")
    .filter(pl.col("passings") >= 20)
    .sort("share_of_busiest", descending=True)
    .select(
        "src_executor",
        "dst_executor",
        pl.col("src_version").str.head(10),
        "weight",
        "passings",
        "sessions",
        "share_of_busiest",
    )
    .head(8)
)

# %% [markdown]
# ## What is wanted but not there
#
# A call of a tool that does not exist leaves a *proto*: a wish. Wanted three times and heavy enough, it is recurring;
# once somebody builds the tool, the wish becomes an edge and keeps its history.

# %%
for day in range(3):
    wanted = mem.mnests.record_passing(
        "get_order_details",
        BASE,
        "estimate_delivery",
        dst_exists=False,
        desired_sig={"summary": "when will this order arrive?", "inputs": ["order_id"], "outputs": ["date"]},
        at=datetime(2025, 9, 1 + day, 12, tzinfo=UTC),
    )
mem.mnests.recurring_protos().select("src_executor", "dst_executor", "uses", "weight", "desired_sig")

# %%
mem.mnests.promote_proto_to_active(wanted, "0.1", reason="built", at="2025-09-05T12:00:00+00:00")
mem.mnests.events(wanted).select("ts", "kind", "weight", "old_state", "new_state", "reason")

# %% [markdown]
# ## Where does work go from here?
#
# A walk follows the heaviest edges, version by version, and never meets an executor twice.

# %%
with mk.open() as fresh:
    fresh.replay(mk.datasets.tau2(), progress=False)
    paths = fresh.mnests.walk("find_user_id_by_name_zip", max_depth=3)
mk.charts.walk_paths(paths, top=12)

# %%
office.close()
mem.close()
