"""Labelled pairs: sentences beside the statements that they are compared with, and what they do to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from labels import LabelledSentence
from numpy.typing import NDArray

from recollect.jobs.extraction.comparison import CHANGES, RELATIONS, Pairs, embedded_text, pairs_of
from recollect.jobs.extraction.statements import read_sentences
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import LOAD_SECONDS_MAX, reading_embed
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.queries.knowledge_queries import PriorStatement

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Item = TypeVar("Item")
#: Returns the probabilities of `RELATIONS` of statements and sentences, one row each.
ReadRelations = Callable[[Sequence[tuple[str, str]]], Floats]
#: Texts that are embedded at once; the reader embeds no more sentences of one message.
_TEXTS = 40


class LabelledPairs(NamedTuple):
    """A sentence with its pairs."""

    #: The voice, or the conversation.
    source: str
    pairs: Pairs
    #: What the sentence does to each statement; None: it cannot be told.
    relations: Sequence[str | None]

    def texts(self, place: int) -> tuple[str, str]:
        """Return a statement and the sentence as the encoder reads them."""
        return embedded_text(self.pairs.own[place]), self.pairs.sentence

    def is_change(self, place: int) -> bool:
        """Return whether the sentence changes a statement."""
        return self.relations[place] in RELATIONS[CHANGES]


def default_embedder() -> SentenceEmbedder:
    """Return the default embedding model, loaded."""
    embedder = SentenceEmbedder(DEFAULT_MODEL)
    embedder.start()
    if not embedder.wait_ready(LOAD_SECONDS_MAX):
        raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
    return embedder


def pairs_of_voices(sentences: Sequence[LabelledSentence], embedder: SentenceEmbedder) -> Iterator[LabelledPairs]:
    """Yield the pairs of labelled sentences, compared as the product compares them."""
    read, vectors = _read(sentences, embedder), _vectors(sentences, embedder)

    def embed(texts: Sequence[str]) -> Floats:
        return np.stack([vectors[text] for text in texts])

    for it in sentences:
        pairs = pairs_of(it.text, it.speaker, it.statements, embed, read[it.text])
        if pairs is not None:
            relations = dict(zip(map(_key, it.statements), it.relations, strict=True))
            yield LabelledPairs(it.voice, pairs, [relations[_key(prior)] for prior in pairs.own])


def _read(sentences: Sequence[LabelledSentence], embedder: SentenceEmbedder) -> dict[str, Any]:
    """Return the clauses of each sentence."""
    embed, read = reading_embed(embedder), dict[str, Any]()
    for texts in groups(sorted({it.text for it in sentences})):
        read |= zip(texts, read_sentences(texts, to_assistant=True, embed=embed), strict=True)
    return read


def _vectors(sentences: Sequence[LabelledSentence], embedder: SentenceEmbedder) -> dict[str, Any]:
    """Return the vectors of sentences and their statements."""
    vectors: dict[str, Any] = {}
    for texts in groups(sorted({text for it in sentences for text in (it.text, *map(embedded_text, it.statements))})):
        vectors |= zip(texts, embedder.embed(texts), strict=True)
    return vectors


def groups(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield what is read at once."""
    yield from (items[start : start + _TEXTS] for start in range(0, len(items), _TEXTS))


def _key(prior: PriorStatement) -> tuple[str, str, str]:
    return prior.subject, prior.predicate, prior.object
