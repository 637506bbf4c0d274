"""Clusters: groups memories with similar vectors and gives each group a label."""

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
#: Share of members that must have changed before the clusters are computed again.
_CHANGED_SHARE = 0.1
#: Tokens of a label: a few words.
_LABEL_TOKENS = 8


def cluster(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memories.clustered` when enough memories changed since the last clustering."""
    texts = _memories(snapshot)
    clustered_ids = snapshot.knowledge.clustered_ids()
    if len(texts) < 2 or len(clustered_ids ^ texts.keys()) <= _CHANGED_SHARE * len(texts):
        return []
    vectors = context.vectors().vectors_of_texts(namespace, snapshot, list(texts.values()))
    if vectors is None:
        return []
    ids = list(texts)
    clusters: list[dict[str, Any]] = []
    for members in group_vectors(vectors, context.settings.compaction.cluster_similarity):
        member_texts = [texts[ids[row]] for row in members]
        label = " ".join(keywords(snapshot, member_texts, tokens_max=_LABEL_TOKENS)) or member_texts[0]
        clusters.append({"label": label, "memory_ids": [ids[row] for row in members]})
    return [memories_clustered(ids, clusters, now_us)]


def group_vectors(vectors: Vector, similarity: float) -> list[list[int]]:
    """Group rows by leader clustering: each row joins the group with the most similar mean, or begins a new group.

    Parameters:
        vectors: normalised, shape (n, dimensions).
        similarity: the lowest cosine to the mean of a group at which a row joins it.

    Returns:
        the row indexes of each group, in order.
    """
    sums: list[Vector] = []
    groups: list[list[int]] = []
    for row, vector in enumerate(vectors):
        means = np.stack(sums) if sums else np.empty((0, vectors.shape[1]), np.float32)
        cosines = means @ vector / np.maximum(np.linalg.norm(means, axis=1), 1e-9)
        best = int(np.argmax(cosines)) if len(cosines) else -1
        if best >= 0 and cosines[best] >= similarity:
            groups[best].append(row)
            sums[best] = sums[best] + vector
        else:
            groups.append([row])
            sums.append(vector.copy())
    return groups


def _memories(snapshot: Snapshot) -> dict[str, str]:
    """Return the texts to cluster by id: active memories and distilled summaries, at most `_MEMORIES_MAX`."""
    memories = [(memory.id, memory.text) for memory in snapshot.knowledge.active_memories()]
    summaries = [(summary.id, summary.text) for summary in snapshot.episodes.distilled(limit=_MEMORIES_MAX)]
    return dict([*memories, *summaries][-_MEMORIES_MAX:])
