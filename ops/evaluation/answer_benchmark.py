"""Answer benchmark: one language model answers the questions of conversations from different contexts.

Each answer is appended to a file as a line of JSON, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import orjson
from evaluation.answer_scores import is_exact, token_f1
from evaluation.conversations import Conversation, read_answers, read_conversation
from evaluation.retrieval_benchmark import RetrievalBenchmark
from evaluation.scores import ADVERSARIAL, render_table

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.errors import InvalidInput, ServerUnavailable, short_text
from recollect.events.progress import OnPartProgress
from recollect.projections.projection_settings import RuntimeChoice
from recollect.projections.text.prompt_fence import single_line
from recollect.projections.text.tokens import estimate_tokens
from recollect.projections.text.words import distinct_words, folded_words

#: The contexts that are compared: of this memory, of the ten best messages by cosine or by BM25, of the messages that
#: the data set marks as evidence, and none.
FORMS = ("recollect", "vectors", "bm25", "gold", "nothing")
_MESSAGES = 10
#: Parameters of BM25, as in FTS5.
_K1, _B = 1.2, 0.75
_INSTRUCTIONS = (
    "You answer questions about people from notes of their conversations. Answer with as few words as possible, "
    "not with a sentence. Write a date as 7 May 2023. If you are not sure, give the most likely answer."
)
#: Tokens of an answer, and seconds until it is there, at most.
_ANSWER_TOKENS, _ANSWER_SECONDS = 256, 300.0
#: The fields that identify an answer.
_KEY = ("model", "conversation", "query", "form")

Row = dict[str, Any]


class Reader:
    """A language model that answers from a context.

    Parameters:
        url: the server, in OpenAI's protocol, such as `http://127.0.0.1:8089/v1`; its key is `OPENAI_API_KEY`.
        model: the name there; None: the first one of the server's list.

    Raises:
        ServerUnavailable: the server does not list its models.
    """

    def __init__(self, url: str, model: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY') or 'none'}"}
        self._client = httpx2.Client(headers=headers, timeout=_ANSWER_SECONDS)
        self._url = url.rstrip("/")
        self.model = model or self._call("GET", "models", ("data", 0, "id"))

    def answer(self, context: str, query: str) -> str:
        """Return the answer to a question.

        Raises:
            ServerUnavailable: the server gives none.
        """
        text = f"{context}\n\nQuestion: {query}\nAnswer:".lstrip()
        messages = [{"role": "system", "content": _INSTRUCTIONS}, {"role": "user", "content": text}]
        body = {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": _ANSWER_TOKENS}
        return self._call("POST", "chat/completions", ("choices", 0, "message", "content"), body).strip()

    def _call(self, method: str, path: str, place: Sequence[str | int], body: Row | None = None) -> str:
        """Return the text at a place of the server's answer."""
        try:
            value = self._client.request(method, f"{self._url}/{path}", json=body).raise_for_status().json()
            for part in place:
                value = value[part]
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError) as error:
            message = f"{self._url}/{path}: {short_text(error)}; start the server, and run again to go on"
            raise ServerUnavailable(message) from error
        return str(value or "")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class Question(NamedTuple):
    """A question with the expected answer."""

    conversation: Conversation
    #: The fields ``query``, ``answer``, ``category``, ``gold`` and ``until``.
    fields: Mapping[str, Any]


def draw(conversations: Sequence[Conversation], number: int, seed: int) -> list[Question]:
    """Return questions with an expected answer, drawn at random; a larger number extends the same draw.

    Raises:
        InvalidInput: no question has an ``answer`` and evidence messages.
    """
    questions = [
        Question(conversation, question)
        for conversation in conversations
        for question in conversation.questions
        if question.get("answer") not in (None, "") and question["gold"] and str(question["category"]) != ADVERSARIAL
    ]
    if not questions:
        raise InvalidInput(
            "no question has an expected `answer` and messages in `gold`; give the answers with --answers",
            field="FOLDER",
        )
    random.Random(seed).shuffle(questions)
    return questions[:number]


def context_of(bench: RetrievalBenchmark, question: Question, form: str) -> str:
    """Return the context of a form for a question."""
    conversation, fields = question
    if form in ("recollect", "vectors"):
        request: Row = {"query": fields["query"], "until": fields.get("until")}
        if form == "vectors":
            request |= {"ranking": "semantic", "gate": False, "kinds": ["episode"], "limit": _MESSAGES}
        result = bench.parts.retriever.retrieve(conversation.namespace, RetrieveRequest.model_validate(request))
        bench.degraded.update(dict.fromkeys(result.degraded))
        if form == "recollect":
            return result.context
        chosen = [item.id for item in result.items]
    else:
        chosen = {"gold": fields["gold"], "bm25": _bm25(question), "nothing": []}[form]
    events = {event["id"]: event for event in conversation.events}
    return "\n".join(
        f"- [{event['occurred_at'][:10]}] {event['payload'].get('name') or 'user'}: {single_line(_text(event))}"
        for event in (events[id] for id in chosen if id in events)
    )


def _text(event: Mapping[str, Any]) -> str:
    return event["payload"].get("text", "")


