"""Backlog: how far the read models, the vectors and the extraction of namespaces are behind the log.

Only namespaces whose heads have moved are opened, so idle namespaces cost nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from recollect.events.backends.log import EventLog, each_head
from recollect.events.envelope import Head, RecordedEvent
from recollect.events.errors import RecollectError
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.queue.caught_up_heads import CaughtUpHead, CaughtUpHeads, basis_of
from recollect.jobs.queue.run_store import RunStore
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.projector.event_handlers import EPISODE_TYPES
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels

#: Events that are not projected whose types are read; of more, each counts as a message. Reading them takes 5 ms.
_TYPES_MAX = 2_000
#: Namespaces after whose comparison states are written, so that a process that ends early leaves them to the next one:
#: the first comparison of 100,000 namespaces opens them all, which takes some minutes.
_WRITTEN_NAMESPACES = 1_000


class Backlog(Struct, frozen=True, kw_only=True):
    """The work that is left in a namespace, up to the head of its log.

    Times are those at which the oldest event without this work was recorded, in microseconds since 1970 UTC; None
    without work.
    """

    namespace: str
    #: Events that are not projected.
    events: int
    oldest_us: int | None
    #: Episodes without vectors, those of events that are not projected included; 0 when embeddings are off.
    embeddings: int
    oldest_unembedded_us: int | None
    #: Messages that no extraction has looked at, those that are not projected included.
    messages: int
    oldest_unread_us: int | None
    #: Whether the projection stopped at an event that it cannot apply.
    is_parked: bool = False

    @property
    def is_settled(self) -> bool:
        """Return whether nothing is to project or embed until the head moves, or the namespace is parked."""
        return self.is_parked or not (self.events or self.embeddings)

    @property
    def is_done(self) -> bool:
        """Return whether all work is done."""
        return not (self.events or self.embeddings or self.messages)


class BacklogScan(Struct, frozen=True, kw_only=True):
    """The backlogs of all namespaces, as far as they were compared."""

    #: Namespaces with events to project or episodes to embed.
    behind: list[Backlog]
    #: Namespaces that wait for the extraction alone, or are parked.
    waiting: list[Backlog]
    #: Namespaces that were compared.
    compared: int
    #: Whether all namespaces were compared.
    is_complete: bool


class BacklogMonitor:
    """Compares heads with checkpoints; opens a namespace whose work is done again only after its head has moved.

    Parameters:
        run_store: where workers record what the extraction has looked at; without one, its own cursor counts, which
            stays behind messages without a fact.
    """

    def __init__(
        self,
        log: EventLog,
        read_models: ReadModels,
        vectors_in_use: CurrentVectors,
        run_store: RunStore | None = None,
    ) -> None:
        self._log = log
        self._read_models = read_models
        self._vectors_in_use = vectors_in_use
        self._run_store = run_store
        #: Namespace → head and fingerprint of the embedding model at which its work was done.
        self._done: dict[str, tuple[int, str]] = {}
        #: The same for projecting and embedding alone: the sweep does not open such a namespace.
        self._settled: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()
        #: What earlier processes knew of the namespaces.
        self._states = CaughtUpHeads(read_models.data)

    def scan(self, limit: int | None = None, *, unread: bool = True) -> BacklogScan:
        """Return all backlogs, of at most `limit` namespaces of each kind.

        Parameters:
            unread: whether to compare what the extraction has looked at, too; without it, namespaces that wait for
                the extraction alone are not opened again.

        Raises:
            StorageError: the log cannot be read.
        """
        finished = self._done if unread else self._settled
        behind: list[Backlog] = []
        waiting: list[Backlog] = []
        compared, is_complete = 0, True
        fingerprint = self._fingerprint()
        basis = basis_of(self._log.log_id, fingerprint)
        for head, stored in self._states.stored(each_head(self._log), basis):
            compared += 1
            if compared % _WRITTEN_NAMESPACES == 0:
                self._states.write(basis)
            state = (head.version, fingerprint)
            if stored is not None:
                self._remember_stored(stored, state)
            with self._lock:
                if finished.get(head.namespace) == state:
                    continue
                if len(waiting) == limit and self._settled.get(head.namespace) == state:
                    # It can only be one more that waits.
                    is_complete = False
                    continue
            try:
                backlog = self._cold_backlog(head) or self.namespace_backlog(head.namespace)
                if backlog.events and self._is_done_elsewhere(head):
                    with self._lock:
                        finished[head.namespace] = state
                    continue
            except RecollectError:
                # The namespace is damaged; health reports it. The other namespaces are still compared.
                continue
            self._remember(backlog, state)
            if backlog.is_done:
                continue
            kind = waiting if backlog.is_settled else behind
            if len(kind) == limit:
                is_complete = False
                if kind is behind:
                    break
            else:
                kind.append(backlog)
        self._states.write(basis)
        return BacklogScan(behind=behind, waiting=waiting, compared=compared, is_complete=is_complete)

    def _is_done_elsewhere(self, head: Head) -> bool:
        """Return whether read models are a cache here, and workers of any machine have read all up to `head`."""
        limit = self._read_models.disk_limit
        return bool(limit.bytes_max) and (limit.is_evicted(head) or self._noted_read(head.namespace) >= head.version)

    def _cold_backlog(self, head: Head) -> Backlog | None:
        """Return the backlog of a namespace that this machine does not keep, without making its files."""
        if not self._read_models.disk_limit.is_cold(head.namespace):
            return None
        after = self._noted_read(head.namespace)
        events = self._log.read_stored(head.namespace, after=after, limit=_TYPES_MAX)
        oldest_us = events[0].recorded_at_us if events else None
        return Backlog(
            namespace=head.namespace,
            events=max(1, head.version - after),
            oldest_us=oldest_us,
            embeddings=sum(event.type in EPISODE_TYPES for event in events),
            oldest_unembedded_us=oldest_us,
            messages=sum(event.type == "message.added" for event in events),
            oldest_unread_us=oldest_us,
        )

    def _remember(self, backlog: Backlog, state: tuple[int, str]) -> None:
        """Remember that the work of a namespace was done at a head."""
        with self._lock:
            if backlog.is_settled:
                self._settled[backlog.namespace] = state
            if backlog.is_done:
                self._done[backlog.namespace] = state
        # While the model is loading, a state would hide what is known of the vectors.
        is_known = bool(state[1]) or self._vectors_in_use().embedder.state == "off"
        if backlog.is_settled and not backlog.is_parked and is_known:
            self._states.remember(CaughtUpHead(backlog.namespace, state[0], backlog.is_done))

    def _remember_stored(self, stored: CaughtUpHead, state: tuple[int, str]) -> None:
        """Remember what an earlier process wrote, unless this one has seen the namespace."""
        with self._lock:
            self._settled.setdefault(stored.namespace, state)
            if stored.is_done:
                self._done.setdefault(stored.namespace, state)

    def namespace_backlog(self, namespace: str) -> Backlog:
        """Return the backlog of `namespace`.

        Raises:
            StorageError: the log or the read model cannot be read.
        """
        progress = self._read_models.progress(namespace)
        with self._read_models.reading(namespace) as snapshot:
            # What was projected since `progress` is in the snapshot; the events after it are counted by their types.
            behind = max(0, progress.head - snapshot.version)
            unprojected = self._log.read_stored(namespace, after=snapshot.version, limit=_TYPES_MAX) if behind else []
            unprojected = unprojected[:behind]
            over = behind - len(unprojected)
            missing = self._missing_embeddings(namespace, snapshot)
            read_through = self._read_through(namespace, snapshot)
            unread = snapshot.episodes.count_turns_after(read_through)
            first_missing = snapshot.progress.episode_from_end(missing) if missing else None
            first_unread = snapshot.progress.first_turn_after(read_through) if unread else None
        embeds = self._vectors_in_use().embedder.state != "off"
        episodes = [event for event in unprojected if event.type in EPISODE_TYPES] if embeds else []
        messages = [event for event in unprojected if event.type == "message.added"]
        return Backlog(
            namespace=namespace,
            events=behind,
            oldest_us=unprojected[0].recorded_at_us if unprojected else None,
            embeddings=missing + len(episodes) + (over if embeds else 0),
            oldest_unembedded_us=self._recorded_us(namespace, first_missing, episodes),
            messages=unread + len(messages) + over,
            oldest_unread_us=self._recorded_us(namespace, first_unread, messages),
            is_parked=progress.parked is not None,
        )

    def note_read(self, namespace: str, version: int) -> None:
        """Record that the extraction has looked at all messages up to `version`."""
        if self._run_store is not None:
            self._run_store.note_read(folder_name(namespace), version)

    def _read_through(self, namespace: str, snapshot: Snapshot) -> int:
        """Return the version up to which the extraction has looked at the messages."""
        cursor = snapshot.progress.job_cursor("extraction")
        return cursor if cursor >= snapshot.version else max(cursor, self._noted_read(namespace))

    def _noted_read(self, namespace: str) -> int:
        """Return the version that workers have recorded; 0 without one, or while the broker is away."""
        try:
            return 0 if self._run_store is None else self._run_store.read_through(folder_name(namespace))
        except Exception:
            # Health reports the broker.
            return 0

    def _recorded_us(self, namespace: str, version: int | None, later: Sequence[RecordedEvent]) -> int | None:
        """Return when the event `version` was recorded; when it is None, the first one of `later`."""
        if version is None:
            return later[0].recorded_at_us if later else None
        events = self._log.read_stored(namespace, after=version - 1, limit=1)
        return events[0].recorded_at_us if events else None

    def _missing_embeddings(self, namespace: str, snapshot: Snapshot) -> int:
        """Return the number of episodes without vectors; 0 while no embedding model is ready."""
        vectors = self._vectors_in_use()
        return vectors.backlog(namespace, snapshot).missing if vectors.embedder.state == "ready" else 0

    def _fingerprint(self) -> str:
        """Return the fingerprint of the embedding model in use: after a change of model no namespace is settled."""
        embedder = self._vectors_in_use().embedder
        return embedder.fingerprint if embedder.state == "ready" else ""


#: The projectors, as metrics and health name them.
PROJECTORS = ("read_models", "embeddings", "extraction")


def backlog_report(scan: BacklogScan, present_us: int, limit: int) -> dict[str, Any]:
    """Return the totals of a scan, and the namespaces with work left, those that wait longest first.

    Parameters:
        present_us: the current time, in microseconds since 1970 UTC.
        limit: namespaces in the report, at most.
    """
    items: list[dict[str, Any]] = [
        {
            "namespace": backlog.namespace,
            "read_models": backlog.events,
            "embeddings": backlog.embeddings,
            "extraction": backlog.messages,
            "ages_seconds": {
                "read_models": _age_seconds([backlog.oldest_us], present_us),
                "embeddings": _age_seconds([backlog.oldest_unembedded_us], present_us),
                "extraction": _age_seconds([backlog.oldest_unread_us], present_us),
            },
            "parked": backlog.is_parked,
        }
        for backlog in (*scan.behind, *scan.waiting)
    ]
    items.sort(key=lambda item: max(age or 0.0 for age in item["ages_seconds"].values()), reverse=True)
    return {"totals": backlog_totals(scan, present_us), "items": items[:limit]}


def backlog_totals(scan: BacklogScan, present_us: int) -> dict[str, Any]:
    """Return the totals of a scan, as health and metrics show them: by projector the sum, the most and the age.

    Parameters:
        present_us: the current time, in microseconds since 1970 UTC.
    """
    backlogs = [*scan.behind, *scan.waiting]
    counts = {
        "read_models": [backlog.events for backlog in backlogs],
        "embeddings": [backlog.embeddings for backlog in backlogs],
        "extraction": [backlog.messages for backlog in backlogs],
    }
    oldest = {
        "read_models": [backlog.oldest_us for backlog in backlogs],
        "embeddings": [backlog.oldest_unembedded_us for backlog in backlogs],
        "extraction": [backlog.oldest_unread_us for backlog in backlogs],
    }
    ages = {name: _age_seconds(times, present_us) for name, times in oldest.items()}
    return {
        **{name: sum(values) for name, values in counts.items()},
        "most": {name: max(values, default=0) for name, values in counts.items()},
        "namespaces_behind": len(backlogs),
        "at_least": not scan.is_complete,
        "oldest_seconds": ages["read_models"],
        "ages_seconds": ages,
    }


def _age_seconds(times_us: Sequence[int | None], present_us: int) -> float | None:
    """Return the age of the oldest time; None without one."""
    oldest_us = min((time_us for time_us in times_us if time_us is not None), default=None)
    return None if oldest_us is None else max(0.0, round((present_us - oldest_us) / 1e6, 3))


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
