"""Excerpt: the part of a message that extraction reads, with its runs of white space and signs shortened."""

from __future__ import annotations

import re

#: Characters of a message that are read: about ten pages. Nobody tells of himself at greater length; what is longer was
#: pasted, and its beginning and end say what it is. The number bounds the time that one message takes.
MESSAGE_CHARS_MAX = 20_000
#: Characters at a cut among which the end of a sentence is looked for.
_CUT_CHARS = 1_000
#: White space that is not one space or one line break, and signs that stand there more than three times.
_WHITE = re.compile(r"\s{2,}+|[^\S \n]")
_SIGNS = re.compile(r"([^\w\s])\1{3,}+")
_END = re.compile(r"[.!?…](?=\s)|\n")


def excerpt(text: str) -> str:
    """Return what is read of `text`: short runs of white space and signs, and of a long text the beginning and the end.

    A run of white space becomes a space, a line break or an empty line; a run of one sign three signs.
    """
    short = _SIGNS.sub(r"\1\1\1", _WHITE.sub(_white, text))
    if len(short) <= MESSAGE_CHARS_MAX:
        return short
    half = MESSAGE_CHARS_MAX // 2 - 1
    return f"{_beginning(short[:half])}\n\n{_end(short[-half:])}"


def _white(run: re.Match[str]) -> str:
    breaks = run.group().count("\n")
    return " " if not breaks else "\n" if breaks == 1 else "\n\n"


def _beginning(text: str) -> str:
    """Return `text` without the sentence that a cut has broken off."""
    ends = [end.end() for end in _END.finditer(text, len(text) - _CUT_CHARS)]
    return text[: ends[-1]] if ends else text.rpartition(" ")[0] or text


def _end(text: str) -> str:
    """Return `text` without the rest of the sentence that a cut has broken off."""
    end = _END.search(text, 0, _CUT_CHARS)
    return text[end.end() :] if end is not None else text.partition(" ")[2] or text
