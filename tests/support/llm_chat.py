"""A chat of Ann with an assistant, read by a model that says what its script says."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.events import message
from support.openai_server import OpenAiServer, openai_server, sensible

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import microseconds
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.llm_reading.reading_job import read_by_llm

# A Monday.
START = datetime(2026, 1, 5, 9, 12, tzinfo=UTC)
LATER_US = microseconds(START + timedelta(days=400))


class Chat:
    """The chat, its memory and the server of its model."""

    def __init__(self, data: Path, server: OpenAiServer) -> None:
        self._data = data
        self.server = server
        self._turns = 0
        self.memory = self._open()

    def _open(self) -> Recollect:
        settings = load_settings(data=self._data, embedding_model="none", llm="tiny", llm_base_url=self.server.url)
        return Recollect(settings=settings, workers=False)

    def restart(self) -> None:
        self.memory.close()
        self.memory = self._open()

    def read(
        self, turns: Sequence[str], script: Mapping[str, Sequence[str]], *, session_id: str = "s1"
    ) -> dict[str, Any]:
        """Append the turns, each `speaker: text`, and return the payload that the model's reading recorded."""
        self.server.behaviour = sensible(script)
        self.memory.append("a", [self._message(turn, session_id) for turn in turns])
        context = self.memory.parts.job_context
        extract(context, "a", LATER_US)
        read_by_llm(context, "a", LATER_US)
        last = self.memory.parts.log.read("a", after=0, limit=1_000)[-1]
        return last.data() if last.type == "facts.extracted" else {}

    def _message(self, turn: str, session_id: str) -> dict[str, Any]:
        speaker, text = turn.split(": ", 1)
        self._turns += 1
        role = "assistant" if speaker == "assistant" else "user"
        name = None if role == "assistant" else speaker
        sent_at = START + timedelta(minutes=self._turns)
        return message(text, role=role, name=name, session_id=session_id, occurred_at=sent_at)


@contextmanager
def llm_chat(data: Path) -> Generator[Chat]:
    with openai_server() as server:
        chat = Chat(data, server)
        yield chat
        chat.memory.close()


def sentences(payload: Mapping[str, Any]) -> list[str]:
    """Return the facts of a payload as sentences."""
    return [f"{item['subject']} {item['predicate']} {item['object']}" for item in payload.get("facts", ())]
