"""Replays: build the read model of a namespace again from the log, to publish it or to compare it with the live one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import apsw
from msgspec import Struct

from recollect.events.backends.log import EventLog
from recollect.events.errors import ProjectionFailed
from recollect.events.progress import OnProgress
from recollect.events.storage.database import storage_errors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.generations import built
from recollect.projections.read_models.layout import namespace_folder
from recollect.projections.read_models.live_files import LiveFiles
from recollect.projections.read_models.replay import BATCH_EVENTS, build_read_model
from recollect.projections.schema.content_hash import content_hash

Result = TypeVar("Result")


class ReplayCheck(Struct, frozen=True, kw_only=True):
    """The comparison of a live read model with a replay of the same version."""

    namespace: str
    #: Checkpoint of both.
    version: int
    #: Content hash of the live read model.
    live_digest: str
    #: Content hash of the replayed read model.
    replayed_digest: str
    #: Whether the live keyword index matches the live episodes.
    search_equal: bool

    @property
    def is_equal(self) -> bool:
        """Return whether the replayed read model equals the live one."""
        return self.search_equal and self.live_digest == self.replayed_digest


class Replays:
    """Builds the read models of a data folder again.

    Parameters:
        live: publishes what was built.
        batch_events: events in one batch.
    """

    def __init__(self, data: Path, log: EventLog, live: LiveFiles, *, batch_events: int = BATCH_EVENTS) -> None:
        self._data, self._log, self._live, self._batch_events = data, log, live, batch_events

    def publish(self, namespace: str, *, until: int | None = None, on_progress: OnProgress | None = None) -> int:
        """Build the next generation while the live one serves, then publish it; return the number of events projected.

        Parameters:
            until: the last version to project; the head when None.
            on_progress: called with (events projected, events in all) after each batch.

        Raises:
            ProjectionFailed: an event cannot be projected; the live generation stays in use.
        """
        if self._log.head(namespace).version == 0:
            return 0

        def build(path: Path) -> int:
            size = self._batch_events
            with storage_errors(path):
                version = build_read_model(
                    path, self._log, namespace, until=until, batch_events=size, on_progress=on_progress
                )
            self._live.publish(namespace, path, version)
            return version

        return self._built(namespace, build)

    def publish_without_erased(self, namespace: str) -> None:
        """Publish a generation without erased events; an empty one when an event cannot be projected."""
        try:
            self.publish(namespace)
        except ProjectionFailed:
            # The next catch-up projects the events before the failing one and parks the namespace.
            self._live.begin_generation(namespace)

    def compared(self, namespace: str, live: Snapshot, on_progress: OnProgress | None = None) -> ReplayCheck:
        """Build the read model up to the version of a live one in a temporary file; compare the content hashes."""
        version, live_digest = live.version, live.content_hash()

        def replayed(path: Path) -> str:
            size = self._batch_events
            with storage_errors(path):
                build_read_model(path, self._log, namespace, until=version, batch_events=size, on_progress=on_progress)
                with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
                    return content_hash(connection)

        replayed_digest = self._built(namespace, replayed)
        search_equal = True
        if version:
            with self._live.using(namespace) as read_model:
                search_equal = read_model.search_matches()
        return ReplayCheck(
            namespace=namespace,
            version=version,
            live_digest=live_digest,
            replayed_digest=replayed_digest,
            search_equal=search_equal,
        )

    def _built(self, namespace: str, work: Callable[[Path], Result]) -> Result:
        return built(namespace_folder(self._data, namespace), work)
