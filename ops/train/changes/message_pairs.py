"""Message pairs: messages beside the last ones of their speaker in the session, and what they do to each of these.

`jobs/extraction/corrected_messages.py` reads such pairs. Given conversations have no marks: their pairs count as none.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from conversations import MARKED, Conversation, Mark, conversations_of, given_conversations_of, marks
from labelled_pairs import ReadRelations, groups
from odds import report

from recollect.jobs.extraction.comparison import CHANGES
from recollect.jobs.extraction.conversation_state import LAST_MAX

#: Last messages of the speaker: one more than the product reads, for more examples.
_BEFORE_MAX = LAST_MAX + 1


class MessagePair(NamedTuple):
    """A message with an earlier one."""

    #: The conversation, and the number of the message in it.
    source: str
    place: int
    earlier: str
    later: str
    relation: str
    #: 1: the last message of its speaker, 2: the one before that.
    distance: int


def marked_pairs(name: str) -> list[MessagePair]:
    """Return the pairs of the chats of a set, as `conversations.marked_chats` names it."""
    changes = marks(MARKED / f"{name}.txt")
    return [pair for chat in conversations_of(name) for pair in _pairs(chat, changes.get(chat.name, ()))]


def given_pairs(folder: Path) -> list[MessagePair]:
    """Return the pairs of given conversations; none where their folder is absent."""
    return [pair for chat in given_conversations_of(folder) for pair in _pairs(chat, ())]


def _pairs(chat: Conversation, changes: Sequence[Mark]) -> Iterator[MessagePair]:
    relations = {(mark.later, mark.earlier): mark.relation for mark in changes}
    last: defaultdict[tuple[str, str], deque[tuple[int, str]]] = defaultdict(lambda: deque(maxlen=_BEFORE_MAX))
    for place, event in enumerate(chat.events):
        payload, number = event["payload"], int(event["id"].rpartition(":")[2])
        if payload["role"] != "user":
            continue
        before = last[event["session_id"], payload.get("name", "")]
        for distance, (earlier, text) in enumerate(reversed(before), start=1):
            relation = relations.get((number, earlier), "none")
            yield MessagePair(chat.name, place, text, payload["text"], relation, distance)
        before.append((number, payload["text"]))


def report_messages(title: str, pairs: Sequence[MessagePair], read: ReadRelations) -> None:
    """Print what the product finds: of each message, the likeliest change of the last ones of its speaker."""
    near = [it for it in pairs if it.distance <= LAST_MAX]
    texts = [(it.earlier, it.later) for it in near]
    changes = (change for some in groups(texts) for change in read(some)[:, CHANGES].sum(axis=1).tolist())
    likeliest: dict[tuple[str, int], tuple[float, bool]] = {}
    changing = {(it.source, it.place) for it in near if it.relation != "none"}
    for it, change in zip(near, changes, strict=True):
        message = (it.source, it.place)
        likeliest[message] = max(likeliest.get(message, (0.0, False)), (change, it.relation != "none"))
    # A message of which another pair is the likeliest one is missed.
    missed = sum(not likeliest[message][1] for message in changing)
    rows = [*likeliest.values(), *[(0.0, True)] * missed]
    report(title, np.array([change for change, _ in rows]), np.array([is_change for _, is_change in rows]))
