"""Knowledge measures: the features of each knowledge item for a query, and its relevance by them.

- by vector: `near`, how far its cosine is above unrelated statements; `distinct`, the same where it also stands out
  among the items; `closest`, the distance to the nearest item of its kind;
- by word: `coverage`, the share of the query's words that it has; `topic`, whether it has all words of the topic;
  `title`, the share of its title that the query has;
- by person or thing: `own`, whether it is about the person asked about; `named`, whether about a thing that the query
  names; `stranger`, the share of the names in the query that it does not have;
- by kind: `sought`, whether the wording asks for its kind.

The relevance is the probability that an item belongs to the answer, by two logistic regressions: with vectors and
without. `ops/fit/knowledge_fit.py` fits them to knowledge items and questions written for it, since the benchmark
conversations mark messages as evidence, not knowledge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct

from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.relevance_gate import probability
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.api.retrieval.understanding.search_terms import SearchTerm
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints
from recollect.projections.search_index.knowledge_graph import Node
from recollect.projections.search_index.knowledge_index import KnowledgeIndex
from recollect.projections.text.names import mentioned_names

#: Cosines from this many standard deviations above unrelated statements on count as a match by vector, and how many.
_DEVIATIONS_MIN = 2.0
_NEAREST_MAX = 20
#: The deviations that the measures of an item range over: larger ones make no difference.
_DEVIATIONS_MAX = 8.0
#: Kinds whose items compete to answer a question.
KIND_GROUPS = (
    frozenset(("fact", "entity", "relationship")),
    frozenset(("procedure",)),
    frozenset(("preference",)),
    frozenset(("document",)),
)
_PROCEDURES = frozenset(("procedure",))
_PREFERENCES = frozenset(("preference",))
#: The distinctness that leaves the nearness of an item as it is.
_DISTINCTNESS_UNIT = 3.0
#: Items that the unrelated statements count for in the distribution of all items, and its smallest variance.
_BACKGROUND_ITEMS = 4
_VARIANCE_MIN = 0.25
#: The probability of a direct neighbour of a certain match, before its distance counts: in `000` the graph adds at most
#: 0.02 to a reciprocal rank of 0.033 for the first of two lists.
_NEIGHBOUR_SHARE = 0.6
#: Characters of a query that are searched for names.
_NAMED_CHARS_MAX = 1_000
#: The measures, in the order of their coefficients.
MEASURES = ("near", "distinct", "closest", "coverage", "title", "own", "named", "sought", "stranger")
#: The coefficients of `MEASURES`, the constant last.
_HYBRID = np.array([0.03, 1.3, 0.13, 0.43, 0.85, 1.35, 0.0, 2.06, -1.44, -5.4], np.float32)
_KEYWORD = np.array([0.0, 0.0, 0.0, 4.07, 2.29, 1.02, 1.37, 1.7, -1.74, -3.69], np.float32)


class KnowledgeMeasures(Struct, frozen=True):
    """The measures of every item of a namespace for one query."""

    #: How far the cosine of each item is above those of unrelated statements, shape (items,); NaN: not embedded yet.
    #: None: a search by keywords alone.
    deviations: Vector | None
    #: Masks of the items that compete with each other, such as procedures, each of shape (items,).
    groups: Sequence[Mask]
    #: Further measures by name, each of shape (items,).
    columns: dict[str, Vector]

    def matrix(self) -> Vector:
        """Return the measures in the order of `MEASURES`, shape (items, measures)."""
        columns = dict(self.columns)
        if self.deviations is not None:
            columns["near"] = np.clip(np.nan_to_num(self.deviations), 0, _DEVIATIONS_MAX)
            columns["closest"] = np.zeros(len(self.deviations), np.float32)
            columns["distinct"] = np.zeros(len(self.deviations), np.float32)
            for group in self.groups:
                if group.any():
                    near = columns["near"][group]
                    columns["closest"][group] = near - near.max()
                    distinctness = _distinctness(np.nan_to_num(self.deviations[group]))
                    columns["distinct"][group] = near * np.maximum(distinctness, 0) / _DISTINCTNESS_UNIT
        zeros = np.zeros(len(self.columns["coverage"]), np.float32)
        return np.stack([columns.get(name, zeros) for name in MEASURES], axis=1).astype(np.float32)

    def relevance(self) -> Vector:
        """Return the probability of each item by itself, shape (items,)."""
        return relevance(self.matrix(), semantic=self.deviations is not None)

    def probabilities(self) -> Vector:
        """Return the probability of each item by itself or as a neighbour of a match, shape (items,)."""
        own, neighbour = self.relevance(), self.columns["neighbour"]
        return (own + (1 - own) * _NEIGHBOUR_SHARE * neighbour).astype(np.float32)

    def lists(self) -> dict[str, Ints]:
        """Return the ranked lists by name: rows, best first."""
        graph = np.maximum(self.columns["named"], self.columns["neighbour"])
        lists = {"keyword": ranked_rows(self.columns["coverage"], 0.0), "graph": ranked_rows(graph, 0.0)}
        if self.deviations is not None:
            lists["semantic"] = ranked_rows(np.nan_to_num(self.deviations), _DEVIATIONS_MIN)[:_NEAREST_MAX]
        return lists

    def is_match(self) -> Mask:
        """Return the mask of the items in a ranked list, shape (items,)."""
        mask = np.zeros(len(self.columns["coverage"]), np.bool_)
        for rows in self.lists().values():
            mask[rows] = True
        return mask | (self.columns["title"] > 0)


def _distinctness(deviations: Vector) -> Vector:
    """Return how far each of `deviations` is above the mean of all, in their standard deviations, same shape.

    A name that a query shares with most items brings all of them near, so that nearness alone says little. Unrelated
    statements, of mean 0 and deviation 1, count as `_BACKGROUND_ITEMS` items, so that a single item can be distinct.
    """
    count = len(deviations) + _BACKGROUND_ITEMS
    mean = float(deviations.sum()) / count
    variance = (float(np.square(deviations).sum()) + _BACKGROUND_ITEMS) / count - mean**2
    return ((deviations - mean) / np.sqrt(max(variance, _VARIANCE_MIN))).astype(np.float32)


def coverage_of(
    context: SearchContext, knowledge: KnowledgeIndex, idf: Mapping[str, float], terms: Sequence[Sequence[SearchTerm]]
) -> Vector:
    """Return the share of the query's words in each item, weighted by IDF, shape (items,)."""
    coverage = np.zeros(len(knowledge.items), np.float32)
    total = 1e-9
    for word, forms_of_word in zip(context.query.words, terms, strict=True):
        for forms, share in forms_of_word:
            weight = share * (max(idf.get(word, 0.0), 0.0) or min(knowledge.idf(form) for form in forms))
            total += weight
            coverage[sorted({row for form in forms for row in knowledge.rows_with_term.get(form, ())})] += weight
    return coverage / np.float32(total)


