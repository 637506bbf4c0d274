"""Extractive summaries: selects the most informative sentences, in order, with their speakers.

Sentences are selected one by one by maximal marginal relevance (Carbonell and Goldstein, 1998): similar to the centre
of the conversation, rich in content, and dissimilar to the sentences selected before.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import NamedTuple

import numpy as np

from recollect.jobs.extraction.statements import read_sentences
from recollect.jobs.summarising.sentence_content import content, readable, without_code
from recollect.projections.embeddings.embedder import Vector
from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.reading_encoder import Embed
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import cut_at_word, estimate_tokens
from recollect.projections.text.words import distinct_words

#: Weights of the parts of a score, and of the similarity to a selected sentence.
_CENTRALITY_WEIGHT = 0.5
_CONTENT_WEIGHT = 1.5
_REDUNDANCY_WEIGHT = 0.7
#: Weights of content and of being worth keeping when the reader has vectors; by words alone it misses `Dad died today`.
_READ_CONTENT_WEIGHT, _KEEP_WEIGHT = 1.0, 1.0
_IMPORTANCE_WEIGHT = 0.1
#: Subtracted from what an assistant says: mostly general knowledge, while the users' words are about themselves.
_ASSISTANT_COST = 0.4
#: Content under which a sentence is never added to a summary that has a sentence.
_CONTENT_MIN = 0.15
#: The same for one of fewer words than this that the reader would not keep: `will do`, `oh Moira`.
_WORDS_MIN, _SHORT_CONTENT_MIN, _KEEP_MIN = 3, 0.3, 0.2
#: Sentences that the reader reads: 0.2 ms each.
_READ_MAX = 2_000
_READ_CHARS_MAX = 1_000
#: Selection ends when less than this share of the budget is left: hardly a sentence fits.
_REST_SHARE = 0.08


class _Sentence(NamedTuple):
    """A sentence and the index of its turn."""

    turn: int
    text: str


def summarise(
    turns: Sequence[EpisodeRow],
    vectors: Sequence[Vector | None],
    tokens_max: int,
    *,
    whole: bool = False,
    embed: Embed | None = None,
) -> str:
    """Return a summary of `turns` in at most `tokens_max` tokens: sentences as said, in order, with their speakers.

    Markdown is left out, and a sentence that was said before is.

    Parameters:
        vectors: one normalised vector a turn, or None where the turn is not embedded. Without any vector, word
            vectors are used.
        whole: select turns instead of sentences, and put each turn on its own line.
        embed: embeds the sentences that are likely to matter; without it their words decide.
    """
    sentences = _sentences(turns, whole=whole)
    if not sentences:
        return ""
    rows = _rows(turns, vectors)
    keeps = _keeps(turns, sentences, embed)
    scores = _scores(turns, sentences, rows, _CONTENT_WEIGHT if embed is None else _READ_CONTENT_WEIGHT)
    scores = scores if embed is None else scores + _KEEP_WEIGHT * keeps
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
        cost = estimate_tokens(f"{turns[sentences[best].turn].speaker}: {sentences[best].text}. ")
        if cost <= tokens_left and not (selected and _is_filler(sentences[best].text, keeps[best])):
            selected.append(best)
            tokens_left -= cost
            similarities: Vector = product(rows, rows[sentences[best].turn])
            redundancy = np.maximum(redundancy, similarities)
    if not selected:
        best = int(np.argmax(scores))
        text = f"{turns[sentences[best].turn].speaker}: {sentences[best].text}"
        return text if estimate_tokens(text) <= tokens_max else f"{cut_at_word(text, tokens_max)} …"
    if whole:
        return "\n".join(sentences[index].text for index in sorted(selected))
    return _joined(turns, [sentences[index] for index in sorted(selected)])


def _sentences(turns: Sequence[EpisodeRow], *, whole: bool) -> list[_Sentence]:
    """Return the sentences of the turns, or the turns, that a summary may hold; each text once."""
    parts = [
        _Sentence(index, part)
        for index, turn in enumerate(turns)
        for part in ([turn.line()] if whole else split_sentences(without_code(turn.line())))
        if part.strip()
    ]
    cleaned = parts if whole else [part._replace(text=text) for part in parts if (text := readable(part.text))]
    first_said: dict[str, _Sentence] = {}
    # When nothing but markup was said, it is the summary.
    for part in cleaned or parts:
        first_said.setdefault(part.text, part)
    return list(first_said.values())


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


def _scores(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence], rows: Vector, content_weight: float) -> Vector:
    """Return the score of each sentence: its content; and its turn's speaker, importance, similarity to the centre."""
    centre = rows.mean(axis=0)
    centrality = product(rows, centre / max(float(np.linalg.norm(centre)), 1e-9))
    return np.array(
        [
            _CENTRALITY_WEIGHT * centrality[sentence.turn]
            - _ASSISTANT_COST * (turns[sentence.turn].role == "assistant")
            + content_weight * content(sentence.text)
            + _IMPORTANCE_WEIGHT * (turns[sentence.turn].importance - 5)
            for sentence in sentences
        ],
        np.float32,
    )


def _keeps(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence], embed: Embed | None) -> Vector:
    """Return the probability that each sentence states something worth keeping; 0 for those of an assistant."""
    to_assistant = any(turn.role == "assistant" for turn in turns)
    keeps = np.zeros(len(sentences), np.float32)
    own = [place for place, part in enumerate(sentences) if turns[part.turn].role != "assistant"][:_READ_MAX]
    texts = [sentences[place].text[:_READ_CHARS_MAX] for place in own]
    for place, read in zip(own, read_sentences(texts, to_assistant=to_assistant, embed=embed), strict=True):
        keeps[place] = max((part.keep for part in read), default=0.0)
    return keeps


def _is_filler(sentence: str, keep: float) -> bool:
    """Return whether a sentence is not worth the room that is left."""
    is_short = keep < _KEEP_MIN and len(sentence.split()) < _WORDS_MIN
    return content(sentence) < (_SHORT_CONTENT_MIN if is_short else _CONTENT_MIN)


def _joined(turns: Sequence[EpisodeRow], sentences: Sequence[_Sentence]) -> str:
    """Join sentences; name the speaker where the speaker changes, unless the name is empty.

    A sentence without an end sign gets a full stop before the next one.
    """
    parts: list[str] = []
    speaker: str | None = None
    for sentence in sentences:
        next_speaker = turns[sentence.turn].speaker
        same = next_speaker in (speaker, "")
        if parts and parts[-1][-1].isalnum():
            parts[-1] += "."
        parts.append(sentence.text if same else f"{next_speaker}: {sentence.text}")
        speaker = next_speaker
    return " ".join(parts)
