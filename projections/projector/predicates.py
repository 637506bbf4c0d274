"""What a predicate says about its objects: whether there is one at a time. Read it, extend it."""

from __future__ import annotations

import re

#: Spellings of the same predicate; the first one of a line is how facts are compared.
_SPELLINGS = """
lives in | resides in | is living in | live in | lived in | located in | home is | moved to | is based in
works at | works for | is employed at | is employed by | work at | work for | employer is
works as | job is | occupation is | profession is | is a professional
studies at | goes to school at | attends
name is | is called | is named
age is | is aged | is years old
born in | was born in | birthplace is
born on | was born on | birthday is | date of birth is
married to | is married to | spouse is | husband is | wife is
engaged to | is engaged to
dating | is dating | partner is | boyfriend is | girlfriend is
status | status is | state is
uses | is using | use
email is | email address is
phone is | phone number is
time zone is | timezone is
native language is | mother tongue is
due on | deadline is | is due on
version is | runs version
deployed on | is deployed on | hosted on
owned by | owner is | belongs to
led by | manager is | boss is | reports to
"""

#: Predicates that have one value at a time: a new one ends the old one.
_SINGLE = frozenset(line.split("|")[0].strip() for line in _SPELLINGS.strip().splitlines())

#: Any favourite is one at a time: `favourite color is`, `favorite food is` …
_FAVOURITE = re.compile(r"^(?:has )?favou?rite (.+?)(?: is)?$")
_CANONICAL = {
    spelling.strip(): line.split("|")[0].strip()
    for line in _SPELLINGS.strip().splitlines()
    for spelling in line.split("|")
}
_SPACES = re.compile(r"[\s_]+")
_EDGES = " \t\n.,;:!?\"'“”‘’()"


def normalised(text: str) -> str:
    """Return `text` as it is compared: case folded, one space between words, no signs at its ends."""
    return _SPACES.sub(" ", text.casefold()).strip(_EDGES)


def canonical(predicate: str) -> str:
    """Return the predicate that facts are compared by."""
    name = normalised(predicate)
    favourite = _FAVOURITE.match(name)
    if favourite is not None:
        return f"favourite {favourite[1]} is"
    return _CANONICAL.get(name, name)


def has_one_value(predicate: str) -> bool:
    """Tell whether a canonical predicate has one value at a time."""
    return predicate in _SINGLE or predicate.startswith("favourite ")
