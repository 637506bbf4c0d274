"""Audit log: who read, exported or erased what, and who was refused, as lines of JSON without any text of users.

A line is written before the next request of its connection is read, in one write, so that a killed server loses none
that it answered. The files are bounded as those of traces are: the oldest is deleted first. Each line has the keyed
hash (HMAC-SHA256) of the line before it: `verify_audit` finds lines that were changed, removed or put between others.
"""

from __future__ import annotations

import hmac
import logging
import os
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from recollect.api.access.audit_key import audit_key
from recollect.api.access.callers import LOCAL_CALLER
from recollect.events.encryption.master_key import KeyOptions
from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import KeyMissing, StorageError
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.private_files import PRIVATE_MODE

_logger = logging.getLogger(__name__)

#: Files that share the size limit; the oldest file is deleted first.
_FILES_MAX = 8
#: Held while a line is written, since it has the hash of the line before it, which another process may have written.
_LOCK = "audit.lock"
#: Bytes at the end of a file that have its last line: names are bounded, so that a line has less than 2 kB.
_TAIL_BYTES = 16 << 10
#: Problems that `verify_audit` reports.
_PROBLEMS_MAX = 10


class AuditEntry(Struct, frozen=True, kw_only=True):
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
        options: the master key, which wraps the key of the chain.
        bytes_max: the size of all files together, in bytes; 0 turns the audit log off.
    """

    def __init__(self, folder: Path, options: KeyOptions, *, bytes_max: int) -> None:
        self._folder, self._options = folder, options
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._write_failed = False
        self._last: _LastLine | None = None

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
            with self._lock, file_lock(self._folder / _LOCK):
                self._write(line)
            self._write_failed = False
        except (OSError, StorageError, KeyMissing) as error:
            if not self._write_failed:
                _logger.warning("the audit log cannot be written, check the folder and the disk: %s", error)
            self._write_failed = True

    def _write(self, line: dict[str, Any]) -> None:
        """Append a line with the hash of the last one; begin a new file when the newest one is full."""
        files = audit_files(self._folder)
        last = self._last_line(files[-1]) if files else None
        content = orjson.dumps(line | {"previous_mac": None if last is None else last.mac})
        if last is None or last.end + len(content) > self._bytes_max // _FILES_MAX:
            # The names ascend, also when the clock was set back.
            started_us = now_us() if last is None else max(now_us(), int(last.file.stem) + 1)
            file, written = self._folder / f"{started_us:016}.ndjson", content + b"\n"
            for old in files[: max(0, len(files) - _FILES_MAX + 1)]:
                old.unlink(missing_ok=True)
        else:
            # A full disk may have cut the last line.
            file, written = last.file, (b"" if last.is_whole else b"\n") + content + b"\n"
        # One write with O_APPEND, so that a kill leaves a whole line, or none.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE)
        try:
            os.write(descriptor, written)
            end = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        self._last = _LastLine(file, end, _mac(self._key, content), True)

    def _last_line(self, file: Path) -> _LastLine:
        """Return the last line of the newest file; it is read when another process has written since."""
        end = file.stat().st_size
        if self._last is not None and (self._last.file, self._last.end) == (file, end):
            return self._last
        with file.open("rb") as reader:
            reader.seek(max(0, end - _TAIL_BYTES))
            tail = reader.read()
        line = tail.removesuffix(b"\n").rpartition(b"\n")[2]
        return _LastLine(file, end, _mac(self._key, line), tail.endswith(b"\n"))

    @cached_property
    def _key(self) -> bytes:
        return audit_key(self._folder, self._options)


class _LastLine(NamedTuple):
    """The last line of the newest file."""

    file: Path
    #: The size of the file.
    end: int
    #: The keyed hash of the line, in hex.
    mac: str
    #: Whether the line ends with a newline.
    is_whole: bool


class AuditCheck(Struct, frozen=True, kw_only=True):
    """The result of `verify_audit`."""

    lines: int
    #: The keyed hash of the last line in hex; None without lines. Kept elsewhere, it shows later that none is missing.
    head: str | None
    #: Whether the first line follows lines that were removed with their file.
    has_removed_files: bool
    problems: tuple[str, ...]


def verify_audit(folder: Path, options: KeyOptions, *, expected: str | None = None) -> AuditCheck:
    """Check that no line of the audit log was changed, and none between two lines removed.

    Lines that are cut off at the end are found by a head that was kept elsewhere alone.

    Parameters:
        options: the master key that wraps the key of the chain.
        expected: such a head, which a line has to have.

    Raises:
        KeyMissing: the key is wrapped by another master key.
    """
    files = audit_files(folder)
    key = audit_key(folder, options) if files else b""
    problems: list[str] = []
    head: str | None = None
    lines, has_removed_files, is_expected = 0, False, expected is None
    for file in files:
        for number, line in enumerate(_lines(file), start=1):
            lines += 1
            place = f"{file.name}, line {number}"
            try:
                previous: str | None = orjson.loads(line)["previous_mac"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                problems.append(f"{place} cannot be read: it was changed, or a full disk cut it")
            else:
                if lines == 1:
                    has_removed_files = previous is not None
                elif previous != head:
                    problems.append(f"{place} does not follow the line before it: one was changed, removed or added")
            head = _mac(key, line)
            is_expected = is_expected or head == expected
    if not is_expected:
        problems.append("no line has the expected head: lines were removed, or changed with all that follow")
    return AuditCheck(
        lines=lines, head=head, has_removed_files=has_removed_files, problems=tuple(problems[:_PROBLEMS_MAX])
    )


def read_audit(folder: Path, *, namespace: str | None = None, token_id: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of the audit log, newest first: those of one namespace, of one token, or all."""
    for file in reversed(audit_files(folder)):
        for line in reversed(_lines(file)):
            try:
                entry: dict[str, Any] = orjson.loads(line)
            except orjson.JSONDecodeError:
                # A full disk cut the line.
                continue
            if namespace in (None, entry["namespace"]) and token_id in (None, entry["token"]):
                yield entry


def _mac(key: bytes, line: bytes) -> str:
    """Return the keyed hash of a line, in hex."""
    return hmac.digest(key, line, "sha256").hex()


def _lines(file: Path) -> list[bytes]:
    """Return the lines of a file; none when a server has deleted it, which is the oldest one."""
    try:
        return file.read_bytes().splitlines()
    except FileNotFoundError:
        return []


def audit_files(folder: Path) -> list[Path]:
    """Return the files of the audit log, oldest first."""
    return sorted(folder.glob("*.ndjson"))
