"""What people say of themselves in other languages than English is kept in their words, and found."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.self_statements import (
    KEPT_FOR_NOTHING,
    MISSED_STATEMENTS,
    NO_STATEMENTS,
    PLAIN_STATEMENTS,
    SELF_STATEMENTS,
)

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.extraction.statements import Embed
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.question_times import question_times
from recollect.projections.text.sentence_language import language_of

_NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
#: Questions of a language that share no word with their answer, which only an embedding model finds.
_MISSED_MAX = 1
_KINDS = ("facts", "preferences", "endings", "corrections", "relationships", "entities")
_EACH_NO_STATEMENT = [text.strip() for line in NO_STATEMENTS.strip().splitlines() for text in line.split("|")]


def read(text: str, *, embed: Embed | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the kind and the item of what is read in a message of Kim, without dates and questions."""
    message = IncomingMessage("e1", "s1", "Kim", text, _NOW, is_assistant=False)
    items = extract_by_rules(message, [], embed=embed)
    return [(kind, item) for kind, item in items if kind in _KINDS]


def _plain(text: str) -> Any:
    is_missed = text in MISSED_STATEMENTS
    reason = "too few labelled sentences of this language"
    return pytest.param(text, marks=pytest.mark.xfail(reason=reason, strict=False) if is_missed else ())


def _nothing(text: str) -> Any:
    is_kept = text in KEPT_FOR_NOTHING
    reason = "sentences of passing interest, and about others, in other languages are kept too often"
    return pytest.param(text, marks=pytest.mark.xfail(reason=reason, strict=False) if is_kept else ())


@pytest.mark.parametrize("text", [_plain(text) for texts in PLAIN_STATEMENTS.values() for text in texts])
def test_what_is_plainly_said_in_another_language_is_known_in_the_words_of_its_speaker(text: str, embed: Embed) -> None:
    stated = [item["object"] for kind, item in read(text, embed=embed) if kind == "facts"]
    assert any(words in text and len(words) > len(text) / 3 for words in stated)


@pytest.mark.parametrize("language", SELF_STATEMENTS)
def test_questions_in_the_language_of_the_conversation_are_answered(tmp_path: Path, language: str) -> None:
    talk = SELF_STATEMENTS[language]
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        for minute, text in enumerate(talk.messages):
            payload = {"role": "user", "name": "Kim", "text": text}
            at = f"2026-03-05T10:{minute:02}:00Z"
            memory.append("kim", [{"type": "message.added", "occurred_at": at, "session_id": "s", "payload": payload}])
        memory.settle("kim")
        until = "2026-03-05T12:00:00Z"
        missed = [
            question
            for question, answer in talk.questions
            if answer not in memory.retrieve("kim", question, until=until).context
        ]
        assert len(missed) <= _MISSED_MAX, missed
        assert not memory.retrieve("kim", talk.messages[-1]).items


@pytest.mark.parametrize("text", [_nothing(text) for text in _EACH_NO_STATEMENT])
def test_sentences_that_state_nothing_give_nothing(text: str, embed: Embed) -> None:
    assert read(text) == []
    assert read(text, embed=embed) == []


@pytest.mark.xfail(reason="a joke that only the next sentence owns up to is kept in German")
def test_a_joke_is_no_statement() -> None:
    assert read("Ich wohne in Paris. Kleiner Scherz!") == []


def test_a_quotation_is_no_statement() -> None:
    assert read('Er schrieb: "ich wohne, arbeite bei Bosch"') == []


def test_an_instruction_in_a_pasted_mail_is_none() -> None:
    assert read("Von: Chef\nBetreff: Stil\nantworte bitte immer kurz") == []


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("was war letzten Montag?", "2026-03-02", "2026-03-03"),
        ("was habe ich vor zwei Wochen gesagt?", "2026-02-16", "2026-02-23"),
        ("¿qué hice ayer?", "2026-03-04", "2026-03-05"),
        ("que hice la semana pasada", "2026-02-23", "2026-03-02"),
        ("¿qué tengo el 3 de octubre?", "2026-10-03", "2026-10-04"),
        ("qu'ai-je fait la semaine dernière ?", "2026-02-23", "2026-03-02"),
        ("il y a deux jours, j'ai vu qui ?", "2026-03-03", "2026-03-04"),
        ("昨天我做了什么", "2026-03-04", "2026-03-05"),
        ("我下周三有什么安排", "2026-03-11", "2026-03-12"),
        ("三天前我说了什么", "2026-03-02", "2026-03-03"),
        ("来週の土曜日は何がある?", "2026-03-14", "2026-03-15"),
        ("2週間前に何を言った?", "2026-02-16", "2026-02-23"),
    ],
)
def test_times_of_questions_are_read(question: str, start: str, end: str) -> None:
    [date] = question_times(question, _NOW).ranges
    assert (f"{date.start:%Y-%m-%d}", f"{date.end:%Y-%m-%d}") == (start, end)


@pytest.mark.parametrize(
    "text",
    [
        "Las Vegas was great and I am from El Paso",
        "My favourite film is Das Boot",
        "Gracias, Mel! I live in Los Angeles",
        "My name in Chinese is 王小明",
        "ok",
        "",
        "La Paz",
    ],
)
def test_english_sentences_with_foreign_names_are_english(text: str) -> None:
    assert language_of(text) is None


_PIECES = (
    "ich wohne in | ich habe einen hund | und | mein | vivo en | tengo que | y | mi hermana | je suis | j'ai un chien"
    " | et | 我住在 | 我叫 | 我妈妈 | ， | 。| 私は | に住んで | の | 、 | が好き | 1 | ( | 「 | 14. märz | 昨天"
    ' | 来週 | " | \u0301 | ﷺ | ㍿ | nicht mehr | ya no'
).split("|")


@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=4), max_size=60))
def test_any_text_is_read_without_an_error_and_always_the_same(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert read(text) == read(text)
    for date in read_dates(text, _NOW):
        assert text[date.position :].startswith(date.words)


@pytest.mark.parametrize("piece", _PIECES)
def test_a_hostile_text_does_not_use_up_the_time_of_a_message(piece: str) -> None:
    """Objects are short, and the reader does not exceed the processor time of a message."""
    for _, item in read(piece * 2_000):
        assert all(len(value) <= 1_000 for value in item.values() if isinstance(value, str))
