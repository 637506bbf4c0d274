"""LLM statement: one line of a language model's answer, `3 | Ann lives in Porto. | I live in Porto | home`.

Plain lines work with every server and model: no tools, no schema. A line of another form is left out.
"""

from __future__ import annotations

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.projections.projector.predicates import is_listed
from recollect.projections.text.sentences import END_SIGNS

#: Statements of one answer; a window of eight messages has fewer.
_STATEMENTS_MAX = 40
_TEXT_CHARS_MAX = 300
#: The number of the line, in brackets or not; the speaker, whom a small model names right after having written it.
_NUMBER = late_pattern(r"^\W{0,3}(?:line |Line )?(\d{1,4})\b(?!\.\d)[^|]{0,60}$")
#: A name from the example of the prompt, which no user has: an answer with it is the example itself.
EXAMPLE_NAME = "qwibble"
#: The kind of a line that names another one, or none.
OTHER = "other"
KINDS = frozenset(
    "identity home work relation health possession habit preference event plan decision task problem rule ending".split()
)

#: The subject of a sentence: names, and what belongs to them: `Ann's older sister`.
_SUBJECT = late_pattern(
    r"^(?:The |Die |Der |Das )?[A-ZÀ-Þ][\w.&-]{0,40}(?: [A-ZÀ-Þ][\w.&-]{0,40}){0,3}(?:['’]s?(?: [\w-]{1,30}){1,2}?)?(?= \S+ )"
)
#: First words of predicates of two words: `is turning`, `has to`.
_AUXILIARIES = frozenset(
    "is was are were has had have will does did can must may no never still wants needs used ist hat wird".split()
)
_SMALL_WORDS = frozenset("in at to of on for with from about as by not up out no longer been in an bei mit von".split())
_PREDICATE_WORDS_MAX = 4


class LlmStatement(Struct, frozen=True, kw_only=True):
    """A sentence that a language model reads in a line."""

    #: The number of the line, from 1.
    line: int
    #: The self-contained sentence.
    text: str
    #: The words of the line that state it, as the model quotes them; empty when it quotes none.
    words: str
    #: One of `KINDS`, or `other`.
    kind: str = OTHER


def parse_statements(answer: str) -> list[LlmStatement] | None:
    """Return the statements of an answer, each sentence once; None for an answer that is not in the form at all."""
    statements: dict[tuple[int, str], LlmStatement] = {}
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    for line in lines:
        statement = _parsed(line)
        if statement is not None:
            statements.setdefault((statement.line, statement.text.casefold()), statement)
            if len(statements) == _STATEMENTS_MAX:
                break
    is_nothing = len(lines) == 1 and lines[0].strip(" .|-").casefold() == "none"
    return list(statements.values()) if statements or is_nothing else None


def _parsed(line: str) -> LlmStatement | None:
    parts = [" ".join(part.split()) for part in line.strip("|- ").split("|")]
    number = _NUMBER.match(parts[0])
    if number is None or len(parts) < 2 or not 0 < len(parts[1]) <= _TEXT_CHARS_MAX or int(number[1]) == 0:
        return None
    rest = parts[2:]
    kind = rest.pop().casefold().strip(" .") if rest and rest[-1].casefold().strip(" .") in KINDS else OTHER
    words = rest[0][:_TEXT_CHARS_MAX].strip(" \"'“”") if rest else ""
    return LlmStatement(line=int(number[1]), text=parts[1].strip(' "“”'), words=words, kind=kind)


def split_statement(text: str, speaker: str) -> tuple[str, str, str]:
    """Return subject, predicate and object of a sentence; joined by spaces they are the sentence again.

    A sentence without a subject in front is the object of what its speaker said.
    """
    text = text.rstrip(END_SIGNS + " ")
    match = _SUBJECT.match(text)
    if match is None:
        return speaker, "said", text
    words = text[match.end() :].split()
    for count in range(min(_PREDICATE_WORDS_MAX, len(words) - 1), 0, -1):
        if is_listed(" ".join(words[:count])):
            return match[0], " ".join(words[:count]), " ".join(words[count:])
    count = 2 if words[0].casefold() in _AUXILIARIES and len(words) > 2 else 1
    while count < min(_PREDICATE_WORDS_MAX, len(words) - 1) and words[count].casefold() in _SMALL_WORDS:
        count += 1
    return match[0], " ".join(words[:count]), " ".join(words[count:])
