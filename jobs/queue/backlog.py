"""Backlog: how far the read models and vectors of namespaces are behind the log.

Only namespaces whose heads have moved are opened, so idle namespaces cost nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recollect.events.backends.log import EventLog, each_head
from recollect.events.errors import RecollectError
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The work that a namespace's read model and vectors have not done yet."""

    namespace: str
    #: Number of events that are not projected.
    events: int
    #: When the oldest of these events was recorded, in microseconds since 1970 UTC; None without any.
    oldest_us: int | None
    #: Number of episodes without vectors; 0 while no embedding model is ready.
    embeddings: int
    #: Number of messages that the extraction has not read; fewer than a batch may wait for more.
    messages: int

    @property
    def is_settled(self) -> bool:
        """Return whether workers have no work until the head moves again."""
        return not self.events and not self.embeddings


class BacklogMonitor:
    """Compares heads with checkpoints; opens a settled namespace again only after its head has moved."""

    def __init__(self, log: EventLog, read_models: ReadModels, vectors_in_use: CurrentVectors) -> None:
        self._log = log
        self._read_models = read_models
        self._vectors_in_use = vectors_in_use
        #: Namespace → head and fingerprint of the embedding model at which it was settled.
        self._settled: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()

    def backlogs(self, limit: int | None = None) -> tuple[list[Backlog], int]:
        """Return the backlogs of at most `limit` namespaces that are behind, and the number of namespaces compared.

        Raises:
            StorageError: the log cannot be read.
        """
        backlogs: list[Backlog] = []
        compared = 0
        fingerprint = self._fingerprint()
        for head in each_head(self._log):
            compared += 1
            with self._lock:
                if self._settled.get(head.namespace) == (head.version, fingerprint):
                    continue
            try:
                backlog = self.namespace_backlog(head.namespace)
            except RecollectError:
                # The namespace is damaged; health reports it. The other namespaces are still compared.
                continue
            if backlog.is_settled:
                with self._lock:
                    self._settled[head.namespace] = (head.version, fingerprint)
            else:
                backlogs.append(backlog)
                if limit is not None and len(backlogs) >= limit:
                    break
        return backlogs, compared

    def namespace_backlog(self, namespace: str) -> Backlog:
        """Return the backlog of `namespace`; an empty one for a parked namespace, which workers skip.

        Raises:
            StorageError: the log or the read model cannot be read.
        """
        progress = self._read_models.progress(namespace)
        if progress.parked is not None:
            return Backlog(namespace=namespace, events=0, oldest_us=None, embeddings=0, messages=0)
        oldest = self._log.read(namespace, after=progress.version, limit=1) if progress.behind else []
        with self._read_models.reading(namespace) as snapshot:
            return Backlog(
                namespace=namespace,
                events=progress.behind,
                oldest_us=oldest[0].recorded_at_us if oldest else None,
                embeddings=self._missing_embeddings(namespace, snapshot),
                messages=snapshot.episodes.count_turns_after(snapshot.progress.job_cursor("extraction")),
            )

    def _missing_embeddings(self, namespace: str, snapshot: Snapshot) -> int:
        """Return the number of episodes without vectors; 0 while no embedding model is ready."""
        vectors = self._vectors_in_use()
        return vectors.backlog(namespace, snapshot).missing if vectors.embedder.state == "ready" else 0

    def _fingerprint(self) -> str:
        """Return the fingerprint of the embedding model in use: after a change of model no namespace is settled."""
        embedder = self._vectors_in_use().embedder
        return embedder.fingerprint if embedder.state == "ready" else ""


def backlog_totals(backlogs: Sequence[Backlog], present_us: int, *, most: int) -> dict[str, Any]:
    """Return the totals of `backlogs`, as health and metrics show them.

    Parameters:
        present_us: the current time, in microseconds since 1970 UTC.
        most: the limit that `backlogs` was read with; when it is reached, the totals are lower bounds.
    """
    oldest = [backlog.oldest_us for backlog in backlogs if backlog.oldest_us is not None]
    return {
        "read_models": sum(backlog.events for backlog in backlogs),
        "embeddings": sum(backlog.embeddings for backlog in backlogs),
        "extraction": sum(backlog.messages for backlog in backlogs),
        "namespaces_behind": len(backlogs),
        "at_least": len(backlogs) >= most,
        "oldest_seconds": round((present_us - min(oldest)) / 1e6, 3) if oldest else None,
    }


def namespaces_behind(log: EventLog, read_models: ReadModels) -> list[dict[str, Any]]:
    """Return the namespaces whose read models are behind the log or cannot be read, with the number of events."""
    behind: list[dict[str, Any]] = []
    for head in each_head(log):
        try:
            progress = read_models.progress(head.namespace)
        except RecollectError as error:
            behind.append({"namespace": head.namespace, "behind": head.version, "problem": str(error)})
            continue
        if progress.behind:
            problem = None if progress.parked is None else progress.parked.error
            behind.append({"namespace": head.namespace, "behind": progress.behind, "problem": problem})
    return behind
