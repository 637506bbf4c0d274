"""Asks fit: fits the logit of `asks_memory.py` to lines of `asks/` and to the answered questions of chats.

The networks read it as the last number of a query. A sample that they train on gets it from a logit that saw neither
its chat nor the writer of its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labelled_chats import AskLine
from msgspec.structs import replace
from samples import GENERAL, Sample

from recollect.api.retrieval import understanding
from recollect.api.retrieval.understanding.asks_memory import AsksLogit, words_of
from recollect.projections.embeddings.token_codes import Vector

# scikit-learn comes with sentence-transformers, and its types are incomplete.
linear_model: Any = import_module("sklearn.linear_model")

#: Parts of the training, of which each gets the logit of the others.
_PARTS = 3
_PENALTY = 3.0
#: Messages that a word occurs in, at least; the weight of words beside that of the embedding.
_MESSAGES_MIN = 3
_WORDS_SHARE = 2.0


class Message(NamedTuple):
    """A message, with the part of the training that it belongs to."""

    text: str
    embedding: Vector
    asks_memory: bool
    part: int


def messages_of(samples: Sequence[Sample], lines: Mapping[AskLine, Vector]) -> list[Message]:
    """Return the answered questions of the samples of labelled chats, and the lines."""
    parts = _parts_of_writers(lines)
    questions = [one for one in samples if one.set_name == "chats" and one.gold_count and not one.is_turn]
    return [
        *(Message(one.text, one.embedding, True, _part(one.chat)) for one in questions),
        *(Message(line.text, vector, line.asks_memory, parts[line.writer]) for line, vector in lines.items()),
    ]


def fitted(messages: Iterable[Message]) -> AsksLogit:
    """Return the logit of some messages; both classes weigh the same."""
    read = [(words_of(message.text), message) for message in messages]
    counts = Counter(word for words, _ in read for word in words)
    columns = {word: at for at, word in enumerate(sorted(word for word in counts if counts[word] >= _MESSAGES_MIN))}
    matrix = np.zeros((len(read), len(columns) + len(read[0][1].embedding)), np.float32)
    for row, (words, message) in enumerate(read):
        known = [columns[word] for word in words if word in columns]
        matrix[row, known] = _WORDS_SHARE / np.sqrt(len(known) or 1)
        matrix[row, len(columns) :] = message.embedding
    model = linear_model.LogisticRegression(C=_PENALTY, class_weight="balanced", max_iter=3_000)
    model.fit(matrix, [message.asks_memory for _, message in read])
    weights = model.coef_[0].astype(np.float32)
    of_words = (weights[: len(columns)] * _WORDS_SHARE).tolist()
    return AsksLogit(dict(zip(columns, of_words, strict=True)), weights[len(columns) :], float(model.intercept_[0]))


def with_logit_of_others(samples: Sequence[Sample], lines: Mapping[AskLine, Vector]) -> list[Sample]:
    """Return the samples of the training with the logit of the other parts."""
    messages, parts = messages_of(samples, lines), _parts_of_writers(lines)
    writers = {line.text: line.writer for line in lines}
    logits = [fitted(one for one in messages if one.part != part) for part in range(_PARTS)]
    return [
        with_logit(one, logits[parts[writers[one.text]] if one.set_name == GENERAL else _part(one.chat)])
        for one in samples
    ]


def with_logit(sample: Sample, logit: AsksLogit) -> Sample:
    """Return a sample whose query has this logit."""
    value = np.float32(logit.of(sample.text, sample.embedding))
    return replace(sample, query=np.append(sample.query[:-1], value))


def write(logit: AsksLogit) -> None:
    """Replace the weights of the package."""
    np.savez_compressed(
        Path(understanding.__path__[0]) / "asks_weights.npz",
        words=np.frombuffer("\n".join(logit.words).encode(), np.uint8),
        word_weights=np.array([*logit.words.values()], np.float16),
        embedding=logit.embedding.astype(np.float16),
        bias=np.float32(logit.bias),
    )


def _part(chat: str) -> int:
    return sum(map(ord, chat)) // 7 % _PARTS


def _parts_of_writers(lines: Iterable[AskLine]) -> dict[str, int]:
    return {writer: number % _PARTS for number, writer in enumerate(sorted({line.writer for line in lines}))}
