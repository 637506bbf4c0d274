"""Erasure listeners: remove what the archive, the traces and the job store of a data folder hold of erased events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.api.retrieval.answer.trace_store import TraceStore, remove_traces
from recollect.events.backends.log import EventLog
from recollect.events.integrity.verify import erased_versions
from recollect.events.storage.archive import Archive
from recollect.jobs.queue.run_store import RunStore
from recollect.projections.read_models.purges import Target


class ErasureListeners:
    """The listeners of one data folder; each returns what it removed, for the receipt."""

    def __init__(self, data: Path, log: EventLog, trace_store: TraceStore, run_store: RunStore) -> None:
        self._data = data
        self._log = log
        self._trace_store = trace_store
        self._run_store = run_store

    def purge(self, namespace: str, _: int) -> Sequence[Target]:
        """Remove what the data folder holds of the erased events of `namespace`."""
        return [self._archive(namespace), self._traces(namespace), self._jobs(namespace)]

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
        """Remove dead letters, whose errors may quote an event. Messages carry no work, so none is lost."""
        letters = [letter for letter in self._run_store.dead_letters() if namespace in letter.arguments]
        for letter in letters:
            self._run_store.pop_dead_letter(letter.id)
        return {"store": "jobs", "method": "dead letters removed", "rows": len(letters)}
