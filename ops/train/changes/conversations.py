"""Whole conversations: fits the weights of `jobs/extraction/change_odds.py` to conversations whose changes are marked.

The product reads each conversation; of the pairs of a sentence and an older statement that its encoder reads, the marks
say which are a change. Conversations of `../../../shared/data` have no marks: what seemed to be a change in them was
none, in 204 of 206 pairs that were judged, so that all their pairs count as none. The lives, in which things change
often and are said plainly, are fitted to as well.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import orjson
from lives import FOLDER as LIVES
from lives import Life, read_lives
from numpy.typing import NDArray

from recollect import Recollect
from recollect.jobs import extraction as package
from recollect.jobs.extraction import changes, comparison, extraction_job
from recollect.jobs.extraction.comparison import embedded_text
from recollect.projections.queries.knowledge_queries import PriorStatement

Floats = NDArray[np.float32]
sys.path.append(str(Path(__file__).parents[1] / "relevance"))
# The modules of `../relevance`, and a library that has no types.
labelled_chats: Any = import_module("labelled_chats")
given_conversations: Any = import_module("given_conversations")
linear_model: Any = import_module("sklearn.linear_model")
_FOLDER = Path(__file__).parent
_MARKED = _FOLDER / "marked"
HELD_OUT_CHATS = _FOLDER / "held-out-chats"
#: Chats whose speakers put slips right: `sorry 7 not 6`; held out, too.
_SLIPS = _FOLDER / "slips"
#: Memories of FriendsQA that are read, and given conversations that are held out.
_FRIENDS = tuple(f"friendsqa-{number}" for number in range(8))
_GIVEN_HELD_OUT = ("locomo-conv-30", "locomo-conv-43", "friendsqa-6", "friendsqa-7")
#: Shares of the words of a mark that a sentence, a statement, and the message of a statement have.
_SENTENCE_SHARE, _STATEMENT_SHARE, _SOURCE_SHARE = 0.6, 0.5, 0.8
_FOLDS = 5
#: Inverse strength of the L2 penalty.
_PENALTY = 0.01
_THRESHOLDS = (0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8)
_WORD = re.compile(r"[^\W_]+")
_MODEL_SECONDS_MAX = 120


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


@dataclass(slots=True)
class Pairs:
    """The pairs that the encoder read in conversations, one row each."""

    chats: list[str] = field(default_factory=list[str])
    #: Inputs of the logit.
    inputs: list[Floats] = field(default_factory=list[Floats])
    changes: list[bool] = field(default_factory=list[bool])

    def arrays(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the inputs, shape (pairs, inputs), and which are a change."""
        return np.stack(self.inputs), np.array(self.changes, np.bool_)


def marks(file: Path) -> dict[str, list[Mark]]:
    """Return the changes of each conversation of a file."""
    read: defaultdict[str, list[Mark]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        chat, later, later_words, _, earlier, earlier_words, _ = line.split(" | ")
        read[chat].append(Mark(int(later), later_words, int(earlier), earlier_words))
    return read


def judged() -> dict[tuple[str, str, str], bool | None]:
    """Return the pairs that were judged by eye: conversation, statement, sentence; None: it cannot be told."""
    rows = map(orjson.loads, (_MARKED / "judged.jsonl").read_bytes().splitlines())
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

    def of(self, message: int, sentence: str, prior: PriorStatement) -> bool | None:
        """Return whether a sentence of a message changes a statement; None: it cannot be told."""
        marked = self._marked(message, sentence, prior)
        key = (self._name, embedded_text(prior), sentence)
        if key not in self._judged:
            return marked
        is_change = self._judged[key]
        return None if is_change is False and marked else is_change

    def _marked(self, message: int, sentence: str, prior: PriorStatement) -> bool | None:
        marks = [mark for mark in self._marks if mark.later == message]
        if not marks:
            return False
        words = _words(prior.object)
        sources = {number for number, said in self._words.items() if number < message and _share(words, said)}
        about = [mark for mark in marks if mark.earlier in sources]
        if any(
            _overlap(mark.earlier_words, prior.object) >= _STATEMENT_SHARE
            and _overlap(mark.later_words, sentence) >= _SENTENCE_SHARE
            for mark in about
        ):
            return True
        # Another sentence of the message changes it, or another statement of its message is changed.
        return None if about else False


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _share(words: frozenset[str], said: frozenset[str]) -> bool:
    return len(words & said) >= max(1, _SOURCE_SHARE * len(words))


def _overlap(one: str, other: str) -> float:
    first, second = _words(one), _words(other)
    return len(first & second) / max(1, min(len(first), len(second)))


def read_pairs(chats: Sequence[Conversation], marked: Mapping[str, Sequence[Mark]]) -> Pairs:
    """Return the pairs that the product's encoder reads in conversations; all of those without marks are no change."""
    pairs, by_eye = Pairs(), judged()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(_MODEL_SECONDS_MAX)
        for chat in chats:
            labels = Labels(chat, marked.get(chat.name, ()), by_eye)
            for message, sentence, prior, row in _compared(memory, chat):
                is_change = labels.of(message, sentence, prior)
                if is_change is not None:
                    pairs.chats.append(chat.name)
                    pairs.inputs.append(row)
                    pairs.changes.append(is_change)
    return pairs


def _compared(memory: Recollect, chat: Conversation) -> list[tuple[int, str, PriorStatement, Floats]]:
    """Return the message, the sentence, the statement and the inputs of each pair that the encoder reads in a chat."""
    rows: list[tuple[int, str, PriorStatement, Floats]] = []
    message, said = 0, ""
    extract, compare, join = extraction_job.extract_by_rules, changes.compare, comparison.join_readings

    def extracting(read: Any, *rest: Any, **named: Any) -> Any:
        nonlocal message
        message = int(re.findall(r"\d+", read.event_id)[-1])
        yield from extract(read, *rest, **named)

    def comparing(sentence: str, *rest: Any) -> Any:
        nonlocal said
        said = sentence
        return compare(sentence, *rest)

    def joining(probabilities: Floats, by_encoder: Floats, own: Sequence[PriorStatement], inputs: Floats) -> None:
        for prior, is_read, row in zip(own, ~np.isnan(by_encoder[:, 0]), inputs, strict=True):
            if is_read and not prior.is_preference:
                rows.append((message, said, prior, row))
        join(probabilities, by_encoder, own, inputs)

    with (
        patch.object(extraction_job, "extract_by_rules", extracting),
        patch.object(changes, "compare", comparing),
        patch.object(comparison, "join_readings", joining),
    ):
        for event, following in zip(chat.events, [*chat.events[1:], None], strict=True):
            memory.append(chat.namespace, event)
            if following is None or following["session_id"] != event["session_id"]:
                memory.settle(chat.namespace, now=datetime.fromisoformat(event["occurred_at"]) + timedelta(hours=1))
    return rows


class Logit(NamedTuple):
    """A fitted logit: the weights of its inputs, and the bias."""

    weight: Floats
    bias: float

    def probabilities(self, inputs: Floats) -> NDArray[Any]:
        """Return the probability of a change of each row."""
        return 1 / (1 + np.exp(-(inputs @ self.weight + self.bias)))


def fitted(inputs: Floats, is_change: NDArray[np.bool_]) -> Logit:
    """Return a logit that is fitted to pairs; its inputs are standardised for the penalty only."""
    mean, deviation = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-6)
    model = linear_model.LogisticRegression(C=_PENALTY, max_iter=1_000).fit((inputs - mean) / deviation, is_change)
    weight = model.coef_[0] / deviation
    return Logit(weight.astype(np.float32), float(model.intercept_[0] - mean @ weight))


