"""The oracle itself, held to the operations and end states of the reference edge store."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.oracles import edges as oracle

VECTORS = Path(__file__).parent / "data" / "edge_vectors"
COUNTS = ("decayed", "decayed_protos", "demoted_to_decaying", "purged_protos", "recurring_protos")


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


def load(name: str) -> tuple[dict, list[oracle.Fact], list[int]]:
    vector = json.loads((VECTORS / name).read_text())
    facts, nights = [], []
    for seq, op in enumerate(vector["ops"]):
        if op["op"] == "age":
            nights.append(us(op["now"]))
            continue
        if op["op"] == "pass":
            sig = op.get("desired_sig")
            facts.append(
                oracle.Fact(
                    "passing", us(op["ts"]), seq, op["src"], op["src_version"], op["dst"], op["dst_version"],
                    op["decay_lambda"], tuple(op.get("tags") or ()), None if sig is None else json.dumps(sig),
                )
            )  # fmt: skip
            continue
        ref = op["ref"]
        facts.append(
            oracle.Fact(
                "transition" if op["op"] == "transition" else "promote", us(op["ts"]), seq, ref["src_executor"],
                ref["src_version"], ref["dst_executor"], ref["dst_version"], old_state=ref["state"],
                new_state=op.get("state", ""), promoted_to=op.get("dst_version", ""),
            )
        )  # fmt: skip
    return vector, facts, nights


@pytest.mark.parametrize("name", ["edges_400.json", "edges_4000.json"])
def test_the_oracle_ends_where_the_reference_store_ends(name: str) -> None:
    vector, facts, nights = load(name)
    world = oracle.live_through(facts, nights)
    assert not world.without_effect
    got = {(*record.edge, record.state): record for record in world.records}
    assert len(got) == len(world.records) == len(vector["mnests"])
    for row in vector["mnests"]:
        key = (row["src_executor"], row["src_version"], row["dst_executor"], row["dst_version"], row["state"])
        record = got[key]
        assert record.weight == pytest.approx(row["weight"], rel=1e-9)
        assert (record.uses, record.ts_first, record.ts_last) == (
            row["uses"],
            us(row["ts_first"]),
            us(row["ts_last"]),
        )
        assert record.decay_lambda == row["decay_lambda"]
        assert sorted(record.tags) == sorted(row["tags"])
        assert (json.loads(record.desired_sig) if record.desired_sig else None) == (row["desired_sig"] or None)


@pytest.mark.parametrize("name", ["edges_400.json", "edges_4000.json"])
def test_the_oracle_counts_every_night_as_the_reference_ager_did(name: str) -> None:
    vector, facts, nights = load(name)
    world = oracle.live_through(facts, nights)
    expected = [op["expect"] for op in vector["ops"] if op["op"] == "age"]
    assert len(expected) == len(world.nights)
    for want, (now, got) in zip(expected, world.nights, strict=True):
        assert {c: got[c] for c in COUNTS} == {c: want[c] for c in COUNTS}, datetime.fromtimestamp(now / 1e6, UTC)


def test_deltas_are_those_that_the_reference_store_logged() -> None:
    import sqlite3

    _, facts, nights = load("edges_400.json")
    world = oracle.live_through(facts, nights)
    path = Path(__file__).parent / "data" / "metnos" / "mnest.sqlite"
    con = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        logged = con.execute("SELECT ts, delta FROM events WHERE kind = 'reinforce' ORDER BY id").fetchall()
    finally:
        con.close()
    mine = [(event[1], event[5]) for event in world.events if event[0] == "passing"]
    # The reference store kept no events of the protos it purged.
    by_key = dict.fromkeys(mine)
    assert len(logged) > 200
    for ts, delta in logged:
        assert any(us(ts) == when and abs(delta - d) < 1e-9 for when, d in by_key)
