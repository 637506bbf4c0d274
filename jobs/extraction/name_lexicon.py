"""Name lexicon: first names with their gender, short forms, places and common words, from one file of 90 kB.

`ops/train/entities --lists` builds the file from Faker, airportsdata and iso3166 (MIT) and from counts of words. It is
loaded with the first message.
"""

from __future__ import annotations

import lzma
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

#: name: a first name and no common word. both: `Rose`, `Mark`. word: a common word. unknown: neither.
WordClass = Literal["name", "both", "word", "unknown"]

_LISTS = "name_lists.txt.xz"


@cache
def _lists() -> dict[str, str]:
    """Return the letters of the lists by word: m, f, n (first names), p (part of a place), w (common word)."""
    lists: dict[str, str] = {}
    for line in lzma.decompress(files(__package__).joinpath(_LISTS).read_bytes()).decode().splitlines():
        for entry in line[2:].split("|"):
            for word in entry.split() if line[0] == "p" else (entry,):
                if line[0] not in lists.get(word, ""):
                    lists[word] = lists.get(word, "") + line[0]
    return lists


def lists_of(word: str) -> str:
    """Return the lists that have a word in lower case: n (first name), p (part of a place), w (common word), c (day)."""
    lists = _lists().get(word) or _lists().get(word.removesuffix("s"), "").replace("m", "").replace("f", "").replace("p", "")
    return lists.replace("m", "n").replace("f", "n")


def word_class(word: str) -> WordClass:
    """Return whether a word is a first name, a common word, or both."""
    lists = lists_of(word.casefold())
    return "both" if "n" in lists and "w" in lists else "name" if "n" in lists else "word" if lists else "unknown"


def is_first_name(word: str) -> bool:
    """Return whether a word is a first name, or a short form of one."""
    return "n" in lists_of(word.casefold()) or bool(full_names(word))


def gender_of(name: str) -> Literal["m", "f"] | None:
    """Return whether a first name is that of men or of women; None: of both, or unknown."""
    letter = _lists().get(name.casefold(), "")[:1]
    return "m" if letter == "m" else "f" if letter == "f" else None


@lru_cache(65_536)
def full_names(short: str) -> frozenset[str]:
    """Return the English first names that a name is short for, case folded."""
    return frozenset(_nicknames().canonicals_of(short.casefold()))


@cache
def _nicknames() -> Any:
    """Return the lists of short forms."""
    return import_module("nicknames").NickNamer()


def first_names() -> set[str]:
    """Return all first names, in lower case."""
    return {word for word in _lists() if "n" in lists_of(word)}


def places() -> set[str]:
    """Return the words of places, in lower case."""
    return {word for word in _lists() if "p" in lists_of(word)}
