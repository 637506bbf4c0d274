"""Namespace search: the episodes and knowledge of one namespace for a query, gated, merged and limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from recollect.api.retrieval.chosen_messages import answers, chosen_messages, episode_items
from recollect.api.retrieval.contract.request import Kind
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.episode_search import EpisodeSearch
from recollect.api.retrieval.knowledge_search import KnowledgeMatch, KnowledgeSearch, VectorsNotComparable
from recollect.api.retrieval.neighbouring_turns import with_later, with_neighbours
from recollect.api.retrieval.profile import profile
from recollect.api.retrieval.ranking.asked_time import NO_MEMORY_OF_TIME, lasting_facts, limiting_scope, may_answer
from recollect.api.retrieval.ranking.choice import DOUBTFUL_ANSWER_MIN, choose
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.relevance_gate import (
    ANSWER_MIN,
    ITEM_MIN,
    KEYWORD_ANSWER_MIN,
    PASSIVE_ITEM_MIN,
    answer_measures,
    item_measures,
    load_gate,
    matches_span,
    probability,
)
from recollect.api.retrieval.ranking.repeated_texts import distinct_episodes
from recollect.api.retrieval.ranking.reranker import Reranker
from recollect.api.retrieval.ranking.search_result import DroppedCandidate, SearchResult
from recollect.api.retrieval.result_items import knowledge_item
from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import QueryEmbeddings, weights_name
from recollect.api.retrieval.understanding.fillers import is_filler
from recollect.api.retrieval.understanding.query import Query
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.text.text_flags import is_question
from recollect.projections.text.words import STOP_WORDS, folded_words

#: Two texts are duplicates when they are the same, or when this share of their distinct words is common; of shorter
#: texts only the same ones are.
_DUPLICATE_OVERLAP_MIN = 0.9
_DUPLICATE_WORDS_MIN = 4
#: The words in only one of two duplicates, at most, as a share of the words of both: a little more than a 19th.
_MISSING_SHARE_MAX = (1 - _DUPLICATE_OVERLAP_MIN) / (1 + _DUPLICATE_OVERLAP_MIN) + 1e-6
#: One word in this many is looked up in another text first.
_SAMPLED_ONE_IN = 3


class NamespaceSearch:
    """Searches one namespace for a query. Safe to use from many threads."""

    def __init__(self, reranker: Reranker | None = None) -> None:
        self._reranker = reranker
        #: What the embedding model scores for unrelated statements.
        self.background = background = ScoreBackground()
        self.episodes = EpisodeSearch(background, QueryEmbeddings())
        self._knowledge = KnowledgeSearch(background)

    def close(self) -> None:
        """Wait for running searches, then stop their threads."""
        self.episodes.close()
        if self._reranker is not None:
            self._reranker.close()

    def search(self, context: SearchContext, excluded: Sequence[int] = ()) -> SearchResult:
        """Return the items for a query, best first, with the candidates that were dropped.

        Parameters:
            excluded: versions of episodes to leave out, such as turns that the prompt holds already.
        """
        try:
            return self._search(context, excluded)
        except VectorsNotComparable as error:
            # Scores by vector and scores by keyword are not comparable, so everything is searched again by keyword.
            context.budget.record_missing("semantic", error)
            return self._search(context, excluded, by_vectors=False)

    def _search(self, context: SearchContext, excluded: Sequence[int], *, by_vectors: bool = True) -> SearchResult:
        """Return the result of a search with vectors, or by keywords alone."""
        request = context.request
        kinds = request.kinds
        if statements := profile(context, partial(_is_requested, context)):
            return SearchResult(context, statements, 1.0, None, [])
        ranked = None
        if request.query.strip() and (kinds is None or "episode" in kinds):
            ranked = self.episodes.search(context, request.ranking, excluded, by_vectors=by_vectors)
            context = context if ranked is None else ranked.context
        matches = self._knowledge_matches(context, ranked, by_vectors) if request.query.strip() else []
        if not _is_time_empty(context, ranked):
            matches = _with_lasting_facts(context, matches)
        choice = None if ranked is None or request.ranking != "weighted" else choose(ranked)
        dropped: list[DroppedCandidate] = []
        if choice is None:
            episodes, grounding = self._gated_episodes(context, ranked)
        else:
            episodes = self._ordered(context, chosen_messages(context, choice, matches, dropped), choice.ranked)
            grounding = choice.answer
        items = _merged(context, episodes, matches, dropped, ranked)
        grounding = max(grounding, *(match.probability for match in matches if not match.required), 0.0)
        passes = _passes_gate(context, ranked, grounding) if choice is None else answers(context, choice, matches)
        if request.gate and request.ranking == "weighted" and not passes:
            # Knowledge about an entity that a message mentions belongs to the turn, even below the gate (`000`).
            kept = {match.item.id for match in matches if match.required or (match.named and request.mode == "passive")}
            kept_items = [item for item in items if item.id in kept]
            dropped += [
                DroppedCandidate(item.id, item.kind, item.score, "gate: nothing relevant")
                for item in items
                if item not in kept_items
            ]
            items = kept_items
        elif items and ranked is not None and choice is None and _may_add_neighbours(context):
            items = with_neighbours(context, items, ranked, frozenset(candidate.id for candidate in dropped))
        if not items and _is_time_empty(context, ranked):
            return SearchResult(context, items, 0.0, ranked, dropped, NO_MEMORY_OF_TIME)
        return SearchResult(context, items, grounding, ranked, dropped, helps=choice is None or passes)

    def _gated_episodes(self, context: SearchContext, ranked: RankedEpisodes | None) -> tuple[list[Item], float]:
        """Return the episodes that pass the gate, best first, and the probability that memory has an answer."""
        if ranked is None or not len(ranked.order):
            return [], 0.0
        scores = ranked.scores[ranked.order]
        if context.request.ranking != "weighted":
            distinct = distinct_episodes(context, ranked, context.request.limit)
            return episode_items(context, ranked, distinct, scores[distinct.positions]), 1.0
        word_count = len(context.query.question.split())
        gate = load_gate(weights_name(ranked.signals.semantics))
        answer_logit = gate.answer(answer_measures(ranked, context.query), word_count)
        if _is_certain_match(context, ranked):
            answer_logit = max(answer_logit, _SURE_LOGIT)
        probabilities = gate.items(answer_logit, item_measures(ranked))
        # Twice the limit, since duplicates are dropped later.
        distinct = distinct_episodes(context, ranked, 2 * context.request.limit)
        probabilities = probabilities[distinct.positions]
        if context.request.gate:
            # "Remember when …" asks for a memory, as a question does.
            passive = context.request.mode == "passive" and not context.query.intent.remember
            over_threshold = probabilities >= (PASSIVE_ITEM_MIN if passive else ITEM_MIN)
            distinct, probabilities = distinct.where(over_threshold), probabilities[over_threshold]
        # Scores never rise along the order, so that an order by score is the same order.
        items = episode_items(context, ranked, distinct, np.minimum.accumulate(probabilities))
        return self._ordered(context, items, ranked), float(probability(np.array([answer_logit]))[0])

    def _ordered(self, context: SearchContext, items: list[Item], ranked: RankedEpisodes) -> list[Item]:
        """Return the messages with content in their final order, each after the message that ended it."""
        if context.request.gate:
            items = [item for item in items if not is_filler(item.text)]
        if context.request.mode == "passive":
            items = [item for item in items if not _is_repeated(item.text, context.query.question)]
        if self._reranker is not None and items:
            items = self._reranker.rerank(context.query.question, items, context.budget)
        return with_later(context, items, ranked)

    def _query_vector(self, context: SearchContext) -> Vector | None:
        """Return the query's vector, shape (dimensions,); None, and a note, when it is not embedded in time."""
        vector = self.episodes.query_vector(context)
        # A query of control characters alone has no text, so no vector is missing.
        if vector is None and context.query.text.strip():
            context.budget.record_missing(
                "semantic", context.vectors.embedder.reason or "the query could not be embedded in time"
            )
        return vector

    def _knowledge_matches(
        self, context: SearchContext, ranked: RankedEpisodes | None, by_vectors: bool
    ) -> list[KnowledgeMatch]:
        """Return the knowledge items that pass the gate, most probable first; none when only episodes are requested."""
        kinds = context.request.kinds
        within_session = context.request.session_id is not None and context.request.mode == "active"
        if context.request.ranking != "weighted" or kinds == _EPISODES_ONLY or within_session:
            return []
        if context.request.gate and context.query.intent.small_talk:
            # "ok" is near to every short text.
            return []
        embedding: Vector | None = None
        if ranked is not None:
            semantics = ranked.signals.semantics
            embedding = None if semantics is None else semantics.embedding.vector
        elif by_vectors and not context.budget.failed("semantic"):
            # Episodes are not requested, or none matched; knowledge may still match by vector.
            embedding = self._query_vector(context)
        idf = {} if ranked is None else ranked.signals.keywords.idf
        try:
            matches = self._knowledge.search(context, idf, embedding)
        except VectorsNotComparable:
            raise
        except Exception as error:
            context.budget.record_missing("knowledge", error)
            return []
        requested = [match for match in matches if _is_requested(context, match.item)]
        if not context.request.gate:
            return requested
        return [match for match in requested if match.probability >= _KNOWLEDGE_MINS[match.item.kind] or match.required]


