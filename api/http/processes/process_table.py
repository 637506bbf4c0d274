"""Process table: the running server processes, in memory that all of them share."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from recollect.events.envelope import now_us, rfc3339
from recollect.events.storage.shared_memory import SharedMemory

#: Process id, starts, whether it serves, and when it began to serve, in microseconds since 1970 UTC.
_ENTRY = struct.Struct("<QIIQ")


class ServerProcess(NamedTuple):
    """One server process."""

    #: The number of the process, from 0; that of the background process follows the others.
    number: int
    #: The process id; 0 before the first start.
    pid: int
    #: How often it was started.
    starts: int
    #: Whether it answers requests.
    is_serving: bool
    #: When it began to.
    since_us: int


class ProcessTable:
    """The server processes. The first process, which serves nothing, and each process itself write its entry.

    Parameters:
        servers: the processes that own namespaces, numbered from 0.
        has_background: whether one more process does the background work, and owns no namespace.
    """

    def __init__(self, servers: int, *, has_background: bool) -> None:
        self.servers = servers
        self.has_background = has_background
        self._memory = SharedMemory(self.size * _ENTRY.size)

    @property
    def size(self) -> int:
        """Return the number of processes."""
        return self.servers + self.has_background

    @property
    def operator(self) -> int:
        """Return the number of the process that answers operators: the one that knows the background work."""
        return self.servers if self.has_background else 0

    def name(self, number: int) -> str:
        """Return the name of a process, for messages and labels."""
        return "background" if number >= self.servers else str(number)

    def is_serving(self, number: int) -> bool:
        """Return whether a process answers requests."""
        return _ENTRY.unpack_from(self._memory.bytes, number * _ENTRY.size)[2] == 1

    def note_start(self, number: int, pid: int) -> None:
        """Store the id of a process that was started and does not serve yet."""
        starts = self._entry(number).starts + 1
        self._write(number, pid, starts, is_serving=False)

    def note_serving(self, number: int, *, is_serving: bool) -> None:
        """Store that a process begins to serve, or ends."""
        entry = self._entry(number)
        self._write(number, entry.pid or os.getpid(), entry.starts, is_serving=is_serving)

    def processes(self) -> Iterator[ServerProcess]:
        """Yield all processes."""
        return map(self._entry, range(self.size))

    def as_json(self) -> list[dict[str, Any]]:
        """Return the processes as /health shows them."""
        return [
            {
                "process": self.name(process.number),
                "pid": process.pid,
                "serving": process.is_serving,
                "since": rfc3339(process.since_us) if process.is_serving else None,
                "restarts": max(0, process.starts - 1),
            }
            for process in self.processes()
        ]

    def problems(self) -> list[str]:
        """Return the problems of the processes that do not serve."""
        return [
            f"server process {self.name(process.number)} does not run; it is started again, and the server's log has "
            "the reason"
            for process in self.processes()
            if not process.is_serving
        ]

    def _entry(self, number: int) -> ServerProcess:
        pid, starts, serving, since_us = _ENTRY.unpack_from(self._memory.bytes, number * _ENTRY.size)
        return ServerProcess(number, pid, starts, serving == 1, since_us)

    def _write(self, number: int, pid: int, starts: int, *, is_serving: bool) -> None:
        _ENTRY.pack_into(self._memory.bytes, number * _ENTRY.size, pid, starts, is_serving, now_us())
