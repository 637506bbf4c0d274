"""Search among what is known: facts, entities, preferences, procedures, relationships and pieces of documents."""

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

#: Found by likeness alone: the nearest ones, if they are as near as this (`002`: 0.4).
_NEAREST_MAX = 20
_COSINE_MIN = 0.4
#: The logistic model of an item: constant, share of the query's words it holds, cosine, being about what is named.
#: Set by hand: the collections mark messages and not what was read out of them.
_CONSTANT, _COVERAGE, _COSINE, _ABOUT = -6.0, 4.0, 4.0, 0.5
#: Without vectors more words must be there.
_CONSTANT_KEYWORD, _COVERAGE_KEYWORD = -5.5, 5.0
#: Being about an entity that is named and takes no part in the conversations; being that entity.
_NAMED_ENTITY, _IS_NAMED_ENTITY = 1.5, 3.0
#: What a rating counts.
_RATING = 2.0
#: What is left of something that was not heard of for a long time.
_STALE_FACTOR = 0.5
#: Namespaces whose vectors of what is known are kept.
_NAMESPACES_MAX = 64
#: Of one kind in one answer.
_KIND_MAX = 5


class KnowledgeMatch(NamedTuple):
    """Something known that may belong to the answer."""

    item: KnowledgeItem
    #: How likely it does.
    probability: float
    #: Whether it is about an entity that the query names, and no participant.
    named: bool
    #: Its rank, from 1, in the lists that found it.
    ranks: dict[str, int]


class VectorsNotComparable(Exception):
    """The vectors of what is known cannot be read; the message says why."""


class KnowledgeSearch:
    """Searches what is known. Safe to use from many threads."""

    def __init__(self) -> None:
        self._matrices: WeakKeyDictionary[KnowledgeIndex, tuple[str, Vector]] = WeakKeyDictionary()
        #: By model and namespace, the vectors of what was known last, by digest.
        self._vectors_by_namespace: BoundedCache[tuple[str, str], dict[bytes, Vector]] = BoundedCache(_NAMESPACES_MAX)

    def search(
        self, context: SearchContext, idf: Mapping[str, float], embedding: Vector | None
    ) -> list[KnowledgeMatch]:
        """Return what is known about a query, most likely first; at most five of a kind.

        Parameters:
            rarity: of the query's words, among the episodes.
            embedding: the query's vector; None for a search by keywords alone.

        Raises:
            NotCompared: there is an embedding, and none to compare it with can be read.
        """
        knowledge = context.index.knowledge
        if not knowledge.items:
            return []
        coverage = _coverage(context, knowledge, idf)
        cosines = None if embedding is None else self._cosines(context, knowledge, embedding)
        if cosines is not None and np.isnan(cosines).all():
            # Nothing is embedded yet, so there is nothing to go by but words.
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
        """Return how near each item is to the query; not a number where it was not embedded yet."""
        fingerprint = context.vectors.embedder.fingerprint
        cached = self._matrices.get(knowledge)
        if cached is None or cached[0] != fingerprint or np.isnan(cached[1][:, 0]).any():
            vectors = self._item_vectors(context, knowledge, fingerprint)
            missing = np.full(len(embedding), np.nan, np.float32)
            cached = fingerprint, np.stack([vectors.get(digest, missing) for digest in knowledge.digests])
            self._matrices[knowledge] = cached
        return cached[1] @ embedding

    def _item_vectors(self, context: SearchContext, knowledge: KnowledgeIndex, fingerprint: str) -> dict[bytes, Vector]:
        """Return the vectors of what is known, by digest; nearly all are those of before the last thing learned."""
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


def profile_items(knowledge: KnowledgeIndex, asked_at_us: int) -> list[KnowledgeItem]:
    """Return what holds in every conversation: standing instructions, pinned memories, strong preferences."""
    chosen = [
        item
        for item in knowledge.items
        if item.status == "active"
        and (item.standing or item.pinned or (item.kind == "preference" and item.confidence >= _STRONG_CONFIDENCE_MIN))
        and item.is_valid_at(asked_at_us)
    ]
    # What somebody asked for first, then the strongest; in an order that new ones do not change.
    chosen.sort(key=lambda item: (not item.standing, not item.pinned, -item.confidence, item.version, item.id))
    return chosen[:_PROFILE_MAX]


#: Preferences that are as strong as this belong to the profile; how much of a profile there can be.
_STRONG_CONFIDENCE_MIN = 0.9
_PROFILE_MAX = 20


def _coverage(context: SearchContext, knowledge: KnowledgeIndex, idf: Mapping[str, float]) -> Vector:
    """Return the share of the query's words, by rarity, that each item holds."""
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
    if not entities:
        return np.zeros(len(knowledge.items), np.bool_)
    return np.fromiter(
        (not entities.isdisjoint(item.entities) for item in knowledge.items), np.bool_, len(knowledge.items)
    )


def _ranked_rows(values: Vector, minimum: float) -> Ints:
    """Return the places with values over `least`, highest first; of equal ones the newest."""
    rows = np.flatnonzero(values > minimum)
    return rows[np.lexsort((-rows, -values[rows]))]


def _adjusted_probabilities(
    items: Sequence[KnowledgeItem], rows: Ints, probabilities: Vector, asked_at_us: int
) -> Vector:
    """Return probabilities with what is known of each item itself: confidence, age, validity."""
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
