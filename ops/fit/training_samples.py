"""Training samples: questions to conversations, with the features, gate measures and labels of their candidates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recollect.api.evaluation.retrieval_benchmark import (
    Conversation,
    RetrievalBenchmark,
    held_out,
    read_conversation,
    unanswerable_questions,
)
from recollect.api.evaluation.scores import ADVERSARIAL
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.ranking import relevance_gate
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.weighted_sum import message_share
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints


@dataclass(frozen=True, slots=True)
class Sample:
    """One question asked to one conversation. Arrays have one row for each candidate."""

    #: The data set of the conversation.
    set_name: str
    #: Whether the conversation is held out.
    is_held_out: bool
    #: Whether the question belongs to the conversation; otherwise it has no answer there.
    is_own: bool
    #: How much the question is a long message, 0 to 1.
    message_share: float
    #: Shape (candidates, `FEATURES`).
    features: Vector
    #: Whether a candidate is evidence or, where only sessions are marked, of a session with evidence.
    gold: Mask
    #: Whether only sessions are marked as evidence.
    by_session: bool
    #: The session of each candidate, a row of `session_ids`.
    sessions: Ints
    #: Gate measures of the best candidates by the weights in use, in the order of `relevance_gate.MEASURES`.
    measures: Vector
    #: Shape (candidates, `relevance_gate.ITEM_MEASURES`).
    item_measures: Vector
    #: Messages marked as evidence, among the candidates or not.
    gold_messages: int
    #: Sessions marked as evidence.
    gold_sessions: frozenset[int]

    def recall(self, rows: Ints) -> float:
        """Return the share of the marked messages that is at `rows`."""
        return int(self.gold[rows].sum()) / self.gold_messages

    def session_recall(self, sessions: Sequence[int]) -> float:
        """Return the share of the sessions with evidence that is in `sessions`; 0 without such sessions."""
        return len(self.gold_sessions & set(sessions)) / max(1, len(self.gold_sessions))

    def distinct_sessions(self, rows: Ints) -> list[int]:
        """Return the sessions at `rows`, each once, in their order."""
        return list(dict.fromkeys(self.sessions[rows].tolist()))


def rows_best_first(scores: Vector) -> Ints:
    """Return the rows of the candidates by falling score."""
    return np.argsort(-scores, kind="stable")


def collect_samples(folder: Path, data: Path, model: str) -> list[Sample]:
    """Return samples of the own questions of each conversation in `folder`, and of questions without an answer there.

    Parameters:
        data: the data folder that the conversations are loaded into.
        model: the embedding model.
    """
    bench = RetrievalBenchmark(data, model)
    try:
        bench.wait(_no_progress)
        conversations = [read_conversation(file) for file in sorted(folder.glob("*.json"))]
        held_out_names = held_out(conversations)
        samples: list[Sample] = []
        for conversation in conversations:
            bench.load(conversation, _no_progress)
            samples += _samples_of(bench, conversation, conversations, is_held_out=conversation.name in held_out_names)
            print(f"asked {conversation.name}", file=sys.stderr, flush=True)
        return samples
    finally:
        bench.close()


def _no_progress(what: str, done: int, total: int | None) -> None:
    pass


def _samples_of(
    bench: RetrievalBenchmark, conversation: Conversation, conversations: Sequence[Conversation], *, is_held_out: bool
) -> list[Sample]:
    own = [question for question in conversation.questions if str(question["category"]) != ADVERSARIAL]
    foreign: list[dict[str, Any]] = [
        {"query": query, "gold": [], "gold_sessions": []}
        for _, query in unanswerable_questions(conversation, conversations)
    ]
    samples = [_sample(bench, conversation, question, is_held_out=is_held_out, is_own=True) for question in own]
    samples += [_sample(bench, conversation, question, is_held_out=is_held_out, is_own=False) for question in foreign]
    return [sample for sample in samples if sample is not None]


def _sample(
    bench: RetrievalBenchmark, conversation: Conversation, question: dict[str, Any], *, is_held_out: bool, is_own: bool
) -> Sample | None:
    """Return the sample of a question; None when the search has no candidates."""
    request = RetrieveRequest.model_validate({"query": question["query"], "until": question.get("until")})
    context, ranked = bench.parts.retriever.rank(conversation.namespace, request)
    if ranked is None:
        return None
    episodes, rows = context.episodes, ranked.candidates.rows
    # A version is the event's number in its namespace.
    versions = {event["id"]: version for version, event in enumerate(conversation.events, start=1)}
    gold_versions = [versions[id] for id in question["gold"] if id in versions]
    gold_sessions = frozenset(row for row, name in enumerate(episodes.session_ids) if name in question["gold_sessions"])
    by_session = not gold_versions
    if by_session:
        gold = np.isin(episodes.sessions[rows], list(gold_sessions))
    else:
        gold = np.isin(episodes.versions[rows], gold_versions)
    return Sample(
        set_name=conversation.set_name,
        is_held_out=is_held_out,
        is_own=is_own,
        message_share=message_share(len(context.query.question.split())),
        features=ranked.matrix,
        gold=gold,
        by_session=by_session,
        sessions=episodes.sessions[rows],
        measures=relevance_gate.answer_measures(ranked, context.query),
        # From the order of the ranking back to that of the candidates.
        item_measures=relevance_gate.item_measures(ranked)[np.argsort(ranked.order)],
        gold_messages=len(question["gold"]),
        gold_sessions=gold_sessions,
    )
