"""Fact endings: matches what ends (`I quit my job`, `I sold the car`) with the facts of the same subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import apsw
import orjson
from msgspec import Struct

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern
from recollect.projections.projector.predicates import canonical, normalised
from recollect.projections.projector.stated_fact import StatedMemory, voice_of, voice_of_topic
from recollect.projections.text.stems import content_stems

#: Facts and preferences of one subject that an ending is compared with, newest first: it bounds the time of an ending.
FACTS_MAX = 2_000
#: Endings of one subject that a fact is compared with, newest first.
ENDINGS_MAX = 100
#: Share of the content words of the ending or of the object, whichever has fewer, that both must have.
SHARED_MIN = 0.7

#: The predicate of a fact such as `does not eat`.
_NEGATED = late_pattern(r"\b(?:not|never|no)\b")
#: Types of facts that end; an event or a commit is over when it is stated.
_ENDABLE_TYPES = ("fact", "decision", "problem", "task")

_ADD = """
INSERT INTO fact_endings
    (id, subject, predicates, types, about, object, kind, at_us, voice, probability, event, source_events)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_AFTER = """
SELECT key, id, subject, predicates, types, about, object, kind, at_us, voice, source_events FROM fact_endings
WHERE subject = ? AND at_us >= ? AND probability = 1 ORDER BY at_us DESC, key DESC LIMIT ?
"""
_OF_SOURCE = """
SELECT key, id, source_events FROM fact_endings
WHERE EXISTS (SELECT 1 FROM json_each(fact_endings.source_events) WHERE value = ?)
"""
_REOPEN_RELATIONSHIPS = """
UPDATE relationships SET status = 'active', ended_by = NULL
WHERE ended_by = ? AND status IN ('ended', 'invalidated')
"""
_FACTS_OF_SUBJECT = """
SELECT topic, predicate, type, value, conflict_key FROM facts
WHERE topic >= ? AND topic < ? AND status <> 'rejected' ORDER BY key DESC LIMIT ?
"""
# Preferences without a subject are the user's.
_PREFERENCES_OF_SUBJECT = """
SELECT id, name, value FROM preferences WHERE subject IN (?, '') ORDER BY key DESC LIMIT ?
"""
_RELATIONSHIPS_BEFORE = """
SELECT r.id, r.type, target.name, r.voice FROM relationships AS r
JOIN entities AS source ON source.id = r.source_id JOIN entities AS target ON target.id = r.target_id
WHERE source.name = ? COLLATE NOCASE AND r.status IN ('active', 'stale') AND r.updated_at_us <= ?
"""


class FactOfSubject(NamedTuple):
    """A fact that an ending is compared with; the fields are the columns of `_FACTS_OF_SUBJECT`."""

    topic: str
    predicate: str
    type: str
    value: str
    conflict_key: str | None


