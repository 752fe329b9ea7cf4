"""The store's file: opening, schema version, lock, parameters, copies, scrubbing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import mnemokit as mk
from mnemokit.migrations import migrate, packaged_migrations
from mnemokit.store import Store, new_ids, take_numbers

EDGE_COLUMNS = (
    *("src_executor", "src_version", "dst_executor", "dst_version", "weight", "uses", "ts_first", "ts_last"),
    *("ts_used", "decay_lambda", "state", "tags", "desired_sig", "untimed"),
)


def test_a_missing_file_is_created_and_opened_again(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        mem.reasonlets.capture(scope="s", question="q", graph={"nodes": [{"id": "a"}], "edges": []}, outcome="success")
    with mk.open(tmp_path / "m.duckdb") as mem:
        assert mem.frame("reasonlets").height == 1


def test_every_instant_that_comes_out_is_utc(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        assert mem.sql("SELECT current_setting('TimeZone') AS zone")["zone"].item() in ("UTC", "Etc/UTC")
        mem.mnests.record_passing("a", "1", "b", "1", at="2025-01-01T02:00:00+02:00")
        assert str(mem.frame("mnests")["ts_first"].item()) == "2025-01-01 00:00:00+00:00"


def test_a_newer_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.duckdb"
    mk.open(path).close()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE store_info SET value = '999' WHERE name = 'schema_version'")
    before = path.read_bytes()
    with pytest.raises(mk.StoreVersion, match=r"schema version 999.*newer mnemokit"):
        mk.open(path)
    assert path.read_bytes() == before


def test_another_programs_duckdb_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE theirs AS SELECT 1 AS x")
    with pytest.raises(mk.StoreVersion, match="another program"):
        mk.open(path)
    with duckdb.connect(str(path)) as con:
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.duckdb"
    path.write_text("shopping list\n" * 500)
    with pytest.raises(mk.StoreVersion, match="not a DuckDB file"):
        mk.open(path)
    assert path.read_text().startswith("shopping list")


def test_an_older_file_is_migrated_in_one_transaction() -> None:
    con = duckdb.connect()
    first = (
        1,
        "001_a.sql",
        "CREATE TABLE store_info (name VARCHAR PRIMARY KEY, value VARCHAR); CREATE TABLE a (x INT);",
    )
    second = (2, "002_b.sql", "ALTER TABLE a ADD COLUMN y INT; CREATE TABLE b (x INT);")
    broken = (3, "003_c.sql", "CREATE TABLE c (x INT); INSERT INTO nowhere VALUES (1);")
    assert migrate(con, [first]) == 1
    con.execute("INSERT INTO a VALUES (7)")
    assert migrate(con, [first, second]) == 1
    assert con.execute("SELECT * FROM a").fetchall() == [(7, None)]
    with pytest.raises(duckdb.CatalogException):
        migrate(con, [first, second, broken])
    assert con.execute("SELECT value FROM store_info WHERE name = 'schema_version'").fetchall() == [("2",)]
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'c'").fetchall() == [(0,)]
    assert migrate(con, [first, second]) == 0
    con.close()


def test_edges_of_a_file_made_before_agers_on_read_are_the_same_after_its_migration(tmp_path: Path) -> None:
    ager, later = datetime(2025, 3, 10, tzinfo=UTC), datetime(2025, 4, 10, tzinfo=UTC)
    with mk.open(tmp_path / "new.duckdb") as mem:
        mem.mnests.record_passing("find", "1", "buy", "1", at="2025-03-01T00:00:00Z")
        mem.mnests.record_passing("find", "1", "sell", None, dst_exists=False, at="2025-03-02T00:00:00Z")
        mem.mnests.apply_ager(ager)
        as_then = mem.mnests.frame()
        mem.mnests.apply_ager(later)
        expected = mem.mnests.frame()
    con = duckdb.connect(str(tmp_path / "old.duckdb"))
    migrate(con, packaged_migrations()[:1])
    con.register("stored", as_then.select("mnest_id", *EDGE_COLUMNS))
    con.execute(
        "INSERT INTO mnests BY NAME SELECT *, row_number() OVER () AS mnest_no, mnest_no AS edge_no FROM stored"
    )
    con.execute(
        "INSERT INTO edges SELECT edge_no, src_executor, src_version, dst_executor, dst_version, NULL FROM mnests;"
        "INSERT INTO mnest_lives SELECT mnest_no, mnest_id, edge_no, mnest_no FROM mnests;"
    )
    con.execute("INSERT INTO ager_runs (ts_ager, kind, params, seconds) VALUES (?, 'explicit', '{}', 0)", [ager])
    con.close()
    with mk.open(tmp_path / "old.duckdb") as mem:
        assert_frame_equal(mem.mnests.frame(), as_then, abs_tol=1e-12, rel_tol=0)
        mem.mnests.apply_ager(later)
        assert_frame_equal(mem.mnests.frame(), expected, abs_tol=1e-12, rel_tol=0)


def test_a_file_that_needs_a_migration_is_not_opened_read_only() -> None:
    con = duckdb.connect()
    with pytest.raises(mk.StoreVersion, match="open it once without read_only"):
        migrate(con, packaged_migrations(), read_only=True)
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
    con.close()


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [number for number, _, _ in packaged_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_lock_error_names_the_process_that_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.duckdb"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import mnemokit as mk; m = mk.open({str(path)!r}); print('open', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        for read_only in (False, True):
            with pytest.raises(mk.StoreLocked, match=f"held by process {holder.pid} "):
                mk.open(path, read_only=read_only)
    finally:
        holder.communicate("\n")
    mk.open(path).close()


def test_a_read_only_store_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.duckdb"
    mk.open(path).close()
    with mk.open(path, read_only=True) as mem:
        assert mem.frame("runs").height == 0
        with pytest.raises(mk.ReadOnly, match="read_only=True"):
            mem.mnests.record_passing("a", "1", "b", "1")
        with pytest.raises(mk.ReadOnly):
            mem.scrub()


def test_reading_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(mk.NotFound, match=r"m\.duckdb does not exist"):
        mk.open(tmp_path / "m.duckdb", read_only=True)
    with pytest.raises(mk.NotFound, match="folder"):
        mk.open(tmp_path / "no" / "m.duckdb")
    with pytest.raises(mk.InvalidInput, match="memory"):
        mk.open(read_only=True)


def test_parameters_are_stored_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.duckdb"
    mine = mk.EdgeParams(decay_lambda=0.05)
    mk.open(path, edge_params=mine).close()
    with mk.open(path) as mem:
        assert mem.edge_params == mine
        assert mem.rank_params == mk.RankParams()
    with pytest.raises(mk.Conflict, match="was made with"):
        mk.open(path, edge_params=mk.EdgeParams(decay_lambda=0.06))


def test_a_closed_memory_says_that_it_is_closed() -> None:
    mem = mk.open()
    mem.close()
    mem.close()
    with pytest.raises(mk.InvalidInput, match="closed"):
        mem.frame("runs")


def test_a_copy_is_equal_and_never_overwrites(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        mem.replay(mk.datasets.tau2().head(500))
        mem.copy_to(tmp_path / "copy.duckdb")
        with pytest.raises(mk.Conflict, match="exists already"):
            mem.copy_to(tmp_path / "copy.duckdb")
        with mk.open(tmp_path / "copy.duckdb", read_only=True) as copy:
            for table in mem.tables()["table"].unique():
                assert copy.frame(table).equals(mem.frame(table)), table


def test_a_memory_in_memory_can_be_copied_into_a_file(tmp_path: Path) -> None:
    with mk.open() as mem:
        mem.mnests.record_passing("a", "1", "b", "1", at="2025-01-01T00:00:00Z")
        assert mem.scrub() == 0
        mem.copy_to(tmp_path / "copy.duckdb")
    with mk.open(tmp_path / "copy.duckdb") as copy:
        assert copy.frame("mnests").height == 1


def test_scrubbing_a_file_opened_twice_is_refused(tmp_path: Path) -> None:
    with (
        mk.open(tmp_path / "m.duckdb") as mem,
        mk.open(tmp_path / "m.duckdb"),
        pytest.raises(mk.Conflict, match="more than once"),
    ):
        mem.scrub()


def test_scrub_keeps_every_row_and_the_keyed_hash(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        mem.replay(mk.datasets.tau2().head(300))
        before = {table: mem.frame(table) for table in mem.tables()["table"].unique()}
        mem.scrub()
        for table, frame in before.items():
            assert mem.frame(table).equals(frame), table
        assert mem.replay(mk.datasets.tau2().head(300)).turns == 0
    assert not (tmp_path / "m.duckdb.scrub").exists()


def test_numbers_are_given_out_once_also_to_two_connections(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "m.duckdb"), Store(tmp_path / "m.duckdb")
    taken: list[int] = []

    def take(store: Store) -> None:
        taken.extend(store.write(lambda con: take_numbers(con, "seq", 3)) for _ in range(50))

    threads = [threading.Thread(target=take, args=(store,)) for store in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 301, 3))
    first.close()
    second.close()


def test_a_failed_write_leaves_nothing() -> None:
    store = Store()

    def work(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("INSERT INTO store_info VALUES ('x', 'y')")
        raise mk.InvalidInput("stop")

    with pytest.raises(mk.InvalidInput, match="stop"):
        store.write(work)
    with store.read() as con:
        assert con.execute("SELECT count(*) FROM store_info WHERE name = 'x'").fetchall() == [(0,)]
    store.close()


def test_ids_do_not_repeat() -> None:
    ids = new_ids("mn_", 10_000)
    assert len(set(ids)) == 10_000
    assert all(len(name) == 27 for name in ids)


def test_a_slow_writer_among_quick_ones_of_another_handle_is_not_starved(tmp_path: Path) -> None:
    slow, quick = Store(tmp_path / "m.duckdb"), Store(tmp_path / "m.duckdb")
    tries: list[int] = []
    stop = threading.Event()

    def hurry() -> None:
        while not stop.is_set():
            quick.write(lambda con: take_numbers(con, "seq"))

    def dawdle(con: duckdb.DuckDBPyConnection) -> int:
        tries.append(1)
        first = take_numbers(con, "seq")
        time.sleep(0.05)
        return first

    threads = [threading.Thread(target=hurry) for _ in range(3)]
    for thread in threads:
        thread.start()
    taken = [slow.write(dawdle) for _ in range(5)]
    stop.set()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 5
    assert len(tries) == 5, "a queue has no conflicts"
    slow.close()
    quick.close()


def foreign_update(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection of somebody else in this process, with a change to the counters that it has not committed."""
    con = duckdb.connect(str(path), config={"python_enable_replacements": False})
    con.execute("BEGIN")
    con.execute("UPDATE counters SET next_free = next_free + 1000 WHERE name = 'seq'")
    return con


