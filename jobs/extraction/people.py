"""People: finds the people that a sentence introduces, and their relation to the speaker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.entity_names import named_entities
from recollect.jobs.extraction.statement_modality import stated_part
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import stem

#: An item of `facts.extracted` without its source: its field, and its payload.
PersonItem = tuple[str, dict[str, Any]]

#: Confidence in the type and the relation of a person that is introduced.
_CONFIDENCE = 0.95
_RELATION_CONFIDENCE = 0.9
#: A name, in lower case, too, as people type it.
_NAME = r"[^\W\d_][\w'-]{1,40}(?: [A-ZÀ-Þ][\w'-]{1,40}){0,2}"
_RELATIONS = "|".join((*vocabulary.RELATIONS, *vocabulary.SHORT_RELATIONS))
_RELATION = (
    rf"(?:(?:younger|older|little|big|best|old|new|twin|late|dear|eldest|youngest|oldest)\s)?(?P<relation>{_RELATIONS})"
)
_ANY_RELATION = late_pattern(rf"\b(?:{_RELATIONS})\b")
_TITLE = r"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.?\s)?"
#: Whose relation it is: the speaker's, or a person's with a name.
_WHOSE = r"(?P<whose>\b[Mm]y|\b[Oo]ur|\b[A-ZÀ-Þ][\w-]{1,40}'s)"
#: A person introduced by a relation: `my older sister Anna`, `my boss is called Tom`, `Anna's husband Tom`.
_NAMED = late_pattern(
    rf"{_WHOSE}\s{_RELATION}(?:'s name is|(?:,| is)? named|(?:,| is)? called|,| is)?\s{_TITLE}(?P<name>{_NAME})"
)
#: A person with the relation after the name: `Anna is my sister`, `Wendy, my mom, …`.
_NAMED_BEFORE = late_pattern(rf"(?<![\w'-])(?P<name>{_NAME})(?:,| is| was)\s{_WHOSE}\s{_RELATION}(?![\w'-])")
#: What follows the next element of a list.
_OF_LIST = late_pattern(r"(?:,? and\b|, [\w' ]{1,30} and\b)")


def people(speaker: str, text: str) -> Iterator[PersonItem]:
    """Yield entities and relationships for the people that a sentence introduces."""
    # Most sentences name no relation; this look is ten times as fast as the patterns.
    if _ANY_RELATION.search(text) is None:
        return
    names = {
        entity.name.split()[0].casefold(): entity.name for entity in named_entities(text) if entity.type == "person"
    }
    for pattern in (_NAMED, _NAMED_BEFORE):
        for match in pattern.finditer(text):
            explicit = "name" in match.group() or "called" in match.group()
            name = _person_name(match["name"], names, explicit=explicit)
            if name is not None and match.start() < len(stated_part(text)):
                relation = match["relation"].casefold()
                if _OF_LIST.match(text, match.end()) and "," in match.group():
                    # `My girlfriend, Toby and I` are three.
                    continue
                yield from _introduced(
                    speaker, match["whose"], vocabulary.SHORT_RELATIONS.get(relation, relation), name
                )


def is_namesake(speaker: str, relation: str, name: str, before: Iterable[PriorStatement]) -> bool:
    """Return whether a speaker knows another person of this name: `my friend Tom` before `my brother Tom`."""
    relations = {
        prior.predicate
        for prior in before
        if prior.kind == "relation" and prior.subject == speaker and prior.object.casefold() == name.casefold()
    }
    is_same = stem(relation) in map(stem, relations)
    return bool(relations) and not is_same and not vocabulary.RELATIVES.isdisjoint({relation, *relations})


def _introduced(speaker: str, whose: str, relation: str, name: str) -> Iterator[PersonItem]:
    """Yield a person and the relationship to the speaker, or to the person that `whose` names."""
    other = speaker if whose.casefold() in ("my", "our") else whose.removesuffix("'s")
    if other in vocabulary.NOT_NAMES or other.casefold() == name.casefold():
        return
    # Whose sister a person is, others say as well: only the relation says who states it.
    yield _entity(name, description=f"{other}'s {relation}") if other == speaker else _entity(name)
    yield "relationships", {"source": other, "type": relation, "target": name, "confidence": _RELATION_CONFIDENCE}


def _entity(name: str, **fields: Any) -> PersonItem:
    """Return a person as an item."""
    return "entities", {"name": name, "type": "person", "confidence": _CONFIDENCE, **fields}


def _person_name(text: str, names: dict[str, str], *, explicit: bool) -> str | None:
    """Return a matched text as a name, with capitals; None when it is not a name.

    Parameters:
        names: the people that the sentence names, by their first words in lower case.
        explicit: whether the sentence says that it is a name: `is called`.
    """
    first = text.split(maxsplit=1)[0].removesuffix("'s")
    if first.capitalize() in vocabulary.NOT_NAMES:
        return None
    return names.get(first.casefold()) or (first[0].upper() + first[1:] if explicit else None)
