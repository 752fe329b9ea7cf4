"""The rules of the edge memory, one by one."""

from __future__ import annotations

import json
import math
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.frames import schema_of
from mnemokit.mnests.namespace import Mnests
from mnemokit.store import Store

DAY0 = datetime(2025, 3, 1, 12, tzinfo=UTC)
EDGE = ("find", "1.0", "buy", "1.0")


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


@pytest.fixture
def mnests() -> Mnests:
    return Mnests(Store())


def faded(weight: float, days: float, rate: float = 0.018) -> float:
    return weight * math.exp(-rate * days)


def kinds(mnests: Mnests, mnest_id: str) -> list[str]:
    return mnests.events(mnest_id)["kind"].to_list()


# Passings ----------------------------------------------------------------------------------------------------------


def test_the_first_passing_opens_an_edge_at_0_30(mnests: Mnests) -> None:
    edge = mnests.get(mnests.record_passing(*EDGE, tags=["a", "b", "a"], turn_id="t1", at=day(0)))
    assert edge.mnest_id.startswith("mn_")
    assert (edge.weight, edge.uses, edge.state, edge.tags) == (0.30, 1, "active", ("a", "b"))
    assert edge.ts_first == edge.ts_last == edge.ts_used == day(0)
    assert edge.decay_lambda == 0.018


def test_each_later_passing_decays_and_adds_0_15_up_to_1(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    assert mnests.record_passing(*EDGE, at=day(10)) == edge
    assert mnests.get(edge).weight == pytest.approx(faded(0.30, 10) + 0.15, rel=1e-12)
    for _ in range(10):
        mnests.record_passing(*EDGE, at=day(10))
    assert mnests.get(edge).weight == 1.0
    assert mnests.get(edge).uses == 12


def test_a_passing_leaves_an_event_with_the_net_change_and_the_turn(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0), turn_id="t1")
    mnests.apply_ager(day(4))
    stored = mnests.get(edge).weight
    mnests.record_passing(*EDGE, at=day(6), turn_id="t2")
    events = mnests.events(edge)
    assert events["turn_id"].to_list() == ["t1", "t2"]
    assert events["delta"].to_list() == [0.30, pytest.approx(mnests.get(edge).weight - stored, rel=1e-12)]


def test_direction_and_version_make_different_edges(mnests: Mnests) -> None:
    ids = {
        mnests.record_passing("find", "1.0", "buy", "1.0", at=day(0)),
        mnests.record_passing("buy", "1.0", "find", "1.0", at=day(0)),
        mnests.record_passing("find", "1.0", "buy", "1.1", at=day(0)),
        mnests.record_passing("find", "1.1", "buy", "1.0", at=day(0)),
    }
    assert len(ids) == 4


def test_an_edge_keeps_the_rate_and_tags_of_its_first_passing(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, decay_lambda=0.1, tags=["x"], at=day(0))
    mnests.record_passing(*EDGE, decay_lambda=0.5, tags=["y"], at=day(1))
    got = mnests.get(edge)
    assert (got.decay_lambda, got.tags) == (0.1, ("x",))
    assert got.weight == pytest.approx(faded(0.30, 1, 0.1) + 0.15, rel=1e-12)


def test_the_same_key_again_gives_the_first_id_and_writes_nothing(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0), key="k")
    assert mnests.record_passing(*EDGE, at=day(1), key="k") == edge
    assert mnests.get(edge).uses == 1
    mnests.record_passing(*EDGE, at=day(1), key="other")
    assert mnests.get(edge).uses == 2
    with mk.open() as mem:
        mem.reasonlets.capture(scope="s", question="q", graph={"nodes": [], "edges": []}, outcome=None, key="k")
        with pytest.raises(Conflict, match="this key was used for capture"):
            mem.mnests.record_passing(*EDGE, key="k")


# Protos ------------------------------------------------------------------------------------------------------------


