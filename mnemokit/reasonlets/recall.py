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
        keep: The connection is in a writing transaction: new vectors may be kept.

    Raises:
        InvalidInput: If the embedder is none, or gives no proper vectors.
    """
    if asked.embedder is not None:
        return _by_vectors(con, asked, asked.embedder, keep=keep)
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


_ADDED_LATER = ("rate_low", "rate_high", "recall_id", "rank")
_BEST_SCHEMA = {
    **{name: dtype for name, dtype in RECALL_SCHEMA.items() if name not in _ADDED_LATER},
    "rated_in_all": INT,
    "least_similar": FLOAT,
}
"""The columns of sql/recall_best.sql, in its order."""
RATED_FIRST = 640
"""So many of the most similar ones are rated first: 64 for each row to be shown, in steps of ten rows."""
_ALL = 2**62
"""More rows than there can be."""
_AS_IT_STANDS = ("recall_records",)
_AS_OF = ("recall_gate", "rank_counted", "rank_records")


def _best(con: Connection, asked: Asked, similarity: str, values: dict[str, object]) -> pl.DataFrame:
    """The best rows by score, among what the named query finds similar."""
    values = {"scope": asked.scope, "at": asked.at, **rule_values(asked.params), **values}
    if asked.at is None:
        found = _rated_as_it_stands(con, asked, similarity, values)
    else:
        found = _rated(con, asked, (similarity, *_AS_OF), asked.min_similarity, values)
    shown = with_intervals(found, asked.params).with_columns(
        recall_id=pl.lit(None, dtype=TEXT), rank=pl.int_range(pl.len(), dtype=INT) + 1
    )
    return conform(shown, RECALL_SCHEMA)


def _rated_as_it_stands(con: Connection, asked: Asked, similarity: str, values: dict[str, object]) -> pl.DataFrame:
    """The best as the store stands. Only the closest are rated where the others cannot be among the best.

    No score is above its similarity: where even the worst of the best has a score above the similarity of the last one
    rated, these are the best of all. Where it has not, that score is reached in any case, and is the gate for rating
    all that pass it.
    """
    parts, closest = (similarity, *_AS_IT_STANDS), min(_ALL, RATED_FIRST * max(1, asked.limit // 10))
    found = _rated(con, asked, parts, asked.min_similarity, {**values, "closest": closest})
    if found.is_empty():
        return found
    # These are sums of floating-point numbers: what is above by less than this may be equal.
    reached = found["score"][-1] * (1 - 1e-9)
    if found["rated_in_all"][-1] < closest or found["least_similar"][-1] < reached:
        return found
    return _rated(con, asked, parts, max(asked.min_similarity, reached), {**values, "closest": _ALL})


def _rated(
    con: Connection, asked: Asked, parts: tuple[str, ...], gate: float, values: dict[str, object]
) -> pl.DataFrame:
    """What sql/recall_best.sql finds, with the named parts of a WITH before it."""
    sql = "WITH " + " ".join(query(part) for part in (*parts, "rank_rates", "recall_best"))
    named = {"weight": asked.params.weight, "min_similarity": gate, "most": min(asked.limit, _ALL), **values}
    return pl.DataFrame(con.execute(sql, named).fetchall(), schema=_BEST_SCHEMA, orient="row")
