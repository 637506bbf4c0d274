"""Best sentences: shortens a text to the sentences, or the part, with most words of the query.

What does not depend on the query is found once for each text, and cached by its digest as places in the text, so that
no text stays in memory: finding the sentences of a long answer takes two milliseconds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence, Set
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.jobs.summarising.sentence_content import readable
from recollect.projections.text.prompt_fence import single_line
from recollect.projections.text.sentences import sentence_bounds
from recollect.projections.text.tokens import cut_at_word, estimate_tokens
from recollect.projections.text.words import content_words

#: Sentences of all cached outlines, about 14 bytes each.
_SENTENCES_MAX = 400_000
_DIGEST_BYTES = 16
#: Between two sentences that do not follow each other.
_SEPARATOR = " … "
#: Characters of an item's text: 20 pages, and four times the largest context by default.
TEXT_CHARS_MAX = 32_768
#: Characters of the steps in which the part moves.
_STEP_CHARS = 4_096
#: Words of the query that are counted; a question has fewer.
_WORDS_MAX = 32


class _Outline(Struct, frozen=True, kw_only=True):
    """The sentences of a text: where they are, and what they are worth. Arrays have one entry for each sentence."""

    starts: array[int]
    ends: array[int]
    #: The estimated tokens with the separator.
    tokens: array[int]
    #: 1 for sentences that the short form of the text lacks; without a short form, for sentences with content.
    is_new: bytes
    #: Sentences that are more than a heading or an opener such as "Certainly!"; all when there are none.
    statements: Sequence[int]
    #: Whether `single_line` changes nothing but white space.
    is_plain: bool


#: The outlines of the texts shortened last, by the digest of the text and its short form.
_cached_outlines: BoundedCache[bytes, _Outline] = BoundedCache(_SENTENCES_MAX, lambda outline: len(outline.starts))


def best_sentences(text: str, short: str | None, words: Collection[str], tokens_max: int) -> str:
    """Return the sentences of `text` with most of `words`, at most `tokens_max` tokens, in order, on one line.

    Of equal ones, those of the short form come first. Headings and openers such as "Certainly!" are left out.

    Parameters:
        short: the short form of the text.
        words: the words of the query, case folded.
    """
    outline = _outline(text, short)
    shared = _shared_words(text, outline, set(words))
    best_first = sorted(outline.statements, key=lambda index: (-shared[index], outline.is_new[index], index))
    chosen: list[int] = []
    remaining_tokens = tokens_max
    for index in best_first:
        if outline.tokens[index] <= remaining_tokens:
            chosen.append(index)
            remaining_tokens -= outline.tokens[index]
    shortened = _SEPARATOR.join(_sentence(text, outline, index) for index in sorted(chosen))
    # A sentence of unseen signs alone fits, but shows nothing.
    return shortened or cut_at_word(_sentence(text, outline, best_first[0]), remaining_tokens)


def _sentence(text: str, outline: _Outline, index: int) -> str:
    """Return a sentence on one line."""
    line = " ".join(text[outline.starts[index] : outline.ends[index]].split())
    return line if outline.is_plain else single_line(line)


def _shared_words(text: str, outline: _Outline, words: Set[str]) -> list[int]:
    """Return the number of `words` that each sentence has."""
    if not outline.is_plain:
        # Unseen signs may be within a word.
        return [len(words & content_words(_sentence(text, outline, index))) for index in range(len(outline.starts))]
    folded = text.casefold()
    # Most sentences have none of the words, not even within others.
    present = {word for word in words if word in folded}
    has_places = len(folded) == len(text)
    counts = [0] * len(outline.starts)
    for index in _sentences_with(folded, outline, present) if has_places else range(len(counts)):
        counts[index] = len(present & content_words(text[outline.starts[index] : outline.ends[index]]))
    return counts


def _sentences_with(folded: str, outline: _Outline, words: Set[str]) -> set[int]:
    """Return the sentences in which one of `words` begins, even within another word."""
    indexes: set[int] = set()
    for word in words:
        place = folded.find(word)
        while place >= 0:
            index = bisect_right(outline.ends, place)
            if index == len(outline.ends):
                break
            is_within = place >= outline.starts[index]
            if is_within:
                indexes.add(index)
            place = folded.find(word, outline.ends[index] if is_within else place + 1)
    return indexes


def _outline(text: str, short: str | None) -> _Outline:
    """Return the outline of a text, which is found once."""
    key = "\x00".join((short or "", text)).encode(errors="surrogatepass")
    digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
    outline = _cached_outlines.get(digest)
    if outline is None:
        outline = _new_outline(text, single_line(short or ""))
        _cached_outlines.put(digest, outline)
    return outline


def _new_outline(text: str, short: str) -> _Outline:
    """Return the outline of a text with a short form on one line."""
    bounds = [*sentence_bounds(text)] or [(0, 0)]
    plain = single_line(text) == " ".join(text.split())
    lines = [" ".join(text[start:end].split()) for start, end in bounds]
    sentences = lines if plain else [single_line(line) for line in lines]
    readables = [readable(sentence) for sentence in sentences]
    statements = [index for index, text in enumerate(readables) if text and len(content_words(sentences[index])) > 1]
    return _Outline(
        starts=array("L", [start for start, _ in bounds]),
        ends=array("L", [end for _, end in bounds]),
        tokens=array("L", [estimate_tokens(f"{sentence}{_SEPARATOR}") for sentence in sentences]),
        is_new=bytes(bool(text) if not short else single_line(text) not in short for text in readables),
        statements=array("L", statements or range(len(bounds))),
        is_plain=plain,
    )


def cut_long_text(item: Item, words: Collection[str]) -> Item:
    """Return `item`; of a text over `TEXT_CHARS_MAX`, only the part with most of `words`, the first of equal ones.

    Parameters:
        words: the words of the query, case folded.
    """
    text = item.text
    if len(text) <= TEXT_CHARS_MAX:
        return item
    searched = list(words)[:_WORDS_MAX]
    starts = range(0, len(text), _STEP_CHARS)
    steps = [text[start : start + _STEP_CHARS].casefold() for start in starts]
    counts = [sum(word in step for word in searched) for step in steps]
    width = TEXT_CHARS_MAX // _STEP_CHARS
    best = max(range(len(counts) - width + 1), key=lambda first: (sum(counts[first : first + width]), -first))
    part = text[starts[best] : starts[best] + TEXT_CHARS_MAX]
    before, after = "… " if best else "", " …" if starts[best] + TEXT_CHARS_MAX < len(text) else ""
    return replace(item, text=f"{before}{part}{after}")
