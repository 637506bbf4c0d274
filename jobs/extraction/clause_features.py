"""Clause features: the words, forms and surroundings of a clause, as numbers for the trained reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from recollect.events.late_pattern import late_pattern

#: Rows of the weights of words; those of pieces of words follow, so that no word shares its row with a piece.
WORD_ROWS = 1 << 15
#: Rows of the reader's weights.
BUCKETS = 2 * WORD_ROWS
_ROWS_MASK = WORD_ROWS - 1
#: Words of a clause that are read; a longer one is a list.
_WORDS_MAX = 60
#: Characters of a word that is read in pieces, too, and of its part that is.
_PIECED_CHARS_MIN = 4
_PIECED_CHARS_MAX = 40
_TOKEN = late_pattern(r"\w+(?:['’]\w+)?|[^\w\s]")
#: The hashes of the beginnings of features.
_OF_WORD, _OF_PAIR, _OF_THREE = (crc32(f"{size} ".encode()) for size in (1, 2, 3))
_PLACES = tuple(crc32(f"at{place} ".encode()) for place in range(3))
_CJK = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff]")
_FIRST_PERSON = frozenset(("I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve"))


class Word(NamedTuple):
    """A word or sign of a text, with what its features begin with."""

    form: str
    encoded: bytes
    #: After a space. A hash continues that of the preceding words, so that no text is concatenated.
    spaced: bytes
    #: The hashes of `2 word` and of `3 word`.
    pair: int
    three: int
    #: The rows of the word alone, and of its pieces.
    rows: tuple[int, ...]
    is_capital: bool


def clause_features(text: str, before: str, after: str, *, to_assistant: bool) -> list[int]:
    """Return the rows of the weights that the features of a clause select.

    Parameters:
        before: the rest of the sentence before the clause.
        after: the rest of the sentence after it.
        to_assistant: whether an assistant takes part in the conversation.
    """
    return word_features(words_of(text), before, after, to_assistant=to_assistant)


def word_features(words: Sequence[Word], before: str = "", after: str = "", *, to_assistant: bool) -> list[int]:
    """Return the rows of `clause_features` for the words of a clause."""
    line = [_word("<"), *words, _word(">")]
    to = "assistant" if to_assistant else "person"
    last = words[-1].form if words and not words[-1].form[0].isalnum() else ""
    hashes = [
        *[crc32(second.spaced, first.pair) for first, second in pairwise(line)],
        *[
            crc32(third.spaced, crc32(second.spaced, first.three))
            for first, second, third in zip(line, line[1:], line[2:], strict=False)
        ],
        *[crc32(word.encoded, hashed) for word, hashed in zip(words, _PLACES, strict=False)],
        *[crc32(word.encoded, _hash(f"to {to} ")) for word in words[:2]],
        _hash(f"to {to}"),
        _hash(f"words {min(len(words), 24) // 3}"),
        _hash(f"capitals {min(sum(word.is_capital for word in words[1:]), 3)}"),
        _hash(f"ends {last}"),
        _hash(f"whole {not before and not after}"),
        _hash(f"asks after {after.rstrip().endswith('?')}"),
        *(_of_rest(before, "earlier ", "before ", slice(-2, None)) if before else ()),
        *(_of_rest(after, "later ", "after ", slice(2)) if after else ()),
    ]
    return list({value & _ROWS_MASK for value in hashes}.union(*[word.rows for word in line]))


def _of_rest(text: str, every: str, near: str, nearest: slice) -> Iterator[int]:
    """Yield the hashes of the words of the rest of a sentence, and of those that are next to the clause."""
    forms = [word.encoded for word in words_of(text)]
    yield from [crc32(word, _hash(every)) for word in forms]
    yield from [crc32(word, _hash(near)) for word in forms[nearest]]


def run_hashes(beginning: str, words: Sequence[Word], words_max: int) -> set[int]:
    """Return the hashes of all runs of one to `words_max` neighbouring words, with a space between two."""
    begun = _hash(beginning)
    runs = [crc32(word.encoded, begun) for word in words]
    hashes = {*runs}
    for length in range(1, words_max):
        runs = [crc32(word.spaced, value) for value, word in zip(runs, words[length:], strict=False)]
        hashes.update(runs)
    return hashes


def words_of(text: str) -> list[Word]:
    """Return the first words and signs of a text."""
    return [*map(_word, _tokens(text))]


def word_forms(text: str) -> list[str]:
    """Return the first words and signs of a text as features have them."""
    return [word.form for word in words_of(text)]


def row(name: str) -> int:
    """Return the row of a feature among `WORD_ROWS`."""
    return crc32(name.encode("utf-8", "replace")) % WORD_ROWS


@lru_cache(maxsize=256)
def _hash(name: str) -> int:
    return crc32(name.encode("utf-8", "replace"))


@lru_cache(maxsize=4096)
def _word(said: str) -> Word:
    """Return a word as features have it: in lower case, without its apostrophe; a number as its length."""
    form = f"#{len(said)}" if said.isdigit() else (said.lower().replace("'", "").replace("’", "") or said)
    encoded = form.encode("utf-8", "replace")
    return Word(
        form,
        encoded,
        b" " + encoded,
        crc32(encoded, _OF_PAIR),
        crc32(encoded, _OF_THREE),
        (crc32(encoded, _OF_WORD) & _ROWS_MASK, *_piece_rows(form)),
        said[0].isupper() and said not in _FIRST_PERSON,
    )


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
