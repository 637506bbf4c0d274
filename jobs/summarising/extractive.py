"""Extractive summaries: selects the most informative sentences, in order, with their speakers.

Sentences are selected one by one by maximal marginal relevance (Carbonell and Goldstein, 1998): similar to the centre
of the conversation, rich in content, and dissimilar to the sentences selected before.
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
#: Distinct words from which more words add nothing to the content of a sentence.
_CONTENT_WORDS_MAX = 12
#: Weights of the parts of a score; the similarity to the centre has the weight 1.
_CONTENT_WEIGHT = 1.0
_REDUNDANCY_WEIGHT = 0.7
_IMPORTANCE_WEIGHT = 0.1
#: Content under which a sentence is never added to a summary that has a sentence.
_CONTENT_MIN = 0.2
#: Selection ends when less than this share of the budget is left: hardly a sentence fits.
_REST_SHARE = 0.08


class _Sentence(NamedTuple):
    """A sentence and the index of its turn."""

    turn: int
    text: str


def summarise(
    turns: Sequence[EpisodeRow], vectors: Sequence[Vector | None], tokens_max: int, *, whole: bool = False
) -> str:
    """Return a summary of `turns` in at most `tokens_max` tokens: verbatim sentences, in order, with their speakers.

    Parameters:
        vectors: one normalised vector a turn, or None where the turn is not embedded. Without any vector, word
            vectors are used.
        whole: select turns instead of sentences, and put each turn on its own line.
    """
    sentences = [
        _Sentence(index, part)
        for index, turn in enumerate(turns)
        for part in ([turn.line()] if whole else split_sentences(turn.line()))
        if part.strip()
    ]
    if not sentences:
        return ""
    rows = _rows(turns, vectors)
    scores = _scores(turns, sentences, rows)
    selected: list[int] = []
    # Of each turn, the highest similarity to a selected sentence.
    redundancy = np.zeros(len(turns), np.float32)
    tokens_left = tokens_max
    # Redundancy only grows, so an old score is never too low, and only the first item of the heap is scored again (lazy
    # evaluation). Scoring all sentences after each selection would take quadratic time.
    heap = [(-score, index) for index, score in enumerate(scores)]
    heapify(heap)
    while heap and tokens_left > _REST_SHARE * tokens_max:
        old_negative_score, best = heap[0]
        score = scores[best] - _REDUNDANCY_WEIGHT * redundancy[sentences[best].turn]
        if -score > old_negative_score:
            heapreplace(heap, (-score, best))
            continue
        heappop(heap)
        cost = estimate_tokens(f"{turns[sentences[best].turn].speaker}: {sentences[best].text} ")
        if cost <= tokens_left and not (selected and _content(sentences[best].text) < _CONTENT_MIN):
            selected.append(best)
            tokens_left -= cost
            similarities: Vector = np.dot(rows, rows[sentences[best].turn])
            redundancy = np.maximum(redundancy, similarities)
    if not selected:
        best = int(np.argmax(scores))
        text = f"{turns[sentences[best].turn].speaker}: {sentences[best].text}"
        return text if estimate_tokens(text) <= tokens_max else f"{cut_at_word(text, tokens_max)} …"
    if whole:
        return "\n".join(sentences[index].text for index in sorted(selected))
    return _joined(turns, [sentences[index] for index in sorted(selected)])


def _rows(turns: Sequence[EpisodeRow], vectors: Sequence[Vector | None]) -> Vector:
    """Return one normalised row a turn, shape (turns, dimensions); rows of words when no turn is embedded."""
    embedded = [vector for vector in vectors if vector is not None]
    if embedded:
        return np.stack([np.zeros_like(embedded[0]) if vector is None else vector for vector in vectors])
    words = [distinct_words(turn.line()) for turn in turns]
    vocabulary = {word: column for column, word in enumerate(sorted(set(chain.from_iterable(words))))}
    rows = np.zeros((len(turns), max(1, len(vocabulary))), np.float32)
    for row, words_of_turn in zip(rows, words, strict=True):
        row[[vocabulary[word] for word in words_of_turn]] = 1
    # The inverse document frequency gives rare words more weight.
    rows *= np.log1p(len(turns) / np.maximum(1, rows.sum(axis=0)))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _scores(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence], rows: Vector) -> Vector:
    """Return the score of each sentence: similarity of its turn to the centre, content, and importance of its turn."""
    centre = rows.mean(axis=0)
    centrality = rows @ (centre / max(float(np.linalg.norm(centre)), 1e-9))
    return np.array(
        [
            centrality[sentence.turn]
            + _CONTENT_WEIGHT * _content(sentence.text)
            + _IMPORTANCE_WEIGHT * (turns[sentence.turn].importance - 5)
            for sentence in sentences
        ],
        np.float32,
    )


def _content(text: str) -> float:
    """Return the content of a sentence, from 0 to 1: by its distinct words, names and numbers.

    Questions and exclamations carry less content.
    """
    words = min(1.0, len(distinct_words(text)) / _CONTENT_WORDS_MAX)
    named = min(1.0, len(_NAME.findall(text)) / 2)
    numbers = 1.0 if _NUMBER.search(text) else 0.0
    score = 0.6 * words + 0.25 * named + 0.15 * numbers
    return score * (0.4 if text.endswith("?") else 0.7 if text.endswith("!") else 1.0)


def _joined(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence]) -> str:
    """Join sentences; name the speaker where the speaker changes, unless the name is empty."""
    parts: list[str] = []
    speaker: str | None = None
    for sentence in sentences:
        next_speaker = turns[sentence.turn].speaker
        same = next_speaker in (speaker, "")
        parts.append(sentence.text if same else f"{next_speaker}: {sentence.text}")
        speaker = next_speaker
    return " ".join(parts)
