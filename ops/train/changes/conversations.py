"""Whole conversations whose changes are marked: the pairs of their sentences, as the product compares them.

The marks say which pairs are changes. Conversations of `../../../shared/data` have no marks, and all their pairs
count as unchanged: of 206 pairs that looked like changes and were judged, 204 were not.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson
from labelled_pairs import LabelledPairs
from lives import FOLDER as LIVES
from lives import Life, read_lives

from recollect import Recollect
from recollect.jobs.extraction import comparison, extraction_job
from recollect.jobs.extraction.comparison import Pairs, embedded_text
from recollect.projections.embeddings.reading_encoder import LOAD_SECONDS_MAX
from recollect.projections.queries.knowledge_queries import PriorStatement

sys.path.append(str(Path(__file__).parents[1] / "relevance"))
# The modules of `../relevance`.
labelled_chats: Any = import_module("labelled_chats")
given_conversations: Any = import_module("given_conversations")
_FOLDER = Path(__file__).parent
#: The folder of the given conversations.
GIVEN = Path(__file__).parents[4] / "shared" / "data"
MARKED = _FOLDER / "marked"
#: Memories of FriendsQA that are read, and given conversations that are held out.
_FRIENDS = tuple(f"friendsqa-{number}" for number in range(8))
GIVEN_HELD_OUT = ("locomo-conv-30", "locomo-conv-43", "friendsqa-6", "friendsqa-7")
#: Shares of the words of a mark that a sentence, a statement, and the message of a statement have.
_SENTENCE_SHARE, _STATEMENT_SHARE, _SOURCE_SHARE = 0.6, 0.5, 0.8
_WORD = re.compile(r"[^\W_]+")


class Conversation(NamedTuple):
    """A conversation with its events."""

    name: str
    events: Sequence[Mapping[str, Any]]

    @property
    def namespace(self) -> str:
        """Return the namespace that it is loaded into."""
        return f"conversation-{self.name.replace('_', '-')}"


class Mark(NamedTuple):
    """A change in a conversation."""

    #: Numbers of the messages, and their words.
    later: int
    later_words: str
    earlier: int
    earlier_words: str
    relation: str


def marks(file: Path) -> dict[str, list[Mark]]:
    """Return the changes of each conversation of a file."""
    read: defaultdict[str, list[Mark]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        chat, later, later_words, relation, earlier, earlier_words, _ = line.split(" | ")
        # A plan that was carried out is over.
        relation = "ends" if relation == "done" else relation
        read[chat].append(Mark(int(later), later_words, int(earlier), earlier_words, relation))
    return read


def judged() -> dict[tuple[str, str, str], bool | None]:
    """Return the pairs that were judged by eye: conversation, statement, sentence; None: it cannot be told."""
    rows = map(orjson.loads, (MARKED / "judged.jsonl").read_bytes().splitlines())
    return {(row["chat"], row["earlier"], row["later"]): row["changes"] for row in rows}


class Labels:
    """Which pairs of a conversation are a change.

    Parameters:
        chat: the conversation.
        marks: its changes.
        judged: as `judged` returns them.
    """

    def __init__(
        self, chat: Conversation, marks: Sequence[Mark], judged: Mapping[tuple[str, str, str], bool | None]
    ) -> None:
        self._name, self._marks, self._judged = chat.name, marks, judged
        self._words = {
            int(event["id"].rpartition(":")[2]): _words(event["payload"]["text"])
            for event in chat.events
            if event["payload"]["role"] == "user"
        }

    def of(self, message: int, sentence: str, prior: PriorStatement) -> str | None:
        """Return what a sentence of a message does to a statement; None: it cannot be told."""
        marked = self._marked(message, sentence, prior)
        key = (self._name, embedded_text(prior), sentence)
        if key not in self._judged:
            return marked
        is_change = self._judged[key]
        if is_change:
            return "replaces" if marked in ("none", None) else marked
        return None if is_change is None or marked != "none" else "none"

    def _marked(self, message: int, sentence: str, prior: PriorStatement) -> str | None:
        marks = [mark for mark in self._marks if mark.later == message]
        if not marks:
            return "none"
        words = _words(prior.object)
        sources = {number for number, said in self._words.items() if number < message and _share(words, said)}
        about = [mark for mark in marks if mark.earlier in sources]
        relations = [
            mark.relation
            for mark in about
            if _overlap(mark.earlier_words, prior.object) >= _STATEMENT_SHARE
            and _overlap(mark.later_words, sentence) >= _SENTENCE_SHARE
        ]
        # Otherwise another sentence of the message changes it, or another statement of its message is changed.
        return relations[0] if relations else None if about else "none"


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _share(words: frozenset[str], said: frozenset[str]) -> bool:
    return len(words & said) >= max(1, _SOURCE_SHARE * len(words))


def _overlap(one: str, other: str) -> float:
    first, second = _words(one), _words(other)
    return len(first & second) / max(1, min(len(first), len(second)))


def read_conversations(chats: Sequence[Conversation], marked: Mapping[str, Sequence[Mark]]) -> list[LabelledPairs]:
    """Return the sentences of conversations, as the product compares them; without marks they change nothing."""
    by_eye = judged()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(LOAD_SECONDS_MAX)
        return [it for chat in chats for it in _compared(memory, chat, Labels(chat, marked.get(chat.name, ()), by_eye))]


def _compared(memory: Recollect, chat: Conversation, labels: Labels) -> list[LabelledPairs]:
    """Return the sentences of a conversation that the product compares with statements."""
    sentences: list[LabelledPairs] = []
    message = 0
    extract, compare = extraction_job.extract_by_rules, comparison.compared

    def extracting(read: Any, *rest: Any, **named: Any) -> Any:
        nonlocal message
        message = int(re.findall(r"\d+", read.event_id)[-1])
        yield from extract(read, *rest, **named)

    def comparing(pairs: Pairs, *rest: Any) -> Any:
        relations = [labels.of(message, pairs.sentence, prior) for prior in pairs.own]
        sentences.append(LabelledPairs(chat.name, pairs, relations))
        return compare(pairs, *rest)

    with (
        patch.object(extraction_job, "extract_by_rules", extracting),
        patch.object(comparison, "compared", comparing),
    ):
        for event, following in zip(chat.events, [*chat.events[1:], None], strict=True):
            memory.append(chat.namespace, event)
            if following is None or following["session_id"] != event["session_id"]:
                memory.settle(chat.namespace, now=datetime.fromisoformat(event["occurred_at"]) + timedelta(hours=1))
    return sentences


def conversations_of(name: str) -> list[Conversation]:
    """Return the chats of a set: `chats`, those of `../relevance`, or of a folder of chats here."""
    folder = labelled_chats.CHATS if name == "chats" else _FOLDER / name
    return [Conversation(chat.name, chat.events) for chat in labelled_chats.read_chats(folder)]


def given_conversations_of(folder: Path) -> list[Conversation]:
    """Return the given conversations that are read; none where their folder is absent."""
    chats = given_conversations.given_chats(folder) if folder.is_dir() else ()
    return [Conversation(it.name, it.events) for it in chats if it.set_name == "locomo" or it.name in _FRIENDS]


def marked_chats(name: str) -> list[LabelledPairs]:
    """Return the sentences of the chats of a set, as `conversations_of` names it."""
    return read_conversations(conversations_of(name), marks(MARKED / f"{name}.txt"))


def given_chats(folder: Path) -> list[LabelledPairs]:
    """Return the sentences of given conversations; none where their folder is absent."""
    return read_conversations(given_conversations_of(folder), {})


def lives(*, held_out: bool) -> list[LabelledPairs]:
    """Return the sentences of the lives that are trained on, or of those that are held out."""
    paths = [path for path in sorted(LIVES.glob("*.txt")) if (path.stem == "held-out") == held_out]
    read = [life for path in paths for life in read_lives(path)]
    return read_conversations([*map(_of_life, read)], {life.voice: [*_marks_of(life)] for life in read})


def _of_life(life: Life) -> Conversation:
    """Return a life as a conversation, whose messages are numbered from 1."""
    events: list[dict[str, Any]] = []
    for number, (speaker, text, at, session) in enumerate(life.messages, start=1):
        payload = {"role": "user" if speaker else "assistant", "text": text}
        payload |= {"name": speaker} if speaker else {}
        message = {"id": f"{life.voice}:{number}", "type": "message.added", "payload": payload}
        events.append(message | {"occurred_at": at.isoformat(), "session_id": f"{life.voice} {session}"})
    return Conversation(life.voice, events)


def _marks_of(life: Life) -> Iterator[Mark]:
    """Yield the changes of a life: of what was said last of a thing, wherever it was said in these words."""
    for claim, older in life.changes():
        relation = claim.relation or "replaces"
        for said in older:
            if said.words == older[-1].words and said.message != claim.message:
                yield Mark(claim.message + 1, claim.words, said.message + 1, said.words, relation)
