"""Passages: cut an episode into the stretches of text that are embedded for it.

A turn alone says too little, so the model reads it after the turns before it in its window, and the vectors of its own
tokens are kept. The vectors of a turn so depend on nothing said later: they are the same live and after a replay, and
stay when the conversation goes on. A long turn is cut at its sentences into chunks, each read after the end of the
chunk before it; the score of an episode is that of its best chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.windows import end_of
from recollect.projections.queries.queried_episodes import SpokenText
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.words import content_words

#: Raise it with every change of the passages, so that all episodes are embedded again.
PASSAGES_VERSION = 5
#: Most words of a chunk: with its context 160 tokens of prose and 200 of lists and code; the default model reads 256.
CHUNK_WORDS = 100


class Passage(NamedTuple):
    """A stretch to embed for an episode."""

    #: Number of the passage within the episode, from 0 on.
    chunk: int
    stretch: Stretch


class SourceTurn(NamedTuple):
    """A turn that a summary is made of."""

    spoken: SpokenText
    #: The segments that it is read after.
    context: Sequence[str]


def passages(turn: SpokenText, context: Sequence[str]) -> Iterator[Passage]:
    """Yield the passages of an episode.

    Parameters:
        context: the segments that it is read after (`SessionWindows.context`).
    """
    for number, stretch in enumerate(_stretches(turn, context)):
        yield Passage(number, stretch)


def summary_passages(summary: SpokenText, sources: Sequence[SourceTurn]) -> Iterator[Passage]:
    """Yield the passages of a summary and those of its sources, so that queries that matched a turn match the summary.

    A summary without a word of its own consists of sentences of its sources, which are embedded already: another
    passage would cost a pass of the model in the night, and finds no evidence more (`ops/evaluation compaction`).

    Parameters:
        sources: the turns, in order.
    """
    stretches = [*_stretches(summary, ())] if _has_own_words(summary, sources) else []
    for source in sources:
        stretches += _stretches(source.spoken, source.context)
    for number, stretch in enumerate(stretches):
        yield Passage(number, stretch)


def _has_own_words(summary: SpokenText, sources: Sequence[SourceTurn]) -> bool:
    """Return whether a summary has a word, stop words excepted, that none of its sources has."""
    words = content_words(summary.text)
    return not words or not words.issubset(content_words(" ".join(source.spoken.line() for source in sources)))


def _stretches(turn: SpokenText, context: Sequence[str]) -> Iterator[Stretch]:
    """Yield the chunks of a turn, each after what was said before it."""
    for chunk in sentence_chunks(turn.line()):
        yield Stretch.after(context, chunk)
        context = (end_of(chunk),)


def sentence_chunks(text: str) -> list[str]:
    """Return `text` in chunks of consecutive sentences, of at most `CHUNK_WORDS` words each; never empty."""
    words = text.split()
    if len(words) <= CHUNK_WORDS:
        return [" ".join(words)]
    chunks: list[list[str]] = [[]]
    for sentence in split_sentences(text):
        for part in _cut(sentence.split()):
            if chunks[-1] and len(chunks[-1]) + len(part) > CHUNK_WORDS:
                chunks.append([])
            chunks[-1] += part
    return [" ".join(chunk) for chunk in chunks]


def _cut(words: list[str]) -> Iterator[list[str]]:
    """Yield the words of a sentence in parts of at most `CHUNK_WORDS`."""
    for start in range(0, len(words), CHUNK_WORDS):
        yield words[start : start + CHUNK_WORDS]