def test_a_wish_for_a_missing_executor_is_a_proto(mnests: Mnests) -> None:
    proto = mnests.record_passing("find", "1", "book", dst_exists=False, desired_sig={"summary": "books"}, at=day(0))
    again = mnests.record_passing("find", "1", "book", dst_exists=False, at=day(1))
    assert proto == again
    got = mnests.get(proto)
    assert (got.state, got.dst_version, got.uses) == ("proto", None, 2)
    assert json.loads(got.desired_sig or "") == {"summary": "books"}


def test_a_later_signature_that_says_something_replaces_the_old_one(mnests: Mnests) -> None:
    for n, signature in enumerate(["{}", '{"summary":"a"}', None, "{}", '{"summary":"b"}', {}]):
        proto = mnests.record_passing("find", "1", "book", dst_exists=False, desired_sig=signature, at=day(n))
    assert mnests.get(proto).desired_sig == '{"summary":"b"}'


def test_recurring_protos_are_wanted_at_least_three_times_and_not_faded(mnests: Mnests) -> None:
    for n in range(2):
        proto = mnests.record_passing("find", "1", "book", dst_exists=False, at=day(n))
    assert mnests.recurring_protos().height == 0
    mnests.record_passing("find", "1", "book", dst_exists=False, at=day(2))
    assert mnests.recurring_protos()["mnest_id"].to_list() == [proto]
    assert mnests.recurring_protos(min_uses=4).height == 0
    assert mnests.recurring_protos(at=day(100)).height == 0  # by the weight of then


def test_a_promotion_sets_the_version_clears_the_signature_and_is_recorded(mnests: Mnests) -> None:
    proto = mnests.record_passing("find", "1", "book", dst_exists=False, desired_sig="{'x'}", at=day(0))
    mnests.promote_proto_to_active(proto, "0.1", reason="built", at=day(1))
    got = mnests.get(proto)
    assert (got.state, got.dst_version, got.desired_sig, got.weight) == ("active", "0.1", None, 0.30)
    event = mnests.events(proto).row(-1, named=True)
    assert (event["kind"], event["old_state"], event["new_state"], event["reason"]) == (
        "promote", "proto", "active", "built",
    )  # fmt: skip
    assert mnests.record_passing("find", "1", "book", "0.1", at=day(2)) == proto
    assert mnests.get(proto).uses == 2


# The ager ----------------------------------------------------------------------------------------------------------


def test_the_ager_decays_demotes_and_purges_in_that_order(mnests: Mnests) -> None:
    weak = mnests.record_passing(*EDGE, decay_lambda=0.05, at=day(0))
    strong = mnests.record_passing("find", "1.0", "pay", "1.0", at=day(0))
    proto = mnests.record_passing("find", "1.0", "book", dst_exists=False, decay_lambda=0.2, at=day(0))
    stats = mnests.apply_ager(day(9))
    assert (stats.decayed, stats.decayed_protos, stats.demoted_to_decaying, stats.purged_protos) == (3, 1, 1, 1)
    assert mnests.get(weak).state == "decaying"
    assert mnests.get(weak).weight == pytest.approx(faded(0.30, 9, 0.05), rel=1e-12)
    assert mnests.get(strong).ts_last == day(9)
    assert mnests.get(strong).ts_used == day(0)
    with pytest.raises(NotFound, match="purged"):
        mnests.get(proto)
    run = mk_frame(mnests, "SELECT * FROM ager_runs")
    assert run.select("kind", "decayed", "purged_protos").row(0) == ("explicit", 3, 1)


def mk_frame(mnests: Mnests, sql: str) -> pl.DataFrame:
    with mnests._store.read() as con:
        return con.sql(sql).pl()


