"""Clause features: the words, forms and surroundings of a clause, as numbers for the trained reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from zlib import crc32

#: Rows of the weights of words; those of pieces of words follow, so that no word shares its row with a piece.
WORD_ROWS = 1 << 15
#: Rows of the reader's weights.
BUCKETS = 2 * WORD_ROWS
#: Words of a clause that are read; a longer one is a list.
_WORDS_MAX = 60
#: Characters of a word that is read in pieces, too, and of its part that is.
_PIECED_CHARS_MIN = 4
_PIECED_CHARS_MAX = 40
_TOKEN = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")
#: The hashes of the beginnings of features.
_OF_WORD, _OF_PAIR, _OF_THREE = (crc32(f"{size} ".encode()) for size in (1, 2, 3))
_PLACES = tuple(crc32(f"at{place} ".encode()) for place in range(3))
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FIRST_PERSON = frozenset(("I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve"))


def clause_features(text: str, before: str, after: str, *, to_assistant: bool) -> list[int]:
    """Return the rows of the weights that the features of a clause select.

    Parameters:
        before: the rest of the sentence before the clause.
        after: the rest of the sentence after it.
        to_assistant: whether an assistant takes part in the conversation.
    """
    said = _tokens(text)
    words = [_form(word) for word in said]
    forms = [*map(_encoded, words)]
    to = "assistant" if to_assistant else "person"
    capitals = sum(word[0].isupper() and word not in _FIRST_PERSON for word in said[1:])
    last = words[-1] if words and not words[-1][0].isalnum() else ""
    hashes = [
        *_of_neighbours(forms),
        *(crc32(word, hashed) for word, hashed in zip(forms, _PLACES, strict=False)),
        *(crc32(word, _hash(f"to {to} ")) for word in forms[:2]),
        _hash(f"to {to}"),
        _hash(f"words {min(len(words), 24) // 3}"),
        _hash(f"capitals {min(capitals, 3)}"),
        _hash(f"ends {last}"),
        _hash(f"whole {not before and not after}"),
        _hash(f"asks after {after.rstrip().endswith('?')}"),
        *(_of_rest(before, "earlier ", "before ", slice(-2, None)) if before else ()),
        *(_of_rest(after, "later ", "after ", slice(2)) if after else ()),
    ]
    rows = {value % WORD_ROWS for value in hashes}
    rows.update(*map(_piece_rows, words))
    return list(rows)


# A hash continues that of the preceding words, so that no text is concatenated.
def _of_neighbours(forms: Sequence[bytes]) -> Iterator[int]:
    """Yield the hashes of one to three neighbouring words: those of `1 a`, `2 a b` and `3 a b c`."""
    line = [b"<", *forms, b">"]
    after = [b" " + word for word in line[1:]]
    yield from [crc32(word, _OF_WORD) for word in line]
    yield from [crc32(second, crc32(first, _OF_PAIR)) for first, second in zip(line, after, strict=False)]
    yield from [
        crc32(third, crc32(second, crc32(first, _OF_THREE)))
        for first, second, third in zip(line, after, after[1:], strict=False)
    ]


def _of_rest(text: str, every: str, near: str, nearest: slice) -> Iterator[int]:
    """Yield the hashes of the words of the rest of a sentence, and of those that are next to the clause."""
    forms = [_encoded(word) for word in word_forms(text)]
    yield from [crc32(word, _hash(every)) for word in forms]
    yield from [crc32(word, _hash(near)) for word in forms[nearest]]


def run_hashes(beginning: str, words: Sequence[str], words_max: int) -> set[int]:
    """Return the hashes of all runs of one to `words_max` neighbouring words, with a space between two."""
    line, begun = [*map(_encoded, words)], _hash(beginning)
    hashes: set[int] = set()
    for start in range(len(line)):
        value = begun
        for word in line[start : start + words_max]:
            value = crc32(word, value)
            hashes.add(value)
            value = crc32(b" ", value)
    return hashes


def word_forms(text: str) -> list[str]:
    """Return the first words and signs of a text as features have them."""
    return [_form(word) for word in _tokens(text)]


def row(name: str) -> int:
    """Return the row of a feature among `WORD_ROWS`."""
    return crc32(name.encode("utf-8", "replace")) % WORD_ROWS


@lru_cache(maxsize=256)
def _hash(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))


@lru_cache(maxsize=8192)
def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _piece_rows(word: str) -> tuple[int, ...]:
    """Return the rows of the neighbouring characters of a longer word: inflected forms of other languages share them."""
    if len(word) < _PIECED_CHARS_MIN:
        return ()
    framed = f"^{word[:_PIECED_CHARS_MAX]}$"
    pieces = (framed[start : start + size] for size in (3, 4) for start in range(len(framed) - size + 1))
    return tuple(WORD_ROWS + row(piece) for piece in pieces)


def _tokens(text: str) -> list[str]:
    """Return the words and signs of a text; of a text without spaces, its characters."""
    if _CJK.search(text):
        return [char for char in text if not char.isspace()][:_WORDS_MAX]
    return _TOKEN.findall(text)[:_WORDS_MAX]


@lru_cache(maxsize=8192)
def _form(word: str) -> str:
    """Return a word in lower case, without its apostrophe; a number as its length."""
    return f"#{len(word)}" if word.isdigit() else (word.lower().replace("'", "").replace("’", "") or word)
