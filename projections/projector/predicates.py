"""Predicates: normalises the predicates of facts, and lists those that have one value at a time."""

from __future__ import annotations

from functools import lru_cache

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.stems import content_stems

#: Spellings of one predicate in each line; facts are compared by the first spelling.
_SPELLINGS = """
lives in | resides in | is living in | live in | lived in | located in | location is | home is | moved to | is based in
works at | works for | is employed at | is employed by | work at | work for | employer is
works as | job is | occupation is | profession is | is a professional
studies at | goes to school at | attends
name is | preferred name is | is called | is named
age is | is aged | is years old
born in | was born in | birthplace is
born on | was born on | birthday is | date of birth is
married to | is married to | spouse is | husband is | wife is
engaged to | is engaged to
dating | is dating | partner is | boyfriend is | girlfriend is
status | status is | state is
uses | is using | use
email is | email address is
phone is | phone number is | number is | new number is
rent is | pays rent
diet is
height is
weight is
salary is
time zone is | timezone is
native language is | mother tongue is
due on | deadline is | is due on
version is | runs version
deployed on | is deployed on | hosted on
owned by | owner is | belongs to
led by | manager is | boss is | reports to
"""

#: Predicates with one value at a time: a new fact supersedes the old one.
_SINGLE = frozenset(line.split("|")[0].strip() for line in _SPELLINGS.strip().splitlines())

#: Favourites have one value at a time too: `favourite color is`, `favorite food is` …
_FAVOURITE = late_pattern(r"^(?:has )?favou?rite (.+?)(?: is)?$")
#: The first spelling of each spelling.
_CANONICAL = {
    spelling.strip(): line.split("|")[0].strip()
    for line in _SPELLINGS.strip().splitlines()
    for spelling in line.split("|")
}
_SEPARATORS = late_pattern(r"[\s_]+")
#: Punctuation that is removed at both ends of a text.
_EDGES = " \t\n.,;:!?\"'“”‘’()"

#: What facts are about, by canonical predicate.
_KINDS = {
    "identity": "name is|age is|born in|born on|comes from|speaks|email is|phone is|time zone is",
    "home": "lives in|lives with|rent is",
    "work": "works at|works as|studies|studies at",
    "relation": "married to|engaged to|dating|has children|has children named|has pet|has pets named",
    "health": "allergic to|intolerant to|cannot eat|cannot take|does not eat|avoids|diet is|weight is",
    "possession": "owns|drives|uses",
    "habit": "plays",
}
#: The place of a predicate within its kind: the name says who a person is before the birthday does.
_PLACE_IN_KIND = {name: place for names in _KINDS.values() for place, name in enumerate(names.split("|"))}
_KIND_OF = {predicate: kind for kind, predicates in _KINDS.items() for predicate in predicates.split("|")}


def normalised(text: str) -> str:
    """Return `text` for comparison: case folded, single spaces between words, no punctuation at its ends."""
    return _SEPARATORS.sub(" ", text.casefold()).strip(_EDGES)


@lru_cache(maxsize=4_096)
def canonical(predicate: str) -> str:
    """Return the canonical spelling of `predicate`, by which facts are compared."""
    name = normalised(predicate)
    favourite = _FAVOURITE.match(name)
    if favourite is not None:
        return f"favourite {favourite[1]} is"
    return _CANONICAL.get(name, name)


#: A number and a noun, such as `two kids` or `about 17 goats`.
_COUNTED = late_pattern(
    r"^(?:about |around |over |almost |only |still |just )?"
    r"(?:\d{1,6}|no|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)\s+"
    r"(?P<noun>[^\W\d_][\w' -]{1,40})$"
)
#: Nouns that mean the same when they are counted.
_SAME_NOUNS = {"kid": "child", "children": "child"}


def counted_noun(value: str) -> str | None:
    """Return what a normalised object such as `two kids` counts, in the singular; None: it counts nothing."""
    match = _COUNTED.match(value)
    if match is None:
        return None
    noun = match["noun"].strip()
    singular = noun.removesuffix("s") if not noun.endswith("ss") else noun
    return _SAME_NOUNS.get(singular, singular)


def attribute_stems(predicate: str) -> frozenset[str]:
    """Return the stems of a canonical predicate that names an attribute, such as `shoe size is`; none for others."""
    return content_stems(predicate.removesuffix(" is")) if predicate.endswith(" is") else frozenset()


def is_listed(predicate: str) -> bool:
    """Return whether `predicate` is one of `_SPELLINGS` or a favourite."""
    return canonical(predicate) in _SINGLE or _FAVOURITE.match(normalised(predicate)) is not None


def has_one_value(predicate: str) -> bool:
    """Return whether a canonical predicate has one value at a time, such as `shoe size is`."""
    return predicate in _SINGLE or predicate.endswith(" is")


def kind_of(predicate: str, type: str) -> str | None:
    """Return what a fact with a canonical predicate is about; None when its predicate does not say it."""
    return type if type in ("task", "decision", "event") else _KIND_OF.get(predicate)


def place_in_kind(predicate: str) -> int:
    """Return the place of a predicate among those of its kind, from 0; the last one for an unlisted predicate."""
    return _PLACE_IN_KIND.get(canonical(predicate), len(_PLACE_IN_KIND))
