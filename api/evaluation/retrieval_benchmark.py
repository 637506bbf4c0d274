"""How well retrieval finds the evidence in conversations with known answers, how long it takes, what the gate does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import orjson

from recollect.api.assembly.memory_parts import open_parts
from recollect.api.evaluation.scores import ADVERSARIAL, Report, Score, recall_at_10, score_question
from recollect.api.evaluation.unanswerable_questions import GENERAL_QUESTIONS
from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.events.errors import InvalidInput
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.events.progress import OnPartProgress
from recollect.events.validation import drafts
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.job_settings import JobSettings
from recollect.projections.projection_settings import RuntimeChoice

#: Items asked for: enough for ten distinct sessions.
_ITEMS = 100
#: More than any answer needs, so that the token budget does not decide.
_TOKENS = 100_000
_MODEL_SECONDS_MAX = 600
#: Of the files of a set, in order, every third one is held out: weights are fitted to the others (`ops/fit`).
_HELD_OUT_EVERY = 3
#: Of another conversation's questions, every so many-th is asked to one that has no answer to it.
_FOREIGN_EVERY = 6
#: Every ranking, the default first.
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)


class Conversation(NamedTuple):
    """A conversation, and questions that it answers."""

    name: str
    #: The file's name up to the first ``-``.
    set_name: str
    events: list[dict[str, Any]]
    questions: list[dict[str, Any]]

    @property
    def namespace(self) -> str:
        """Return where it is loaded."""
        return f"bench-{self.name}"


class RetrievalBenchmark:
    """A memory to measure: conversations loaded into namespaces of their own, and asked."""

    def __init__(self, data: Path, embedding_model: str, runtime: RuntimeChoice = "auto") -> None:
        settings = load_settings(
            data=data,
            embedding_model=embedding_model,
            embedding_runtime=runtime,
            # Quality is measured, and a busy machine must not change it.
            retrieval_budget_ms=60_000,
        )
        self.parts = open_parts(settings, workers=False)
        self.parts.vectors.embedder.start()
        #: What was missing while it ran.
        self.degraded: dict[str, None] = {}

    def wait(self, on_progress: OnPartProgress) -> None:
        """Wait for the model."""
        on_progress("loading the model", 0, 1)
        self.parts.vectors.embedder.wait_ready(_MODEL_SECONDS_MAX)

    def load(self, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Append a conversation and embed it."""
        for start in range(0, len(conversation.events), BATCH_EVENTS_MAX):
            self.parts.log.append(conversation.namespace, drafts(conversation.events[start : start + BATCH_EVENTS_MAX]))
        self.embed(conversation, on_progress)

    def embed(self, conversation: Conversation, on_progress: OnPartProgress) -> None:
        """Read out of messages, fold and embed what is new, as workers do."""
        # With the default settings, whatever the environment says.
        context = replace(self.parts.job_context, settings=JobSettings())
        extract(context, conversation.namespace, now_us())
        self.parts.read_models.catch_up(conversation.namespace)
        what = f"embedding {conversation.name}"
        self.parts.vectors.embed_new(
            conversation.namespace, on_progress=lambda done, total: on_progress(what, done, total)
        )

    def ask(
        self,
        conversation: Conversation,
        set_name: str,
        on_progress: OnPartProgress,
        *,
        ranking: Ranking = "weighted",
        gate: bool = True,
        held_out: bool = False,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> list[Score]:
        """Ask the questions of a conversation that have an answer in it.

        Parameters:
            keep: called with what was found for each question.
        """
        scores: list[Score] = []
        for done, question in enumerate(conversation.questions, start=1):
            request = _request(question, ranking, gate)
            result = self.parts.retriever.retrieve(conversation.namespace, request)
            self.degraded.update(dict.fromkeys(result.degraded))
            ids = [item.id for item in result.items]
            sessions = [item.session_id for item in result.items]
            score = score_question(
                set_name, question, ids, sessions, result.latency_ms, ranking=ranking, held_out=held_out
            )
            scores.append(score)
            if keep is not None:
                keep(_kept(conversation, question, score, result))
            on_progress(f"asking {conversation.name} ({ranking})", done, len(conversation.questions))
        return scores

    def answers(self, conversation: Conversation, query: str) -> bool:
        """Tell whether memory says anything on `query`."""
        request = RetrieveRequest(query=query, kinds=frozenset(("episode",)))
        return bool(self.parts.retriever.retrieve(conversation.namespace, request).items)

    def close(self) -> None:
        """Close everything."""
        self.parts.close()


def run_retrieval_bench(
    files: Sequence[Path],
    data: Path,
    embedding_model: str,
    on_progress: OnPartProgress,
    *,
    rankings: Sequence[Ranking] = ("weighted",),
    keep: Callable[[dict[str, Any]], None] | None = None,
    runtime: RuntimeChoice = "auto",
) -> Report:
    """Load each conversation into a namespace of its own, embed it, ask its questions.

    Parameters:
        files: conversations in the shape of ``{"name", "events", "questions"}``.
        data: a folder for the log and the read models; a second run with the same one embeds nothing again.
        rankings: each asks every question.
        keep: called with what was found for each question.

    Raises:
        InvalidInput: a file has another shape.
    """
    bench = RetrievalBenchmark(data, embedding_model, runtime)
    try:
        bench.wait(on_progress)
        conversations = [read_conversation(file) for file in files]
        held = held_out(conversations)
        scores: list[Score] = []
        ungated: list[Score] = []
        for conversation in conversations:
            bench.load(conversation, on_progress)
            out = conversation.name in held
            for ranking in rankings:
                scores += bench.ask(
                    conversation, conversation.set_name, on_progress, ranking=ranking, held_out=out, keep=keep
                )
            ungated += bench.ask(conversation, conversation.set_name, on_progress, gate=False, held_out=out)
        notes = [*_gate_notes(bench, conversations, on_progress), *_cost_notes(scores, ungated)]
        return Report(tuple(scores), tuple(bench.degraded), tuple(notes))
    finally:
        bench.close()


def held_out(conversations: Sequence[Conversation]) -> set[str]:
    """Return the names of the conversations that weights are not fitted to."""
    place: Counter[str] = Counter()
    found: set[str] = set()
    for conversation in conversations:
        if place[conversation.set_name] % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1:
            found.add(conversation.name)
        place[conversation.set_name] += 1
    return found


def unanswerable_questions(
    conversation: Conversation, conversations: Sequence[Conversation]
) -> Iterator[tuple[str, str]]:
    """Yield (kind, question) that `conversation` has no answer to.

    Of general knowledge and nonsense; of other conversations of its set, as they are; and those with the names of the
    people who do speak here, or else the names alone would give them away.
    """
    for query in GENERAL_QUESTIONS:
        yield "general", query
    peers = [one for one in conversations if one.set_name == conversation.set_name and one is not conversation]
    for number, other in enumerate(peers[:3]):
        for question in other.questions[number::_FOREIGN_EVERY]:
            renamed = _renamed(question["query"], other, conversation)
            yield "others'", question["query"]
            if renamed != question["query"]:
                yield "others', renamed", renamed


def _renamed(query: str, other: Conversation, conversation: Conversation) -> str:
    for theirs, ours in zip(_names(other), _names(conversation), strict=False):
        query = re.sub(rf"\b{re.escape(theirs)}\b", ours, query)
    return query


def _names(conversation: Conversation) -> list[str]:
    return list(dict.fromkeys(event["payload"]["name"] for event in conversation.events if "name" in event["payload"]))


def _gate_notes(
    bench: RetrievalBenchmark, conversations: Sequence[Conversation], on_progress: OnPartProgress
) -> list[str]:
    """Return how many foreign questions get no answer, by set and kind."""
    asked: Counter[tuple[str, str]] = Counter()
    silent: Counter[tuple[str, str]] = Counter()
    for done, conversation in enumerate(conversations, start=1):
        for kind, query in unanswerable_questions(conversation, conversations):
            asked[conversation.set_name, kind] += 1
            silent[conversation.set_name, kind] += not bench.answers(conversation, query)
        on_progress("asking what is not there", done, len(conversations))
    return [
        f"gate: {name}, {kind} questions: nothing for {100 * silent[name, kind] / count:.1f} % of {count}"
        for (name, kind), count in sorted(asked.items())
    ]


def _cost_notes(gated: Sequence[Score], ungated: Sequence[Score]) -> list[str]:
    """Return what the gate costs of recall at 10, by set."""
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


def read_conversation(file: Path) -> Conversation:
    """Read a conversation with its questions.

    Raises:
        InvalidInput: the file has another shape.
    """
    try:
        content = orjson.loads(file.read_bytes())
        questions = [question for question in content["questions"] if question["gold"] or question["gold_sessions"]]
        return Conversation(content["name"], file.stem.partition("-")[0], content["events"], questions)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a conversation with questions: {error}", field=str(file)) from error


def _request(question: dict[str, Any], ranking: Ranking, gate: bool) -> RetrieveRequest:
    return RetrieveRequest.model_validate(
        {
            "query": question["query"],
            "limit": _ITEMS,
            "budget_tokens": _TOKENS,
            "kinds": ["episode"],
            "until": question.get("until"),
            "ranking": ranking,
            "gate": gate,
        }
    )


def _kept(conversation: Conversation, question: dict[str, Any], score: Score, result: RetrieveResult) -> dict[str, Any]:
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
