"""Excerpt: shortens a message to the part that the extraction reads."""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern

#: Characters of a message that are read: about ten pages. A longer message is usually pasted text, whose beginning and
#: end say enough. The limit bounds the time that one message takes.
MESSAGE_CHARS_MAX = 20_000
#: Characters at a cut in which the end of a sentence is searched.
_CUT_CHARS = 1_000
#: White space other than a single space or line break, and signs repeated more than three times.
_WHITE = late_pattern(r"\s{2,}+|[^\S \n]")
_SIGNS = late_pattern(r"([^\w\s])\1{3,}+")
_END = late_pattern(r"[.!?…](?=\s)|\n")
#: Signs of bold text in Markdown.
_EMPHASIS = late_pattern(r"\*\*")


def read_part(text: str) -> str:
    """Return the excerpt of a message without the signs of bold text."""
    return _EMPHASIS.sub("", excerpt(text))


def excerpt(text: str) -> str:
    """Return `text` with shortened runs; of a text over `MESSAGE_CHARS_MAX`, return the beginning and the end.

    A run of white space becomes a space, a line break or an empty line. A run of one sign becomes three signs.
    """
    short = _SIGNS.sub(r"\1\1\1", _WHITE.sub(_shortened_white_space, text))
    if len(short) <= MESSAGE_CHARS_MAX:
        return short
    half = MESSAGE_CHARS_MAX // 2 - 1
    return f"{_beginning(short[:half])}\n\n{_end(short[-half:])}"


def _shortened_white_space(run: re.Match[str]) -> str:
    breaks = run.group().count("\n")
    return " " if not breaks else "\n" if breaks == 1 else "\n\n"


def _beginning(text: str) -> str:
    """Return `text` without the incomplete sentence at its end."""
    ends = [end.end() for end in _END.finditer(text, len(text) - _CUT_CHARS)]
    return text[: ends[-1]] if ends else text.rpartition(" ")[0] or text


def _end(text: str) -> str:
    """Return `text` without the incomplete sentence at its beginning."""
    end = _END.search(text, 0, _CUT_CHARS)
    return text[end.end() :] if end is not None else text.partition(" ")[2] or text
