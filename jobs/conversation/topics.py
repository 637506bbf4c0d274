"""Where a conversation changes its topic.

A turn is compared with the mean of the turns before it; it begins a new topic when it is much less like them than turns
in this conversation usually are (the idea of TextTiling, Hearst 1997, with vectors in the place of word counts).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.projections.embeddings.embedder import Vector

#: Turns that a new one is compared with.
_BEFORE = 4
#: Turns that say how alike turns usually are.
_SAMPLE_MIN = 6
#: Standard deviations under the usual likeness.
_DEPTH = 1.0
#: Likeness from which on nothing is a new topic.
_ALIKE = 0.35


def similarities(vectors: Sequence[Vector]) -> list[float]:
    """Return for each turn but the first the cosine to the mean of the few before it."""
    found: list[float] = []
    for at in range(1, len(vectors)):
        mean = np.mean(np.stack(vectors[max(0, at - _BEFORE) : at]), axis=0)
        norm = float(np.linalg.norm(mean))
        found.append(float(vectors[at] @ mean) / norm if norm else 0.0)
    return found


def topic_boundaries(vectors: Sequence[Vector]) -> list[int]:
    """Return the turns, by index, that begin a new topic; never the first one.

    Parameters:
        vectors: of the turns in order, normalised.
    """
    alike = similarities(vectors)
    found: list[int] = []
    for at, likeness in enumerate(alike, start=1):
        if at < _SAMPLE_MIN or likeness >= _ALIKE:
            continue
        usual = np.array(alike[: at - 1])
        if likeness < float(usual.mean()) - _DEPTH * float(usual.std()):
            found.append(at)
    return found


def topic_changed(vectors: Sequence[Vector]) -> bool:
    """Tell whether the last turn begins a new topic."""
    return len(vectors) - 1 in topic_boundaries(vectors)
