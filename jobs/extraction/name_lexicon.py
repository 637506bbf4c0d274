"""Name lexicon: first names, short forms, places and common words, from one file of 100 kB.

`ops/train/entities --lists` builds the file from Faker, airportsdata, iso3166 (MIT) and nicknames (Apache-2.0), and from
counts of words. It is loaded with the first message.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_FILE = "name_lists.txt.xz"
#: Letters that a short form has at least, and fewer than the name: `Ann` and `Anna` are two names.
_LETTERS_MIN = 2
_SHORTER_MIN = 2
#: A short form of more names, such as `Ann` of `Nancy`, counts only when the name begins with it.
_FULL_NAMES_MAX = 3


class _Lexicon(NamedTuple):
    """The content of the file."""

    #: Letters by word: m, f, n (first names of men, women, both), p (part of a place), w (common word), c (day, opener).
    lists: dict[str, str]
    #: The names that a short form stands for.
    full_names: dict[str, frozenset[str]]


@cache
def _lexicon() -> _Lexicon:
    """Return the content of the file."""
    lexicon = _Lexicon({}, {})
    for line in lzma.decompress(files(__package__).joinpath(_FILE).read_bytes()).decode().splitlines():
        letter, entries = line[0], line[2:].split("|")
        if letter == "s":
            parts = (entry.partition(":") for entry in entries)
            lexicon.full_names.update((short, frozenset(names.split(","))) for short, _, names in parts)
            continue
        for word in {word for entry in entries for word in (entry.split() if letter == "p" else (entry,))}:
            lexicon.lists[word] = lexicon.lists.get(word, "") + letter
    return lexicon


def lists_of(word: str) -> str:
    """Return the lists that have a word in lower case: n (first name), p (part of a place), w (common word), c (day)."""
    lists = _lexicon().lists
    letters = lists.get(word)
    if letters is None:
        # `Mondays`, `dogs`
        letters = "".join(letter for letter in lists.get(word.removesuffix("s"), "") if letter in "wcn")
    return letters.replace("m", "n").replace("f", "n")


def first_names() -> set[str]:
    """Return all first names, in lower case."""
    return {word for word in _lexicon().lists if "n" in lists_of(word)}


def places() -> set[str]:
    """Return the words of places, in lower case."""
    return {word for word in _lexicon().lists if "p" in lists_of(word)}


def is_first_name(word: str) -> bool:
    """Return whether a word is a first name, or a short form of one."""
    return "n" in lists_of(word.casefold()) or word.casefold() in _lexicon().full_names


def is_short_form(short: str, name: str) -> bool:
    """Return whether a first name is a usual short form of another first name."""
    short, name = short.casefold(), name.casefold()
    if len(short) < _LETTERS_MIN or len(name) - len(short) < _SHORTER_MIN:
        return False
    full_names = _lexicon().full_names.get(short, frozenset())
    if name in full_names:
        return short[0] == name[0] or len(full_names) <= _FULL_NAMES_MAX
    return len(short) > _LETTERS_MIN and name.startswith(short) and (bool(full_names) or not is_first_name(short))


def short_forms(new: Iterable[str], people: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a person's name and its short form where either is in `new`.

    Parameters:
        people: the names of the people so far.
    """
    new = set(new)
    everyone = sorted({*new, *people})
    for name in everyone:
        first = name.split()[0]
        for short in everyone if name in new else new:
            if " " not in short and is_short_form(short, first):
                yield name, short
