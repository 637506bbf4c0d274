"""What is known of one read model, in memory: facts, entities, preferences, procedures, relationships, documents.

It is small beside what happened: a text each, its stems, and what counts when it is weighed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.knowledge_queries import KnowledgeItem
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.segments import search_segments

#: Stems of texts that are kept between two loads: most texts stay.
_STEMMED_MAX = 50_000


@dataclass(frozen=True, eq=False)
class KnowledgeIndex:
    """All that is known at one moment."""

    items: Sequence[KnowledgeItem]
    #: The stems of each item.
    terms: Sequence[Mapping[str, int]]
    #: Ids of events that told something which no longer holds.
    outdated: frozenset[str] = frozenset()
    #: What was said of memories that were retrieved, by id; and by version, of episodes.
    ratings: Mapping[str, float] = field(default_factory=dict[str, float])
    episode_ratings: Mapping[int, float] = field(default_factory=dict[int, float])

    @cached_property
    def rows_with_term(self) -> Mapping[str, Sequence[int]]:
        """Return the places of the items that hold a stem."""
        found: dict[str, list[int]] = {}
        for place, terms in enumerate(self.terms):
            for term in terms:
                found.setdefault(term, []).append(place)
        return found

    @cached_property
    def digests(self) -> Sequence[bytes]:
        """Return sha256 of each text: what its vector is remembered by."""
        return [sha256(item.text.encode(errors="replace")).digest() for item in self.items]

    def idf(self, term: str) -> float:
        """Return how much a stem says: inverse document frequency."""
        holding = len(self.rows_with_term.get(term, ()))
        return math.log1p((len(self.items) - holding + 0.5) / (holding + 0.5))


class StemCache:
    """The stems of texts, remembered."""

    def __init__(self) -> None:
        self._known: BoundedCache[str, Mapping[str, int]] = BoundedCache(_STEMMED_MAX)

    def of(self, texts: Sequence[str], stem: Callable[[str], list[str]]) -> list[Mapping[str, int]]:
        """Return how often each stem stands in each of `texts`."""
        known = self._known.get_all(texts)
        new: dict[str, Mapping[str, int]] = {
            text: Counter(stem(" ".join([text, *search_segments(text)]))) for text in texts if text not in known
        }
        self._known.put_all(new)
        known |= new
        return [known[text] for text in texts]


def load_knowledge_index(snapshot: Snapshot, stems: StemCache) -> KnowledgeIndex:
    """Return the knowledge of a read model, without what no longer holds."""
    stem = snapshot.keywords.stemmer()
    items = snapshot.knowledge.items()
    return KnowledgeIndex(
        items,
        stems.of([item.text for item in items], stem),
        snapshot.knowledge.outdated_sources(),
        snapshot.knowledge.ratings(),
        snapshot.knowledge.episode_ratings(),
    )
