"""What a language model reads in everyday messages, and what of it is kept: each statement is checked by its line."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.events import message
from support.llm_chat import LATER_US, START, Chat, llm_chat, sentences

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.llm_reading.claim_reader import claim_reader
from recollect.jobs.llm_reading.item_merge import added_items
from recollect.jobs.llm_reading.llm_checks import CLAIM_MIN, refusal
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement, parse_statements, split_statement
from recollect.jobs.llm_reading.reading_job import read_by_llm
from recollect.projections.embeddings.embedder import NoEmbedder, SentenceEmbedder

_TRAIN = Path(__file__).parents[2] / "ops" / "train"


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
    ("folder", "right_min", "wrong_max", "step"),
    [
        ("held-out", 0.8, 0.4, 30),
        pytest.param("held-out", 0.8, 0.4, 10, marks=pytest.mark.long),
        ("held-out-short", 0.85, 0.5, 10),
    ],
)
def test_of_sentences_about_chats_that_were_not_trained_on_most_right_ones_and_fewer_wrong_ones_are_kept(
    embedder: SentenceEmbedder, folder: str, right_min: float, wrong_max: float, step: int
) -> None:
    labels = _labels()
    claims = [*labels.read_claims(_TRAIN / "claims" / folder, labels.HELD_OUT_CHATS)][::step]
    says_claim = claim_reader(embedder)
    assert says_claim is not None
    kept = Counter((it.is_right, says_claim(it.statement, it.conversation) >= CLAIM_MIN) for it in claims)
    assert kept[True, True] >= right_min * (kept[True, True] + kept[True, False])
    assert kept[False, True] <= wrong_max * (kept[False, True] + kept[False, False])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Ann's sister is a nurse in Leeds.", None),
        ("Ann is a nurse in Leeds.", "claim"),
        ("Ann moved to Porto.", "claim"),
        ("Mallory is a nurse in Leeds.", "name"),
        ("Ann's sister has been a nurse for 12 years.", "number"),
    ],
)
def test_a_sentence_says_what_its_line_says(embedder: SentenceEmbedder, text: str, reason: str | None) -> None:
    line = "Ann: my sister's a nurse in Leeds, and I'd love to move to Porto one day"
    conversation = LlmConversation([_message(0, line, datetime(2026, 1, 5, tzinfo=UTC))], {})
    statement = LlmStatement(line=1, text=text, words=line[5:])
    assert refusal(statement, conversation, claim_reader(embedder)) == reason


def test_without_the_default_embedding_model_words_names_numbers_and_dates_are_checked_alone() -> None:
    assert claim_reader(NoEmbedder()) is None
    conversation = LlmConversation([_message(0, "Ann: my sister is a nurse", datetime(2026, 1, 5, tzinfo=UTC))], {})
    statement = LlmStatement(line=1, text="Ann is a nurse.", words="my sister is a nurse")
    assert refusal(statement, conversation, None) is None


def _labels() -> Any:
    """Return the module that reads the labels of `ops/train/claims`."""
    path = str(_TRAIN / "claims")
    sys.path.insert(0, path)
    try:
        # Other folders have a module of this name, too.
        sys.modules.pop("labels", None)
        return import_module("labels")
    finally:
        sys.path.remove(path)
        sys.modules.pop("labels", None)


def test_the_example_of_the_prompt_is_refused() -> None:
    message = _message(0, "Ann: my hamster Qwibble turned 900", datetime(2026, 1, 5, tzinfo=UTC))
    statement = LlmStatement(line=1, text="Ann's hamster Qwibble turned 900.", words="my hamster Qwibble turned 900")
    assert refusal(statement, LlmConversation([message], {}), None) == "example"


def test_a_copy_of_a_line_is_refused() -> None:
    start = datetime(2026, 1, 5, tzinfo=UTC)
    messages = [_message(0, "Ann: yes. I live in Porto", start), _message(1, "Ben: nice", start)]
    conversation = LlmConversation(messages, {})
    copies = ("Ann: yes. I live in Porto", "Ben: yes. I live in Porto", "yes")
    for text, reason in (*((copy, "copy") for copy in copies), ("Ann lives in Porto.", None)):
        statement = LlmStatement(line=1, text=text, words="I live in Porto", kind="home")
        assert refusal(statement, conversation, None) == reason
    chinese = LlmConversation([_message(0, "小明: 我住在上海", datetime(2026, 1, 5, tzinfo=UTC))], {})
    statement = LlmStatement(line=1, text="小明住在上海", words="我住在上海", kind="home")
    assert refusal(statement, chinese, None) is None


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
