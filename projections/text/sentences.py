"""Sentences: where one ends and where one begins, in texts of any script."""

from __future__ import annotations

import re

#: Where a sentence ends; a sign inside a number or an abbreviation ends none. Chinese and Japanese have no spaces.
_END = re.compile(
    r"(?<=[.!?…。！？])(?<!\b[A-Z]\.)(?<!Mr\.)(?<!Dr\.)(?<!Ms\.)(?<!Mrs\.)(?<!e\.g\.)(?<!i\.e\.)\s+|\n+|(?<=[。！？])"
)
#: What stands before the first word of a sentence, a clause or a quotation, white space aside. Part of what the read
#: models' handlers go by: another set gives other rows.
_OPENING = frozenset('.!?:;…"“”(*>-')


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` with their end signs, each on one line."""
    return [" ".join(part.split()) for part in _END.split(text) if part and part.strip()]


def opens_sentence(text: str, start: int) -> bool:
    """Return whether a sentence, a line or a quotation begins at `start`."""
    before = text[max(0, start - 3) : start]
    left = before.rstrip()
    return left[-1] in _OPENING if left and "\n" not in before[len(left) :] else start <= 3 or "\n" in before
