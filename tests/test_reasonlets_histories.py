"""Random histories: captures, runs, feedback, recalls, erasures, prunes, in any order, beside a plain-Python memory."""

from __future__ import annotations

import itertools
import random
import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

import mnemokit as mk
from mnemokit.errors import Conflict, Forgotten, NotFound
from mnemokit.reasonlets.erasure import erase_subject
from tests.oracles import lineages, ranking
from tests.oracles.procedures import Procedures, Refused

T0 = datetime(2025, 3, 1, tzinfo=UTC)
PEOPLE = st.sampled_from([None, "ada", "bob"])
SCOPES = st.sampled_from(["x", "y"])
OUTCOMES = st.sampled_from(["success", "failure", None])
HOURS = st.integers(0, 40).map(lambda n: T0 + timedelta(hours=n))
GRAPHS = st.sampled_from("abc")
QUESTIONS = st.sampled_from(["book a flight", "refund 退款", None])


def graph_of(name):
    return {"nodes": [{"id": name}]}


def check_structure(mem):
    """What must hold of any memory, whatever happened to it."""
    reasonlets = mem.sql("SELECT * FROM reasonlets").rows(named=True)
    parents = {row["reasonlet_id"]: row["parent_id"] for row in reasonlets}
    assert all(parent is None or parent in parents for parent in parents.values()), "a parent dangles"
    places = lineages.places(parents)
    assert {row["reasonlet_id"]: (row["root_id"], row["depth"]) for row in reasonlets} == {
        name: place[:2] for name, place in places.items()
    }
    labels = [(row["root_id"], row["version"]) for row in reasonlets]
    assert len(set(labels)) == len(labels), "a label names two procedures"
    numbers = {row["reasonlet_id"]: row["seq"] for row in reasonlets}
    assert len(set(numbers.values())) == len(numbers)
    assert all(row["parent_no"] == numbers.get(row["parent_id"]) for row in reasonlets)
    high_water = dict(mem.sql("SELECT root_id, high_water FROM lineages").iter_rows())
    assert set(high_water) == {place[0] for place in places.values()}
    assert all(row["version_no"] <= high_water[row["root_id"]] for row in reasonlets)

    runs = mem.sql("SELECT * FROM runs").rows(named=True)
    run_numbers = {row["run_id"]: row["seq"] for row in runs}
    assert len(set(run_numbers.values())) == len(runs)
    assert all(row["reasonlet_no"] == numbers[row["reasonlet_id"]] for row in runs)
    feedback = mem.sql("SELECT * FROM feedback").rows(named=True)
    assert all(row["run_no"] == run_numbers[row["run_id"]] for row in feedback)
    shown = mem.sql("SELECT recall_id, count(*) FROM recall_rows GROUP BY ALL").rows()
    assert dict(shown) == {name: n for name, n in mem.sql("SELECT recall_id, shown FROM recalls").iter_rows() if n}
    loose = "SELECT count(*) AS n FROM recall_rows ANTI JOIN reasonlets USING (reasonlet_id)"
    assert mem.sql(loose)["n"].item() == 0

    records = ranking.own_records(reasonlets, runs, feedback)
    stored = mem.sql("SELECT reasonlet_no, n, s FROM run_counts").rows()
    assert sorted(stored) == sorted((numbers[name], n, s) for name, (s, n) in records.items())
    asked = {row["seq"] for row in reasonlets if row["question"] is not None}
    for table in ("postings", "question_lengths"):
        assert set(mem.sql(f"SELECT DISTINCT seq FROM {table}")["seq"]) == asked


def check_ranks(mem, model, at):
    rows = [{**row, "seq": n} for n, row in enumerate(model.reasonlets.values())]
    expected = ranking.rank(rows, model.runs.values(), model.feedback.values(), at=at)
    found = mem.reasonlets.rank(at=at)
    assert found["reasonlet_id"].to_list() == [row["reasonlet_id"] for row in expected]
    assert found["rate"].to_list() == pytest.approx([float(row["rate"]) for row in expected], abs=1e-12)
    assert at is None or found["ts_captured"].is_empty() or found["ts_captured"].max() <= at


