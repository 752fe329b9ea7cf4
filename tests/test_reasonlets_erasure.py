"""Erasure: what goes, what stays, and what cannot come back."""

from __future__ import annotations

import pytest

import mnemokit as mk
from mnemokit.errors import Forgotten, NotFound
from mnemokit.reasonlets import graph as graph_content
from mnemokit.reasonlets.erasure import ErasureReceipt

ADA, BOB = "ada-7731", "bob-2290"
WORDS = "xylophone"
"""A word that only Ada used."""
NOW = "2025-06-01T00:00:00+00:00"


def at(day):
    return f"2025-03-{day:02d}T12:00:00+00:00"


def one(name):
    return {"nodes": [{"id": name}]}


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


def rated(mem, reasonlet_id):
    rows = {row["reasonlet_id"]: row for row in mem.reasonlets.rank().iter_rows(named=True)}
    return rows[reasonlet_id]


def values_of_every_column(mem):
    """Every value of every table, as text."""
    tables = mem.sql("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name")["table_name"]
    found = []
    for table in tables:
        frame = mem.sql(f"SELECT * FROM {table}")
        found += [(table, column, str(value)) for column in frame.columns for value in frame[column].to_list()]
    return found


def holding(mem, *words):
    return [place for place in values_of_every_column(mem) if any(word in place[2] for word in words)]


def log_turns(mem):
    """Turns and rejects as a replay leaves them, of Ada and of Bob."""

    def work(con):
        for number, (user, question) in enumerate(((ADA, f"{WORDS} repair"), (BOB, "bicycle repair"))):
            con.execute(
                "INSERT INTO turns BY NAME SELECT ? AS turn_no, 'log' AS source, ? AS session_id, 't' AS turn_id, "
                "0 AS step, 0 AS parallel_group, 'look' AS executor, ? AS user_id, 'shop' AS scope, ? AS question, "
                "? AS meta",
                [number + 1, f"session {number}", user, question, f'{{"said": "{question}"}}'],
            )
            con.execute(
                "INSERT INTO rejects BY NAME SELECT 'log' AS source, 'no executor' AS reason, ? AS excerpt, "
                "? AS user_id, TIMESTAMPTZ '2025-03-01 00:00:00+00' AS ts_read",
                [f'{{"user": "{user}", "text": "{question}"}}', user],
            )

    mem._store.write(work)


@pytest.fixture
def shared(mem):
    """Ada's root with a version of Bob's below it, Bob's root, and what each did on the other's."""
    log_turns(mem)
    r = mem.reasonlets
    ids = {}
    first = r.capture(
        scope="shop", question=f"{WORDS} repair", graph=one("a"), outcome="success", subject=ADA,
        provenance={"who": ADA}, at=at(1), key="ada 1",
    )  # fmt: skip
    ids["ada"] = first.reasonlet_id
    for day in (2, 3):
        r.record_run(ids["ada"], "success", subject=BOB, at=at(day))
    child = r.capture(
        scope="shop", question="bicycle repair", graph=one("b"), outcome="success", subject=BOB,
        parent_id=ids["ada"], at=at(4), key="bob 1",
    )  # fmt: skip
    ids["child"] = child.reasonlet_id
    ids["grandchild"] = r.capture(
        scope="shop", question="bicycle repair", graph=one("c"), outcome="success", subject=BOB,
        parent_id=ids["child"], at=at(5),
    ).reasonlet_id  # fmt: skip
    ids["bob"] = r.capture(
        scope="shop", question="bicycle sale", graph=one("d"), outcome="failure", subject=BOB, at=at(6)
    ).reasonlet_id
    ids["ada's run"] = r.record_run(
        ids["bob"], "success", subject=ADA, provenance=f"said {WORDS}", at=at(7), key="ada 2"
    )
    r.feedback(ids["ada's run"], "failure", subject=BOB, note="no", at=at(8))
    ids["bob's run"] = r.record_run(ids["bob"], "success", subject=BOB, at=at(9))
    r.feedback(ids["bob's run"], "success", subject=BOB, at=at(10))
    r.feedback(ids["bob's run"], "failure", subject=ADA, note=f"{WORDS}!", at=at(11))
    ids["ada's recall"] = r.recall(f"{WORDS} bicycle", scope="shop", subject=ADA, at=at(12))["recall_id"][0]
    r.record_run(ids["bob"], "success", subject=BOB, recall_id=ids["ada's recall"], at=at(13))
    ids["bob's recall"] = r.recall("repair", scope="shop", subject=BOB, at=at(14))["recall_id"][0]
    return ids


