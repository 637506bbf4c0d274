"""Training samples: questions to conversations, with the features, gate measures and labels of their candidates.

Questions are asked to whole conversations, to crops of them, to the cases of a case book, and to these cases after some
hundred messages of a conversation.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from case_book import read_case_book
from general_prompts import GENERAL_PROMPTS
from msgspec import Struct

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.ranking import relevance_gate
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.weighted_sum import message_share
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.search_index.episode_arrays import Ints, SmallInts

sys.path.append(str(Path(__file__).parents[1]))
from evaluation.conversations import Conversation, read_conversation
from evaluation.crops import crops
from evaluation.retrieval_benchmark import RetrievalBenchmark, held_out, unanswerable_questions
from evaluation.scores import ADVERSARIAL

#: The size of a memory in reports and weights: a whole conversation, a case, a case after other messages, or the
#: messages of a crop.
WHOLE, CASE, LONG_CASE = "whole", "case", "long case"
#: Messages before a long case, and the sets that they are taken from by turns: between people, and with an assistant.
_MESSAGES_BEFORE = 300
_SETS_BEFORE = ("realmem", "locomo")
#: Questions without an answer that are asked to a crop or a case: of other conversations, and general ones.
_FOREIGN_QUESTIONS, _GENERAL_PROMPTS = 3, 3
#: Every third case is held out.
_CASES_HELD_OUT_EVERY = 3
#: The weight of all samples of one set and size, together. The long conversations must not lose, so they weigh most.
_SIZE_WEIGHTS: Mapping[str, float] = {WHOLE: 25.0, CASE: 12.0, LONG_CASE: 12.0}
#: The factor on questions from other cases: to bring something is less wrong than to be silent.
_OTHER_CASES_FACTOR = 0.25


class Sample(Struct, frozen=True):
    """One question asked to one conversation. Arrays have one row for each candidate."""

    #: The data set of the conversation.
    set_name: str
    #: `WHOLE`, `CASE`, `LONG_CASE`, or the messages of a crop.
    size: str
    #: Whether the conversation is held out.
    is_held_out: bool
    #: Whether the question belongs to the conversation; otherwise it has no answer there.
    is_own: bool
    #: Whether it is a general question or prompt, which no memory answers.
    is_general: bool
    #: Whether the question names a topic; without one, the weights are not used.
    has_topic: bool
    #: How much the question is a long message, 0 to 1.
    message_share: float
    #: Shape (candidates, `FEATURES`).
    features: Vector
    #: Whether a candidate is evidence or, where only sessions are marked, of a session with evidence.
    gold: Mask
    #: Whether only sessions are marked as evidence.
    by_session: bool
    #: The session of each candidate, a row of `session_ids`.
    sessions: SmallInts
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


def sample_weights(samples: Sequence[Sample]) -> list[float]:
    """Return the weight of each sample: every set and size has its own total, shared by own and foreign questions."""
    count = Counter((sample.set_name, sample.size, sample.is_own) for sample in samples)
    return [
        _SIZE_WEIGHTS.get(sample.size, 1.0)
        / count[sample.set_name, sample.size, sample.is_own]
        * (
            _OTHER_CASES_FACTOR
            if sample.size in (CASE, LONG_CASE) and not sample.is_own and not sample.is_general
            else 1.0
        )
        for sample in samples
    ]


def collect_samples(folder: Path, cases: Path | None, data: Path, model: str) -> list[Sample]:
    """Return samples of the own questions of each conversation, and of questions without an answer there.

    Parameters:
        folder: conversations with questions, ``*.json``.
        cases: a case book; None for none.
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
            is_held_out = conversation.name in held_out_names
            samples += _samples_of_conversation(bench, conversation, conversations, is_held_out=is_held_out)
            print(f"asked {conversation.name}", file=sys.stderr, flush=True)
        if cases is not None:
            samples += _samples_of_cases(bench, [*read_case_book(cases)], conversations)
        return samples
    finally:
        bench.close()


def _no_progress(what: str, done: int, total: int | None) -> None:
    pass


