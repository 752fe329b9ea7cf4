"""The fold, as arrays and one by one, held to the oracle that steps through every night."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, FACTS
from mnemokit.records import EdgeParams
from tests.oracles import edges as oracle
from tests.test_fold_oracle import load

PARAMS = EdgeParams()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NIGHT_COUNTS = ("decayed", "decayed_protos", "demoted_to_decaying", "merged", "purged_protos")


def fold(facts: list[oracle.Fact], nights: list[int]):
    keys = sorted({(f.src, f.src_version, f.dst, f.dst_version) for f in facts}
                  | {(f.src, f.src_version, f.dst, f.promoted_to) for f in facts if f.kind == "promote"},
                  key=str)  # fmt: skip
    pairs = {key[:3]: i for i, key in enumerate(dict.fromkeys(key[:3] for key in keys))}
    edges = pl.DataFrame([(i, pairs[key[:3]], key[3]) for i, key in enumerate(keys)], schema=EDGES, orient="row")
    number = {key: i for i, key in enumerate(keys)}
    frame = pl.DataFrame(
        [
            (
                number[f.src, f.src_version, f.dst, f.dst_version], EPOCH + timedelta(microseconds=f.ts), f.seq,
                f.kind, f.decay_lambda if f.kind == "passing" else None, f.untimed, list(f.tags), f.desired_sig,
                f.old_state or None, f.new_state or None,
                json.dumps({"dst_version": f.promoted_to}) if f.promoted_to else None, None,
            )
            for f in facts
        ],
        schema=FACTS, orient="row",
    )  # fmt: skip
    return keys, fold_edges(frame, edges, np.array(sorted(set(nights)), dtype=np.int64), PARAMS)


def check(facts: list[oracle.Fact], nights: list[int]) -> None:
    world = oracle.live_through(facts, nights)
    keys, got = fold(facts, nights)
    # records
    records = {(*keys[r["edge_no"]], r["state"]): r for r in got.records.to_dicts()}
    assert len(records) == got.records.height == len(world.records)
    us = lambda moment: (moment - EPOCH) // timedelta(microseconds=1)  # noqa: E731
    for want in world.records:
        have = records[(*want.edge, want.state)]
        assert have["weight"] == pytest.approx(want.weight, rel=1e-9)
        assert (have["uses"], us(have["ts_first"]), us(have["ts_last"]), us(have["ts_used"])) == (
            want.uses, want.ts_first, want.ts_last, want.ts_used,
        )  # fmt: skip
        assert (have["decay_lambda"], tuple(have["tags"]), have["desired_sig"], have["untimed"]) == (
            want.decay_lambda, want.tags, want.desired_sig, want.untimed,
        )  # fmt: skip
    # what each fact did
    by_seq = {facts[o["row"]].seq: o for o in got.outcomes.to_dicts()}
    told = {event[2]: event for event in world.events if event[0] in ("passing", "transition", "promote")}
    for seq, have in by_seq.items():
        if seq not in told:
            assert have["life"] is None
            assert have["refusal"]
            continue
        want = told[seq]
        assert have["weight"] == pytest.approx(want[4], rel=1e-9)
        if want[5] is not None:
            assert have["delta"] == pytest.approx(want[5], rel=1e-7, abs=1e-12)
    # which life each fact belonged to: the same partition of facts
    mine: dict = {}
    theirs: dict = {}
    for seq, event in told.items():
        mine.setdefault(by_seq[seq]["life"], set()).add(seq)
        theirs.setdefault(event[3], set()).add(seq)
    assert sorted(map(sorted, mine.values())) == sorted(map(sorted, theirs.values()))
    # lives in records
    name = dict(got.lives.select("life", "record").iter_rows())
    life_of_seq = {seq: o["life"] for seq, o in by_seq.items()}
    opener = {
        life: min(seqs, key=lambda s: (next(f.ts for f in facts if f.seq == s), s)) for life, seqs in theirs.items()
    }
    for record in world.records:
        naming = life_of_seq[opener[record.lives[0]]]
        assert records[(*record.edge, record.state)]["life"] == naming
        assert {name[life_of_seq[opener[life]]] for life in record.lives} == {naming}
    alive = {life for record in world.records for life in record.lives}
    for life, seq in opener.items():
        assert (name[life_of_seq[seq]] is None) == (life not in alive)

    # derived events
    def mine_of(kind: str):
        return sorted(
            (us(e["ts"]), keys[e["edge_no"]], e["weight"]) for e in got.derived.to_dicts() if e["kind"] == kind
        )

    edge_of = {f.seq: (f.src, f.src_version, f.dst, f.dst_version) for f in facts}
    for kind in ("demote", "merge", "purge"):
        have = mine_of(kind)
        want = sorted((e[1], e[4]) for e in world.events if e[0] == kind)
        assert [h[0] for h in have] == [w[0] for w in want]
        assert sorted(h[2] for h in have) == pytest.approx(sorted(w[1] for w in want), rel=1e-9)
    merges = sorted((us(e["ts"]), e["life"], e["other"]) for e in got.derived.to_dicts() if e["kind"] == "merge")
    assert merges == sorted(
        (e[1], life_of_seq[opener[e[3]]], life_of_seq[opener[e[8]]]) for e in world.events if e[0] == "merge"
    )
    assert edge_of
    # counts of every night
    nightly = got.nights.select(NIGHT_COUNTS).to_dicts()
    assert nightly == [{c: counts[c] for c in NIGHT_COUNTS} for _, counts in world.nights]


@pytest.mark.parametrize("name", ["edges_400.json", "edges_4000.json"])
def test_the_fold_ends_where_the_reference_store_ends(name: str) -> None:
    _, facts, nights = load(name)
    check(facts, nights)


HOUR = 3_600_000_000
DAY = 24 * HOUR
T0 = 1_740_798_000_000_000

RATES = st.sampled_from([0.0, 0.005, 0.018, 0.05, 0.4, 1.0, 5.0])
GAPS = st.one_of(
    st.just(0),
    st.integers(1, 10**6),
    st.integers(1, 48).map(lambda h: h * HOUR),
    st.integers(0, 10 * DAY),
    st.integers(0, 60 * DAY),
    st.just(400 * DAY),
)


@st.composite
def histories(draw, by_hand: bool, changing_rates: bool, longest: int = 40, most_nights: int = 4000,
              untimed: bool = False):  # fmt: skip
    n = draw(st.integers(1, longest))
    edge_keys = st.tuples(*(st.sampled_from(of) for of in ("AB", "12", "CD", ["1", "2", None])))
    edges = draw(st.lists(edge_keys, min_size=1, max_size=4, unique=True))
    rate = {edge: draw(RATES) for edge in edges}
    ts, facts = T0, []
    without_time = draw(st.integers(0, n)) if untimed else 0
    for seq in range(n):
        ts += draw(GAPS)
        edge = draw(st.sampled_from(edges))
        kind = draw(st.sampled_from(["passing"] * 6 + ["transition", "promote"])) if by_hand else "passing"
        if kind == "promote":
            facts.append(oracle.Fact("promote", ts, seq, *edge[:3], None, old_state="proto",
                                     promoted_to=draw(st.sampled_from("12"))))  # fmt: skip
        elif kind == "transition":
            states = ["active", "decaying", "superseded"]
            facts.append(oracle.Fact("transition", ts, seq, *edge, old_state=draw(st.sampled_from([*states, "proto"])),
                                     new_state=draw(st.sampled_from(states))))  # fmt: skip
        else:
            clockless = seq < without_time
            facts.append(
                oracle.Fact(
                    "passing", seq if clockless else ts, seq, *edge, draw(RATES) if changing_rates else rate[edge],
                    tuple(draw(st.lists(st.sampled_from("xyz"), max_size=2, unique=True))),
                    draw(st.sampled_from([None, "{}", '{"a":1}', '{"b":2}'])) if edge[3] is None else None,
                    clockless,
                )
            )  # fmt: skip
    end = ts + draw(st.sampled_from([0, DAY, 40 * DAY, 400 * DAY]))
    regular = draw(st.booleans())
    first = T0 + draw(st.integers(0, 2 * DAY))
    if regular:
        nights = list(range(first, end + 1, DAY))[: draw(st.sampled_from([0, 5, most_nights]))]
    else:
        nights = sorted(
            draw(st.sets(st.one_of(st.integers(T0, end), st.sampled_from([f.ts for f in facts])), max_size=30))
        )
    order = draw(st.permutations(facts))
    return order, nights


@settings(max_examples=150, deadline=None)
@given(histories(by_hand=False, changing_rates=False, untimed=True))
def test_passings_alone_fold_as_the_oracle_says(history) -> None:
    check(*history)


@settings(max_examples=150, deadline=None)
@given(histories(by_hand=True, changing_rates=True, untimed=True))
def test_acts_by_hand_and_changing_rates_fold_as_the_oracle_says(history) -> None:
    assume(history[0])
    check(*history)
