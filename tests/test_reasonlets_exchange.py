"""Export and import of a scope or a lineage: round trips are equal, and nothing is overwritten or resurrected."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import Conflict, CorruptLog, InvalidInput, NotFound
from mnemokit.reasonlets.exchange import ExchangeReceipt
from mnemokit.reasonlets.exchange_records import EXCHANGE_SCHEMA

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
        scope="s", question="refund an order", graph=one("a", big=2.0**53 - 1, tiny=5e-324, text="größe 退款"),
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
    # Ada's reasonlet with its run and recall row, and her verdict.
    assert done.forgotten == 4
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


# One validator for both formats -------------------------------------------------------------------------------------


def rewritten(path, kind, column, value):
    """The file with a value of its first record of a kind changed; the place of that record."""
    if path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text().splitlines()]
        row = next(row for row, record in enumerate(records) if record["record"] == kind)
        records[row][column] = value
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return f"one.jsonl, line {row + 1}: "
    frame = pl.read_parquet(path)
    row = frame["record"].to_list().index(kind)
    chosen = pl.int_range(pl.len()) == row
    frame.with_columns(
        pl.when(chosen).then(pl.lit(value, dtype=frame.schema[column])).otherwise(column).alias(column)
    ).write_parquet(path)
    return f"one.parquet, row {row + 1}: "


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("kind", "column", "value", "error", "why"),
    [
        ("reasonlet", "scope", None, CorruptLog, "the reasonlet has no scope"),
        ("reasonlet", "scope", "", InvalidInput, "scope is empty"),
        ("reasonlet", "reasonlet_id", None, CorruptLog, "the reasonlet has no reasonlet_id"),
        ("reasonlet", "graph", None, CorruptLog, "the reasonlet has no graph"),
        ("reasonlet", "graph_hash", "00", CorruptLog, "the graph is not the one its graph_hash was taken of"),
        ("reasonlet", "untimed", None, CorruptLog, "the reasonlet has no untimed"),
        ("reasonlet", "version", None, CorruptLog, "the reasonlet has no version"),
        ("reasonlet", "version", "2.1", InvalidInput, r"version is '2.1'; a version is 1.<k>"),
        ("lineage", "high_water", -1, InvalidInput, "high_water is -1"),
        ("lineage", "high_water", 2**31, InvalidInput, "high_water is 2147483648"),
        ("recall", "weight", None, CorruptLog, "the recall has no weight"),
        ("recall_row", "rank", 2**40, InvalidInput, "rank is 1099511627776"),
        ("recall_row", "score", float("inf"), InvalidInput, "score is inf, no finite number"),
        ("run", "outcome", "weird", InvalidInput, "outcome is 'weird'; an outcome is 'success', 'failure' or null"),
        ("run", "run_id", "", InvalidInput, "run_id is empty"),
        ("run", "reasonlet_id", None, CorruptLog, "the run has no reasonlet_id"),
        ("feedback", "outcome", "weird", InvalidInput, "outcome is 'weird'"),
        ("feedback", "record", "walk", CorruptLog, "this is no record of reasonlet, lineage"),
        ("feedback", "record", None, CorruptLog, "this is no record of reasonlet, lineage"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_both_formats_with_file_row_and_column(
    mem, other, tmp_path, suffix, kind, column, value, error, why
):
    fill(mem)
    path = tmp_path / f"one{suffix}"
    mem.reasonlets.export_to(path, scope="s")
    place = rewritten(path, kind, column, value)
    with pytest.raises(error, match=why) as told:
        other.reasonlets.import_from(path)
    assert place in str(told.value)
    assert "nothing was written" in str(told.value)
    assert "\n" not in str(told.value)
    assert other.frame("reasonlets").is_empty()
    assert other.frame("recalls").is_empty()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_instant_that_is_missing_is_refused_in_both_formats(mem, other, tmp_path, suffix):
    fill(mem)
    path = tmp_path / f"one{suffix}"
    mem.reasonlets.export_to(path, scope="s")
    place = rewritten(path, "run", "ts_run", None)
    with pytest.raises(CorruptLog, match="ts_run") as told:
        other.reasonlets.import_from(path)
    assert place in str(told.value)
    assert other.frame("reasonlets").is_empty()


@pytest.mark.parametrize(
    "value", ["garbage", "[]", '{"nodes":[{}]}', '{"nodes":[{"id":"a","x":NaN}]}', '{"nodes":[{"id":"z"}]}']
)
def test_a_parquet_graph_that_is_none_or_another_is_refused_like_one_in_json_lines(mem, other, tmp_path, value):
    fill(mem)
    path = tmp_path / "one.parquet"
    mem.reasonlets.export_to(path, scope="s")
    rewritten(path, "reasonlet", "graph", value)
    with pytest.raises((CorruptLog, InvalidInput), match=r"one\.parquet, row 1: .*nothing was written"):
        other.reasonlets.import_from(path)
    assert other.frame("reasonlets").is_empty()


def test_a_parquet_graph_that_is_written_in_another_order_is_kept_in_canonical_words(mem, other, tmp_path):
    made = mem.reasonlets.capture(scope="s", question="q", graph=one("a", x=1), at=at(1))
    path = tmp_path / "one.parquet"
    mem.reasonlets.export_to(path, scope="s")
    rewritten(path, "reasonlet", "graph", '{"properties": {}, "nodes": [{"x": 1.0, "id": "a"}]}')
    other.reasonlets.import_from(path)
    assert other.frame("reasonlets")["graph"].equals(mem.frame("reasonlets")["graph"])
    assert other.reasonlets.get(made.reasonlet_id).graph == mem.reasonlets.get(made.reasonlet_id).graph


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("question", 3, "line 1: question is 3, no text"),
        ("question", "\ud800", "line 1: question holds a lone surrogate"),
        ("untimed", 0, "line 1: untimed is 0, neither true nor false"),
        ("ts_captured", 20250301, "line 1: ts_captured is 20250301, no ISO 8601 instant"),
        ("ts_captured", "0001-01-01T00:00:00+14:00", "line 1: ts_captured is '0001"),
        ("graph", 3, "line 1: a graph is"),
        ("graph", {"nodes": [{"id": "\ud800"}]}, "line 1: .*lone surrogate"),
    ],
)
def test_a_value_of_another_type_in_json_lines_is_refused_with_its_line_and_column(
    mem, other, tmp_path, column, value, why
):
    mem.reasonlets.capture(scope="s", question="q", graph=one("a"), at=at(1))
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    rewritten(path, "reasonlet", column, value)
    with pytest.raises((CorruptLog, InvalidInput), match=why):
        other.reasonlets.import_from(path)
    assert other.frame("reasonlets").is_empty()


@pytest.mark.parametrize(("column", "value"), [("rank", True), ("rank", 1.5), ("rank", 2**70), ("score", "0.5")])
def test_a_number_that_is_none_in_json_lines_is_refused_with_its_line_and_column(mem, other, tmp_path, column, value):
    fill(mem)
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    place = rewritten(path, "recall_row", column, value)
    with pytest.raises((CorruptLog, InvalidInput), match=f"{column} is ") as told:
        other.reasonlets.import_from(path)
    assert place in str(told.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (pl.col("ts_run").dt.replace_time_zone(None), "the column ts_run has no time zone"),
        (pl.col("rank").cast(pl.String), "the column rank is String, not Int64"),
        (pl.lit([1]).alias("question"), "the column question is List"),
        (pl.lit(1).alias("run_id"), "the column run_id is Int32, not String"),
    ],
)
def test_a_parquet_column_of_another_type_is_refused_and_named(mem, other, tmp_path, change, why):
    fill(mem)
    path = tmp_path / "one.parquet"
    mem.reasonlets.export_to(path, scope="s")
    pl.read_parquet(path).with_columns(change).write_parquet(path)
    with pytest.raises(CorruptLog, match=why) as told:
        other.reasonlets.import_from(path)
    assert str(path) in str(told.value)
    assert other.frame("reasonlets").is_empty()


def test_an_instant_that_no_calendar_has_is_refused(mem, other, tmp_path):
    fill(mem)
    path = tmp_path / "one.parquet"
    mem.reasonlets.export_to(path, scope="s")
    far = pl.lit(2**62).cast(pl.Datetime("us", "UTC"))
    pl.read_parquet(path).with_columns(ts_run=pl.when(record="run").then(far)).write_parquet(path)
    with pytest.raises(InvalidInput, match=r"one\.parquet, row \d+: ts_run is not of the years 1 to 9999"):
        other.reasonlets.import_from(path)


def test_a_parquet_file_without_a_column_is_refused_and_the_column_named(mem, other, tmp_path):
    fill(mem)
    path = tmp_path / "one.parquet"
    mem.reasonlets.export_to(path, scope="s")
    pl.read_parquet(path).drop("note").write_parquet(path)
    with pytest.raises(CorruptLog, match="there is no column note"):
        other.reasonlets.import_from(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["reasonlet", "run", "recall", "recall_row", "feedback"])
def test_a_record_that_is_in_the_file_twice_is_refused(mem, other, tmp_path, suffix, kind):
    fill(mem)
    path = tmp_path / f"one{suffix}"
    mem.reasonlets.export_to(path, scope="s")
    if suffix == ".jsonl":
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines, next(line for line in lines if json.loads(line)["record"] == kind)]))
    else:
        frame = pl.read_parquet(path)
        pl.concat([frame, frame.filter(record=kind).head(1)]).write_parquet(path)
    with pytest.raises(CorruptLog, match=f"(line|row) 16: the {kind} '.*' is in the file twice; nothing was written"):
        other.reasonlets.import_from(path)
    assert other.frame("reasonlets").is_empty()


def test_bytes_that_are_no_utf_8_are_refused_with_their_line(mem, other, tmp_path):
    fill(mem)
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"refund", b"ref\xffnd")
    path.write_bytes(b"".join(lines))
    with pytest.raises(CorruptLog, match=r"one\.jsonl, line 2: this is no UTF-8 text.*nothing was written"):
        other.reasonlets.import_from(path)


def test_a_line_that_is_nested_without_end_is_refused(other, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"record": "reasonlet", "graph": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(CorruptLog, match="line 1: this is no JSON"):
        other.reasonlets.import_from(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_into_a_folder_that_is_not_there_is_refused(mem, tmp_path, suffix):
    fill(mem)
    with pytest.raises(NotFound, match=r"the folder .*nowhere does not exist; nothing was written; make it first"):
        mem.reasonlets.export_to(tmp_path / "nowhere" / f"one{suffix}", scope="s")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_name_that_the_machine_refuses_is_told_in_one_line(mem, tmp_path, suffix):
    with pytest.raises(InvalidInput, match=r"cannot be written .*; nothing was written; name another file"):
        mem.reasonlets.export_to(tmp_path / ("x" * 300 + suffix), scope="s")
    with pytest.raises(InvalidInput, match=r"cannot be read .*; nothing was written"):
        mem.reasonlets.import_from(tmp_path / ("x" * 300 + suffix))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_that_breaks_off_leaves_no_file(mem, tmp_path, suffix, monkeypatch):
    fill(mem)

    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mnemokit.reasonlets.exchange_files.json.dumps", full)
    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(InvalidInput, match=r"cannot be written .No space left on device.; nothing was written"):
        mem.reasonlets.export_to(tmp_path / f"one{suffix}", scope="s")
    assert not list(tmp_path.iterdir())


def test_a_whole_number_is_a_number_too(mem, other, tmp_path):
    fill(mem)
    path = tmp_path / "one.jsonl"
    mem.reasonlets.export_to(path, scope="s")
    rewritten(path, "recall", "weight", 1)
    other.reasonlets.import_from(path)
    assert other.frame("recalls")["weight"].to_list() == [1.0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_is_no_file_to_import(mem, tmp_path, suffix):
    (tmp_path / f"one{suffix}").mkdir()
    with pytest.raises(NotFound, match="there is no file"):
        mem.reasonlets.import_from(tmp_path / f"one{suffix}")


def test_a_file_whose_name_looks_like_a_pattern_is_read_as_named(mem, other, tmp_path):
    fill(mem)
    told = mem.reasonlets.export_to(tmp_path / "one[1].parquet", scope="s")
    assert other.reasonlets.import_from(tmp_path / "one[1].parquet") == told


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_lineages_that_share_a_recall_leave_its_count_right_whichever_is_imported_later(mem, other, tmp_path, suffix):
    roots = [
        mem.reasonlets.capture(scope="s", question="refund an order", graph=one(name), at=at(1)).reasonlet_id
        for name in "ab"
    ]
    mem.reasonlets.recall("refund", scope="s", at=at(2))
    for number, root in enumerate(roots, start=1):
        mem.reasonlets.export_to(tmp_path / f"{number}{suffix}", reasonlet_id=root)
        other.reasonlets.import_from(tmp_path / f"{number}{suffix}")
        assert other.frame("recalls")["shown"].to_list() == [number]
    assert other.frame("recalls").equals(mem.frame("recalls"))
    assert other.frame("recalls", at=datetime(2025, 3, 3, tzinfo=UTC)).equals(mem.frame("recalls"))


def test_ids_of_another_type_are_refused(mem, tmp_path):
    with pytest.raises(InvalidInput, match="reasonlet_id must be a text, not int"):
        mem.reasonlets.export_to(tmp_path / "one.jsonl", reasonlet_id=3)
    with pytest.raises(InvalidInput, match="scope must be a text, not int"):
        mem.reasonlets.export_to(tmp_path / "one.jsonl", scope=3)
