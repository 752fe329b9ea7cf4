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
# # A week of memory writes, a revert, and a forgotten visitor
#
# An agent that lives in a house writes down what it hears. Each write is recorded with its plan before it is made, and
# judged after it: so it can be shown, taken back, and a person in it forgotten. The week is made up; the rules are not.

# %%
from datetime import UTC, datetime, timedelta

import polars as pl

import mnemokit as mk

mk.charts.use_in_notebook()
pl.Config.set_tbl_hide_dataframe_shape(True)
pl.Config.set_fmt_str_lengths(60)
pl.Config.set_tbl_rows(20)

mem = mk.open()
monday = datetime(2025, 8, 4, 9, tzinfo=UTC)


def hour(day: int, hours: int) -> datetime:
    """An hour of the week: day 0 is Monday, hour 0 is nine o'clock."""
    return monday + timedelta(days=day, hours=hours)


# %% [markdown]
# ## The week
#
# Ada lives here and talks to the agent every day. Bert visits on Wednesday and Thursday; what he says is written down
# in Ada's sessions, with him as a contributor. A contributor "anonymous" stands for no one.

# %%
said = {
    0: [("the spare key is behind the blue pot", ()), ("ada takes her coffee black", ())],
    1: [("the boiler man comes on thursday", ()), ("bins go out on tuesday night", ())],
    2: [("bert is allergic to nuts", ("bert",)), ("bert sleeps in the small room", ("bert",))],
    3: [
        ("bert can drive ada to the station on friday", ("bert",)),
        ("the boiler is set to 60 degrees", ("anonymous",)),
    ],
    4: [("the train to turin leaves at 9:40", ())],
    5: [("ada likes the window open at night", ())],
    6: [("the blue pot broke, the key is under the mat", ())],
}
writes = {}
for day, notes in said.items():
    with mem.session(f"day {day + 1}", user_id="ada", brain_id="house", conversation_id="kitchen") as session:
        for place, (words, people) in enumerate(notes):
            writes[words] = session.add(words, contributor_ids=people, at=hour(day, 2 * place))
        if day == 3:  # what was heard so far, in one trace; it names the people that it is made from
            session.rolling_summary("ada, a visitor and a boiler", contributor_ids=("bert",), at=hour(day, 8))
        if day == 6:
            key = writes["the spare key is behind the blue pot"].trace_ids[0]
            session.update(key, content="the spare key is under the mat", at=hour(day, 3))
mk.charts.change_timeline(mem, by="actor")

# %%
mem.frame("traces").select("trace_id", "type", "content", "ts_created", "ts_updated")

# %% [markdown]
# Saying something again that is there already makes no second trace: the write resolves to the one that holds the
# words.

# %%
with mem.session("day 7", user_id="ada", brain_id="house") as session:
    again = session.add("ada takes her coffee black", at=hour(6, 5))
again.verdict, again.trace_ids == writes["ada takes her coffee black"].trace_ids

# %% [markdown]
# ## Who wrote this, and when?

# %%
mem.changes.timeline(key).select(
    "ts", "action", "actor", "session_id", "verdict", pl.col("before", "after").str.json_path_match("$.content")
)

# %%
mem.changes.blame(key).select("field", "value", "session_id", "actor", "ts")

# %% [markdown]
# What did the agent know on Wednesday evening? Any table can be asked for as of any instant.

# %%
mem.frame("traces", at="2025-08-06T20:00:00+00:00").select("content", "ts_created")

# %% [markdown]
# ## A revert
#
# The note about the bins was wrong. A second revert of it does nothing: it is never a toggle.

# %%
bins = writes["bins go out on tuesday night"].change_id
first = mem.changes.revert(bins, at=hour(6, 6))
second = mem.changes.revert(bins, at=hour(6, 7))
first.verdict, second.verdict, mem.frame("traces").filter(pl.col("content").str.contains("bins")).height

# %% [markdown]
# What would a revert take along? For the first note about the key: the update of day 7, which changed the same trace.
# So the revert is refused, and the conflict names the later write.

# %%
old_key = writes["the spare key is behind the blue pot"].change_id
mem.changes.impact(old_key).select("what", "change_id", "trace_id", "session_id", "ts")

# %%
try:
    mem.changes.revert(old_key, at=hour(6, 8))
except mk.Conflict as conflict:
    print(conflict)

# %% [markdown]
# ## Forgetting a visitor
#
# Bert asks to be forgotten. Before: the sessions that name him as a visitor.

# %%
before = mem.frame("traces")
mem.frame("session_rows").select("session_id", "user_id", "role", "brain_id", "ts_noted").filter(
    pl.col("role") == "visitor"
)

# %%
receipt = mem.changes.forget_user("bert", at=hour(6, 10))
receipt

# %% [markdown]
# After: every trace that he was part of is gone for good, the summary too, in all sessions; where his id stood there
# is a keyed hash. Nothing is restored, and a revert brings nothing back.

# %%
after = mem.frame("traces")
before.with_columns(
    now=pl.when(pl.col("trace_id").is_in(after["trace_id"].implode()))
    .then(pl.lit("kept"))
    .otherwise(pl.lit("forgotten"))
).select("content", "now").sort("now", "content")

# %%
mem.changes.revert(writes["bert is allergic to nuts"].change_id, at=hour(6, 11))
[table for table in ("traces", "session_changes", "session_rows") if "bert" in mem.frame(table).write_json()]

# %%
mk.charts.change_timeline(mem, by="session_id")

# %% [markdown]
# The audit is ok if no write is left without a verdict (an open candidate) and nothing is left of forgotten people. It
# also counts kept writes that differ from their plan (here the words that were there already) and refused reverts.

# %%
audit = mem.changes.audit()
(
    audit.ok,
    {
        "open candidates": audit.open_candidates.height,
        "differ from their plan": audit.differs_from_plan.height,
        "left of the forgotten": audit.left_of_forgotten.height,
        "reverts that met a conflict": audit.conflicts.height,
    },
)

# %% [markdown]
# Bert is not written down again either, unless he is readmitted: a write with him as a contributor goes ahead, but
# stores only the hash, and there is no row for him.

# %%
with mem.session("day 8", user_id="ada", brain_id="house") as session:
    session.add("a friend called", contributor_ids=("bert",), at=hour(7, 0))
mem.frame("session_rows").filter(session_id="day 8").select("user_id", "role")

# %%
try:
    mem.session("bert's own", user_id="bert", brain_id="house").add("hello")
except mk.Forgotten as refused:
    print(refused)

# %% [markdown]
# Erased words can still be in the file's unused pages; `scrub` writes a memory file anew so that no byte of them is
# left.

# %%
mem.close()
