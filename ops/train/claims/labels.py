"""Labelled claims: sentences that a language model might write of the lines of chats, right ones and wrong ones.

A line of a file is `+ LINE | SENTENCE | WORDS` or `- LINE | SENTENCE | WORDS | KIND`: the number of a message of the
chat of the same name, what it is said to say, the words of it that are quoted, and the kind of the mistake.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement

_FOLDER = Path(__file__).parent
sys.path.append(str(_FOLDER.parent / "relevance"))
# A module of `../relevance`.
labelled_chats: Any = import_module("labelled_chats")
#: The second of each has short sentences of one fact.
LABELS = (_FOLDER / "labels", _FOLDER / "labels-short")
HELD_OUT = (_FOLDER / "held-out", _FOLDER / "held-out-short")
HELD_OUT_CHATS = _FOLDER.parent / "changes" / "held-out-chats"
#: Answers that were written by hand for whole conversations, which are in the same files.
ANSWERS = _FOLDER.parents[1] / "llm"
#: Messages before and after the line of a claim that its window has.
_BEFORE, _AFTER = 12, 3
#: The name of a speaker whom the chat does not name: the first word of so many of the right sentences.
_NAME_SHARE = 0.3
_ARTICLES = ("The", "Der", "Die", "Das", "A", "In")
_ANSWER_LINE = re.compile(r"\d+ (?P<speaker>\w+): (?P<text>.*)")


class Claim(NamedTuple):
    """A sentence about a line, and whether the line says it."""

    chat: str
    statement: LlmStatement
    conversation: LlmConversation
    is_right: bool


def read_claims(folder: Path, chats: Path = labelled_chats.CHATS) -> Iterator[Claim]:
    """Yield the claims of the files of a folder.

    Raises:
        ValueError: a line has another form, or names no message.
    """
    for chat in labelled_chats.read_chats(chats):
        file = folder / f"{chat.name}.txt"
        if file.exists():
            rows = file.read_text(encoding="utf-8").splitlines()
            messages = [_incoming(event, _name(rows)) for event in chat.events]
            places = {int(message.event_id.rpartition(":")[2]): at for at, message in enumerate(messages)}
            for row in rows:
                statement = _parsed(row, file)
                place = places.get(statement.line)
                if place is None:
                    raise ValueError(f"{file}: names no message: {row!r}")
                first = max(0, place - _BEFORE)
                window = LlmConversation(messages[first : place + _AFTER + 1], {})
                yield Claim(chat.name, replace(statement, line=place - first + 1), window, row[0] == "+")


def read_answers(file: Path) -> Iterator[Claim]:
    """Yield the claims of a file of answers, which begins each conversation with `=== DAY` and has its lines."""
    messages: list[IncomingMessage] = []
    start = datetime.min.replace(tzinfo=UTC)
    for row in file.read_text(encoding="utf-8").splitlines():
        if row.startswith("==="):
            messages, start = [], datetime.fromisoformat(row[8:]).replace(tzinfo=UTC)
        elif match := _ANSWER_LINE.fullmatch(row):
            sent_at = start + timedelta(minutes=len(messages))
            messages.append(_message(f"m{len(messages)}", "s1", match["speaker"], match["text"], sent_at))
        elif row[:2] in ("+ ", "- "):
            number, text, words, kind = (part.strip() for part in row[2:].split("|"))
            statement = LlmStatement(line=int(number), text=text, words=words, kind=kind)
            yield Claim(file.stem, statement, LlmConversation(messages, {}), row[0] == "+")


def _parsed(row: str, file: Path) -> LlmStatement:
    parts = [part.strip() for part in row[2:].split("|")]
    if row[:2] not in ("+ ", "- ") or len(parts) not in (3, 4) or not parts[0].isdigit():
        raise ValueError(f"{file}: no claim: {row!r}")
    return LlmStatement(line=int(parts[0]), text=parts[1], words=parts[2])


def _name(rows: Sequence[str]) -> str:
    """Return by which name the right sentences call the speaker of a chat of one person."""
    firsts = [row.split("|")[1].split()[0] for row in rows if row.startswith("+ ")]
    names = Counter(re.sub(r"['’]s$", "", first.strip(".,")) for first in firsts if first[:1].isupper())
    common = [(name, count) for name, count in names.most_common() if name not in _ARTICLES]
    return common[0][0] if common and common[0][1] >= _NAME_SHARE * len(firsts) else "user"


def _incoming(event: Mapping[str, Any], name: str) -> IncomingMessage:
    payload = event["payload"]
    speaker = "assistant" if payload["role"] == "assistant" else payload.get("name", name)
    return _message(
        event["id"], event["session_id"], speaker, payload["text"], datetime.fromisoformat(event["occurred_at"])
    )


def _message(id: str, session: str, speaker: str, text: str, sent_at: datetime) -> IncomingMessage:
    is_assistant = speaker == "assistant"
    return IncomingMessage(
        event_id=id, session_id=session, speaker=speaker, text=text, sent_at=sent_at, is_assistant=is_assistant
    )
