"""The limits of the log, each with its reason."""

from __future__ import annotations

import re
from functools import lru_cache

from recollect.events.errors import InvalidNamespace

#: One event's stored payload. A message is kilobytes; a megabyte is a file, which belongs behind an attachment's `uri`.
EVENT_BYTES_MAX = 1 << 20
#: One request's body. A batch of 1,000 chat messages is about 0.6 MB.
REQUEST_BYTES_MAX = 2 << 20
#: Events in one append. Larger imports are sent as several batches.
BATCH_EVENTS_MAX = 1_000
#: An event's id, session id and the like.
NAME_CHARS_MAX = 200
#: How far a producer's clock may run ahead of the log's. A day forgives a wrong time zone, not a wrong year.
CLOCK_AHEAD_SECONDS_MAX = 86_400

_NAMESPACE = re.compile(r"[A-Za-z0-9._:@-]{1,200}")


@lru_cache(4_096)
def check_namespace(namespace: str) -> str:
    """Return `namespace` when it is a valid name; raise `InvalidNamespace` otherwise.

    Valid: 1 to 200 ASCII letters, digits and ``. _ : @ -``, not only dots (those name folders).
    """
    if not _NAMESPACE.fullmatch(namespace) or not namespace.strip("."):
        raise InvalidNamespace(
            "a namespace has 1 to 200 letters, digits and . _ : @ - and is not made of dots alone, "
            f"not {namespace[:80]!r}",
            field="namespace",
        )
    return namespace
