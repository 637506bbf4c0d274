"""Importance: scores how much a message is worth keeping, from 1 to 10, by signs of content in its text.

The scale is that of `003`: 5 is neutral, and what reaches 8 stays in its own words for longer. Decisions and wishes to
be remembered count most; corrections, numbers, names and feelings add; greetings, fillers and questions count less.
"""

from __future__ import annotations

import re

#: A score without any sign.
NEUTRAL_IMPORTANCE = 5
_LOWEST, _HIGHEST = 1, 10
#: Characters that are read: the signs of a message are at its beginning, and long messages are pasted texts.
_CHARS_MAX = 1_000
#: Words up to which a message without a number or a name is a filler.
_FILLER_WORDS_MAX = 3

_NUMBER = re.compile(r"\d")
#: A capitalised word inside a sentence, which is mostly a name.
# A pattern that begins with a literal is searched twice as fast, and the capital, the rarest part, is tested next.
_NAME = re.compile(r" [A-ZÀ-Þ](?<=[a-zà-ÿ,;:] [A-ZÀ-Þ])[a-zà-ÿ]")
#: Decisions, wishes to be remembered, corrections and feelings in lower case, with their points.
_SIGNS = (
    (
        2,
        re.compile(
            r"\b(?:agreed|signed|booked|bought|sold|hired|fired|quit|resigned|engaged|married|divorced|born|pregnant|died|"
            r"promoted|accepted|cancell?ed|deadline|settled on|passed away|moved (?:to|in|out)|from now on)\b|"
            r"\b(?:decid|diagnos|allerg)\w+|\bwe(?:'ll| will) go with\b"
        ),
    ),
    (
        2,
        re.compile(
            r"\b(?:important|always|never|remember (?:that|this|to)|remember(?=[,.:!]|$)|don't forget|do not forget|"
            r"note (?:that|this|down)|keep in mind|remind me|for the record)\b"
        ),
    ),
    (
        1,
        re.compile(
            r"\b(?:actually|correction|anymore|i meant|i was wrong|that's wrong|not true|no longer|not any ?more|"
            r"instead of)\b"
        ),
    ),
    (
        1,
        re.compile(
            r"\b(?:love|hate|afraid|scared|proud|happy|sad|angry|worried|excited|ashamed|lonely|grateful|heartbroken|"
            r"terrified|devastated|thrilled|favou?rite|dream)\b"
        ),
    ),
)


def importance_of(text: str, role: str) -> int:
    """Return the importance of a message, 1 to 10.

    Parameters:
        role: who speaks, such as ``user`` or ``assistant``; what an assistant says can mostly be said again.
    """
    read = text[:_CHARS_MAX]
    has_number = _NUMBER.search(read) is not None
    has_name = _NAME.search(read) is not None
    if not has_number and not has_name and len(read.split(None, _FILLER_WORDS_MAX)) <= _FILLER_WORDS_MAX:
        return _LOWEST + 1
    lowered = read.lower()
    points = sum(sign_points for sign_points, pattern in _SIGNS if pattern.search(lowered) is not None)
    score = NEUTRAL_IMPORTANCE + has_number + has_name + points
    if read.rstrip().endswith("?"):
        score -= 2
    if role != "user":
        score -= 2
    return min(score, _HIGHEST)
