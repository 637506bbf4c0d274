"""Topics: finds the turns that begin a new topic of a conversation.

A turn is compared with the mean of the turns before it. It begins a new topic when its similarity is far below the
usual similarity in this conversation (TextTiling, Hearst 1997, with vectors instead of word counts).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.projections.embeddings.embedder import Vector

#: Turns before a turn that it is compared with.
_CONTEXT_TURNS = 4
#: Turns from which the usual similarity is estimated.
_SAMPLE_TURNS_MIN = 6
#: Standard deviations below the usual similarity at which a topic begins.
_DEPTH = 1.0
#: Cosine with the turns before, or with one of them, from which a turn never begins a new topic.
_SAME_TOPIC_COSINE_MIN = 0.35
#: Cosine with every turn before under which a turn begins a new topic while too few turns show what is usual.
_UNRELATED_COSINE_MAX = 0.1


def similarities(vectors: Sequence[Vector]) -> list[float]:
    """Return the cosine of each turn, except the first, to the mean of the turns before it."""
    cosines: list[float] = []
    for index in range(1, len(vectors)):
        mean = np.mean(np.stack(vectors[max(0, index - _CONTEXT_TURNS) : index]), axis=0)
        norm = float(np.linalg.norm(mean))
        cosines.append(float(vectors[index] @ mean) / norm if norm else 0.0)
    return cosines


def topic_boundaries(vectors: Sequence[Vector]) -> list[int]:
    """Return the indexes of the turns that begin a new topic, without the first turn.

    Parameters:
        vectors: one normalised vector a turn, in the order of the conversation.
    """
    cosines = similarities(vectors)
    boundaries: list[int] = []
    for index, cosine in enumerate(cosines, start=1):
        # An answer or a follow-up may be close to one turn alone.
        closest = max(float(vectors[index] @ before) for before in vectors[max(0, index - _CONTEXT_TURNS) : index])
        if max(cosine, closest) < _highest_new(cosines[: index - 1]):
            boundaries.append(index)
    return boundaries


def _highest_new(cosines: Sequence[float]) -> float:
    """Return the cosine under which a turn begins a new topic, after turns with these cosines."""
    if len(cosines) < _SAMPLE_TURNS_MIN - 1:
        return _UNRELATED_COSINE_MAX
    sample = np.array(cosines)
    return min(_SAME_TOPIC_COSINE_MIN, float(sample.mean()) - _DEPTH * float(sample.std()))


def topic_changed(vectors: Sequence[Vector]) -> bool:
    """Return whether the last turn begins a new topic."""
    return len(vectors) - 1 in topic_boundaries(vectors)