def test_erasing_a_subject_leaves_no_column_with_their_id_or_words(mem, shared):
    assert {table for table, _, _ in holding(mem, ADA, WORDS)} >= {
        "reasonlets", "runs", "feedback", "recalls", "turns", "rejects", "postings",
    }  # fmt: skip
    mem.reasonlets.erase_subject(ADA)
    assert holding(mem, ADA, WORDS) == []
    assert holding(mem, shared["ada"]) == [
        place for place in holding(mem, shared["ada"]) if place[0] == "idempotency_keys"
    ], "only the receipts of hashed keys still name what is gone"


def test_the_receipt_counts_what_went(mem, shared):
    receipt = mem.reasonlets.erase_subject(ADA)
    assert receipt == ErasureReceipt(
        reasonlets=1,  # hers
        runs=4,  # her capture's, Bob's two on hers, hers on Bob's
        feedback=2,  # Bob's on her run, hers on Bob's run
        recalls=1,
        recall_rows=5,  # the four of her recall, and hers in Bob's
        new_roots=1,
        turns=1,
        rejects=1,
    )


def test_everyone_elses_reasonlets_stay(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    assert set(mem.frame("reasonlets")["reasonlet_id"]) == {shared["child"], shared["grandchild"], shared["bob"]}
    assert set(mem.frame("reasonlets")["subject"]) == {BOB}


def test_a_kept_child_becomes_a_root_keeps_its_label_and_ranks_with_the_neutral_prior(mem, shared):
    assert rated(mem, shared["child"])["prior_source"] == "parent"
    mem.reasonlets.erase_subject(ADA)
    child, grandchild = (mem.reasonlets.get(shared[name]) for name in ("child", "grandchild"))
    assert (child.parent_id, child.root_id, child.version, child.depth) == (None, shared["child"], "1.1", 0)
    assert (grandchild.parent_id, grandchild.root_id, grandchild.version, grandchild.depth) == (
        shared["child"], shared["child"], "1.2", 1,
    )  # fmt: skip
    row = rated(mem, shared["child"])
    assert (row["prior"], row["prior_source"]) == (0.5, "neutral")
    assert row["rate"] == pytest.approx(2 / 3, abs=1e-12)
    assert rated(mem, shared["grandchild"])["prior"] == pytest.approx(2 / 3, abs=1e-12)


def test_the_new_lineages_high_water_mark_starts_at_the_highest_label_it_keeps(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    assert mem.reasonlets.lineage(shared["child"])["high_water"].unique().to_list() == [2]
    made = mem.reasonlets.capture(scope="shop", question="q", graph=one("z"), parent_id=shared["child"])
    assert made.version == "1.3"


def test_each_branch_under_an_erased_version_becomes_a_lineage_of_its_own(mem):
    r = mem.reasonlets
    root = r.capture(scope="s", question="q", graph=one("r"), subject=BOB).reasonlet_id
    mid = r.capture(scope="s", question="q", graph=one("m"), subject=ADA, parent_id=root).reasonlet_id
    left, right = (
        r.capture(scope="s", question="q", graph=one(name), subject=BOB, parent_id=mid).reasonlet_id for name in "xy"
    )
    below = r.capture(scope="s", question="q", graph=one("z"), subject=BOB, parent_id=left).reasonlet_id
    assert r.erase_subject(ADA).new_roots == 2
    forest = {row["reasonlet_id"]: (row["root_id"], row["depth"]) for row in r.forest().iter_rows(named=True)}
    assert forest == {root: (root, 0), left: (left, 0), right: (right, 0), below: (left, 1)}
    high_water = {name: r.lineage(name)["high_water"][0] for name in (root, left, right)}
    assert high_water == {root: 4, left: 4, right: 3}, "the old lineage never gives a label out again"


def test_their_runs_elsewhere_go_with_all_feedback_on_those(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    assert shared["ada's run"] not in mem.frame("runs")["run_id"].to_list()
    assert shared["ada's run"] not in mem.frame("feedback")["run_id"].to_list()


def test_after_their_feedback_elsewhere_the_next_latest_verdict_or_the_own_outcome_applies_again(mem, shared):
    runs = mem.frame("runs")
    assert runs.filter(run_id=shared["bob's run"])["verdict"].item() == "failure"
    mem.reasonlets.erase_subject(ADA)
    runs = mem.frame("runs")
    assert runs.filter(run_id=shared["bob's run"])["verdict"].item() == "success"
    other = mem.reasonlets.record_run(shared["bob"], "success", subject=BOB, at=at(20))
    mem.reasonlets.feedback(other, "failure", subject="carl", at=at(21))
    mem.reasonlets.erase_subject("carl")
    assert mem.frame("runs").filter(run_id=other)["verdict"].item() == "success"
    row = rated(mem, shared["bob"])
    assert (row["s"], row["n"]) == (3, 4)


def test_their_recalls_go_and_others_lose_the_rows_of_what_went(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    recalls = mem.frame("recalls")
    assert recalls["recall_id"].to_list() == [shared["bob's recall"]]
    rows = mem.sql("SELECT reasonlet_id FROM recall_rows")["reasonlet_id"].to_list()
    assert shared["ada"] not in rows
    assert recalls["shown"].to_list() == [len(rows)]
    assert mem.frame("runs")["recall_id"].null_count() == mem.frame("runs").height


def test_turns_lose_user_and_question_and_rejects_their_excerpt_but_stay(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    assert mem.frame("turns").select("user_id", "question").rows() == [(None, None), (BOB, "bicycle repair")]
    rejects = mem.frame("rejects")
    assert rejects["reason"].to_list() == ["no executor", "no executor"]
    assert rejects["excerpt"].null_count() == 1


def test_erasing_a_scope_takes_everything_of_the_scope(mem, shared):
    mem.reasonlets.capture(scope="other", question="q", graph=one("a"), outcome="success", subject=BOB)
    receipt = mem.reasonlets.erase_scope("shop")
    assert (receipt.reasonlets, receipt.recalls, receipt.turns, receipt.new_roots) == (4, 2, 2, 0)
    assert mem.frame("reasonlets")["scope"].to_list() == ["other"]
    assert mem.frame("runs").height == 1
    assert mem.frame("feedback").is_empty()
    assert mem.frame("recalls").is_empty()
    assert mem.sql("SELECT count(*) AS n FROM recall_rows")["n"].item() == 0
    assert mem.frame("turns").select("user_id", "question", "scope").rows() == [(None, None, None)] * 2
    assert holding(mem, "shop", "bicycle") == [
        place for place in holding(mem, "shop", "bicycle") if place[0] == "rejects"
    ], "rejects carry no scope, only their source, which is the log"


def test_erasing_a_scope_blanks_the_excerpts_of_rejects_whose_source_is_the_scope(mem, shared):
    def other(con):
        con.execute(
            "INSERT INTO rejects BY NAME SELECT 'shop' AS source, 'no step' AS reason, 'a bicycle' AS excerpt, "
            "TIMESTAMPTZ '2025-03-01 00:00:00+00' AS ts_read"
        )

    mem._store.write(other)
    assert mem.reasonlets.erase_scope("log").rejects == 2
    rejects = mem.sql("SELECT source, excerpt, user_id FROM rejects ORDER BY source").rows()
    assert rejects == [("log", None, None), ("log", None, None), ("shop", "a bicycle", None)]
    assert mem.reasonlets.erase_scope("log").total == 0
    assert mem.reasonlets.erase_scope("shop").rejects == 1
    assert mem.frame("rejects")["reason"].len() == 3
    assert holding(mem, "bicycle") == []


@pytest.mark.parametrize("call", ["erase_scope", "erase_subject"])
def test_erasing_what_is_not_there_is_a_no_op_with_a_receipt_of_zeros(mem, shared, call):
    before = values_of_every_column(mem)
    receipt = getattr(mem.reasonlets, call)("nobody")
    assert receipt == ErasureReceipt()
    assert receipt.total == 0
    assert values_of_every_column(mem) == before


def test_an_erasure_done_twice_is_a_no_op_the_second_time(mem, shared):
    assert mem.reasonlets.erase_subject(ADA).total > 0
    assert mem.reasonlets.erase_subject(ADA).total == 0


def test_a_tombstone_stays_as_a_keyed_hash_only(mem, shared):
    mem.reasonlets.erase_subject(ADA, at=NOW)
    stones = mem.sql("SELECT * FROM tombstones")
    assert stones["realm"].to_list() == ["subject"]
    assert ADA not in stones["name_hash"].item()
    assert len(stones["name_hash"].item()) == 64


def test_what_is_not_later_than_the_erasure_is_refused_and_what_is_later_is_new(mem, shared):
    mem.reasonlets.erase_subject(ADA, at=NOW)
    before = values_of_every_column(mem)
    capture = {"scope": "shop", "question": "q", "graph": one("n"), "subject": ADA}
    for moment in (at(1), NOW):
        with pytest.raises(Forgotten, match="this subject was erased at 2025-06-01"):
            mem.reasonlets.capture(**capture, at=moment)
        with pytest.raises(Forgotten):
            mem.reasonlets.record_run(shared["bob"], "success", subject=ADA, at=moment)
        with pytest.raises(Forgotten):
            mem.reasonlets.feedback(shared["bob's run"], "success", subject=ADA, at=moment)
    assert values_of_every_column(mem) == before
    made = mem.reasonlets.capture(**capture, at="2025-06-01T00:00:00.000001+00:00")
    assert made.kind == "new_reasonlet"
    assert mem.reasonlets.erase_subject(ADA, at="2025-07-01T00:00:00+00:00").reasonlets == 1
    with pytest.raises(Forgotten, match="erased at 2025-07-01"):
        mem.reasonlets.capture(**capture, at="2025-06-15T00:00:00+00:00")


def test_an_erased_scope_refuses_what_is_not_later(mem, shared):
    mem.reasonlets.erase_scope("shop", at=NOW)
    with pytest.raises(Forgotten, match="this scope was erased"):
        mem.reasonlets.capture(scope="shop", question="q", graph=one("n"), at=at(1))
    assert mem.reasonlets.capture(scope="shop", question="q", graph=one("n")).kind == "new_reasonlet"


def test_a_key_outlives_what_it_made_and_recreates_nothing(mem, shared):
    mem.reasonlets.erase_subject(ADA, at=NOW)
    before = values_of_every_column(mem)
    for moment in (at(1), None):
        with pytest.raises(Forgotten):
            mem.reasonlets.capture(scope="shop", question="q", graph=one("a"), subject=ADA, at=moment, key="ada 1")
        with pytest.raises(Forgotten):
            mem.reasonlets.record_run(shared["bob"], "success", subject=ADA, at=moment, key="ada 2")
    kept = mem.reasonlets.capture(scope="shop", question="q", graph=one("b"), subject=BOB, key="bob 1")
    assert kept.reasonlet_id == shared["child"]
    assert values_of_every_column(mem) == before


def test_a_batch_tells_which_captures_an_erasure_refuses_and_writes_the_others(mem, shared):
    mem.reasonlets.erase_subject(ADA, at=NOW)
    frame = mk_frame(
        [
            ("shop", ADA, at(1), None),
            ("shop", BOB, at(1), None),
            ("shop", ADA, "2025-06-02T00:00:00+00:00", None),
            ("shop", ADA, "2025-06-02T00:00:00+00:00", "ada 1"),
        ]
    )
    receipts = mem.reasonlets.capture_many(frame)
    assert receipts["kind"].to_list() == ["forgotten", "new_reasonlet", "new_reasonlet", "forgotten"]
    assert receipts["reasonlet_id"].is_null().to_list() == [True, False, False, True]
    assert receipts["written"].to_list() == [False, True, True, False]


def mk_frame(rows):
    import polars as pl

    return pl.DataFrame(
        rows, schema={"scope": pl.String, "subject": pl.String, "ts": pl.String, "key": pl.String}, orient="row"
    ).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC", time_unit="us"), graph=pl.lit("{}"))


def test_erased_rows_are_gone_at_every_time(mem, shared):
    mem.reasonlets.erase_subject(ADA)
    for day in range(1, 15):
        assert shared["ada"] not in mem.reasonlets.rank(at=at(day))["reasonlet_id"].to_list()
        assert shared["ada"] not in mem.frame("reasonlets", at=at(day))["reasonlet_id"].to_list()
    with pytest.raises(NotFound):
        mem.reasonlets.get(shared["ada"])


def test_a_recall_of_the_past_of_an_erased_scope_is_answered_but_not_kept(mem, shared):
    mem.reasonlets.erase_scope("shop", at=NOW)
    shown = mem.reasonlets.recall("bicycle", scope="shop", at=at(20))
    assert shown.is_empty()
    assert mem.frame("recalls").is_empty()


# Withdrawal of a source ---------------------------------------------------------------------------------------------


def from_source(mem, source, name, parent=None):
    """A capture as a replay of a source writes it."""
    import polars as pl

    from mnemokit.reasonlets.capture import ingest

    content = graph_content.canonical(one(name))
    batch = pl.DataFrame(
        {
            "scope": ["s"], "question": ["q"], "graph": [content.text], "graph_hash": [content.hash],
            "source": [source],
            "outcome": ["success"], "parent_id": pl.Series([parent], dtype=pl.String), "ts": [at(1)],
        }
    ).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC", time_unit="us"))  # fmt: skip
    return mem._store.write(lambda con: ingest(con, batch, mem._store.keyed_hash)).row(0, named=True)


def test_a_withdrawn_source_leaves_what_others_stand_on_with_its_labels_minus_its_runs(mem):
    from mnemokit.reasonlets.erasure import withdraw

    root = from_source(mem, "x", "root")["reasonlet_id"]
    mid = from_source(mem, "x", "mid", root)["reasonlet_id"]
    foreign = from_source(mem, "y", "foreign", mid)["reasonlet_id"]
    alone = from_source(mem, "x", "alone", root)["reasonlet_id"]
    run = from_source(mem, "x", "run", root)["reasonlet_id"]
    mem.reasonlets.record_run(run, "failure")
    from_source(mem, "x", "foreign", foreign)
    assert mem._store.write(lambda con: withdraw(con, "x")) == 5
    left = {row["reasonlet_id"]: row for row in mem.reasonlets.rank().iter_rows(named=True)}
    assert {name: (row["version"], row["n"]) for name, row in left.items()} == {
        root: ("1.0", 0), mid: ("1.1", 0), foreign: ("1.2", 1), run: ("1.4", 1),
    }  # fmt: skip
    assert alone not in left
    assert mem.reasonlets.get(foreign).parent_id == mid
    assert mem.reasonlets.capture(scope="s", question="q", graph=one("n"), parent_id=root).version == "1.5"
