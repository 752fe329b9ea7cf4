"""Recall: what is similar, what is shown first, and what is kept of it."""

from __future__ import annotations

import itertools
import json
import random
import sys
from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.migrations import migrate, packaged_migrations
from mnemokit.reasonlets import recall as recalls
from mnemokit.reasonlets.embedding import Embedder, WordLlamaEmbedder
from mnemokit.reasonlets.ranking import RANK_SCHEMA
from mnemokit.reasonlets.recall import RATED_FIRST, RECALL_SCHEMA
from mnemokit.reasonlets.tokens import tokens
from tests.oracles import bm25 as oracle

T0 = datetime(2025, 3, 1, tzinfo=UTC)
EXACT = 1e-12


def hour(n):
    return T0 + timedelta(hours=n)


@pytest.fixture
def mem():
    with mk.open() as opened:
        yield opened


def known(mem, *questions, scope="s", outcome="success", start=0):
    """Reasonlets for questions, an hour apart; reasonlet_id -> question."""
    return {
        mem.reasonlets.capture(
            scope=scope, question=question, graph={}, outcome=outcome, at=hour(start + n)
        ).reasonlet_id: question
        for n, question in enumerate(questions)
    }


# Terms --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Refund the ORDER, please!", ["refund", "the", "order", "please"]),
        ("get_user_details v2.1", ["get", "user", "details", "v2", "1"]),
        ("Größe der Straße", ["grösse", "der", "strasse"]),
        ("L'ordine è già partito", ["l", "ordine", "è", "già", "partito"]),
        ("退款政策", ["退", "退款", "款", "款政", "政", "政策", "策"]),
        ("退 ok 款", ["退", "ok", "款"]),
        ("東京タワー2025", ["東", "東京", "京", "京タ", "タ", "タワ", "ワ", "ワー", "ー", "2025"]),
        ("환불 요청", ["환", "환불", "불", "요", "요청", "청"]),
        ("人々", ["人", "人々", "々"]),
        ("Rück\u00adgabe", ["rückgabe"]),
        ("re\u200bfund \ufeffnow", ["refund", "now"]),
        ("👍", ["👍"]),
        ("thanks 👍🏽!", ["thanks", "👍"]),
        ("❤️", ["❤"]),
        ("👩\u200d💻", ["👩", "👩💻", "💻"]),
        ("🇩🇪 ok", ["🇩", "🇩🇪", "🇪", "ok"]),
        ("款👍", ["款", "👍"]),
        ("ﬁle ＡＢＣ １２", ["file", "abc", "12"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("e\u0301cole École", ["école", "école"]),
        ("", []),
        ("!?… —", []),
    ],
)
def test_terms_are_nfkc_case_folded_runs_of_letters_and_in_unspaced_scripts_characters_and_pairs(text, terms):
    assert tokens(text) == terms


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=12))
def test_terms_are_those_of_the_plain_python_rule(text):
    assert tokens(text) == oracle.tokens(text)


# Similarity ---------------------------------------------------------------------------------------------------------

WORD = st.sampled_from(["refund", "order", "the", "Straße", "退款", "già", "rückgabe", "42"])
QUESTION = st.lists(WORD, min_size=1, max_size=6).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(QUESTION | st.none(), max_size=8), QUESTION | st.just("unseen words"))
def test_similarity_is_bm25_as_a_share_of_what_the_question_itself_would_get(questions, asked):
    with mk.open() as mem:
        ids = known(mem, *questions)
        known(mem, "refund refund order", scope="elsewhere")
        shown = mem.reasonlets.recall(asked, scope="s", limit=100, log=False)
        expected = oracle.similarities(asked, ids)
        found = dict(shown.select("reasonlet_id", "similarity").iter_rows())
        assert found.keys() == expected.keys()
        for name, similarity in expected.items():
            assert found[name] == pytest.approx(similarity, abs=EXACT)
            if oracle.tokens(ids[name]) == oracle.tokens(asked):
                assert found[name] == pytest.approx(1.0, abs=EXACT)


def test_a_question_without_a_shared_term_gives_no_row_and_none_is_never_recalled(mem):
    known(mem, "refund an order", None)
    assert mem.reasonlets.recall("book a flight", scope="s").is_empty()
    assert mem.reasonlets.recall("?!", scope="s").is_empty()
    assert mem.reasonlets.recall("None", scope="s").is_empty()
    assert mem.reasonlets.recall("refund", scope="nowhere").is_empty()
    assert mem.reasonlets.recall("refund", scope="s").height == 1


