"""Read models of the past, for tests."""

from __future__ import annotations

from pathlib import Path

from support.events import Event, message
from support.read_models import connection_of

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.read_models.history import History


def append(log: SqliteLog, *events: Event, namespace: str = "a") -> None:
    log.append(namespace, drafts(events))


def numbered(count: int) -> list[Event]:
    return [message(f"number {number}", id=f"e{number}") for number in range(1, count + 1)]


def texts(history: History, version: int, namespace: str = "a") -> list[str]:
    with history.reading(namespace, version) as snapshot:
        assert snapshot.version == version
        return [row[0] for row in connection_of(snapshot).execute("SELECT text FROM episodes ORDER BY version")]


def files(folder: Path) -> list[int]:
    """The versions that are kept, over all namespaces; each has its marker."""
    kept = sorted(file.name for file in folder.glob("namespaces/*/*/as-of/*"))
    assert sorted(marker.name.partition("-")[2] for marker in folder.glob("as-of/*")) == kept
    return sorted(int(name.partition("-")[0]) for name in kept)
