"""Feed: the events of a namespace after a position, or what they changed about its knowledge, in pages.

A position is the version of an event. Versions have no gaps, and an event has its version when it is committed, so a
feed cannot pass an append that is in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.events.backends.log import EventLog
from recollect.events.catalogue import EVENT_CLASSES
from recollect.events.envelope import RecordedEvent, rfc3339
from recollect.events.errors import InvalidInput, ProjectionFailed
from recollect.events.limits import check_namespace
from recollect.projections.queries.change_queries import KnowledgeChange
from recollect.projections.read_models.read_models import ReadModels

#: Events of a page: few, since a page is in memory while its items are handled.
PAGE_EVENTS = 100
#: Seconds between two looks for new events: a look reads one row of the log, in 20 µs.
POLL_SECONDS = 0.25


class FeedPage(NamedTuple):
    """The next items of a feed."""

    #: Each with its position; several items may have the same one.
    items: Sequence[tuple[int, dict[str, Any]]]
    #: The position up to which everything is in this page or was left out; that before the page at the end of the log.
    through: int


class Feed:
    """The feed of one namespace. Safe to use from any thread.

    Parameters:
        types: the types of the events; all when empty.
        knowledge: changes of facts, preferences and tasks in place of events.

    Raises:
        InvalidInput: a type is unknown, or `types` are given with `knowledge`. InvalidNamespace: the name is wrong.
    """

    def __init__(
        self,
        log: EventLog,
        read_models: ReadModels,
        namespace: str,
        *,
        types: Sequence[str] = (),
        knowledge: bool = False,
    ) -> None:
        check_types(types, knowledge=knowledge)
        self.namespace = check_namespace(namespace)
        self._log = log
        self._read_models = read_models
        self._types = frozenset(types)
        self._knowledge = knowledge

    def head(self) -> int:
        """Return the position of the newest event."""
        return self._log.head(self.namespace).version

    def check_position(self, position: int, hash: str = "") -> int:
        """Return `position`; raise `InvalidInput` when the log ends before it, or has another event there.

        Parameters:
            hash: the hash of the event at the position, in hex; empty: not known.
        """
        if is_rewound(self._log, self.namespace, position, hash):
            raise InvalidInput(
                f"{position} is not a position of {self.namespace!r}, whose log ends at {self.head()} or has other "
                "events there; was it restored from a backup? Start again from 0, or with a cursor of another name",
                field="after",
            )
        return position

    def hash_at(self, position: int) -> str:
        """Return the hash of the event at a position, in hex; empty: there is none."""
        return hash_at(self._log, self.namespace, position)

    def page(self, after: int) -> FeedPage:
        """Return the items after the position `after`, of at most `PAGE_EVENTS` events. Erased events are left out.

        Raises:
            ProjectionFailed: the next event cannot be projected, so its changes are unknown. StorageError: see `read`.
            InvalidInput: see `check_position`.
        """
        head = self.head()
        if head <= after:
            return FeedPage((), after if head == after else self.check_position(after))
        return self._changes(after) if self._knowledge else self._events(after)

    def _events(self, after: int) -> FeedPage:
        events = self._log.read(self.namespace, after=after, limit=PAGE_EVENTS)
        items = [
            (event.version, event.as_json())
            for event in events
            if not event.is_erased and (not self._types or event.type in self._types)
        ]
        return FeedPage(items, events[-1].version if events else after)

    def _changes(self, after: int) -> FeedPage:
        progress = self._read_models.catch_up(self.namespace)
        through = min(progress.version, after + PAGE_EVENTS)
        if progress.parked is not None and through <= after:
            raise ProjectionFailed(self.namespace, progress.parked.version, progress.parked.error)
        with self._read_models.reading(self.namespace) as snapshot:
            changes = snapshot.changes.between(after, through)
        events: dict[int, RecordedEvent] = {}
        if changes:
            read = self._log.read(self.namespace, after=after, limit=through - after)
            # A page of large events ends earlier; the changes after it come with the next one.
            through = read[-1].version
            events = {event.version: event for event in read if not event.is_erased}
        items = [
            (change.version, _change_json(change, events[change.version]))
            for change in changes
            if change.version in events
        ]
        return FeedPage(items, max(after, through))


def hash_at(log: EventLog, namespace: str, position: int) -> str:
    """Return the hash of the event at a position, in hex; empty: there is none."""
    events = log.read(namespace, after=position - 1, limit=1) if position > 0 else []
    return events[0].hash.hex() if events else ""


def is_rewound(log: EventLog, namespace: str, position: int, hash: str) -> bool:
    """Return whether a log ends before a position, or has another event there than the one with `hash`."""
    if not 0 <= position <= log.head(namespace).version:
        return True
    return bool(hash) and hash_at(log, namespace, position) != hash


def check_types(types: Sequence[str], *, knowledge: bool) -> None:
    """Raise `InvalidInput` when there is no event of a type, or when types are given for changes of knowledge."""
    unknown = [name for name in types if name not in EVENT_CLASSES]
    if unknown:
        raise InvalidInput(
            f"there are no events of the type {unknown[0][:80]!r}; `docs/reference/events.md` lists them", field="types"
        )
    if types and knowledge:
        raise InvalidInput("are those of events; changes of knowledge come from events of any type", field="types")


def _change_json(change: KnowledgeChange, event: RecordedEvent) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "change": change.change,
        "subject": change.subject,
        "predicate": change.predicate,
        "old": change.old,
        "new": change.new,
        "old_id": change.old_id,
        "new_id": change.new_id,
        "source_events": change.source_events,
        "event_id": event.id,
        "position": change.version,
        "at": rfc3339(event.occurred_at_us, event.utc_offset or 0),
    }
