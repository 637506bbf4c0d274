"""Event records: a validated draft, a recorded event, a namespace's head; conversions of their times."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, overload

import orjson

from recollect.events.errors import ForeignFile, KeyMissing, NewerFile
from recollect.events.local_time import OFFSET_FIELD, fixed_zone, local_time, offset_minutes, offset_of
from recollect.events.upcast import UPCASTERS, newest_version, upcast

#: The encodings of stored payloads: JSON; JSON encrypted by AES-256-GCM; the empty payload of an erased event.
ENCODING_JSON = "json"
ENCODING_AES = "aes256gcm"
ENCODING_ERASED = "erased"
#: The type of an erased event.
ERASED_TYPE = "erased"

#: Microseconds in a day.
DAY_US = 86_400_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventDraft(NamedTuple):
    """A validated event that has no version yet. Times are microseconds since 1970 UTC."""

    #: The producer's idempotency key; the log generates a UUIDv7 when it is None.
    id: str | None
    type: str
    schema_version: int
    #: The time at which it happened, by the producer's clock; the time of recording when None.
    occurred_at_us: int | None
    session_id: str | None
    #: The user, agent or tool that caused the event: a user's name, `agent`, `tool:search` …
    actor: str | None
    #: The id of the event that caused this one.
    causation_id: str | None
    #: The request or task that this event belongs to.
    correlation_id: str | None
    #: The encoding of `payload`: a draft has JSON, which the log may encrypt.
    encoding: str
    payload: bytes
    #: Whose key encrypts the payload: the name of the person who speaks; None for the namespace itself.
    subject: str | None = None


class RecordedEvent(NamedTuple):
    """An event of the log. Times are microseconds since 1970 UTC."""

    namespace: str
    #: Gapless number within the namespace, from 1.
    version: int
    id: str
    type: str
    schema_version: int
    occurred_at_us: int
    recorded_at_us: int
    session_id: str | None
    actor: str | None
    causation_id: str | None
    correlation_id: str | None
    encoding: str
    payload: bytes
    #: sha256 over the header and the stored bytes.
    leaf: bytes
    #: sha256 over the previous event's hash and this leaf.
    hash: bytes

    def decrypted(self, payload: bytes) -> RecordedEvent:
        """Return the event with its decrypted payload."""
        # The first 11 fields are the header. `_replace` takes 1.1 µs, this 0.5 µs, for each event that is read.
        return RecordedEvent._make((*self[:11], ENCODING_JSON, payload, self.leaf, self.hash))

    def erased(self, event_id: str) -> RecordedEvent:
        """Return the event as an erasure leaves it: version, time of recording, leaf and hash.

        Parameters:
            event_id: the id under which it stays known.
        """
        recorded_us = self.recorded_at_us
        return RecordedEvent(
            self.namespace,
            self.version,
            event_id,
            ERASED_TYPE,
            1,
            recorded_us,
            recorded_us,
            None,
            None,
            None,
            None,
            ENCODING_ERASED,
            b"",
            self.leaf,
            self.hash,
        )

    @property
    def is_erased(self) -> bool:
        """Return whether the content of the event was erased."""
        return self.encoding == ENCODING_ERASED

    @property
    def utc_offset(self) -> int | None:
        """Return the minutes east of UTC that `occurred_at` was sent with; None for UTC, and when it was not sent."""
        return offset_of(self.payload) if self.encoding == ENCODING_JSON else None

    def data(self) -> dict[str, Any]:
        """Return the decoded payload in the newest schema version of its type, without the offset of `occurred_at`.

        The payload of an erased event is empty.

        Raises:
            NewerFile: a newer version of Recollect recorded it. KeyMissing: it was read without its key.
            ForeignFile: the stored payload is damaged.
        """
        if self.encoding == ENCODING_ERASED:
            return {}
        if self.encoding == ENCODING_AES:
            raise KeyMissing(
                "the event is encrypted, and the log was opened without a key store; open it with its keys"
            )
        if self.encoding != ENCODING_JSON:
            raise NewerFile(f"an event is stored as {self.encoding!r}, which only a newer Recollect can read")
        try:
            payload: dict[str, Any] = orjson.loads(self.payload)
        except orjson.JSONDecodeError as error:
            raise ForeignFile(
                f"the payload of version {self.version} of namespace {self.namespace!r} is damaged in the log "
                f"({error}); restore the log from a backup; `recollect verify` names all damaged events"
            ) from None
        payload.pop(OFFSET_FIELD, None)
        if self.schema_version == 1 and self.type not in UPCASTERS:
            return payload
        return upcast(self.type, self.schema_version, payload)

    def as_json(self) -> dict[str, Any]:
        """Return the event in the JSON form of HTTP and exports: times in RFC 3339, the hash in hex."""
        return {
            "id": self.id,
            "namespace": self.namespace,
            "version": self.version,
            "type": self.type,
            "schema_version": newest_version(self.type),
            "occurred_at": rfc3339(self.occurred_at_us, self.utc_offset or 0),
            "recorded_at": rfc3339(self.recorded_at_us),
            "session_id": self.session_id,
            "actor": self.actor,
            "causation_id": self.causation_id,
            "correlation_id": self.correlation_id,
            "payload": self.data(),
            "hash": self.hash.hex(),
        }


class Appended(NamedTuple):
    """The result of an append, for one event."""

    id: str
    version: int
    recorded_at_us: int
    hash: bytes
    #: Whether the same event was recorded before; then the other fields are those of the recorded event.
    duplicate: bool
    #: Ids of the memories that were forgotten with the append because this message asked for it.
    forgotten: tuple[str, ...] = ()


# `RecordedEvent(...)` and the like take twice as long as these, for each event that is appended or read.
_new: Any = getattr(tuple, "__new__")  # noqa: B009 -- typed as unknown
#: Return the draft with the fields in a tuple, all of them.
make_draft: Callable[[tuple[Any, ...]], EventDraft] = partial(_new, EventDraft)
#: Return the event with the fields in a tuple.
make_recorded: Callable[[tuple[Any, ...]], RecordedEvent] = partial(_new, RecordedEvent)
#: Return the result with the fields in a tuple.
make_appended: Callable[[tuple[Any, ...]], Appended] = partial(_new, Appended)


class Head(NamedTuple):
    """A namespace's newest version and its hash; version 0 for a namespace without events."""

    namespace: str
    version: int
    hash: bytes
    #: The version of its newest erasure; 0 without one. Data that was derived before it has to be derived again.
    erasure_version: int = 0


