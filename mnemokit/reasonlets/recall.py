"""Recall: from a question to the procedures that answer it best.

    score = similarity * ((1 - w) + w * rate)        gate: similarity >= min_similarity

Similarity is by words (BM25 over the scope's questions, as a share of what the question itself would get) or by the
vectors of an embedder. One query finds what is similar, rates it by the ranking rule, and keeps the best; as the store
stands it reads the kept record of each reasonlet instead of every run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.frames import FLOAT, INT, TEXT, conform
from mnemokit.reasonlets.embedding import (
    Embedder,
    check_dimensions,
    embedded,
    keep_vectors,
    missing_vectors,
    name_of,
)
from mnemokit.reasonlets.question_index import index_anew_if_due
from mnemokit.reasonlets.ranking import RANK_SCHEMA, rule_values, with_intervals
from mnemokit.reasonlets.tokens import tokens
from mnemokit.records import RankParams
from mnemokit.store import Connection, lend, new_ids, query, take_numbers

RECALL_SCHEMA: dict[str, pl.DataType] = {
    **RANK_SCHEMA,
    "recall_id": TEXT,
    "rank": INT,
    "similarity": FLOAT,
    "score": FLOAT,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One recall: what is asked of the procedural memory.

    Attributes:
        question: The question.
        scope: Where to look.
        limit: How many rows to show.
        min_similarity: Less similar ones are not shown.
        params: The ranking rule, with the weight of the rate in the score.
        subject: The person who asks.
        at: As of this instant; None: as the store stands.
        embedder: Compare by vectors instead of words.
    """

    question: str
    scope: str
    limit: int
    min_similarity: float
    params: RankParams
    subject: str | None
    at: datetime | None
    embedder: Embedder | None


def recall(con: Connection, asked: Asked, *, keep: bool) -> pl.DataFrame:
    """The procedures recalled, best first; see ``Reasonlets.recall`` for the columns. ``recall_id`` is null.

    Args:
        con: The connection.
        asked: What is asked.
        keep: The connection is in a writing transaction: new vectors may be kept, and an index of an older rule of
            terms is brought up to date.

    Raises:
        InvalidInput: If the embedder is none, or gives no proper vectors.
    """
    if asked.embedder is not None:
        return _by_vectors(con, asked, asked.embedder, keep=keep)
    if keep:
        index_anew_if_due(con)
    return _by_words(con, asked)


def log(con: Connection, asked: Asked, shown: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Keep what was asked and shown, inside the caller's transaction; returns the rows with their ``recall_id``."""
    recall_id = new_ids("rc_")[0]
    con.execute(
        "INSERT INTO recalls (recall_id, scope, question, subject, weight, shown, ts_recalled, seq) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            recall_id,
            asked.scope,
            asked.question,
            asked.subject,
            asked.params.weight,
            shown.height,
            now,
            take_numbers(con, "seq"),
        ],
    )
    if shown.height:
        columns = shown.select("rank", "reasonlet_id", "similarity", "rate", "score").to_dict(as_series=False)
        con.execute(
            "INSERT INTO recall_rows SELECT $recall_id, unnest($rank), unnest($reasonlet_id), unnest($similarity), "
            "unnest($rate), unnest($score)",
            {"recall_id": recall_id, **columns},
        )
    return shown.with_columns(recall_id=pl.lit(recall_id, dtype=TEXT))


def _by_words(con: Connection, asked: Asked) -> pl.DataFrame:
    terms = Counter(tokens(asked.question))
    if not terms:
        return pl.DataFrame(schema=RECALL_SCHEMA)
    return _best(
        con,
        asked,
        "recall_words",
        {
            "terms": list(terms),
            "occurrences": list(terms.values()),
            "length": terms.total(),
            "k1": asked.params.bm25_k1,
            "b": asked.params.bm25_b,
        },
    )


def _by_vectors(con: Connection, asked: Asked, embedder: Embedder, *, keep: bool) -> pl.DataFrame:
    name = name_of(embedder)
    vector = embedded(embedder, [asked.question])[0]
    check_dimensions(con, name, vector.size)
    missing = missing_vectors(con, embedder, name, asked.scope)
    if keep:
        keep_vectors(con, name, missing)
        missing = missing.clear()
    with lend(con, more_vectors=missing):
        return _best(con, asked, "recall_vectors", {"embedder": name, "asked": vector.tolist()})


_SELECTED = (
    "reasonlet_id",
    "version",
    "parent_id",
    "n",
    "s",
    "prior",
    "prior_source",
    "rate",
    "own",
    "parent_rate",
    "scope",
    "question",
    "ts_captured",
    "similarity",
    "score",
)
"""The columns of sql/recall_best.sql, in its order."""
_AS_IT_STANDS = ("recall_records",)
_AS_OF = ("recall_gate", "rank_counted", "rank_records")


def _best(con: Connection, asked: Asked, similarity: str, values: dict[str, object]) -> pl.DataFrame:
    """The best rows by score, among what the named query finds similar."""
    parts = [similarity, *(_AS_IT_STANDS if asked.at is None else _AS_OF), "rank_rates", "recall_best"]
    found = con.execute(
        f"WITH {' '.join(query(part) for part in parts)}",
        {
            "scope": asked.scope,
            "at": asked.at,
            "weight": asked.params.weight,
            "min_similarity": asked.min_similarity,
            "most": asked.limit,
            **rule_values(asked.params),
            **values,
        },
    ).fetchall()
    rows = pl.DataFrame(found, schema={name: RECALL_SCHEMA[name] for name in _SELECTED}, orient="row")
    shown = with_intervals(rows, asked.params).with_columns(
        recall_id=pl.lit(None, dtype=TEXT), rank=pl.int_range(pl.len(), dtype=INT) + 1
    )
    return conform(shown, RECALL_SCHEMA)
