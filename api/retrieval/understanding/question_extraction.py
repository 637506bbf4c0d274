"""Question extraction: takes the question out of a long text, whose other words would dominate the search.

Such texts are system prompts or logs with a question at the end (MemPalace #333).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from recollect.events.late_pattern import late_pattern

#: A query is searched for questions from this length on; questions themselves are shorter.
_LONG_CHARS = 1_000
#: Length of one question, length of all questions together, and their number.
_QUESTION_CHARS_MIN = 3
_QUESTION_CHARS_MAX = 400
_QUESTIONS_CHARS_MAX = 800
_QUESTIONS_MAX = 2
#: The characters of the beginning and of the end that represent a text without a question.
_EDGE_CHARS = 500

_QUESTION_MARKS = "?？"
#: A question begins after one of these characters.
_SENTENCE_BREAKS = "\n.!?。！？"
#: Question marks that are tried, from the end of the text; a limit on texts of question marks alone.
_MARKS_MAX = 1_000
#: A line that begins like a question, without a question mark. Possessive quantifiers keep it linear on runs of spaces.
_QUESTION_LINE = late_pattern(
    r"^(?:user|human|question|q)?[ \t]*+[:>-]?[ \t]*+"
    r"((?:who|what|when|where|which|why|how|did|do|does|is|are|was|were|can|could|should|"
    r"tell me|remind me)\b.{5,300})$",
    re.IGNORECASE | re.MULTILINE,
)


def extract_question(text: str) -> str:
    """Return a short text unchanged; of a long text the last questions in it, or its beginning and end."""
    if len(text) <= _LONG_CHARS:
        return text
    # Instructions come before the question, so the last questions count.
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
    """Yield the positions of question marks, the last one first."""
    positions = {mark: text.rfind(mark) for mark in _QUESTION_MARKS}
    while (position := max(positions.values())) >= 0:
        yield position
        positions[text[position]] = text.rfind(text[position], 0, position)


def _question_at(text: str, mark: int) -> str | None:
    """Return the sentence that ends with the question mark at position `mark`; None when it is too short."""
    # Backwards from the mark, which is linear; a pattern would start at every character of the text.
    preceding = text[max(0, mark - _QUESTION_CHARS_MAX) : mark]
    sentence = preceding[1 + max(map(preceding.rfind, _SENTENCE_BREAKS)) :].strip()
    return f"{sentence}{text[mark]}" if len(sentence) >= _QUESTION_CHARS_MIN else None
