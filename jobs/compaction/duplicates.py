"""Duplicates: merges near-duplicate memories, by event."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.events.envelope import EventDraft
from recollect.events.late_pattern import late_pattern
from recollect.jobs.derivation.event_drafts import memories_merged
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.embeddings.matrix_product import product
from recollect.projections.queries.snapshot import Snapshot

#: Cosine from which two memories are merged.
_DUPLICATE_COSINE_MIN = 0.92
#: Words that negate a sentence.
_NEGATION = late_pattern(r"\b(?:not|no|never|none|nothing|without|\w+n['’]t)\b", re.IGNORECASE)
#: Numbers and capitalised words, which duplicates must share: vectors hardly distinguish 4 from 5, or Ann from Bob.
_EXACT = late_pattern(r"\d+|\b[^\W\d_a-z]\w*")


class _Candidate(NamedTuple):
    """A memory or summary that may have duplicates."""

    id: str
    text: str
    #: Confidence and evidence: of duplicates, the candidate with the greatest weight is kept, or the oldest.
    weight: tuple[float, int]


def merge_duplicates(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memories.merged` for active memories of one kind and topic whose vectors are nearly the same.

    Numbers, names and negations must be the same: they hardly change a vector, but they change the meaning.
    """
    drafts: list[EventDraft] = []
    groups = [part for group in _groups(snapshot) for part in _alike(group)]
    # One call for all texts: the embedding model is faster with large batches.
    rows = context.vectors().vectors_of_texts(
        namespace, snapshot, [candidate.text for group in groups for candidate in group]
    )
    if rows is None:
        return []
    first = 0
    for group in groups:
        vectors = rows[first : first + len(group)]
        first += len(group)
        similarities = product(vectors, vectors.T)
        order = sorted(range(len(group)), key=lambda row: (tuple(-part for part in group[row].weight), row))
        merged: set[int] = set()
        for position, survivor in enumerate(order):
            if survivor in merged:
                continue
            duplicates = [
                other
                for other in order[position + 1 :]
                if other not in merged and similarities[survivor, other] >= _DUPLICATE_COSINE_MIN
            ]
            merged.update(duplicates)
            if duplicates:
                lowest = float(min(similarities[survivor, other] for other in duplicates))
                ids = [group[other].id for other in duplicates]
                drafts.append(memories_merged(group[survivor].id, ids, lowest, now_us))
    return drafts


def _groups(snapshot: Snapshot) -> Iterator[list[_Candidate]]:
    """Yield the groups of two or more: memories of one kind and topic, and summaries of one session."""
    groups: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    # The sentences of facts have vectors already, those of retrieval.
    facts = {item.id: item.text for item in snapshot.knowledge.items() if item.kind == "fact"}
    for memory in snapshot.knowledge.active_memories():
        text = facts.get(memory.id, memory.text)
        groups[memory.kind, memory.topic].append(_Candidate(memory.id, text, (memory.confidence, memory.evidence)))
    for summary in snapshot.episodes.distilled():
        groups["episode", summary.session_id or ""].append(_Candidate(summary.id, summary.text, (1.0, 0)))
    return (group for group in groups.values() if len(group) > 1)


def _alike(group: Sequence[_Candidate]) -> Iterator[list[_Candidate]]:
    """Yield the parts of a group with the same numbers, names and negation; only these can be duplicates.

    Most memories share them with no other one, and so need no vector.
    """
    parts: defaultdict[tuple[frozenset[str], bool], list[_Candidate]] = defaultdict(list)
    for candidate in group:
        parts[_exact_parts(candidate.text)].append(candidate)
    return (part for part in parts.values() if len(part) > 1)


def _exact_parts(text: str) -> tuple[frozenset[str], bool]:
    """Return the numbers and capitalised words of `text`, and whether it has a negation."""
    return frozenset(_EXACT.findall(text)), _NEGATION.search(text) is not None
