"""What questions are found by: their terms, kept as postings beside the reasonlets.

A question is one document; its reasonlet's ``seq`` is its number. The index grows with every capture and shrinks with
every erasure, in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import polars as pl

from mnemokit.store import Connection, lend
from mnemokit.tokens import tokens


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
    distinct = asked.select(pl.col("question").unique())
    counts = [Counter(tokens(question)) for question in distinct["question"]]
    terms = distinct.with_columns(
        term=pl.Series([list(count) for count in counts], dtype=pl.List(pl.String)),
        occurrences=pl.Series([list(count.values()) for count in counts], dtype=pl.List(pl.Int64)),
        terms=pl.Series([count.total() for count in counts], dtype=pl.Int64),
    )
    indexed = asked.join(terms, on="question", how="left", maintain_order="left")
    postings = (
        indexed.select("scope", "term", "seq", "occurrences", "terms", "ts_captured")
        .explode("term", "occurrences")
        .drop_nulls("term")
        .sort("scope", "term", "seq")
    )
    with lend(con, new_lengths=indexed.select("scope", "seq", "terms", "ts_captured"), new_postings=postings):
        con.execute("INSERT INTO question_lengths BY NAME SELECT * FROM new_lengths")
        con.execute("INSERT INTO postings BY NAME SELECT * FROM new_postings")


def remove_questions(con: Connection) -> None:
    """Take the questions of the reasonlets in the temporary table ``gone`` (column ``seq``) out of the index."""
    con.execute("DELETE FROM postings WHERE seq IN (SELECT seq FROM gone)")
    con.execute("DELETE FROM question_lengths WHERE seq IN (SELECT seq FROM gone)")