def test_a_conflict_with_a_foreign_connection_is_retried_until_it_commits(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.duckdb")
    con = foreign_update(tmp_path / "m.duckdb")
    tries: list[int] = []

    def work(mine: duckdb.DuckDBPyConnection) -> int:
        tries.append(1)
        if len(tries) == 4:
            con.execute("COMMIT")
        return take_numbers(mine, "seq")

    assert store.write(work) >= 1001
    assert len(tries) >= 4
    con.close()
    store.close()


def test_retries_end_after_the_stated_number_with_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemokit.store.WRITE_RETRIES", 5)
    store = Store(tmp_path / "m.duckdb")
    con = foreign_update(tmp_path / "m.duckdb")
    tries: list[int] = []

    def work(mine: duckdb.DuckDBPyConnection) -> int:
        tries.append(1)
        return take_numbers(mine, "seq")

    with pytest.raises(mk.ConcurrentWrite, match="5 retries; nothing was written"):
        store.write(work)
    assert len(tries) == 6
    con.execute("ROLLBACK")
    assert store.write(lambda mine: take_numbers(mine, "seq")) == 1
    con.close()
    store.close()


def test_a_writer_that_reads_first_and_one_of_another_handle_never_wait_for_each_other(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "m.duckdb") for _ in range(2)]

    def read_then_write(store: Store) -> None:
        for _ in range(30):
            with store.read() as con:
                con.execute("SELECT * FROM counters").fetchall()
            store.write(lambda con: take_numbers(con, "seq"))

    threads = [threading.Thread(target=read_then_write, args=(stores[n % 2],), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    for store in stores:
        store.close()


def test_the_memory_of_duckdb_can_be_limited(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb", memory_limit="300MB") as mem:
        assert mem.sql("SELECT current_setting('memory_limit') AS allowed")["allowed"].item() == "286.1 MiB"


def test_a_memory_limit_that_is_no_amount_is_refused_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(mk.InvalidInput, match="memory_limit='plenty' is no amount of memory; nothing was opened"):
        mk.open(tmp_path / "m.duckdb", memory_limit="plenty")
    assert not (tmp_path / "m.duckdb").exists()


@pytest.mark.parametrize("amount", ["64MB", "64mb", "2gb", "0.5 GiB", "1tIb"])
def test_an_amount_of_memory_is_taken_in_any_case(tmp_path: Path, amount: str) -> None:
    with mk.open(tmp_path / "m.duckdb", memory_limit=amount) as mem:
        mem.replay(pl.DataFrame({"session_id": ["s"] * 3, "step": range(3), "executor": ["a", "b", "c"]}))
        assert mem.frame("mnests").height == 2


@pytest.mark.parametrize("amount", ["0GB", "1KB", "1MB", "63.9MB", "0.01GB"])
def test_less_memory_than_duckdb_can_work_with_is_refused_and_nothing_is_created(tmp_path: Path, amount: str) -> None:
    with pytest.raises(mk.InvalidInput, match=f"memory_limit='{amount}' is less than 64MB, .*; nothing was opened"):
        mk.open(tmp_path / "m.duckdb", memory_limit=amount)
    assert not (tmp_path / "m.duckdb").exists()


@pytest.mark.parametrize("amount", ["99999999TB", "2", "GB", "-2GB", "٢GB", 2, ""])
def test_what_is_no_amount_of_memory_is_refused_in_one_line(tmp_path: Path, amount: object) -> None:
    with pytest.raises(mk.InvalidInput, match="is no amount of memory; nothing was opened; give one such as '2GB'"):
        mk.open(tmp_path / "m.duckdb", memory_limit=amount)
    assert not (tmp_path / "m.duckdb").exists()


def test_an_opening_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    with mk.open(tmp_path / "m.duckdb") as mem:
        mem.mnests.record_passing("a", "1", "b", "1")
    with pytest.raises(mk.Conflict):
        mk.open(tmp_path / "m.duckdb", edge_params=mk.EdgeParams(decay_lambda=0.5))
    with mk.open(tmp_path / "m.duckdb") as mem:
        mem.scrub()
        assert mem.frame("mnests").height == 1
