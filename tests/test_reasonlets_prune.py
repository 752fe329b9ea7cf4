"""Pruning: what nothing used for a time goes, and no kept version loses its parent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.reasonlets import graph as graph_content
from mnemokit.reasonlets.capture import ingest

MONTH = timedelta(days=30)
NOW = datetime(2025, 6, 1, tzinfo=UTC)


def ago(days):
    return NOW - timedelta(days=days)


def one(name):
    return {"nodes": [{"id": name}]}


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


def captured(mem, name, days, parent=None):
    return mem.reasonlets.capture(
        scope="s", question=f"question {name}", graph=one(name), outcome="success", parent_id=parent, at=ago(days)
    ).reasonlet_id


def left(mem):
    return set(mem.frame("reasonlets")["reasonlet_id"])


def test_a_reasonlet_with_no_run_and_no_showing_recall_for_the_time_goes_with_all_that_is_on_it(mem):
    old = captured(mem, "old", 60)
    run = mem.reasonlets.record_run(old, "failure", at=ago(40))
    mem.reasonlets.feedback(run, "success", at=ago(1))
    mem.reasonlets.recall("question", scope="s", at=ago(35))
    new = captured(mem, "new", 10)
    receipt = mem.reasonlets.prune(unused_for=MONTH, now=NOW)
    assert (receipt.reasonlets, receipt.runs, receipt.feedback, receipt.recall_rows) == (1, 2, 1, 1)
    assert receipt.reasonlet_ids == (old,)
    assert left(mem) == {new}
    assert mem.frame("runs").height == 1
    assert mem.frame("feedback").is_empty()
    assert mem.frame("recalls")["shown"].to_list() == [0]


def test_a_run_or_a_recall_that_showed_it_keeps_it(mem):
    run, shown, old = (captured(mem, name, 60) for name in ("run", "shown", "old"))
    mem.reasonlets.record_run(run, None, at=ago(29))
    mem.reasonlets.recall("shown", scope="s", at=ago(29))
    assert mem.reasonlets.prune(unused_for=MONTH, now=NOW).reasonlet_ids == (old,)
    assert left(mem) == {run, shown}


def test_use_exactly_so_long_ago_is_no_use_any_more(mem):
    captured(mem, "exact", 30)
    kept = captured(mem, "just", 30 - 1e-6)
    mem.reasonlets.prune(unused_for=MONTH, now=NOW)
    assert left(mem) == {kept}


def test_one_with_a_version_below_it_in_use_is_never_pruned(mem):
    root = captured(mem, "root", 90)
    mid = captured(mem, "mid", 80, root)
    used = captured(mem, "used", 1, mid)
    dead = captured(mem, "dead", 70, root)
    below = captured(mem, "below", 60, dead)
    assert set(mem.reasonlets.prune(unused_for=MONTH, now=NOW).reasonlet_ids) == {dead, below}
    assert left(mem) == {root, mid, used}
    assert mem.reasonlets.get(used).parent_id == mid


def test_a_label_is_not_given_out_again_after_a_prune(mem):
    root = captured(mem, "root", 1)
    captured(mem, "gone", 90, root)
    mem.reasonlets.prune(unused_for=MONTH, now=NOW)
    made = mem.reasonlets.capture(scope="s", question="q", graph=one("next"), parent_id=root)
    assert made.version == "1.2"


def test_dry_run_tells_the_same_and_writes_nothing(mem):
    captured(mem, "old", 60)
    told = mem.reasonlets.prune(unused_for=MONTH, now=NOW, dry_run=True)
    assert told.dry_run
    assert len(left(mem)) == 1
    done = mem.reasonlets.prune(unused_for=MONTH, now=NOW)
    assert (told.reasonlets, told.runs, told.reasonlet_ids) == (done.reasonlets, done.runs, done.reasonlet_ids)
    assert not left(mem)


def test_the_first_receipt_of_a_key_still_answers_after_a_prune(mem):
    first = mem.reasonlets.capture(scope="s", question="q", graph=one("a"), at=ago(60), key="k")
    mem.reasonlets.prune(unused_for=MONTH, now=NOW)
    assert mem.reasonlets.capture(scope="s", question="q", graph=one("a"), at=ago(60), key="k") == first
    assert not left(mem)


def test_what_came_without_times_is_never_called_unused(mem):
    content = graph_content.canonical(one("a"))
    batch = pl.DataFrame(
        {
            "scope": ["s"],
            "graph": [content.text],
            "graph_hash": [content.hash],
            "untimed": [True],
            "ts": [datetime(1970, 1, 1, tzinfo=UTC)],
        }
    ).with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))
    mem._store.write(lambda con: ingest(con, batch, mem._store.keyed_hash))
    assert mem.reasonlets.prune(unused_for=MONTH, now=NOW).reasonlets == 0


def test_nothing_to_prune_is_a_receipt_of_zeros_and_a_negative_time_is_refused(mem):
    assert mem.reasonlets.prune(unused_for=MONTH).reasonlets == 0
    with pytest.raises(InvalidInput, match="unused_for must not be negative"):
        mem.reasonlets.prune(unused_for=-MONTH)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("unused_for", "why"),
    [
        (3, "unused_for must be a timedelta, not int; nothing was pruned"),
        (None, "unused_for must be a timedelta, not NoneType; nothing was pruned"),
        (timedelta.max, "unused_for reaches back to before the year 1; nothing was pruned"),
    ],
)
def test_a_time_that_cannot_be_meant_is_refused(mem, unused_for, why, dry_run):
    captured(mem, "old", 60)
    with pytest.raises(InvalidInput, match=why):
        mem.reasonlets.prune(unused_for, now=NOW, dry_run=dry_run)
    assert len(left(mem)) == 1
