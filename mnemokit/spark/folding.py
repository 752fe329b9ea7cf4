"""The fold of a bucket of passings that is too large to be held: stretch by stretch, each going on from the last.

A bucket holds whole pairs (source, source version, destination), so that no other bucket has a say in its edges. Its
passings come in order of time, then of the log. However they are cut into stretches, the edges are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

import numpy as np
import polars as pl

from mnemokit.fold.edge_keys import KEYS, number_keys, pair_numbers
from mnemokit.fold.edge_weights import weight_at
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, INSTANT, NIGHTS, RECORDS, TAGS, Folded, Schema
from mnemokit.fold.kernel import Ints
from mnemokit.frames import conform, schema_of
from mnemokit.instants import to_us
from mnemokit.records import EdgeParams

PASSED: Schema = {
    **dict.fromkeys(KEYS, pl.String()),
    "ts": INSTANT,
    "seq": pl.Int64(),
    "untimed": pl.Boolean(),
    "turn_id": pl.String(),
    "tags": TAGS,
    "desired_sig": pl.String(),
    "decay_lambda": pl.Float64(),
}
"""Passings as a fold takes them: numbered (seq), untimed ones with the instant that their number stands for."""

OUTPUT: dict[str, Schema] = {
    "event": schema_of("mnest_events"),
    "mnest": schema_of("mnests"),
    "night": {"ts_ager": INSTANT, **dict.fromkeys(NIGHTS, pl.Int64())},
}
"""What comes out of a bucket: rows of three kinds."""


def fold_bucket(
    stretches: Iterable[pl.DataFrame], ticks: Ints, params: EdgeParams
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Fold the passings of a bucket.

    Args:
        stretches: Columns of ``PASSED``; rows in order of ts, then seq, within and across the frames.
        ticks: All ager instants in microseconds since 1970, ascending, without repeats.
        params: The edge rule.

    Yields:
        Kinds of ``OUTPUT`` with their rows: events stretch by stretch, at the end the records and the nights.
    """
    bucket = _Bucket(params)
    done = 0
    for passings, last in _with_end(stretches):
        due = len(ticks) if last else int(np.searchsorted(ticks, to_us(passings.item(-1, "ts")), side="right"))
        yield "event", bucket.live_on(passings, ticks[done:due])
        done = due
    yield "mnest", bucket.mnests()
    yield "night", bucket.nights()


