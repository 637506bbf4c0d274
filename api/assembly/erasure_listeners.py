"""Erasure listeners: remove what the archive, traces, job store and language model of a data folder have of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.api.retrieval.answer.trace_store import TraceStore, remove_traces
from recollect.events.backends.log import EventLog
from recollect.events.integrity.verify import erased_versions
from recollect.events.storage.archive import Archive
from recollect.jobs.llm.shared_pause import PAUSE_NAME, SharedPause
from recollect.jobs.queue.run_store import RunStore
from recollect.projections.read_models.purges import Target


def last_erasure_us(log: EventLog, namespace: str) -> int:
    """Return when events of a namespace were erased last, in microseconds since 1970 UTC; 0 for never."""
    version = log.head(namespace).erasure_version
    return log.read_stored(namespace, after=version - 1, limit=1)[0].recorded_at_us if version else 0


class ErasureListeners:
    """The listeners of one data folder; each returns what it removed, for the receipt."""

    def __init__(self, data: Path, log: EventLog, trace_store: TraceStore, run_store: RunStore) -> None:
        self._data = data
        self._log = log
        self._trace_store = trace_store
        self._run_store = run_store

    def purge(self, namespace: str, _: int) -> Sequence[Target]:
        """Remove what the data folder holds of the erased events of `namespace`."""
        return [self._archive(namespace), self._traces(namespace), self._jobs(namespace), self._pauses()]

    def _archive(self, namespace: str) -> Target:
        """Write the segments with erased events again."""
        own = self._log.archive
        archive = own or Archive(self._data / "archive", self._log.log_id)
        ranges = erased_versions(self._log, namespace)
        versions = {version for first, last in ranges for version in range(first, last + 1)}
        try:
            rewritten = archive.rewrite(self._log, namespace, versions)
        finally:
            if own is None:
                archive.close()
        segments: list[dict[str, Any]] = [
            {"old_sha256": before.sha256, "new_sha256": after.sha256} for before, after in rewritten
        ]
        return {"store": "archive", "method": "segments written again, old files removed", "segments": segments}

    def _traces(self, namespace: str) -> Target:
        self._trace_store.flush()
        rows = remove_traces(self._data / "traces", namespace)
        return {"store": "traces", "method": "all traces of the namespace removed, files replaced", "rows": rows}

    def _jobs(self, namespace: str) -> Target:
        """Remove dead letters and errors of runs, which may quote an event. Messages carry no work, so none is lost."""
        rows = self._run_store.forget(namespace)
        method = "dead letters and errors of runs removed"
        if rows and self._run_store.forget_leaves is not None:
            method += f"; {self._run_store.forget_leaves}"
        return {"store": "jobs", "method": method, "rows": rows}

    def _pauses(self) -> Target:
        """Remove the error that began a pause of the language model: a server may quote the request."""
        rows = int(SharedPause(self._data / PAUSE_NAME).forget_reason())
        return {"store": "language model", "method": "the error of its last failure removed", "rows": rows}
