"""Vectors for questions, for those who want meaning beside words.

Any object with ``embed(texts) -> float32[n, d]`` can be given to ``mem.reasonlets.recall(embedder=...)``. The extra
``embed`` brings one whose weights are inside its package, so that nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from mnemokit.errors import InvalidInput, MissingExtra
from mnemokit.store import Connection, fetch, lend, query

Vectors = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. An attribute ``name`` (a text) keeps the vectors of different embedders apart."""

    def embed(self, texts: list[str]) -> Vectors:
        """The vectors of texts, one row each."""
        ...


class WordLlamaEmbedder:
    """Word vectors of a language model, averaged: small, fast on a CPU, and inside the package ``wordllama``.

    Raises:
        MissingExtra: If wordllama is not installed (``pip install 'mnemokit[embed]'``).

    Example:
        >>> WordLlamaEmbedder().embed(["refund an order"]).shape
        (1, 256)
    """

    name = "wordllama-l2_supercat-256"

    def __init__(self) -> None:
        """Load the weights from the package's own folder; downloads are switched off."""
        try:
            import wordllama
        except ImportError as error:
            raise MissingExtra(
                "WordLlamaEmbedder needs the package wordllama; install mnemokit with its extra: mnemokit[embed]"
            ) from error
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: list[str]) -> Vectors:
        """The vectors of texts: float32, 256 numbers each."""
        return np.asarray(self._model.embed(texts), dtype=np.float32)


def name_of(embedder: Embedder) -> str:
    """The name that an embedder's vectors are kept under.

    Example:
        >>> name_of(WordLlamaEmbedder())
        'wordllama-l2_supercat-256'
    """
    return str(getattr(embedder, "name", type(embedder).__qualname__))


def embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """The vectors of texts, checked.

    Raises:
        InvalidInput: If they are not one finite row of float32 per text.
    """
    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[0] != len(texts) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"the embedder {name_of(embedder)!r} gave an array of shape {vectors.shape} for {len(texts)} texts; "
            "it must give one row of finite numbers per text; nothing was written"
        )
    return vectors


def missing_vectors(con: Connection, embedder: Embedder, scope: str) -> pl.DataFrame:
    """Vectors of a scope's questions that the store does not hold yet: ``seq, vector``."""
    missing = fetch(con, query("vectors_missing"), {"embedder": name_of(embedder), "scope": scope})
    if missing.is_empty():
        return pl.DataFrame(schema={"seq": pl.Int64, "vector": pl.List(pl.Float32)})
    distinct = missing["question"].unique(maintain_order=True)
    vectors = pl.DataFrame(
        {
            "question": distinct,
            "vector": pl.Series(list(embedded(embedder, distinct.to_list())), dtype=pl.List(pl.Float32)),
        }
    )
    return missing.join(vectors, on="question", how="left", maintain_order="left").select("seq", "vector")


def keep_vectors(con: Connection, embedder: Embedder, vectors: pl.DataFrame) -> None:
    """Store vectors (``seq, vector``), inside the caller's transaction."""
    if vectors.height:
        with lend(con, new_vectors=vectors):
            con.execute("INSERT INTO vectors SELECT $name, seq, vector FROM new_vectors", {"name": name_of(embedder)})
