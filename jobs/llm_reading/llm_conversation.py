"""LLM conversation: the window that a language model reads, and the evidence that each line gives for a statement.

A line is evidence for what it states, with the line before, which it may answer. The lines of the window and before it
give names for pronouns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm.conversation_lines import label
from recollect.jobs.llm.grounding import SourceEvidence, SourceLine
from recollect.projections.queries.session_queries import EarlierTurn

#: Characters of an earlier message: enough for its names and its question.
_EARLIER_CHARS_MAX = 240


class LlmConversation:
    """The messages of one request, numbered from 1.

    Parameters:
        messages: the messages to read; they are cut to excerpts.
        earlier: the messages before them, by session.
    """

    def __init__(
        self, messages: Sequence[IncomingMessage], earlier: Mapping[str | None, Sequence[EarlierTurn]]
    ) -> None:
        self.messages = [message._replace(text=excerpt(message.text)) for message in messages]
        self._earlier = earlier
        #: The lines of each session, which have the names for its pronouns.
        self._sessions: dict[str | None, SourceEvidence] = {}
        self._lines: dict[int, SourceEvidence] = {}

    def lines(self) -> list[str]:
        """Return the lines of the request: the messages before, and the numbered messages."""
        lines: list[str] = []
        earlier = [turn for turns in self._earlier.values() for turn in turns]
        if earlier:
            lines.append("Before:")
            lines += [
                f"- {label(turn.sent_at, turn.speaker, is_assistant=turn.role == 'assistant')}"
                f"{turn.text[:_EARLIER_CHARS_MAX]}"
                for turn in earlier
            ]
        lines.append("Read these lines:")
        session_id = self.messages[0].session_id if self.messages else None
        for number, message in enumerate(self.messages, start=1):
            if message.session_id != session_id:
                lines.append("Another conversation:")
                session_id = message.session_id
            prefix = label(message.sent_at, message.speaker, is_assistant=message.is_assistant)
            lines.append(f"[{number}] {prefix}{message.text}")
        return lines

    def message(self, number: int) -> IncomingMessage | None:
        """Return the message of a line; None when the model invented the line."""
        return self.messages[number - 1] if 0 < number <= len(self.messages) else None

    def line(self, number: int) -> SourceEvidence:
        """Return the evidence for numbers and dates: the line, and the message before it, which it may answer."""
        if number not in self._lines:
            lines = [self._before(number), _source(self.messages[number - 1])]
            self._lines[number] = SourceEvidence([line for line in lines if line is not None])
        return self._lines[number]

    def session(self, number: int) -> SourceEvidence:
        """Return the evidence for names: all lines of the session of a line, with those before the window."""
        session_id = self.messages[number - 1].session_id
        if session_id not in self._sessions:
            self._sessions[session_id] = SourceEvidence(self.session_lines(session_id, len(self.messages)))
        return self._sessions[session_id]

    def has_user(self) -> bool:
        """Return whether a user wrote one of the messages."""
        return any(not message.is_assistant for message in self.messages)

    def _before(self, number: int) -> SourceLine | None:
        """Return the message of another speaker before a line, in its session; None without one."""
        message = self.messages[number - 1]
        lines = self.session_lines(message.session_id, number - 1)
        return lines[-1] if lines and lines[-1].speaker != message.speaker else None

    def session_lines(self, session_id: str | None, end: int) -> list[SourceLine]:
        """Return the lines of a session among the first `end` messages, after the turns before them."""
        turns = [
            SourceLine(turn.speaker, turn.text[:_EARLIER_CHARS_MAX], turn.sent_at)
            for turn in self._earlier.get(session_id, ())
        ]
        return [*turns, *(_source(message) for message in self.messages[:end] if message.session_id == session_id)]


def _source(message: IncomingMessage) -> SourceLine:
    return SourceLine(message.speaker, message.text, message.sent_at)
