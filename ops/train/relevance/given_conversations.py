"""Given conversations: those of `../shared`: long ones, dialogues joined to memories of sessions, and small cases.

`given_turns.jsonl` has, for some turns of the long ones, the ids of the messages that help to reply, by five readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from labelled_chats import Asked, Chat

#: Dialogues of one memory.
_SCENES = 12
_START = datetime(2025, 1, 5, 18, tzinfo=UTC)
#: Questions of LoCoMo about the wrong person: neither answered nor unknown.
_ADVERSARIAL = "5"
_TURNS = Path(__file__).with_name("given_turns.jsonl")
#: Events of a conversation of RealMem, whose turns alone are read: its evidence is marked by session.
_REALMEM_EVENTS = 900


def given_chats(folder: Path) -> Iterator[Chat]:
    """Yield the conversations of LoCoMo, BEAM and RealMem, memories of scenes of FriendsQA, and everyday cases.

    Parameters:
        folder: with the long conversations; the cases are in the folder `everyday` beside it.
    """
    for name in ("locomo", "beam"):
        for file in sorted(folder.glob(f"{name}-*.json")):
            content = orjson.loads(file.read_bytes())
            asked = [
                Asked(query=question["query"], gold=tuple(question["gold"]), until=question.get("until"))
                for question in content["questions"]
                if question["gold"] and not (name == "locomo" and str(question["category"]) == _ADVERSARIAL)
            ]
            events = content["events"]
            yield Chat(name=content["name"], set_name=name, events=events, asked=[*asked, *_turns(events)])
    for file in sorted(folder.glob("realmem-*.json")):
        content = orjson.loads(file.read_bytes())
        events = content["events"][:_REALMEM_EVENTS]
        if turns := _turns(events):
            yield Chat(name=content["name"], set_name="realmem", events=events, asked=turns)
    lines = (folder / "training" / "friendsqa.jsonl").read_bytes().splitlines()
    scenes = sorted((orjson.loads(line) for line in lines), key=lambda scene: scene["name"])
    for start in range(0, len(scenes), _SCENES):
        yield _memory_of_scenes(f"friendsqa-{start // _SCENES}", scenes[start : start + _SCENES])
    for file in sorted((folder.parent / "everyday").glob("cases-*.json")):
        yield from (_everyday_chat(case) for case in orjson.loads(file.read_bytes()))


@cache
def _labelled_turns() -> Mapping[str, Sequence[str]]:
    """Return the ids of the messages that help to reply to a turn, by the id of the turn."""
    lines = (orjson.loads(line) for line in _TURNS.read_bytes().splitlines())
    return {line["turn"]: line["helps"] for line in lines}


def _turns(events: Sequence[dict[str, Any]]) -> list[Asked]:
    """Return the labelled turns of a conversation."""
    return [
        Asked(
            query=event["payload"]["text"],
            gold=tuple(_labelled_turns()[event["id"]]),
            is_turn=True,
            at=event["id"],
            until=event["occurred_at"],
            speaker=event["payload"].get("name"),
        )
        for event in events
        if event["id"] in _labelled_turns()
    ]


def _memory_of_scenes(name: str, scenes: list[dict[str, Any]]) -> Chat:
    """Return scenes as sessions of one memory, three days apart."""
    events: list[dict[str, Any]] = []
    asked: list[Asked] = []
    for number, scene in enumerate(scenes):
        first, at = len(events), _START + timedelta(days=3 * number)
        for turn in scene["turns"]:
            at += timedelta(minutes=1)
            events.append(
                {
                    "id": f"{name}:{len(events)}",
                    "type": "message.added",
                    "occurred_at": at.isoformat(),
                    "session_id": f"{name}-{number}",
                    "payload": {"role": "user", "name": turn["speaker"], "text": turn["text"]},
                }
            )
        asked += [
            Asked(query=question["query"], gold=tuple(f"{name}:{first + place}" for place in question["gold"]))
            for question in scene["questions"]
            if question["gold"]
        ]
    return Chat(name=name, set_name="friendsqa", events=events, asked=asked)


def _everyday_chat(case: Mapping[str, Any]) -> Chat:
    """Return a case: of each ask, the messages with the words that its answer must have are the evidence."""
    events: list[dict[str, Any]] = []
    asked: list[Asked] = []
    for number, step in enumerate(case["steps"]):
        if "user" in step or "bot" in step:
            payload = {"role": "user" if "user" in step else "assistant", "text": step.get("user", step.get("bot"))}
            payload |= {"name": step["name"]} if "name" in step else {}
            id, session = f"{case['name']}-{number}", step.get("session", step["at"][:10])
            message = {"id": id, "type": "message.added", "occurred_at": step["at"]}
            events.append(message | {"session_id": session, "payload": payload})
        elif "ask" in step:
            wanted = [step["first"]] if "first" in step else step.get("has", [])
            words = [word.casefold() for one in wanted for word in one.split("|")]
            texts = {event["id"]: event["payload"]["text"].casefold() for event in events}
            gold = tuple(id for id, text in texts.items() if any(word in text for word in words))
            is_turn = "passive" in str(step.get("options"))
            if gold or step.get("silent"):
                asked.append(Asked(query=step["ask"], gold=gold, is_turn=is_turn, until=step["at"]))
    return Chat(name=f"everyday-{case['name']}", set_name="everyday", events=events, asked=asked)
