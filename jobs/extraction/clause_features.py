"""Clause features: the words, forms and surroundings of a clause, as numbers for the trained reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FIRST_PERSON = frozenset(("I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve"))


def clause_features(text: str, before: str, after: str, *, to_assistant: bool) -> list[int]:
    """Return the rows of the weights that the features of a clause select.

    Parameters:
        before: the rest of the sentence before the clause.
        after: the rest of the sentence after it.
        to_assistant: whether an assistant takes part in the conversation.
    """
    rows = {row(name) for name in _names(text, before, after, to_assistant=to_assistant)}
    rows.update(*map(_piece_rows, word_forms(text)))
    return list(rows)


def word_forms(text: str) -> list[str]:
    """Return the first words and signs of a text as features have them."""
    return [_form(word) for word in _tokens(text)]


def row(name: str) -> int:
    """Return the row of a feature among `WORD_ROWS`."""
    return crc32(name.encode("utf-8", "replace")) % WORD_ROWS


@lru_cache(maxsize=4096)
def _piece_rows(word: str) -> tuple[int, ...]:
    """Return the rows of the neighbouring characters of a longer word: inflected forms of other languages share them."""
    if len(word) < _PIECED_CHARS_MIN:
        return ()
    framed = f"^{word[:_PIECED_CHARS_MAX]}$"
    pieces = (framed[start : start + size] for size in (3, 4) for start in range(len(framed) - size + 1))
    return tuple(WORD_ROWS + row(piece) for piece in pieces)


def _names(text: str, before: str, after: str, *, to_assistant: bool) -> Iterator[str]:
    """Yield the features: one to three neighbouring words, the first words, forms, and the rest of the sentence."""
    said = _tokens(text)
    words = [_form(word) for word in said]
    line = ["<", *words, ">"]
    for length in (1, 2, 3):
        for start in range(len(line) - length + 1):
            yield f"{length} {' '.join(line[start : start + length])}"
    yield from (f"at{place} {word}" for place, word in enumerate(words[:3]))
    yield f"words {min(len(words), 24) // 3}"
    capitals = sum(word[0].isupper() and word not in _FIRST_PERSON for word in said[1:])
    yield f"capitals {min(capitals, 3)}"
    to = "assistant" if to_assistant else "person"
    yield f"to {to}"
    yield from (f"to {to} {word}" for word in words[:2])
    yield f"ends {words[-1] if words and not words[-1][0].isalnum() else ''}"
    yield f"whole {not before and not after}"
    words_before, words_after = ([_form(word) for word in _tokens(side)] for side in (before, after))
    yield from (f"before {word}" for word in words_before[-2:])
    yield from (f"after {word}" for word in words_after[:2])
    yield from (f"earlier {word}" for word in words_before)
    yield from (f"later {word}" for word in words_after)
    yield f"asks after {after.rstrip().endswith('?')}"


def _tokens(text: str) -> list[str]:
    """Return the words and signs of a text; of a text without spaces, its characters."""
    if _CJK.search(text):
        return [char for char in text if not char.isspace()][:_WORDS_MAX]
    return _TOKEN.findall(text)[:_WORDS_MAX]


def _form(word: str) -> str:
    """Return a word in lower case, without its apostrophe; a number as its length."""
    return f"#{len(word)}" if word.isdigit() else (word.lower().replace("'", "").replace("’", "") or word)