def _bm25(question: Question) -> list[str]:
    """Return the ids of the messages with the highest BM25 for a question, best first."""
    conversation, fields = question
    events = [event for event in conversation.events if event["occurred_at"] < (fields.get("until") or "9999")]
    counts = [Counter(folded_words(_text(event))) for event in events]
    mean = statistics.fmean(count.total() for count in counts) or 1.0
    scores = [0.0] * len(events)
    for word in distinct_words(fields["query"]):
        having = [index for index, count in enumerate(counts) if count[word]]
        idf = math.log(1 + (len(events) - len(having) + 0.5) / (len(having) + 0.5))
        for index in having:
            count = counts[index][word]
            scores[index] += idf * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * counts[index].total() / mean))
    best = sorted(range(len(events)), key=lambda index: -scores[index])[:_MESSAGES]
    return [events[index]["id"] for index in best if scores[index]]


def run_answer_bench(
    files: Sequence[Path],
    data: Path,
    reader: Reader,
    results: Path,
    embedding_model: str,
    on_progress: OnPartProgress,
    *,
    questions: int,
    seed: int,
    forms: Sequence[str] = FORMS,
    answers: Path | None = None,
    runtime: RuntimeChoice = "auto",
) -> str:
    """Ask drawn questions with each context; append each answer to `results`; return the report.

    Parameters:
        forms: the contexts that are compared; the report shows differences to the first one.
        answers: a file of expected answers, for conversations that have none.
        data: a folder for the memories; a second run with the same folder embeds nothing again.
        results: lines of JSON; what they have is not asked again.

    Raises:
        InvalidInput: a file is not a conversation, a form is unknown, or `results` has other lines.
        ServerUnavailable: the model gives no answer.
    """
    if unknown := set(forms).difference(FORMS):
        raise InvalidInput(f"{', '.join(sorted(unknown))}: choose from {', '.join(FORMS)}", field="--forms")
    expected = None if answers is None else read_answers(answers)
    drawn = draw([read_conversation(file, expected) for file in files], questions, seed)
    keys = [
        {form: (reader.model, conversation.name, fields["query"], form) for form in forms}
        for conversation, fields in drawn
    ]
    answered = _read(results)
    missing = [
        (question, form)
        for question, key in zip(drawn, keys, strict=True)
        for form in forms
        if key[form] not in answered
    ]
    degraded: list[str] = []
    if missing:
        bench = RetrievalBenchmark(data, embedding_model, runtime)
        try:
            bench.wait(on_progress)
            for conversation in {it.conversation.name: it.conversation for it, _ in missing}.values():
                bench.load(conversation, on_progress)
            for done, (question, form) in enumerate(missing, start=1):
                row = ask(reader, question, form, context_of(bench, question, form))
                _append(results, row)
                answered[_key(row)] = row
                on_progress("asking", done, len(missing))
            degraded = [f"degraded: {part}" for part in bench.degraded]
        finally:
            bench.close()
    rows = report_rows([{form: answered[key[form]] for form in forms} for key in keys])
    return "\n".join([render_table(rows), *degraded])


def ask(reader: Reader, question: Question, form: str, context: str) -> Row:
    """Return the answer to a question from a context, with its scores."""
    fields, expected = question.fields, str(question.fields["answer"])
    started = time.perf_counter()
    answer = reader.answer(context, fields["query"])
    return {
        "model": reader.model,
        "conversation": question.conversation.name,
        "query": fields["query"],
        "form": form,
        "category": str(fields["category"]),
        "expected": expected,
        "answer": answer,
        "f1": token_f1(answer, expected),
        "exact": is_exact(answer, expected),
        "tokens": estimate_tokens(context),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _KEY)


def _read(results: Path) -> dict[tuple[str, ...], Row]:
    """Return the answers of earlier runs by their keys; cut off a line that the end of a run left unfinished."""
    try:
        content = results.read_bytes() if results.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        answered = {_key(row): row for row in map(orjson.loads, whole.splitlines())}
        if whole != content:
            results.write_bytes(whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"not a file of answers: {short_text(error)}", field=str(results)) from error
    return answered


def _append(results: Path, row: Row) -> None:
    try:
        with results.open("ab") as file:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(results)) from error


def report_rows(answers: Sequence[Mapping[str, Row]]) -> list[Row]:
    """Return a row for each form, then for each category and form.

    ``difference`` is the mean of the paired differences of F1 to the first form, with its standard error.

    Parameters:
        answers: the results of each question, by form; each has the same forms.
    """
    rows: list[Row] = []
    first, *_ = forms = list(answers[0])
    for category in ("all", *sorted({by_form[first]["category"] for by_form in answers})):
        chosen = [by_form for by_form in answers if category in ("all", by_form[first]["category"])]
        for form in forms:
            results = [by_form[form] for by_form in chosen]
            exact = [result["exact"] for result in results if result["exact"] is not None]
            changes = [100 * (by_form[form]["f1"] - by_form[first]["f1"]) for by_form in chosen]
            error = statistics.stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else 0.0
            means = {name: statistics.fmean(result[name] for result in results) for name in ("f1", "tokens", "seconds")}
            rows.append(
                {
                    "category": category,
                    "form": form,
                    "questions": len(results),
                    "F1": f"{100 * means['f1']:.1f}",
                    "difference": f"{statistics.fmean(changes):+.1f} ± {error:.1f}",
                    "exact": f"{sum(exact)} of {len(exact)}",
                    "tokens": round(means["tokens"]),
                    "seconds": f"{means['seconds']:.1f}",
                }
            )
    return rows
