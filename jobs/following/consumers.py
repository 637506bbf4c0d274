"""Consumers: follow namespaces in the background of a server or a worker, each from its own cursor on.

A consumer that fails is tried again, after pauses that grow, and then parked: it alone stops, in this namespace.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head, now_us
from recollect.events.errors import InvalidInput
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.namespace_folder import folder_name, hashed_folder
from recollect.jobs.derivation.job_context import OUTAGES
from recollect.jobs.following.cursor import Cursor, CursorStore
from recollect.jobs.following.extensions import Projection
from recollect.jobs.following.feed import Feed, is_rewound
from recollect.projections.read_models.read_models import ReadModels

#: The pause after the first failure; each is twice the one before, less up to a half by chance, so that what failed
#: together is not tried again together.
_PAUSE_SECONDS = 1.0
_PAUSE_SECONDS_MAX = 600.0


class Consumer(Struct, frozen=True, kw_only=True):
    """Who handles the items of feeds in the background."""

    #: Of its cursors, such as `projection mood`.
    name: str
    #: Handles items of a namespace, in order. It may get the same ones again.
    handle: Callable[[str, Sequence[Mapping[str, Any]]], None]
    #: Removes what it has derived in a namespace, before a replay and after an erasure; None: it derives nothing.
    reset: Callable[[str], None] | None
    types: tuple[str, ...]
    knowledge: bool
    #: Failures in turn after which it is parked.
    attempts_max: int
    #: The only namespace that it follows; None: all of them.
    namespace: str | None = None
    #: Whether it handles one event at a time, after which its cursor moves; otherwise a page.
    is_stepwise: bool = False

    def is_behind(self, cursor: Cursor | None, head: Head) -> bool:
        """Return whether it has work in the namespace of a head, and may do it now."""
        if self.namespace not in (None, head.namespace):
            return False
        cursor = cursor or Cursor(position=0)
        # An erasure is followed also by one that is parked. A position after the head is noticed by a run.
        has_work = self.must_reset(cursor, head) or (cursor.position != head.version and not self.is_parked(cursor))
        return has_work and cursor.retry_at_us <= now_us()

    def is_parked(self, cursor: Cursor | None) -> bool:
        """Return whether it has failed too often, and waits for a requeue."""
        return cursor is not None and cursor.failures >= self.attempts_max

    def letter_id(self, namespace_key: str) -> str:
        """Return the id of the dead letter that it leaves when it is parked in a namespace."""
        return f"{self.name.replace(' ', '-')}-{namespace_key[:12]}"

    def must_reset(self, cursor: Cursor, head: Head) -> bool:
        """Return whether events were erased from which it may have derived something."""
        return self.reset is not None and head.erasure_version > cursor.erasure_version


def consumer_of(projection: Projection) -> Consumer:
    """Return the consumer that keeps a projection up to date."""
    return Consumer(
        name=f"projection {projection.name}",
        handle=projection.apply,
        reset=projection.reset,
        types=projection.types,
        knowledge=projection.knowledge,
        attempts_max=4,
    )


class ConsumerRuns:
    """Runs consumers in namespaces. Safe to use from many threads and, on one machine, processes.

    Parameters:
        stop: set when the process ends; a run then ends after the current page.
    """

    def __init__(self, log: EventLog, read_models: ReadModels, store: CursorStore, stop: threading.Event) -> None:
        self._log, self._read_models, self._store, self._stop = log, read_models, store, stop

    def run(self, consumer: Consumer, namespace: str, *, seconds_max: float, again: bool = False) -> bool:
        """Handle the next items; return whether there may be more.

        Parameters:
            seconds_max: seconds after which no further page begins.
            again: whether to try what has failed and is parked, or would be tried later.

        Raises:
            Exception: that of the consumer; the failure is counted, unless it is one of `OUTAGES`.
        """
        until = time.monotonic() + seconds_max
        with file_lock(self._lock_path(consumer, namespace), wait=False) as locked:
            if locked is None:
                return True
            while not self._stop.is_set():
                head = self._log.head(namespace)
                cursor = self._store.cursor(consumer.name, folder_name(namespace)) or Cursor(position=0)
                if again:
                    cursor, again = replace(cursor, failures=0, retry_at_us=0), False
                if not consumer.is_behind(cursor, head):
                    return False
                if time.monotonic() > until:
                    return True
                # Counted before, so that items that end the process are not tried for ever.
                self._set(consumer, namespace, _failed(cursor))
                try:
                    if is_rewound(self._log, namespace, cursor.position, cursor.hash):
                        self._follow_rewound(consumer, cursor, head)
                        continue
                    self._step(consumer, cursor, head, until)
                except OUTAGES:
                    self._set(consumer, namespace, cursor)
                    raise
            return True

    def rebuild(self, consumer: Consumer, namespace: str) -> int:
        """Reset a consumer and give it all items again; return the position that it has reached.

        Raises:
            Exception: that of the consumer, which goes on in the background from there.
        """
        with file_lock(self._lock_path(consumer, namespace)):
            self._reset(consumer, self._log.head(namespace))
        while self.run(consumer, namespace, seconds_max=60.0) and not self._stop.is_set():
            time.sleep(0.01)
        cursor = self._store.cursor(consumer.name, folder_name(namespace))
        return 0 if cursor is None else cursor.position

    def _step(self, consumer: Consumer, cursor: Cursor, head: Head, until: float) -> None:
        """Handle one page, or remove what was derived before an erasure.

        Parameters:
            until: `time.monotonic()` seconds after which no further event of the page is handled.
        """
        if consumer.must_reset(cursor, head):
            self._reset(consumer, head)
            return
        feed = Feed(self._log, self._read_models, head.namespace, types=consumer.types, knowledge=consumer.knowledge)
        page = feed.page(cursor.position)
        done = replace(cursor, failures=0, retry_at_us=0)
        groups = groupby(page.items, key=itemgetter(0)) if consumer.is_stepwise else [(page.through, page.items)]
        for position, group in groups:
            if time.monotonic() > until or self._stop.is_set():
                self._set(consumer, head.namespace, done)
                return
            if items := [item for _, item in group]:
                self._set(consumer, head.namespace, _failed(cursor))
                consumer.handle(head.namespace, items)
            cursor = done = replace(done, position=position, hash="")
            self._set(consumer, head.namespace, done)
        position = max(page.through, done.position)
        hash = head.hash.hex() if position == head.version else ""
        self._set(consumer, head.namespace, replace(done, position=position, hash=hash))

    def _follow_rewound(self, consumer: Consumer, cursor: Cursor, head: Head) -> None:
        """Begin again with a consumer that can remove what it has derived from lost events.

        Raises:
            InvalidInput: it cannot.
        """
        if consumer.reset is None:
            raise InvalidInput(
                f"the log ends at {head.version} or has other events at {cursor.position}, up to which all was sent: "
                "an older copy of the log is in use. `recollect webhook retry` goes on with what comes from now on",
                field="namespace",
            )
        self._reset(consumer, head)

    def _reset(self, consumer: Consumer, head: Head) -> None:
        if consumer.reset is not None:
            consumer.reset(head.namespace)
        self._set(consumer, head.namespace, Cursor(position=0, erasure_version=head.erasure_version))

    def _set(self, consumer: Consumer, namespace: str, cursor: Cursor) -> None:
        self._store.set_cursor(consumer.name, folder_name(namespace), cursor)

    def _lock_path(self, consumer: Consumer, namespace: str) -> Path:
        folder = hashed_folder(self._read_models.data / "namespaces", namespace)
        return folder / f"{consumer.name.replace(' ', '-')}.lock"


def pause_seconds(failures: int) -> float:
    """Return the seconds before the next attempt after a number of failures in turn, from 1."""
    pause = min(_PAUSE_SECONDS_MAX, _PAUSE_SECONDS * 2.0 ** min(failures - 1, 30))
    return pause * random.uniform(0.5, 1)  # noqa: S311 -- not a secret


def _failed(cursor: Cursor) -> Cursor:
    """Return a cursor with one more failure, and the time of the next attempt."""
    failures = cursor.failures + 1
    return replace(cursor, failures=failures, retry_at_us=now_us() + int(pause_seconds(failures) * 1_000_000))