def test_unseen_terms_count_against_the_similarity(mem):
    known(mem, "refund an order", "book a flight", "cancel a trip")
    whole = mem.reasonlets.recall("refund an order", scope="s")["similarity"][0]
    diluted = mem.reasonlets.recall("refund an order zebra quagga", scope="s")["similarity"][0]
    assert whole == pytest.approx(1.0, abs=EXACT)
    assert diluted < 0.7


def test_a_question_that_repeats_the_terms_more_is_clipped_to_one(mem):
    known(mem, "refund refund refund", "order", "trip")
    assert mem.reasonlets.recall("refund", scope="s")["similarity"].item() <= 1.0


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Wie lange dauert die Rückgabe der Größe XL?", "RÜCKGABE GRÖSSE"),
        ("Perché il mio ordine è già partito?", "ordine già partito"),
        ("如何申请退款", "退款"),
        ("注文をキャンセルしたい", "キャンセル"),
        ("如何申请退款", "退"),
        ("人々の注文", "々"),
        ("Wie lange dauert die Rück\u00adgabe?", "Rückgabe"),
        ("Wo ist mein Paket? 😡", "😡"),
        ("I ❤ this order", "❤️"),
    ],
)
def test_german_italian_chinese_and_japanese_questions_are_found(mem, question, asked):
    ids = known(mem, "refund an order", question, "book a flight")
    shown = mem.reasonlets.recall(asked, scope="s")
    assert [ids[name] for name in shown["reasonlet_id"]] == [question]


# Score --------------------------------------------------------------------------------------------------------------


def scored_by_hand(mem, ids, asked, weight, at=None):
    similarities = oracle.similarities(asked, ids)
    rates = dict(mem.reasonlets.rank(at=at).select("reasonlet_id", "rate").iter_rows())
    return {name: each * ((1 - weight) + weight * rates[name]) for name, each in similarities.items()}


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_the_score_is_similarity_times_the_weighted_rate_and_the_best_come_first(mem, weight):
    ids = known(mem, "refund an order", "refund a broken order", "refund", "order a book")
    for n, name in enumerate(ids):
        for _ in range(n * 2):
            mem.reasonlets.record_run(name, "failure" if n % 2 else "success")
    shown = mem.reasonlets.recall("refund an order", scope="s", weight=weight)
    expected = scored_by_hand(mem, ids, "refund an order", weight)
    assert dict(shown.select("reasonlet_id", "score").iter_rows()) == pytest.approx(expected, abs=EXACT)
    assert shown["score"].to_list() == sorted(shown["score"], reverse=True)
    assert shown["rank"].to_list() == [1, 2, 3, 4]


def test_recall_has_the_columns_of_rank_and_its_own_also_when_empty(mem):
    ids = known(mem, "refund an order", "refund")
    shown = mem.reasonlets.recall("refund", scope="s")
    assert list(shown.schema) == [*RANK_SCHEMA, "recall_id", "rank", "similarity", "score"]
    assert mem.reasonlets.recall("zebra", scope="s").schema == shown.schema == pl.Schema(RECALL_SCHEMA)
    ranked = mem.reasonlets.rank()
    for name in ids:
        both = [frame.filter(reasonlet_id=name).select(*RANK_SCHEMA) for frame in (shown, ranked)]
        assert both[0].equals(both[1])


def test_min_similarity_is_a_gate_and_limit_cuts(mem):
    known(mem, "refund an order", "refund a ticket", "refund for a very long flight to somewhere far away")
    every = mem.reasonlets.recall("refund an order", scope="s")
    gate = every["similarity"].sort()[1]
    gated = mem.reasonlets.recall("refund an order", scope="s", min_similarity=gate)
    assert gated["similarity"].min() >= gate
    assert gated.height == every.height - 1
    assert mem.reasonlets.recall("refund an order", scope="s", limit=1).height == 1


WORDS = ["refund", "order", "ticket", "cancel", "flight", "book", "change", "seat", "now", "please"]


def test_a_question_in_its_own_words_passes_the_highest_gate(mem):
    rng = random.Random(5)
    questions = [" ".join(rng.sample(WORDS, k=rng.randint(3, 9))) for _ in range(150)]
    known(mem, *questions)
    for question in questions[:40]:
        for at in (None, hour(200)):
            for embedder in (None, Rounded()):
                shown = mem.reasonlets.recall(
                    question, scope="s", min_similarity=1.0, limit=150, at=at, log=False, embedder=embedder
                )
                assert question in shown["question"].to_list()
                assert set(shown["similarity"]) == {1.0}


