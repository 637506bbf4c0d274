"""Encoder of changes: trains the reading of a statement and a sentence as one text.

Its examples are the related pairs of sentences, and of the others the likeliest changes by the first logit of
`change_odds.py`: the encoder reads only what that logit takes for a possible change.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labelled_pairs import LabelledPairs, ReadRelations
from odds import Logit, first_probabilities

from recollect.jobs import extraction
from recollect.jobs.extraction.comparison import RELATIONS
from recollect.projections import embeddings

sys.path.append(str(Path(__file__).parents[1]))
pair_encoder: Any = import_module("pair_encoder")
#: Likeliest pairs of a sentence without a relation, from which examples are drawn.
_DRAWN_FROM = 6


class Part(NamedTuple):
    """Labelled pairs of one kind."""

    sentences: Sequence[LabelledPairs]
    #: Unrelated pairs of each sentence.
    others: int
    #: Share of the sentences that are seen.
    share: float
    #: Times that they are seen in an epoch.
    times: int


def train_encoder(parts: Sequence[Part], first: Sequence[Logit], *, writes: bool) -> ReadRelations:
    """Train an encoder on labelled pairs, and return what it says; `writes`: its weights go into the package."""
    chance = random.Random(1)
    pairs = [pair for part in parts for pair in [*_examples(part, first, chance)] * part.times]
    print(f"{len(pairs)} pairs, {sum(pair.label > 1 for pair in pairs)} of them changes", flush=True)
    encoder = pair_encoder.PairEncoder(len(RELATIONS))
    encoder.fit(pairs)
    if writes:
        np.savez_compressed(Path(embeddings.__path__[0]) / "changes_adapter.npz", **encoder.adapter())
        np.savez_compressed(Path(extraction.__path__[0]) / "pair_weights.npz", **encoder.weights())
    return lambda texts: encoder.probabilities([pair_encoder.Pair(*text) for text in texts])


def _examples(part: Part, first: Sequence[Logit], chance: random.Random) -> Iterator[Any]:
    """Yield the related pairs of the sentences of a part, and some of the others of each."""
    for it in part.sentences:
        if chance.random() > part.share:
            continue
        likely = first_probabilities(it, first)
        places = range(len(it.relations))
        related = [place for place in places if it.relations[place] not in ("none", None)]
        rest = [place for place in places if it.relations[place] == "none"]
        pool = sorted(rest, key=lambda place: -likely[place])[:_DRAWN_FROM]
        for place in related + chance.sample(pool, min(len(pool), part.others)):
            yield pair_encoder.Pair(*it.texts(place), RELATIONS.index(it.relations[place] or "none"))
