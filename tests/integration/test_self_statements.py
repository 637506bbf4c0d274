"""What people say of themselves in German, Spanish, French, Chinese and Japanese, and the questions that find it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.self_statements import NO_STATEMENTS, SELF_STATEMENTS

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.question_times import question_times
from recollect.projections.text.sentence_language import language_of

_NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
_KINDS = ("facts", "preferences", "endings", "corrections", "relationships", "entities")
_EACH_NO_STATEMENT = [text.strip() for line in NO_STATEMENTS.strip().splitlines() for text in line.split("|")]


def read(text: str, before: list[PriorStatement] | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the kind and the item of what the rules read in a message of Kim, without dates and questions."""
    message = IncomingMessage("e1", "s1", "Kim", text, _NOW, is_assistant=False)
    items = extract_by_rules(message, [] if before is None else before)
    return [(kind, item) for kind, item in items if kind in _KINDS]


def facts(text: str) -> set[tuple[str, str, str]]:
    return {(item["subject"], item["predicate"], item["object"]) for kind, item in read(text) if kind == "facts"}


@pytest.mark.parametrize("language", SELF_STATEMENTS)
def test_a_conversation_gives_the_facts_of_a_person_and_nothing_else(language: str) -> None:
    talk = SELF_STATEMENTS[language]
    items = [pair for message in talk.messages for pair in read(message)]
    assert {
        (item["subject"], item["predicate"], item["object"]) for kind, item in items if kind == "facts"
    } == talk.facts
    wishes = [item for kind, item in items if kind == "preferences"]
    assert {(item["value"], item["key"]) for item in wishes if not item.get("standing")} == talk.preferences
    assert {item["key"] for item in wishes if item.get("standing")} == talk.instructions
    assert {(item["type"], item["target"]) for kind, item in items if kind == "relationships"} == talk.people
    assert not [item for kind, item in items if kind in ("endings", "corrections")]


@pytest.mark.parametrize("language", SELF_STATEMENTS)
def test_questions_in_the_language_of_the_conversation_are_answered(tmp_path: Path, language: str) -> None:
    talk = SELF_STATEMENTS[language]
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        for minute, text in enumerate(talk.messages):
            payload = {"role": "user", "name": "Kim", "text": text}
            at = f"2026-03-05T10:{minute:02}:00Z"
            memory.append("kim", [{"type": "message.added", "occurred_at": at, "session_id": "s", "payload": payload}])
        memory.settle("kim")
        for question, answer in talk.questions:
            context = memory.retrieve("kim", question, until="2026-03-05T12:00:00Z").context
            assert answer in context, question
        assert not memory.retrieve("kim", talk.messages[-1]).items


@pytest.mark.parametrize("text", _EACH_NO_STATEMENT)
def test_sentences_that_state_nothing_give_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "predicates", "about"),
    [
        ("ich arbeite nicht mehr bei Bosch", ["works at", "works as"], "Bosch"),
        ("Ich habe meinen Job gekündigt", ["works at", "works as"], None),
        ("wir haben unser auto verkauft", ["owns", "drives", "has pet", "uses", "has", "rides"], "auto"),
        ("ya no vivo en Sevilla", ["lives in"], "Sevilla"),
        ("me despidieron", ["works at", "works as"], None),
        ("j'ai quitté mon boulot", ["works at", "works as"], None),
        ("je n'habite plus à Lyon", ["lives in"], "Lyon"),
        ("我已经不在阿里上班了", ["works at", "works as"], "阿里"),
        ("我不住在北京了", ["lives in"], "北京"),
        ("もうソニーでは働いていません", ["works at", "works as"], "ソニー"),
        ("先月仕事を辞めました", ["works at", "works as"], None),
    ],
)
def test_what_is_over_ends_the_facts_that_it_speaks_of(text: str, predicates: list[str], about: str | None) -> None:
    [(kind, ending)] = read(text)
    assert kind == "endings"
    assert (ending["subject"], ending["predicates"], ending.get("about")) == ("Kim", predicates, about)


@pytest.mark.parametrize(
    ("statement", "correction", "right", "wrong"),
    [
        ("ich wohne in Köln", "nein, ich meinte Bonn", "Bonn", "Köln"),
        ("vivo en Sevilla", "perdón, quería decir Cádiz", "Cádiz", "Sevilla"),
        ("j'habite à Lyon", "non, je voulais dire Lille", "Lille", "Lyon"),
        ("我住在上海", "不对，我的意思是苏州", "苏州", "上海"),
        ("横浜に住んでいます", "間違えました、横浜じゃなくて川崎です", "川崎", "横浜"),
    ],
)
def test_a_correction_replaces_what_was_said_before(statement: str, correction: str, right: str, wrong: str) -> None:
    before: list[PriorStatement] = []
    read(statement, before)
    [(kind, item)] = read(correction, before)
    assert (kind, item["object"], item["corrects_object"]) == ("corrections", right, wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Meine Schwester Julia studiert Medizin in Heidelberg", ("Julia", "studies", "Medizin")),
        ("meine oma wohnt in dresden", ("Kim's grandmother", "lives in", "dresden")),
        ("mi abuela vive en Cádiz", ("Kim's grandmother", "lives in", "Cádiz")),
        ("mon frère habite à Lille", ("Kim's brother", "lives in", "Lille")),
        ("我奶奶今年八十五岁，住在成都，每天早上打太极拳", ("Kim's grandmother", "lives in", "成都")),
        ("妹は京都大学で法律を勉強しています", ("Kim's sister", "studies", "法律")),
    ],
)
def test_a_relative_is_the_subject_of_what_is_said_of_him(text: str, expected: tuple[str, str, str]) -> None:
    found = facts(text)
    assert expected in found
    assert not any(subject == "Kim" for subject, _, _ in found)


@pytest.mark.parametrize(
    "text", ["うちの柴犬の名前はこむぎです。三歳で、雷が大嫌いです", "我家的猫叫豆豆，三岁了，喜欢吃鱼"]
)
def test_what_is_said_of_a_pet_is_not_said_of_its_owner(text: str) -> None:
    [(kind, fact)] = read(text)
    assert (kind, fact["predicate"]) == ("facts", "has pet")


def test_a_joke_and_a_quotation_are_no_statements() -> None:
    assert read("Ich wohne in Paris. Kleiner Scherz!") == []
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
@settings(max_examples=150)
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


def test_a_diet_without_meat_is_not_a_diet_of_meat() -> None:
    said = ("ich esse kein Fleisch", "no como carne", "je mange pas de viande", "我不吃肉", "肉は食べません")
    objects = [value for text in said for _, _, value in facts(text)]
    assert objects == ["kein Fleisch", "sin carne", "sans viande", "不吃肉", "肉は食べません"]


@pytest.mark.parametrize(
    "text", ["meine tochter emma wird im juni 8", "mi hija sofia cumple 5 años en mayo", "娘の名前はさくらで、五歳です"]
)
def test_an_age_to_come_and_the_age_of_a_relative_are_not_the_age_of_the_speaker(text: str) -> None:
    assert not facts(text)
