"""Entity extractor: names what the messages of people mention, with types and the messages that are the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from recollect.jobs.extraction.entity_names import NamedEntity, named_entities
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.name_lexicon import is_first_name, is_place, word_class
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.extraction.sentences import Sentence, sentences
from recollect.jobs.extraction.standing_instructions import is_pasted
from recollect.projections.text.segments import is_german
from recollect.projections.text.words import WORD

#: Names of one message: more come from lists and tables, and their look-up takes time.
_NAMES_MAX = 50
#: Sentences of one message that are read, for the same reason.
_SENTENCES_MAX = 200
#: Messages that are recorded as the evidence of one name.
_SOURCES_MAX = 10
#: Evidence for the type of an entity, in hundredths, after which no more of the same type is recorded.
_ENOUGH = 300
#: Returns the evidence for the types of entities so far, by case-folded name and type, in hundredths.
EvidenceReader = Callable[[Iterable[str]], Mapping[str, Mapping[str, int]]]


def extract_entities(messages: Sequence[IncomingMessage], evidence: EvidenceReader) -> list[ExtractedItem]:
    """Return an item for each name and type that the messages of people give evidence for.

    Names whose type is known well enough are left out, so that a conversation about one person does not fill the log.
    """
    entities: dict[tuple[str, str], NamedEntity] = {}
    sources: dict[tuple[str, str], list[str]] = {}
    for message in messages:
        if message.is_assistant or is_pasted(message.text):
            continue
        for entity in islice(_names(message.text), _NAMES_MAX):
            key = entity.name.casefold(), entity.type
            best = entities.setdefault(key, entity)
            entities[key] = max(best, entity, key=lambda entity: entity.confidence)
            sources.setdefault(key, []).append(message.event_id)
    before = evidence({name for name, _ in entities})
    return [
        ExtractedItem(
            "entities",
            {
                "name": entity.name,
                "type": entity.type,
                "confidence": entity.confidence,
                "source_events": list(dict.fromkeys(sources[name, type]))[:_SOURCES_MAX],
            },
        )
        for (name, type), entity in entities.items()
        if before.get(name, {}).get(type, 0) < _ENOUGH
    ]


def _names(text: str) -> Iterator[NamedEntity]:
    """Yield the names of a message whose type has evidence."""
    text = excerpt(text)
    language = "de" if is_german(WORD.findall(text.lower())) else "en"
    is_lower = text == text.lower()
    for sentence in sentences(text)[:_SENTENCES_MAX]:
        words = _capitalised(sentence) if is_lower else sentence.text
        for entity in named_entities(words, language):
            if entity.type != "other":
                yield entity


def _capitalised(sentence: Sentence) -> str:
    """Return a sentence of a message without capitals, with capitals for its names, when they can be nothing else."""
    words = sentence.text.split(" ")
    return " ".join(
        word.capitalize() if _is_plain_name(word.strip(",;:()\"'").removesuffix("'s")) else word for word in words
    )


def _is_plain_name(word: str) -> bool:
    """Return whether a word in lower case is a first name or a place, and no word of the language."""
    return word.isalpha() and len(word) > 2 and (is_first_name(word) or is_place(word)) and word_class(word) == "name"
