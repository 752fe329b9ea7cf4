"""What an old log still says of erased persons and scopes, and must not bring back."""

from __future__ import annotations

import polars as pl

from mnemokit.store import Connection, Store, fetch

_NAMES = {"subject": pl.col("user_id"), "scope": pl.coalesce("scope", "source")}
FORGOTTEN = "forgotten"
"""The reason of a reject that an erasure refuses."""
_STONES = "SELECT name_hash, realm, ts_forgotten FROM tombstones WHERE realm IN ('subject', 'scope')"


def without_forgotten(
    con: Connection, store: Store, turns: pl.DataFrame, rejects: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take out what comes from before an erasure.

    Args:
        con: The store's connection.
        store: Whose keyed hash tells who was erased.
        turns: Canonical turns.
        rejects: Records that could not be used, with the column source.

    Returns:
        The turns that may be stored, and the rejects: those given, an erased person's or source's without a word, and
        one ``forgotten`` for each turn taken out.
    """
    stones = fetch(con, _STONES)
    if stones.height == 0:
        return turns, rejects
    limits = pl.max_horizontal(_limit(store, stones, realm, turns, name) for realm, name in _NAMES.items())
    # An untimed turn cannot be shown to be later than the erasure.
    old = limits.is_not_null() & (pl.col("ts").is_null() | (pl.col("ts") <= limits))
    marked = turns.with_columns(forgotten=old)
    kept = marked.filter(~pl.col("forgotten")).drop("forgotten")
    # Nor can a record that is rejected: it has no instant.
    erased = (
        _limit(store, stones, "subject", rejects, _NAMES["subject"]).is_not_null()
        | _limit(store, stones, "scope", rejects, pl.col("source")).is_not_null()
    )
    wordless = {
        name: pl.when(erased).then(None).otherwise(pl.col(name)) for name in ("file", "place", "excerpt", "user_id")
    }
    told = rejects.with_columns(
        reason=pl.when(erased).then(pl.lit(FORGOTTEN)).otherwise(pl.col("reason")),
        **{name: value.alias(name) for name, value in wordless.items()},
    )
    gone = marked.filter("forgotten").select("source", reason=pl.lit(FORGOTTEN))
    return kept, pl.concat([told, gone], how="diagonal")


def _limit(store: Store, stones: pl.DataFrame, realm: str, rows: pl.DataFrame, name: pl.Expr) -> pl.Expr:
    """When each row's person or scope was erased; null where it was not."""
    names = rows.select(name.unique().drop_nulls()).to_series().to_list()
    hashed = pl.DataFrame(
        [(text, store.keyed_hash(text)) for text in names],
        schema={"name": pl.String, "name_hash": pl.String},
        orient="row",
    )
    known = hashed.join(stones.filter(pl.col("realm") == realm), on="name_hash")
    never = pl.lit(None, dtype=pl.Datetime("us", "UTC"))
    if known.height == 0:
        return never
    return name.replace_strict(known["name"], known["ts_forgotten"], default=None)