def _passes_gate(context: SearchContext, ranked: RankedEpisodes | None, grounding: float) -> bool:
    """Return whether the gate lets a result pass; a question about a participant always gets the best items."""
    query, answer_min = context.query, context.settings.gate_answer_min
    if query.intent.small_talk:
        # Words alone do not distinguish thanks from an answer with the same words.
        return False
    if _may_need_memory(query) and query.participants and context.request.mode == "active":
        return True
    if answer_min is None:
        semantic = ranked is not None and ranked.signals.semantics is not None
        answer_min = ANSWER_MIN if semantic else KEYWORD_ANSWER_MIN
        answer_min = answer_min if _may_need_memory(query) else DOUBTFUL_ANSWER_MIN
    return grounding >= answer_min


def _is_repeated(text: str, turn: str) -> bool:
    """Return whether a message has the words of a turn: who says the same again learns nothing from it."""
    return len(text) <= 2 * len(turn) and bool(words := folded_words(turn)) and folded_words(text) == words


def _may_need_memory(query: Query) -> bool:
    """Return whether a query may be about a memory, by its wording: no small talk, no task."""
    if query.intent.small_talk or query.without_topic:
        return False
    return not query.intent.task or bool(query.entities or query.participants)


def _may_add_neighbours(context: SearchContext) -> bool:
    """Return whether neighbouring messages are added; in a passive turn that asks nothing most of them are noise."""
    query = context.query
    return context.request.mode == "active" or query.intent.remember or is_question(query.question)


