"""Entity extractor: names what the messages of people mention, with types and the messages that are the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from recollect.jobs.extraction.entity_names import RecognisedEntity, named_entities
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.message_kinds import is_pasted
from recollect.jobs.extraction.name_lexicon import short_forms
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.projections.text.sentence_language import language_of
from recollect.projections.text.sentences import split_sentences

#: Names of one message: more come from lists and tables, and their look-up takes time.
_NAMES_MAX = 50
#: Sentences of one message that are read, for the same reason.
_SENTENCES_MAX = 200
#: Messages that are recorded as the evidence of one name.
_SOURCES_MAX = 10
#: Evidence for the type of an entity, in hundredths, after which no more of the same type is recorded.
_ENOUGH = 300
#: People so far whose names are compared with new ones, the last mentioned first: it bounds the time of a batch.
PEOPLE_MAX = 500
#: Confidence in a short form, which holds when no other person's name has it.
_SHORT_FORM_CONFIDENCE = 0.8


class KnownEntities(Protocol):
    """The entities so far, as queries return them."""

    def type_evidence(self, names: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
        """Return the evidence for types by case-folded name and by type, in hundredths."""
        ...

    def people(self, limit: int) -> list[str]:
        """Return the names of the people, the last mentioned first."""
        ...


def extract_entities(messages: Sequence[IncomingMessage], known_entities: KnownEntities) -> list[ExtractedItem]:
    """Return an item for each name and type that the messages of people give evidence for, and for each short form.

    Names whose type is known well enough are left out, so that a conversation about one person does not fill the log.
    """
    mentions = _Mentions()
    for message in messages:
        if not message.is_assistant and not is_pasted(message.text):
            for number, entity in islice(_names(message.text), _NAMES_MAX):
                mentions.add(entity, message.event_id, number)
    before = known_entities.type_evidence({name for name, _ in mentions.entities})
    items = [
        _item(entity, mentions.sources[name, type])
        for (name, type), entity in mentions.entities.items()
        if before.get(name, {}).get(type, 0) < _ENOUGH
    ]
    # A person is new until the type has evidence: pairs of older names were compared before.
    new = [entity.name for entity in mentions.people() if "person" not in before.get(entity.name.casefold(), {})]
    pairs = short_forms(new, known_entities.people(PEOPLE_MAX)) if new else ()
    return [*items, *(mentions.short_form(name, short) for name, short in pairs if not mentions.apart(name, short))]


class _Mentions:
    """The names in a batch of messages."""

    def __init__(self) -> None:
        #: The mention with the most confidence, by case-folded name and type.
        self.entities: dict[tuple[str, str], RecognisedEntity] = {}
        #: Ids of the messages.
        self.sources: dict[tuple[str, str], list[str]] = {}
        self._sentences: dict[str, set[tuple[str, int]]] = {}

    def add(self, entity: RecognisedEntity, event_id: str, sentence: int) -> None:
        """Add a name in a sentence of a message."""
        name = entity.name.casefold()
        key = name, entity.type
        best = self.entities.setdefault(key, entity)
        self.entities[key] = max(best, entity, key=lambda entity: entity.confidence)
        self.sources.setdefault(key, []).append(event_id)
        self._sentences.setdefault(name, set()).add((event_id, sentence))

    def people(self) -> list[RecognisedEntity]:
        """Return the people."""
        return [entity for (_, type), entity in self.entities.items() if type == "person"]

    def apart(self, first: str, second: str) -> bool:
        """Return whether a sentence names both, who are two people then: `Beth and Elizabeth`."""
        sentences_of = self._sentences.get
        return not sentences_of(first.casefold(), set()).isdisjoint(sentences_of(second.casefold(), set()))

    def short_form(self, name: str, short: str) -> ExtractedItem:
        """Return a person with a short form of the name."""
        keys = ((name.casefold(), "person"), (short.casefold(), "person"))
        sources = [id for key in keys for id in self.sources.get(key, ())]
        entity = RecognisedEntity(name, "person", _SHORT_FORM_CONFIDENCE)
        return _item(entity, sources, aliases=[short])


def _item(entity: RecognisedEntity, sources: Sequence[str], **fields: Any) -> ExtractedItem:
    """Return an entity as an item of `facts.extracted`."""
    names = {"name": entity.name, "type": entity.type, "confidence": entity.confidence}
    return ExtractedItem("entities", {**names, **fields, "source_events": list(dict.fromkeys(sources))[:_SOURCES_MAX]})


def names_of(text: str) -> dict[str, str]:
    """Return the names of a message whose types are sure, with the types."""
    return {entity.name: entity.type for _, entity in _names(text)}


def _names(text: str) -> Iterator[tuple[int, RecognisedEntity]]:
    """Yield the names of a message whose types are sure, each with the number of its sentence."""
    text = excerpt(text)
    language = language_of(text) or ""
    before = ""
    for number, sentence in enumerate(split_sentences(text)[:_SENTENCES_MAX]):
        for entity in named_entities(sentence, before=before, language=language):
            if entity.type != "other":
                yield number, entity
        before = sentence
