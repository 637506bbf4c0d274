"""Message copies: finds messages that were recorded again with other text, and messages that repeat recalled memories.

An update records a message again, caused by the old one and with its time; so does a request to forget, for the rest of
its message. A message that repeats what was recalled gets the status `echo`. All hold words of the first message, so
they are erased with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from recollect.events.backends.log import EventLog, each_page
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.envelope import RecordedEvent
from recollect.jobs.derivation.event_drafts import rest_id

_BATCH = 5_000
#: Types of events that people and agents say or do; each is one episode.
EPISODE_TYPES = frozenset(("message.added", "action.recorded", "observation.recorded"))
#: The beginning of the reason of the status `echo`; the ids of the repeated memories follow.
_REPEATS = "repeats "


class Copies(Struct, frozen=True, kw_only=True):
    """The copies of messages in one namespace."""

    #: The id of the old message, by that of the updated one.
    updates: Mapping[str, str]
    #: The ids of the repeated memories, by the id of the message that repeats them.
    echoes: Mapping[str, Sequence[str]]

    def repeated_by(self, event_id: str) -> list[str]:
        """Return the ids of the memories whose words an event has."""
        old = self.updates.get(event_id)
        return [*self.echoes.get(event_id, ()), *([] if old is None else [old])]

    def originals(self, is_named: Callable[[str], bool]) -> frozenset[str]:
        """Return the ids of all messages that the named ones are updates of."""
        originals: set[str] = set()
        for event_id in self.updates:
            if is_named(event_id):
                old = self.updates.get(event_id)
                while old is not None and old not in originals:
                    originals.add(old)
                    old = self.updates.get(old)
        return frozenset(originals)


def read_copies(log: EventLog, namespace: str, cipher: PayloadCipher) -> Copies:
    """Return the copies of messages in the log; it decrypts changes of status only."""
    updates: dict[str, str] = {}
    echoes: dict[str, list[str]] = {}
    #: (time of recording, hash of the header that an update keeps), by id: 150 bytes a message.
    headers: dict[str, tuple[int, int]] = {}
    for events in each_page(log.read_stored, namespace, limit=_BATCH):
        changes: list[RecordedEvent] = []
        for event in events:
            if event.type in EPISODE_TYPES:
                kept = (event.type, event.occurred_at_us, event.session_id, event.actor, event.correlation_id)
                headers[event.id] = event.recorded_at_us, hash(kept)
                old_us, old_hash = headers.get(event.causation_id or "", (event.recorded_at_us, 0))
                # An answer to a message has a time of its own, or is recorded with it.
                is_update = old_us < event.recorded_at_us and old_hash == hash(kept)
                if event.causation_id is not None and (is_update or event.id == rest_id(event.causation_id)):
                    updates[event.id] = event.causation_id
            elif event.type == "memory.status_changed":
                changes.append(event)
        for change in cipher.open_all(changes):
            payload = change.data()
            reason: str = payload.get("reason") or ""
            if payload.get("status") == "echo" and reason.startswith(_REPEATS):
                echoes[payload["memory_id"]] = [*reason.removeprefix(_REPEATS).split(", ")]
    return Copies(updates=updates, echoes=echoes)
