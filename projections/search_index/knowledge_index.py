"""Knowledge index: holds the memories of a read model that are not episodes, with the stems of their texts.

Facts, entities, preferences, procedures, relationships and documents. All of them fit in memory, since a namespace has
far fewer of them than episodes.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from recollect.events.late_pattern import late_pattern
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.projector.predicates import attribute_stems, canonical
from recollect.projections.queries.knowledge_items import DerivedItem, ItemKey, KnowledgeItem
from recollect.projections.queries.later_statements import LaterStatement
from recollect.projections.queries.restriction_queries import HiddenMemories
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_graph import KnowledgeGraph, Node, build_graph, object_words
from recollect.projections.text.segments import search_segments
from recollect.projections.text.words import distinct_words

_Key = TypeVar("_Key", bound=Hashable)

#: The words of a fact that says what a person does not eat.
_DIETARY = late_pattern(
    r"\b(?:allerg\w{0,6}|intoleran\w{0,3}|diet is|cannot (?:eat|drink|take)|does not (?:eat|drink)|"
    r"never (?:eats|drinks)|avoids|co?eliac|diabet\w{0,3}|halal|kosher)\b",
    re.I,
)
#: Groups of people who ask and must not be shown the same memories, whose parts of an index are cached.
_ASKERS_MAX = 16


class IndexedItem(NamedTuple):
    """An item with what the index needs of its texts."""

    item: KnowledgeItem
    #: The stems of its text and how often the text has them.
    terms: Mapping[str, int]
    #: The stems of each of its titles: the names that a task at hand or a question has in common with it.
    title_stems: Sequence[frozenset[str]]
    #: sha256 of its text: the key of its vector in `vectors.db`.
    digest: bytes
    #: Whether it says what a person does not eat.
    is_dietary: bool
    #: Of a fact, the words that may name what it is about besides its subject.
    object_words: Sequence[str]


class KnowledgeIndex(Struct, frozen=True, eq=False, dict=True, weakref=True):
    """The valid knowledge of a read model at one version."""

    #: The items with the rows of the read model that they were read from.
    indexed: Mapping[ItemKey, DerivedItem[IndexedItem]] = field(default_factory=dict[ItemKey, DerivedItem[IndexedItem]])
    #: Ids of the source events whose facts are no longer valid.
    outdated: frozenset[str] = frozenset()
    #: What ended or replaced what an event said, by the id of that event.
    later: Mapping[str, LaterStatement] = field(default_factory=dict[str, LaterStatement])
    #: Versions of the episodes among `outdated`, ascending.
    outdated_versions: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    #: Ratings that users gave to retrieved memories, by id of the memory.
    ratings: Mapping[str, float] = field(default_factory=dict[str, float])
    #: Ratings that users gave to retrieved episodes, by version.
    episode_ratings: Mapping[int, float] = field(default_factory=dict[int, float])
    #: The entities and documents that the items are about.
    graph: KnowledgeGraph = field(default_factory=KnowledgeGraph)

    def prepare(self) -> None:
        """Compute what nearly every query needs, which takes half as long as to load the index."""
        texts = self.terms, self.title_stems, self.digests, self.rows_with_term, self.rows_by_title_stem
        columns = self.confidences, self.is_stale, self.has_entities, self.valid_until_us, self.dietary_rows
        for part in (*texts, *columns, self.rows_by_subject, self.attributes):
            len(part)

    @cached_property
    def items(self) -> Sequence[KnowledgeItem]:
        """Return the items, one a row."""
        return [it.value.item for it in self.indexed.values()]

    @cached_property
    def terms(self) -> Sequence[Mapping[str, int]]:
        """Return the stems of each item and how often its text has them."""
        return [it.value.terms for it in self.indexed.values()]

    @cached_property
    def title_stems(self) -> Sequence[Sequence[frozenset[str]]]:
        """Return the stems of each title of each item."""
        return [it.value.title_stems for it in self.indexed.values()]

    @cached_property
    def digests(self) -> Sequence[bytes]:
        """Return the digest of each item's text."""
        return [it.value.digest for it in self.indexed.values()]

    @cached_property
    def dietary_rows(self) -> Ints:
        """Return the rows of the facts that say what a person does not eat, shape (rows,)."""
        return np.flatnonzero([it.value.is_dietary for it in self.indexed.values()])

    @cached_property
    def fact_sources(self) -> frozenset[str]:
        """Return the ids of the source events of the facts."""
        return frozenset(id for item in self.items if item.memory_type == "fact" for id in item.source_events)

    @cached_property
    def identity_sources(self) -> frozenset[str]:
        """Return the ids of the source events of the facts about who someone is, such as a birthday."""
        facts = (item for item in self.items if item.memory_type == "fact" and item.statement_kind == "identity")
        return frozenset(id for item in facts for id in item.source_events)

    @cached_property
    def standing(self) -> Sequence[KnowledgeItem]:
        """Return the standing instructions."""
        return [item for item in self.items if item.standing]

    @cached_property
    def rows_with_term(self) -> Mapping[str, Sequence[int]]:
        """Return the rows of `items` that contain a stem, by stem."""
        return _rows_by(self.terms)

    @cached_property
    def active_facts(self) -> Mapping[str, Mapping[Node, Sequence[int]]]:
        """Return the rows of the active facts, by canonical predicate and by the entity of the subject."""
        rows: dict[str, dict[Node, list[int]]] = {}
        for row, item in enumerate(self.items):
            if item.kind == "fact" and item.status == "active" and item.entities:
                rows.setdefault(canonical(item.predicate), {}).setdefault(item.entities[0], []).append(row)
        return rows

    @cached_property
    def attributes(self) -> Mapping[str, Sequence[str]]:
        """Return the predicates of active facts that name an attribute, such as `shoe size is`, by their least stem."""
        predicates: dict[str, list[str]] = {}
        for predicate in self.active_facts:
            stems = attribute_stems(predicate)
            if stems:
                predicates.setdefault(min(stems), []).append(predicate)
        return predicates

    def has_kind(self, kinds: frozenset[str]) -> NDArray[np.bool_]:
        """Return the mask of the items of `kinds`, shape (items,); computed once, so it must not be changed."""
        mask = self._kind_masks.get(kinds)
        if mask is None:
            mask = np.isin(self._kinds, [*kinds])
            self._kind_masks[kinds] = mask
        return mask

    @cached_property
    def confidences(self) -> NDArray[np.float64]:
        """Return the confidence of each item, shape (items,)."""
        return np.array([item.confidence for item in self.items], np.float64)

    @cached_property
    def is_stale(self) -> NDArray[np.bool_]:
        """Return the mask of the stale items, shape (items,)."""
        return np.array([item.status == "stale" for item in self.items], np.bool_)

    @cached_property
    def has_entities(self) -> NDArray[np.bool_]:
        """Return the mask of the items that are about entities, shape (items,)."""
        return np.array([bool(item.entities) for item in self.items], np.bool_)

    @cached_property
    def valid_until_us(self) -> Ints:
        """Return the end of validity of each item, shape (items,); the highest number for one without an end."""
        endless = np.iinfo(np.int64).max
        ends = (endless if item.valid_until_us is None else item.valid_until_us for item in self.items)
        return np.fromiter(ends, np.int64, len(self.items))

    @cached_property
    def rows_by_subject(self) -> Mapping[Node, Sequence[int]]:
        """Return the rows of the items by the first entity that they are about."""
        return _rows_by(item.entities[:1] for item in self.items)

    @cached_property
    def rows_by_title_stem(self) -> Mapping[str, Sequence[int]]:
        """Return the rows of the items by the stems of their titles."""
        return _rows_by(frozenset[str]().union(*titles) for titles in self.title_stems)

    @cached_property
    def rows_by_document(self) -> Mapping[str, Sequence[int]]:
        """Return the rows of the passages of each document."""
        return _rows_by(() if item.document_id is None else (item.document_id,) for item in self.items)

    @cached_property
    def replaced_rows(self) -> Mapping[int, str]:
        """Return the rows of the passages of replaced documents, each with the id of the document in its place."""
        return {row: item.replaced_by.document_id for row, item in enumerate(self.items) if item.replaced_by}

    @cached_property
    def contradicted_rows(self) -> Sequence[int]:
        """Return the rows of the passages of documents that another one contradicts and none replaces."""
        return [row for row, item in enumerate(self.items) if not item.replaced_by and item.contradicted_by is not None]

    @cached_property
    def ratings_by_row(self) -> Mapping[int, float]:
        """Return the rating of each item that has one other than 0."""
        if not self.ratings:
            return {}
        return {row: rating for row, item in enumerate(self.items) if (rating := self.ratings.get(item.id, 0.0))}

    @cached_property
    def _kinds(self) -> NDArray[np.str_]:
        return np.array([item.kind for item in self.items], np.str_)

    @cached_property
    def _kind_masks(self) -> dict[frozenset[str], NDArray[np.bool_]]:
        return {}

    def without(self, hidden: HiddenMemories) -> KnowledgeIndex:
        """Return the index without hidden memories; the walks over the graph still pass them."""
        index = self._without.get(hidden)
        if index is None:
            kept = [row for row, item in enumerate(self.items) if not _is_hidden(item, hidden)]
            row_of = {row: place for place, row in enumerate(kept)}
            indexed = [*self.indexed.items()]
            graph = replace(
                self.graph,
                rows={node: [row_of[row] for row in rows if row in row_of] for node, rows in self.graph.rows.items()},
                nodes=[self.graph.nodes_of(row) for row in kept],
            )
            index = replace(
                self,
                indexed=dict(indexed[row] for row in kept),
                later={id: later for id, later in self.later.items() if later.source_event not in hidden.ids},
                graph=graph,
            )
            self._without.put(hidden, index)
        return index

    @cached_property
    def _without(self) -> BoundedCache[HiddenMemories, KnowledgeIndex]:
        return BoundedCache(_ASKERS_MAX)

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a stem, as in BM25."""
        frequency = len(self.rows_with_term.get(term, ()))
        return math.log1p((len(self.items) - frequency + 0.5) / (frequency + 0.5))


def _is_hidden(item: KnowledgeItem, hidden: HiddenMemories) -> bool:
    """Return whether an item has what a hidden message says: a source, a name, or a description."""
    entities = hidden.linked_entities | hidden.described_entities if item.kind == "entity" else hidden.linked_entities
    return hidden.hides(item.id, item.source_events) or not entities.isdisjoint(item.entities)


def _rows_by(keys_by_row: Iterable[Iterable[_Key]]) -> dict[_Key, list[int]]:
    """Return the rows that have a key, by key.

    Parameters:
        keys_by_row: the keys of each row, each once.
    """
    rows: dict[_Key, list[int]] = {}
    for row, keys in enumerate(keys_by_row):
        for key in keys:
            rows.setdefault(key, []).append(row)
    return rows


def load_knowledge_index(snapshot: Snapshot, last: KnowledgeIndex) -> KnowledgeIndex:
    """Return the index of the valid knowledge of a read model.

    Parameters:
        last: an earlier index of the read model, or an empty one. What it has of an item whose row is the same is used
            again.
    """
    stem = snapshot.keywords.stemmer()
    indexed = snapshot.knowledge.derived_items(last.indexed, lambda item: _indexed(item, stem))
    names, relations = snapshot.entities.names_in_knowledge(), snapshot.entities.document_relations()
    return KnowledgeIndex(
        indexed,
        snapshot.knowledge.outdated_sources(),
        snapshot.knowledge.later_statements(),
        np.array(snapshot.knowledge.outdated_versions(), np.int64),
        snapshot.knowledge.ratings(),
        snapshot.knowledge.episode_ratings(),
        build_graph([(it.value.item, it.value.object_words) for it in indexed.values()], names, relations, stem),
    )


def _indexed(item: KnowledgeItem, stem: Callable[[str], list[str]]) -> IndexedItem:
    """Return an item with what the index needs of its texts."""
    titles = [" ".join(distinct_words(title.replace("_", " "))) for title in item.titles]
    is_fact = item.kind == "fact"
    return IndexedItem(
        item,
        _stems(item.text, stem),
        [frozenset(_stems(title, stem)) for title in titles if title],
        sha256(item.text.encode(errors="replace")).digest(),
        is_dietary=is_fact and _DIETARY.search(item.line) is not None,
        object_words=object_words(item.object) if is_fact else (),
    )


def _stems(text: str, stem: Callable[[str], list[str]]) -> Mapping[str, int]:
    """Return the stems of a text with their frequencies."""
    # A `Counter` takes four times as long to make of so few.
    counts: dict[str, int] = {}
    for part in map(sys.intern, stem(" ".join([text, *search_segments(text)]))):
        counts[part] = counts.get(part, 0) + 1
    return counts
