"""Conversations: events with questions that they answer, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from recollect.events.errors import InvalidInput

#: Expected answers by the name of the conversation and the place of the question in it.
Answers = Mapping[str, Mapping[str, str]]


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


def read_answers(file: Path) -> Answers:
    """Read expected answers: `{"name of the conversation": {"place of the question, from 0": "answer"}}`.

    Raises:
        InvalidInput: the file has another shape.
    """
    try:
        content = orjson.loads(file.read_bytes())
        return {name: {str(place): str(answer) for place, answer in content[name].items()} for name in content}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InvalidInput(f"not a file of expected answers: {error}", field=str(file)) from error


def read_conversation(file: Path, answers: Answers | None = None) -> Conversation:
    """Read a conversation with its questions.

    Parameters:
        answers: the expected answers of its questions, where the file has none.

    Raises:
        InvalidInput: the file has another shape.
    """
    try:
        content = orjson.loads(file.read_bytes())
        for place, answer in (answers or {}).get(content["name"], {}).items():
            content["questions"][int(place)]["answer"] = answer
        questions = [question for question in content["questions"] if question["gold"] or question["gold_sessions"]]
        return Conversation(content["name"], file.stem.partition("-")[0], content["events"], questions)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InvalidInput(f"not a conversation with questions: {error}", field=str(file)) from error
