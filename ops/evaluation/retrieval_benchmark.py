"""Retrieval benchmark: recall, latency and effect of the gate on conversations with known answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

from evaluation.conversations import Conversation, read_conversation
from evaluation.crops import copy_vectors, crops
from evaluation.scores import ADVERSARIAL, Report, Score, recall_at_10, score_question
from evaluation.unanswerable_questions import GENERAL_QUESTIONS
from msgspec.structs import replace

from recollect.api.assembly.memory_parts import open_parts
from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.events.progress import OnPartProgress
from recollect.events.validation import drafts
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.job_settings import JobSettings
from recollect.projections.projection_settings import RuntimeChoice
from recollect.projections.read_models.layout import VECTORS_FILE, namespace_folder

#: Items of a retrieval: enough for ten distinct sessions.
_ITEMS = 100
#: Token budget: more than any answer needs, so that it drops nothing.
_TOKENS = 100_000
#: Seconds to wait for the embedding model, which may have to be downloaded.
_MODEL_SECONDS_MAX = 600
#: Every third file of a set, by name, is held out; weights are fitted to the others (`ops/fit`).
_HELD_OUT_EVERY = 3
#: Every sixth question of another conversation is asked as a question without an answer.
_FOREIGN_EVERY = 6
#: Every ranking, the default first.
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)


class RetrievalBenchmark:
    """A data folder with a namespace for each conversation, and retrievals of their questions."""

    def __init__(self, data: Path, embedding_model: str, runtime: RuntimeChoice = "auto") -> None:
        settings = load_settings(
            data=data,
            embedding_model=embedding_model,
            embedding_runtime=runtime,
            # Without a tight budget, so that a busy machine does not change the measured quality.
            retrieval_budget_ms=60_000,
        )
        self.parts = open_parts(settings, workers=False)
        self.parts.vectors.embedder.start()
        #: Parts that were missing during the run, in the order of their first appearance.
        self.degraded: dict[str, None] = {}

    def wait(self, on_progress: OnPartProgress) -> None:
        """Wait for the embedding model, as the first retrieval of a program does."""
        on_progress("loading the model", 0, 1)
        if self.parts.vectors.embedder.wait_ready(_MODEL_SECONDS_MAX):
            self.parts.retriever.prepare(self.parts.vectors)

    def load(self, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Append a conversation and embed it."""
        self.append(conversation)
        self.embed(conversation, on_progress)

    def append(self, conversation: Conversation) -> None:
        """Append a conversation to the log."""
        for start in range(0, len(conversation.events), BATCH_EVENTS_MAX):
            self.parts.log.append(conversation.namespace, drafts(conversation.events[start : start + BATCH_EVENTS_MAX]))

    def load_crop(self, crop: Conversation, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Append a crop of a conversation that was loaded before, with the vectors of that conversation."""
        copy_vectors(self._vectors_file(conversation), self._vectors_file(crop))
        self.load(crop, on_progress)

    def _vectors_file(self, conversation: Conversation) -> Path:
        return namespace_folder(self.parts.settings.storage.data, conversation.namespace) / VECTORS_FILE

    def embed(self, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Project new events, embed and extract from them at the same time, as workers do; embed what was extracted."""
        with ThreadPoolExecutor(1) as pool:
            embedding = pool.submit(self.embed_new, conversation, on_progress)
            self.extract(conversation)
            embedding.result()
        self.embed_new(conversation, on_progress)

    def embed_new(self, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Project the new events of a conversation, and embed them."""
        step = f"embedding {conversation.name}"
        self.parts.read_models.catch_up(conversation.namespace)
        self.parts.vectors.embed_new(
            conversation.namespace, on_progress=lambda done, total: on_progress(step, done, total)
        )

    def extract(self, conversation: Conversation) -> None:
        """Extract what a conversation says: with the default settings, so that the environment changes no result."""
        context = replace(self.parts.job_context, settings=JobSettings())
        extract(context, conversation.namespace, now_us())

    def ask(
        self,
        conversation: Conversation,
        set_name: str,
        on_progress: OnPartProgress,
        *,
        ranking: Ranking = "weighted",
        gate: bool = True,
        held_out: bool = False,
        items: int = _ITEMS,
        on_result: Callable[[dict[str, Any]], None] | None = None,
    ) -> list[Score]:
        """Ask the questions of a conversation; return a score for each.

        Parameters:
            items: memories that a question asks for.
            on_result: called with the result of each question as JSON.
        """
        scores: list[Score] = []
        for done, question in enumerate(conversation.questions, start=1):
            request = _request(question, ranking, gate, items)
            result = self.parts.retriever.retrieve(conversation.namespace, request)
            self.degraded.update(dict.fromkeys(result.degraded))
            ids = [item.id for item in result.items]
            sessions = [item.session_id for item in result.items]
            score = score_question(
                set_name, question, ids, sessions, result.latency_ms, ranking=ranking, held_out=held_out
            )
            scores.append(score)
            if on_result is not None:
                on_result(_result_json(conversation, question, score, result))
            on_progress(f"asking {conversation.name} ({ranking})", done, len(conversation.questions))
        return scores

    def answers(self, conversation: Conversation, query: str) -> bool:
        """Return whether a retrieval of `query` returns items."""
        request = RetrieveRequest(query=query, kinds=frozenset(("episode",)))
        return bool(self.parts.retriever.retrieve(conversation.namespace, request).items)

    def close(self) -> None:
        """Close the data folder."""
        self.parts.close()


def run_retrieval_bench(
    files: Sequence[Path],
    data: Path,
    embedding_model: str,
    on_progress: OnPartProgress,
    *,
    rankings: Sequence[Ranking] = ("weighted",),
    with_crops: bool = False,
    on_result: Callable[[dict[str, Any]], None] | None = None,
    runtime: RuntimeChoice = "auto",
) -> Report:
    """Load each conversation into a namespace, embed it, ask its questions; return the report.

    Parameters:
        files: conversations in the form ``{"name", "events", "questions"}``.
        data: a folder for the log and the read models; a second run with the same folder embeds nothing again.
        rankings: the rankings to compare; each is asked every question.
        with_crops: also ask crops of the conversations, which are reported by their size.
        on_result: called with the result of each question as JSON.

    Raises:
        InvalidInput: a file is not a conversation with questions.
    """
    bench = RetrievalBenchmark(data, embedding_model, runtime)
    try:
        bench.wait(on_progress)
        conversations = [read_conversation(file) for file in files]
        held_out_names = held_out(conversations)
        scores: list[Score] = []
        ungated: list[Score] = []
        for conversation in conversations:
            bench.load(conversation, on_progress)
            is_held_out = conversation.name in held_out_names
            for ranking in rankings:
                scores += bench.ask(
                    conversation,
                    conversation.set_name,
                    on_progress,
                    ranking=ranking,
                    held_out=is_held_out,
                    on_result=on_result,
                )
            ungated += bench.ask(conversation, conversation.set_name, on_progress, gate=False, held_out=is_held_out)
            for size, crop in crops(conversation) if with_crops else ():
                bench.load_crop(crop, conversation, on_progress)
                set_name = f"{conversation.set_name} {size}"
                scores += bench.ask(crop, set_name, on_progress, held_out=is_held_out)
                ungated += bench.ask(crop, set_name, on_progress, gate=False, held_out=is_held_out)
        notes = [*_gate_notes(bench, conversations, on_progress), *_cost_notes(scores, ungated)]
        return Report(tuple(scores), tuple(bench.degraded), tuple(notes))
    finally:
        bench.close()


def held_out(conversations: Sequence[Conversation]) -> set[str]:
    """Return the names of the conversations that weights are not fitted to."""
    position: Counter[str] = Counter()
    names: set[str] = set()
    for conversation in conversations:
        if position[conversation.set_name] % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1:
            names.add(conversation.name)
        position[conversation.set_name] += 1
    return names


def unanswerable_questions(
    conversation: Conversation, conversations: Sequence[Conversation]
) -> Iterator[tuple[str, str]]:
    """Yield (kind, question) pairs without an answer in `conversation`.

    The kinds: general knowledge and nonsense; questions of other conversations of the set; the same with the names of
    this conversation's speakers, because unknown names alone would identify them.
    """
    for query in GENERAL_QUESTIONS:
        yield "general", query
    peers = [peer for peer in conversations if peer.set_name == conversation.set_name and peer is not conversation]
    for number, other in enumerate(peers[:3]):
        for question in other.questions[number::_FOREIGN_EVERY]:
            renamed = _rename_speakers(question["query"], other, conversation)
            yield "others'", question["query"]
            if renamed != question["query"]:
                yield "others', renamed", renamed


def _rename_speakers(query: str, other: Conversation, conversation: Conversation) -> str:
    for other_name, name in zip(_speakers(other), _speakers(conversation), strict=False):
        query = re.sub(rf"\b{re.escape(other_name)}\b", name, query)
    return query


def _speakers(conversation: Conversation) -> list[str]:
    return list(dict.fromkeys(event["payload"]["name"] for event in conversation.events if "name" in event["payload"]))


def _gate_notes(
    bench: RetrievalBenchmark, conversations: Sequence[Conversation], on_progress: OnPartProgress
) -> list[str]:
    """Return the share of unanswerable questions without items, by set and kind."""
    total: Counter[tuple[str, str]] = Counter()
    silent: Counter[tuple[str, str]] = Counter()
    for done, conversation in enumerate(conversations, start=1):
        for kind, query in unanswerable_questions(conversation, conversations):
            total[conversation.set_name, kind] += 1
            silent[conversation.set_name, kind] += not bench.answers(conversation, query)
        on_progress("asking unanswerable questions", done, len(conversations))
    return [
        f"gate: {name}, {kind} questions: nothing for {100 * silent[name, kind] / count:.1f} % of {count}"
        for (name, kind), count in sorted(total.items())
    ]


def _cost_notes(gated: Sequence[Score], ungated: Sequence[Score]) -> list[str]:
    """Return recall at 10 with and without the gate, by set."""
    names = sorted({score.set_name for score in ungated})
    return [
        f"gate: {name}: recall@10 {_recall(ungated, name):.1f} without it, {_recall(gated, name):.1f} with it"
        for name in names
    ]


def _recall(scores: Sequence[Score], set_name: str) -> float:
    chosen = [
        recall_at_10(score)
        for score in scores
        if (score.set_name, score.ranking) == (set_name, "weighted") and score.category != ADVERSARIAL
    ]
    return 100 * sum(chosen) / max(1, len(chosen))


def _request(question: dict[str, Any], ranking: Ranking, gate: bool, items: int) -> RetrieveRequest:
    return RetrieveRequest.model_validate(
        {
            "query": question["query"],
            "limit": items,
            "budget_tokens": _TOKENS,
            "kinds": ["episode"],
            "until": question.get("until"),
            "ranking": ranking,
            "gate": gate,
        }
    )


def _result_json(
    conversation: Conversation, question: dict[str, Any], score: Score, result: RetrieveResult
) -> dict[str, Any]:
    return {
        "set": score.set_name,
        "conversation": conversation.name,
        "held_out": score.held_out,
        "category": score.category,
        "ranking": score.ranking,
        "query": question["query"],
        "gold": question["gold"],
        "gold_sessions": question["gold_sessions"],
        "turn_ranks": score.turn_ranks,
        "session_ranks": score.session_ranks,
        "found": [item.id for item in result.items],
        "scores": [round(item.score, 4) for item in result.items],
        "latency_ms": round(score.latency_ms, 3),
    }