def train_odds(given: Path, *, writes: bool) -> None:
    """Fit the change odds, print the figures of what is held out, and write the weights into the package."""
    own = read_pairs(_conversations(labelled_chats.CHATS), marks(_MARKED / "chats.txt"))
    held_out = read_pairs(_conversations(HELD_OUT_CHATS), marks(_MARKED / "held-out-chats.txt"))
    slips = read_pairs(_conversations(_SLIPS), marks(_MARKED / "slips.txt"))
    others = read_pairs([*_given(given)], {})
    lives = [life for path in sorted(LIVES.glob("*.txt")) if path.stem != "held-out" for life in read_lives(path)]
    of_lives = read_pairs([*map(_of_life, lives)], {life.voice: [*_marks_of(life)] for life in lives})
    inputs, is_change = own.arrays()
    fold = np.array([zlib.crc32(chat.encode()) % _FOLDS for chat in own.chats])
    other_inputs, other_changes = others.arrays() if others.inputs else (inputs[:0], is_change[:0])
    is_fitted = np.array([chat not in _GIVEN_HELD_OUT for chat in others.chats], np.bool_)
    life_inputs, life_changes = of_lives.arrays()
    more = np.concatenate([other_inputs[is_fitted], life_inputs])
    more_changes = np.concatenate([other_changes[is_fitted], life_changes])
    read = np.zeros(len(inputs))
    for number in range(_FOLDS):
        rest = fold != number
        logit = fitted(np.concatenate([inputs[rest], more]), np.concatenate([is_change[rest], more_changes]))
        read[~rest] = logit.probabilities(inputs[~rest])
    _report("chats, each read by the others", read, is_change)
    logit = fitted(np.concatenate([inputs, more]), np.concatenate([is_change, more_changes]))
    for title, pairs in (("held-out chats", held_out), ("chats with slips", slips)):
        held_inputs, held_changes = pairs.arrays()
        _report(title, logit.probabilities(held_inputs), held_changes)
    _report("held-out given conversations", logit.probabilities(other_inputs[~is_fitted]), other_changes[~is_fitted])
    if writes:
        path = Path(package.__path__[0]) / "odds_weights.npz"
        np.savez_compressed(path, weight=logit.weight, bias=np.float32(logit.bias))


def _conversations(folder: Path) -> list[Conversation]:
    return [Conversation(chat.name, chat.events) for chat in labelled_chats.read_chats(folder)]


def _given(folder: Path) -> Iterator[Conversation]:
    if folder.is_dir():
        for chat in given_conversations.given_chats(folder):
            if chat.set_name == "locomo" or chat.name in _FRIENDS:
                yield Conversation(chat.name, chat.events)


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
        for said in older:
            if said.words == older[-1].words and said.message != claim.message:
                yield Mark(claim.message + 1, claim.words, said.message + 1, said.words)


def _report(title: str, read: NDArray[Any], is_change: NDArray[np.bool_]) -> None:
    counts = [f"{least}: {is_change[read >= least].sum()} of {(read >= least).sum()}" for least in _THRESHOLDS]
    print(f"{title}: {is_change.sum()} changes of {len(is_change)} pairs; right from {'; '.join(counts)}", flush=True)
