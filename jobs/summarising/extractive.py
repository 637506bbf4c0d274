"""Summaries without a language model: the sentences that say most, in their order, with who said them.

Chosen one by one, by maximal marginal relevance (Carbonell and Goldstein, 1998): what is near the centre of the
conversation, says much, and is unlike what was chosen before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import NamedTuple

import numpy as np

from recollect.projections.embeddings.embedder import Vector
from recollect.projections.queries.episode_queries import EpisodeRow
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import cut_at_word, estimate_tokens
from recollect.projections.text.words import distinct_words

_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=[a-z,;] )[A-ZÀ-Þ]\w+")
#: Words from which on a sentence is not surer to say something.
_WORDS_ENOUGH = 12
#: How much the sentence itself counts beside its nearness to the centre, and its likeness to what was chosen.
_CONTENT_WEIGHT = 1.0
_REDUNDANCY_WEIGHT = 0.7
_IMPORTANCE_WEIGHT = 0.1
#: Less than this only fills the rest of a budget.
_CONTENT_MIN = 0.2
#: What is left of a budget is not worth another round when it is less than this part.
_REST = 0.08


class _Sentence(NamedTuple):
    turn: int
    text: str


def summarise(
    turns: Sequence[EpisodeRow], vectors: Sequence[Vector | None], tokens_max: int, *, whole: bool = False
) -> str:
    """Return a summary of `turns` in at most `tokens_max` tokens: sentences as they were said, by speaker, in order.

    Parameters:
        vectors: of each turn, normalised; None for those that were not embedded. Words stand in when there is none.
        whole: choose turns, not sentences, and put each on a line of its own.
    """
    sentences = [
        _Sentence(at, part)
        for at, turn in enumerate(turns)
        for part in ([turn.line()] if whole else split_sentences(turn.line()))
        if part.strip()
    ]
    if not sentences:
        return ""
    rows = _rows(turns, vectors)
    worth = _worth(turns, sentences, rows)
    chosen: list[int] = []
    # Of each turn: to what was chosen.
    likeness = np.zeros(len(turns), np.float32)
    left = tokens_max
    # Likeness only grows, so a value from before is never too low, and only the first of the heap is calculated again:
    # all sentences of a long message after each one that is chosen would take the square of its length.
    heap = [(-value, at) for at, value in enumerate(worth)]
    heapify(heap)
    while heap and left > _REST * tokens_max:
        before, best = heap[0]
        value = worth[best] - _REDUNDANCY_WEIGHT * likeness[sentences[best].turn]
        if -value > before:
            heapreplace(heap, (-value, best))
            continue
        heappop(heap)
        cost = estimate_tokens(f"{turns[sentences[best].turn].speaker}: {sentences[best].text} ")
        if cost <= left and not (chosen and _content(sentences[best].text) < _CONTENT_MIN):
            chosen.append(best)
            left -= cost
            near: Vector = np.dot(rows, rows[sentences[best].turn])
            likeness = np.maximum(likeness, near)
    if not chosen:
        best = int(np.argmax(worth))
        text = f"{turns[sentences[best].turn].speaker}: {sentences[best].text}"
        return text if estimate_tokens(text) <= tokens_max else f"{cut_at_word(text, tokens_max)} …"
    if whole:
        return "\n".join(sentences[at].text for at in sorted(chosen))
    return _told(turns, [sentences[at] for at in sorted(chosen)])


def _rows(turns: Sequence[EpisodeRow], vectors: Sequence[Vector | None]) -> Vector:
    """Return one normalised row a turn, shape (turns, dimensions)."""
    known = [vector for vector in vectors if vector is not None]
    if known:
        return np.stack([np.zeros_like(known[0]) if vector is None else vector for vector in vectors])
    words = [distinct_words(turn.line()) for turn in turns]
    vocabulary = {word: at for at, word in enumerate(sorted(set(chain.from_iterable(words))))}
    rows = np.zeros((len(turns), max(1, len(vocabulary))), np.float32)
    for row, said in zip(rows, words, strict=True):
        row[[vocabulary[word] for word in said]] = 1
    # Rare words say more: idf.
    rows *= np.log1p(len(turns) / np.maximum(1, rows.sum(axis=0)))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _worth(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence], rows: Vector) -> Vector:
    """Return how much each sentence says: the nearness of its turn to the centre, its content, its importance."""
    centre = rows.mean(axis=0)
    central = rows @ (centre / max(float(np.linalg.norm(centre)), 1e-9))
    return np.array(
        [
            central[one.turn]
            + _CONTENT_WEIGHT * _content(one.text)
            + _IMPORTANCE_WEIGHT * (turns[one.turn].importance - 5)
            for one in sentences
        ],
        np.float32,
    )


def _content(text: str) -> float:
    """Return from 0 to 1 how much a sentence can say: by words that mean something, names, numbers.

    Questions and exclamations say less.
    """
    words = min(1.0, len(distinct_words(text)) / _WORDS_ENOUGH)
    named = min(1.0, len(_NAME.findall(text)) / 2)
    numbers = 1.0 if _NUMBER.search(text) else 0.0
    score = 0.6 * words + 0.25 * named + 0.15 * numbers
    return score * (0.4 if text.endswith("?") else 0.7 if text.endswith("!") else 1.0)


def _told(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence]) -> str:
    """Join sentences; whoever speaks is named where the speaker changes, unless nobody is."""
    parts: list[str] = []
    speaker: str | None = None
    for sentence in sentences:
        by = turns[sentence.turn].speaker
        parts.append(sentence.text if by in (speaker, "") else f"{by}: {sentence.text}")
        speaker = by
    return " ".join(parts)
