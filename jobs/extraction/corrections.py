"""Corrections: finds sentences such as `no, I meant …` or `it is not X, it is Y`, and the statement they correct."""

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
#: Earlier statements that are searched for the corrected one.
_STATEMENTS_MAX = 40
#: Words of a replacement; a longer one is a statement of its own.
_WORDS_MAX = 3


def find_correction(
    speaker: str,
    session_id: str | None,
    text: str,
    facts: Sequence[dict[str, Any]],
    before: Sequence[PriorStatement],
) -> dict[str, Any] | None:
    """Return the correction in a sentence, with the wrong object; None when it corrects no earlier statement.

    Parameters:
        facts: the facts of the sentence itself.
        before: earlier statements, oldest first.
    """
    latest_first = before[-_STATEMENTS_MAX:][::-1]
    earlier = [prior for prior in latest_first if prior.speaker == speaker and prior.session_id == session_id]
    if _ACTUALLY.match(text) and facts:
        return same_topic_correction(facts, earlier)
    for pattern in (_MEANT, _NOT_BUT, _BUT_NOT):
        match = pattern.search(text)
        if match is not None and len(match["right"].split()) <= _WORDS_MAX:
            return replacement_correction(match["right"], match["wrong"], earlier)
    return None


def same_topic_correction(facts: Sequence[dict[str, Any]], earlier: Sequence[PriorStatement]) -> dict[str, Any] | None:
    """Return the first of `facts` that contradicts an earlier statement of the same subject and predicate."""
    for fact in facts:
        for wrong in earlier:
            same_topic = (wrong.subject, wrong.predicate) == (fact["subject"], fact["predicate"])
            if same_topic and wrong.object != fact["object"]:
                right = {"subject": fact["subject"], "predicate": fact["predicate"], "object": fact["object"]}
                return right | {"corrects_object": wrong.object}
    return None


def replacement_correction(right: str, wrong: str | None, earlier: Sequence[PriorStatement]) -> dict[str, Any] | None:
    """Return the latest statement that contains `wrong`, or the latest statement, with `right` as its object."""
    for fact in earlier:
        if wrong is None or _bare(wrong) in fact.object.casefold() or fact.object.casefold() in _bare(wrong):
            object = _replaced(fact.object, _LEADING.sub("", right.strip()).strip(" .\"'"))
            corrected = {"subject": fact.subject, "predicate": fact.predicate, "object": object}
            return corrected | {"corrects_object": fact.object} if object else None
    return None


def _replaced(object: str, right: str) -> str:
    """Return `right` in the form of the old object: `dog named Max` corrected by `Rex` is `dog named Rex`."""
    head, named, _ = object.rpartition(" named ")
    return f"{head}{named}{right}" if named and " " not in right else right


def _bare(text: str) -> str:
    """Return `text` without its leading preposition or article, in lower case."""
    return _LEADING.sub("", text.strip()).strip(" .\"'").casefold()