class Histories(RuleBasedStateMachine):
    reasonlets = Bundle("reasonlets")
    runs = Bundle("runs")

    @initialize()
    def start(self):
        self.mem = mk.open()
        self.model = Procedures()
        self.labels = {}
        self.keys = {}

    def teardown(self):
        if hasattr(self, "mem"):
            check_ranks(self.mem, self.model, None)
            check_ranks(self.mem, self.model, T0 + timedelta(hours=20))
            self.mem.close()

    @rule(
        target=reasonlets,
        scope=SCOPES,
        question=QUESTIONS,
        graph=GRAPHS,
        outcome=OUTCOMES,
        subject=PEOPLE,
        parent=st.none() | reasonlets,
        ts=HOURS,
        key=st.none() | st.sampled_from("kl"),
    )
    def capture(self, scope, question, graph, outcome, subject, parent, ts, key):
        if parent in self.model.reasonlets:
            scope = self.model.reasonlets[parent]["scope"]
        given = {"scope": scope, "subject": subject}
        call = {
            **given,
            "question": question,
            "graph": graph_of(graph),
            "outcome": outcome,
            "parent_id": parent,
            "at": ts,
            "key": key,
        }
        before = self.model.size()
        if key in self.keys:
            receipt = self.keys[key]
            stands = receipt.run_id in self.model.runs
            erased = any((realm, name) in self.model.stones for realm, name in given.items())
            if stands or not erased:
                assert self.mem.reasonlets.capture(**call) == receipt
            else:
                with pytest.raises(Forgotten):
                    self.mem.reasonlets.capture(**call)
            return multiple()
        try:
            self.model.check_stones(ts, **given)
            kind, number = self.model.settle(scope, graph, parent)
        except Refused as reason:
            with pytest.raises(Forgotten if str(reason) == "forgotten" else NotFound):
                self.mem.reasonlets.capture(**call)
            return multiple()
        receipt = self.mem.reasonlets.capture(**call)
        decided = self.model.capture(receipt, scope, question, graph, outcome, subject, parent, ts)
        assert decided == (receipt.kind, receipt.reasonlet_id, receipt.version)
        assert (kind, f"1.{number}") == (receipt.kind, receipt.version)
        assert self.model.size()[1] == before[1] + 1, "one run per capture"
        if key is not None:
            self.keys[key] = receipt
        return multiple() if kind == "execution_only" else receipt.reasonlet_id

    @rule(target=runs, reasonlet=reasonlets, outcome=OUTCOMES, subject=PEOPLE, ts=HOURS)
    def run(self, reasonlet, outcome, subject, ts):
        if reasonlet not in self.model.reasonlets:
            with pytest.raises(NotFound):
                self.mem.reasonlets.record_run(reasonlet, outcome, subject=subject, at=ts)
            return multiple()
        try:
            self.model.check_stones(ts, scope=self.model.reasonlets[reasonlet]["scope"], subject=subject)
        except Refused:
            with pytest.raises(Forgotten):
                self.mem.reasonlets.record_run(reasonlet, outcome, subject=subject, at=ts)
            return multiple()
        run_id = self.mem.reasonlets.record_run(reasonlet, outcome, subject=subject, at=ts)
        self.model.add_run(run_id, reasonlet, outcome, subject, ts)
        return run_id

    @rule(run=runs, outcome=OUTCOMES, subject=PEOPLE, ts=HOURS)
    def judge(self, run, outcome, subject, ts):
        call = (run, outcome)
        if run not in self.model.runs:
            with pytest.raises(NotFound):
                self.mem.reasonlets.feedback(*call, subject=subject, at=ts)
            return
        try:
            self.model.check_stones(ts, subject=subject)
        except Refused:
            with pytest.raises(Forgotten):
                self.mem.reasonlets.feedback(*call, subject=subject, at=ts)
            return
        self.model.add_feedback(self.mem.reasonlets.feedback(*call, subject=subject, at=ts), run, outcome, subject, ts)

    @rule(scope=SCOPES, asked=st.sampled_from(["book", "refund", "退款 flight"]), subject=PEOPLE, ts=HOURS)
    def recall(self, scope, asked, subject, ts):
        shown = self.mem.reasonlets.recall(asked, scope=scope, subject=subject, at=ts, limit=3)
        assert all(self.model.reasonlets[name]["ts_captured"] <= ts for name in shown["reasonlet_id"])
        kept = self.mem.sql("SELECT recall_id FROM recalls ORDER BY seq DESC LIMIT 1")["recall_id"].to_list()
        try:
            self.model.check_stones(ts, scope=scope, subject=subject)
        except Refused:
            assert shown["recall_id"].null_count() == shown.height
            return
        self.model.add_recall(kept[0], scope, subject, shown["reasonlet_id"], ts)

    @rule(subject=st.sampled_from(["ada", "bob", "nobody"]), ts=HOURS)
    def erase_subject(self, subject, ts):
        before = self.model.size()
        self.model.erase_subject(subject, ts)
        receipt = self.mem.reasonlets.erase_subject(subject, at=ts)
        gone = (receipt.reasonlets, receipt.runs, receipt.feedback, receipt.recalls)
        assert gone == tuple(a - b for a, b in zip(before, self.model.size(), strict=True))

    @rule(scope=st.sampled_from(["x", "nothing"]), ts=HOURS)
    def erase_scope(self, scope, ts):
        before = self.model.size()
        self.model.erase_scope(scope, ts)
        receipt = self.mem.reasonlets.erase_scope(scope, at=ts)
        gone = (receipt.reasonlets, receipt.runs, receipt.feedback, receipt.recalls)
        assert gone == tuple(a - b for a, b in zip(before, self.model.size(), strict=True))

    @rule(now=HOURS, hours=st.integers(0, 30), dry_run=st.booleans())
    def prune(self, now, hours, dry_run):
        unused_for = timedelta(hours=hours)
        told = self.mem.reasonlets.prune(unused_for, now=now, dry_run=True)
        if not dry_run:
            assert set(told.reasonlet_ids) == self.model.prune(now - unused_for)
            assert self.mem.reasonlets.prune(unused_for, now=now).reasonlet_ids == told.reasonlet_ids

    @invariant()
    def the_memory_is_the_plain_python_memory(self):
        if not hasattr(self, "mem"):
            return
        rows = self.mem.sql("SELECT reasonlet_id, parent_id, root_id, version FROM reasonlets").rows()
        assert {row[0]: row[1:] for row in rows} == {
            name: (row["parent_id"], row["root"], f"1.{row['number']}") for name, row in self.model.reasonlets.items()
        }
        assert set(self.mem.sql("SELECT run_id FROM runs")["run_id"]) == set(self.model.runs)
        assert set(self.mem.sql("SELECT feedback_id FROM feedback")["feedback_id"]) == set(self.model.feedback)
        assert set(self.mem.sql("SELECT recall_id FROM recalls")["recall_id"]) == set(self.model.recalls)
        check_structure(self.mem)
        for name, _, root, version in rows:
            assert self.labels.setdefault((root, version), name) == name, "a label was given to two procedures"


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
def test_many_more_random_histories():
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def exported_lineages(path):
    """A file with two lineages of scope x, one with versions, a verdict and a recall."""
    with mk.open() as other:
        root = other.reasonlets.capture(scope="x", question="book", graph=graph_of("g"), subject="ada", at=T0)
        child = other.reasonlets.capture(
            scope="x", question="book", graph=graph_of("h"), subject="bob", parent_id=root.reasonlet_id, at=T0
        )
        other.reasonlets.capture(scope="x", question=None, graph=graph_of("k"), at=T0)
        other.reasonlets.feedback(child.run_id, "failure", at=T0)
        other.reasonlets.recall("book", scope="x", at=T0)
        other.reasonlets.export_to(path, scope="x")
    return path


