"""Rule index: the rules whose patterns can begin with a word, so that a clause is compared with a few of 200 patterns."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.events.late_pattern import late_pattern

#: A literal first word with an optional ending: `live[s]`.
_LITERAL = late_pattern(r"([A-Za-z][\w'-]*)(?:\[(\w+)\])?")
_WORD = late_pattern(r"[\w'-]+")


class RuleIndex:
    """The numbers of rules, in their order, by the first word of their patterns."""

    def __init__(self, patterns: Iterable[tuple[int, str]]) -> None:
        firsts = [(number, first_words(pattern)) for number, pattern in patterns]
        words = {word for _, first in firsts if first is not None for word in first}
        #: The rules for each first word; those that may begin with any word are among them.
        self._by_word = {
            word: tuple(number for number, first in firsts if first is None or word in first) for word in words
        }
        #: The rules that may begin with any word.
        self._any = tuple(number for number, first in firsts if first is None)

    def candidates_at(self, sentence: str, position: int) -> tuple[int, ...]:
        """Return the numbers of the rules that can match at a position."""
        word = _WORD.match(sentence, position)
        return self._any if word is None else self._by_word.get(word.group().casefold(), self._any)


def first_words(pattern: str) -> frozenset[str] | None:
    """Return the words that a pattern of `rules.toml` can begin with, in lower case; None when they are not listed."""
    words: set[str] = set()
    position = 0
    while position < len(pattern):
        if pattern[position] == " ":
            position += 1
        elif pattern[position] == "(" and not pattern.startswith("(?", position):
            end = _closing(pattern, position)
            for alternative in _alternatives(pattern[position + 1 : end]):
                first = first_words(alternative)
                if first is None:
                    return None
                words |= first
            is_optional = pattern[end + 1 : end + 2] in ("?", "*")
            if not is_optional:
                return frozenset(words)
            position = end + 2
        else:
            literal = _LITERAL.match(pattern, position)
            if literal is None or pattern[literal.end() : literal.end() + 1] not in ("", " ", ",", ":", "|", ")", "("):
                return None
            if pattern[literal.end() : literal.end() + 1] == "(" or literal[1].endswith(("'", "-")):
                return None
            words.add(literal[1].casefold())
            if literal[2]:
                words.add((literal[1] + literal[2]).casefold())
            return frozenset(words)
    return frozenset(words) or None


def _closing(pattern: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(pattern)):
        depth += {"(": 1, ")": -1}.get(pattern[position], 0)
        if depth == 0:
            return position
    raise ValueError(f"A bracket is not closed in the pattern {pattern!r} of rules.toml.")


def _alternatives(group: str) -> list[str]:
    """Return the alternatives of a group, which `|` separates outside of inner groups."""
    parts, depth = [""], 0
    for character in group:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
