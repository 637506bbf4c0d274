"""Score background: what an embedding model scores for a question and a text that have nothing to do with each other.

One model gives such a pair a cosine of 0.05, another one 0.7. Ranking and gate are fitted to the default model, so the
scores of any other model are mapped to the same background.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from recollect.projections.embeddings.embedder import Embedder, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector, encoded, late_interaction, reduced

#: Questions and texts on different topics; every question belongs to none of the texts.
_QUESTIONS = (
    "Where did my sister go to school?",
    "How much does the piano lesson cost?",
    "Which doctor did we see in March?",
    "What is the name of the neighbour's horse?",
    "When does the library close?",
    "Who repaired the roof?",
    "What do I give my father for his birthday?",
    "Which wine did they serve at the wedding?",
    "How long did the exam take?",
    "Why was the concert cancelled?",
    "What colour is the new tent?",
    "Did Olga find her keys?",
)
_TEXTS = (
    "We planted three apple trees behind the garage.",
    "My laptop crashed again during the meeting.",
    "The soup needs more salt and a bay leaf.",
    "I ran ten kilometres along the river this morning.",
    "Our flight to Lisbon leaves at noon on Friday.",
    "She reads one detective novel a week.",
    "The tax return is due at the end of May.",
    "He sold his motorbike and bought a canoe.",
    "Please keep the answers short and without emojis.",
    "The kitten sleeps in a shoe box under the stove.",
    "They are painting the bridge green again.",
    "My knee hurts since I fell off the ladder.",
    "Chess club was fun, I lost four games.",
    "The new manager wants a report every Tuesday.",
    "There is a hole in my left boot.",
    "It snowed all night and the bus did not come.",
)


class Background(NamedTuple):
    """Mean and standard deviation of the scores of unrelated pairs."""

    mean: float
    spread: float


class ScoreBackgrounds(NamedTuple):
    """The backgrounds of one embedding model."""

    #: Of cosines.
    dense: Background
    #: Of late interaction.
    late: Background


#: The backgrounds of the default model, which ranking and gate are fitted to; a test measures them.
DEFAULT_BACKGROUNDS = ScoreBackgrounds(Background(0.084, 0.082), Background(0.237, 0.097))


def measured_backgrounds(embedder: Embedder, basis: Vector) -> ScoreBackgrounds:
    """Return the backgrounds of a model that is ready.

    Parameters:
        basis: the directions of its token codes, shape (dimensions, at most 64).
    """
    questions = [embedder.embed_query(text) for text in _QUESTIONS]
    texts = embedder.embed_tokens(_TEXTS)
    cosines = np.stack([question.vector for question in questions]) @ np.stack([text.vector for text in texts]).T
    late = np.stack([_late_scores(question, texts, basis) for question in questions])
    return ScoreBackgrounds(_background(cosines), _background(late))


def _late_scores(question: TokenEmbedding, texts: Sequence[TokenEmbedding], basis: Vector) -> Vector:
    codes = [encoded(text.tokens, basis) for text in texts]
    starts = np.cumsum([0, *(len(code) for code in codes[:-1])])
    weights = np.full(len(question.tokens), 1 / len(question.tokens), np.float32)
    return late_interaction(reduced(question.tokens, basis), weights, np.concatenate(codes), starts)


def _background(scores: Vector) -> Background:
    return Background(float(scores.mean()), float(scores.std()))


def rescaled(own: Background, wanted: Background) -> Callable[[Vector], Vector]:
    """Return the function that maps scores with the background `own` to scores with the background `wanted`."""
    factor = wanted.spread / max(own.spread, 1e-6)

    def rescale(scores: Vector) -> Vector:
        return ((scores - own.mean) * factor + wanted.mean).astype(np.float32)

    return rescale
