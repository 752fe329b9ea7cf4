"""The store, held to the oracle: calls one by one, in bulk, and late give one and the same memory."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from mnemokit.errors import Conflict, NotFound
from mnemokit.mnests.namespace import Mnests, ingest
from mnemokit.store import Store
from tests.oracles import edges as oracle
from tests.test_fold_kernel_against_oracle import histories
from tests.test_fold_oracle import load

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a store per example is too slow to shrink with
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def us(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1)


def check_store(mnests: Mnests, world: oracle.World, at: datetime | None = None) -> None:
    rows = {
        (r["src_executor"], r["src_version"], r["dst_executor"], r["dst_version"], r["state"]): r
        for r in mnests.frame(at).to_dicts()
    }
    assert set(rows) == {(*record.edge, record.state) for record in world.records}
    for want in world.records:
        have = rows[(*want.edge, want.state)]
        assert have["weight"] == pytest.approx(want.weight, rel=1e-9)
        assert (have["uses"], us(have["ts_first"]), us(have["ts_last"]), us(have["ts_used"])) == (
            want.uses, want.ts_first, want.ts_last, want.ts_used,
        )  # fmt: skip
        assert (have["decay_lambda"], tuple(have["tags"]), have["desired_sig"], have["untimed"]) == (
            want.decay_lambda, want.tags, want.desired_sig, want.untimed,
        )  # fmt: skip
        if at is not None:
            assert have["weight_at"] == pytest.approx(oracle.weight_at(want, us(at)), rel=1e-9)
    if at is None:
        check_events(mnests, world)


def check_events(mnests: Mnests, world: oracle.World) -> None:
    audit = mnests.audit(10**6)
    kinds = ("passing", "transition", "promote", "demote", "merge", "purge")
    for kind in kinds:
        have = audit.filter((pl.col("kind") == kind) & pl.col("weight").is_not_null())
        want = [event for event in world.events if event[0] == kind]
        assert sorted(map(us, have["ts"])) == sorted(event[1] for event in want)
        assert sorted(have["weight"]) == pytest.approx(sorted(event[4] for event in want), rel=1e-9)
    # A passing belongs to the same life as in the oracle.
    passings = audit.filter(pl.col("kind") == "passing").sort("ts", "seq", "src_executor")
    mine = sorted(passings.group_by("mnest_id").len()["len"].to_list())
    lives: dict[int, int] = {}
    for event in world.events:
        if event[0] == "passing":
            lives[event[3]] = lives.get(event[3], 0) + 1
    assert mine == sorted(lives.values())
    # Uses are the passings behind them.
    for row in mnests.frame().to_dicts():
        assert mnests.events(row["mnest_id"]).filter(pl.col("kind") == "passing").height == row["uses"]


def say(mnests: Mnests, fact: oracle.Fact) -> bool:
    """Tell the store a fact by a call; False if it refused."""
    at = moment(fact.ts)
    if fact.kind == "passing":
        mnests.record_passing(
            fact.src, fact.src_version, fact.dst, fact.dst_version, dst_exists=fact.dst_version is not None,
            desired_sig=fact.desired_sig, tags=fact.tags, decay_lambda=fact.decay_lambda, at=at,
        )  # fmt: skip
        return True
    state = fact.old_state or "proto"
    found = mnests.find(fact.src, fact.src_version, fact.dst, fact.dst_version, state, at=at)
    if found is None:
        return False
    try:
        if fact.kind == "promote":
            mnests.promote_proto_to_active(found, fact.promoted_to, at=at)
        else:
            mnests.transition_state(found, fact.new_state, at=at)
    except (Conflict, NotFound):
        return False
    return True


def tell_in_order(facts: list[oracle.Fact], nights: list[int]) -> tuple[Mnests, list[oracle.Fact], list]:
    mnests = Mnests(Store())
    steps = [(f.ts, 1, f.seq, f) for f in facts] + [(n, 0, 0, None) for n in set(nights)]
    said, stats = [], []
    for ts, _, _, fact in sorted(steps, key=lambda step: step[:3]):
        if fact is None:
            stats.append(mnests.apply_ager(moment(ts)))
        elif say(mnests, fact):
            said.append(fact)
    return mnests, said, stats


def in_bulk(mnests: Mnests, facts: list[oracle.Fact], nights: list[int]):
    rows = pl.DataFrame(
        [
            (f.seq + 1, f.src, f.src_version, f.dst, f.dst_version, moment(f.ts), f.untimed, list(f.tags),
             f.desired_sig, f.decay_lambda)
            for f in facts
        ],
        schema={"seq": pl.Int64, "src_executor": pl.String, "src_version": pl.String, "dst_executor": pl.String,
                "dst_version": pl.String, "ts": pl.Datetime("us", "UTC"), "untimed": pl.Boolean,
                "tags": pl.List(pl.String), "desired_sig": pl.String, "decay_lambda": pl.Float64},
        orient="row",
    )  # fmt: skip
    store = mnests._store
    return store.write(lambda con: ingest(con, store.edge_params, rows, ticks=[moment(n) for n in nights]))


@pytest.mark.parametrize("name", ["edges_400.json", pytest.param("edges_4000.json", marks=pytest.mark.slow)])
def test_calls_one_by_one_end_where_the_reference_store_ends(name: str) -> None:
    vector, facts, nights = load(name)
    world = oracle.live_through(facts, nights)
    mnests, said, stats = tell_in_order(facts, nights)
    assert len(said) == len(facts)
    check_store(mnests, world)
    expected = [op["expect"] for op in vector["ops"] if op["op"] == "age"]
    for want, got in zip(expected, stats, strict=True):
        for count, n in want.items():
            if count != "proposed_archive":
                assert getattr(got, count) == n
    check_queries(mnests, vector["queries"])
    check_signatures(mnests, vector["mnests"])


@pytest.mark.parametrize("name", ["edges_400.json", "edges_4000.json"])
def test_bulk_between_acts_by_hand_ends_where_the_reference_store_ends(name: str) -> None:
    vector, facts, nights = load(name)
    mnests = Mnests(Store())
    acts = [fact for fact in facts if fact.kind != "passing"]
    counts: dict[int, dict] = {}
    since = 0
    for act in [*acts, None]:
        until = act.ts if act is not None else 2**62
        passings = [f for f in facts if f.kind == "passing" and since <= f.ts < until]
        done = in_bulk(mnests, passings, [night for night in nights if since <= night < until])
        counts |= {us(row["ts_ager"]): row for row in done.nights.to_dicts()}
        if act is not None:
            assert say(mnests, act)
        since = until
    check_store(mnests, oracle.live_through(facts, nights))
    for op in vector["ops"]:
        if op["op"] == "age":
            have = counts[us(datetime.fromisoformat(op["now"]))]
            for count in ("decayed", "decayed_protos", "demoted_to_decaying", "purged_protos"):
                assert have[count] == op["expect"][count]
    check_queries(mnests, vector["queries"])
    check_signatures(mnests, vector["mnests"])


def check_signatures(mnests: Mnests, expected: list[dict]) -> None:
    frame = mnests.frame().filter(pl.col("state") == "proto")
    have = {(r["src_executor"], r["src_version"], r["dst_executor"]): r["desired_sig"] for r in frame.to_dicts()}
    for want in expected:
        if want["state"] == "proto":
            signature = have[want["src_executor"], want["src_version"], want["dst_executor"]]
            assert (json.loads(signature) if signature else None) == (want["desired_sig"] or None)


def check_queries(mnests: Mnests, queries: dict) -> None:
    recurring = mnests.recurring_protos().select("src_executor", "dst_executor", "uses", "weight")
    for have, want in zip(recurring.rows(), queries["recurring_protos"], strict=True):
        assert have[:3] == tuple(want[:3])
        assert have[3] == pytest.approx(want[3], rel=1e-9)
    top = queries["top_outgoing"]
    rows = (
        mnests.top_outgoing(top["executor"], top["k"]).select("dst_executor", "dst_version", "state", "weight").rows()
    )
    for have, want in zip(rows, top["rows"], strict=True):
        assert have[:3] == tuple(want[:3])
        assert have[3] == pytest.approx(want[3], rel=1e-9)
    top = queries["top_incoming"]
    rows = mnests.top_incoming(top["executor"], top["k"]).select("src_executor", "src_version", "weight").rows()
    for have, want in zip(rows, top["rows"], strict=True):
        assert have[:2] == tuple(want[:2])
        assert have[2] == pytest.approx(want[2], rel=1e-9)
    said = queries["summary"]
    summary = mnests.summary(said["executor"])
    for have, want in ((summary.outgoing, said["outgoing"]), (summary.incoming, said["incoming"])):
        assert (have.edges, have.uses) == (want["edges"], want["uses"])
        assert have.mean_weight == pytest.approx(want["avg_weight"], rel=1e-9)
    assert summary.proto_incoming == said["proto_incoming"]
    stats = mnests.stats()
    assert {name: getattr(stats, name) for name in queries["stats"]} == queries["stats"]


@settings(max_examples=12, deadline=None, phases=PHASES)
@given(histories(by_hand=True, changing_rates=True, longest=20, most_nights=12), st.integers(0, 10**6))
def test_calls_one_by_one_give_what_the_oracle_says(history, seed: int) -> None:
    facts, nights = history
    mnests, said, stats = tell_in_order(facts, nights)
    world = oracle.live_through(said, nights)
    check_store(mnests, world)
    for got, (_, want) in zip(stats, world.nights, strict=True):
        for name in got.__slots__:
            assert getattr(got, name) == want[name]
    for fact in random.Random(seed).sample(facts, min(3, len(facts))):
        check_store(mnests, oracle.as_of(said, nights, fact.ts), moment(fact.ts))


@settings(max_examples=25, deadline=None, phases=PHASES)
@given(
    histories(by_hand=False, changing_rates=False, untimed=True),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_bulk_in_any_batches_gives_what_the_oracle_says(history, batches: int, shuffled: bool, seed: int) -> None:
    facts, nights = history
    facts = sorted(facts, key=lambda f: (f.ts, f.seq))
    rng = random.Random(seed)
    if shuffled:
        rng.shuffle(facts)
    # Source order is that of arrival.
    facts = [oracle.Fact(**{**f.__dict__, "seq": i}) for i, f in enumerate(facts)]
    mnests = Mnests(Store())
    size = -(-len(facts) // batches)
    parts = [facts[i : i + size] for i in range(0, len(facts), size)]
    told = sorted(nights)
    if shuffled:
        rng.shuffle(told)
    for i, part in enumerate(parts):
        in_bulk(mnests, part, told[i :: len(parts)])
    world = oracle.live_through(facts, nights)
    check_store(mnests, world)
    if nights:
        at = rng.choice(nights)
        check_store(mnests, oracle.as_of(facts, nights, at), moment(at))


@settings(max_examples=15, deadline=None, phases=PHASES)
@given(histories(by_hand=True, changing_rates=True, longest=30, most_nights=12), st.booleans())
def test_bulk_between_acts_and_calls_gives_what_the_oracle_says_at_every_step(history, default_rates: bool) -> None:
    """Passings between two acts come in bulk or, every second time, one by one; agers come by calls."""
    facts, nights = history
    facts = sorted(facts, key=lambda f: (f.ts, f.seq))
    if default_rates:
        # Bulk at the default rate meets records that calls opened at another.
        facts = [oracle.Fact(**{**f.__dict__, "decay_lambda": 0.018 if n % 3 else f.decay_lambda})
                 for n, f in enumerate(facts)]  # fmt: skip
    mnests, said, aged = Mnests(Store()), [], []
    steps = [(night, 0, 0, None) for night in set(nights)] + [(f.ts, 1, f.seq, f) for f in facts]
    held: list[oracle.Fact] = []

    def tell_held() -> None:
        if not held:
            return
        if len(said) % 2:
            in_bulk(mnests, held, [])
            said.extend(held)
        else:
            said.extend(fact for fact in held if say(mnests, fact))
        held.clear()

    for ts, _, _, fact in sorted(steps, key=lambda step: step[:3]):
        if fact is not None and fact.kind == "passing":
            held.append(fact)
            continue
        tell_held()
        if fact is None:
            mnests.apply_ager(moment(ts))
            aged.append(ts)
        elif say(mnests, fact):
            said.append(fact)
        check_store(mnests, oracle.live_through(said, aged))
    tell_held()
    check_store(mnests, oracle.live_through(said, aged))


@settings(max_examples=12, deadline=None, phases=PHASES)
@given(histories(by_hand=True, changing_rates=True, longest=20, most_nights=12), st.integers(0, 10**6))
def test_late_calls_give_what_the_oracle_says(history, seed: int) -> None:
    facts, nights = history
    rng = random.Random(seed)
    facts = sorted(facts, key=lambda f: (f.ts, f.seq))
    steps: list = [*facts]
    for night in sorted(set(nights)):
        steps.insert(rng.randint(0, len(steps)), night)
    only_nights = iter(sorted(set(nights)))
    steps = [next(only_nights) if isinstance(step, int) else step for step in steps]
    for _ in range(rng.randint(0, 6)):
        i, j = rng.randrange(len(steps)), rng.randrange(len(steps))
        if not isinstance(steps[i], int) and not isinstance(steps[j], int):
            steps[i], steps[j] = steps[j], steps[i]
    mnests, said = Mnests(Store()), []
    for seq, step in enumerate(steps):
        if isinstance(step, int):
            mnests.apply_ager(moment(step))
        else:
            fact = oracle.Fact(**{**step.__dict__, "seq": seq})
            if say(mnests, fact):
                said.append(fact)
    world = oracle.live_through(said, nights)
    assume(not world.without_effect)
    check_store(mnests, world)
    at = rng.choice(facts).ts
    check_store(mnests, oracle.as_of(said, nights, at), moment(at))