def now_us() -> int:
    """Return the current time in microseconds since 1970 UTC."""
    return time.time_ns() // 1_000


def microseconds(moment: datetime) -> int:
    """Return `moment`, which has a time zone, in microseconds since 1970 UTC."""
    # A division by a `timedelta` takes four times as long.
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def datetime_of(us: int) -> datetime:
    """Return the time `us` microseconds after 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=us)


def rfc3339(us: int, utc_offset: int = 0) -> str:
    """Return the time as text, such as ``2026-11-20T09:00:00Z``; with microseconds only when they are not 0.

    Parameters:
        utc_offset: minutes east of UTC, in which the time is written.
    """
    if utc_offset:
        return local_time(us, fixed_zone(utc_offset)).isoformat().replace("+00:00", "Z")
    return datetime_of(us).isoformat().replace("+00:00", "Z")


def parse_offset(text: str) -> int:
    """Return the minutes east of UTC of a time in RFC 3339."""
    return offset_minutes(datetime.fromisoformat(text))


@overload
def parse_rfc3339(text: str) -> int: ...
@overload
def parse_rfc3339(text: str | None) -> int | None: ...
def parse_rfc3339(text: str | None) -> int | None:
    """Return a time in RFC 3339 in microseconds since 1970 UTC; None for None."""
    return None if text is None else microseconds(datetime.fromisoformat(text))