def test_a_similarity_that_was_shown_is_a_gate_that_lets_its_row_through(mem):
    rng = random.Random(6)
    known(mem, *(" ".join(rng.sample(WORDS, k=rng.randint(3, 9))) for _ in range(60)))
    every = mem.reasonlets.recall("cancel refund order", scope="s", limit=100, log=False)
    for gate in every["similarity"]:
        shown = mem.reasonlets.recall("cancel refund order", scope="s", limit=100, log=False, min_similarity=gate)
        assert shown.height == every.filter(pl.col("similarity") >= gate).height


def test_equal_scores_go_to_more_runs_then_newer_then_id(mem):
    ids = list(known(mem, "refund", "refund", "refund", outcome=None))
    for name, outcomes in ((ids[1], ["success", "failure"]),):
        for outcome in outcomes:
            mem.reasonlets.record_run(name, outcome)
    assert mem.reasonlets.recall("refund", scope="s")["reasonlet_id"].to_list() == [ids[1], ids[2], ids[0]]
    with mk.open() as other:
        at_once = [
            other.reasonlets.capture(scope="s", question="refund", graph={}, at=T0).reasonlet_id for _ in range(4)
        ]
        assert other.reasonlets.recall("refund", scope="s")["reasonlet_id"].to_list() == sorted(at_once)


def test_recall_as_of_a_time_shows_nothing_later_in_corpus_records_or_rows(mem):
    ids = known(mem, "refund an order", "refund a ticket", "refund", "order")
    first, second = list(ids)[:2]
    mem.reasonlets.record_run(first, "failure", at=hour(10))
    run = mem.reasonlets.record_run(second, "failure", at=hour(1))
    mem.reasonlets.feedback(run, "success", at=hour(12))
    for n in (0, 1, 2, 9, 10, 12):
        visible = {name: text for place, (name, text) in enumerate(ids.items()) if place <= n}
        shown = mem.reasonlets.recall("refund an order", scope="s", at=hour(n), log=False)
        expected = scored_by_hand(mem, visible, "refund an order", 1.0, at=hour(n))
        assert dict(shown.select("reasonlet_id", "score").iter_rows()) == pytest.approx(expected, abs=EXACT)
    now = mem.reasonlets.recall("refund an order", scope="s", log=False)
    late = mem.reasonlets.recall("refund an order", scope="s", at=hour(99), log=False)
    assert now.equals(late)


