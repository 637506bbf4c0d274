"""SQLite schema: creates and migrates the tables of a log in SQLite."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import uuid_utils

from recollect.events.errors import ForeignFile, NewerFile

#: "RCLG" in the file's header (PRAGMA application_id) marks a log of Recollect.
APPLICATION_ID = 0x52434C47


def migrate(connection: apsw.Connection, path: Path, *, encrypt: bool | None, has_keys: bool) -> tuple[str, bool]:
    """Apply the missing migrations and return the log's id, and whether it encrypts new events.

    Parameters:
        encrypt: whether the log encrypts from now on; when None, a new log does if it has keys, and others go on.

    Raises:
        ForeignFile: another program's database. NewerFile: a newer version wrote the file.
    """
    migrations = sorted(files(__package__).joinpath("migrations", "sqlite").iterdir(), key=lambda file: file.name)
    if _migrations_applied(connection, path, len(migrations)) == len(migrations):
        log_id, encrypts = _identity(connection)
        if encrypt in (None, encrypts):
            # Readers of a log on a full disk write nothing.
            return log_id, encrypts
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _migrations_applied(connection, path, len(migrations))
        for migration in migrations[applied:]:
            connection.execute(migration.read_text(encoding="utf-8"))
        if not applied:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(
                "INSERT INTO log (log_id, encrypted, vacuumed) VALUES (?, ?, 1)",
                (str(uuid_utils.uuid7()), has_keys if encrypt is None else encrypt),
            )
        elif encrypt is not None:
            connection.execute("UPDATE log SET encrypted = ?1 WHERE encrypted <> ?1", (encrypt,))
        connection.execute(f"PRAGMA user_version={len(migrations)}")
        identity = _identity(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back when the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return identity


def _identity(connection: apsw.Connection) -> tuple[str, bool]:
    """Return the log's id, and whether it encrypts new events."""
    row: tuple[Any, ...] = connection.execute("SELECT log_id, encrypted FROM log").fetchall()[0]
    return row[0], bool(row[1])


def _migrations_applied(connection: apsw.Connection, path: Path, newest: int) -> int:
    """Return the number of migrations that were applied to the file, 0 for a new file.

    Raises:
        ForeignFile: another program's database. NewerFile: over `newest` migrations.
    """
    if connection.pragma("application_id") != APPLICATION_ID:
        has_tables = connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is not None
        # Again: another process may have made the log between the two statements.
        application_id = connection.pragma("application_id")
        if application_id != APPLICATION_ID:
            if application_id or has_tables:
                raise ForeignFile(f"{path} is a database of another program; move it away, or name another data folder")
            return 0
    applied = connection.pragma("user_version")
    if applied > newest:
        raise NewerFile(f"{path} was written by a newer Recollect; install that version or a later one")
    return applied
