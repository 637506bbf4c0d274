"""Procedures: finds instructions of two or more steps, in a sentence or a list."""

from __future__ import annotations

import re
from typing import Any

#: A sentence such as `To make tea, first boil water, then …`.
_NARRATED = re.compile(
    r"(?:^|(?<=[.!\n])|(?<=[.!\n]\s))(?:to|in order to|when you want to|if you want to) (?P<goal>[^,.:;\n]{3,80}?)(?:,| you| -|:)\s++"
    r"(?:you (?:have to |need to |must )?)?(?P<steps>(?:first|start by|begin by)\b.+?)(?=\n\n|$)",
    re.IGNORECASE | re.DOTALL,
)
#: A list of numbered or marked lines below a heading such as `How to make tea:`.
_LISTED = re.compile(
    r"(?:how to|steps to|steps for|procedure for|^to) (?!be\b|the\b|these\b|this\b|all\b|my\b)(?P<goal>[^\n.:]{3,80}):?[^\S\n]*+\n(?P<steps>(?:\s*+(?:\d++[.)]|[-*•])\s++.++(?:\n|$)){2,})",
    re.IGNORECASE | re.MULTILINE,
)
#: The separators of steps in a sentence.
_NEXT = re.compile(
    r"(?:,\s*+|(?<![\s,])\s++|\b)(?:and\s++)?(?:then|next|after that|afterwards|finally|lastly)\b,?\s*+"
    r"|\.\s++(?=[A-Z])|;\s*+",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^(?:first(?:ly)?(?: of all)?|start by|begin by),?\s*", re.IGNORECASE)
_MARK = re.compile(r"^\s*+(?:\d++[.)]|[-*•])\s++")
#: Steps of a procedure; further steps are left out.
_STEPS_MAX = 30


def find_procedure(text: str) -> dict[str, Any] | None:
    """Return the procedure in `text` with its name, trigger and steps; None without a procedure of two or more steps."""
    listed = _LISTED.search(text)
    if listed is not None:
        return _procedure(
            listed["goal"], [_MARK.sub("", line) for line in listed["steps"].splitlines() if line.strip()]
        )
    narrated = _NARRATED.search(text)
    if narrated is not None:
        return _procedure(narrated["goal"], _NEXT.split(_FIRST.sub("", narrated["steps"].strip())))
    return None


def _procedure(goal: str, steps: list[str]) -> dict[str, Any] | None:
    """Return a procedure of the cleaned steps; None when fewer than two are left."""
    name = goal.strip(" .:")
    clean = [step.strip(" ,.;")[:500] for step in steps if step.strip(" ,.;")]
    if len(clean) < 2 or not name:
        return None
    return {"name": name, "trigger": f"to {name}", "steps": clean[:_STEPS_MAX]}
