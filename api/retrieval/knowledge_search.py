"""Knowledge search: ranks facts, entities, preferences, procedures, relationships and document chunks for a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import log
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.knowledge_measures import (
    KIND_GROUPS,
    KnowledgeMeasures,
    coverage_of,
    has_kind,
    items_of_topic,
    own_items,
    ranked_rows,
    sought_items,
    stranger_shares,
    title_shares,
)
from recollect.api.retrieval.ranking.relevance_gate import probability
from recollect.api.retrieval.search.knowledge_walk import named_nodes, neighbours
from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.search_terms import search_terms
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_graph import CONFIDENCE_MIN, KnowledgeGraph, Node
from recollect.projections.search_index.knowledge_index import KnowledgeIndex

#: Kinds that describe how a task is to be done, for any person or thing.
_STEP_KINDS = frozenset(("procedure",))
_RELATIONSHIPS = frozenset(("relationship",))
#: Confidence from which a preference is a strong one and belongs to the profile, which is part of every turn.
_STRONG_PREFERENCE_MIN = 0.9
#: Kinds whose first confidence is a guess.
_GUESSED_KINDS = frozenset(("procedure", "preference"))
#: Predicates of a person's likes, and the number of the newest such items that are added for a task.
_WISH = late_pattern(r"\b(?:(?:dis)?likes?|prefers?|loves?|hates?|avoids?|wants?|needs?)\b", re.I)
_WISHES_MAX = 3
#: Kinds that say who or what something is, and the factor on them for a question that asks for something else.
_LINKING_KINDS = frozenset(("entity", "relationship"))
_LINKING_FACTOR = 0.6
#: The probability of an item that has all words of the topic of an overview.
_OVERVIEW_PROBABILITY = 0.5
#: Items that match a query so well that the entities they are about are entries to the graph, and their number.
_ENTRY_PROBABILITY_MIN = 0.3
_ENTRIES_MAX = 5
#: Deviations from which on an item of a hub fits a query.
_FITTING_DEVIATIONS = 3.0
#: The change of an item's logit by ratings without end, in each direction; one rating changes it by half of that.
_RATING_MAX = 2.0
#: The sum of ratings up to which an item is dropped for them: two that call it misleading.
_DROPPING_RATING = -2.0
#: A passed item that ratings lower keeps this probability, unless they drop it; that of `namespace_search`.
_RATED_PROBABILITY_MIN = 0.1
#: The factor on the probability of a stale item, of a document that another one replaces, and of one that another one
#: contradicts.
_STALE_FACTOR = 0.5
_REPLACED_FACTOR = 0.5
_CONTRADICTED_FACTOR = 0.5
#: The share of the probability of a replaced document that the document in its place has at least.
_REPLACEMENT_SHARE = 0.95
#: Namespaces whose item vectors stay in memory.
_NAMESPACES_MAX = 64
#: The probability of what a person does not eat, with a request for a meal.
_DIETARY_PROBABILITY = 0.95
#: Items of one kind in one result, so that no kind crowds out the others; facts and relationships as in `000`.
_KIND_MAX = 5
_KIND_MAX_BY_KIND = {"fact": 10, "relationship": 10}
#: Items in a profile, which is part of every passive context.
_PROFILE_MAX = 20


class KnowledgeMatch(NamedTuple):
    """A knowledge item that may belong to the answer."""

    item: KnowledgeItem
    #: The probability that it belongs to the answer, 0 to 1.
    probability: float
    #: Whether it is about an entity that the query names and that is not a participant.
    named: bool
    #: Whether the answer has to respect it.
    required: bool
    #: Its rank, from 1, in each list that has it.
    ranks: dict[str, int]


class VectorsNotComparable(Exception):
    """The vectors of the knowledge items cannot be read; the message has the cause."""


class KnowledgeSearch:
    """Searches the knowledge of a namespace. Safe to use from many threads."""

    def __init__(self, background: ScoreBackground) -> None:
        self._matrices: WeakKeyDictionary[KnowledgeIndex, tuple[str, Vector]] = WeakKeyDictionary()
        #: The rows of the latest items by digest of their text, and their vectors, for each (model, namespace).
        self._latest: BoundedCache[tuple[str, str], tuple[dict[bytes, int], Vector]] = BoundedCache(_NAMESPACES_MAX)
        self._background = background

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
        measured = self.measure(context, idf, embedding)
        probabilities = _adjusted_probabilities(knowledge, measured.probabilities(), context.asked_at_us)
        if context.query.intent.overview:
            # All that has the words of the topic belongs to it, however alike its items are.
            probabilities = np.fmax(probabilities, _OVERVIEW_PROBABILITY * measured.columns["topic"])
        else:
            probabilities[has_kind(knowledge, _LINKING_KINDS)] *= _LINKING_FACTOR
        required = _required_items(context, probabilities)
        probabilities[required] = _DIETARY_PROBABILITY
        rows = np.flatnonzero((measured.is_match() & (probabilities > 0)) | required)
        matches = _matches(knowledge, rows, probabilities, measured, required)
        return [match._replace(item=_as_last_seen(context, match.item)) for match in matches]

    def measure(self, context: SearchContext, idf: Mapping[str, float], embedding: Vector | None) -> KnowledgeMeasures:
        """Return the measures of every item for a query.

        Parameters:
            idf, embedding: as in `search`.
        """
        knowledge = context.index.knowledge
        deviations = None if embedding is None else self._deviations(context, knowledge, embedding)
        terms = search_terms(context.snapshot.keywords, context.query.words, german=context.query.german)
        stems = [frozenset(form for term in word for form in term.forms) for word in terms]
        measured = KnowledgeMeasures(
            deviations,
            [has_kind(knowledge, kinds) for kinds in KIND_GROUPS],
            {
                "coverage": coverage_of(context, knowledge, idf, terms),
                "title": title_shares(knowledge, frozenset(form for forms in stems for form in forms)),
                "own": own_items(context, knowledge),
                "sought": sought_items(context, knowledge),
                "topic": items_of_topic(context, knowledge, terms),
            },
        )
        graph, count = knowledge.graph, len(knowledge.items)
        named = named_nodes(graph, context.query.entities, context.query.words, stems)
        measured.columns["named"] = _row_strengths(graph, _specific(graph, named, count), count)
        measured.columns["stranger"] = stranger_shares(context, knowledge, measured.columns)
        probabilities = measured.relevance()
        fitting = _fitting(knowledge, deviations, probabilities)
        entries = _named_entries(graph, probabilities, named)
        matched = _matched_nodes(knowledge, probabilities)
        reached = neighbours(graph, entries, matched)
        # One passage of a document is not a reason for its other passages; its relations are.
        reached = {node: strength for node, strength in reached.items() if isinstance(node, int) or node not in matched}
        measured.columns["neighbour"] = _neighbour_strengths(fitting, graph, reached)
        return measured

    def _deviations(self, context: SearchContext, knowledge: KnowledgeIndex, embedding: Vector) -> Vector | None:
        """Return how far the cosine of each item is above unrelated statements; None when no item is embedded yet."""
        cosines = self._cosines(context, knowledge, embedding)
        if np.isnan(cosines).all():
            return None
        try:
            return self._background.deviations(context.vectors, embedding, cosines)
        except Exception as error:
            raise VectorsNotComparable(f"{type(error).__name__}: {error}") from error

    def _cosines(self, context: SearchContext, knowledge: KnowledgeIndex, embedding: Vector) -> Vector:
        """Return the cosine of each item and the query, shape (items,); NaN for an item without a vector."""
        fingerprint = context.vectors.embedder.fingerprint
        cached = self._matrices.get(knowledge)
        if cached is None or cached[0] != fingerprint or np.isnan(cached[1][:, 0]).any():
            cached = fingerprint, self._item_vectors(context, knowledge, fingerprint, len(embedding))
            self._matrices[knowledge] = cached
        return product(cached[1], embedding)

    def _item_vectors(
        self, context: SearchContext, knowledge: KnowledgeIndex, fingerprint: str, dimensions: int
    ) -> Vector:
        """Return the vectors of the items, shape (items, dimensions), NaN for one without; only new ones are read."""
        # The last row, which stands for those that are not there, has no vector.
        rows, latest = self._latest.get((fingerprint, context.namespace)) or (
            {},
            np.full((1, dimensions), np.nan, np.float32),
        )
        vectors = latest[[rows.get(digest, -1) for digest in (*knowledge.digests, b"")]]
        missing = [(row, knowledge.digests[row]) for row in np.flatnonzero(np.isnan(vectors[:-1, 0])).tolist()]
        try:
            read = context.vectors.cached_texts(context.namespace, context.snapshot, [digest for _, digest in missing])
        except Exception as error:
            raise VectorsNotComparable(f"{type(error).__name__}: {error}") from error
        for row, digest in missing:
            if digest in read:
                vectors[row] = read[digest]
        rows = {digest: row for row, digest in enumerate(knowledge.digests)}
        self._latest.put((fingerprint, context.namespace), (rows, vectors))
        return vectors[:-1]


def profile_items(knowledge: KnowledgeIndex, asked_at_us: int) -> list[KnowledgeItem]:
    """Return the profile: what every conversation gets.

    Valid standing instructions, pinned items, facts of the layer `proactive` (`004`) and strong preferences.
    """
    chosen = [
        item
        for item in knowledge.items
        if item.status == "active"
        and (
            item.standing
            or item.pinned
            or item.layer == "proactive"
            or (item.kind == "preference" and item.confidence >= _STRONG_PREFERENCE_MIN)
        )
        and item.is_valid_at(asked_at_us)
    ]
    # Requested by the user first, then by confidence; new items do not change the order of the others.
    chosen.sort(key=lambda item: (not item.standing, not item.pinned, -item.confidence, item.version, item.id))
    return chosen[:_PROFILE_MAX]


def _named_entries(graph: KnowledgeGraph, probabilities: Vector, named: Mapping[Node, float]) -> dict[Node, float]:
    """Return the nodes that the query names, each with the probability of its best item times its strength."""
    return {
        node: strength * max((float(probabilities[row]) for row in graph.rows.get(node, ())), default=1.0)
        for node, strength in named.items()
    }


def _matched_nodes(knowledge: KnowledgeIndex, probabilities: Vector) -> dict[Node, float]:
    """Return the nodes of the best items, which a query may find by meaning, with the probability of the item."""
    nodes: dict[Node, float] = {}
    for best in ranked_rows(probabilities, _ENTRY_PROBABILITY_MIN)[:_ENTRIES_MAX]:
        row = int(best)
        for node in () if _is_doubtful(knowledge.items[row]) else knowledge.graph.nodes_of(row):
            if node not in knowledge.graph.hubs:
                nodes.setdefault(node, float(probabilities[row]))
    return nodes


def _fitting(knowledge: KnowledgeIndex, deviations: Vector | None, probabilities: Vector) -> Vector:
    """Return the weight with which each item of a hub entity is added, 0 to 1, shape (items,).

    Items near to the query have one, and with a task also the likes and dislikes of a person.
    """
    count = len(knowledge.items)
    fitting = np.zeros(count, np.float32)
    if deviations is not None:
        fitting = np.clip(np.nan_to_num(deviations) / _FITTING_DEVIATIONS, 0, 1).astype(np.float32)
    if (probabilities[has_kind(knowledge, _STEP_KINDS)] >= _ENTRY_PROBABILITY_MIN).any():
        wishes = [row for row in range(count) if _WISH.search(knowledge.items[row].predicate)]
        newest = sorted(wishes, key=lambda row: (-knowledge.items[row].occurred_at_us, row))
        fitting[newest[:_WISHES_MAX]] = 1
    return fitting


def _neighbour_strengths(fitting: Vector, graph: KnowledgeGraph, nodes: Mapping[Node, float]) -> Vector:
    """Return the strength of each item as a neighbour of the query, shape (items,).

    Parameters:
        fitting: the share of the strength that an item of a hub gets.
    """
    of_hubs = _row_strengths(graph, {node: value for node, value in nodes.items() if node in graph.hubs}, len(fitting))
    others = {node: value for node, value in nodes.items() if node not in graph.hubs}
    return np.maximum(_row_strengths(graph, others, len(fitting)), of_hubs * fitting)


def _specific(graph: KnowledgeGraph, nodes: Mapping[Node, float], count: int) -> dict[Node, float]:
    """Return the strengths of named nodes, lower for one that many of `count` items are about (an IDF from 0 to 1)."""
    return {
        node: strength * log((count + 1) / max(1, len(graph.rows.get(node, ())))) / log(count + 1)
        for node, strength in nodes.items()
    }


def _row_strengths(graph: KnowledgeGraph, nodes: Mapping[Node, float], count: int) -> Vector:
    """Return the highest strength among the nodes that each of `count` rows is about, shape (items,)."""
    strengths = np.zeros(count, np.float32)
    for node, strength in nodes.items():
        rows = list(graph.rows.get(node, ()))
        strengths[rows] = np.maximum(strengths[rows], strength)
    return strengths


def _adjusted_probabilities(knowledge: KnowledgeIndex, probabilities: Vector, asked_at_us: int) -> Vector:
    """Return the probabilities after confidence, staleness, ratings and relations of documents, shape (items,).

    An item that is not valid, and a relationship of low confidence, has 0.
    """
    confidences = knowledge.confidences
    # The first confidence of a procedure or preference is a guess, so it counts for half.
    factors = np.where(has_kind(knowledge, _GUESSED_KINDS), (1 + confidences) / 2, confidences)
    factors = factors * np.where(knowledge.is_stale, _STALE_FACTOR, 1.0)
    adjusted = (probabilities.astype(np.float32) * factors.astype(np.float32)).astype(np.float32)
    is_doubtful = has_kind(knowledge, _RELATIONSHIPS) & (confidences <= CONFIDENCE_MIN)
    dropped = (knowledge.valid_until_us <= asked_at_us) | is_doubtful
    for row, rating in knowledge.ratings_by_row.items():
        adjusted[row] = _rated(float(adjusted[row]), rating)
    adjusted[dropped] = 0
    _order_documents(knowledge, adjusted)
    return adjusted


def _is_doubtful(item: KnowledgeItem) -> bool:
    """Return whether an item is a relation of too low confidence."""
    return item.kind == "relationship" and item.confidence <= CONFIDENCE_MIN


def _rated(value: float, rating: float) -> float:
    """Return a probability after ratings: 1 for each that calls the item useful, -0.5 for noise, -1 for misleading."""
    logit = float(np.log(value / (1 - value))) if 0 < value < 1 else 0.0
    rated = (
        float(probability(np.array([logit + _RATING_MAX * rating / (1 + abs(rating))]))[0]) if 0 < value < 1 else value
    )
    if rating > _DROPPING_RATING:
        # One rating lowers an item; it does not remove it for good.
        return max(rated, min(value, _RATED_PROBABILITY_MIN))
    return rated


def _order_documents(knowledge: KnowledgeIndex, probabilities: Vector) -> None:
    """Lower replaced and contradicted documents, and raise the replacement when only its replaced document matches."""
    replaced = knowledge.replaced_rows
    for row, document_id in replaced.items():
        new_rows = list(knowledge.rows_by_document.get(document_id, ()))
        if new_rows and not probabilities[new_rows].max() >= _REPLACEMENT_SHARE * probabilities[row]:
            # The passage that says most about the query among those of the new document.
            probabilities[max(new_rows, key=lambda new: probabilities[new])] = _REPLACEMENT_SHARE * probabilities[row]
    probabilities[list(replaced)] *= np.float32(_REPLACED_FACTOR)
    probabilities[list(knowledge.contradicted_rows)] *= np.float32(_CONTRADICTED_FACTOR)


def _required_items(context: SearchContext, probabilities: Vector) -> Mask:
    """Return the mask of the valid items that the answer has to respect, shape (items,).

    Nothing in "a recipe for pancakes" is near to "Tom is allergic to eggs", neither by word nor by vector.
    """
    required = np.zeros(len(probabilities), np.bool_)
    if context.query.intent.meal:
        required[context.index.knowledge.dietary_rows] = True
    return required & (probabilities > 0)


def _as_last_seen(context: SearchContext, item: KnowledgeItem) -> KnowledgeItem:
    """Return an item with its present time: each message that names an entity changes it, and no message the index."""
    if item.kind != "entity":
        return item
    return item._replace(occurred_at_us=context.snapshot.entities.last_seen_us(item.id))


def _matches(
    knowledge: KnowledgeIndex, rows: Ints, probabilities: Vector, measured: KnowledgeMeasures, required: Mask
) -> list[KnowledgeMatch]:
    """Return the matches among `rows`, most probable first, at most `_KIND_MAX` of a kind."""
    ranks_by_list = {
        name: {int(row): rank for rank, row in enumerate(listed, 1)} for name, listed in measured.lists().items()
    }
    named = measured.columns["named"]
    matches: list[KnowledgeMatch] = []
    counts: dict[str, int] = {}
    for index in np.lexsort((-rows, -probabilities[rows])):
        row = int(rows[index])
        item = knowledge.items[row]
        if counts.get(item.kind, 0) < _KIND_MAX_BY_KIND.get(item.kind, _KIND_MAX):
            counts[item.kind] = counts.get(item.kind, 0) + 1
            listed = {name: rank_by_row[row] for name, rank_by_row in ranks_by_list.items() if row in rank_by_row}
            matches.append(
                KnowledgeMatch(item, float(probabilities[row]), bool(named[row] > 0), bool(required[row]), listed)
            )
    return matches
