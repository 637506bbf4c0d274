"""Choice inputs: the features of a query and of its first candidates that the choice model reads.

Which words of a query ask memory for something, and which only keep a conversation going, is learned by the statement
reader (`message_acts`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.relevance_gate import MEASURES, answer_measures
from recollect.api.retrieval.understanding.asks_memory import asks_logit
from recollect.api.retrieval.understanding.question_intent import QuestionIntent
from recollect.jobs.extraction.statement_reader import HEADS, ReadClause, read_each
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import ROLES, Ints
from recollect.projections.text.answer_type import AnswerType
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.text_flags import is_question

#: Candidates that the model chooses from: the first ones of the order, and turns around the best of them.
FIRST_MAX = 20
CANDIDATES_MAX = 32
#: Candidates whose neighbours are candidates, and the turns on each side.
_ANCHORS = 6
_REACH = 2
_DAY_US = 86_400_000_000

#: Numbers of a candidate, besides its ranking features.
OWN_FEATURES = (
    "behind_first",
    "behind_previous",
    "place",
    "dense",
    "window",
    "late",
    "coverage",
    "bm25",
    "by_user",
    "by_assistant",
    "is_turn",
    "session_of_first",
    "before",
    "after",
    "age",
    "newer",
    "is_neighbour",
)
#: The score distance from the first candidate of a place without a candidate.
_FAR = 8.0
#: Characters and sentences of a query that are read.
_CHARS_MAX, _SENTENCES_MAX = 400, 4
_OF_CLAUSE = (*HEADS["act"], "keep", "nothing_in_particular")
#: The greatest and the mean value of all clauses.
MESSAGE_ACTS = tuple(f"{part}_{name}" for part in ("greatest", "mean") for name in _OF_CLAUSE)
CANDIDATE_FEATURES = (*FEATURES, *OWN_FEATURES)
_INTENTS = tuple(name for name in QuestionIntent.__struct_fields__ if name != "answer")
QUERY_FEATURES = (
    *MEASURES,
    *_INTENTS,
    *(f"answer_{kind.name}" for kind in AnswerType),
    "has_topic",
    "without_topic",
    "has_time",
    "passive",
    "is_question",
    "words",
    "participants",
    "entities",
    "candidates",
    *MESSAGE_ACTS,
    "asks_memory",
)


class ChoiceInputs(Struct, frozen=True):
    """The inputs of the choice model for one query."""

    #: Indexes of the candidates in `RankedEpisodes.candidates`, best first, then neighbours; shape (n,).
    candidates: Ints
    #: Shape (n, `CANDIDATE_FEATURES`).
    features: Vector
    #: Shape (`QUERY_FEATURES`,).
    query: Vector


def choice_inputs(ranked: RankedEpisodes) -> ChoiceInputs | None:
    """Return the inputs of the choice model; None without vectors or candidates."""
    if ranked.signals.semantics is None or ranked.late is None or not len(ranked.order):
        return None
    chosen, places = _candidates(ranked)
    return ChoiceInputs(chosen, _features(ranked, chosen, places), _query_features(ranked, len(chosen)))


def _candidates(ranked: RankedEpisodes) -> tuple[Ints, Ints]:
    """Return the candidates to choose from, and the place of each in the order of the ranking."""
    rows = ranked.candidates.rows
    place = np.empty(len(rows), np.int64)
    place[ranked.order] = np.arange(len(ranked.order))
    first = ranked.order[:FIRST_MAX]
    episodes = ranked.context.episodes
    near: list[int] = []
    for anchor in rows[first[:_ANCHORS]].tolist():
        for row in range(max(0, anchor - _REACH), min(len(episodes), anchor + _REACH + 1)):
            index = int(np.searchsorted(rows, row))
            if index < len(rows) and rows[index] == row and episodes.sessions[row] == episodes.sessions[anchor]:
                near.append(index)
    added = np.setdiff1d(np.array(near, np.int64), first)
    added = added[np.argsort(place[added])][: CANDIDATES_MAX - len(first)]
    chosen = np.concatenate([first, added])
    return chosen, place[chosen]


def _features(ranked: RankedEpisodes, chosen: Ints, places: Ints) -> Vector:
    """Return the features of each candidate, shape (n, `CANDIDATE_FEATURES`)."""
    signals, episodes = ranked.signals, ranked.context.episodes
    assert signals.semantics is not None
    assert ranked.late is not None
    rows = ranked.candidates.rows[chosen]
    scores = ranked.scores[chosen]
    in_order = ranked.scores[ranked.order]
    by_row = dict(zip(ranked.candidates.rows.tolist(), ranked.scores.tolist(), strict=True))
    best = float(in_order[0])

    def beside(step: int) -> Vector:
        values = [
            by_row.get(row + step, best - _FAR) - best
            if 0 <= row + step < len(episodes) and episodes.sessions[row + step] == episodes.sessions[row]
            else -_FAR
            for row in rows.tolist()
        ]
        return np.maximum(np.array(values, np.float32), -_FAR)

    times = episodes.occurred_at_us[rows]
    columns: dict[str, Any] = {
        "behind_first": scores - best,
        "behind_previous": scores - in_order[np.maximum(places - 1, 0)],
        "place": np.log1p(places),
        "dense": signals.semantics.parts["turn"][rows],
        "window": signals.semantics.parts["window"][rows],
        "late": ranked.late[chosen],
        "coverage": signals.keywords.coverage[rows],
        "bm25": np.log1p(np.maximum(signals.keywords.turn[rows], 0)),
        "by_user": episodes.roles[rows] == ROLES["user"],
        "by_assistant": episodes.roles[rows] == ROLES["assistant"],
        "is_turn": episodes.raw[rows],
        "session_of_first": episodes.sessions[rows] == episodes.sessions[rows[0]],
        "before": beside(-1),
        "after": beside(1),
        "age": np.log1p(np.maximum(signals.asked_at_us - times, 0) / _DAY_US),
        "newer": (times[:, None] > times[None, :]).mean(axis=1),
        "is_neighbour": places >= FIRST_MAX,
    }
    own = np.stack([np.asarray(columns[name], np.float32) for name in OWN_FEATURES], axis=1)
    return np.nan_to_num(np.concatenate([ranked.matrix[chosen], own], axis=1).astype(np.float32), posinf=0, neginf=0)


def _query_features(ranked: RankedEpisodes, count: int) -> Vector:
    """Return the features of the query and of the memory, shape (`QUERY_FEATURES`,)."""
    query, request = ranked.context.query, ranked.context.request
    assert ranked.signals.semantics is not None
    values = [
        *answer_measures(ranked, query).tolist(),
        *(float(getattr(query.intent, name)) for name in _INTENTS),
        *(float(kind in query.intent.answer) for kind in AnswerType),
        float(query.has_topic),
        float(query.without_topic),
        float(bool(query.time_ranges)),
        float(request.mode == "passive"),
        float(is_question(query.question)),
        float(np.log1p(len(query.question.split()))),
        float(bool(query.participants)),
        float(bool(query.entities)),
        float(np.log1p(count)),
        *message_acts(request.query).tolist(),
        asks_logit().of(request.query, ranked.signals.semantics.embedding.vector),
    ]
    return np.nan_to_num(np.array(values, np.float32))


def message_acts(text: str) -> Vector:
    """Return what the clauses of a query do, by their words alone, shape (`MESSAGE_ACTS`,)."""
    start = text[:_CHARS_MAX]
    read = read_each(split_sentences(start)[:_SENTENCES_MAX] or [start], to_assistant=True)
    clauses = [_of_clause(part) for parts in read for part in parts]
    if not clauses:
        return np.zeros(len(MESSAGE_ACTS), np.float32)
    values = np.array(clauses, np.float32)
    return np.concatenate([values.max(axis=0), values.mean(axis=0)])


def _of_clause(part: ReadClause) -> list[float]:
    acts = part.probabilities["act"]
    return [*(acts[act] for act in HEADS["act"]), part.keep, part.probabilities["kind"]["other"]]
