"""Knowledge search: ranks facts, entities, preferences, procedures, relationships and document chunks for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.relevance_gate import probability
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.search_terms import search_terms
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.knowledge_queries import KnowledgeItem
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_index import KnowledgeIndex

#: Items that match by vector alone: at most this many, and only from this cosine on (`002`: 0.4).
_NEAREST_MAX = 20
_COSINE_MIN = 0.4
#: Coefficients of an item's logit: constant, share of the query's words in the item, cosine, item about an entity of
#: the query. Set by hand, since the benchmark collections mark messages as evidence, not extracted knowledge.
_CONSTANT, _COVERAGE, _COSINE, _ABOUT = -6.0, 4.0, 4.0, 0.5
#: The same without vectors, where the words must carry more weight.
_CONSTANT_KEYWORD, _COVERAGE_KEYWORD = -5.5, 5.0
#: Coefficients of an item about an entity that the query names and that is no participant, and of that entity itself.
_NAMED_ENTITY, _IS_NAMED_ENTITY = 1.5, 3.0
#: Coefficient of the rating, from -1 to 1.
_RATING = 2.0
#: The factor on the probability of a stale item.
_STALE_FACTOR = 0.5
#: Namespaces whose item vectors stay in memory.
_NAMESPACES_MAX = 64
#: Items of one kind in one result, so that no kind crowds out the others.
_KIND_MAX = 5
#: Items in a profile, which is part of every passive context.
_PROFILE_MAX = 20


class KnowledgeMatch(NamedTuple):
    """A knowledge item that may belong to the answer."""

    item: KnowledgeItem
    #: The probability that it belongs to the answer, 0 to 1.
    probability: float
    #: Whether it is about an entity that the query names and that is no participant.
    named: bool
    #: Its rank, from 1, in each list that has it.
    ranks: dict[str, int]


class VectorsNotComparable(Exception):
    """The vectors of the knowledge items cannot be read; the message has the cause."""


class KnowledgeSearch:
    """Searches the knowledge of a namespace. Safe to use from many threads."""

    def __init__(self) -> None:
        self._matrices: WeakKeyDictionary[KnowledgeIndex, tuple[str, Vector]] = WeakKeyDictionary()
        #: The vectors of the latest items by digest of their text, for each (model fingerprint, namespace).
        self._vectors_by_namespace: BoundedCache[tuple[str, str], dict[bytes, Vector]] = BoundedCache(_NAMESPACES_MAX)

    def search(
        self, context: SearchContext, idf: Mapping[str, float], embedding: Vector | None
    ) -> list[KnowledgeMatch]:
        """Return the knowledge items for a query, most probable first; at most `_KIND_MAX` of a kind.

        Parameters:
            idf: the inverse document frequency of each word of the query, among the episodes.
            embedding: the query's vector, shape (dimensions,); None for a search by keywords alone.

        Raises:
            VectorsNotComparable: `embedding` is given, and the vectors of the items cannot be read.
        """
        knowledge = context.index.knowledge
        if not knowledge.items:
            return []
        coverage = _coverage(context, knowledge, idf)
        cosines = None if embedding is None else self._cosines(context, knowledge, embedding)
        if cosines is not None and np.isnan(cosines).all():
            # No item is embedded yet: rank by keywords.
            cosines = None
        about = _about(knowledge, {*context.query.entities, *context.query.participants})
        named = _about(knowledge, set(context.query.entities))
        nearest = np.zeros(len(knowledge.items), np.bool_)
        if cosines is None:
            logits = _CONSTANT_KEYWORD + _COVERAGE_KEYWORD * coverage + _ABOUT * about
        else:
            logits = _CONSTANT + _COVERAGE * coverage + _COSINE * np.nan_to_num(cosines) + _ABOUT * about
            nearest[_ranked_rows(np.nan_to_num(cosines), _COSINE_MIN)[:_NEAREST_MAX]] = True
        ratings = np.fromiter(
            (knowledge.ratings.get(item.id, 0.0) for item in knowledge.items), np.float32, len(knowledge.items)
        )
        is_named_entity = named & np.fromiter(
            (item.kind == "entity" for item in knowledge.items), np.bool_, len(knowledge.items)
        )
        logits = logits + _NAMED_ENTITY * named + _IS_NAMED_ENTITY * is_named_entity + _RATING * np.clip(ratings, -1, 1)
        rows = np.flatnonzero((coverage > 0) | nearest | named)
        probabilities = _adjusted_probabilities(knowledge.items, rows, probability(logits[rows]), context.asked_at_us)
        lists = {"keyword": _ranked_rows(coverage, 0.0), "graph": _ranked_rows(named.astype(np.float32), 0.0)}
        if cosines is not None:
            lists["semantic"] = _ranked_rows(np.nan_to_num(cosines), _COSINE_MIN)[:_NEAREST_MAX]
        return _matches(knowledge, rows, probabilities, lists)

    def _cosines(self, context: SearchContext, knowledge: KnowledgeIndex, embedding: Vector) -> Vector:
        """Return the cosine of each item and the query, shape (items,); NaN for an item without a vector."""
        fingerprint = context.vectors.embedder.fingerprint
        cached = self._matrices.get(knowledge)
        if cached is None or cached[0] != fingerprint or np.isnan(cached[1][:, 0]).any():
            vectors = self._item_vectors(context, knowledge, fingerprint)
            missing = np.full(len(embedding), np.nan, np.float32)
            cached = fingerprint, np.stack([vectors.get(digest, missing) for digest in knowledge.digests])
            self._matrices[knowledge] = cached
        return cached[1] @ embedding

    def _item_vectors(self, context: SearchContext, knowledge: KnowledgeIndex, fingerprint: str) -> dict[bytes, Vector]:
        """Return the vectors of the items by digest of their text; only those of new items are read."""
        vectors = self._vectors_by_namespace.get((fingerprint, context.namespace)) or {}
        uncached = [digest for digest in knowledge.digests if digest not in vectors]
        try:
            loaded = context.vectors.cached_texts(context.namespace, context.snapshot, uncached)
        except Exception as error:
            raise VectorsNotComparable(f"{type(error).__name__}: {error}") from error
        vectors = {digest: vectors[digest] for digest in knowledge.digests if digest in vectors} | {
            digest: vector for digest, vector in zip(uncached, loaded, strict=True) if vector is not None
        }
        self._vectors_by_namespace.put((fingerprint, context.namespace), vectors)
        return vectors


def profile_items(knowledge: KnowledgeIndex, asked_at_us: int, confidence_min: float) -> list[KnowledgeItem]:
    """Return the profile: valid standing instructions, pinned items and strong preferences, for every conversation.

    Parameters:
        confidence_min: the confidence from which a preference is a strong one.
    """
    chosen = [
        item
        for item in knowledge.items
        if item.status == "active"
        and (item.standing or item.pinned or (item.kind == "preference" and item.confidence >= confidence_min))
        and item.is_valid_at(asked_at_us)
    ]
    # Requested by the user first, then by confidence; new items do not change the order of the others.
    chosen.sort(key=lambda item: (not item.standing, not item.pinned, -item.confidence, item.version, item.id))
    return chosen[:_PROFILE_MAX]


def _coverage(context: SearchContext, knowledge: KnowledgeIndex, idf: Mapping[str, float]) -> Vector:
    """Return the share of the query's words in each item, weighted by IDF, shape (items,)."""
    coverage = np.zeros(len(knowledge.items), np.float32)
    total = 1e-9
    words = context.query.words
    by_word = search_terms(context.snapshot.keywords, words, german=context.query.german)
    for word, terms in zip(words, by_word, strict=True):
        for forms, share in terms:
            weight = share * (max(idf.get(word, 0.0), 0.0) or min(knowledge.idf(form) for form in forms))
            total += weight
            coverage[sorted({row for form in forms for row in knowledge.rows_with_term.get(form, ())})] += weight
    return coverage / np.float32(total)


