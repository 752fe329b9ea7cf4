"""A person forgotten in a real memory, wherever a person can be: no table and no byte of the file has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

import mnemokit as mk
from mnemokit.changes.forgetting import forget_everywhere

PERSON = "verazzperson"
WORDS = "zzverasaidthis"
STAYS = "wordsthatstayhere"
THEN = datetime(2025, 8, 1, tzinfo=UTC)
GRAPH = {"nodes": [{"id": "find"}], "edges": [], "properties": {}}


def turns() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "session_id": ["s1", "s1", "s2", "s2", ""],
            "step": [0, 1, 0, 1, 0],
            "executor": ["find", "buy", "find", "buy", "find"],
            "user_id": [PERSON, PERSON, "bert", "bert", PERSON],
            "question": [WORDS, WORDS, STAYS, STAYS, WORDS],
            "session_outcome": ["success"] * 5,
            "ts": [THEN + timedelta(minutes=place) for place in range(5)],
        }
    )


def fill(mem: mk.Memory) -> None:
    assert mem.replay(turns(), label="shop").rejects == 1
    theirs = mem.reasonlets.capture(
        scope="house",
        question=WORDS,
        graph=GRAPH,
        outcome="success",
        subject=PERSON,
        provenance={"said": WORDS},
        at=THEN,
    )
    other = mem.reasonlets.capture(
        scope="house", question=STAYS, graph=GRAPH, outcome="success", subject="bert", at=THEN
    )
    run = mem.reasonlets.record_run(other.reasonlet_id, "failure", subject=PERSON, provenance={"w": WORDS}, at=THEN)
    mem.reasonlets.feedback(run, "success", subject="bert", note="about " + WORDS, at=THEN)
    mem.reasonlets.feedback(other.run_id, "failure", subject=PERSON, note=WORDS, at=THEN)
    mem.reasonlets.recall(WORDS, scope="house", subject=PERSON, at=THEN)
    assert theirs.reasonlet_id != other.reasonlet_id
    with mem.session("chat", user_id="bert", brain_id="b") as session:
        session.add(WORDS, contributor_ids=[PERSON], at=THEN)
        session.add(STAYS, at=THEN)


def whole(mem: mk.Memory) -> str:
    """Every value of every table of the store, internal ones too, as text."""
    names = mem.sql("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY table_name")["table_name"]
    return "\n".join(repr(mem.sql(f'SELECT * FROM "{name}"').rows()) for name in names)


def test_no_table_and_no_byte_has_a_forgotten_person_and_everyone_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "m.duckdb"
    with mk.open(path) as mem:
        fill(mem)
        before = whole(mem)
        assert PERSON in before
        assert WORDS in before
        forget_everywhere(mem, PERSON)
        after = whole(mem)
        assert PERSON not in after
        assert WORDS not in after
        assert STAYS in after
        assert mem.frame("runs")["subject"].drop_nulls().unique().to_list() == ["bert"]
        assert mem.frame("turns").height == 4
        mem.scrub()
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert STAYS.encode() in raw, "the file is stored so that a search finds its texts"
    assert PERSON.encode() not in raw
    assert WORDS.encode() not in raw


def test_the_old_log_of_a_forgotten_person_recreates_nothing(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        fill(mem)
        forget_everywhere(mem, PERSON)
        procedures, edges = mem.frame("reasonlets"), mem.frame("mnests")
        again = mem.replay(turns(), label="another copy")
        assert (again.turns, again.rejects) == (2, 3)
        assert PERSON not in whole(mem)
        assert WORDS not in whole(mem)
        new = mem.frame("runs").filter(source="another copy")
        assert new["session_id"].to_list() == ["s2"]
        assert set(procedures["reasonlet_id"]) <= set(mem.frame("reasonlets")["reasonlet_id"])
        assert edges.height == mem.frame("mnests").height


def test_a_reject_of_a_forgotten_person_keeps_no_word_and_is_counted(tmp_path: Path) -> None:
    lines = tmp_path / "turns.jsonl"
    lines.write_text(
        f'{{"session_id": "", "step": 0, "executor": "find", "user_id": "{PERSON}", "question": "{WORDS}"}}\n'
    )
    with mk.open(tmp_path / "m.duckdb") as mem:
        fill(mem)
        forget_everywhere(mem, PERSON)
        report = mem.replay(lines, label="lines")
        assert (report.rejects, report.records) == (1, 1)
        assert PERSON not in whole(mem)
        assert WORDS not in whole(mem)
        (row,) = mem.frame("rejects").filter(source="lines").to_dicts()
        assert (row["reason"], row["excerpt"]) == ("forgotten", None)


def test_a_log_that_names_nobody_replays_after_somebody_was_forgotten() -> None:
    with mk.open() as mem:
        fill(mem)
        forget_everywhere(mem, PERSON)
        nobody = turns().head(4).with_columns(user_id=pl.lit(None, dtype=pl.String))
        assert mem.replay(nobody, label="nobody").turns == 4


def test_the_old_log_of_an_erased_scope_brings_no_excerpt_of_its_rejects_back() -> None:
    log = turns().drop("user_id")
    with mk.open() as mem:
        mem.replay(log, label="shop")
        assert mem.frame("rejects")["excerpt"].null_count() == 0
        assert mem.reasonlets.erase_scope("shop").rejects == 1
        mem.replay(log, label="shop")
        rejects = mem.frame("rejects")
        assert set(rejects["reason"]) >= {"forgotten"}
        assert rejects["excerpt"].null_count() == rejects.height