def _is_certain_match(context: SearchContext, ranked: RankedEpisodes) -> bool:
    """Return whether the candidates certainly belong to the query.

    They do when a fact answers it, or one message has all its words; without a topic, when they are of its time range
    or all about the user.
    """
    query = context.query
    # A fact may come from a message that the request leaves out.
    stating = ranked.signals.answering_versions
    if len(stating) and np.isin(context.episodes.versions[ranked.candidates.rows], stating).any():
        return True
    if query.has_topic:
        coverage = ranked.signals.keywords.coverage[ranked.candidates.rows]
        return float(coverage.max(initial=0.0)) >= _WHOLE_COVERAGE
    if query.time_ranges:
        return matches_span(ranked)
    return query.intent.overview or query.intent.personal or query.intent.own_question


#: The coverage of a message that has all words of a query, but for rounding.
_WHOLE_COVERAGE = 0.99
#: The logit of an answer that is sure to be there: a probability of 0.73.
_SURE_LOGIT = 1.0
#: The factor on the probability of a knowledge item among messages, by kind: a message has more detail, and the
#: messages of an answer share its probability. Tried: 1, 0.5, 0.25.
_KNOWLEDGE_SHARES: Mapping[str, float] = {
    "document": 1.0,
    "procedure": 1.0,
    "fact": 0.25,
    "preference": 0.25,
    "entity": 0.25,
    "relationship": 0.25,
}
_EPISODES_ONLY: frozenset[Kind] = frozenset(("episode",))
#: The lowest probability of a knowledge item in a result with the gate, by kind. Counted once for 14 held-out chats: 3
#: of 14 facts from .1 to .3 were of a message with the answer, of 35 entities and relationships under .5 none.
_KNOWLEDGE_MINS: Mapping[str, float] = {
    "document": 0.1,
    "procedure": 0.1,
    "fact": 0.1,
    "preference": 0.1,
    "entity": 0.3,
    "relationship": 0.2,
}