def test_nightly_decay_leaves_no_events(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    for n in range(1, 20):
        mnests.apply_ager(day(n))
    assert kinds(mnests, edge) == ["passing"]


def test_the_same_ager_instant_again_does_nothing_more(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    assert mnests.apply_ager(day(5)).decayed == 1
    before = mnests.get(edge)
    assert mnests.apply_ager(day(5)).decayed == 0
    assert mnests.get(edge) == before
    assert mk_frame(mnests, "SELECT * FROM ager_runs").height == 1


def test_an_ager_older_than_the_newest_changes_nothing_and_is_no_tick(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    mnests.apply_ager(day(5))
    before = mnests.get(edge)
    assert mnests.apply_ager(day(3)) == mk.AgerStats()
    assert mnests.get(edge) == before
    assert mk_frame(mnests, "SELECT * FROM ager_runs").height == 1


def test_an_ager_that_comes_late_counts_what_it_would_have_counted_in_time(mnests: Mnests) -> None:
    early = Mnests(Store())
    for store in (mnests, early):
        store.record_passing(*EDGE, decay_lambda=0.1, at=day(0))
        if store is early:
            stats = store.apply_ager(day(5))
        store.record_passing(*EDGE, decay_lambda=0.1, at=day(6))
    late = mnests.apply_ager(day(5))
    assert late == stats
    assert late.demoted_to_decaying == 1
    columns = ["state", "weight", "uses", "ts_first", "ts_last", "ts_used"]
    assert mnests.frame().select(columns).sort("state").equals(early.frame().select(columns).sort("state"))


def test_a_tick_comes_before_passings_of_its_instant(mnests: Mnests) -> None:
    mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(0))
    mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(5))
    mnests.apply_ager(day(5))
    assert mnests.frame().sort("state").select("state", "uses", "weight").rows() == [
        ("active", 1, 0.30),
        ("decaying", 1, pytest.approx(faded(0.30, 5, 0.1), rel=1e-12)),
    ]


def test_exactly_on_the_threshold_is_not_below_it(mnests: Mnests) -> None:
    rate = math.log(1.5)  # 0.30 fades to 0.20 in a day
    edge = mnests.record_passing(*EDGE, decay_lambda=rate, at=day(0))
    for hour in range(1, 25):
        mnests.apply_ager(day(hour / 24))
    assert mnests.get(edge).state == "active"
    mnests.apply_ager(day(1.001))
    assert mnests.get(edge).state == "decaying"


def test_a_passing_never_revives_a_decaying_edge(mnests: Mnests) -> None:
    old = mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(0))
    mnests.apply_ager(day(5))
    new = mnests.record_passing(*EDGE, at=day(6))
    assert new != old
    assert (mnests.get(old).state, mnests.get(new).state, mnests.get(new).weight) == ("decaying", "active", 0.30)


# Transitions -------------------------------------------------------------------------------------------------------


