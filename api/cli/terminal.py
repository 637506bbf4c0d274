"""Terminal: prints text with its control characters written out, so that no stored text controls the terminal."""

from __future__ import annotations

import re

import typer

from recollect.events.late_pattern import late_pattern

#: Characters that move the cursor, change colours or titles, reverse the direction of text, or hide in it: control
#: characters but tab and line feed, the marks and isolates of direction, line separators, and tags.
_CONTROLS = late_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line."""
    typer.echo(visible(text), err=err)


def visible(text: str) -> str:
    """Return `text` with control characters as escapes of JSON, in which they mean the same."""
    return _CONTROLS.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    encoded = match[0].encode("utf-16-be")
    return "".join(f"\\u{encoded[start]:02x}{encoded[start + 1]:02x}" for start in range(0, len(encoded), 2))
