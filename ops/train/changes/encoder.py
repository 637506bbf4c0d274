"""Encoder of changes: trains the reading of a statement and a sentence as one text, and prints what is found."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from labels import LabelledSentence
from pair_examples import ComparedSentence, change_of, compared, examples
from variants import coexisting, variants

from recollect.jobs import extraction
from recollect.jobs.extraction.comparison import CHANGES, READ_MIN, RELATIONS, embedded_text
from recollect.projections import embeddings
from recollect.projections.embeddings.reading_encoder import Embed

sys.path.append(str(Path(__file__).parents[1]))
from pair_encoder import Pair, PairEncoder

_THRESHOLDS = (0.5, 0.7, 0.75, 0.85, 0.9, 0.95)
#: Times that the pairs of lives are seen in an epoch.
_LIVES_WEIGHT = 3


def train_encoder(
    scenarios: Sequence[LabelledSentence],
    lives: Sequence[LabelledSentence],
    held_out: Mapping[str, Sequence[LabelledSentence]],
    vectors: dict[str, Any],
    embed: Embed,
    *,
    writes: bool,
) -> None:
    """Train on labelled sentences, print the figures of those held out, and write the weights into the package."""
    chance = random.Random(1)
    parts = (
        (scenarios, 3, 1.0, 1),
        ([*variants(scenarios, 1)], 2, 0.5, 1),
        ([*coexisting(scenarios, 1)][::2], 3, 0.5, 1),
        (lives, 4, 1.0, _LIVES_WEIGHT),
    )
    pairs: list[Pair] = []
    for sentences, others, share, weight in parts:
        pairs += [*examples(compared(sentences, vectors, embed), others, share, chance)] * weight
    print(f"{len(pairs)} pairs, {sum(pair.label > 1 for pair in pairs)} of them changes")
    encoder = PairEncoder(len(RELATIONS))
    encoder.fit(pairs)
    for name, sentences in held_out.items():
        _report(name, compared(sentences, vectors, embed), encoder)
    if writes:
        np.savez_compressed(Path(embeddings.__path__[0]) / "changes_adapter.npz", **encoder.adapter())
        np.savez_compressed(Path(extraction.__path__[0]) / "pair_weights.npz", **encoder.weights())


def _report(name: str, of: Sequence[ComparedSentence], encoder: PairEncoder) -> None:
    """Print how many changes the network, and both together, find at each threshold, and how many others."""
    rows = [
        (it.sentence.text, prior, RELATIONS.index(relation), row)
        for it in of
        for prior, relation, row in zip(it.sentence.statements, it.sentence.relations, it.probabilities, strict=True)
        if row is not None and change_of(row) >= READ_MIN
    ]
    if not rows:
        return
    read = encoder.probabilities([Pair(embedded_text(prior), text) for text, prior, *_ in rows])
    network = np.stack([row for *_, row in rows])
    both = np.sqrt(network * read)
    of_both = both[:, CHANGES].sum(1) / both.sum(1)
    for title, changed, is_rule in (
        (title, changed, is_rule)
        for title, changed in (("network", network[:, CHANGES].sum(1)), ("both", of_both))
        for is_rule in (True, False)
    ):
        found = [
            (float(probability), label > 1)
            for probability, (_, prior, label, _) in zip(changed, rows, strict=True)
            if prior.is_preference == is_rule
        ]
        counts: list[str] = []
        for threshold in _THRESHOLDS:
            hits = [is_change for probability, is_change in found if probability >= threshold]
            counts.append(f"{threshold}: {sum(hits)}, {len(hits) - sum(hits)}")
        print(f"{title}, held-out {name}, {'rules' if is_rule else 'others'}: right, wrong from {'; '.join(counts)}")
