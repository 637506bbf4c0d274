"""Conversations: events with questions that they answer, read from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson

from recollect.events.errors import InvalidInput


class Conversation(NamedTuple):
    """A conversation, and questions that it answers."""

    #: The name of the conversation.
    name: str
    #: The data set: the file's name up to the first ``-``.
    set_name: str
    #: Events in the form of the catalogue.
    events: list[dict[str, Any]]
    #: Questions with ``query``, ``category``, ``gold`` and ``gold_sessions``.
    questions: list[dict[str, Any]]

    @property
    def namespace(self) -> str:
        """Return the namespace that the conversation is loaded into."""
        return f"bench-{self.name}"


def read_conversation(file: Path) -> Conversation:
    """Read a conversation with its questions.

    Raises:
        InvalidInput: the file has another shape.
    """
    try:
        content = orjson.loads(file.read_bytes())
        questions = [question for question in content["questions"] if question["gold"] or question["gold_sessions"]]
        return Conversation(content["name"], file.stem.partition("-")[0], content["events"], questions)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a conversation with questions: {error}", field=str(file)) from error
