"""Event selection: decides which events a request erases: those that it names, and what was derived from them.

It knows events and how they refer to each other. How names are compared is up to its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.encryption.erasure_ledger import Scope
from recollect.events.envelope import RecordedEvent
from recollect.events.late_pattern import late_pattern
from recollect.events.memory_kinds import STATING_EVENTS
from recollect.jobs.erasure.edit_transfer import EDITED_ID_FIELDS, MemoryEdit, extracted_memories
from recollect.jobs.erasure.message_copies import EPISODE_TYPES, Copies

#: The part of a memory's id after the id of its event: `#f0` is the first fact of an extraction.
_MEMORY_SUFFIX = late_pattern(r"#[a-z]\d+$")
#: Events whose content a language model or the rules may have used as the context of later extractions.
_KNOWLEDGE_TYPES = frozenset((*STATING_EVENTS, "fact.corrected"))
#: Derived events that are erased when any of their sources is.
_SUMMARY_TYPES = frozenset(
    (
        "episodes.compressed",
        "episode.distilled",
        "conversation.compacted",
        "day.digested",
        "turns.summarised",
        "memories.merged",
        "memories.clustered",
        "fact.superseded",
        "memory.status_changed",
        "facts.decayed",
        "answer.given",
    )
)
_OBSERVATION_TYPES = frozenset(("observations.recorded", "observations.reflected"))
#: Fields with one id, and fields with a list of ids.
_ID_FIELDS = ("fact_id", "superseded_by", "kept_id", "memory_id", "procedure_id", "event_id")
_LIST_FIELDS = ("source_events", "merged_ids", "memory_ids")
_OBJECT_FIELDS = ("facts", "summaries", "clusters")


class Selection:
    """Decides for one event after the other, in the order of versions, whether it is erased.

    Parameters:
        is_named: returns whether the request names a subject, a session or an event.
        erased_id: returns the id under which an erased event stays known.
        cutoffs: by type, the time before which events are erased; for retention.
        copies: the copies of messages in the namespace.
    """

    def __init__(
        self,
        scope: Scope,
        is_named: Callable[[str], bool],
        erased_id: Callable[[str], str],
        cutoffs: Mapping[str, int],
        copies: Copies,
    ) -> None:
        self._scope: Scope = scope
        self._is_named = is_named
        self._erased_id = erased_id
        self._cutoffs = cutoffs
        self._copies = copies
        self._originals = copies.originals(is_named) if scope == "message" else frozenset[str]()
        #: Ids of the selected events, and the ids of events that were erased before.
        self._erased: set[str] = set()
        self._left_ids: set[str] = set()
        #: Sources of erased summaries that stay: they have to be summarised again, so they must not be expired.
        self._revived: set[str] = set()
        #: Sessions of the subject, and sessions with an erased episode.
        self._sessions: set[str] = set()
        self._touched: set[str] = set()
        #: Whether later extractions are erased, since they read their messages after erased events.
        self._resets_extraction = False
        self._reset_observations: set[str | None] = set()
        #: Contents of the memories that are made again, by their ids.
        self._remade: dict[str, str] = {}
        #: Edits of them, and the ids of the edits that were undone.
        self._edits: list[MemoryEdit] = []
        self._undone: set[str] = set()

    def choose(self, stored: RecordedEvent, event: RecordedEvent) -> Literal["named", "derived"] | None:
        """Return whether the request names the event or it was derived from erased ones; None when it stays.

        Parameters:
            event: the decrypted event; for a namespace the stored one.
        """
        if stored.is_erased:
            # What was derived from it may still be there after a kill.
            self._left_ids.add(stored.id)
            return None
        if event.is_erased:
            # The key of the event was destroyed: the log was restored from an older backup.
            self._note(stored, {})
            return "named"
        if event.type in ERASURE_TYPES:
            return None
        if self._scope == "namespace":
            return "named"
        payload = event.data()
        is_named = self._is_requested(event, payload)
        if not is_named and not self._is_derived(event, payload):
            return None
        self._note(event, payload)
        return "named" if is_named else "derived"

    def edits(self) -> tuple[MemoryEdit, ...]:
        """Return the edits of memories that are made again, without what was undone."""
        return tuple(edit for edit in self._edits if edit.event.id not in self._undone)

    def _is_requested(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the request names the event."""
        match self._scope:
            case "message":
                return event.id in self._originals or self._is_named(event.id)
            case "session":
                return event.session_id is not None and self._is_named(event.session_id)
            case "retention":
                return event.recorded_at_us < self._cutoffs.get(event.type, 0)
            case _:
                return self._is_of_subject(event, payload)

    def _is_of_subject(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the subject said the event, or a producer stated it about the subject."""
        if event.session_id in self._sessions:
            # Another person who speaks in the subject's session keeps what is theirs.
            speaker = payload.get("name") if event.type == "message.added" else None
            return speaker is None or self._is_named(speaker)
        match event.type:
            case "session.started" if payload.get("user_id") is not None and self._is_named(payload["user_id"]):
                self._sessions.add(event.session_id or "")
                return True
            case "message.added":
                turns: list[dict[str, Any]] = payload.get("turns") or []
                names = [payload.get("name") or event.actor, *(turn.get("name") for turn in turns)]
            case "fact.stated" | "fact.corrected" | "preference.stated":
                names = [event.actor, payload.get("subject")]
            case "entity.described":
                names = [event.actor, payload["name"], *payload.get("aliases", ())]
            case "relationship.stated":
                names = [event.actor, payload["source"], payload["target"]]
            case _:
                names = [event.actor]
        return any(name is not None and self._is_named(name) for name in names)

    def _is_derived(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the event was derived from erased events, or refers to nothing but them."""
        kind = event.type
        # A memory that is extracted again is not gone.
        repeated = (id for id in self._copies.repeated_by(event.id) if id not in self._remade)
        if any(map(self._is_gone, repeated)):
            return True
        gone = [self._is_gone(reference) for reference in _references(payload)]
        if kind == "facts.extracted" and self._scope == "retention":
            # Each night would extract everything again. Knowledge goes with the last message of its extraction.
            return bool(gone) and all(gone)
        if kind == "facts.extracted":
            return self._resets_extraction or any(gone)
        if kind in _SUMMARY_TYPES:
            return any(gone)
        if kind in _OBSERVATION_TYPES:
            return event.session_id in self._reset_observations or any(gone)
        if kind == "episodes.expired":
            ids: list[str] = payload["episode_ids"]
            return all(map(self._is_gone, ids)) or not self._revived.isdisjoint(ids)
        if kind == "session.ended":
            # The producer's summary may quote an erased message.
            return payload.get("summary") is not None and event.session_id in self._touched
        corrected: str | None = payload.get("corrects")
        if corrected is not None and corrected not in self._remade and self._is_gone(corrected):
            return True
        # A producer derived the event from its sources; a reference to memories alone goes with the last of them.
        return any(gone) if "source_events" in payload else bool(gone) and all(gone)

    def _is_gone(self, reference: str) -> bool:
        """Return whether an id is that of an erased event, or of a memory from an erased event."""
        ids = (reference, _MEMORY_SUFFIX.sub("", reference))
        if any(id in self._erased for id in ids):
            return True
        return bool(self._left_ids) and any(self._erased_id(id) in self._left_ids for id in ids)

    def _note(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Keep what later events are compared with."""
        if event.type == "facts.extracted":
            self._remade.update(extracted_memories(event.id, payload, self._is_gone))
        memory = self._remade.get(payload.get(EDITED_ID_FIELDS.get(event.type, ""), ""))
        if memory is not None:
            self._edits.append(MemoryEdit(event, memory))
        if event.type == "edit.undone":
            (self._undone.discard if payload.get("again") else self._undone.add)(payload.get("event_id", ""))
        self._erased.add(event.id)
        if event.type in EPISODE_TYPES and event.session_id is not None:
            self._touched.add(event.session_id)
        # What is known, who takes part, and what was said last change how the messages after it are read.
        if event.type in EPISODE_TYPES or event.type in _KNOWLEDGE_TYPES:
            self._resets_extraction = True
        if event.type in _OBSERVATION_TYPES:
            self._reset_observations.add(event.session_id)
        if event.type in _SUMMARY_TYPES:
            self._revived.update(payload.get("source_events", ()))


def _references(payload: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of events and memories that a payload names."""
    yield from (payload[name] for name in _ID_FIELDS if isinstance(payload.get(name), str))
    for name in _LIST_FIELDS:
        yield from payload.get(name) or ()
    for name in _OBJECT_FIELDS:
        for item in payload.get(name) or ():
            yield from _references(item)
