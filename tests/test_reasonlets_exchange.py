"""Export and import of a scope or a lineage: round trips are equal, and nothing is overwritten or resurrected."""

from __future__ import annotations

import json

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import Conflict, CorruptLog, InvalidInput, NotFound
from mnemokit.reasonlets.exchange import ExchangeReceipt
from mnemokit.reasonlets.exchange_files import EXCHANGE_SCHEMA

ADA, BOB = "ada", "bob"
SUFFIXES = [".jsonl", ".parquet"]


def at(day):
    return f"2025-03-{day:02d}T12:00:00.000123+00:00"


def one(name, **more):
    return {"nodes": [{"id": name, **more}]}


def fill(mem):
    """Two lineages of a scope and one elsewhere, with everything that can hang on them."""
    r = mem.reasonlets
    root = r.capture(
        scope="s", question="refund an order", graph=one("a", big=1e20, tiny=5e-324, text="größe 退款"),
        outcome="success", subject=ADA, provenance={"n": 1}, at=at(1),
    )  # fmt: skip
    child = r.capture(
        scope="s", question="refund an order", graph=one("b"), subject=BOB, parent_id=root.reasonlet_id, at=at(2)
    )
    pruned = r.capture(scope="s", question=None, graph=one("c"), parent_id=child.reasonlet_id, subject="gone", at=at(3))
    r.erase_subject("gone", at=at(4))
    r.capture(scope="s", question="other refund", graph=one("d"), outcome="failure", subject=BOB, at=at(5))
    shown = r.recall("refund", scope="s", subject=BOB, at=at(6))
    run = r.record_run(
        child.reasonlet_id, "success", subject=BOB, recall_id=shown["recall_id"][0], provenance="said so", at=at(7)
    )
    r.feedback(run, "failure", subject=ADA, note="no «good»", at=at(8))
    r.feedback(run, None, at=at(9))
    r.capture(scope="elsewhere", question="refund", graph=one("e"), outcome="success", at=at(10))
    return root.reasonlet_id, child.reasonlet_id, pruned.reasonlet_id


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