def one_of_many(mem, rng, ids, names, lock, exported):
    """One random call; refusals are part of the game."""
    with lock:
        parent = rng.choice([None, *ids])
        run = rng.choice([None, *names])
    ts = T0 + timedelta(hours=rng.randrange(40))
    try:
        match rng.randrange(13):
            case 0 | 1 | 2 | 3:
                made = mem.reasonlets.capture(
                    scope=rng.choice(["x", "x", "y"]),
                    question=rng.choice(["book a flight", None]),
                    graph=graph_of(rng.choice("abcdef")),
                    outcome="success",
                    subject=rng.choice(["ada", "bob", None]),
                    parent_id=parent,
                )
                with lock:
                    ids.append(made.reasonlet_id)
                    names.append(made.run_id)
            case 4 | 5 if parent is not None:
                mem.reasonlets.record_run(parent, rng.choice(["success", "failure"]), subject="bob")
            case 6 | 7 if run is not None:
                mem.reasonlets.feedback(run, rng.choice(["success", "failure", None]))
            case 8:
                mem.reasonlets.recall("book", scope="x")
            case 9:
                then = datetime.now(UTC) - timedelta(milliseconds=rng.randrange(2000))
                assert (mem.reasonlets.rank(at=then)["ts_captured"] <= then).all()
            case 10:
                mem.reasonlets.erase_scope("y", at=ts)
            case 11:
                mem.reasonlets.import_from(exported)
            case _:
                if rng.random() < 0.5:
                    mem.reasonlets.erase_subject("ada", at=ts)
                else:
                    mem.reasonlets.prune(timedelta(hours=rng.randrange(1, 40)), now=T0)
    except (NotFound, Conflict):
        pass


@pytest.mark.parametrize("seed", [1, 2])
def test_concurrent_histories_keep_the_structure(tmp_path, seed):
    path = tmp_path / "memory.duckdb"
    ids, names, errors, lock = [], [], [], threading.Lock()
    exported = exported_lineages(tmp_path / "x.jsonl")
    with mk.open(path) as one, mk.open(path) as two:

        def work(mem, rng):
            try:
                for _ in range(15):
                    one_of_many(mem, rng, ids, names, lock, exported)
            except Exception as error:
                errors.append(error)

        threads = [
            threading.Thread(target=work, args=(mem, random.Random(10 * seed + n)))
            for n, mem in enumerate(itertools.islice(itertools.cycle((one, two)), 4))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        check_structure(two)
        assert one.reasonlets.rank().equals(two.reasonlets.rank())


def test_a_version_captured_while_its_parent_is_erased_is_noticed_and_the_erasure_done_anew(tmp_path):
    path = tmp_path / "memory.duckdb"
    with mk.open(path) as one, mk.open(path) as two:
        root = one.reasonlets.capture(scope="x", question=None, graph=graph_of("a"), subject="ada")
        tries = []

        def work(con):
            tries.append(con.execute("SELECT count(*) FROM reasonlets").fetchall())
            if len(tries) == 1:
                two.reasonlets.capture(
                    scope="x", question=None, graph=graph_of("b"), subject="bob", parent_id=root.reasonlet_id
                )
            return erase_subject(con, "ada", T0, one._store.keyed_hash)

        assert one._store.write(work).new_roots == 1
        assert len(tries) == 2
        check_structure(one)
        assert one.frame("reasonlets")["version"].to_list() == ["1.1"]