def many_captured(mem, rng):
    """1,500 reasonlets for questions of five words, versions among them, with 4,000 runs; reasonlet_id -> question."""
    words = ["refund", "order", "cancel", "flight", "book"]
    ids, graphs = {}, {}
    for batch in range(3):
        parents = [rng.choice([None, *ids]) if ids else None for _ in range(500)]
        asked = [" ".join(rng.choices(words, k=rng.randint(1, 5))) for _ in parents]
        new = [json.dumps({"nodes": [{"id": f"{batch}.{n}"}]}) for n in range(500)]
        ts = [hour(batch) + timedelta(seconds=n // 2) for n in range(500)]
        made = mem.reasonlets.capture_many(
            pl.DataFrame({"scope": "s", "question": asked, "graph": new, "parent_id": parents, "ts": ts})
        )["reasonlet_id"].to_list()
        ids |= dict(zip(made, asked, strict=True))
        graphs |= dict(zip(made, new, strict=True))
    # Few are good, so that the best record may belong to one that is not among the most similar.
    good = {name for name in ids if rng.random() < 0.01}
    run = rng.choices(list(ids), k=4_000)
    outcomes = ["success" if name in good else rng.choice(["failure", "failure", None]) for name in run]
    mem.reasonlets.capture_many(
        pl.DataFrame(
            {
                "scope": "s",
                "question": None,
                "graph": [graphs[name] for name in run],
                "parent_id": run,
                "outcome": outcomes,
                "ts": hour(9),
            },
            schema_overrides={"question": pl.String},
        )
    )
    return ids


def test_what_is_shown_is_the_best_of_all_that_is_similar_though_only_few_are_rated(mem):
    ids = many_captured(mem, random.Random(7))
    rates = dict(mem.reasonlets.rank().select("reasonlet_id", "rate").iter_rows())
    enough = set()
    for asked in ("refund order", "cancel a flight", "book book ticket unseen", "order"):
        similarities = oracle.similarities(asked, ids)
        closest = sorted(similarities.values(), reverse=True)
        for limit, weight in itertools.product((1, 3, 10), (0.0, 0.3, 1.0)):
            shown = mem.reasonlets.recall(asked, scope="s", limit=limit, weight=weight, log=False)
            scores = [each * ((1 - weight) + weight * rates[name]) for name, each in similarities.items()]
            expected = sorted(scores, reverse=True)[:limit]
            assert shown["score"].to_list() == pytest.approx(expected, abs=EXACT)
            # As of a time all are rated.
            late = mem.reasonlets.recall(asked, scope="s", limit=limit, weight=weight, log=False, at=hour(99))
            assert shown.equals(late)
            enough.add(len(closest) <= RATED_FIRST or closest[RATED_FIRST] < expected[-1])
    assert enough == {True, False}, "the closest are enough for some of these, and not for others"


def test_a_limit_above_what_there_is_gives_all(mem):
    known(mem, "refund an order", "refund", "order")
    every = mem.reasonlets.recall("refund order", scope="s", log=False)
    assert every.height == 3
    for limit in (1000, 10**18, sys.maxsize, 10**30):
        for at in (None, hour(99)):
            assert mem.reasonlets.recall("refund order", scope="s", limit=limit, at=at, log=False).equals(every)


def test_ties_and_long_lists_are_right_beyond_those_that_are_rated_first(mem):
    n = RATED_FIRST + 360
    asked = pl.DataFrame({"question": ["refund an order"] * n}).with_columns(
        scope=pl.lit("s"), graph=pl.lit("{}"), ts=pl.lit(T0) + pl.duration(seconds=pl.int_range(n) // 7)
    )
    ids = mem.reasonlets.capture_many(asked)["reasonlet_id"].to_list()
    for name in ids[-5:]:
        mem.reasonlets.record_run(name, "failure", at=hour(1))
    rows = mem.reasonlets.rank().select("reasonlet_id", "n", "rate", "ts_captured").rows()
    for weight, limit in ((0.0, 3), (0.0, RATED_FIRST + 100), (1.0, 3), (1.0, n)):
        shown = mem.reasonlets.recall("refund an order", scope="s", limit=limit, weight=weight, log=False)
        score = {name: 1 - weight + weight * rate for name, _, rate, _ in rows}
        ordered = sorted(rows, key=lambda row: (-round(score[row[0]], 12), -row[1], -row[3].timestamp(), row[0]))
        assert shown["reasonlet_id"].to_list() == [row[0] for row in ordered[:limit]]


def test_what_is_read_is_of_one_moment_though_another_store_of_the_file_erases(tmp_path, monkeypatch):
    path = tmp_path / "memory.duckdb"
    with mk.open(path) as one, mk.open(path) as two:
        kept = one.reasonlets.capture_many(
            pl.DataFrame({"scope": "s", "question": ["order some other things"] * 20, "graph": "{}"})
        )
        two.reasonlets.capture_many(
            pl.DataFrame({"scope": "s", "question": ["refund an order"] * 1000, "graph": "{}", "subject": "ada"})
        )
        rated, gates = recalls._rated, []

        def erasing_between(con, asked, parts, gate, values):
            found = rated(con, asked, parts, gate, values)
            if not gates:
                two.reasonlets.erase_subject("ada")
            gates.append(gate)
            return found

        monkeypatch.setattr(recalls, "_rated", erasing_between)
        assert one.reasonlets.recall("refund an order", "s", log=False).height == 10
        assert len(gates) == 2, "the second look is the one that could find nothing any more"
        monkeypatch.undo()
        after = one.reasonlets.recall("refund an order", "s", limit=50, log=False)
        assert set(after["reasonlet_id"]) == set(kept["reasonlet_id"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"limit": 0}, "limit must be at least 1"),
        ({"min_similarity": 1.5}, "min_similarity must be from 0 to 1"),
        ({"min_similarity": float("nan")}, "min_similarity must be from 0 to 1"),
        ({"weight": -0.1}, "weight must be from 0 to 1"),
        ({"question": ""}, "question must be a text that is not empty"),
        ({"question": None}, "question must be a text that is not empty"),
    ],
)
def test_arguments_out_of_range_are_refused(mem, change, why):
    with pytest.raises(InvalidInput, match=why):
        mem.reasonlets.recall(**{"question": "q", "scope": "s", **change})


# What is kept -------------------------------------------------------------------------------------------------------


def test_a_recall_is_kept_with_what_it_showed(mem):
    known(mem, "refund an order", "refund")
    shown = mem.reasonlets.recall("refund an order", scope="s", subject="ada", weight=0.5, at=hour(5))
    kept = mem.frame("recalls").row(0, named=True)
    assert shown["recall_id"].unique().to_list() == [kept["recall_id"]]
    assert kept == {
        "recall_id": kept["recall_id"],
        "scope": "s",
        "question": "refund an order",
        "subject": "ada",
        "weight": 0.5,
        "shown": 2,
        "ts_recalled": hour(5),
    }
    rows = mem.frame("recall_rows")
    columns = ["recall_id", "rank", "reasonlet_id", "similarity", "rate", "score"]
    assert rows.sort("rank").select(columns).equals(shown.select(columns))


def test_log_false_keeps_nothing_and_an_empty_recall_is_kept_as_shown_zero(mem):
    known(mem, "refund")
    quiet = mem.reasonlets.recall("refund", scope="s", log=False)
    assert quiet["recall_id"].to_list() == [None]
    assert mem.frame("recalls").is_empty()
    mem.reasonlets.recall("zebra", scope="s")
    assert mem.frame("recalls")["shown"].to_list() == [0]


def test_a_read_only_store_recalls_and_keeps_nothing(tmp_path):
    path = tmp_path / "memory.duckdb"
    with mk.open(path) as mem:
        known(mem, "refund")
    with mk.open(path, read_only=True) as mem:
        assert mem.reasonlets.recall("refund", scope="s")["recall_id"].to_list() == [None]
        assert mem.reasonlets.recall("refund", scope="s", embedder=Letters())["similarity"].item() == pytest.approx(1.0)
        assert mem.frame("recalls").is_empty()


# Vectors ------------------------------------------------------------------------------------------------------------


class Letters:
    """Counts of letters: an embedder whose cosines can be worked out by hand."""

    name = "letters"

    def __init__(self):
        self.embedded = []

    def embed(self, texts):
        self.embedded += texts
        return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=np.float32)


