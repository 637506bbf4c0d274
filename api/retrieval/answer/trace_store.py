"""Trace store: writes the traces of retrievals as lines of JSON into a bounded number of files.

A background thread writes them, so a retrieval does not wait for its trace and does not fail because of it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, NamedTuple, cast

import orjson

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import TRACES_BYTES_MAX, TRACES_DAYS_MAX
from recollect.events.envelope import DAY_US, now_us, parse_rfc3339, rfc3339
from recollect.events.errors import NotFound, StorageError
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.private_files import PRIVATE_MODE, make_private_folder

_logger = logging.getLogger(__name__)

#: Files that share the size limit; the oldest file is deleted first.
_FILES_MAX = 8
#: Newest traces by which it is known what is searched.
_LAST_TRACES = 500
#: Traces in the queue; further traces are dropped until some are written.
_QUEUED_TRACES_MAX = 200
#: Seconds between two removals of old traces.
_AGE_CHECK_SECONDS = 3_600.0
#: Held while traces are removed: a file that is written again must not bring back what another removal took out.
_REMOVAL_LOCK = "removal.lock"


class _QueuedTrace(NamedTuple):
    """One retrieval in the queue."""

    namespace: str
    at_us: int
    request: RetrieveRequest
    result: RetrieveResult


class TraceStore:
    """The traces in the folder `folder`. Safe to use from many threads, and from several processes.

    Parameters:
        bytes_max: the size of all files together, in bytes; 0 turns traces off.
        days_max: days after which a trace is removed.
        erased_us: returns when events of a namespace were erased last, in microseconds since 1970 UTC; 0 for never.
    """

    def __init__(
        self,
        folder: Path,
        *,
        bytes_max: int = TRACES_BYTES_MAX,
        days_max: int = TRACES_DAYS_MAX,
        erased_us: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._age_max_us = days_max * DAY_US
        self._erased_us = erased_us
        self._queue: Queue[_QueuedTrace | None] = Queue(_QUEUED_TRACES_MAX)
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._write_failed = False
        if trace_files(folder):
            # Its traces grow old, also when no retrieval follows.
            self._start()

    def add(self, namespace: str, request: RetrieveRequest, result: RetrieveResult) -> None:
        """Queue the trace of one retrieval, or drop it when the queue is full."""
        if not self._bytes_max:
            return
        if self._thread is None:
            self._start()
        try:
            self._queue.put_nowait(_QueuedTrace(namespace, now_us(), request, result))
        except Full:
            _logger.debug("the queue of traces is full; a trace was dropped")

    def last_namespaces(self, limit: int) -> list[str]:
        """Return up to `limit` namespaces of the newest traces, that of the newest one first."""
        lines = [line for file in trace_files(self._folder)[-2:] for line in _file_lines(file)][-_LAST_TRACES:]
        names = (_parsed_trace(line).get("namespace") for line in reversed(lines))
        return list(dict.fromkeys(name for name in names if name))[:limit]

    def flush(self) -> None:
        """Wait until the queued traces are written."""
        if self._thread is not None:
            self._queue.join()

    def close(self) -> None:
        """Write the queued traces, then stop the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _start(self) -> None:
        """Start the writing thread, once."""
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recollect-traces", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        """Write queued traces in batches until `None` is taken from the queue; remove old traces at intervals."""
        checked_at = -_AGE_CHECK_SECONDS
        while True:
            if time.monotonic() - checked_at >= _AGE_CHECK_SECONDS:
                self._remove_old()
                checked_at = time.monotonic()
            traces = self._next_traces()
            try:
                self._write(b"".join(_encoded_trace(trace) for trace in traces if trace and not self._is_stale(trace)))
                self._write_failed = False
            except Exception as error:
                # The thread continues after any error, since `flush` waits for it. One warning per series of failures,
                # since a full disk fails every write.
                if not self._write_failed:
                    _logger.warning("traces cannot be written, check the folder and the disk: %s", error)
                self._write_failed = True
            finally:
                for _ in traces:
                    self._queue.task_done()
            if None in traces:
                return

    def _next_traces(self) -> list[_QueuedTrace | None]:
        """Wait for queued traces and return all of them; none when old traces are to be removed again."""
        traces: list[_QueuedTrace | None] = []
        try:
            traces.append(self._queue.get(timeout=_AGE_CHECK_SECONDS))
            while True:
                traces.append(self._queue.get_nowait())
        except Empty:
            return traces

    def _is_stale(self, trace: _QueuedTrace) -> bool:
        """Return whether a retrieval began before an erasure, which has removed the traces before this one came."""
        began_us = trace.at_us - int(trace.result.latency_ms * 1_000)
        try:
            return any(began_us <= self._erased_us(name) for name in (trace.namespace, *trace.request.also))
        except StorageError:
            # Nothing is erased here while the log is away; what another machine erases is removed once it is followed.
            return False

    def _remove_old(self) -> None:
        """Remove the traces over their age; the next time makes up for a failure."""
        try:
            remove_old_traces(self._folder, now_us() - self._age_max_us)
        except StorageError as error:
            _logger.warning("old traces cannot be removed, check the folder and the disk: %s", error)

    def _write(self, content: bytes) -> None:
        """Append lines to the newest file; start a new file when it is full, and delete the oldest over the limit."""
        if not content:
            return
        make_private_folder(self._folder)
        files = trace_files(self._folder)
        newest = files[-1] if files else None
        if newest is None or newest.stat().st_size + len(content) > self._bytes_max // _FILES_MAX:
            newest = self._folder / f"{now_us():016}.ndjson"
            file_sizes = [*((file, file.stat().st_size) for file in files), (newest, len(content))]
            while len(file_sizes) > 1 and (
                len(file_sizes) > _FILES_MAX or sum(size for _, size in file_sizes) > self._bytes_max
            ):
                file_sizes.pop(0)[0].unlink(missing_ok=True)
        # One write with O_APPEND, so that lines of two processes do not mix.
        descriptor = os.open(newest, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def remove_traces(folder: Path, namespace: str) -> int:
    """Remove the traces of retrievals that read `namespace` from all files; return their number.

    Raises:
        StorageError: the folder cannot be written.
    """
    if not trace_files(folder):
        return 0
    with storage_errors(folder), file_lock(folder / _REMOVAL_LOCK):
        return sum(_remove(file, lambda trace: _reads(trace, namespace)) for file in trace_files(folder))


def traces_of(folder: Path, namespace: str) -> Iterator[bytes]:
    """Yield the traces of retrievals that read `namespace`, as lines of JSON."""
    for file in trace_files(folder):
        yield from (line for line in _file_lines(file) if _reads(_parsed_trace(line), namespace))


def remove_old_traces(folder: Path, before_us: int) -> int:
    """Remove the traces of retrievals before a time, in microseconds since 1970 UTC; return their number.

    Raises:
        StorageError: the folder cannot be written.
    """
    with storage_errors(folder):
        # The first line of each file is enough: traces are written in their order.
        if not any(_begins_before(file, before_us) for file in trace_files(folder)):
            return 0
        with file_lock(folder / _REMOVAL_LOCK):
            olds = [file for file in trace_files(folder) if _begins_before(file, before_us)]
            return sum(_remove(file, lambda trace: _is_before(trace, before_us)) for file in olds)


def _remove(file: Path, unwanted: Callable[[dict[str, Any]], bool]) -> int:
    """Remove traces from one file; return their number.

    The file is replaced as a whole. A line that another process appends to it at the same moment is lost.
    """
    lines = _file_lines(file)
    kept = [line for line in lines if not unwanted(_parsed_trace(line))]
    if kept and len(kept) < len(lines):
        write_atomically(file, b"".join(line + b"\n" for line in kept))
    elif lines and not kept:
        file.unlink(missing_ok=True)
    return len(lines) - len(kept)


def _begins_before(file: Path, before_us: int) -> bool:
    """Return whether the first trace of a file is from before a time; False for a file that was deleted meanwhile."""
    try:
        with file.open("rb") as lines:
            return _is_before(_parsed_trace(lines.readline()), before_us)
    except FileNotFoundError:
        return False


def _is_before(trace: dict[str, Any], before_us: int) -> bool:
    """Return whether a trace is from before a time; so is a line that cannot be parsed."""
    written_at: str = trace.get("at", "1970-01-01T00:00:00Z")
    return parse_rfc3339(written_at) < before_us


def _reads(trace: dict[str, Any], namespace: str) -> bool:
    """Return whether a trace is of a retrieval that read `namespace`; so is a line that cannot be parsed."""
    return not trace or trace["namespace"] == namespace or namespace in trace["request"].get("also", ())


def find_trace(folder: Path, namespace: str, trace_id: str) -> dict[str, Any] | None:
    """Return the trace of one retrieval; None when it does not exist or was deleted."""
    id_bytes = trace_id.encode()
    for file in reversed(trace_files(folder)):
        for line in _file_lines(file):
            trace = _parsed_trace(line) if id_bytes in line else {}
            if trace.get("trace_id") == trace_id and trace["namespace"] == namespace:
                return trace
    return None


def list_traces(
    folder: Path, namespace: str, after: str, limit: int, *, covers: Callable[[str], bool] | None = None
) -> list[dict[str, Any]]:
    """Return the summaries of the latest traces of a namespace, newest first.

    Parameters:
        after: the id of the last trace of the previous page; empty for the first page.
        covers: returns whether the caller reaches a namespace; a trace that holds others as well is left out. None:
            every trace is listed.
    """
    summaries: list[dict[str, Any]] = []
    is_past = not after
    for file in reversed(trace_files(folder)):
        for line in reversed(_file_lines(file)):
            trace = _parsed_trace(line)
            if not is_past or trace.get("trace_id") == after:
                is_past = is_past or trace.get("trace_id") == after
                continue
            if trace.get("namespace") == namespace:
                if covers is not None and not all(covers(name) for name in searched_namespaces(trace)):
                    continue
                summaries.append({name: trace[name] for name in _SUMMARY_FIELDS if name in trace})
                if len(summaries) == limit:
                    return summaries
    return summaries


def searched_namespaces(trace: Mapping[str, Any]) -> list[str]:
    """Return the namespaces that a retrieval searched besides its own; its trace holds their texts."""
    return trace.get("request", {}).get("also", [])


def unknown_trace() -> NotFound:
    """Return the error for a trace that is not stored, or that the caller may not read."""
    return NotFound("no such trace is stored; old traces are removed for new ones", field="trace_id")


#: The fields of a trace in a list.
_SUMMARY_FIELDS = ("trace_id", "at", "query", "trigger", "version", "latency_ms", "degraded", "tokens", "items")


def _file_lines(file: Path) -> list[bytes]:
    """Return the lines of a file; none when it was deleted meanwhile."""
    try:
        return file.read_bytes().splitlines()
    except FileNotFoundError:
        # Another thread or process deletes the oldest file over the limit.
        return []


def _parsed_trace(line: bytes) -> dict[str, Any]:
    """Return the trace in a line; empty for a line that a crash or a full disk cut off."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}