def _samples_of_conversation(
    bench: RetrievalBenchmark, conversation: Conversation, conversations: Sequence[Conversation], *, is_held_out: bool
) -> list[Sample]:
    """Return the samples of a conversation and of its crops."""
    bench.load(conversation, _no_progress)
    unanswerable = [*unanswerable_questions(conversation, conversations)]
    samples = _samples(
        bench,
        conversation,
        WHOLE,
        foreign=[query for kind, query in unanswerable if kind != "general"],
        general=[query for kind, query in unanswerable if kind == "general"],
        is_held_out=is_held_out,
    )
    chance = random.Random(conversation.name)
    others = [
        str(question["query"]) for other in conversations if other is not conversation for question in other.questions
    ]
    for size, crop in crops(conversation):
        bench.load_crop(crop, conversation, _no_progress)
        samples += _samples(
            bench,
            crop,
            str(size),
            foreign=chance.sample(others, _FOREIGN_QUESTIONS),
            general=chance.sample(GENERAL_PROMPTS, _GENERAL_PROMPTS),
            is_held_out=is_held_out,
        )
    return samples


def _samples_of_cases(
    bench: RetrievalBenchmark, cases: Sequence[Conversation], conversations: Sequence[Conversation]
) -> list[Sample]:
    """Return the samples of the cases of a case book, alone and after messages of a conversation."""
    samples: list[Sample] = []
    sources = [
        [conversation for conversation in conversations if conversation.set_name == name] for name in _SETS_BEFORE
    ]
    for number, case in enumerate(cases):
        chance = random.Random(case.name)
        source = chance.choice(sources[number % len(sources)])
        long_case = _after_messages(case, source, chance)
        bench.load(case, _no_progress)
        bench.load_crop(long_case, source, _no_progress)
        others = [
            str(question["query"])
            for other in cases
            if other is not case
            for question in other.questions
            if question["category"] != "silent"
        ]
        silent = [str(question["query"]) for question in case.questions if question["category"] == "silent"]
        foreign = chance.sample(others, _FOREIGN_QUESTIONS)
        general = [*silent, *chance.sample(GENERAL_PROMPTS, _GENERAL_PROMPTS)]
        for conversation, size in ((case, CASE), (long_case, LONG_CASE)):
            samples += _samples(
                bench,
                conversation._replace(
                    questions=[question for question in case.questions if question["category"] != "silent"]
                ),
                size,
                foreign=foreign,
                general=general,
                is_held_out=number % _CASES_HELD_OUT_EVERY == _CASES_HELD_OUT_EVERY - 1,
            )
    return samples


def _after_messages(case: Conversation, source: Conversation, chance: random.Random) -> Conversation:
    """Return a case after `_MESSAGES_BEFORE` messages of another conversation, which end the day before."""
    start = chance.randrange(max(1, len(source.events) - _MESSAGES_BEFORE))
    before = source.events[start : start + _MESSAGES_BEFORE]
    shift = datetime.fromisoformat(case.events[0]["occurred_at"]) - timedelta(days=1)
    shift -= datetime.fromisoformat(before[-1]["occurred_at"])
    shifted = [
        event | {"occurred_at": (datetime.fromisoformat(event["occurred_at"]) + shift).isoformat()} for event in before
    ]
    return case._replace(name=f"{case.name}-long", events=[*shifted, *case.events])


def _samples(
    bench: RetrievalBenchmark,
    conversation: Conversation,
    size: str,
    *,
    foreign: Sequence[str],
    general: Sequence[str],
    is_held_out: bool,
) -> list[Sample]:
    """Return the samples of a conversation's own questions, of foreign ones and of general prompts."""
    asked = [
        *((question, True, False) for question in conversation.questions if str(question["category"]) != ADVERSARIAL),
        *((_unanswerable(query), False, False) for query in foreign),
        *((_unanswerable(query), False, True) for query in general),
    ]
    samples = [
        _sample(bench, conversation, question, size, is_held_out=is_held_out, is_own=is_own, is_general=is_general)
        for question, is_own, is_general in asked
    ]
    return [sample for sample in samples if sample is not None]


def _unanswerable(query: str) -> dict[str, Any]:
    return {"query": query, "gold": [], "gold_sessions": []}


def _sample(
    bench: RetrievalBenchmark,
    conversation: Conversation,
    question: dict[str, Any],
    size: str,
    *,
    is_held_out: bool,
    is_own: bool,
    is_general: bool,
) -> Sample | None:
    """Return the sample of a question; None when the search has no candidates."""
    request = RetrieveRequest.model_validate({"query": question["query"], "until": question.get("until")})
    ranked = bench.parts.retriever.rank(conversation.namespace, request, lambda ranked: ranked)
    if ranked is None:
        return None
    context, rows = ranked.context, ranked.candidates.rows
    episodes = context.episodes
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
        size=size,
        is_held_out=is_held_out,
        is_own=is_own,
        is_general=is_general,
        has_topic=context.query.has_topic,
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
