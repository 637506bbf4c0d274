"""PostgreSQL schema: creates and migrates the tables of a log in PostgreSQL; its connection string and its errors."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, cast

import psycopg
import uuid_utils
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import PoolTimeout

from recollect.events.errors import (
    DiskFull,
    ForeignFile,
    InvalidInput,
    LogUnreachable,
    NewerFile,
    ReadOnly,
    StorageError,
)

#: The oldest server version that is tested.
SERVER_VERSION_MIN = 150_000
#: The schema of the tables, so that the log can share a database with other programs.
SCHEMA = "recollect"
#: Seconds after which the server ends an idle transaction, whose client has probably died.
_IDLE_SECONDS_MAX = 30

#: A row of a query.
StoredEvent = tuple[Any, ...]


def migrate(
    connection: psycopg.Connection[StoredEvent], location: str, *, encrypt: bool | None, has_keys: bool
) -> tuple[str, bool]:
    """Apply the missing migrations and return the log's id, and whether it encrypts new events.

    Parameters:
        encrypt: whether the log encrypts from now on; when None, a new log does if it has keys, and others go on.

    Raises:
        ForeignFile: the schema is another program's. NewerFile: a newer version wrote the log.
    """
    if connection.info.server_version < SERVER_VERSION_MIN:
        major_version = connection.info.server_version // 10_000
        raise StorageError(f"{location} runs PostgreSQL {major_version}; install version 15 or newer")
    migrations = sorted(files(__package__).joinpath("migrations", "postgres").iterdir(), key=lambda file: file.name)
    with connection.transaction():
        # Programs that start at the same time migrate one after the other.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('recollect.log'))")
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        applied = _migrations_applied(connection, location)
        if applied > len(migrations):
            raise NewerFile(f"{location} was written by a newer Recollect; install that version or a later one")
        for migration in migrations[applied:]:
            connection.execute(migration.read_bytes())
        if not applied:
            connection.execute(
                "INSERT INTO log (log_id, migration, encrypted) VALUES (%s, 0, %s)",
                (str(uuid_utils.uuid7()), has_keys if encrypt is None else encrypt),
            )
        elif encrypt is not None:
            connection.execute("UPDATE log SET encrypted = %(on)s WHERE encrypted <> %(on)s", {"on": encrypt})
        if applied < len(migrations):
            connection.execute("UPDATE log SET migration = %s", (len(migrations),))
        rows = connection.execute("SELECT log_id, encrypted FROM log").fetchall()
    return rows[0][0], rows[0][1]


def _migrations_applied(connection: psycopg.Connection[StoredEvent], location: str) -> int:
    """Return the number of migrations that were applied; raise `ForeignFile` for another program's schema."""
    tables = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = %s LIMIT 1", (SCHEMA,)).fetchall()
    if not tables:
        return 0
    try:
        rows = connection.execute("SELECT migration FROM log").fetchall()
    except pg.UndefinedTable as error:
        raise ForeignFile(f"{location} has a schema {SCHEMA!r} of another program; name another database") from error
    return rows[0][0]


def connection_string(url: str, lock_seconds_max: int) -> tuple[str, str]:
    """Return the connection string of libpq, and the log's location for messages, without the password."""
    try:
        url_parameters = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidInput(f"not a valid PostgreSQL URL: {error}", field="log") from None
    settings = {
        "search_path": SCHEMA,
        # A commit must be on disk, also when the server's default is otherwise.
        "synchronous_commit": "on",
        "lock_timeout": f"{lock_seconds_max}s",
        "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS_MAX}s",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    defaults: dict[str, Any] = {"connect_timeout": 10, "application_name": "recollect", "keepalives_idle": 30}
    options = f"{url_parameters.get('options') or ''} {options}".strip()
    location = f"postgresql://{url_parameters.get('host') or 'localhost'}/{url_parameters.get('dbname') or ''}"
    return make_conninfo(**cast(dict[str, Any], defaults | url_parameters | {"options": options})), location


def storage_error(error: Exception, location: str) -> StorageError:
    """Return the `StorageError` for an error of PostgreSQL."""
    match error:
        case pg.DiskFull():
            return DiskFull(f"{location}: the server's disk is full; free some space, then send the same again")
        case pg.ReadOnlySqlTransaction() | pg.InsufficientPrivilege():
            return ReadOnly(f"{location}: the server refuses writes ({error}); check the role and the server")
        case pg.LockNotAvailable():
            return StorageError(f"{location}: another program holds a lock for too long ({str(error).strip()}); end it")
        case pg.QueryCanceled():
            return StorageError(
                f"{location}: the server ended a statement ({str(error).strip()}), and nothing was recorded; raise its "
                "statement_timeout for this role"
            )
        case psycopg.OperationalError() | PoolTimeout():
            return LogUnreachable(f"{location} cannot be reached ({str(error).strip()}); check that the server runs")
        case _:
            return StorageError(f"{location}: the server reports an error ({str(error).strip()}); nothing was recorded")
