"""Long texts: cuts the text of an item to the part that has most words of the query.

Everything after the ranking takes time by the length of the texts: finding secrets, sentences and the words of the
query in one message of 1 MiB took 2 s, which no time budget could end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from recollect.api.retrieval.contract.result import Item

#: Characters of an item's text: 20 pages, and four times the largest context by default.
TEXT_CHARS_MAX = 32_768
#: Characters of the steps in which the part moves.
_STEP_CHARS = 4_096
#: Words of the query that are counted; a question has fewer.
_WORDS_MAX = 32


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
