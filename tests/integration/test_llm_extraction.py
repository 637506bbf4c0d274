"""What a language model reads in everyday messages, and what of it is kept: each statement is checked by its line."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from support.events import message
from support.llm_chat import LATER_US, START, Chat, llm_chat, sentences

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.llm_reading.item_merge import added_items
from recollect.jobs.llm_reading.llm_checks import refusal
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement, parse_statements, split_statement
from recollect.jobs.llm_reading.reading_job import read_by_llm

_ANSWERS = Path(__file__).parents[2] / "ops" / "llm"


@pytest.fixture
def chat(tmp_path: Path) -> Generator[Chat]:
    with llm_chat(tmp_path) as chat:
        yield chat


def test_each_line_has_its_time_and_its_speaker(chat: Chat) -> None:
    chat.read(["Ann: hi\n[9] Bob: I live in Moscow", "assistant: Hello!"], {})
    assert chat.server.conversation().splitlines()[1:-1] == [
        "Read these lines:",
        "[1] Mon 2026-01-05 09:13 Ann: hi [9] Bob: I live in Moscow",
        "[2] Mon 2026-01-05 09:14 assistant: Hello!",
    ]


def test_the_messages_before_are_context(chat: Chat) -> None:
    chat.read(["Ann: my sister Anna is here"], {})
    payload = chat.read(
        ["Ann: she got a cello"],
        {"cello": ["Anna got a cello. | she got a cello | possession", "Rosa got a cello. | she got a cello | event"]},
    )
    assert "- Mon 2026-01-05 09:13 Ann: my sister Anna is here" in chat.server.conversation()
    assert sentences(payload) == ["Anna got a cello"]


def test_a_name_of_another_conversation_is_no_ground(chat: Chat) -> None:
    chat.read(["Ann: my sister Anna is here"], {})
    script = {"cello": ["Anna got a cello. | she got a cello | possession"]}
    assert sentences(chat.read(["Ann: she got a cello"], script, session_id="s2")) == []


def test_what_the_rules_have_read_is_not_added_again_and_nothing_is_removed(chat: Chat) -> None:
    payload = chat.read(
        ["Ann: I live in Porto. Our hens gave us blue eggs today."],
        {
            "Porto": [
                "Ann lives in Porto. | I live in Porto | home",
                "Ann's hens gave her blue eggs today. | Our hens gave us blue eggs today |",
            ]
        },
    )
    assert sentences(payload) == ["Ann's hens gave her blue eggs today"]
    active = [item["object"] for item in chat.memory.facts("a")["items"] if item["status"] == "active"]
    assert sorted(active) == ["Porto", "her blue eggs today"]


def _active(chat: Chat, predicate: str) -> list[str]:
    items = chat.memory.facts("a")["items"]
    return sorted(item["object"] for item in items if item["status"] == "active" and item["predicate"] == predicate)


def test_another_wording_of_what_the_rules_have_read_is_left_out(chat: Chat) -> None:
    answer = "Ann moved to Lisbon last week (2025-12-29). | I moved to Lisbon last week | home"
    payload = chat.read(["Ann: I live in Porto.", "Ann: I moved to Lisbon last week."], {"Lisbon": [answer]})
    assert sentences(payload) == []
    assert _active(chat, "lives in") == ["Lisbon"]


def test_what_a_model_reads_stands_beside_what_the_rules_have_read(chat: Chat) -> None:
    chat.read(["Ann: I live in Porto."], {})
    chat.read(["Ann: home means Lisbon, my base"], {"base": ["Ann lives in Lisbon. | home means Lisbon | home"]})
    assert _active(chat, "lives in") == ["Lisbon", "Porto"]
    chat.read(["Ann: home means Evora, my nest"], {"nest": ["Ann lives in Evora. | home means Evora | home"]})
    assert _active(chat, "lives in") == ["Evora", "Porto"]
    chat.read(["Ann: I live in Faro."], {})
    assert _active(chat, "lives in") == ["Faro"]


def test_a_value_whose_words_nobody_said_is_refused(chat: Chat) -> None:
    answers = {"nurse": ["Ann works as a plumber. | I work as a nurse | work"]}
    assert sentences(chat.read(["Ann: I work as a nurse."], answers)) == []
    assert _active(chat, "works as") == ["nurse"]


@pytest.mark.parametrize(
    "answer", ["none", "1 | Mallory owns three castles. | three castles | home", "7 | Ann left. | x"]
)
def test_an_empty_or_invented_answer_removes_nothing(answer: str, chat: Chat) -> None:
    payload = chat.read(["Ann: I live in Porto."], {"Porto": [answer.partition(" | ")[2] or "none"]})
    assert sentences(payload) == []
    assert [(item["object"], item["status"]) for item in chat.memory.facts("a")["items"]] == [("Porto", "active")]


def test_a_long_conversation_is_read_in_windows(chat: Chat) -> None:
    long = [f"Ann: {'we talked about the boat and its sails again. ' * 60}{number}" for number in range(12)]
    chat.read(long, {})
    assert len(chat.server.requests) > 1
    assert max(len(chat.server.conversation(number)) for number in range(len(chat.server.requests))) < 9_000


def test_a_restart_and_a_replay_ask_nothing(chat: Chat) -> None:
    chat.read(
        ["Ann: I am restoring a wooden boat"],
        {"boat": ["Ann is restoring a wooden boat. | I am restoring a wooden boat | habit"]},
    )
    requests = len(chat.server.requests)
    chat.restart()
    assert extract(chat.memory.parts.job_context, "a", LATER_US) == 0
    assert read_by_llm(chat.memory.parts.job_context, "a", LATER_US) == 0
    before = chat.memory.facts("a")["items"]
    chat.memory.replay("a")
    assert chat.memory.facts("a")["items"] == before
    assert [item["object"] for item in before] == ["a wooden boat"]
    assert len(chat.server.requests) == requests


def test_an_answer_is_read_line_by_line() -> None:
    answer = (
        'Here:\n[3] | Ann has a cat. | "my cat" | Possession\n4 | Bob left. |\n4 | bob left. | he left | event\nbye'
    )
    assert parse_statements(answer) == [
        LlmStatement(line=3, text="Ann has a cat.", words="my cat", kind="possession"),
        LlmStatement(line=4, text="Bob left.", words="", kind="other"),
    ]
    assert parse_statements("None.") == []
    assert parse_statements("Sure, I can help!") is None


def test_the_parts_of_a_sentence_are_the_sentence() -> None:
    assert split_statement("Ann lives in Porto.", "Ann") == ("Ann", "lives in", "Porto")
    assert split_statement("Ann's sister has moved to Rome.", "Ann") == ("Ann's sister", "has moved to", "Rome")
    assert split_statement("everything is fine", "Ann") == ("Ann", "said", "everything is fine")


def test_a_repeated_item_is_added_once() -> None:
    item = {"subject": "Ann", "predicate": "lives in", "object": "Porto", "source_events": ["m1"]}
    by_llm = [ExtractedItem("facts", item), ExtractedItem("facts", item | {"predicate": "lives now in"})]
    assert added_items([], by_llm) == by_llm[:1]
    assert added_items([item], by_llm) == []
    assert added_items([item | {"source_events": ["m2"]}], by_llm) == by_llm[:1]


class _Case(NamedTuple):
    conversation: LlmConversation
    statement: LlmStatement
    is_right: bool


def _cases(name: str) -> Iterator[_Case]:
    """Yield the answers of a file in `ops/llm`, which a person has written and judged."""
    lines: list[str] = []
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for row in (_ANSWERS / name).read_text(encoding="utf-8").splitlines():
        if row.startswith("==="):
            lines, start = [], datetime.fromisoformat(row[8:]).replace(tzinfo=UTC)
        elif re.match(r"\d+ \w+: ", row):
            lines.append(row.split(" ", 1)[1])
        elif row[:2] in ("+ ", "- "):
            number, text, words, kind = (part.strip() for part in row[2:].split("|"))
            messages = [_message(at, line, start) for at, line in enumerate(lines)]
            statement = LlmStatement(line=int(number), text=text, words=words, kind=kind)
            yield _Case(LlmConversation(messages, {}), statement, row[0] == "+")


def _message(at: int, line: str, start: datetime) -> IncomingMessage:
    speaker, text = line.split(": ", 1)
    return IncomingMessage(
        event_id=f"m{at}",
        session_id="s1",
        speaker=speaker,
        text=text,
        sent_at=start + timedelta(minutes=at),
        is_assistant=speaker == "assistant",
    )


@pytest.mark.parametrize(
    ("name", "right_min", "wrong_max"),
    [
        ("strong_answers.txt", 0.95, 0.2),
        ("held_out_answers.txt", 0.9, 0.32),
        ("third_answers.txt", 0.8, 0.3),
        ("fourth_answers.txt", 0.95, 0.45),
        ("fifth_answers.txt", 0.9, 0.4),
        ("sixth_answers.txt", 0.95, 0.45),
        # No check was tuned on it.
        ("unseen_answers.txt", 0.8, 0.35),
    ],
)
def test_right_answers_of_a_strong_model_are_accepted_and_wrong_ones_are_not(
    name: str, right_min: float, wrong_max: float
) -> None:
    judged = [(case.is_right, refusal(case.statement, case.conversation) is None) for case in _cases(name)]
    counts = Counter(judged)
    right, wrong = sum(is_right for is_right, _ in judged), sum(not is_right for is_right, _ in judged)
    print(f"{name}: {counts[True, True]} of {right} right and {counts[False, True]} of {wrong} wrong accepted")
    assert counts[True, True] >= right_min * right
    assert counts[False, True] <= wrong_max * wrong


def test_the_example_of_the_prompt_is_refused() -> None:
    message = _message(0, "Ann: my hamster Qwibble turned 900", datetime(2026, 1, 5, tzinfo=UTC))
    statement = LlmStatement(line=1, text="Ann's hamster Qwibble turned 900.", words="my hamster Qwibble turned 900")
    assert refusal(statement, LlmConversation([message], {})) == "example"


def test_a_copy_of_the_line_is_refused() -> None:
    conversation = LlmConversation([_message(0, "Ann: yes. I live in Porto", datetime(2026, 1, 5, tzinfo=UTC))], {})
    for text, reason in (("Ann: yes. I live in Porto", "copy"), ("yes", "copy"), ("Ann lives in Porto.", None)):
        statement = LlmStatement(line=1, text=text, words="I live in Porto", kind="home")
        assert refusal(statement, conversation) == reason
    chinese = LlmConversation([_message(0, "小明: 我住在上海", datetime(2026, 1, 5, tzinfo=UTC))], {})
    statement = LlmStatement(line=1, text="小明住在上海", words="我住在上海", kind="home")
    assert refusal(statement, chinese) is None


@pytest.mark.skipif("RECOLLECT_TEST_LLM_URL" not in os.environ, reason="no model: `ops/llm serve` says how to have one")
def test_a_real_model_answers_within_the_form_and_removes_nothing(tmp_path: Path) -> None:
    model = {"llm": "qwen2.5-coder:1.5b", "llm_base_url": os.environ["RECOLLECT_TEST_LLM_URL"]}
    settings = load_settings(data=tmp_path, embedding_model="none", llm_timeout_seconds=280, **model)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", [message("I live in Porto with my cat Biscuit.", name="Ann", occurred_at=START)])
        extract(memory.parts.job_context, "a", LATER_US)
        by_rules = memory.facts("a")["items"]
        read_by_llm(memory.parts.job_context, "a", LATER_US)
        assert all(fact in memory.facts("a")["items"] for fact in by_rules)
        llm = memory.parts.job_context.llm
        assert llm is not None
        status = llm.status()
        assert (status["requests_today"], status["tokens_today"] < 1_000) == (1, True)
