"""Repeated statements: leaves out items that say what another item of the same context says with more detail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.search_result import DroppedCandidate
from recollect.events.late_pattern import late_pattern
from recollect.projections.text.stems import content_stems, stem
from recollect.projections.text.words import distinct_words

#: Kinds that are derived from messages; a document or a procedure says more than a message about it.
_DERIVED = frozenset(("fact", "preference", "relationship", "entity"))
#: Share of the words of a derived item that the message which it comes from must have: it says `my wife` and `I` for
#: names.
_SHARED_MIN = 0.5
#: Characters of a text that are compared.
_CHARS_MAX = 2_000
#: The type of an entity after its name.
_ENTITY_TYPE = late_pattern(r"\*\* \([^()]{1,30}\)")
#: Two statements of the same words differ when only one of them has such a word.
_NEGATION = late_pattern(r"\b(?:not|no|never|without|cannot)\b|n['’]t\b", re.IGNORECASE)


class _Statement:
    """An item and its words, which are read when they are compared: those of most messages are not."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.is_message = item.kind == "episode"
        #: Whether it is a message, or a fact in the words of its message.
        self.has_words = self.is_message or (item.kind == "fact" and item.speaker is not None)

    @cached_property
    def text(self) -> str:
        """Return what is compared of the text, without the type of an entity."""
        return _ENTITY_TYPE.sub("**", self.item.text[:_CHARS_MAX])

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the words and of the speaker."""
        return content_stems(f"{self.item.speaker or ''} {self.text}")

    @cached_property
    def value(self) -> str:
        """Return the last word that names something, as a stem: `month` in `we split up last month` does not."""
        return next((stem(word) for word in reversed(distinct_words(self.text)) if stem(word) in self.stems), "")

    @cached_property
    def negated(self) -> bool:
        """Return whether the statement is negated."""
        return _NEGATION.search(self.text) is not None

    def repeats(self, other: _Statement) -> bool:
        """Return whether `other` says all of this statement, or more."""
        if self.is_message:
            return self._is_standing_instruction(other) or self._is_part_of_session(other)
        if self.item.kind not in _DERIVED or "standing" in self.item.ranks:
            return False
        if other.has_words and not set(self.item.source_events).isdisjoint(other.item.source_events):
            # A statement ends with its value, which a message that says it must have.
            return self.value in other.stems and len(self.stems & other.stems) >= _SHARED_MIN * len(self.stems)
        # Without a common source only the words say whether two statements are the same.
        is_comparable = other.item.kind in _DERIVED or (self.item.kind == "entity" and other.is_message)
        return is_comparable and self.negated == other.negated and bool(self.stems) and self.stems <= other.stems

    def _is_standing_instruction(self, other: _Statement) -> bool:
        """Return whether this message has nothing but the instruction of every turn that was made of it."""
        return (
            "standing" in other.item.ranks
            and not set(self.item.source_events).isdisjoint(other.item.source_events)
            and self.stems - content_stems(self.item.speaker or "") <= other.stems
        )

    def _is_part_of_session(self, other: _Statement) -> bool:
        """Return whether this line of a former session consists of the words of the message `other`."""
        return (
            "session" in self.item.ranks
            and other.is_message
            and set(self.item.source_events) <= set(other.item.source_events)
            and self.stems <= other.stems
        )


def without_repetitions(items: Sequence[Item]) -> tuple[list[Item], list[DroppedCandidate]]:
    """Return the items that no other item repeats with as much detail, in their order, and the items left out.

    Of two items that say the same, a message stays rather than what was derived from it, else the first one.
    """
    statements = [_Statement(item) for item in items]
    # Derived items are compared with what stays only, so that of two equal ones one stays.
    kept = list(statements)
    dropped: list[DroppedCandidate] = []
    has_standing = any("standing" in item.ranks for item in items)
    for statement in reversed(statements):
        if statement.is_message and not has_standing and "session" not in statement.item.ranks:
            # Only an instruction that was made of it, or a message that its session's line is part of, repeats it.
            continue
        repeated_by = next((other for other in kept if other is not statement and statement.repeats(other)), None)
        if repeated_by is not None:
            kept.remove(statement)
            item = statement.item
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, f"told by {repeated_by.item.id}"))
    return [statement.item for statement in kept], dropped
