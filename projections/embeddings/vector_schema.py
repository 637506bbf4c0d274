"""Vector schema: creates the tables of a namespace's vectors and applies the numbered migrations to older files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import apsw


def migrate(connection: apsw.Connection) -> int:
    """Create missing tables and apply the missing migrations; return the number of migrations that the file has seen.

    A file of a later release has a higher number and is used unchanged: stop all processes
    of an earlier release before one that stores rows in another form uses the folder.
    """
    connection.execute(tables())
    migrations = _migrations()
    if _applied(connection) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Read again under the write lock: another process may have migrated the file meanwhile.
            for migration in migrations[_applied(connection) :]:
                connection.execute(migration)
            connection.pragma("user_version", max(len(migrations), _applied(connection)))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return _applied(connection)


def vectors_version() -> int:
    """Return the number of the last migration: vectors of different numbers may differ for the same text."""
    return len(_migrations())


def _applied(connection: apsw.Connection) -> int:
    """Return the number of migrations that the file has seen, its `user_version`."""
    number: Any = connection.pragma("user_version")
    return number


@cache
def tables() -> str:
    """Return the statements that create the missing tables."""
    return files(__package__).joinpath("vectors.sql").read_text(encoding="utf-8")


@cache
def _migrations() -> tuple[str, ...]:
    """Return the migrations in order of their numbers."""
    folder = files(__package__).joinpath("migrations")
    return tuple(file.read_text(encoding="utf-8") for file in sorted(folder.iterdir(), key=lambda file: file.name))
