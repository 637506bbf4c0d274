"""Near-duplicates become one memory, and the merge is recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.events.envelope import EventDraft
from recollect.jobs.derivation.derived_events import memories_merged
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Words that turn a sentence into its opposite.
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|without|\w+n['’]t)\b", re.IGNORECASE)
#: What two texts must have in common beside their meaning: a vector hardly tells 4 from 5, or Ann from Bob.
_EXACT = re.compile(r"\d+|\b[^\W\d_a-z]\w*")


class _Candidate(NamedTuple):
    id: str
    text: str
    #: How much speaks for it: of two, the greater one is kept, or the older.
    weight: tuple[float, int]


def merge_duplicates(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memories.merged` for active memories that say the same: of one kind and topic, and one in vector space.

    Numbers, names and negations must agree: they hardly move a vector, and are what a fact is about.
    """
    drafts: list[EventDraft] = []
    groups = list(_groups(snapshot))
    # All at once: the model is faster with many.
    rows = context.vectors().vectors_of_texts(namespace, snapshot, [one.text for group in groups for one in group])
    if rows is None:
        return []
    first = 0
    for group in groups:
        vectors = rows[first : first + len(group)]
        first += len(group)
        similar = vectors @ vectors.T
        order = sorted(range(len(group)), key=lambda at: (tuple(-part for part in group[at].weight), at))
        merged: set[int] = set()
        for place, kept in enumerate(order):
            if kept in merged:
                continue
            same = [
                other
                for other in order[place + 1 :]
                if other not in merged
                and similar[kept, other] >= context.settings.compaction.dedup_similarity
                and _exact(group[kept].text) == _exact(group[other].text)
            ]
            merged.update(same)
            if same:
                lowest = float(min(similar[kept, other] for other in same))
                drafts.append(memories_merged(group[kept].id, [group[other].id for other in same], lowest, now_us))
    return drafts


def _groups(snapshot: Snapshot) -> Iterator[list[_Candidate]]:
    """Yield memories of one kind and topic, and summaries of one session, where there are several."""
    groups: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for memory in snapshot.knowledge.active_memories():
        groups[memory.kind, memory.topic].append(
            _Candidate(memory.id, memory.text, (memory.confidence, memory.evidence))
        )
    for summary in snapshot.episodes.distilled():
        groups["episode", summary.session_id or ""].append(_Candidate(summary.id, summary.text, (1.0, 0)))
    return (group for group in groups.values() if len(group) > 1)


def _exact(text: str) -> tuple[frozenset[str], bool]:
    return frozenset(_EXACT.findall(text)), _NEGATION.search(text) is not None
