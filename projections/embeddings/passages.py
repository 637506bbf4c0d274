"""Passages: cut an episode into the stretches of text that are embedded for it.

A turn alone says too little, so the model reads it after the end of the turn before it in its session, and the vectors
of its own tokens are kept. The vectors of a turn so depend on nothing said later: they are the same live and after a
replay, and stay when the conversation goes on. A long turn is cut at its sentences into chunks, each read after the end
of the chunk before it; the score of an episode is that of its best chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.queries.episode_queries import SpokenText
from recollect.projections.text.sentences import split_sentences

#: Raise it with every change of the passages, so that all episodes are embedded again.
PASSAGES_VERSION = 3
#: Last words of the turn or chunk before, as context: a turn mostly answers the end of a long one.
CONTEXT_WORDS = 40
#: Most words of a chunk: with its context 190 tokens of prose and 230 of lists and code; the default model reads 256.
CHUNK_WORDS = 100


class Passage(NamedTuple):
    """A stretch to embed for an episode."""

    #: Number of the passage within the episode, from 0 on.
    chunk: int
    stretch: Stretch


class SourceTurn(NamedTuple):
    """A turn that a summary is made of."""

    spoken: SpokenText
    #: The turn before it in its session; None: the first one.
    before: SpokenText | None


def passages(turn: SpokenText, before: SpokenText | None) -> Iterator[Passage]:
    """Yield the passages of an episode.

    Parameters:
        before: the episode before it in its session; None: the first one.
    """
    for number, stretch in enumerate(_stretches(turn, before)):
        yield Passage(number, stretch)


def summary_passages(summary: SpokenText, sources: Sequence[SourceTurn]) -> Iterator[Passage]:
    """Yield the passages of a summary and those of its sources, so that queries that matched a turn match the summary.

    Parameters:
        sources: the turns, in order.
    """
    stretches = [*_stretches(summary, None)]
    for source in sources:
        stretches += _stretches(source.spoken, source.before)
    for number, stretch in enumerate(stretches):
        yield Passage(number, stretch)


def _stretches(turn: SpokenText, before: SpokenText | None) -> Iterator[Stretch]:
    """Yield the chunks of a turn, each after the end of what was said before it."""
    context = "" if before is None else _end(before.line())
    for chunk in sentence_chunks(turn.line()):
        text = f"{context}\n{chunk}" if context else chunk
        yield Stretch(text, len(text) - len(chunk))
        context = _end(chunk)


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


def _end(text: str) -> str:
    """Return the last `CONTEXT_WORDS` words of `text`."""
    return " ".join(text.rsplit(maxsplit=CONTEXT_WORDS)[-CONTEXT_WORDS:])
