"""Walk the hash chain over the stored bytes: find what was altered, removed or reordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from recollect.events.chain import leaf, link
from recollect.events.envelope import EventDraft, Head, RecordedEvent
from recollect.events.log import GENESIS, EventLog

#: Problems named in one verdict. One flipped bit gives one or two; hundreds mean that the file as a whole is suspect.
PROBLEMS_MAX = 100
_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it was recorded."""

    #: The version at which it shows.
    version: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a walk along one namespace's chain found."""

    namespace: str
    #: The newest version that was read.
    version: int
    #: The chain's hash at that version. Kept elsewhere, it proves later that nothing before it has changed.
    hash: bytes
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether the log is as it was recorded."""
        return not self.problems


def verify(log: EventLog, namespace: str, *, on_progress: Callable[[int, int], None] | None = None) -> Verdict:
    """Recompute every leaf and link of `namespace` and compare them with what is stored.

    Parameters:
        on_progress: called with (versions checked, head's version) after each batch.
    """
    head = log.head(namespace)
    walk = _Walk(head)
    while len(walk.problems) < PROBLEMS_MAX:
        events = log.read(namespace, after=walk.version, limit=_BATCH)
        for event in events:
            # What was appended after `head` was read is checked as well; `arrive` allows for it.
            walk.step(event)
        if events and on_progress is not None:
            on_progress(walk.version, head.version)
        if not events or walk.version >= head.version:
            break
    walk.arrive(log.head(namespace))
    return Verdict(
        namespace=namespace,
        version=walk.version,
        hash=walk.hash,
        problems=tuple(walk.problems[:PROBLEMS_MAX]),
    )


class _Walk:
    """The state of a walk: where it stands, the chain's hash there, what was wrong on the way.

    Parameters:
        head: the head that the log kept when the walk began.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self.version = 0
        self.hash = GENESIS
        self.problems: list[Problem] = []

    def step(self, event: RecordedEvent) -> None:
        """Check one event against the walk so far, then stand on it."""
        if event.version != self.version + 1:
            missing = f"version {self.version + 1}" if event.version == self.version + 2 else "several versions"
            self._report(self.version + 1, f"removed: {missing} before version {event.version} is missing")
        if not _matches(_leaf_of, event, event.leaf):
            self._report(event.version, "altered: its header or stored bytes do not match its leaf")
        if not _matches(self._link, event, event.hash):
            self._report(
                event.version,
                "the chain is broken here: this event or the one before it was changed or moved",
            )
        if event.version == self._head.version and event.hash != self._head.hash:
            self._report(event.version, "the head's hash is not this event's: one of them was changed")
        self.version = event.version
        # The stored hash, not the recomputed one, so that one break is reported once and not for all that follows.
        self.hash = event.hash

    def arrive(self, now: Head) -> None:
        """Compare the end of the walk with the head as it was, and as it is `now`, after appends meanwhile."""
        if len(self.problems) >= PROBLEMS_MAX:
            return
        if self.version < self._head.version:
            self._report(self.version + 1, f"removed: the head is at version {self._head.version}, the events end here")
        elif self.version > now.version:
            self._report(now.version + 1, f"the head is at version {now.version}, but there are events behind it")

    def _link(self, event: RecordedEvent) -> bytes:
        return link(self.hash, event.leaf)

    def _report(self, version: int, what: str) -> None:
        self.problems.append(Problem(version=version, what=what))


def _matches(recompute: Callable[[RecordedEvent], bytes], event: RecordedEvent, stored: bytes) -> bool:
    """Tell whether `stored` is what it should be; a damaged file may hold values of types that cannot be hashed."""
    try:
        return recompute(event) == stored
    except (TypeError, ValueError):
        return False


def _leaf_of(event: RecordedEvent) -> bytes:
    draft = EventDraft(
        event.id,
        event.type,
        event.schema_version,
        None,
        event.session_id,
        event.actor,
        event.causation_id,
        event.correlation_id,
        event.encoding,
        event.payload,
    )
    return leaf(event.namespace, event.version, event.id, event.occurred_at_us, event.recorded_at_us, draft)
