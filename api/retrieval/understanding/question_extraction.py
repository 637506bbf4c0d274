"""The question within a pasted text: a system prompt or a log around it drowns every search (MemPalace #333)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

#: Characters from which on a query is looked through for the question in it. Nobody asks so long.
_LONG_CHARS = 1_000
#: Shortest and longest question, and most characters of questions together.
_QUESTION_CHARS_MIN = 3
_QUESTION_CHARS_MAX = 400
_QUESTIONS_CHARS_MAX = 800
_QUESTIONS_MAX = 2
#: The beginning and the end of a text without a question, which say what it is about.
_EDGE_CHARS = 500

_QUESTION_MARKS = "?？"
#: What a question begins after.
_SENTENCE_BREAKS = "\n.!?。！？"
#: Marks that are looked at from the end of a text on; more with nothing before them are no questions.
_MARKS_MAX = 1_000
#: Asked without a mark: a line that begins like a question. Spaces are never given back: a text can be all spaces.
_QUESTION_LINE = re.compile(
    r"^(?:user|human|question|q)?[ \t]*+[:>-]?[ \t]*+"
    r"((?:who|what|when|where|which|why|how|did|do|does|is|are|was|were|can|could|should|"
    r"tell me|remind me)\b.{5,300})$",
    re.IGNORECASE | re.MULTILINE,
)


def extract_question(text: str) -> str:
    """Return what a text asks: itself when it is short; of a long one the last questions in it, or its edges."""
    if len(text) <= _LONG_CHARS:
        return text
    # What a bot is told comes before what it is asked, so the end counts more.
    marks = islice(_marks_backwards(text), _MARKS_MAX)
    questions = list(islice((question for mark in marks if (question := _question_at(text, mark))), _QUESTIONS_MAX))
    questions = (
        questions or [match.group(1).strip() for match in _QUESTION_LINE.finditer(text)][: -_QUESTIONS_MAX - 1 : -1]
    )
    chosen: list[str] = []
    for question in questions:
        if sum(map(len, chosen)) + len(question) > _QUESTIONS_CHARS_MAX:
            break
        chosen.append(question)
    if chosen:
        return " ".join(reversed(chosen))
    return f"{text[:_EDGE_CHARS]} {text[-_EDGE_CHARS:]}"


def _marks_backwards(text: str) -> Iterator[int]:
    """Yield the places of question marks, the last one first."""
    positions = {mark: text.rfind(mark) for mark in _QUESTION_MARKS}
    while (position := max(positions.values())) >= 0:
        yield position
        positions[text[position]] = text.rfind(text[position], 0, position)


def _question_at(text: str, mark: int) -> str | None:
    """Return the sentence that ends with the question mark at `mark`; None when it says nothing."""
    # From the mark back, and not a pattern from every character on: a text of a million letters has no question.
    preceding = text[max(0, mark - _QUESTION_CHARS_MAX) : mark]
    sentence = preceding[1 + max(map(preceding.rfind, _SENTENCE_BREAKS)) :].strip()
    return f"{sentence}{text[mark]}" if len(sentence) >= _QUESTION_CHARS_MIN else None
