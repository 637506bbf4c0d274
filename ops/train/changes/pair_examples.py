"""Pair examples: the pairs of a statement and a sentence that the encoder of changes is trained on.

They are the related pairs, and of the others those that the network of `comparison.py` finds the likeliest changes: the
encoder reads only what the network takes for a possible change.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labels import LabelledSentence
from numpy.typing import NDArray

from recollect.jobs.extraction.comparison import CHANGES, RELATIONS, compare, embedded_text
from recollect.jobs.extraction.statements import read_sentences
from recollect.projections.embeddings.reading_encoder import Embed
from recollect.projections.queries.knowledge_queries import PriorStatement

sys.path.append(str(Path(__file__).parents[1]))
from pair_encoder import Pair

#: Likeliest pairs of a sentence without a relation, from which examples are drawn.
_DRAWN_FROM = 6
#: Sentences that are read at once.
_READ_AT_ONCE = 40


class ComparedSentence(NamedTuple):
    """A labelled sentence with what the network says of its statements."""

    sentence: LabelledSentence
    #: One for each statement; None: the network does not compare it.
    probabilities: tuple[NDArray[np.float32] | None, ...]


def compared(sentences: Sequence[LabelledSentence], vectors: dict[str, Any], embed: Embed) -> list[ComparedSentence]:
    """Return sentences that have statements, as the network of the package compares them."""
    reads: dict[str, Any] = {}
    texts = sorted({it.text for it in sentences})
    for start in range(0, len(texts), _READ_AT_ONCE):
        some = texts[start : start + _READ_AT_ONCE]
        reads |= zip(some, read_sentences(some, to_assistant=True, embed=embed), strict=True)

    def rows(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[text] for text in texts])

    done: list[ComparedSentence] = []
    for it in sentences:
        if it.statements:
            found = {
                _key(prior): row for prior, row in compare(it.text, it.speaker, it.statements, rows, reads[it.text])
            }
            done.append(ComparedSentence(it, tuple(found.get(_key(prior)) for prior in it.statements)))
    return done


def change_of(row: NDArray[np.float32] | None) -> float:
    """Return the probability of a change."""
    return 0.0 if row is None else float(row[CHANGES].sum())


def examples(of: Sequence[ComparedSentence], others: int, share: float, chance: random.Random) -> Iterator[Pair]:
    """Yield the related pairs of a share of the sentences, and some of the others of each."""
    for it in of:
        if share < 1 and chance.random() > share:
            continue
        pairs = [*zip(it.sentence.statements, it.sentence.relations, it.probabilities, strict=True)]
        related = [pair for pair in pairs if pair[1] != "none"]
        rest = sorted((pair for pair in pairs if pair[1] == "none"), key=lambda pair: -change_of(pair[2]))
        pool = rest[:_DRAWN_FROM]
        for prior, relation, _ in related + chance.sample(pool, min(len(pool), others)):
            yield Pair(embedded_text(prior), it.sentence.text, RELATIONS.index(relation))


def _key(prior: PriorStatement) -> tuple[str, str, str]:
    return prior.subject, prior.predicate, prior.object