def test_only_the_four_states_exist(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    with pytest.raises(InvalidInput, match="active, proto, decaying, superseded"):
        mnests.transition_state(edge, "gone")


def test_nothing_becomes_a_proto(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    with pytest.raises(Conflict, match="no record becomes a proto"):
        mnests.transition_state(edge, "proto")


def test_a_proto_can_only_be_promoted_or_superseded(mnests: Mnests) -> None:
    proto = mnests.record_passing("find", "1", "book", dst_exists=False, at=day(0))
    for state in ("active", "decaying"):
        with pytest.raises(Conflict, match="promote_proto_to_active"):
            mnests.transition_state(proto, state, at=day(1))
    mnests.transition_state(proto, "superseded", at=day(1))
    got = mnests.get(proto)
    assert (got.state, got.dst_version) == ("superseded", None)
    with pytest.raises(Conflict):
        mnests.transition_state(proto, "active", at=day(2))
    with pytest.raises(Conflict, match="only a proto can be promoted"):
        mnests.promote_proto_to_active(proto, "1", at=day(2))


def test_the_same_state_again_is_a_conflict_that_names_it(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    with pytest.raises(Conflict, match="it is active already"):
        mnests.transition_state(edge, "active", at=day(1))
    assert kinds(mnests, edge) == ["passing"]


def test_a_transition_records_an_event_and_leaves_the_weight(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(0))
    mnests.transition_state(edge, "superseded", reason="replaced", at=day(3))
    event = mnests.events(edge).row(-1, named=True)
    assert (event["kind"], event["old_state"], event["new_state"], event["reason"]) == (
        "transition", "active", "superseded", "replaced",
    )  # fmt: skip
    assert mnests.get(edge).weight == 0.30
    assert mnests.get(edge).ts_last == day(0)
    assert mnests.get(edge, at=day(10)).weight_at == pytest.approx(faded(0.30, 10), rel=1e-12)


def test_an_unknown_mnest_is_not_found(mnests: Mnests) -> None:
    for call in (mnests.get, mnests.events, lambda x: mnests.transition_state(x, "superseded")):
        with pytest.raises(NotFound, match="mn_nothing"):
            call("mn_nothing")


def test_a_record_that_was_not_there_yet_cannot_be_changed_then(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, at=day(5))
    with pytest.raises(NotFound, match="was not there"):
        mnests.transition_state(edge, "superseded", at=day(1))


# Defects of the reference that are mended ------------------------------------------------------------------------


def test_entering_decaying_where_a_record_is_there_merges_the_two_and_the_ager_goes_on(mnests: Mnests) -> None:
    first = mnests.record_passing(*EDGE, decay_lambda=0.1, tags=["a"], at=day(0))
    mnests.apply_ager(day(5))
    second = mnests.record_passing(*EDGE, decay_lambda=0.2, tags=["b", "a"], at=day(6))
    other = mnests.record_passing("x", "1", "y", "1", at=day(6))
    stats = mnests.apply_ager(day(10))
    assert (stats.demoted_to_decaying, stats.merged, stats.decayed) == (1, 1, 2)
    assert mnests.get(other).ts_last == day(10)  # the whole ager ran
    merged = mnests.get(first)
    assert (merged.state, merged.uses, merged.tags) == ("decaying", 2, ("a", "b"))
    assert (merged.ts_first, merged.ts_last, merged.ts_used) == (day(0), day(10), day(6))
    assert merged.decay_lambda == 0.2
    assert merged.weight == pytest.approx(faded(0.30, 4, 0.2), rel=1e-12)
    assert kinds(mnests, first) == ["passing", "demote", "passing", "demote", "merge"]
    assert json.loads(mnests.events(first)["detail"][-1]) == {"into": first}
    with pytest.raises(NotFound, match=f"merged into '{first}'"):
        mnests.get(second)
    assert mnests.frame().height == 2


def test_entering_superseded_by_hand_merges_too_and_the_older_id_stays(mnests: Mnests) -> None:
    older = mnests.record_passing(*EDGE, at=day(0))
    mnests.transition_state(older, "superseded", at=day(1))
    younger = mnests.record_passing(*EDGE, at=day(2))
    mnests.transition_state(younger, "superseded", at=day(3))
    assert mnests.frame()["mnest_id"].to_list() == [older]
    assert mnests.get(older).uses == 2
    assert mnests.get(older).ts_last == day(2)
    assert kinds(mnests, older) == ["passing", "transition", "passing", "transition", "merge"]


def test_an_entering_record_that_is_older_gives_its_id(mnests: Mnests) -> None:
    older = mnests.record_passing(*EDGE, at=day(0))
    mnests.transition_state(older, "superseded", at=day(1))
    younger = mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(2))
    mnests.apply_ager(day(8))
    assert mnests.get(younger).state == "decaying"
    mnests.transition_state(older, "decaying", at=day(9))
    assert mnests.frame()["mnest_id"].to_list() == [older]
    merged = mnests.get(older)
    assert merged.ts_last == day(8)  # the later of the two
    assert merged.decay_lambda == 0.1


def test_entering_active_onto_an_existing_one_is_a_conflict_that_names_both(mnests: Mnests) -> None:
    old = mnests.record_passing(*EDGE, at=day(0))
    mnests.transition_state(old, "superseded", at=day(1))
    new = mnests.record_passing(*EDGE, at=day(2))
    with pytest.raises(Conflict) as caught:
        mnests.transition_state(old, "active", at=day(3))
    assert old in str(caught.value)
    assert new in str(caught.value)
    assert mnests.get(old).state == "superseded"
    proto = mnests.record_passing("find", "1.0", "buy", dst_exists=False, at=day(3))
    with pytest.raises(Conflict) as caught:
        mnests.promote_proto_to_active(proto, "1.0", at=day(4))
    assert proto in str(caught.value)
    assert new in str(caught.value)


def test_archive_candidacy_uses_the_weight_at_now_and_the_days_since_use(mnests: Mnests) -> None:
    mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(0))
    proposed = {n: mnests.apply_ager(day(n)).proposed_archive for n in range(1, 95)}
    assert [n for n, count in proposed.items() if count] == list(range(90, 95))  # a nightly ager reaches it


def test_a_purge_leaves_an_event_with_the_last_state(mnests: Mnests) -> None:
    proto = mnests.record_passing(
        "find", "1", "book", dst_exists=False, desired_sig='{"summary":"b"}', decay_lambda=0.5, at=day(0)
    )
    mnests.apply_ager(day(10))
    event = mnests.events(proto).row(-1, named=True)
    assert (event["kind"], event["old_state"], event["new_state"]) == ("purge", "proto", None)
    assert event["weight"] == pytest.approx(faded(0.30, 10, 0.5), rel=1e-12)
    last = json.loads(event["detail"])
    assert (last["uses"], last["desired_sig"]) == (1, '{"summary":"b"}')
    assert datetime.fromisoformat(last["ts_used"]) == day(0)
    assert mnests.get(proto, at=day(9)).state == "proto"


def test_a_missing_version_of_an_existing_executor_says_what_to_give(mnests: Mnests) -> None:
    with pytest.raises(InvalidInput, match="give its version, or dst_exists=False"):
        mnests.record_passing("find", "1", "buy")
    with pytest.raises(InvalidInput, match="dst_exists=False"):
        mnests.record_passing("find", "1", "buy", "1", dst_exists=False)
    assert mnests.stats().total_mnests == 0


def test_a_clock_running_backwards_neither_loses_nor_decays_twice(mnests: Mnests) -> None:
    in_order = Mnests(Store())
    times = [0, 7, 3, 12, 12, 1]
    for n in times:
        mnests.record_passing(*EDGE, at=day(n))
    for n in sorted(times):
        in_order.record_passing(*EDGE, at=day(n))
    have, want = mnests.frame().row(0, named=True), in_order.frame().row(0, named=True)
    assert {k: v for k, v in have.items() if k != "mnest_id"} == {k: v for k, v in want.items() if k != "mnest_id"}
    assert mnests.events(have["mnest_id"])["delta"].to_list() == in_order.events(want["mnest_id"])["delta"].to_list()


@pytest.mark.parametrize("rate", [-0.1, float("nan"), float("inf")])
def test_a_negative_or_non_finite_rate_is_refused(mnests: Mnests, rate: float) -> None:
    with pytest.raises(InvalidInput, match="decay_lambda"):
        mnests.record_passing(*EDGE, decay_lambda=rate)


@pytest.mark.parametrize("name", ["", "  ", "x" * 513, "\ud800"])
def test_empty_over_long_and_broken_names_are_refused(mnests: Mnests, name: str) -> None:
    for args in ((name, "1", "b", "1"), ("a", name, "b", "1"), ("a", "1", name, "1"), ("a", "1", "b", name)):
        with pytest.raises(InvalidInput, match="nothing was written"):
            mnests.record_passing(*args)
    with pytest.raises(InvalidInput):
        mnests.record_passing(*EDGE, tags=[name])
    assert mnests.stats().total_mnests == 0


def test_naive_instants_are_refused(mnests: Mnests) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        mnests.record_passing(*EDGE, at=datetime(2025, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidInput, match="time zone"):
        mnests.apply_ager("2025-01-01T00:00:00")


def test_eight_threads_lose_nothing(mnests: Mnests) -> None:
    targets = [("find", "1", f"tool_{n}", "1") for n in range(3)]

    def work(thread: int) -> None:
        for n in range(625):
            mnests.record_passing(*targets[(thread + n) % 3])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    frame = mnests.frame()
    assert frame["uses"].sum() == 5000
    assert frame.height == 3
    assert (frame["weight"] > 0.999).all()
    passings = mk_frame(mnests, "SELECT count(*) AS n, count(DISTINCT seq) AS seqs FROM edge_events")
    assert passings.row(0) == (5000, 5000)


def test_two_handles_of_one_file_lose_nothing(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "m.duckdb") for _ in range(2)]
    handles = [Mnests(store) for store in stores]

    def record(mnests: Mnests, thread: int) -> None:
        for n in range(40):
            mnests.record_passing("find", "1", f"tool_{n % 3}", "1", at=day(n), turn_id=f"{thread}-{n}")

    def age(mnests: Mnests) -> None:
        for n in range(0, 40, 8):
            mnests.apply_ager(day(n + 0.5))

    threads = [threading.Thread(target=record, args=(handles[n % 2], n)) for n in range(2)]
    threads.append(threading.Thread(target=age, args=(handles[1],)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = Mnests(Store())
    for n in range(40):
        for thread in range(2):
            alone.record_passing("find", "1", f"tool_{n % 3}", "1", at=day(n), turn_id=f"{thread}-{n}")
    for n in mk_frame(handles[0], "SELECT ts_ager FROM ager_runs ORDER BY ts_ager")["ts_ager"].to_list():
        alone.apply_ager(n)
    columns = ["dst_executor", "state", "uses", "ts_first", "ts_last", "ts_used"]
    have, want = (mnests.frame().sort("dst_executor", "state") for mnests in (handles[0], alone))
    assert have.select(columns).equals(want.select(columns))
    assert have["weight"].to_list() == pytest.approx(want["weight"].to_list(), rel=1e-9)
    for store in stores:
        store.close()


# Reads -------------------------------------------------------------------------------------------------------------


def test_heaviest_first_ties_by_name_and_version(mnests: Mnests) -> None:
    for dst, version in (("b", "2"), ("b", "1"), ("a", "1")):
        mnests.record_passing("s", "1", dst, version, at=day(0))
    mnests.record_passing("s", "1", "wish", dst_exists=False, at=day(0))
    mnests.record_passing("s", "1", "wish", dst_exists=False, at=day(0))
    top = mnests.top_outgoing("s").select("dst_executor", "dst_version").rows()
    assert top == [("wish", None), ("a", "1"), ("b", "1"), ("b", "2")]
    assert mnests.top_outgoing("s", k=2).height == 2
    assert mnests.top_incoming("wish").height == 0  # protos are no incoming edges
    assert mnests.top_incoming("b").height == 2
    assert mnests.summary("wish").proto_incoming == 1


def test_order_and_means_go_by_the_weight_at_the_instant_asked_for(mnests: Mnests) -> None:
    mnests.record_passing("s", "1", "fast", "1", decay_lambda=0.5, at=day(0))
    mnests.record_passing("s", "1", "fast", "1", decay_lambda=0.5, at=day(0))
    mnests.record_passing("s", "1", "slow", "1", decay_lambda=0.001, at=day(0))
    assert mnests.top_outgoing("s")["dst_executor"].to_list() == ["fast", "slow"]
    later = mnests.top_outgoing("s", at=day(5))
    assert later["dst_executor"].to_list() == ["slow", "fast"]
    assert (later["weight"] > later["weight_at"]).all()
    assert mnests.summary("s", at=day(5)).outgoing.mean_weight == pytest.approx(later["weight_at"].mean(), rel=1e-12)
    assert mnests.top_outgoing("s").select((pl.col("weight") == pl.col("weight_at")).all()).item()


def test_a_read_as_of_an_instant_knows_nothing_later(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(0))
    mnests.record_passing(*EDGE, decay_lambda=0.1, at=day(2))
    mnests.apply_ager(day(12))
    assert mnests.get(edge).state == "decaying"
    then = mnests.get(edge, at=day(1))
    assert (then.state, then.uses, then.weight, then.ts_last) == ("active", 1, 0.30, day(0))
    assert then.weight_at == pytest.approx(faded(0.30, 1, 0.1), rel=1e-12)
    assert mnests.frame(day(-1)).height == 0
    assert mnests.find(*EDGE, at=day(1)) == edge
    assert mnests.find(*EDGE) is None
    assert mnests.find(*EDGE, state="decaying") == edge
    assert mnests.events(edge, at=day(1)).height == 1


def test_by_tag_decaying_audit_and_stats(mnests: Mnests) -> None:
    edge = mnests.record_passing(*EDGE, tags=["x"], decay_lambda=0.1, at=day(0))
    mnests.record_passing("a", "1", "b", "1", tags=["y"], at=day(1))
    mnests.apply_ager(day(8))
    assert mnests.by_tag("x")["mnest_id"].to_list() == [edge]
    assert mnests.decaying()["mnest_id"].to_list() == [edge]
    assert mnests.audit()["kind"].to_list() == ["demote", "passing", "passing"]
    assert mnests.audit(limit=1)["kind"].to_list() == ["demote"]
    assert (mnests.stats().total_mnests, mnests.stats().active, mnests.stats().decaying) == (2, 1, 1)


def test_empty_reads_have_the_schema_of_full_ones(mnests: Mnests) -> None:
    reads = {
        "frame": mnests.frame,
        "frame_at": lambda: mnests.frame(day(0)),
        "top_outgoing": lambda: mnests.top_outgoing("find"),
        "top_incoming": lambda: mnests.top_incoming("buy"),
        "by_tag": lambda: mnests.by_tag("x"),
        "decaying": mnests.decaying,
        "recurring": mnests.recurring_protos,
        "audit": mnests.audit,
        "walk": lambda: mnests.walk("find"),
        "follows": mnests.directly_follows,
        "diff": lambda: mnests.diff(day(0), day(1)),
        "fades": mnests.fades_at,
        "groups": mnests.strong_groups,
        "strengths": mnests.strengths,
    }
    empty = {name: read().schema for name, read in reads.items()}
    assert dict(empty["frame"]) == schema_of("mnests")
    mnests.record_passing(*EDGE, tags=["x"], at=day(0))
    mnests.record_passing("find", "1.0", "wish", dst_exists=False, at=day(0))
    mnests.record_passing("a", "1", "b", "1", decay_lambda=1.0, at=day(0))
    mnests.apply_ager(day(3))
    assert {name: read().schema for name, read in reads.items()} == empty


def test_the_mnestoma_shows_active_and_proto_edges() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing(*EDGE, at=day(0))
        mem.mnests.record_passing("find", "1", "book", dst_exists=False, at=day(0))
        edge = mem.mnests.record_passing("a", "1", "b", "1", at=day(0))
        mem.mnests.transition_state(edge, "superseded", at=day(1))
        states = mem.sql("SELECT state FROM v_mnestoma ORDER BY state")["state"].to_list()
    assert states == ["active", "proto"]


def test_canonical_queries_are_counted_apart_from_mnests() -> None:
    with mk.open() as mem:
        for n, ok in enumerate([True, True, False]):
            mem.queries.record("weather tomorrow", "get_weather", '{"place": "<str>"}', ok=ok, at=day(n))
        mem.queries.record("weather tomorrow", "get_weather", "{}", at=day(0))
        frame = mem.frame("canonical_queries").sort("args_shape")
        assert frame.select("uses", "ok", "fail", "ts_first", "ts_last").row(0) == (3, 2, 1, day(0), day(2))
        assert mem.mnests.stats().total_mnests == 0
        with pytest.raises(InvalidInput):
            mem.queries.record("", "t", "{}")
