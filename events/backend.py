"""Which backend holds the log, by its URL."""

from __future__ import annotations

from pathlib import Path

from recollect.events.errors import InvalidInput
from recollect.events.log import EventLog
from recollect.events.sqlite import SqliteLog

_SQLITE = "sqlite:///"


def open_log(url: str) -> EventLog:
    """Open the log at `url`: ``sqlite:///relative/path.db`` or ``sqlite:////absolute/path.db``.

    Raises:
        InvalidInput: no backend knows this URL. StorageError: the log cannot be opened.
    """
    if not url.startswith(_SQLITE) or url == _SQLITE:
        raise InvalidInput(f"no log backend for {url!r}; use sqlite:///path/to/log.db", field="log")
    return SqliteLog(Path(url.removeprefix(_SQLITE)))
