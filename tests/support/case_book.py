"""The case book: eight long conversations, each with questions, facts, days and instructions written before any run."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

FOLDER = Path(__file__).parents[1] / "data" / "case_book"
#: Classes of questions that memory must answer with nothing; "chat" is a turn of the conversation.
SILENT = ("unanswerable", "chat")
_SPAN = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?")


class Message(BaseModel):
    """A turn of the conversation."""

    model_config = ConfigDict(extra="forbid")

    at: AwareDatetime
    session: str
    role: Literal["user", "assistant"]
    #: None for the assistant.
    speaker: str | None = None
    text: str
    #: Every day (`2025-03-12`) or span of days (`2025-03-01..2025-03-31`) that may be shown with the message.
    days: list[str] = Field(default_factory=list[str])

    def spans(self) -> list[tuple[date, date]]:
        """Return the days as first and last day, with the day of the message in the speaker's zone."""
        spans = [(self.at.date(), self.at.date())]
        for text in self.days:
            match = _SPAN.fullmatch(text)
            if match is None:
                raise ValueError(f"{text!r} is not a day or a span of days")
            spans.append((date.fromisoformat(match[1]), date.fromisoformat(match[2] or match[1])))
        return spans


class Question(BaseModel):
    """A question to the memory after the last message."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    group: str = Field(alias="class")
    speaker: str
    query: str
    #: In the context: one string of each list.
    has: list[list[str]] = Field(default_factory=list[list[str]])
    #: Not in the context: strings of lines that do not matter to the question.
    lacks: list[str] = Field(default_factory=list[str])
    #: Earlier values: absent, or of a lower rank than an item with a string of `has`.
    old: list[str] = Field(default_factory=list[str])
    #: What the speaker asked to forget.
    forgotten: list[str] = Field(default_factory=list[str])
    max_items: int | None = None

    @property
    def is_silent(self) -> bool:
        """Return whether the memory must answer with nothing."""
        return self.group in SILENT


class Statement(BaseModel):
    """An important fact: one line of knowledge holds one string of each list."""

    model_config = ConfigDict(extra="forbid")

    statement: str
    words: list[list[str]]


class Instruction(Statement):
    """What a speaker asked of the assistant; it holds at the end, or was withdrawn."""

    speaker: str
    holds: bool


class Conversation(BaseModel):
    """A conversation with what was written about it before any run."""

    model_config = ConfigDict(extra="forbid")

    title: str
    events: list[Message]
    questions: list[Question]
    facts: list[Statement]
    instructions: list[Instruction]
    #: Strings of what a speaker asked to forget: in no context.
    forgotten: list[str]


def read_case_book(part: str = "*") -> dict[str, Conversation]:
    """Return the conversations of a part (`given`, `blind`, `*` for both) by file name, in the order of the names."""
    files = sorted(FOLDER.glob(f"{part}/*.json"), key=lambda file: file.stem)
    return {file.stem: Conversation.model_validate_json(file.read_bytes()) for file in files}


def holds(text: str, part: str) -> bool:
    """Return whether a text has a string, from the beginning of a word; a number is not part of a longer one."""
    begin = r"(?<!\w)" if part[0].isalnum() else ""
    end = r"(?!\w)" if part[-1].isdigit() else ""
    return re.search(begin + re.escape(part.casefold()) + end, text.casefold()) is not None


def holds_each(text: str, groups: list[list[str]]) -> bool:
    """Return whether a text has one string of each list."""
    return all(any(holds(text, part) for part in group) for group in groups)
