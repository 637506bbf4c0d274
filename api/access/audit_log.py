"""Audit log: who read, exported or erased what, and who was refused, as lines of JSON without any text of users.

A line is written before the next request of its connection is read, in one write, so that a killed server loses none
that it answered. The files are bounded as those of traces are: the oldest is deleted first.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from recollect.api.access.callers import LOCAL_CALLER
from recollect.events.envelope import now_us, rfc3339
from recollect.events.storage.private_files import PRIVATE_MODE, make_private_folder

_logger = logging.getLogger(__name__)

#: Files that share the size limit; the oldest file is deleted first.
_FILES_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One request or command."""

    #: The id of the token; `local` without one, `-` when the request was refused before it was known.
    token_id: str
    #: None for routes without a namespace.
    namespace: str | None
    #: The method and the template of the path, such as `GET /v1/namespaces/{namespace}/facts`; or the command.
    route: str
    #: The scopes that the route needs.
    scopes: tuple[str, ...]
    #: The HTTP status of the answer; 200 for a command that succeeded.
    status: int
    #: Items in the answer, or objects that were erased; None where nothing is counted.
    count: int | None


def command_entry(command: str, namespace: str | None, scopes: tuple[str, ...], *, count: int | None) -> AuditEntry:
    """Return the entry of a command that works on the data folder itself, without a token."""
    return AuditEntry(
        token_id=LOCAL_CALLER.id, namespace=namespace, route=command, scopes=scopes, status=200, count=count
    )


class AuditLog:
    """The audit log in the folder `folder`. Safe to use from many threads, and from several processes.

    Parameters:
        bytes_max: the size of all files together, in bytes; 0 turns the audit log off.
    """

    def __init__(self, folder: Path, *, bytes_max: int) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._write_failed = False

    def record(self, entry: AuditEntry) -> None:
        """Append one line. A disk that cannot be written is a warning in the server's log, once a series."""
        if not self._bytes_max:
            return
        line: dict[str, Any] = {
            "at": rfc3339(now_us()),
            "token": entry.token_id,
            "namespace": entry.namespace,
            "route": entry.route,
            "scopes": entry.scopes,
            "status": entry.status,
            "count": entry.count,
        }
        try:
            with self._lock:
                self._write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            self._write_failed = False
        except OSError as error:
            if not self._write_failed:
                _logger.warning("the audit log cannot be written, check the folder and the disk: %s", error.strerror)
            self._write_failed = True

    def _write(self, content: bytes) -> None:
        files = audit_files(self._folder)
        newest = files[-1] if files else None
        if newest is None or newest.stat().st_size + len(content) > self._bytes_max // _FILES_MAX:
            make_private_folder(self._folder)
            newest = self._folder / f"{now_us():016}.ndjson"
            for old in files[: max(0, len(files) - _FILES_MAX + 1)]:
                old.unlink(missing_ok=True)
        # One write with O_APPEND, so that lines of two processes do not mix.
        descriptor = os.open(newest, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def read_audit(folder: Path, *, namespace: str | None = None, token_id: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of the audit log, newest first: those of one namespace, of one token, or all."""
    for file in reversed(audit_files(folder)):
        try:
            lines = file.read_bytes().splitlines()
        except FileNotFoundError:
            # A server deletes the oldest file.
            continue
        for line in reversed(lines):
            try:
                entry: dict[str, Any] = orjson.loads(line)
            except orjson.JSONDecodeError:
                # A full disk cut the line.
                continue
            if namespace in (None, entry["namespace"]) and token_id in (None, entry["token"]):
                yield entry


def audit_files(folder: Path) -> list[Path]:
    """Return the files of the audit log, oldest first."""
    return sorted(folder.glob("*.ndjson"))
