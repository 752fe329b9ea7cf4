"""What questions are found by: their terms, kept as postings beside the reasonlets.

A question is one document; its reasonlet's ``seq`` is its number. The index grows with every capture and shrinks with
every erasure, in the same transaction. Batches keep the postings clustered by term, so that a search reads only the
stretches of the table that hold its terms.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import polars as pl

from mnemokit.reasonlets.tokens import tokens
from mnemokit.store import Connection, Store, fetch, lend


def add_question(con: Connection, scope: str, seq: int, question: str, ts_captured: datetime) -> None:
    """Index the question of one new reasonlet."""
    found = Counter(tokens(question))
    con.execute(
        "INSERT INTO question_lengths VALUES ($scope, $seq, $terms, $ts)",
        {"scope": scope, "seq": seq, "terms": found.total(), "ts": ts_captured},
    )
    if found:
        con.execute(
            "INSERT INTO postings SELECT $scope, unnest($terms), $seq, unnest($occurrences), $total, $ts",
            {
                "scope": scope,
                "seq": seq,
                "terms": list(found),
                "occurrences": list(found.values()),
                "total": found.total(),
                "ts": ts_captured,
            },
        )


def add_questions(con: Connection, reasonlets: pl.DataFrame) -> None:
    """Index the questions of new reasonlets: columns ``scope``, ``seq``, ``question``, ``ts_captured``."""
    asked = reasonlets.filter(pl.col("question").is_not_null()).select("scope", "seq", "question", "ts_captured")
    if asked.is_empty():
        return
    terms = _terms_of(asked["question"].unique().to_list())
    lengths = terms.group_by("question").agg(terms=pl.col("occurrences").sum())
    indexed = asked.join(lengths, on="question", how="left", maintain_order="left").with_columns(
        pl.col("terms").fill_null(0)
    )
    postings = (
        indexed.join(terms, on="question")
        .select("scope", "term", "seq", "occurrences", "terms", "ts_captured")
        .sort("scope", "term", "seq")
    )
    with lend(con, new_lengths=indexed.select("scope", "seq", "terms", "ts_captured"), new_postings=postings):
        con.execute("INSERT INTO question_lengths BY NAME SELECT * FROM new_lengths")
        before = con.execute("SELECT count(*) FROM postings").fetchall()[0][0]
        con.execute("INSERT INTO postings BY NAME SELECT * FROM new_postings")
    if _doubled(before, before + postings.height):
        _cluster(con)


def bring_up_to_date(store: Store) -> None:
    """Index anew what was indexed by an older rule of terms; to be called once a store is open.

    A migration notes such a store (``question_index`` in ``store_info``), since only here terms are known. A store that
    is only read keeps its older terms: nothing fails, but what only the newer rule finds is not found. Plain ASCII
    questions have the same terms under every rule.
    """
    if store.read_only:
        return
    with store.read() as con:
        due = con.execute("SELECT 1 FROM store_info WHERE name = 'question_index'").fetchall()
    if due:
        store.write(_index_anew)


def _index_anew(con: Connection) -> None:
    outdated = fetch(
        con, "SELECT scope, seq, question, ts_captured FROM reasonlets WHERE strlen(question) > length(question)"
    )
    with lend(con, outdated=outdated.select("seq")):
        con.execute("DELETE FROM postings WHERE seq IN (SELECT seq FROM outdated)")
        con.execute("DELETE FROM question_lengths WHERE seq IN (SELECT seq FROM outdated)")
    add_questions(con, outdated)
    con.execute("DELETE FROM store_info WHERE name = 'question_index'")


def remove_questions(con: Connection) -> None:
    """Take the questions of the reasonlets in the temporary table ``gone`` (column ``seq``) out of the index."""
    con.execute("DELETE FROM postings WHERE seq IN (SELECT seq FROM gone)")
    con.execute("DELETE FROM question_lengths WHERE seq IN (SELECT seq FROM gone)")


def _terms_of(questions: list[str]) -> pl.DataFrame:
    """A row for each question and term: ``question, term, occurrences``."""
    texts: list[str] = []
    terms: list[str] = []
    occurrences: list[int] = []
    for question in questions:
        found = Counter(tokens(question))
        texts += [question] * len(found)
        terms += found
        occurrences += found.values()
    return pl.DataFrame(
        {"question": texts, "term": terms, "occurrences": occurrences},
        schema={"question": pl.String, "term": pl.String, "occurrences": pl.Int64},
    )


_CLUSTER_FROM = 2**17
"""Fewer postings than this are in one stretch anyway (DuckDB's row groups hold 122,880 rows)."""


def _doubled(before: int, after: int) -> bool:
    """Whether the postings grew past a power of two: sorting then costs little for each posting ever added."""
    return after >= _CLUSTER_FROM and before.bit_length() != after.bit_length()


def _cluster(con: Connection) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE clustered_postings AS SELECT * FROM postings ORDER BY scope, term, seq")
    con.execute("DELETE FROM postings")
    con.execute("INSERT INTO postings SELECT * FROM clustered_postings ORDER BY scope, term, seq")
    con.execute("DROP TABLE clustered_postings")
