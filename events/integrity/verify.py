"""Verification: recomputes the hash chain of a namespace to find altered, removed or reordered events."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from recollect.events.backends.log import EventLog
from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.chain import GENESIS, leaf_of, link
from recollect.events.envelope import RecordedEvent
from recollect.events.progress import OnProgress

#: Problems in one result. A flipped bit causes one or two; a hundred mean that the file as a whole is damaged.
PROBLEMS_MAX = 100
_BATCH = 1_000


class ChainProblem(Struct, frozen=True, kw_only=True):
    """A difference between the log and its hash chain."""

    #: The version at which it was detected.
    version: int
    message: str


class VerifyResult(Struct, frozen=True, kw_only=True):
    """The result of verifying one namespace's chain."""

    namespace: str
    #: The newest version that was read.
    version: int
    #: The chain's hash at that version. Stored in an anchor, it later proves that no earlier event was changed.
    hash: bytes
    problems: tuple[ChainProblem, ...]

    @property
    def is_intact(self) -> bool:
        """Whether the chain has no problems."""
        return not self.problems


def verify(
    log: EventLog,
    namespace: str,
    *,
    after: int = 0,
    until: int | None = None,
    on_progress: OnProgress | None = None,
) -> VerifyResult:
    """Recompute every leaf and hash of `namespace` and compare them with the stored values.

    Parameters:
        after, until: verify only the versions over `after` up to `until`, beginning with the stored hash at `after`,
            so that parts of one chain can be verified in parallel. Without `until`, the head is verified too.
        on_progress: called with (versions checked, last version to check) after each batch.
    """
    walk = _ChainWalk(after, _stored_hash(log, namespace, after), erased_versions(log, namespace))
    last = log.head(namespace).version if until is None else until
    while walk.version < last and len(walk.problems) < PROBLEMS_MAX:
        events = log.read_stored(namespace, after=walk.version, limit=min(_BATCH, last - walk.version))
        # After a gap in the versions, the page may have events over `until`.
        events = [event for event in events if event.version <= last]
        if not events:
            break
        for event in events:
            walk.step(event)
        if on_progress is not None:
            on_progress(walk.version - after, last - after)
    if len(walk.problems) < PROBLEMS_MAX:
        walk.finish(last)
        if until is None:
            _compare_head(walk, log, namespace)
    return VerifyResult(
        namespace=namespace,
        version=walk.version,
        hash=walk.hash or GENESIS,
        problems=tuple(walk.problems[:PROBLEMS_MAX]),
    )


def erased_versions(log: EventLog, namespace: str) -> list[tuple[int, int]]:
    """Return the versions that the erasure events of `namespace` name, as ranges; the events are in the chain."""
    ranges: list[tuple[int, int]] = []
    for version in log.erasures(namespace):
        [event] = log.read_stored(namespace, after=version - 1, limit=1)
        if event.type in ERASURE_TYPES and event.version == version:
            # An erasure covers only what is older than its event.
            spans = event.data().get("versions", ())
            ranges += [(first, min(last, version - 1)) for first, last in spans]
    return ranges


def _stored_hash(log: EventLog, namespace: str, version: int) -> bytes | None:
    """Return the stored hash of `version`; None when that event is missing."""
    if version == 0:
        return GENESIS
    events = log.read_stored(namespace, after=version - 1, limit=1)
    return events[0].hash if events and events[0].version == version else None


def _compare_head(walk: _ChainWalk, log: EventLog, namespace: str) -> None:
    """Compare the newest event with the head. Events that are appended meanwhile are verified too."""
    while True:
        newer = log.read_stored(namespace, after=walk.version, limit=_BATCH)
        head = log.head(namespace)
        if head.version <= walk.version:
            break
        if not newer:
            walk.finish(head.version)
            return
        for event in newer:
            walk.step(event)
    if newer:
        walk.report(newer[0].version, f"added: the head is at version {head.version}, but there are later events")
    elif head.version < walk.version:
        walk.report(walk.version, f"the head is at version {head.version} only: it was changed")
    elif walk.hash is not None and head.hash != walk.hash:
        walk.report(head.version, "the head's hash is not the newest event's: one of them was changed")


class _ChainWalk:
    """A walk along a chain: its current version, the hash of that version, and the problems so far."""

    def __init__(self, version: int, chain_hash: bytes | None, erased: Collection[tuple[int, int]]) -> None:
        self.version = version
        #: The versions that erasures of this namespace name, as ranges.
        self._erased = erased
        #: None when the event before the first one is missing, which the walk over the part before it reports.
        self.hash = chain_hash
        self.problems: list[ChainProblem] = []

    def step(self, event: RecordedEvent) -> None:
        """Verify the next event and move to it."""
        if event.version != self.version + 1:
            missing = f"version {self.version + 1}" if event.version == self.version + 2 else "several versions"
            self.report(self.version + 1, f"removed: {missing} before version {event.version} is missing")
        if event.is_erased:
            if not any(first <= event.version <= last for first, last in self._erased):
                self.report(event.version, "erased, but no erasure event names it: its content was removed")
        elif not _matches(lambda: leaf_of(event), event.leaf):
            self.report(event.version, "altered: its header or stored bytes do not match its leaf")
        previous = self.hash
        if previous is not None and not _matches(lambda: link(previous, event.leaf), event.hash):
            self.report(event.version, "the chain is broken here: this event or the one before it was changed or moved")
        self.version = event.version
        # The stored hash, not the recomputed one, so that one break is reported once and not for all that follows.
        self.hash = event.hash

    def finish(self, last: int) -> None:
        """Report events that are missing at the end of the walk."""
        if self.version < last:
            self.report(self.version + 1, f"removed: the events from here up to version {last} are missing")
            self.version, self.hash = last, None

    def report(self, version: int, message: str) -> None:
        """Add a problem."""
        self.problems.append(ChainProblem(version=version, message=message))


def _matches(recompute: Callable[[], bytes], stored: bytes) -> bool:
    """Return whether `stored` equals the recomputed value; a damaged file may hold values that cannot be hashed."""
    try:
        return recompute() == stored
    except (TypeError, ValueError):
        return False
