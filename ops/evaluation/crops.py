"""Crops: short memories cut out of long conversations.

A ranking that is good in conversations of hundreds of messages may fail in a memory of ten.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.conversations import Conversation
from evaluation.scores import ADVERSARIAL

#: Messages of a crop, and crops of that size from one conversation. Small ones are more, since each has few questions.
CROPS: Mapping[int, int] = {8: 12, 16: 8, 32: 6, 64: 4, 128: 2, 256: 1}
#: The share of a conversation that a crop may have at most; more is nearly the whole.
_CROP_SHARE_MAX = 0.8
#: Questions that are asked to one crop.
_QUESTIONS_MAX = 6


def crops(conversation: Conversation) -> Iterator[tuple[int, Conversation]]:
    """Yield (messages, crop): adjacent messages with the evidence of a question, and the questions they answer."""
    # Reproducible: the same conversation has the same crops.
    chance = random.Random(conversation.name)
    spans = _evidence_spans(conversation)
    for size, count in CROPS.items():
        answerable = [(question, span) for question, span in spans if span[1] - span[0] < size]
        if not answerable or size > _CROP_SHARE_MAX * len(conversation.events):
            continue
        for number in range(count):
            wanted, (first, last) = chance.choice(answerable)
            earliest = max(0, last - size + 1)
            start = chance.randint(earliest, max(earliest, min(first, len(conversation.events) - size)))
            others = [
                question
                for question, (begin, end) in spans
                if start <= begin and end < start + size and question is not wanted
            ]
            chance.shuffle(others)
            yield (
                size,
                conversation._replace(
                    name=f"{conversation.name}-crop-{size}-{number}",
                    events=conversation.events[start : start + size],
                    questions=[wanted, *others[: _QUESTIONS_MAX - 1]],
                ),
            )


def _evidence_spans(conversation: Conversation) -> list[tuple[dict[str, Any], tuple[int, int]]]:
    """Return the questions with the positions of the first and the last message of their evidence."""
    position = {event["id"]: index for index, event in enumerate(conversation.events)}
    spans: list[tuple[dict[str, Any], tuple[int, int]]] = []
    for question in conversation.questions:
        if question["gold"]:
            places = [position[id] for id in question["gold"] if id in position]
        else:
            sessions = set(question["gold_sessions"])
            places = [index for index, event in enumerate(conversation.events) if event.get("session_id") in sessions]
        if places and str(question["category"]) != ADVERSARIAL:
            spans.append((question, (min(places), max(places))))
    return spans


def copy_vectors(source: Path, target: Path) -> None:
    """Copy the vectors of a conversation for its crop, whose texts are mostly the same; without what is embedded."""
    if target.exists() or not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(source) as read, sqlite3.connect(target) as written:
        read.backup(written)
        written.execute("DELETE FROM embedded")
        written.execute("DELETE FROM embeddings")
