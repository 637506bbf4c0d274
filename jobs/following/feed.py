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

    def check_position(self, position: int) -> int:
        """Return `position`; raise `InvalidInput` when the log ends before it."""
        head = self.head()
        if not 0 <= position <= head:
            raise InvalidInput(
                f"{position} is not a position of {self.namespace!r}, whose log ends at {head}; was it restored from a "
                "backup? Start again from 0",
                field="after",
            )
        return position

    def page(self, after: int) -> FeedPage:
        """Return the items after the position `after`, of at most `PAGE_EVENTS` events. Erased events are left out.

        Raises:
            ProjectionFailed: the next event cannot be projected, so its changes are unknown. StorageError: see `read`.
        """
        if self.head() <= after:
            return FeedPage((), after)
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
