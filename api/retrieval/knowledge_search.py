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
_NEAREST = 20
_COSINE_MIN = 0.4
#: The logistic model of an item: constant, share of the query's words it holds, cosine, being about what is named.
#: Set by hand: the collections mark messages and not what was read out of them.
_CONSTANT, _COVERAGE, _COSINE, _ABOUT = -6.0, 4.0, 4.0, 0.5
#: Without vectors more words must be there.
_CONSTANT_KEYWORD, _COVERAGE_KEYWORD = -5.5, 5.0
#: Being about an entity that is named and takes no part in the conversations; being that entity.
_NAMED, _ITSELF = 1.5, 3.0
#: What a rating counts.
_RATING = 2.0
#: What is left of something that was not heard of for a long time.
_STALE = 0.5
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
        self._known: BoundedCache[tuple[str, str], dict[bytes, Vector]] = BoundedCache(_NAMESPACES_MAX)

    def search(
        self, context: SearchContext, rarity: Mapping[str, float], embedding: Vector | None
    ) -> list[KnowledgeMatch]:
        """Return what is known about a query, most likely first; at most five of a kind.

        Parameters:
            rarity: of the query's words, among the episodes.
            embedding: the query's vector; None for a search by keywords alone.

        Raises:
            NotCompared: there is an embedding, and none to compare it with can be read.
        """
        shelf = context.index.knowledge
        if not shelf.items:
            return []
        coverage = _coverage(context, shelf, rarity)
        cosines = None if embedding is None else self._cosines(context, shelf, embedding)
        if cosines is not None and np.isnan(cosines).all():
            # Nothing is embedded yet, so there is nothing to go by but words.
            cosines = None
        about = _about(shelf, {*context.query.entities, *context.query.participants})
        named = _about(shelf, set(context.query.entities))
        near = np.zeros(len(shelf.items), np.bool_)
        if cosines is None:
            logits = _CONSTANT_KEYWORD + _COVERAGE_KEYWORD * coverage + _ABOUT * about
        else:
            logits = _CONSTANT + _COVERAGE * coverage + _COSINE * np.nan_to_num(cosines) + _ABOUT * about
            near[_first(np.nan_to_num(cosines), _COSINE_MIN)[:_NEAREST]] = True
        rated = np.fromiter((shelf.ratings.get(item.id, 0.0) for item in shelf.items), np.float32, len(shelf.items))
        itself = named & np.fromiter((item.kind == "entity" for item in shelf.items), np.bool_, len(shelf.items))
        logits = logits + _NAMED * named + _ITSELF * itself + _RATING * np.clip(rated, -1, 1)
        places = np.flatnonzero((coverage > 0) | near | named)
        probabilities = _held(shelf.items, places, probability(logits[places]), context.asked_at_us)
        lists = {"keyword": _first(coverage, 0.0), "graph": _first(named.astype(np.float32), 0.0)}
        if cosines is not None:
            lists["semantic"] = _first(np.nan_to_num(cosines), _COSINE_MIN)[:_NEAREST]
        return _matches(shelf, places, probabilities, lists)

    def _cosines(self, context: SearchContext, knowledge: KnowledgeIndex, embedding: Vector) -> Vector:
        """Return how near each item is to the query; not a number where it was not embedded yet."""
        tag = context.vectors.embedder.fingerprint
        held = self._matrices.get(knowledge)
        if held is None or held[0] != tag or np.isnan(held[1][:, 0]).any():
            found = self._vectors(context, knowledge, tag)
            missing = np.full(len(embedding), np.nan, np.float32)
            held = tag, np.stack([found.get(digest, missing) for digest in knowledge.digests])
            self._matrices[knowledge] = held
        return held[1] @ embedding

    def _vectors(self, context: SearchContext, knowledge: KnowledgeIndex, tag: str) -> dict[bytes, Vector]:
        """Return the vectors of what is known, by digest; nearly all are those of before the last thing learned."""
        known = self._known.get((tag, context.namespace)) or {}
        new = [digest for digest in knowledge.digests if digest not in known]
        try:
            read = context.vectors.cached_texts(context.namespace, context.snapshot, new)
        except Exception as error:
            raise VectorsNotComparable(f"{type(error).__name__}: {error}") from error
        known = {digest: known[digest] for digest in knowledge.digests if digest in known} | {
            digest: vector for digest, vector in zip(new, read, strict=True) if vector is not None
        }
        self._known.put((tag, context.namespace), known)
        return known


