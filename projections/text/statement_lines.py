"""Statement lines: writes facts, preferences and relationships as a person would: `Ann adopted a greyhound`.

What people say of themselves is kept in their words, "adopted a greyhound for my son"; a line speaks about them.
"""

from __future__ import annotations

import re

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern

#: Predicates after `is` or `was`.
_AFTER_IS = late_pattern(r"^(?:allergic|married|engaged|related|interested|afraid|dating|vegan|vegetarian)\b")
_AFTER_WAS = late_pattern(r"^born\b")
#: Predicates of the extraction and of imports that a colon follows.
_BEFORE_COLON = {"decided": "decided", "has problem": "has a problem"}
#: Values of preferences that are verbs.
_VERBS = frozenset(("likes", "dislikes", "prefers", "loves", "hates", "wants", "avoids", "enjoys", "needs"))
_DETERMINERS = frozenset("a an the two three four five six seven eight nine ten several some many no".split())
#: Words of the first person, and those that speak about the person.
_THIRD_PERSON = {
    "i am": "they are",
    "i'm": "they're",
    "i was": "they were",
    "am": "are",
    "i": "they",
    "we": "they",
    "me": "them",
    "us": "them",
    "my": "their",
    "our": "their",
    "mine": "theirs",
    "ours": "theirs",
    "myself": "themselves",
    "ourselves": "themselves",
}
#: "us" in capitals is a country.
_FIRST_PERSON = late_pattern(
    r"\b(?-i:(?!US\b))(?:" + "|".join(sorted(_THIRD_PERSON, key=len, reverse=True)) + r")(?![\w'’-])", re.IGNORECASE
)
#: A number at the end of a text: the hour before `AM`.
_NUMBER_BEFORE = late_pattern(r"\d\s?$")
#: What follows a pronoun: a word in lower case.
_CLAUSE_AFTER = late_pattern(r"['’]|\s{1,3}[a-z]")


def fact_line(subject: str, predicate: str, object: str) -> str:
    """Return a fact as a sentence without its end sign."""
    reported = _reported(object)
    if predicate == SAYS:
        return f"{subject} said: {object}"
    if predicate == "did":
        return f"{subject} {reported}"
    if predicate == "note":
        return f"note about {subject}: {reported}"
    if predicate == "has children":
        return f"{subject} has {reported}"
    if predicate == "has pet":
        return f"{subject} has {_with_article(reported)}"
    if predicate in _BEFORE_COLON:
        return f"{subject} {_BEFORE_COLON[predicate]}: {reported}"
    if predicate.endswith(" is"):
        return f"{subject}'s {predicate} {object}"
    if _AFTER_IS.match(predicate):
        return f"{subject} is {predicate} {reported}"
    if _AFTER_WAS.match(predicate):
        return f"{subject} was {predicate} {reported}"
    return f"{subject} {predicate} {reported}"


def _with_article(object: str) -> str:
    """Return what a person has with an article, when it begins with an English noun that has none."""
    first = object.partition(" ")[0]
    has_none = first.isascii() and first.islower() and not first.endswith("s") and first not in _DETERMINERS
    return f"{'an' if first[0] in 'aeiou' else 'a'} {object}" if has_none else object


def preference_line(subject: str, category: str, name: str, value: str) -> str:
    """Return a preference: `Ann likes green tea`, or `communication.tone: short` for one with a value of its own.

    One that is known by its words alone is `communication: No emojis`.

    Parameters:
        subject: whose it is, in lower case; empty for the user.
    """
    verb = value.rpartition(" ")[2]
    if name == value:
        return f"{category}: {value}"
    if verb not in _VERBS:
        return f"{category}.{name}: {value}"
    reported = _reported(name)
    if value != verb:
        # The value begins with a name, such as `Ann's sister likes`.
        return f"{value} {reported}"
    return f"{displayed_name(subject)} {verb} {reported}"


def relationship_line(source: str, type: str, target: str) -> str:
    """Return a relationship: `Ann's boss is Tom`, `Ann owns Rex`."""
    is_noun = type.isalpha() and type.islower() and (type.endswith("ss") or not type.endswith(("s", "ed")))
    return f"{source}'s {type} is {target}" if is_noun else f"{source} {type} {target}"


def _reported(text: str) -> str:
    """Return a text in the first person as it is said about the person."""
    return _FIRST_PERSON.sub(_in_third_person, text)


def _in_third_person(match: re.Match[str]) -> str:
    """Return the third person of a pronoun; `10 AM` and the number of `Book I` stay."""
    word = match.group()
    is_time = word.lower() == "am" and _NUMBER_BEFORE.search(match.string, 0, match.start()) is not None
    is_number = word == "I" and _CLAUSE_AFTER.match(match.string, match.end()) is None
    return word if is_time or is_number else _THIRD_PERSON[word.lower()]


def displayed_name(subject: str) -> str:
    """Return the name of a subject in lower case with capitals; `user` for the user."""
    if not subject or subject.startswith("user"):
        return subject or "user"
    return " ".join(word[:1].upper() + word[1:] for word in subject.split(" "))
