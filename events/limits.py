"""Limits: the maximum sizes that the log accepts, each with its reason."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from recollect.events.errors import InvalidNamespace
from recollect.events.late_pattern import late_pattern

#: Bytes of an event's stored payload. Messages have kilobytes; a file belongs behind the `uri` of an attachment.
EVENT_BYTES_MAX = 1 << 20
#: Bytes of a request's body. A batch of 1,000 chat messages has about 0.6 MB.
REQUEST_BYTES_MAX = 2 << 20
#: Bytes of the payloads that one read of the log holds in memory; a page that reaches them ends. A page of 5,000 chat
#: messages has about 3 MB.
READ_BYTES_MAX = 32 << 20
#: Events in one append. Larger imports are sent as several batches.
BATCH_EVENTS_MAX = 1_000
#: Characters of an event's id, session id and other names.
NAME_CHARS_MAX = 200
#: Bytes of the metadata of one message, as JSON. It labels a message and is stored with each; files and logs belong
#: behind the `uri` of an attachment.
METADATA_BYTES_MAX = 8 << 10
#: Levels of objects and lists within metadata; filters compare the values of the first one.
METADATA_LEVELS_MAX = 5
#: Seconds by which an event may lie in the future: a day allows a wrong time zone, but not a wrong year.
CLOCK_AHEAD_SECONDS_MAX = 86_400

#: The names that `check_namespace` accepts, for JSON schemas.
NAMESPACE_SCHEMA: Final = {
    "minLength": 1,
    "maxLength": 200,
    "pattern": r"^[A-Za-z0-9._:@-]*[A-Za-z0-9_:@-][A-Za-z0-9._:@-]*$",
}
_NAMESPACE = late_pattern(r"[A-Za-z0-9._:@-]{1,200}")


@lru_cache(4_096)
def check_namespace(namespace: object) -> str:
    """Return `namespace` when it is a valid name; raise `InvalidNamespace` otherwise.

    A valid name has 1 to 200 ASCII letters, digits and ``. _ : @ -``. Dots alone are refused, since they name folders.
    """
    if not isinstance(namespace, str):
        kind = type(namespace).__name__
        raise InvalidNamespace(f"give text, such as str(user_id), not {kind}", field="namespace")
    if not _NAMESPACE.fullmatch(namespace) or not namespace.strip("."):
        raise InvalidNamespace(
            "a namespace has 1 to 200 letters, digits and . _ : @ - and is not made of dots alone, "
            f"not {namespace[:80]!r}",
            field="namespace",
        )
    return namespace