def _is_requested(context: SearchContext, item: KnowledgeItem) -> bool:
    """Return whether the request allows the kind, the time and the metadata of an item."""
    kinds = context.request.kinds
    if (kinds is not None and item.kind not in kinds) or not context.request.includes(item.occurred_at_us):
        return False
    return context.passes_metadata(item.kind, item.document_id or item.id)


def _is_time_empty(context: SearchContext, ranked: RankedEpisodes | None) -> bool:
    """Return whether a query asks about a time without episodes; False when episodes were not searched."""
    kinds = context.request.kinds
    is_searched = (kinds is None or "episode" in kinds) and not context.budget.failed("keyword")
    if limiting_scope(context) is None or not is_searched:
        return False
    return ranked is None or ranked.signals.is_time_empty


def _with_lasting_facts(context: SearchContext, matches: list[KnowledgeMatch]) -> list[KnowledgeMatch]:
    """Return the matches, and after them the facts that held in the time that a query asks about as a whole."""
    present = {match.item.id for match in matches}
    facts = [item for item in lasting_facts(context) if item.id not in present and _is_requested(context, item)]
    return matches + [
        KnowledgeMatch(item, _KNOWLEDGE_MINS[item.kind], named=False, required=False, ranks={"time": rank})
        for rank, item in enumerate(facts, start=1)
    ]


def _is_said_in_message(context: SearchContext, item: KnowledgeItem) -> bool:
    """Return whether an item is the words of a message that is still there: where the message is found, they are."""
    kinds = context.request.kinds
    is_searched = kinds is None or "episode" in kinds
    if not is_searched or item.predicate != SAYS or item.pinned or not item.source_events:
        return False
    return context.snapshot.episodes.said(item.source_events[0]) is not None


