"""People: reads lines of notes that list persons: `Kids: Rosie (9) and Finn (6)`, `Ed — miller, lives in Dorset`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from recollect.api.importers.imported_records import IMPORTED_CONFIDENCE
from recollect.api.importers.imported_statements import imported_fact, note, plain_text, said_of
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.name_lexicon import lists_of
from recollect.jobs.extraction.vocabulary import JOBS, PETS, PLURAL_NOUNS, RELATIONS, SHORT_RELATIONS, SUBJECT_NOUNS

#: The type and the payload of an event.
Stated = tuple[str, dict[str, Any]]

#: Headings of lists of persons.
_HEADINGS = frozenset(
    (*"people family contacts relationships relatives team kids children".split(), *(f"{noun}s" for noun in RELATIONS))
)
#: Characters of a line that may be an entry of such a list; a longer one is prose.
_LINE_CHARS_MAX = 500
#: Words of a role, such as `head of the parish council`.
_ROLE_WORDS_MAX = 6
_AGE_MAX = 120
#: What a relation may be written as, and its name.
_RELATIONS = (
    {noun: noun for noun in SUBJECT_NOUNS[: SUBJECT_NOUNS.index("landlord")]}
    | {noun: noun for noun in PETS}
    | SHORT_RELATIONS
    | {f"{noun}s": noun for noun in (*RELATIONS, *PETS)}
    | {noun: noun.removesuffix("s") for noun in PLURAL_NOUNS}
    | {"kids": "kid", "children": "child", "grandchildren": "grandchild", "grandkids": "grandkid"}
)
_NAME = r"[^\W\d_a-z][\w'’.-]{0,40}(?: [^\W\d_a-z][\w'’.-]{0,40}){0,3}"
#: `Ed Brown (62)`
_PERSON = rf"(?P<name>{_NAME})(?: ?\((?P<inside>[^()]{{1,200}})\))?"
_NAMED = late_pattern(_PERSON)
#: `Ed Brown — miller, lives in Dorset`, and `Ed: miller`
_ENTRY = late_pattern(rf"{_PERSON}(?:(?P<colon>:)| (?:[—–-]|--)) {{1,4}}(?P<details>\S.*)")
_KEYED = late_pattern(r"(?P<key>[^\W\d_][\w' -]{0,30}): {1,4}(?P<value>\S.*)")
#: Separators of persons and of details, not within parentheses.
_AND = late_pattern(r"(?: ?[,;&+]| and) (?![^()]{0,200}\))")
_PART = late_pattern(r"(?: ?[,;]| [—–]) (?![^()]{0,200}\))")


def lists_people(headings: tuple[str, ...]) -> bool:
    """Return whether a heading is of a list of persons: `People`, `Important people`, `Kate's family`."""
    return any(not _HEADINGS.isdisjoint(title.casefold().split()) for title in headings)


def stated_people(line: str, subject: str, headings: tuple[str, ...], *, is_of_user: bool) -> list[Stated]:
    """Return what an entry of a list of persons states, as entities, relationships and facts; nothing for other lines.

    Parameters:
        subject: the person whose relatives and friends they are.
        is_of_user: whether the headings of the line are about `subject`.
    """
    text = plain_text(line).removesuffix(".")
    if len(text) > _LINE_CHARS_MAX:
        return []
    is_list = lists_people(headings)
    if is_list and not lists_people(headings[-1:]) and _is_person(headings[-1]):
        # A heading for each person.
        own = [*_related(text, headings[-1])] or [*_details(headings[-1], text, subject)]
        return [*_person(headings[-1]), *own]
    related = [*_related(text, subject)] if is_of_user or is_list else []
    entry = _ENTRY.fullmatch(text)
    return related or ([] if entry is None else [*_entry(entry, subject, is_list=is_list)])


def _is_person(heading: str) -> bool:
    """Return whether a heading within a list is a name, and no common word such as `Work`."""
    return bool(_NAMED.fullmatch(heading)) and (_is_first_name(heading) or not lists_of(heading.casefold()))


def _is_first_name(name: str) -> bool:
    """Return whether a name begins with one that people have."""
    return "n" in lists_of(name.partition(" ")[0].casefold())


def _related(text: str, subject: str) -> Iterator[Stated]:
    """Yield the persons of a relation: `Partner: Ed`, `Kids: Rosie (9) and Finn (6)`; nothing when one is no name."""
    keyed = _KEYED.fullmatch(text)
    relation = None if keyed is None else _RELATIONS.get(keyed["key"].casefold())
    if keyed is None or relation is None:
        return
    persons = [_NAMED.fullmatch(part) for part in _AND.split(keyed["value"].replace(", and ", ", ")) if part]
    names = [person for person in persons if person is not None]
    if len(names) == len(persons):
        for person in names:
            yield from _introduced(person, relation, subject)
            yield from _details(person["name"], person["inside"], subject)


def _entry(entry: re.Match[str], subject: str, *, is_list: bool) -> Iterator[Stated]:
    """Yield what an entry states.

    After a colon, and outside of a list, the name has to be a first name. Outside of a list, a part has to say who
    it is.
    """
    parts = _PART.split(entry["details"])
    is_known = any(_relation(part, subject) or said_of(entry["name"], part) for part in parts)
    is_first_name = _is_first_name(entry["name"])
    if (is_first_name or not entry["colon"]) if is_list else (is_first_name and is_known):
        yield from _person(entry["name"])
        yield from _details(entry["name"], entry["inside"], subject)
        yield from _details(entry["name"], entry["details"], subject)


def _details(name: str, details: str | None, subject: str) -> Iterator[Stated]:
    """Yield what the parts of a text say of a person: relation, age, statement, role; any other part is a note."""
    has_role = False
    for part in filter(None, _PART.split(details or "")):
        relation = _relation(part, subject)
        if relation is not None:
            yield _relationship(subject, relation, name)
            continue
        fact = said_of(name, part) or _adjective(name, part)
        if fact is None and part.isdecimal() and int(part[:4]) <= _AGE_MAX:
            fact = {"subject": name, "predicate": "age is", "object": part}
        if fact is None and not has_role and len(part.split()) <= _ROLE_WORDS_MAX and not any(map(str.isdigit, part)):
            fact = {"subject": name, "predicate": "role is", "object": part}
        fact = fact or note(part, name)
        if fact is not None:
            has_role = has_role or fact["predicate"] != "age is"
            yield "fact.stated", imported_fact(fact)


def _adjective(name: str, part: str) -> dict[str, Any] | None:
    """Return the fact of a part such as `allergic to penicillin`; None for one after which `is` says no more."""
    fact = said_of(name, f"is {part}")
    return None if fact is None or fact["predicate"] == "is" else fact


def _relation(part: str, subject: str) -> str | None:
    """Return the relation of a part such as `sister`, `my older sister`; None for another part, such as `chef`."""
    words = part.casefold().split()
    is_own = bool(words) and words[0] in ("my", "user's", f"{subject.casefold()}'s")
    words = words[is_own:]
    relation = _RELATIONS.get(words[-1]) if 0 < len(words) <= 2 else None
    # `Ana — doctor` says what Ana does.
    return relation if is_own or relation not in JOBS else None


def _introduced(person: re.Match[str], relation: str, subject: str) -> Iterator[Stated]:
    yield from _person(person["name"], "animal" if relation in PETS else "person")
    yield _relationship(subject, relation, person["name"])


def _person(name: str, kind: str = "person") -> Iterator[Stated]:
    yield "entity.described", {"name": name, "type": kind, "confidence": IMPORTED_CONFIDENCE}


def _relationship(source: str, relation: str, target: str) -> Stated:
    ends = {"source": source, "type": relation, "target": target}
    return "relationship.stated", ends | {"confidence": IMPORTED_CONFIDENCE}
