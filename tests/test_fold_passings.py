"""``fold_passings``: the whole fold on a plain frame; and edges so busy that they are folded in pieces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.fold.kernel import SEGMENT, Rows, fold_rows
from mnemokit.fold.passings import TRAJECTORY, fold_passings
from mnemokit.frames import schema_of
from mnemokit.mnests.namespace import Mnests, ingest
from mnemokit.records import EdgeParams
from mnemokit.store import Store

DAY0 = datetime(2025, 3, 1, 12, tzinfo=UTC)
DAY_US = 86_400_000_000
T0 = 1_740_830_400_000_000


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


def plain(ts: np.ndarray, rate: float, ticks: np.ndarray, floor: float) -> tuple[list[float], list[bool]]:
    """The recurrence of one edge, row by row."""
    weights, opened, weight, before = [], [], 0.0, None
    for now in ts.tolist():
        ended = before is None
        if before is not None:
            last = int(np.searchsorted(ticks, now, side="right")) - 1
            if last >= 0 and ticks[last] > before:
                ended = weight * np.exp(-rate * (ticks[last] - before) / DAY_US) < floor
            weight = min(1.0, weight * np.exp(-rate * (now - before) / DAY_US) + 0.15)
        if ended:
            weight = 0.30
        weights.append(weight)
        opened.append(ended)
        before = now
    return weights, opened


@pytest.mark.parametrize(
    ("rate", "gap_days"),
    [
        (0.018, 0.01),  # sits at the cap
        (0.018, 12.0),  # between cap and floor
        (0.41, 1.0),  # both a lasting record and one record per passing would be stable
        (0.45, 1.0),
        (5.0, 0.03),
        (0.0, 1.0),
    ],
)
def test_an_edge_longer_than_a_segment_is_the_plain_recurrence(rate: float, gap_days: float) -> None:
    rng = np.random.default_rng(7)
    n = 3 * SEGMENT + 17
    gaps = (gap_days * DAY_US * rng.choice([1.0, 1.0, 1.0, 0.5, 1.2], n)).astype(np.int64)
    gaps[rng.integers(0, n, 5)] = 80 * DAY_US
    ts = T0 + np.cumsum(gaps)
    ticks = np.arange(T0, ts[-1] + DAY_US, DAY_US)
    params = EdgeParams()
    floor = params.demote_below * (1 - params.tolerance)
    one = np.ones(1)
    path = fold_rows(Rows(np.zeros(1, dtype=np.int64), ts, rate * one, floor * one, None, 0.30 * one), ticks, params)
    weights, opened = plain(ts, rate, ticks, floor)
    assert path.opened.tolist() == opened
    assert path.weight.tolist() == pytest.approx(weights, rel=1e-9)


def passings(n: int, seed: int = 0, edges: int = 30) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    versions = [None, "1", "2"]
    ts = T0 + np.sort(rng.integers(0, 400 * DAY_US, n))
    number = (edges * rng.random(n) ** 3).astype(int)
    return pl.DataFrame(
        {
            "src_executor": [f"s{k % 4}" for k in number],
            "src_version": "1",
            "dst_executor": [f"d{k % 7}" for k in number],
            "dst_version": [versions[k % 3] for k in number],
            "ts": pl.Series(ts).cast(pl.Datetime("us", "UTC")),
        }
    )


def test_the_fold_of_a_frame_is_the_store_that_took_it_in() -> None:
    frame = passings(5000)
    folded = fold_passings(frame, ager="daily")
    assert folded.mnests.schema == pl.Schema(schema_of("mnests"))
    assert folded.events.schema == pl.Schema(TRAJECTORY)
    mnests = Mnests(Store())
    ticks = folded.ager_runs["ts_ager"].to_list()
    assert ticks[0] > frame["ts"].min()
    assert ticks[-1] <= frame["ts"].max()
    assert {tick.hour for tick in ticks} == {3}
    rows = frame.with_row_index("seq").with_columns(pl.col("seq").cast(pl.Int64))
    mnests._store.write(lambda con: ingest(con, mnests._store.edge_params, rows, ticks=ticks))
    keys = ["src_executor", "src_version", "dst_executor", "dst_version", "state"]
    have, want = (f.drop("mnest_id").sort(keys) for f in (folded.mnests, mnests.frame()))
    assert have.equals(want)
    audit = mnests.audit(10**6)
    for kind in ("passing", "demote", "merge", "purge"):
        mine, theirs = (f.filter(pl.col("kind") == kind)["weight"].sort() for f in (folded.events, audit))
        assert mine.to_list() == theirs.to_list()
    assert folded.mnests["uses"].sum() + _purged_uses(folded) == 5000


def _purged_uses(folded) -> int:
    gone = folded.events.filter(pl.col("kind") == "purge")["mnest_id"]
    return folded.events.filter((pl.col("kind") == "passing") & pl.col("mnest_id").is_in(gone.implode())).height


def test_the_trajectory_tells_each_passing_once_with_its_row() -> None:
    frame = passings(1000).sample(fraction=1.0, shuffle=True, seed=3)
    folded = fold_passings(frame, ager="daily")
    told = folded.events.filter(pl.col("kind") == "passing")
    assert sorted(told["row"]) == list(range(1000))
    assert told["ts"].to_list() == frame["ts"].gather(told["row"]).to_list()
    names = told.with_columns(pl.col("dst_executor").cast(pl.String))["dst_executor"].to_list()
    assert names == frame["dst_executor"].gather(told["row"]).to_list()
    ordered = fold_passings(frame.sort("ts"), ager="daily")
    assert ordered.mnests.drop("mnest_id").equals(folded.mnests.drop("mnest_id"))


def test_a_lazy_frame_folds_to_the_same() -> None:
    frame = passings(2000)
    eager, lazy = fold_passings(frame, ager="daily"), fold_passings(frame.lazy(), ager="daily")
    assert eager.mnests.equals(lazy.mnests)
    assert eager.events.drop("mnest_id").equals(lazy.events.drop("mnest_id"))


def test_without_an_ager_nothing_ends() -> None:
    folded = fold_passings(passings(300))
    assert set(folded.events["kind"]) == {"passing"}
    assert folded.ager_runs.height == 0
    assert folded.mnests["uses"].sum() == 300


def test_an_ager_at_given_instants() -> None:
    frame = passings(50)
    folded = fold_passings(frame, ager=[day(500), "2027-01-01T00:00:00+00:00"])
    assert folded.ager_runs.height == 2
    assert set(folded.mnests["state"]) <= {"decaying"}


def test_passings_without_times_keep_their_order_and_never_fade() -> None:
    frame = passings(40).with_columns(ts=pl.lit(None, pl.Datetime("us", "UTC")))
    folded = fold_passings(frame, ager="daily")
    assert folded.mnests["untimed"].all()
    assert folded.mnests["weight"].to_list() == pytest.approx(
        np.minimum(1.0, 0.15 + 0.15 * folded.mnests["uses"].to_numpy()).tolist()
    )


def test_other_parameters_give_other_edges() -> None:
    frame = passings(400)
    params = EdgeParams(start_weight=0.5, reinforcement=0.1, demote_below=0.4, decay_lambda=0.05)
    folded = fold_passings(frame, ager="daily", params=params)
    assert folded.events.filter(pl.col("delta") == 0.5).height > 0
    assert (folded.mnests.filter(pl.col("state") == "active")["weight"] >= 0.4 * (1 - 1e-9)).all()
    assert folded.mnests["decay_lambda"].unique().to_list() == [0.05]


def test_an_empty_frame_folds_to_empty_frames_of_the_same_schema() -> None:
    full, empty = fold_passings(passings(10), ager="daily"), fold_passings(passings(10).clear(), ager="daily")
    assert empty.mnests.schema == full.mnests.schema
    assert empty.events.schema == full.events.schema
    assert empty.ager_runs.schema == full.ager_runs.schema
    assert empty.mnests.height == empty.events.height == empty.ager_runs.height == 0


def test_a_fold_refuses_what_it_cannot_read() -> None:
    frame = passings(10)
    with pytest.raises(InvalidInput, match="dst_version"):
        fold_passings(frame.drop("dst_version"))
    with pytest.raises(InvalidInput, match="src_version"):
        fold_passings(frame.with_columns(src_version=pl.lit(None, pl.String)))
    with pytest.raises(InvalidInput, match="decay_lambda"):
        fold_passings(frame.with_columns(decay_lambda=-1.0))
    with pytest.raises(InvalidInput, match="ager"):
        fold_passings(frame, ager="weekly")
    with pytest.raises(InvalidInput, match="dst_exists"):
        fold_passings(frame.with_columns(dst_exists=False))


def test_derived_passings_of_a_real_log_fold_as_they_are() -> None:
    folded = mk.fold_passings(mk.derive_passings(mk.datasets.tau2()), ager="daily")
    assert folded.events.filter(pl.col("kind") == "passing").height == 4087