def _merged(
    context: SearchContext,
    episodes: Sequence[Item],
    matches: Sequence[KnowledgeMatch],
    dropped: list[DroppedCandidate],
    ranked: RankedEpisodes | None,
) -> list[Item]:
    """Return episodes and knowledge by score, at most `limit`, without duplicates of a better item."""
    limit = context.request.limit
    episode_events = {id for item in episodes[:limit] for id in item.source_events}
    knowledge_items: list[Item] = []
    scope, is_time_empty = limiting_scope(context), _is_time_empty(context, ranked)
    for match in matches:
        item = knowledge_item(context, match.item, match.probability, match.ranks)
        if scope is not None and not may_answer(context, scope, item, has_episodes=not is_time_empty):
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, "not of the time asked for"))
            continue
        if not match.required and _is_said_in_message(context, match.item):
            dropped.append(
                DroppedCandidate(item.id, item.kind, item.score, "words of a message, which is searched itself")
            )
            continue
        # The message itself has more detail than the fact that was extracted from it.
        duplicated_id = (
            next((id for id in item.source_events if id in episode_events), None)
            if item.kind == "fact" and not match.required
            else None
        )
        if duplicated_id is not None:
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, f"told by {duplicated_id}"))
        else:
            knowledge_items.append(item)
    merged = [*episodes, *knowledge_items]
    if knowledge_items:
        # All that is known of a topic is what an overview asks for.
        shares: Mapping[str, float] = {} if context.query.intent.overview else _KNOWLEDGE_SHARES
        required = {match.item.id for match in matches if match.required}
        merged.sort(key=lambda item: (item.id not in required, -item.score * shares.get(item.kind, 1.0)))
        # Scores never rise along the order, so that an order by score is the same order.
        scores = np.minimum.accumulate([item.score for item in merged])
        merged = [replace(item, score=float(score)) for item, score in zip(merged, scores, strict=True)]
    chosen: list[Item] = []
    texts = _ChosenTexts()
    for item in merged:
        if item.trust < context.request.min_trust:
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, f"trust {item.trust}"))
            continue
        if len(chosen) == limit:
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, "over the limit"))
            continue
        text = _compared(item)
        duplicate = texts.duplicate_of(text)
        if duplicate is not None:
            dropped.append(DroppedCandidate(item.id, item.kind, item.score, f"says the same as {chosen[duplicate].id}"))
        else:
            chosen.append(item)
            texts.add(text)
    return chosen


class _ComparedText(NamedTuple):
    """The text of an item, as it is compared with those of other items."""

    #: Speaker and words of the whole text, in order, case folded.
    whole: tuple[str, ...]
    #: The distinct words without stop words.
    words: set[str]
    #: Some of the words, by which most texts differ.
    sample: set[str]


class _ChosenTexts:
    """The texts of the items of a result, which further items must not repeat."""

    def __init__(self) -> None:
        self._count = 0
        self._by_whole: dict[tuple[str, ...], int] = {}
        #: Position and words of the texts with as many distinct words: most pairs differ in length.
        self._by_length: dict[int, list[tuple[int, set[str]]]] = {}

    def add(self, text: _ComparedText) -> None:
        """Add the text of the next item."""
        self._by_whole.setdefault(text.whole, self._count)
        if len(text.words) >= _DUPLICATE_WORDS_MIN:
            self._by_length.setdefault(len(text.words), []).append((self._count, text.words))
        self._count += 1

    def duplicate_of(self, text: _ComparedText) -> int | None:
        """Return the position of the first text that is the same, or has nearly the same words; None: there is none."""
        duplicates = [self._by_whole[text.whole]] if text.whole in self._by_whole else []
        length = len(text.words)
        if length >= _DUPLICATE_WORDS_MIN:
            for other_length, texts in self._by_length.items():
                if other_length >= _DUPLICATE_OVERLAP_MIN * length and length >= _DUPLICATE_OVERLAP_MIN * other_length:
                    # Duplicates have no more words in only one of them; most pairs have more in the sample.
                    missing_max = _MISSING_SHARE_MAX * (length + other_length)
                    duplicates += [
                        position
                        for position, words in texts
                        if len(text.sample - words) <= missing_max and _have_same_words(text.words, words)
                    ]
        return min(duplicates, default=None)


def _have_same_words(words: set[str], others: set[str]) -> bool:
    """Return whether the words of two texts are nearly the same."""
    common = len(words & others)
    return common >= _DUPLICATE_OVERLAP_MIN * (len(words) + len(others) - common)


def _compared(item: Item) -> _ComparedText:
    """Return the text of an item for comparison. The same words of two speakers are two statements."""
    text = item.text[:2_000]
    words = folded_words(text)
    distinct = set(words) - STOP_WORDS
    sample = set(islice(distinct, len(distinct) // _SAMPLED_ONE_IN))
    return _ComparedText((item.speaker or "", *(words or [text])), distinct, sample)