@pytest.fixture
def other():
    with mk.open() as opened:
        yield opened


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_scope_makes_the_round_trip_equal(mem, other, tmp_path, suffix):
    fill(mem)
    told = mem.reasonlets.export_to(tmp_path / f"one{suffix}", scope="s")
    assert (told.reasonlets, told.runs, told.feedback, told.recalls, told.recall_rows) == (3, 4, 2, 1, 3)
    done = other.reasonlets.import_from(tmp_path / f"one{suffix}")
    assert done == told
    for table in ("reasonlets", "runs", "feedback", "recalls", "recall_rows"):
        before, after = (m.frame(table) for m in (mem, other))
        if table in ("reasonlets", "recalls"):
            before = before.filter(scope="s")
        if table == "runs":
            before = before.join(other.frame("reasonlets"), on="reasonlet_id", how="semi", maintain_order="left")
        assert before.equals(after), table
    assert mem.reasonlets.rank(scope="s").equals(other.reasonlets.rank())
    asked = {"scope": "s", "log": False}
    assert mem.reasonlets.recall("refund order", **asked).equals(other.reasonlets.recall("refund order", **asked))
    other.reasonlets.export_to(tmp_path / f"two{suffix}", scope="s")
    if suffix == ".jsonl":
        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    else:
        assert pl.read_parquet(tmp_path / "one.parquet").equals(pl.read_parquet(tmp_path / "two.parquet"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_lineage_makes_the_round_trip_equal_with_its_high_water_mark(mem, other, tmp_path, suffix):
    root, child, _ = fill(mem)
    told = mem.reasonlets.export_to(tmp_path / f"one{suffix}", reasonlet_id=child)
    assert other.reasonlets.import_from(tmp_path / f"one{suffix}") == told
    assert other.reasonlets.lineage(root).equals(mem.reasonlets.lineage(root))
    made = other.reasonlets.capture(scope="s", question="q", graph=one("z"), parent_id=root)
    assert made.version == "1.3", "1.2 was given out to what is gone"
    both = [m.reasonlets.rank().filter(reasonlet_id=child).drop("parent_rate") for m in (mem, other)]
    assert both[0].equals(both[1])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_import_can_be_repeated_and_writes_nothing_new(mem, other, tmp_path, suffix):
    fill(mem)
    path = tmp_path / f"one{suffix}"
    told = mem.reasonlets.export_to(path, scope="s")
    other.reasonlets.import_from(path)
    before = other.reasonlets.rank()
    again = other.reasonlets.import_from(path)
    assert again == ExchangeReceipt(known=told.reasonlets + told.runs + told.feedback + told.recalls + told.recall_rows)
    assert other.reasonlets.rank().equals(before)


def test_a_later_export_adds_what_is_new(mem, other, tmp_path):
    _, child, _ = fill(mem)
    mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
    other.reasonlets.import_from(tmp_path / "one.jsonl")
    mem.reasonlets.record_run(child, "success", at=at(20))
    mem.reasonlets.capture(scope="s", question="q", graph=one("n"), outcome="success", parent_id=child, at=at(21))
    mem.reasonlets.export_to(tmp_path / "two.jsonl", scope="s")
    done = other.reasonlets.import_from(tmp_path / "two.jsonl")
    assert (done.reasonlets, done.runs) == (1, 2)
    assert other.reasonlets.rank().equals(mem.reasonlets.rank(scope="s"))


def test_memories_that_went_apart_are_a_conflict_and_nothing_is_written(mem, other, tmp_path):
    root, _, _ = fill(mem)
    mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
    other.reasonlets.import_from(tmp_path / "one.jsonl")
    mem.reasonlets.capture(scope="s", question="q", graph=one("mine"), parent_id=root)
    other.reasonlets.capture(scope="s", question="q", graph=one("theirs"), parent_id=root)
    mem.reasonlets.export_to(tmp_path / "two.jsonl", scope="s")
    before = other.frame("reasonlets")
    with pytest.raises(Conflict, match=r"version 1\.3 of lineage .* the two memories went apart"):
        other.reasonlets.import_from(tmp_path / "two.jsonl")
    assert other.frame("reasonlets").equals(before)


def test_a_record_that_differs_here_is_a_conflict(mem, tmp_path):
    fill(mem)
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    bobs = '"outcome": "{}", "subject": "bob"'
    path.write_text(path.read_text().replace(bobs.format("failure"), bobs.format("success")))
    with pytest.raises(Conflict, match="is here already and differs from the file's"):
        mem.reasonlets.import_from(path)


def test_an_erasure_here_refuses_what_is_imported_from_before_it(mem, other, tmp_path):
    root, child, _ = fill(mem)
    mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
    other.reasonlets.capture(scope="x", question="q", graph={}, subject=ADA, at=at(1))
    other.reasonlets.erase_subject(ADA, at="2025-06-01T00:00:00+00:00")
    done = other.reasonlets.import_from(tmp_path / "one.jsonl")
    assert done.reasonlets == 2
    # Ada's reasonlet with its run, lineage and recall row, and her verdict.
    assert done.forgotten == 5
    kept = other.reasonlets.get(child)
    assert (kept.parent_id, kept.root_id, kept.version) == (None, child, "1.1")
    assert root not in other.frame("reasonlets")["reasonlet_id"].to_list()
    assert other.reasonlets.import_from(tmp_path / "one.jsonl").reasonlets == 0


def test_json_lines_hold_a_record_per_line_with_its_own_columns(mem, tmp_path):
    fill(mem)
    mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
    records = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert [record["record"] for record in records] == sorted(
        (record["record"] for record in records),
        key=["reasonlet", "lineage", "recall", "recall_row", "run", "feedback"].index,
    )
    assert records[0]["graph"]["nodes"][0]["text"] == "größe 退款"
    assert "run_id" not in records[0]


def test_parquet_holds_one_frame_of_constant_columns(mem, tmp_path):
    mem.reasonlets.export_to(tmp_path / "none.parquet", scope="nothing here")
    assert pl.read_parquet(tmp_path / "none.parquet").schema == pl.Schema(EXCHANGE_SCHEMA)


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        (lambda text: text[:-20], CorruptLog, r"one\.jsonl, line 15: this is no JSON"),
        (lambda text: text.replace('"record": "run"', '"record": "walk"', 1), CorruptLog, "this is no record of"),
        (
            lambda text: text.replace('"graph_hash": "', '"graph_hash": "0', 1),
            CorruptLog,
            "line 1: the graph is not the one",
        ),
        (lambda text: text.replace('"ts_run": "2025', '"ts_run": "2025x', 1), CorruptLog, "ts_run is '2025x"),
        (lambda text: text.replace('"version": "1.1"', '"version": "2.1"', 1), InvalidInput, "a version is 1.<k>"),
        (lambda text: text.replace('"note": ', '"nota": ', 1), CorruptLog, "the feedback has no note"),
        (
            lambda text: "".join(text.splitlines(keepends=True)[1:]),
            InvalidInput,
            "which is neither in the file nor here",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_place_and_nothing_is_written(mem, other, tmp_path, change, error, why):
    fill(mem)
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    path.write_text(change(path.read_text()))
    with pytest.raises(error, match=why):
        other.reasonlets.import_from(path)
    assert other.frame("reasonlets").is_empty()


def test_wrong_calls_are_refused(mem, tmp_path):
    fill(mem)
    with pytest.raises(InvalidInput, match="give either scope= or reasonlet_id="):
        mem.reasonlets.export_to(tmp_path / "one.jsonl")
    with pytest.raises(InvalidInput, match="must end in"):
        mem.reasonlets.export_to(tmp_path / "one.csv", scope="s")
    with pytest.raises(NotFound, match="there is no reasonlet 'rl_x'"):
        mem.reasonlets.export_to(tmp_path / "one.jsonl", reasonlet_id="rl_x")
    with pytest.raises(NotFound, match="there is no file"):
        mem.reasonlets.import_from(tmp_path / "none.jsonl")
    (tmp_path / "no.parquet").write_text("no parquet")
    with pytest.raises(CorruptLog, match="no file of exported procedures"):
        mem.reasonlets.import_from(tmp_path / "no.parquet")
    mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
    with pytest.raises(Conflict, match="exists already"):
        mem.reasonlets.export_to(tmp_path / "one.jsonl", scope="s")
