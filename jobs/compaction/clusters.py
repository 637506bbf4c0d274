"""Memories about the same thing, in clusters that have a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.events.envelope import EventDraft
from recollect.jobs.derivation.derived_events import memories_clustered
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.keywords import keywords
from recollect.projections.embeddings.embedder import Vector
from recollect.projections.queries.snapshot import Snapshot

#: Memories that are clustered: the newest ones.
_MEMORIES_MAX = 1_000
#: Clusters are made anew when this part of their members came or went.
_CHANGED_SHARE = 0.1
_LABEL_TOKENS = 8


def cluster(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memories.clustered` when memories have come and gone since the clusters were made."""
    texts = _memories(snapshot)
    known = snapshot.knowledge.clustered_ids()
    if len(texts) < 2 or len(known ^ texts.keys()) <= _CHANGED_SHARE * len(texts):
        return []
    vectors = context.vectors().vectors_of_texts(namespace, snapshot, list(texts.values()))
    if vectors is None:
        return []
    ids = list(texts)
    found: list[dict[str, Any]] = []
    for members in group_vectors(vectors, context.settings.compaction.cluster_similarity):
        said = [texts[ids[at]] for at in members]
        label = " ".join(keywords(snapshot, said, tokens_max=_LABEL_TOKENS)) or said[0]
        found.append({"label": label, "memory_ids": [ids[at] for at in members]})
    return [memories_clustered(ids, found, now_us)]


def group_vectors(vectors: Vector, similarity: float) -> list[list[int]]:
    """Group rows around leaders: each joins the nearest group whose mean is near enough, or begins one.

    Parameters:
        vectors: normalised, shape (n, dimensions).
        similarity: cosine that is near enough.

    Returns:
        rows by group, in order.
    """
    sums: list[Vector] = []
    groups: list[list[int]] = []
    for row, vector in enumerate(vectors):
        means = np.stack(sums) if sums else np.empty((0, vectors.shape[1]), np.float32)
        near = means @ vector / np.maximum(np.linalg.norm(means, axis=1), 1e-9)
        best = int(np.argmax(near)) if len(near) else -1
        if best >= 0 and near[best] >= similarity:
            groups[best].append(row)
            sums[best] = sums[best] + vector
        else:
            groups.append([row])
            sums.append(vector.copy())
    return groups


def _memories(snapshot: Snapshot) -> dict[str, str]:
    """Return what is clustered, text by id: what is known, and the newest summaries."""
    memories = [(memory.id, memory.text) for memory in snapshot.knowledge.active_memories()]
    summaries = [(summary.id, summary.text) for summary in snapshot.episodes.distilled(limit=_MEMORIES_MAX)]
    return dict([*memories, *summaries][-_MEMORIES_MAX:])
