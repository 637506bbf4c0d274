"""Corrections: `actually, …`, `no, I meant …`, `it is not X, it is Y`, and what they correct."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from recollect.projections.queries.knowledge_queries import PriorStatement

_ACTUALLY = re.compile(
    r"^(?:oh,?\s+|wait,?\s+|oops,?\s+|sorry,?\s+|no,?\s+|hm+,?\s+)*"
    r"(?:actually|correction:?|i misspoke|i was wrong|my mistake|i meant to say|scratch that|to be precise|sorry,? i meant)\b",
    re.IGNORECASE,
)
_MEANT = re.compile(
    r"^(?i:oh,?\s+|wait,?\s+|oops,?\s+|sorry,?\s+|actually,?\s+|no,?\s+)*I (?:meant|mean) (?P<right>[^,;]{1,120}?)(?:,?\s++not (?P<wrong>[^,;]{1,120}))?$"
)
_NOT_BUT = re.compile(
    r"\b(?:it|that|this|my \w+(?: \w+)?) is not (?P<wrong>[^,;.]{1,60}?)(?:,|;| but| -)++\s*+(?:but |it is |that is |rather )*+"
    r"(?P<right>[^,;.]{1,60})$",
    re.IGNORECASE,
)
_BUT_NOT = re.compile(
    r"^(?:no,?\s+|actually,?\s+|sorry,?\s+|oops,?\s+)++(?:it is|that is|it was)?\s*+(?P<right>[^,;.]{1,60}?),?\s+not (?P<wrong>[^,;.]{1,60})$",
    re.IGNORECASE,
)
_LEADING = re.compile(r"^(?:in|at|on|to|from|for|as|a|an|the|is|called|named)\s+", re.IGNORECASE)
#: Statements looked back at.
_BACK_MAX = 40
#: Words that take the place of others; more are a statement of their own.
_WORDS_MAX = 3


def find_correction(
    speaker: str,
    session_id: str | None,
    text: str,
    facts: Sequence[dict[str, Any]],
    before: Sequence[PriorStatement],
) -> dict[str, Any] | None:
    """Return what a sentence sets right: subject, predicate, object; None when it corrects nothing that was stated.

    Parameters:
        facts: what the sentence states by itself.
        before: what was stated earlier, oldest first.
    """
    earlier = [one for one in before[-_BACK_MAX:] if one.speaker == speaker and one.session_id == session_id][::-1]
    if _ACTUALLY.match(text) and facts:
        return _of_same_topic(facts, earlier)
    for pattern in (_MEANT, _NOT_BUT, _BUT_NOT):
        match = pattern.search(text)
        if match is not None and len(match["right"].split()) <= _WORDS_MAX:
            return _of_wrong(match["right"], match["wrong"], earlier)
    return None


def _of_same_topic(facts: Sequence[dict[str, Any]], earlier: Sequence[PriorStatement]) -> dict[str, Any] | None:
    """Return the stated fact as a correction of an earlier one about the same."""
    for fact in facts:
        for wrong in earlier:
            same = (wrong.subject, wrong.predicate) == (fact["subject"], fact["predicate"])
            if same and wrong.object != fact["object"]:
                return {"subject": fact["subject"], "predicate": fact["predicate"], "object": fact["object"]}
    return None


def _of_wrong(right: str, wrong: str | None, earlier: Sequence[PriorStatement]) -> dict[str, Any] | None:
    """Return `right` in the place of what was wrong: the latest fact with those words, or the latest one at all."""
    for fact in earlier:
        if wrong is None or _bare(wrong) in fact.object.casefold() or fact.object.casefold() in _bare(wrong):
            object = _replaced(fact.object, _LEADING.sub("", right.strip()).strip(" .\"'"))
            return {"subject": fact.subject, "predicate": fact.predicate, "object": object} if object else None
    return None


def _replaced(object: str, right: str) -> str:
    """Return what is right in the words of what was said: `dog named Max`, no, `Rex`."""
    head, named, _ = object.rpartition(" named ")
    return f"{head}{named}{right}" if named and " " not in right else right


def _bare(text: str) -> str:
    return _LEADING.sub("", text.strip()).strip(" .\"'").casefold()