def test_an_embedders_cosine_is_the_similarity_and_its_vectors_are_kept(mem):
    ids = known(mem, "aab", "ccd", "abcd", "xyz", "aab")
    letters = Letters()
    assert isinstance(letters, Embedder)
    shown = mem.reasonlets.recall("ab", scope="s", embedder=letters)
    found = {ids[name]: similarity for name, similarity in shown.select("reasonlet_id", "similarity").iter_rows()}
    assert found == pytest.approx({"aab": 3 / 10**0.5, "abcd": 1 / 2**0.5}, abs=1e-6)
    assert sorted(letters.embedded) == ["aab", "ab", "abcd", "ccd", "xyz"], "each text once"
    letters.embedded.clear()
    again = mem.reasonlets.recall("ab", scope="s", embedder=letters)
    assert letters.embedded == ["ab"]
    assert again.drop("recall_id").equals(shown.drop("recall_id"))
    mem.reasonlets.erase_scope("s")
    assert mem.sql("SELECT count(*) AS n FROM vectors")["n"].item() == 0


class Rounded:
    """Vectors with many digits, whose cosine with themselves is not exactly 1 in every way of adding up."""

    name = "rounded"

    def embed(self, texts):
        return np.array(
            [[text.count(letter) / 3 + 0.1 for letter in "abcdefghijklmnop"] for text in texts], dtype=np.float32
        )


class Weighted:
    """An embedder without a name of its own, that can have other weights and another number of dimensions."""

    def __init__(self, letters, weight=1.0):
        self.letters = letters
        self.weight = weight
        self.embedded = []

    def embed(self, texts):
        self.embedded += texts
        counts = [[text.count(letter) * self.weight**n for n, letter in enumerate(self.letters)] for text in texts]
        return np.array(counts, dtype=np.float32)


def test_embedders_of_one_class_with_other_dimensions_or_weights_do_not_share_vectors(mem):
    known(mem, "aab", "ccd")
    three, four, heavy = Weighted("abc"), Weighted("abcd"), Weighted("abc", weight=5.0)
    for embedder in (three, four, heavy, three):
        shown = mem.reasonlets.recall("aab", scope="s", embedder=embedder)
        assert (shown["question"][0], shown["similarity"][0]) == ("aab", 1.0)
    for embedder in (three, four, heavy):
        assert embedder.embedded.count("ccd") == 1, "what is kept is used again"
    assert mem.sql("SELECT count(DISTINCT embedder) AS n, count(*) AS vectors FROM vectors").row(0) == (3, 6)