def items_of_topic(context: SearchContext, knowledge: KnowledgeIndex, terms: Sequence[Sequence[SearchTerm]]) -> Vector:
    """Return 1 for the items that have every word of the query's topic, else 0, shape (items,)."""
    topic = context.query.topic_words
    having = [
        {row for forms, _ in of_word for form in forms for row in knowledge.rows_with_term.get(form, ())}
        for word, of_word in zip(context.query.words, terms, strict=True)
        if word in topic
    ]
    mask = np.zeros(len(knowledge.items), np.float32)
    mask[sorted(set[int].intersection(*having)) if having else []] = 1
    return mask


def title_shares(knowledge: KnowledgeIndex, stems: frozenset[str]) -> Vector:
    """Return the share of the stems of an item's best title that the query has, shape (items,)."""
    shares = np.zeros(len(knowledge.items), np.float32)
    for row in {row for stem in stems for row in knowledge.rows_by_title_stem.get(stem, ())}:
        shares[row] = max(len(title & stems) / len(title) for title in knowledge.title_stems[row] if title)
    return shares


def own_items(context: SearchContext, knowledge: KnowledgeIndex) -> Vector:
    """Return 1 for the items about a person that the query is about, else 0, shape (items,).

    A question in the first person is about the asker; about all speakers, when the request does not say who.
    """
    people = frozenset[Node](context.query.participants or context.query.askers)
    if not people and is_first_person(context.query.question):
        people = knowledge.graph.speakers
    own = np.zeros(len(knowledge.items), np.float32)
    for person in people:
        own[list(knowledge.rows_by_subject.get(person, ()))] = 1
    if not context.query.participants:
        own[has_kind(knowledge, _PREFERENCES) & ~knowledge.has_entities] = 1
    return own


def sought_items(context: SearchContext, knowledge: KnowledgeIndex) -> Vector:
    """Return 1 for the items of a kind that the wording of the query asks for, else 0, shape (items,)."""
    intent = context.query.intent
    procedures = has_kind(knowledge, _PROCEDURES) & (intent.procedure or intent.remember)
    return (procedures | (has_kind(knowledge, _PREFERENCES) & intent.preference)).astype(np.float32)


def stranger_shares(context: SearchContext, knowledge: KnowledgeIndex, columns: Mapping[str, Vector]) -> Vector:
    """Return the share of the names in a query that an item about an entity does not have, shape (items,).

    A question about a person whom the memory does not know is not a question about another one.
    """
    names = mentioned_names(context.query.question[:_NAMED_CHARS_MAX])
    names = [name for name in names if name.casefold() not in context.query.participant_names]
    shares = np.zeros(len(knowledge.items), np.float32)
    if not names:
        return shares
    stem = context.snapshot.keywords.stemmer()
    for name in names:
        lacks_name = knowledge.has_entities.copy()
        having = [frozenset(knowledge.rows_with_term.get(term, ())) for term in stem(name)]
        lacks_name[sorted(frozenset[int].intersection(*having)) if having else slice(None)] = False
        shares[lacks_name] += 1 / len(names)
    return np.where(columns["named"] > 0, np.float32(0), shares)


def has_kind(knowledge: KnowledgeIndex, kinds: Collection[str]) -> Mask:
    """Return the mask of the items of `kinds`, shape (items,)."""
    return knowledge.has_kind(frozenset(kinds))


def ranked_rows(values: Vector, minimum: float) -> Ints:
    """Return the rows whose value is over `minimum`, highest value first; of equal values the newest row first."""
    rows = np.flatnonzero(values > minimum)
    return rows[np.lexsort((-rows, -values[rows]))]


def relevance(measures: Vector, *, semantic: bool) -> Vector:
    """Return the probability of each item, shape (items,).

    With vectors it is the higher one of both regressions: a code or a number that matches by word means nothing to an
    embedding model.

    Parameters:
        measures: shape (items, len(MEASURES)).
        semantic: whether the measures of the vectors are there.
    """
    logits = measures @ _KEYWORD[:-1] + _KEYWORD[-1]
    if semantic:
        logits = np.maximum(logits, measures @ _HYBRID[:-1] + _HYBRID[-1])
    return probability(logits)