class Ending(Struct, frozen=True, kw_only=True):
    """An ending of facts of one subject."""

    id: str
    #: The subject, normalised.
    subject: str
    #: Canonical predicates of the facts that it ends; empty: all.
    predicates: tuple[str, ...]
    #: Types of the facts that it ends; empty: all.
    types: tuple[str, ...]
    #: Stems of the words that name what ends; empty: all values of the predicates.
    about: frozenset[str]
    #: The exact value that it ends, normalised; None: `about` names it.
    object: str | None
    #: end: it no longer holds. retract: it is to be forgotten.
    kind: Literal["end", "retract"]
    at_us: int
    #: Who says it, as in `voice_of`: it ends only what the same voice states.
    voice: str
    #: The events that say so.
    source_events: tuple[str, ...]
    #: That it is so. What may have ended, with less than 1, stays, and is shown with what was said later.
    probability: float = 1.0
    #: The message whose words may be wrong; None: the other fields name what may have ended.
    event: str | None = None

    @classmethod
    def from_payload(cls, id: str, payload: dict[str, Any], at_us: int) -> Ending:
        """Return the ending, or the doubt, of an item of `facts.extracted`."""
        return cls(
            id=id,
            subject=normalised(payload["subject"]),
            predicates=tuple(canonical(predicate) for predicate in payload.get("predicates", ())),
            types=tuple(payload.get("types", ())),
            about=content_stems(payload.get("about") or ""),
            object=None if payload.get("object") is None else normalised(payload["object"]),
            kind="retract" if payload.get("retracted") else "end",
            at_us=at_us,
            voice=voice_of(payload["subject"], payload.get("stated_by")),
            source_events=tuple(payload.get("source_events", ())),
            probability=payload.get("probability", 1.0),
            event=payload.get("event"),
        )

    def value_of(self, value: str) -> str | None:
        """Return the value that it ends; None: every value of the group."""
        return value if self.about or self.object is not None or self.kind == "retract" else None

    def matches(self, fact: FactOfSubject) -> bool:
        """Return whether it ends a fact of its subject."""
        if voice_of_topic(fact.topic) != self.voice:
            return False
        predicate = canonical(fact.predicate)
        if self.object is not None:
            return predicate in self.predicates and fact.value == self.object
        if self.predicates and predicate not in self.predicates:
            return False
        if fact.type not in (self.types or _ENDABLE_TYPES) and self.kind == "end":
            return False
        if not self.about:
            return bool(self.predicates)
        if not self.predicates and not self.types and self.kind == "end":
            # The fact has to name what ends: `I used to play games with my husband` ends no husband.
            return names(self.about, f"{predicate} {fact.value}") and shares_words(self.about, fact.value)
        if shares_words(self.about, fact.value):
            return True
        # `Forget my phone number` names the predicate.
        return self.kind == "retract" and shares_words(self.about, predicate)

    def spares(self, predicate: str, sources: Sequence[str]) -> bool:
        """Return whether it ends nothing of a fact that it matches, since one message states both.

        In `I quit my job. I work at Bosch now` the ending is about what was said before, in `I don't eat meat any more`
        the negated fact begins, and a statement in words, `No more Warfarin`, may be the ending itself. What the ending
        names otherwise is over: `My dog is called Rex. Rex died`.

        Parameters:
            predicate: of the fact.
            sources: the events that state the fact.
        """
        if self.object is not None:
            return False
        is_other = not self.about or canonical(predicate) == SAYS or _NEGATED.search(predicate) is not None
        return self.kind == "end" and is_other and not set(self.source_events).isdisjoint(sources)

    def ends_preference(self, name: str, value: str) -> bool:
        """Return whether it ends a preference."""
        if self.object is not None:
            return not self.predicates and not self.voice and normalised(value) == self.object
        text = f"{name} {value}"
        is_general = not self.types and not self.predicates and not self.voice
        return is_general and bool(self.about) and shares_words(self.about, text) and names(self.about, text)

    def ends_relation(self, kind: str, target: str, voice: str) -> bool:
        """Return whether it ends a relationship of its subject that `voice` states."""
        if kind not in self.predicates or voice != self.voice:
            return False
        if self.object is not None:
            return normalised(target) == self.object
        return not self.about or shares_words(self.about, target)


