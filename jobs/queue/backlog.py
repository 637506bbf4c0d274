"""How far projections are behind the log: looked up where heads have moved, so that idle namespaces cost nothing."""

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
    """What a namespace's projections have before them."""

    namespace: str
    #: Events not folded.
    events: int
    #: When the oldest of them was recorded, in microseconds since 1970 UTC.
    oldest_us: int | None
    #: Episodes without vectors; 0 while there is no model.
    embeddings: int
    #: Messages that nothing was extracted from yet; fewer than a batch may wait for more.
    messages: int

    @property
    def is_settled(self) -> bool:
        """Tell whether there is nothing to do for workers until the head moves again."""
        return not self.events and not self.embeddings


class BacklogMonitor:
    """Compares heads with checkpoints; what is settled is not opened again before its head moves."""

    def __init__(self, log: EventLog, read_models: ReadModels, vectors_in_use: CurrentVectors) -> None:
        self._log = log
        self._models = read_models
        self._vectors_in_use = vectors_in_use
        self._settled: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()

    def backlogs(self, limit: int | None = None) -> tuple[list[Backlog], int]:
        """Return the namespaces that are behind, at most `limit` of them, and how many namespaces were seen.

        Raises:
            StorageError: the log cannot be read.
        """
        found: list[Backlog] = []
        seen = 0
        tag = self._model_tag()
        for head in each_head(self._log):
            seen += 1
            with self._lock:
                if self._settled.get(head.namespace) == (head.version, tag):
                    continue
            try:
                behind = self.of(head.namespace)
            except RecollectError:
                # It is parked or damaged; health names it. It keeps no other from its work.
                continue
            if behind.is_settled:
                with self._lock:
                    self._settled[head.namespace] = (head.version, tag)
            else:
                found.append(behind)
                if limit is not None and len(found) >= limit:
                    break
        return found, seen

    def of(self, namespace: str) -> Backlog:
        """Return what the projections of `namespace` have before them; nothing for a parked namespace.

        Raises:
            StorageError: the log or the read model cannot be read.
        """
        progress = self._models.progress(namespace)
        if progress.parked is not None:
            return Backlog(namespace=namespace, events=0, oldest_us=None, embeddings=0, messages=0)
        oldest = self._log.read(namespace, after=progress.version, limit=1) if progress.behind else []
        with self._models.reading(namespace) as snapshot:
            return Backlog(
                namespace=namespace,
                events=progress.behind,
                oldest_us=oldest[0].recorded_at_us if oldest else None,
                embeddings=self._without_vectors(namespace, snapshot),
                messages=snapshot.episodes.count_turns_after(snapshot.progress.job_cursor("extraction")),
            )

    def _without_vectors(self, namespace: str, snapshot: Snapshot) -> int:
        vectors = self._vectors_in_use()
        return vectors.backlog(namespace, snapshot).missing if vectors.embedder.state == "ready" else 0

    def _model_tag(self) -> str:
        """Return the model that namespaces are settled with; another one has work everywhere."""
        embedder = self._vectors_in_use().embedder
        return embedder.fingerprint if embedder.state == "ready" else ""


def summed(behind: Sequence[Backlog], present_us: int, *, most: int) -> dict[str, Any]:
    """Return how far projections are behind the log, over the namespaces `behind`.

    Parameters:
        most: namespaces that were looked up at most; so many mean "at least".
    """
    oldest = [one.oldest_us for one in behind if one.oldest_us is not None]
    return {
        "read_models": sum(one.events for one in behind),
        "embeddings": sum(one.embeddings for one in behind),
        "extraction": sum(one.messages for one in behind),
        "namespaces_behind": len(behind),
        "at_least": len(behind) >= most,
        "oldest_seconds": round((present_us - min(oldest)) / 1e6, 3) if oldest else None,
    }


def unfolded(log: EventLog, read_models: ReadModels) -> list[dict[str, Any]]:
    """Return the namespaces whose read models are behind the log, or cannot be read."""
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
