"""The numbered steps of the schema: which a file has had, and which it still needs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cache
from importlib import resources

import duckdb

from mnemokit.errors import StoreVersion

Connection = duckdb.DuckDBPyConnection

Migration = tuple[int, str, str]


@cache
def packaged_migrations() -> tuple[Migration, ...]:
    """The migrations in ``mnemokit/schema``: number, file name, SQL; in order."""
    files = [file for file in resources.files("mnemokit").joinpath("schema").iterdir() if file.name.endswith(".sql")]
    return tuple(
        (int(file.name.split("_", 1)[0]), file.name, file.read_text(encoding="utf-8"))
        for file in sorted(files, key=lambda file: file.name)
    )


def migrate(
    con: Connection, migrations: Sequence[Migration], *, read_only: bool = False, where: str = "the store"
) -> int:
    """Bring a file's schema to the newest version, in one transaction.

    Returns:
        The number of migrations that were run.

    Raises:
        StoreVersion: If the file is newer than this mnemokit, is another program's, or would need a migration though it
            is opened read-only. The file is left as it was.
    """
    newest = migrations[-1][0]
    version = _schema_version(con, where)
    if version > newest:
        raise StoreVersion(
            f"{where} has schema version {version}, and this mnemokit knows versions up to {newest}; "
            "the file was left as it is; install a newer mnemokit"
        )
    todo = [migration for migration in migrations if migration[0] > version]
    if not todo:
        return 0
    if read_only:
        raise StoreVersion(
            f"{where} has schema version {version} and must be migrated to {newest} first; "
            "the file was left as it is; open it once without read_only=True"
        )
    con.execute("BEGIN TRANSACTION")
    try:
        for _, _, sql in todo:
            con.execute(sql)
        con.execute("INSERT OR REPLACE INTO store_info VALUES ('schema_version', ?)", [str(newest)])
        con.execute("INSERT OR IGNORE INTO store_info VALUES ('hash_key', ?)", [secrets.token_hex(32)])
        con.execute("COMMIT")
    except BaseException:
        roll_back(con)
        raise
    return len(todo)


def _schema_version(con: Connection, where: str) -> int:
    tables = {
        row[0]
        for row in con.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND schema_name = 'main'"
        ).fetchall()
    }
    if not tables:
        return 0
    if "store_info" not in tables:
        raise StoreVersion(f"{where} is a DuckDB file of another program; it was left as it is; name another file")
    rows = con.execute("SELECT value FROM store_info WHERE name = 'schema_version'").fetchall()
    if not rows:
        raise StoreVersion(f"{where} says no schema version; it was left as it is; restore it from a copy")
    return int(rows[0][0])


def roll_back(con: Connection) -> None:
    """Roll back, also where DuckDB has done so itself."""
    # After some errors DuckDB has rolled back by itself; a second rollback then has nothing to do.
    try:
        con.execute("ROLLBACK")
    except duckdb.TransactionException:
        return
