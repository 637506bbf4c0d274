"""Procedures: how something is done, told in a sentence or a list."""

from __future__ import annotations

import re
from typing import Any

_TOLD = re.compile(
    r"(?:^|(?<=[.!\n])|(?<=[.!\n]\s))(?:to|in order to|when you want to|if you want to) (?P<goal>[^,.:;\n]{3,80}?)(?:,| you| -|:)\s++"
    r"(?:you (?:have to |need to |must )?)?(?P<steps>(?:first|start by|begin by)\b.+?)(?=\n\n|$)",
    re.IGNORECASE | re.DOTALL,
)
_LISTED = re.compile(
    r"(?:how to|steps to|steps for|procedure for|^to) (?!be\b|the\b|these\b|this\b|all\b|my\b)(?P<goal>[^\n.:]{3,80}):?[^\S\n]*+\n(?P<steps>(?:\s*+(?:\d++[.)]|[-*•])\s++.++(?:\n|$)){2,})",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT = re.compile(
    r"(?:,\s*+|(?<![\s,])\s++|\b)(?:and\s++)?(?:then|next|after that|afterwards|finally|lastly)\b,?\s*+"
    r"|\.\s++(?=[A-Z])|;\s*+",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^(?:first(?:ly)?(?: of all)?|start by|begin by),?\s*", re.IGNORECASE)
_MARK = re.compile(r"^\s*+(?:\d++[.)]|[-*•])\s++")
_STEPS_MAX = 30


def find_procedure(text: str) -> dict[str, Any] | None:
    """Return the procedure that a text tells: name, trigger, steps; None when it tells none of two steps or more."""
    listed = _LISTED.search(text)
    if listed is not None:
        return _of(listed["goal"], [_MARK.sub("", line) for line in listed["steps"].splitlines() if line.strip()])
    told = _TOLD.search(text)
    if told is not None:
        return _of(told["goal"], _NEXT.split(_FIRST.sub("", told["steps"].strip())))
    return None


def _of(goal: str, steps: list[str]) -> dict[str, Any] | None:
    name = goal.strip(" .:")
    clean = [step.strip(" ,.;")[:500] for step in steps if step.strip(" ,.;")]
    if len(clean) < 2 or not name:
        return None
    return {"name": name, "trigger": f"to {name}", "steps": clean[:_STEPS_MAX]}