class FactEndings:
    """The table `fact_endings`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        #: The endings that were read, by key: the endings of a subject are compared with each of its facts.
        self._read: dict[int, Ending] = {}

    def add(self, ending: Ending) -> None:
        """Store an ending for facts that were said earlier and arrive later."""
        lists: list[Sequence[str]] = [ending.predicates, ending.types, sorted(ending.about), ending.source_events]
        *texts, sources = [orjson.dumps(list(values)).decode() for values in lists]
        self._connection.execute(
            _ADD,
            (
                *(ending.id, ending.subject, *texts, ending.object, ending.kind, ending.at_us, ending.voice),
                *(ending.probability, ending.event, sources),
            ),
        )

    def end_relationships(self, ending: Ending) -> None:
        """End the relationships that an ending speaks of."""
        status = "invalidated" if ending.kind == "retract" else "ended"
        before = (ending.subject, ending.at_us)
        relationships: list[Any] = self._connection.execute(_RELATIONSHIPS_BEFORE, before).fetchall()
        for id, kind, target, voice in relationships:
            if ending.ends_relation(kind, target, voice):
                self._connection.execute(
                    "UPDATE relationships SET status = ?, ended_by = ?, updated_at_us = ? WHERE id = ?",
                    (status, ending.id, ending.at_us, id),
                )

    def forget(self, source_id: str) -> list[str]:
        """Remove the endings that only the event `source_id` states, and return their ids.

        The relationships that they ended are active again; the caller does the same with facts and preferences.
        """
        rows: list[Any] = self._connection.execute(_OF_SOURCE, (source_id,)).fetchall()
        removed_ids = [id for _, id, sources in rows if set(orjson.loads(sources)) == {source_id}]
        for id in removed_ids:
            self._connection.execute("DELETE FROM fact_endings WHERE id = ?", (id,))
            self._connection.execute(_REOPEN_RELATIONSHIPS, (id,))
        return removed_ids

    def of_fact(self, fact: StatedMemory) -> list[Ending]:
        """Return the endings, said at the same time or later, that end a fact."""
        predicate: str = fact.payload["predicate"]
        stated = FactOfSubject(
            topic=fact.topic,
            predicate=predicate,
            type=fact.payload.get("type", "fact"),
            value=fact.value,
            conflict_key=fact.conflict_key,
        )
        return [
            ending
            for ending in self.since(fact.payload["subject"], fact.said_us)
            if ending.matches(stated) and not ending.spares(predicate, fact.sources)
        ]

    def of_preference(self, preference: StatedMemory) -> list[Ending]:
        """Return the endings, said at the same time or later, that end a preference."""
        payload = preference.payload
        endings = self.since(payload.get("subject") or "", preference.said_us)
        return [ending for ending in endings if ending.ends_preference(payload["key"], payload["value"])]

    def since(self, subject: str, at_us: int) -> list[Ending]:
        """Return the endings of a subject at or after a time, newest first."""
        rows: list[Any] = self._connection.execute(_AFTER, (normalised(subject), at_us, ENDINGS_MAX)).fetchall()
        return [self._read.get(row[0]) or self._remembered(row) for row in rows]

    def _remembered(self, row: tuple[Any, ...]) -> Ending:
        """Return the ending of a row, whose columns are those of `_AFTER`, and keep it."""
        key, id, subject, predicates, types, about, object, kind, at_us, voice, sources = row
        ending = self._read[key] = Ending(
            id=id,
            subject=subject,
            predicates=tuple(orjson.loads(predicates)),
            types=tuple(orjson.loads(types)),
            about=frozenset(orjson.loads(about)),
            object=object,
            kind=kind,
            at_us=at_us,
            voice=voice,
            source_events=tuple(orjson.loads(sources)),
        )
        return ending

    def matching_facts(self, ending: Ending) -> list[FactOfSubject]:
        """Return the facts of its subject that it ends, of any status."""
        topics = (f"{ending.subject}|", f"{ending.subject}}}", FACTS_MAX)
        rows: list[Any] = self._connection.execute(_FACTS_OF_SUBJECT, topics).fetchall()
        facts = dict.fromkeys(FactOfSubject(*row) for row in rows)
        return [fact for fact in facts if ending.matches(fact)]

    def matching_preferences(self, ending: Ending) -> list[str]:
        """Return the ids of the preferences of its subject that it ends, of any status."""
        rows: list[Any] = self._connection.execute(_PREFERENCES_OF_SUBJECT, (ending.subject, FACTS_MAX)).fetchall()
        return [id for id, name, value in rows if ending.ends_preference(name, value)]


def names(about: frozenset[str], text: str) -> bool:
    """Return whether a text has the words of an ending."""
    return len(about & content_stems(text)) >= SHARED_MIN * len(about)


def shares_words(about: frozenset[str], object: str) -> bool:
    """Return whether the words of an ending and of an object name the same thing."""
    named = content_stems(object)
    shared = len(about & named)
    return shared > 0 and shared >= SHARED_MIN * min(len(about), len(named))