def mnest_id(key: tuple[str, str, str, str | None], ts_first: int) -> str:
    """The id of a record by its edge and its first passing: made twice, it is the same twice.

    Example:
        >>> mnest_id(("find", "1", "buy", "1"), 0)
        'mn_359599ed55442f0e4b193bd9'
    """
    text = json.dumps([*key, ts_first], ensure_ascii=True)
    return "mn_" + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class _Bucket:
    """Edges and records as far as the passings have come. Records are numbered as they begin."""

    def __init__(self, params: EdgeParams) -> None:
        self._params = params
        self._keys = pl.DataFrame(schema={"edge_no": pl.Int32(), **dict.fromkeys(KEYS, pl.String())})
        self._edges = pl.DataFrame(schema=EDGES)
        self._records = pl.DataFrame(schema=RECORDS)
        self._ids = pl.Series(dtype=pl.String())
        self._nights: list[pl.DataFrame] = []

    def live_on(self, passings: pl.DataFrame, ticks: Ints) -> pl.DataFrame:
        """Take in passings and ticks that are later than all so far; returns the events."""
        facts = passings.select(
            self._number_edges(passings).alias("edge_no"),
            "ts",
            "seq",
            "untimed",
            "tags",
            "desired_sig",
            pl.col("decay_lambda").fill_null(self._params.decay_lambda),
        )
        prior = self._records if self._records.height else None
        folded = fold_edges(facts, self._edges, ticks, self._params, prior)
        numbers = self._number_lives(folded, facts)
        self._go_on_from(folded, numbers)
        self._nights.append(folded.nights)
        return pl.concat([self._passed(folded, passings, numbers), self._ended(folded, numbers)])

    def mnests(self) -> pl.DataFrame:
        """The records as they stand: the columns of ``mem.frame("mnests")``."""
        named = self._records.join(self._keys, on="edge_no", how="left", maintain_order="left")
        named = named.with_columns(self._ids.gather(named["life"]).alias("mnest_id"), weight_at(None))
        return conform(named, OUTPUT["mnest"])

    def nights(self) -> pl.DataFrame:
        """What each tick did."""
        return pl.concat([pl.DataFrame(schema=OUTPUT["night"]), *self._nights])

    def _number_edges(self, passings: pl.DataFrame) -> pl.Series:
        place, keys = number_keys(passings)
        known = keys.join(self._keys, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
        new = known["edge_no"].is_null()
        if new.any():
            numbers = (new.cum_sum() - 1 + self._keys.height).cast(pl.Int32)
            known = known.with_columns(pl.col("edge_no").fill_null(numbers))
            self._keys = pl.concat([self._keys, known.filter(new).select(self._keys.columns)])
            self._edges = self._keys.with_columns(pair_numbers()).select(list(EDGES))
        return known["edge_no"].gather(pl.Series(place))

    def _number_lives(self, folded: Folded, facts: pl.DataFrame) -> pl.Series:
        """The number of the record that each life began as; lives that begin here get a new one, and an id."""
        lives = folded.lives.sort("life")
        new = lives["mnest_no"].is_null()
        fresh = (new.cum_sum() - 1 + self._ids.len()).cast(pl.Int32)
        begun = lives.filter(new)
        keys = self._keys[begun["edge_no"]].select(KEYS).rows()
        begins = facts["ts"].gather(begun["first_row"]).dt.timestamp("us")
        ids = [mnest_id(key, ts) for key, ts in zip(keys, begins, strict=True)]
        self._ids = pl.concat([self._ids, pl.Series(ids, dtype=pl.String())])
        return lives["mnest_no"].fill_null(fresh)

    def _go_on_from(self, folded: Folded, numbers: pl.Series) -> None:
        changed = folded.lives["mnest_no"].drop_nulls()
        now = folded.records.with_columns(numbers.gather(folded.records["life"]).alias("life"))
        self._records = pl.concat([self._records.filter(~pl.col("life").is_in(changed.implode())), now])

    def _passed(self, folded: Folded, passings: pl.DataFrame, numbers: pl.Series) -> pl.DataFrame:
        told = folded.outcomes
        rows = passings.select("ts", "seq", "untimed", "turn_id", *KEYS)[told["row"]]
        events = rows.with_columns(
            self._ids.gather(numbers.gather(told["life"])).alias("mnest_id"),
            told["delta"],
            told["weight"],
            kind=pl.lit("passing"),
            **dict.fromkeys(("old_state", "new_state", "reason", "detail"), pl.lit(None, pl.String())),
        )
        return conform(events, OUTPUT["event"])

    def _ended(self, folded: Folded, numbers: pl.Series) -> pl.DataFrame:
        derived = folded.derived
        into = derived.select(into=self._ids.gather(numbers.gather(derived["other"])))
        joined = into.select(pl.when(pl.col("into").is_not_null()).then(pl.struct("into").struct.json_encode()))
        events = derived.join(self._keys, on="edge_no", how="left", maintain_order="left").with_columns(
            self._ids.gather(numbers.gather(derived["life"])).alias("mnest_id"),
            pl.coalesce("detail", joined.to_series()).alias("detail"),
            delta=pl.lit(None, pl.Float64()),
            untimed=pl.lit(value=False),
            **dict.fromkeys(("reason", "turn_id"), pl.lit(None, pl.String())),
        )
        return conform(events, OUTPUT["event"])


def _with_end(frames: Iterable[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Each frame, and whether it is the last one."""
    for frame, following in pairwise(chain(frames, [None])):
        if frame is not None:
            yield frame, following is None