def test_vectors_kept_by_the_name_of_the_class_alone_are_not_used(mem):
    known(mem, "aab")
    mem._store.write(
        lambda con: con.execute("INSERT INTO vectors SELECT 'Weighted', seq, [0.0, 0.0, 1.0] FROM reasonlets")
    )
    assert mem.reasonlets.recall("aab", scope="s", embedder=Weighted("abc"))["similarity"].to_list() == [1.0]


def test_a_named_embedder_that_changes_its_dimensions_is_refused_and_writes_nothing(mem):
    known(mem, "aab", "ccd")
    mem.reasonlets.recall("aab", scope="s", embedder=Letters())
    changed = Weighted("abc")
    changed.name = "letters"
    for log in (True, False):
        with pytest.raises(
            InvalidInput, match=r"'letters' gave vectors of 3 numbers.*nothing was written.*another name"
        ):
            mem.reasonlets.recall("aab", scope="s", embedder=changed, log=log)
    assert mem.frame("recalls").height == 1
    assert mem.reasonlets.recall("aab", scope="s", embedder=Letters()).height == 1


@pytest.mark.parametrize("wrong", [object(), "letters", 3, Letters])
def test_what_is_no_embedder_is_refused(mem, wrong):
    known(mem, "refund")
    with pytest.raises(InvalidInput, match=r"embedder must be an object with a method embed\(texts\).*nothing was"):
        mem.reasonlets.recall("refund", scope="s", embedder=wrong)


def test_an_embedder_that_gives_the_wrong_shape_or_no_numbers_is_refused(mem):
    known(mem, "refund")

    class Wrong:
        def __init__(self, vectors):
            self.vectors = vectors

        def embed(self, texts):
            return self.vectors

    for vectors in (
        np.zeros(3, dtype=np.float32),
        np.full((1, 3), np.nan, dtype=np.float32),
        np.zeros((1, 0), dtype=np.float32),
        [[1.0, 1e300]],
        [["a", "b"]],
        [[1.0], [1.0, 2.0]],
        None,
    ):
        with pytest.raises(InvalidInput, match="must give one row of finite numbers per text"):
            mem.reasonlets.recall("refund", scope="s", embedder=Wrong(vectors))


def test_word_vectors_from_inside_the_wheel_find_meaning_beside_words(mem):
    ids = known(mem, "give the customer their money back", "book a flight to Rome")
    shown = mem.reasonlets.recall("reimburse a client payment", scope="s", embedder=WordLlamaEmbedder())
    assert ids[shown["reasonlet_id"][0]] == "give the customer their money back"
    assert 0 < shown["similarity"][0] <= 1


# Stores made before ----------------------------------------------------------------------------------------------


def test_a_store_whose_questions_were_indexed_by_the_older_terms_is_indexed_anew_when_it_is_opened(tmp_path):
    path = tmp_path / "memory.duckdb"
    with mk.open(path) as mem:
        known(mem, "如何申请退款", "refund an order", "Rück\u00adgabe", "é", None)
        fresh = index_of(mem)
    with duckdb.connect(str(path)) as con:
        # As the older rule left it: pairs only, a word cut in two; and what the migration notes of such a store.
        con.execute("DELETE FROM postings WHERE strlen(term) = 3")
        con.execute("UPDATE postings SET term = 'rück' WHERE term = 'rückgabe'")
        con.execute("UPDATE question_lengths SET terms = 5 WHERE terms = 11")
        con.execute("INSERT INTO store_info VALUES ('question_index', 'to be made anew')")
    with mk.open(path) as mem:
        assert index_of(mem) == fresh
        assert mem.reasonlets.recall("退", scope="s", log=False)["question"].to_list() == ["如何申请退款"]
        assert mem.reasonlets.recall("rückgabe", scope="s", log=False).height == 1


@pytest.mark.parametrize("questions", [0, 1])
def test_a_migration_notes_that_the_questions_of_an_older_store_are_to_be_indexed_anew(questions):
    con = duckdb.connect()
    migrate(con, packaged_migrations()[:2])
    con.execute("INSERT INTO question_lengths SELECT 's', seq, 1, now() FROM range(?) AS made(seq)", [questions])
    migrate(con, packaged_migrations())
    assert con.execute("SELECT count(*) FROM store_info WHERE name = 'question_index'").fetchall() == [(questions,)]
    con.close()


def index_of(mem):
    return (
        mem.sql("SELECT * FROM postings ORDER BY seq, term").rows(),
        mem.sql("SELECT * FROM question_lengths ORDER BY seq").rows(),
    )
