"""Vectors for questions, for those who want meaning beside words.

Any object with ``embed(texts) -> float32[n, d]`` can be given to ``mem.reasonlets.recall(embedder=...)``. The extra
``embed`` brings one whose weights are inside its package, so that nothing is downloaded.

Vectors are kept, so that each question is embedded once. They are kept by the embedder's ``name`` if it has one;
whoever gives a name changes it with the weights. Without one they are kept by its class, its number of dimensions and
what it makes of a fixed text, so that other weights never meet vectors they did not make; that text is embedded at
every recall. Vectors that no embedder asks for any more stay until their reasonlets are erased.
"""

from __future__ import annotations

import hashlib
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
    """Turns texts into vectors, all with the same number of dimensions.

    An attribute ``name`` (a text that is not empty) is what its vectors are kept by; without one they are kept by its
    class and a fingerprint of its weights, which costs one more text at every recall.
    """

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


PROBE = "What does this embedder make of these words?"
"""The text whose vector tells the weights of embedders without a name apart; with another one, none would be known."""


def name_of(embedder: Embedder) -> str:
    """The name that an embedder's vectors are kept under: its own, or its class, dimensions and fingerprint.

    Raises:
        InvalidInput: If it is no embedder, or gives no proper vector.

    Example:
        >>> name_of(WordLlamaEmbedder())
        'wordllama-l2_supercat-256'
        >>> class Lengths:
        ...     def embed(self, texts):
        ...         return np.array([[len(text), 1] for text in texts], dtype=np.float32)
        >>> name_of(Lengths())
        'Lengths-2-33e1b1ba5768dc40'
    """
    if isinstance(embedder, type) or not callable(getattr(embedder, "embed", None)):
        raise InvalidInput(
            f"embedder must be an object with a method embed(texts), not {embedder!r}; nothing was recalled and "
            "nothing was written; give for instance WordLlamaEmbedder()"
        )
    own = _own_name(embedder)
    if own is not None:
        return own
    # Alone, for a vector may depend in its last digits on the texts beside it.
    vector = embedded(embedder, [PROBE])[0]
    fingerprint = hashlib.sha256(vector.astype("<f4").tobytes()).hexdigest()[:16]
    return f"{type(embedder).__qualname__}-{vector.size}-{fingerprint}"


def _own_name(embedder: Embedder) -> str | None:
    name = getattr(embedder, "name", None)
    return name if isinstance(name, str) and name else None


def embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """The vectors of texts, checked.

    Raises:
        InvalidInput: If they are not one finite row of float32 per text.
    """
    given: object = embedder.embed(texts)
    try:
        # Numbers beyond float32 become infinite, and are refused as such.
        with np.errstate(over="ignore"):
            vectors = np.asarray(given, dtype=np.float32)
        gave = f"an array of shape {vectors.shape}"
    except (TypeError, ValueError):
        vectors, gave = np.empty((0, 0), dtype=np.float32), f"{type(given).__name__} that is no array of numbers"
    if vectors.ndim != 2 or vectors.shape[0] != len(texts) or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"the embedder {_own_name(embedder) or type(embedder).__qualname__!r} gave {gave} for {len(texts)} texts; "
            "it must give one row of finite numbers per text; nothing was recalled and nothing was written"
        )
    return vectors


def missing_vectors(con: Connection, embedder: Embedder, name: str, scope: str) -> pl.DataFrame:
    """Vectors of a scope's questions that the store does not hold yet under the embedder's name: ``seq, vector``."""
    missing = fetch(con, query("vectors_missing"), {"embedder": name, "scope": scope})
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


def check_dimensions(con: Connection, name: str, dimensions: int) -> None:
    """Refuse vectors of another length than those kept under the same name.

    Raises:
        InvalidInput: If the vectors kept under the name have another number of dimensions.
    """
    # All that is kept under a name passed this check, so that one vector speaks for all.
    kept = con.execute("SELECT len(vector) FROM vectors WHERE embedder = ? LIMIT 1", [name]).fetchall()
    if kept and kept[0][0] != dimensions:
        raise InvalidInput(
            f"the embedder {name!r} gave vectors of {dimensions} numbers, and those kept under that name have "
            f"{kept[0][0]}; nothing was recalled and nothing was written; give the embedder another name, so that its "
            "vectors are kept apart"
        )


def keep_vectors(con: Connection, name: str, vectors: pl.DataFrame) -> None:
    """Store vectors (``seq, vector``) under an embedder's name, inside the caller's transaction."""
    if vectors.height:
        with lend(con, new_vectors=vectors):
            con.execute("INSERT INTO vectors SELECT $name, seq, vector FROM new_vectors", {"name": name})