def _about(knowledge: KnowledgeIndex, entities: set[int]) -> Mask:
    """Return the mask of the items about one of `entities`, shape (items,)."""
    if not entities:
        return np.zeros(len(knowledge.items), np.bool_)
    return np.fromiter(
        (not entities.isdisjoint(item.entities) for item in knowledge.items), np.bool_, len(knowledge.items)
    )


def _ranked_rows(values: Vector, minimum: float) -> Ints:
    """Return the rows whose value is over `minimum`, highest value first; of equal values the newest row first."""
    rows = np.flatnonzero(values > minimum)
    return rows[np.lexsort((-rows, -values[rows]))]


def _adjusted_probabilities(
    items: Sequence[KnowledgeItem], rows: Ints, probabilities: Vector, asked_at_us: int
) -> Vector:
    """Return the probabilities of `rows`, reduced by confidence and staleness; 0 for an item that is not valid."""
    adjusted = probabilities.astype(np.float32)
    for index, row in enumerate(rows):
        item = items[int(row)]
        factor = item.confidence * (_STALE_FACTOR if item.status == "stale" else 1.0)
        adjusted[index] *= factor if item.is_valid_at(asked_at_us) else 0.0
    return adjusted


def _matches(
    knowledge: KnowledgeIndex,
    rows: Ints,
    probabilities: Vector,
    lists: Mapping[str, Ints],
) -> list[KnowledgeMatch]:
    """Return the matches, most probable first, at most `_KIND_MAX` of a kind."""
    ranks_by_list = {name: {int(place): rank for rank, place in enumerate(listed, 1)} for name, listed in lists.items()}
    matches: list[KnowledgeMatch] = []
    counts: dict[str, int] = {}
    for index in np.lexsort((-rows, -probabilities)):
        place = int(rows[index])
        item = knowledge.items[place]
        if probabilities[index] > 0 and counts.get(item.kind, 0) < _KIND_MAX:
            counts[item.kind] = counts.get(item.kind, 0) + 1
            listed = {name: rank_by_row[place] for name, rank_by_row in ranks_by_list.items() if place in rank_by_row}
            matches.append(KnowledgeMatch(item, float(probabilities[index]), "graph" in listed, listed))
    return matches