def trace_files(folder: Path) -> list[Path]:
    """Return the trace files of a folder, oldest first."""
    return sorted(folder.glob("*.ndjson"))


def _encoded_trace(queued: _QueuedTrace) -> bytes:
    """Return a trace as one line of JSON."""
    request, result = queued.request, queued.result
    trace: dict[str, Any] = {
        "trace_id": result.trace_id,
        "namespace": queued.namespace,
        "at": rfc3339(queued.at_us),
        "query": request.query,
        "request": request.model_dump(mode="json", exclude={"query"}, exclude_defaults=True),
        "trigger": result.trigger,
        "limit": request.limit,
        "version": result.version,
        "latency_ms": round(result.latency_ms, 3),
        "stages_ms": {name: round(spent_ms, 3) for name, spent_ms in result.stages_ms.items()},
        "degraded": result.degraded,
        "tokens": result.tokens,
        "context": result.context,
        "items": [
            {"id": item.id, "kind": item.kind, "score": item.score, "ranks": item.ranks} for item in result.items
        ],
        "answer": result.answer.as_json(),
        **result.explain(),
    }
    # A query may hold a lone surrogate, which UTF-8 cannot encode.
    try:
        return orjson.dumps(trace, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return orjson.dumps(_encodable(trace), option=orjson.OPT_APPEND_NEWLINE)


def _encodable(value: Any) -> Any:
    """Return `value` with lone surrogates in its strings replaced."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(element) for key, element in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_encodable(element) for element in cast("list[Any]", value)]
    return value