def profile_items(knowledge: KnowledgeIndex, asked_at_us: int) -> list[KnowledgeItem]:
    """Return what holds in every conversation: standing instructions, pinned memories, strong preferences."""
    chosen = [
        item
        for item in knowledge.items
        if item.status == "active"
        and (item.standing or item.pinned or (item.kind == "preference" and item.confidence >= _STRONG))
        and item.is_valid_at(asked_at_us)
    ]
    # What somebody asked for first, then the strongest; in an order that new ones do not change.
    chosen.sort(key=lambda item: (not item.standing, not item.pinned, -item.confidence, item.version, item.id))
    return chosen[:_PROFILE_MAX]


#: Preferences that are as strong as this belong to the profile; how much of a profile there can be.
_STRONG = 0.9
_PROFILE_MAX = 20


def _coverage(context: SearchContext, knowledge: KnowledgeIndex, rarity: Mapping[str, float]) -> Vector:
    """Return the share of the query's words, by rarity, that each item holds."""
    found = np.zeros(len(knowledge.items), np.float32)
    whole = 1e-9
    words = context.query.words
    by_word = search_terms(context.snapshot.keywords, words, german=context.query.german)
    for word, terms in zip(words, by_word, strict=True):
        for forms, share in terms:
            weight = share * (max(rarity.get(word, 0.0), 0.0) or min(knowledge.idf(form) for form in forms))
            whole += weight
            found[sorted({place for form in forms for place in knowledge.rows_with_term.get(form, ())})] += weight
    return found / np.float32(whole)


def _about(knowledge: KnowledgeIndex, entities: set[int]) -> Mask:
    if not entities:
        return np.zeros(len(knowledge.items), np.bool_)
    return np.fromiter(
        (not entities.isdisjoint(item.entities) for item in knowledge.items), np.bool_, len(knowledge.items)
    )


def _first(values: Vector, least: float) -> Ints:
    """Return the places with values over `least`, highest first; of equal ones the newest."""
    places = np.flatnonzero(values > least)
    return places[np.lexsort((-places, -values[places]))]


def _held(items: Sequence[KnowledgeItem], places: Ints, probabilities: Vector, asked_at_us: int) -> Vector:
    """Return probabilities with what is known of each item itself: confidence, age, validity."""
    found = probabilities.astype(np.float32)
    for at, place in enumerate(places):
        item = items[int(place)]
        worth = item.confidence * (_STALE if item.status == "stale" else 1.0)
        found[at] *= worth if item.is_valid_at(asked_at_us) else 0.0
    return found


def _matches(
    knowledge: KnowledgeIndex,
    places: Ints,
    probabilities: Vector,
    lists: Mapping[str, Ints],
) -> list[KnowledgeMatch]:
    ranks = {name: {int(place): rank for rank, place in enumerate(listed, 1)} for name, listed in lists.items()}
    found: list[KnowledgeMatch] = []
    taken: dict[str, int] = {}
    for at in np.lexsort((-places, -probabilities)):
        place = int(places[at])
        item = knowledge.items[place]
        if probabilities[at] > 0 and taken.get(item.kind, 0) < _KIND_MAX:
            taken[item.kind] = taken.get(item.kind, 0) + 1
            listed = {name: by_place[place] for name, by_place in ranks.items() if place in by_place}
            found.append(KnowledgeMatch(item, float(probabilities[at]), "graph" in listed, listed))
    return found
