"""Log opening: opens the backend that the URL of a log names."""

from __future__ import annotations

from pathlib import Path

from recollect.events.backends.log import EventLog
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.encryption.key_store import KeyStore
from recollect.events.errors import InvalidInput

_SQLITE = "sqlite:///"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a log in SQLite; None when `url` names another backend."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) and url != _SQLITE else None


def open_log(url: str, *, keys: KeyStore | None = None, encrypt: bool | None = None) -> EventLog:
    """Open the log at `url`.

    Parameters:
        keys: the key store; needed to read encrypted events. It is closed with the log.
        encrypt: encrypt new events from now on, or no longer; when None, a new log with keys does, others go on.
        url: ``sqlite:///relative/path.db``, ``sqlite:////absolute/path.db``, or ``postgresql://user@host/database``.

    Raises:
        InvalidInput: no backend knows this URL. StorageError: the log cannot be opened.
    """
    path = sqlite_path(url)
    if path is not None:
        return SqliteLog(path, keys=keys, encrypt=encrypt)
    if url.startswith(("postgresql://", "postgres://")):
        # Imported here: it loads a driver that most installations do not use.
        from recollect.events.backends.postgres_log import PostgresLog  # noqa: PLC0415

        return PostgresLog(url, keys=keys, encrypt=encrypt)
    raise InvalidInput(
        f"no log backend for {url.partition('://')[0]!r}; use sqlite:///path/to/log.db or postgresql://host/database",
        field="log",
    )
