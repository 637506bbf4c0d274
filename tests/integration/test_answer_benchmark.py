"""The answer benchmark: its scores, and its runs against a server that reads the context."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from evaluation.answer_benchmark import FORMS, Reader, run_answer_bench
from evaluation.answer_scores import is_exact, token_f1
from support.data import conversations
from support.events import message
from support.openai_server import OpenAiServer, Raw, openai_server

from recollect.events.errors import InvalidInput, ServerUnavailable

_TOWNS = {"Ann": "Porto", "Ben": "Faro", "Cleo": "Lagos", "Dan": "Braga"}


@pytest.fixture
def server() -> Generator[OpenAiServer]:
    with openai_server() as server:
        server.behaviour = answer_from_context
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one conversation of people who say where they live."""
    folder = tmp_path / "conversations"
    folder.mkdir()
    content: dict[str, Any] = {"name": "flats", "events": [], "questions": []}
    for number, (name, town) in enumerate(_TOWNS.items()):
        text = f"I have a flat in {town}, near the old market."
        content["events"].append(message(text, id=f"e{number}", name=name, occurred_at="2026-01-05T09:00:00Z"))
        question = {"query": f"Where does {name} have a flat?", "answer": town, "gold": [f"e{number}"]}
        content["questions"].append(question | {"category": "1", "gold_sessions": []})
    (folder / "own-flats.json").write_bytes(orjson.dumps(content))
    return folder


def ignore(what: str, done: int, total: int | None) -> None:
    pass


def answer_from_context(request: dict[str, Any]) -> Raw | str:
    """Answer with the town that the asked person names in the context."""
    text = request["messages"][-1]["content"]
    name = re.findall(r"Question: Where does (\w+)", text)[-1]
    found = re.search(rf"{name}: I have a flat in (\w+)", text)
    return found[1] if found else "unknown"


def run(
    folder: Path, server_url: str, *, questions: int = 4, forms: Sequence[str] = FORMS, expected: Path | None = None
) -> str:
    with closing(Reader(server_url, "tiny")) as reader:
        return run_answer_bench(
            sorted(folder.glob("*.json")),
            folder.parent / "data",
            reader,
            folder.parent / "answers.jsonl",
            "none",
            ignore,
            questions=questions,
            seed=1,
            forms=forms,
            answers=expected,
        )


def answers(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder.parent / "answers.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("answer", "expected", "f1", "exact"),
    [
        ("In the market.", "a market hall", 0.5, None),
        ("Two dogs", "2", 2 / 3, True),
        ("three", "2", 0, False),
        ("2023-05-07", "7 May 2023", 1, True),
        ("27 June 2023", "June 2023", 0.8, True),
        ("2023-09", "September 2023", 1, True),
        ("2023", "In 2022", 0, False),
        ("2 June 2023", "The week before 9 June 2023", 0.5, True),
        ("9 June 2023", "The week before 9 June 2023", 0.75, False),
        ("14 July 2023", "The Friday before 15 July 2023", 0.5, True),
        ("13 July 2023", "The Friday before 15 July 2023", 0.5, False),
    ],
)
def test_an_answer_is_scored_by_its_words_dates_and_numbers(
    answer: str, expected: str, f1: float, exact: bool | None
) -> None:
    assert (token_f1(answer, expected), is_exact(answer, expected)) == (pytest.approx(f1), exact)


def test_each_question_is_answered_from_each_context_and_the_report_compares_them(
    folder: Path, server: OpenAiServer
) -> None:
    report = run(folder, server.url)
    rows = answers(folder)
    assert len(rows) == len(server.requests) == len(_TOWNS) * len(FORMS)
    f1 = {form: [row["f1"] for row in rows if row["form"] == form] for form in FORMS}
    assert f1["recollect"] == f1["gold"] == f1["bm25"] == [1] * 4
    assert f1["nothing"] == [0] * 4
    line = next(line for line in report.splitlines() if line.startswith("all") and "nothing" in line)
    assert "-100.0 ± 0.0" in line
    assert all((row["tokens"] > 0) == (row["form"] not in ("nothing", "vectors")) for row in rows)


