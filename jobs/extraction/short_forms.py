"""Short forms: tells whether a first name is a short form of another one, such as `Jon` of `Jonathan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recollect.jobs.extraction.name_lexicon import full_names, is_first_name

#: Letters that a short form has at least, and fewer than the name: `Ann` and `Anna` are two names.
_LETTERS_MIN = 2
_SHORTER_MIN = 2
#: A short form of more names, such as `Ann` of `Nancy`, counts only when the name begins with it.
_CANONICALS_MAX = 3


def is_short_form(short: str, name: str) -> bool:
    """Return whether a first name is a usual short form of another first name."""
    short, name = short.casefold(), name.casefold()
    if len(short) < _LETTERS_MIN or len(name) - len(short) < _SHORTER_MIN:
        return False
    canonicals = full_names(short)
    if name in canonicals:
        return short[0] == name[0] or len(canonicals) <= _CANONICALS_MAX
    return len(short) > _LETTERS_MIN and name.startswith(short) and (bool(canonicals) or not is_first_name(short))


def short_forms(new: Iterable[str], people: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a person's name and a short form of it, of which one is in `new`.

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
