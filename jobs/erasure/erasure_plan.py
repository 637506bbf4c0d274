"""Erasure plan: finds the events of a subject, a session or a message, and all events that were derived from them.

Events refer to earlier events only, so one walk along the log is enough. The plan compares HMACs of names, so that it
can be made again from the ledger, which has no names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recollect.events.backends.log import EventLog
from recollect.events.catalogue import ERASURE_TYPES
from recollect.events.encryption.erasure_ledger import Scope, pseudonym_of, retention_cutoffs
from recollect.events.encryption.key_store import KeyStore
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import NotSupported
from recollect.events.integrity.receipt import EventDigest
from recollect.events.integrity.residue import EventSample
from recollect.events.memory_kinds import STATING_EVENTS
from recollect.jobs.erasure.care_transfer import CARE_FIELDS, Care, care_of, extracted_memories
from recollect.jobs.erasure.message_copies import EPISODE_TYPES, Copies, read_copies

#: Events read at once.
_BATCH = 1_000
#: The part of a memory's id after the id of its event: `#f0` is the first fact of an extraction.
_MEMORY_SUFFIX = re.compile(r"#[a-z]\d+$")
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
    )
)
_OBSERVATION_TYPES = frozenset(("observations.recorded", "observations.reflected"))
#: Fields with one id, and fields with a list of ids.
_ID_FIELDS = ("fact_id", "superseded_by", "kept_id", "memory_id", "procedure_id", "event_id")
_LIST_FIELDS = ("source_events", "merged_ids", "memory_ids")
_OBJECT_FIELDS = ("facts", "summaries", "clusters")


@dataclass(slots=True)
class ErasurePlan:
    """The events that an erasure erases."""

    #: The head of the namespace that was read.
    head: int = 0
    versions: list[int] = field(default_factory=list[int])
    #: Number of events by type.
    by_type: Counter[str] = field(default_factory=Counter[str])
    #: Number of events that were not asked for by name, but derived from erased ones.
    derived: int = 0
    #: Care for memories that are made again.
    care: list[Care] = field(default_factory=list[Care])
    #: Some of the events, for the residue scan: decrypted ones, except for a namespace.
    sample: EventSample = field(default_factory=EventSample)
    digest: EventDigest = field(default_factory=EventDigest)

    def add(self, event: RecordedEvent, *, derived: bool) -> None:
        """Add an event, in the order of versions."""
        self.sample.add(event)
        self.versions.append(event.version)
        self.by_type[event.type] += 1
        self.derived += derived
        self.digest.add(event)

    def ranges(self) -> list[tuple[int, int]]:
        """Return the versions as ranges, both ends included."""
        ranges: list[tuple[int, int]] = []
        for version in self.versions:
            if ranges and ranges[-1][1] == version - 1:
                ranges[-1] = (ranges[-1][0], version)
            else:
                ranges.append((version, version))
        return ranges

    def as_json(self) -> dict[str, Any]:
        """Return the counts, for `dry_run`."""
        return {
            "events": len(self.versions),
            "derived": self.derived,
            "by_type": dict(sorted(self.by_type.items())),
            "head": self.head,
        }


class _Selection:
    """Decides for one event after the other whether it is erased."""

    def __init__(
        self, keys: KeyStore, namespace: str, scope: Scope, pseudonyms: Iterable[bytes], copies: Copies
    ) -> None:
        self._keys = keys
        self._namespace = namespace
        self._scope: Scope = scope
        self._pseudonyms = frozenset(pseudonyms)
        self._cutoffs = retention_cutoffs(self._pseudonyms) if scope == "retention" else {}
        self._is_named: dict[str, bool] = {}
        self._copies = copies
        self._originals = copies.originals(self._names) if scope == "message" else frozenset[str]()
        #: Ids of events that this plan erases, and the ids that earlier parts of the erasure left.
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
        #: Fingerprints of the memories that are made again, by their ids.
        self._remade: dict[str, bytes] = {}
        #: Care for them.
        self._care: list[Care] = []
        #: Pseudonyms of the care events that were undone.
        self._undone: set[bytes] = set()

    def direct(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the request names the event."""
        match self._scope:
            case "message":
                chosen = event.id in self._originals or self._names(event.id)
            case "session":
                chosen = event.session_id is not None and self._names(event.session_id)
            case "retention":
                chosen = event.recorded_at_us < self._cutoffs.get(event.type, 0)
            case _:
                chosen = self._is_of_subject(event, payload)
        if chosen:
            self._note(event, payload)
        return chosen

    def derived(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the event was derived from erased events, or refers to nothing but them."""
        chosen = self._is_derived(event, payload)
        if chosen:
            self._note(event, payload)
        return chosen

    def care(self) -> list[Care]:
        """Return the care for memories that are made again, without what was undone."""
        return [care for care in self._care if care.event not in self._undone]

    def note_erased(self, event: RecordedEvent) -> None:
        """Note an event that is erased already: what was derived from it may still be there after a kill."""
        self._left_ids.add(event.id)

    def note_unreadable(self, event: RecordedEvent) -> None:
        """Note an event whose key was destroyed."""
        self._note(event, {})

    def _names(self, name: str) -> bool:
        """Return whether the request names `name`; computed once for each name."""
        named = self._is_named.get(name)
        if named is None:
            pseudonym = pseudonym_of(self._keys, self._namespace, self._scope, name)
            named = self._is_named[name] = pseudonym in self._pseudonyms
        return named

    def _is_of_subject(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
        """Return whether the subject said the event, or a producer stated it about the subject."""
        if event.session_id in self._sessions:
            # Another person who speaks in the subject's session keeps what is theirs.
            speaker = payload.get("name") if event.type == "message.added" else None
            return speaker is None or self._names(speaker)
        match event.type:
            case "session.started" if payload.get("user_id") is not None and self._names(payload["user_id"]):
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
        return any(name is not None and self._names(name) for name in names)

    def _is_derived(self, event: RecordedEvent, payload: dict[str, Any]) -> bool:
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
        for id in (reference, _MEMORY_SUFFIX.sub("", reference)):
            if id in self._erased:
                return True
            if self._left_ids and self._keys.erased_id(self._namespace, id) in self._left_ids:
                return True
        return False

    def _note(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Keep what later events are compared with."""
        if event.type == "facts.extracted":
            self._remade.update(extracted_memories(self._keys, event, payload, self._is_gone))
        fingerprint = self._remade.get(payload.get(CARE_FIELDS.get(event.type, ""), ""))
        if fingerprint is not None:
            self._care.append(care_of(self._keys, event, payload, fingerprint))
        if event.type == "edit.undone":
            edit = self._keys.pseudonym("event", self._namespace, payload.get("event_id", ""))
            (self._undone.discard if payload.get("again") else self._undone.add)(edit)
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


def plan_erasure(log: EventLog, namespace: str, scope: Scope, pseudonyms: Iterable[bytes]) -> ErasurePlan:
    """Return the events of `namespace` that an erasure erases. Events that were erased before are left out.

    Raises:
        NotSupported: the log was opened without a key store.
    """
    if log.keys is None:
        raise NotSupported("needs the log's key store; open the log with its keys", field="log")
    if scope == "namespace":
        return _whole_plan(log, namespace)
    cipher = PayloadCipher(log.keys)
    # A walk of its own over the headers: an update and an echo are recorded after the message whose words they have.
    copies = read_copies(log, namespace, cipher)
    selection = _Selection(log.keys, namespace, scope, pseudonyms, copies)
    plan = ErasurePlan()
    while stored := log.read_stored(namespace, after=plan.head, limit=_BATCH):
        for before, event in zip(stored, cipher.open_all(stored), strict=True):
            plan.head = event.version
            if before.is_erased:
                selection.note_erased(before)
            elif event.is_erased:
                # The key of the event was destroyed: the log was restored from an older backup.
                selection.note_unreadable(before)
                plan.add(before, derived=False)
            elif event.type not in ERASURE_TYPES:
                payload = event.data()
                if selection.direct(event, payload):
                    plan.add(event, derived=False)
                elif selection.derived(event, payload):
                    plan.add(event, derived=True)
    plan.care = selection.care()
    return plan


def _whole_plan(log: EventLog, namespace: str) -> ErasurePlan:
    """Return the plan for all events of a namespace; no event is decrypted for it."""
    plan = ErasurePlan()
    while stored := log.read_stored(namespace, after=plan.head, limit=_BATCH):
        for event in stored:
            plan.head = event.version
            if not event.is_erased and event.type not in ERASURE_TYPES:
                plan.add(event, derived=False)
    return plan


def _references(payload: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of events and memories that a payload names."""
    yield from (payload[name] for name in _ID_FIELDS if isinstance(payload.get(name), str))
    for name in _LIST_FIELDS:
        yield from payload.get(name) or ()
    for name in _OBJECT_FIELDS:
        for item in payload.get(name) or ():
            yield from _references(item)
