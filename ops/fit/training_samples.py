"""Questions asked to conversations, and what is measured of the candidates of each."""

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
    """One question asked to one conversation. Arrays have one row a candidate."""

    set_name: str
    #: Whether the conversation is held out.
    held: bool
    #: Whether the question belongs to the conversation.
    own: bool
    #: How much the question is a long message, 0 to 1.
    share: float
    #: Shape (candidates, `FEATURES`).
    matrix: Vector
    #: Whether it is evidence or, where only sessions are marked, of a session that holds evidence.
    gold: Mask
    by_session: bool
    sessions: Ints
    #: Of the best candidates by the weights in use, in the order of `relevance_gate.MEASURES`.
    measures: Vector
    #: Shape (candidates, `relevance_gate.ITEM_MEASURES`).
    items: Vector
    #: How much evidence is marked, found or not.
    total: int
    gold_sessions: frozenset[int]

    def recall(self, places: Ints) -> float:
        """Return the share of the marked messages that is at `places`."""
        return int(self.gold[places].sum()) / self.total

    def session_recall(self, sessions: Sequence[int]) -> float:
        """Return the share of the sessions with evidence that is in `sessions`; 0 when there is none."""
        return len(self.gold_sessions & set(sessions)) / max(1, len(self.gold_sessions))

    def distinct_sessions(self, places: Ints) -> list[int]:
        """Return the sessions at `places`, each once, in their order."""
        return list(dict.fromkeys(self.sessions[places].tolist()))


def best_first(scores: Vector) -> Ints:
    """Return the places of the candidates, the highest score first."""
    return np.argsort(-scores, kind="stable")


def collect(folder: Path, data: Path, model: str) -> list[Sample]:
    """Ask each conversation of `folder` its own questions and foreign ones, in a memory at `data`."""
    bench = RetrievalBenchmark(data, model)
    try:
        bench.wait(_silent)
        conversations = [read_conversation(file) for file in sorted(folder.glob("*.json"))]
        held = held_out(conversations)
        samples: list[Sample] = []
        for conversation in conversations:
            bench.load(conversation, _silent)
            samples += _asked(bench, conversation, conversations, held=conversation.name in held)
            print(f"asked {conversation.name}", file=sys.stderr, flush=True)
        return samples
    finally:
        bench.close()


def _silent(what: str, done: int, total: int | None) -> None:
    pass


def _asked(
    bench: RetrievalBenchmark, conversation: Conversation, conversations: Sequence[Conversation], *, held: bool
) -> list[Sample]:
    own = [question for question in conversation.questions if str(question["category"]) != ADVERSARIAL]
    foreign: list[dict[str, Any]] = [
        {"query": query, "gold": [], "gold_sessions": []}
        for _, query in unanswerable_questions(conversation, conversations)
    ]
    found = [_sample(bench, conversation, question, held=held, own=True) for question in own]
    found += [_sample(bench, conversation, question, held=held, own=False) for question in foreign]
    return [sample for sample in found if sample is not None]


def _sample(
    bench: RetrievalBenchmark, conversation: Conversation, question: dict[str, Any], *, held: bool, own: bool
) -> Sample | None:
    """Ask a question; None when nothing was found at all."""
    request = RetrieveRequest.model_validate({"query": question["query"], "until": question.get("until")})
    asked, ranked = bench.parts.retriever.rank(conversation.namespace, request)
    if ranked is None:
        return None
    roster, rows = asked.episodes, ranked.candidates.rows
    # A version is the event's number in its namespace.
    number = {event["id"]: at for at, event in enumerate(conversation.events, start=1)}
    wanted = [number[id] for id in question["gold"] if id in number]
    gold_sessions = frozenset(at for at, name in enumerate(roster.session_ids) if name in question["gold_sessions"])
    by_session = not wanted
    gold = np.isin(roster.sessions[rows], list(gold_sessions)) if by_session else np.isin(roster.versions[rows], wanted)
    return Sample(
        set_name=conversation.set_name,
        held=held,
        own=own,
        share=message_share(len(asked.query.question.split())),
        matrix=ranked.matrix,
        gold=gold,
        by_session=by_session,
        sessions=roster.sessions[rows],
        measures=relevance_gate.answer_measures(ranked, asked.query),
        # From the order of places found back to that of the candidates.
        items=relevance_gate.item_measures(ranked)[np.argsort(ranked.order)],
        total=len(question["gold"]),
        gold_sessions=gold_sessions,
    )
