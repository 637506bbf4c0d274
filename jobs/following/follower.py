"""Follower: reads a feed from a durable cursor on, at least once and in order.

The cursor moves when an item is handled, so that a process that is killed gets the item again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.following.cursor import Cursor, CursorStore
from recollect.jobs.following.feed import POLL_SECONDS, Feed

#: Names of cursors, which are parts of keys.
_NAME = late_pattern(r"[A-Za-z0-9._-]{1,64}")
#: Seconds after which the rest of a page is read again, since events may have been erased meanwhile.
PAGE_SECONDS_MAX = 1.0


class Follower:
    """One reader of a feed, for one thread at a time.

    Parameters:
        store: where the cursor is stored.
        cursor: the name of the cursor; None: nothing is stored.
        after: the position after which a follower without a stored one begins; None: the newest event.

    Raises:
        InvalidInput: the name is wrong, or the log ends before the position.
    """

    def __init__(self, feed: Feed, store: CursorStore, *, cursor: str | None, after: int | None) -> None:
        self._feed = feed
        self._store = store
        self._cursor = None if cursor is None else f"follow {check_cursor_name(cursor)}"
        self._key = folder_name(feed.namespace)
        stored = None if self._cursor is None else store.cursor(self._cursor, self._key)
        #: Everything up to this position is handled; the hash of its event, in hex; empty: not known.
        self.position, self._hash = 0, ""
        start = Cursor(position=feed.head() if after is None else after) if stored is None else stored
        self._set(feed.check_position(start.position, start.hash), start.hash)

    def batch(self) -> list[tuple[int | None, dict[str, Any]]]:
        """Return the next items; none at the end of the log.

        With each is the position to `move` to when it is handled; None: another item of its position follows.
        """
        page = self._feed.page(self.position)
        while not page.items and page.through > self.position:
            self.move(page.through)
            page = self._feed.page(self.position)
        if not page.items and not self._hash:
            self._set(self.position, self._feed.hash_at(self.position))
        positions = [position for position, _ in page.items]
        # An event may change several memories: the last change completes it.
        reached = [position if position != other else None for position, other in pairwise([*positions, None])]
        return list(
            zip([*reached[:-1], *([page.through] if reached else [])], [item for _, item in page.items], strict=True)
        )

    def move(self, position: int | None) -> None:
        """Record that everything up to a position is handled; nothing for None."""
        if position is not None and position > self.position:
            self._set(position)

    def items(self, stop: threading.Event) -> Iterator[dict[str, Any]]:
        """Yield the items until `stop` is set; an item is handled when the next one is asked for."""
        while not stop.is_set():
            until = time.monotonic() + PAGE_SECONDS_MAX
            batch = self.batch()
            for position, item in batch:
                yield item
                self.move(position)
                if position is not None and (stop.is_set() or time.monotonic() > until):
                    break
            if not batch:
                stop.wait(POLL_SECONDS)

    def _set(self, position: int, hash: str = "") -> None:
        if self._cursor is not None:
            self._store.set_cursor(self._cursor, self._key, Cursor(position=position, hash=hash))
        self.position, self._hash = position, hash


def check_cursor_name(name: str) -> str:
    """Return the name of a cursor; raise `InvalidInput` when it is not a valid one."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("give 1 to 64 letters, digits and . _ -", field="cursor")
    return name