def test_a_stopped_run_goes_on_where_it_was(folder: Path, server: OpenAiServer) -> None:
    failing_from = 7
    server.behaviour = lambda request: (
        answer_from_context(request) if len(server.requests) < failing_from else Raw(500, b"{}")
    )
    with pytest.raises(ServerUnavailable, match="run again to go on"):
        run(folder, server.url, questions=2)
    before = answers(folder)
    assert len(before) == failing_from - 1
    # A kill in the middle of a line.
    with (folder.parent / "answers.jsonl").open("ab") as file:
        file.write(b'{"model":"ti')
    server.behaviour = answer_from_context
    run(folder, server.url, questions=3)
    assert answers(folder)[: len(before)] == before
    assert len(answers(folder)) == 3 * len(FORMS)
    requests = len(server.requests)
    run(folder, server.url, questions=3)
    assert len(server.requests) == requests


def test_expected_answers_come_from_a_file_and_forms_are_chosen(folder: Path, server: OpenAiServer) -> None:
    file = folder / "own-flats.json"
    file.write_bytes(file.read_bytes().replace(b'"answer"', b'"other"'))
    expected = folder.parent / "expected.json"
    expected.write_text('{"flats": {"0": "Porto", "2": "Madrid"}}')
    run(folder, server.url, forms=["gold", "bm25"], expected=expected)
    assert sorted((row["query"], row["form"], row["f1"]) for row in answers(folder)) == [
        ("Where does Ann have a flat?", "bm25", 1),
        ("Where does Ann have a flat?", "gold", 1),
        ("Where does Cleo have a flat?", "bm25", 0),
        ("Where does Cleo have a flat?", "gold", 0),
    ]
    expected.write_text('{"flats": {"9": "Porto"}}')
    with pytest.raises(InvalidInput, match="not a conversation with questions"):
        run(folder, server.url, expected=expected)
    expected.write_text('["Porto"]')
    with pytest.raises(InvalidInput, match="not a file of expected answers"):
        run(folder, server.url, expected=expected)
    with pytest.raises(InvalidInput, match="choose from recollect, vectors"):
        run(folder, server.url, forms=["best"])


def test_wrong_input_is_refused_with_what_to_do(folder: Path, server: OpenAiServer) -> None:
    (folder.parent / "answers.jsonl").write_text("no answers\n")
    with pytest.raises(InvalidInput, match=r"answers\.jsonl: not a file of answers"):
        run(folder, server.url)
    with pytest.raises(ServerUnavailable, match=r"/v1/models: .*start the server"):
        Reader("http://127.0.0.1:9/v1", None)
    (folder / "own-flats.json").write_bytes((folder / "own-flats.json").read_bytes().replace(b'"answer"', b'"other"'))
    with pytest.raises(InvalidInput, match="no question has an expected `answer`"):
        run(folder, server.url)


def test_the_evidence_of_a_real_conversation_is_a_context(tmp_path: Path, server: OpenAiServer) -> None:
    content = orjson.loads(conversations("locomo-conv-30.json")[0].read_bytes())
    texts = {event["id"]: event["payload"]["text"] for event in content["events"]}
    for question in content["questions"]:
        question["answer"] = texts.get((question["gold"] or [""])[0])
    folder = tmp_path / "conversations"
    folder.mkdir()
    (folder / "locomo-conv-30.json").write_bytes(orjson.dumps(content))
    # The reader repeats its context, so F1 shows how much of a context is the first evidence message.
    server.behaviour = lambda request: request["messages"][-1]["content"].partition("\n\nQuestion:")[0]
    run(folder, server.url, questions=10)
    f1 = {form: sum(row["f1"] for row in answers(folder) if row["form"] == form) for form in FORMS}
    assert f1["gold"] > 5 > 2 * max(f1[form] for form in FORMS if form != "gold")
