"""Labelled chats: conversations of `chats/`, with questions and turns, and the messages that belong to each."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

CHATS = Path(__file__).parent / "chats"
_ASKS = Path(__file__).parent / "asks"
_HELD_OUT_ASKS = "held-out"
_MESSAGE = re.compile(r"(?P<number>\d+) (?P<speaker>\S+) (?P<text>.*?)(?: ~ (?P<helps>-|[\d ,]+))?")
_ASKED = re.compile(r"(?P<kind>[?!]) (?:\[(?P<speaker>[^\]]{1,30})\] )?(?P<query>.*) = (?P<gold>-|G|[\d ,]+)")
_BOTS = ("b", "bot")
#: Messages of the crops of chats, by turns: a memory is small at first.
_CROP_MESSAGES = (4, 7, 11, 18)
#: Questions without an answer that are asked to a crop.
_CROP_UNANSWERED = 4
#: Messages before a turn that the prompt holds already.
_VISIBLE = 20


class Asked(Struct, frozen=True, kw_only=True):
    """A question to a memory, or a turn of a conversation."""

    query: str
    #: Ids of the messages that belong to the answer, or that help to reply; empty: none does.
    gold: tuple[str, ...]
    is_turn: bool = False
    #: Whether general knowledge answers it, and it is near to what was said.
    is_near_general: bool = False
    speaker: str | None = None
    #: The id of the message that is the turn; None: it comes after the last one.
    at: str | None = None
    #: Only what was said before this time.
    until: str | None = None


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation with what was asked."""

    name: str
    set_name: str
    events: Sequence[dict[str, Any]]
    asked: Sequence[Asked]

    @property
    def namespace(self) -> str:
        """Return the namespace that the chat is loaded into."""
        return f"chat-{self.name}"

    def visible(self, turn: Asked) -> list[int]:
        """Return the versions of a turn and of the messages just before it in its session."""
        place = next((place for place, event in enumerate(self.events) if event["id"] == turn.at), None)
        if place is None:
            return []
        session = self.events[place]["session_id"]
        nearby = range(max(0, place - _VISIBLE), place + 1)
        return [at + 1 for at in nearby if self.events[at]["session_id"] == session]


class AskLine(NamedTuple):
    """A message as people type it to an assistant."""

    text: str
    #: Whether what is remembered helps; otherwise general knowledge answers, or the message itself.
    asks_memory: bool
    #: The name of the file.
    writer: str


@cache
def read_asks(*, held_out: bool) -> Sequence[AskLine]:
    """Return the lines of `asks/`: those of the held-out writers, or those of the others.

    Raises:
        ValueError: a line begins neither with `M|` nor with `G|`.
    """
    return [
        _ask_line(file, line)
        for file in sorted(_ASKS.glob("*.txt"))
        if file.stem.startswith(_HELD_OUT_ASKS) == held_out
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def _ask_line(file: Path, line: str) -> AskLine:
    kind, bar, text = line.partition("|")
    if not bar or kind not in ("M", "G"):
        raise ValueError(f"{file}: neither M nor G: {line!r}")
    return AskLine(text, kind == "M", file.stem)


def read_chats(folder: Path = CHATS) -> list[Chat]:
    """Return the chats of a folder.

    Raises:
        ValueError: a line has no form that `README.md` names, or a label names no message.
    """
    return [_chat(file) for file in sorted(folder.glob("*.txt"))]


def _chat(file: Path) -> Chat:
    """Return the chat of a file."""
    events: list[dict[str, Any]] = []
    asked: list[Asked] = []
    at, session = datetime.min.replace(tzinfo=UTC), 0
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            at, session = datetime.fromisoformat(line[2:18]).replace(tzinfo=UTC), session + 1
        elif match := _ASKED.fullmatch(line.rstrip()):
            is_turn, gold = match["kind"] == "!", _ids(file.stem, match["gold"])
            question = Asked(query=match["query"], gold=gold, is_turn=is_turn, speaker=match["speaker"])
            asked.append(replace(question, is_near_general=match["gold"] == "G"))
        elif match := _MESSAGE.fullmatch(line.rstrip()):
            at += timedelta(minutes=1)
            payload = {"role": "assistant" if match["speaker"] in _BOTS else "user", "text": match["text"]}
            if match["speaker"] not in ("u", *_BOTS):
                payload["name"] = match["speaker"]
            id = f"{file.stem}:{match['number']}"
            events.append(_message(id, payload, at, f"{file.stem}-{session}"))
            if match["helps"]:
                gold = _ids(file.stem, match["helps"])
                turn = Asked(query=match["text"], gold=gold, is_turn=True, speaker=payload.get("name"), at=id)
                asked.append(replace(turn, until=at.isoformat()))
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{file}: neither a message nor a question: {line!r}")
    missing = {id for one in asked for id in one.gold} - {event["id"] for event in events}
    if missing:
        raise ValueError(f"{file}: labels name no message: {sorted(missing)}")
    return Chat(name=file.stem, set_name="chats", events=events, asked=asked)


def _ids(name: str, numbers: str) -> tuple[str, ...]:
    return tuple(f"{name}:{number}" for number in re.findall(r"\d+", numbers))


def _message(id: str, payload: dict[str, Any], at: datetime, session: str) -> dict[str, Any]:
    time = at.isoformat()
    return {"id": id, "type": "message.added", "occurred_at": time, "session_id": session, "payload": payload}


def crop_of(chat: Chat, number: int) -> Chat:
    """Return some consecutive messages of a chat, with what they answer, and questions that they do not."""
    chance = random.Random(chat.name)
    size = _CROP_MESSAGES[number % len(_CROP_MESSAGES)]
    start = chance.randrange(max(1, len(chat.events) - size))
    events = chat.events[start : start + size]
    ids = {event["id"] for event in events}
    inside = [one for one in chat.asked if ids.issuperset(one.gold)]
    turns = [one for one in inside if one.is_turn and (one.at is None or one.at in ids)]
    questions = [one for one in chat.asked if not one.is_turn and one.gold]
    answered = [one for one in inside if one.gold and not one.is_turn]
    others = [replace(one, gold=()) for one in questions if ids.isdisjoint(one.gold)]
    unanswered = chance.sample(others, min(_CROP_UNANSWERED, len(others)))
    general = [one for one in chat.asked if one.is_near_general]
    asked = [*answered, *unanswered, *general, *turns]
    return Chat(name=f"{chat.name}-crop", set_name="crops", events=events, asked=asked)
