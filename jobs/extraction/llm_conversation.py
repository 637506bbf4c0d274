"""LLM conversation: the lines that a language model reads, and the evidence that each line gives for an item.

A line of a user grounds what the user says. What the assistant said before gives names for pronouns, and the words of a
question that the user answers or a proposal that the user confirms: `Shall I note that you moved to Porto?`, `Yes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm.conversation_lines import label
from recollect.jobs.llm.grounding import Evidence, SourceLine
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.queries.session_queries import EarlierTurn
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.statement_lines import fact_line

#: Characters of an earlier message: enough for its names and its question.
_EARLIER_CHARS_MAX = 400
#: The beginning of a message that confirms what the message before proposed.
_CONFIRMATION = re.compile(
    r"^\W*+(?:yes|yep|yeah|yup|yea|sure|ok(?:ay)?|correct|right|exactly|indeed|absolutely|of course|please do|go ahead|"
    r"do (?:that|it)|sounds good|that'?s (?:right|correct|it)|perfect|ja|jawohl|genau|stimmt|richtig|gern|sí|si|claro|"
    r"vale|exacto|oui|d'accord|exactement|sim|certo|да|конечно|是的?|对|好的?|はい|うん|そう|네|예)\b",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return sentence.rstrip("\"'”’) ").endswith(("?", "？"))


class LlmConversation:
    """The messages of one request, numbered from 1.

    Parameters:
        messages: the messages to extract from; they are cut to excerpts.
        earlier: the messages before them, by session.
        statements: what memory has, so that the model finds what a message corrects or ends.
    """

    def __init__(
        self,
        messages: Sequence[IncomingMessage],
        earlier: Mapping[str | None, Sequence[EarlierTurn]],
        statements: Sequence[PriorStatement],
    ) -> None:
        self._messages = [message._replace(text=excerpt(message.text)) for message in messages]
        self._earlier = earlier
        self._statements = statements
        #: The evidence by its kind and line: an answer has many items for one line.
        self._evidence: dict[tuple[str, int], Evidence] = {}

    def lines(self) -> list[str]:
        """Return the lines of the request: what memory has, the messages before, and the numbered messages."""
        lines: list[str] = []
        if self._statements:
            lines.append("Memory so far:")
            lines += dict.fromkeys(
                f"- {fact_line(prior.subject, prior.predicate, prior.object)}" for prior in self._statements
            )
        earlier = [turn for turns in self._earlier.values() for turn in turns]
        if earlier:
            lines.append("Before:")
            lines += [
                f"- {label(turn.sent_at, turn.speaker, is_assistant=turn.role == 'assistant')}"
                f"{turn.text[:_EARLIER_CHARS_MAX]}"
                for turn in earlier
            ]
        lines.append("Read these lines:")
        session_id = self._messages[0].session_id if self._messages else None
        for number, message in enumerate(self._messages, start=1):
            if message.session_id != session_id:
                lines.append("Another conversation:")
                session_id = message.session_id
            prefix = label(message.sent_at, message.speaker, is_assistant=message.is_assistant)
            lines.append(f"[{number}] {prefix}{message.text}")
        return lines

    def message(self, number: int) -> IncomingMessage | None:
        """Return the message of a line; None when the model invented the line."""
        return self._messages[number - 1] if number <= len(self._messages) else None

    def own(self, number: int) -> Evidence:
        """Return the evidence for what the speaker of a line states: the line, and a proposal that it confirms."""
        return self._of("own", number, lambda: [self._confirmed(number), _source(self._messages[number - 1])])

    def answered(self, number: int) -> Evidence:
        """Return the evidence for what a line is about: the line and the message before it, which it may answer."""
        return self._of("answered", number, lambda: [self._before(number), _source(self._messages[number - 1])])

    def so_far(self, number: int) -> Evidence:
        """Return the evidence for names: the conversation up to a line, and its speakers."""
        return self._of("so far", number, lambda: self._lines_before(number + 1, of=number))

    def confirms(self, number: int) -> bool:
        """Return whether a line confirms a question or a proposal before it."""
        return len(self.own(number).lines) > 1

    @cached_property
    def remembered(self) -> Evidence:
        """Return the evidence of what memory has."""
        return Evidence(
            [
                SourceLine(prior.speaker, fact_line(prior.subject, prior.predicate, prior.object), datetime.min)
                for prior in self._statements
            ]
        )

    def has_user(self) -> bool:
        """Return whether a user wrote one of the messages."""
        return any(not message.is_assistant for message in self._messages)

    def _confirmed(self, number: int) -> SourceLine | None:
        """Return the question or proposal that a line confirms; None without one."""
        message, before = self._messages[number - 1], self._before(number)
        if before is None or message.is_assistant or not _CONFIRMATION.match(message.text):
            return None
        asking = [part for part in split_sentences(before.text) if is_question(part)]
        return before._replace(text=" ".join(asking)) if asking else None

    def _before(self, number: int) -> SourceLine | None:
        """Return the message of another speaker before a line, in its session; None without one."""
        lines = self._lines_before(number, of=number)
        return lines[-1] if lines and lines[-1].speaker != self._messages[number - 1].speaker else None

    def _lines_before(self, end: int, *, of: int) -> list[SourceLine]:
        """Return the lines before the number `end` in the session of the line `of`, with the turns before them."""
        session_id = self._messages[of - 1].session_id
        lines = [_source(message) for message in self._messages[: end - 1] if message.session_id == session_id]
        return [*self._turns(session_id), *lines]

    def _of(self, kind: str, number: int, lines: Callable[[], Sequence[SourceLine | None]]) -> Evidence:
        """Return the evidence of a kind for a line; make it at the first call."""
        evidence = self._evidence.get((kind, number))
        if evidence is None:
            evidence = Evidence([line for line in lines() if line is not None])
            self._evidence[kind, number] = evidence
        return evidence

    def _turns(self, session_id: str | None) -> list[SourceLine]:
        return [
            SourceLine(turn.speaker, turn.text[:_EARLIER_CHARS_MAX], turn.sent_at)
            for turn in self._earlier.get(session_id, ())
        ]


def _source(message: IncomingMessage) -> SourceLine:
    return SourceLine(message.speaker, message.text, message.sent_at)
