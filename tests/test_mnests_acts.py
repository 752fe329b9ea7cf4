"""What somebody did by hand, and what agers, bulk, diffs and histories make of it afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.turns.readers.metnos import NOT_EXECUTORS

DAY0 = datetime(2025, 8, 1, 12, tzinfo=UTC)


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


def log(*steps: tuple[str, str, float], version: str = "1", session: str = "s") -> pl.DataFrame:
    """Turns of one session that pass from a to b and on, at days."""
    rows = [
        {"session_id": session, "step": n, "executor": name, "executor_version": version, "ts": day(at)}
        for n, (_, name, at) in enumerate(steps)
    ]
    return mk.check_turns(pl.DataFrame(rows, schema_overrides={"ts": pl.Datetime("us", "UTC")}))


def two(at: float, session: str = "s") -> pl.DataFrame:
    return log(("", "a", at), ("", "b", at + 0.01), session=session)


@pytest.mark.parametrize("ager", ["daily", None])
def test_a_replay_goes_on_over_a_promoted_edge(ager: str | None) -> None:
    with mk.open() as mem:
        proto = mem.mnests.record_passing("a", "1", "b", dst_exists=False, at=day(0))
        mem.mnests.promote_proto_to_active(proto, "1", at=day(1))
        mem.replay(two(2.0), ager=ager, captures="none")
        (record,) = mem.mnests.frame().to_dicts()
        assert (record["mnest_id"], record["uses"], record["state"]) == (proto, 2, "active")
        assert mem.mnests.events(proto)["kind"].to_list() == ["passing", "promote", "passing"]


def test_a_record_that_bulk_opens_after_a_demotion_has_the_rate_of_its_own_first_passing() -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("a", "1", "b", "1", decay_lambda=5.0, at=day(0))
        mem.replay(two(34.0), captures="none")
        active = mem.mnests.frame().filter(state="active")
        assert active.select("decay_lambda", "weight").rows() == [(0.018, 0.30)]
        # A late passing into the first life has everything folded again: the same must come out.
        mem.mnests.record_passing("a", "1", "b", "1", decay_lambda=5.0, at=day(0.1))
        assert mem.mnests.frame().filter(state="active").select("decay_lambda", "weight").rows() == [(0.018, 0.30)]


def test_a_record_made_active_by_hand_does_not_fade_by_agers_from_before() -> None:
    with mk.open() as mem:
        edge = mem.mnests.record_passing("a", "1", "b", "1", at=day(0))
        mem.mnests.apply_ager(day(31))
        demoted = mem.mnests.get(edge)
        assert demoted.state == "decaying"
        mem.mnests.apply_ager(day(150))
        mem.mnests.transition_state(edge, "active", at=day(151))
        record = mem.mnests.get(edge)
        assert (record.weight, record.ts_last) == (demoted.weight, day(31))
        mem.mnests.record_passing("x", "1", "y", "1", at=day(151))
        assert mem.mnests.get(edge).weight == demoted.weight
        delta = mem.mnests.events(mem.mnests.record_passing("a", "1", "b", "1", at=day(152)))["delta"].to_list()[-1]
        assert delta == pytest.approx(demoted.weight * (2.718281828459045 ** (-0.018 * 121) - 1) + 0.15, abs=1e-9)


def test_a_record_made_active_by_hand_fades_by_the_next_ager_from_when_it_was_brought_up_to_date() -> None:
    with mk.open() as mem:
        edge = mem.mnests.record_passing("a", "1", "b", "1", at=day(0))
        mem.mnests.apply_ager(day(31))
        before = mem.mnests.get(edge).weight
        mem.mnests.apply_ager(day(32))
        mem.mnests.transition_state(edge, "active", at=day(33))
        mem.mnests.apply_ager(day(33.5))
        record = mem.mnests.get(edge)
        assert record.state == "decaying"
        assert record.weight == pytest.approx(before * 2.718281828459045 ** (-0.018 * 2.5), abs=1e-12)


def test_after_an_act_the_edges_of_other_pairs_are_still_demoted_in_place() -> None:
    with mk.open() as mem:
        for name in ("b", "c", "d"):
            mem.mnests.record_passing("a", "1", name, "1", at=day(0))
        acted = mem.mnests.record_passing("x", "1", "y", "1", at=day(0))
        mem.mnests.transition_state(acted, "superseded", at=day(1))
        again = mem.mnests.record_passing("x", "1", "y", "1", at=day(2))
        stats = mem.mnests.apply_ager(day(40))
        assert (stats.decayed, stats.demoted_to_decaying) == (4, 4)
        assert set(mem.mnests.frame().filter(state="decaying")["dst_executor"]) == {"b", "c", "d", "y"}
        assert mem.mnests.events(again)["kind"].to_list() == ["passing", "demote"]


def test_an_ager_called_at_the_instant_of_a_night_of_a_log_stays_when_the_log_is_taken_back() -> None:
    with mk.open() as mem:
        mem.replay(pl.concat([two(0.0), two(40.0, "t")]), label="mistake", captures="none")
        night = mem.frame("ager_runs")["ts_ager"].max()
        mem.mnests.record_passing("x", "1", "y", "1", at=day(0))
        mem.mnests.apply_ager(night)
        mem.remove_source("mistake")
        assert mem.frame("ager_runs").select("ts_ager", "kind").rows() == [(night, "explicit")]
        assert mem.mnests.frame()["state"].to_list() == ["decaying"]


def test_passings_to_a_proto_count_for_the_version_that_it_was_promoted_to() -> None:
    with mk.open() as mem:
        for n in range(3):
            proto = mem.mnests.record_passing("a", "1", "b", dst_exists=False, at=day(n))
        mem.mnests.promote_proto_to_active(proto, "1", at=day(4))
        changes = {row["dst_version"]: row for row in mem.mnests.diff(day(3.5), day(5)).to_dicts()}
        assert (changes["1"]["change"], changes["1"]["n_after"]) == ("born", 3)
        assert (changes[None]["change"], changes[None]["n_before"]) == ("gone", 3)
        assert mem.mnests.directly_follows().select("dst_version", "n", "state").rows() == [("1", 3, "active")]
        assert mem.mnests.directly_follows(at=day(3)).select("dst_version", "n").rows() == [(None, 3)]


def test_the_history_of_a_newer_version_leads_to_those_it_superseded() -> None:
    with mk.open() as mem:
        old = mem.mnests.record_passing("a", "1", "b", "1.0", at=day(0))
        mem.mnests.supersede_version("b", "1.0", "1.1", at=day(1))
        mid = mem.mnests.record_passing("a", "1", "b", "1.1", at=day(2))
        mem.mnests.supersede_version("a", "1", "2", at=day(3))
        new = mem.mnests.record_passing("a", "2", "b", "1.1", at=day(4))
        other = mem.mnests.record_passing("a", "2", "c", "1", at=day(4))
        linked = mem.mnests.events(new, linked=True)
        assert linked["mnest_id"].to_list() == [old, old, mid, mid, new]
        assert linked["ts"].is_sorted()
        assert mem.mnests.events(new)["mnest_id"].to_list() == [new]
        assert mem.mnests.events(other, linked=True)["mnest_id"].to_list() == [other]
        assert mem.mnests.events(new, at=day(2.5), linked=True).height == 0


def test_what_is_no_number_of_rows_or_no_state_is_refused() -> None:
    with mk.open() as mem:
        for call in (
            lambda: mem.mnests.audit(-1),
            lambda: mem.mnests.top_outgoing("a", k=-3),
            lambda: mem.mnests.top_incoming("a", k=0),
        ):
            with pytest.raises(mk.InvalidInput, match="must be a whole number of at least 1"):
                call()
        with pytest.raises(mk.InvalidInput, match="states must be some of"):
            mem.mnests.find("a", "1", "b", "1", state="bogus")


@pytest.mark.parametrize("tool", sorted(NOT_EXECUTORS))
def test_the_systems_own_tools_are_no_executors(tool: str, tmp_path: Path) -> None:
    steps = ",".join(
        f'{{"step_num": {n}, "chosen_tool": "{name}", "result": {{"ok": true}}, "resolved_args": {{}}}}'
        for n, name in enumerate(("find_files", tool, "send_mail", tool), start=1)
    )
    turn = (
        '{"turn_id": "t1", "mode": "agent", "ts_start": 1754000000.0, "ts_end": 1754000009.0, "final_kind": "answer",'
        f' "user_query": "q", "steps": [{steps}]}}'
    )
    alone = turn.replace('"t1"', '"t2"').replace("find_files", tool).replace("send_mail", tool)
    (tmp_path / "2025-08-01.jsonl").write_text(turn + "\n" + alone + "\n")
    turns = mk.read_turns(tmp_path / "2025-08-01.jsonl")
    assert turns.filter(session_id="t1")["executor"].to_list() == ["find_files", "send_mail"]
    assert turns.filter(session_id="t2")["executor"].to_list() == [None]
    passings = mk.derive_passings(turns, "successive").select("src_executor", "dst_executor").rows()
    assert passings == [("find_files", "send_mail")]
    (batch,) = mk.read_batches(tmp_path / "2025-08-01.jsonl")
    assert batch.records == 8


def test_an_ager_asked_again_for_its_instant_tells_what_was_so_then() -> None:
    with mk.open() as mem:
        for n in range(2):
            mem.mnests.record_passing("a", "1", "b", dst_exists=False, at=day(n))
        first = mem.mnests.apply_ager(day(3))
        mem.mnests.record_passing("a", "1", "b", dst_exists=False, at=day(4))
        again = mem.mnests.apply_ager(day(3))
        assert (first.recurring_protos, again.recurring_protos, again.decayed) == (0, 0, 0)
        assert mem.mnests.apply_ager(day(5)).recurring_protos == 1
