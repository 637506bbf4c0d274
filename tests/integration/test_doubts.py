"""Doubts: what a later message may have changed stays, and is shown with the words of that message."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.validation import drafts
from recollect.jobs.extraction.changes import find_changes
from recollect.jobs.extraction.conversation_state import Conversations, Said
from recollect.jobs.extraction.corrected_messages import corrected_messages
from recollect.jobs.extraction.statement_reader import read_clauses
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import ReadPairs, pair_reader, reading_embed
from recollect.projections.projection_settings import CHANGES_MODEL, MESSAGES_MODEL
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.queries.session_queries import EarlierTurn

Tell = Callable[..., None]
_START = datetime(2026, 1, 5, 10, tzinfo=UTC)
_HARP = "Lotte is 9 and she plays the harp"


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as memory:
        yield memory


@pytest.fixture
def tell(memory: Recollect) -> Tell:
    """Append events, derived ones too, a day after each other."""
    days = itertools.count()

    def tell(*events: Event) -> None:
        for event in events:
            at = _START + timedelta(days=next(days))
            memory.parts.log.append("a", drafts([{"occurred_at": at} | event]))

    return tell


def extracted(source: str, **items: list[dict[str, object]]) -> Event:
    sourced = {kind: [item | {"source_events": [source]} for item in of_kind] for kind, of_kind in items.items()}
    return {"type": "facts.extracted", "payload": {"source_events": [source], "extractor": "rules"} | sourced}


_HOME: dict[str, object] = {"subject": "Ann", "predicate": "lives in", "object": "Berlin"}
_DOUBT: dict[str, object] = {"subject": "Ann", "predicates": ["lives in"], "object": "Berlin", "probability": 0.6}
_SAID = [
    message("I live in Berlin", id="m1", name="Ann"),
    extracted("m1", facts=[_HOME]),
    message("we got the keys in Milan", id="m2", name="Ann"),
    extracted("m2", doubts=[_DOUBT | {"about": "we got the keys in Milan"}]),
]
_NOTE = 'later, 2026-01-07: "we got the keys in Milan"'


def shown(memory: Recollect) -> str:
    return memory.retrieve("a", "where does Ann live, Berlin?", gate=False, kinds={"fact"}).context


def test_what_may_have_changed_holds_and_is_shown_with_what_was_said_later(memory: Recollect, tell: Tell) -> None:
    tell(*_SAID)
    assert [fact["status"] for fact in memory.list("a", "facts")["items"]] == ["active"]
    assert f"Ann lives in Berlin (said 2026-01-05; {_NOTE})" in shown(memory)


def test_what_is_said_again_after_a_doubt_is_in_doubt_no_more(memory: Recollect, tell: Tell) -> None:
    tell(*_SAID, message("still in Berlin", id="m3", name="Ann"), extracted("m3", facts=[_HOME]))
    assert _NOTE not in shown(memory)


def test_where_the_present_is_asked_for_what_was_said_later_comes_first(memory: Recollect, tell: Tell) -> None:
    rents = ["my rent is 900 euro", "rent went to 920", "no, the rent is 930"]
    changed: list[dict[str, object]] = [
        {"subject": "Ann", "event": f"m{place}", "probability": 0.6, "source_events": [f"m{place}", f"m{place + 1}"]}
        for place in (1, 2)
    ]
    for place, text in enumerate(rents, start=1):
        tell(message(text, id=f"m{place}", name="Ann"), extracted(f"m{place}", doubts=changed[place - 2 : place - 1]))
    items = memory.retrieve("a", "what is my rent now?", gate=False, kinds={"episode"}).items
    assert [item.id for item in items] == ["m3", "m2", "m1"]
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


def test_a_doubt_goes_with_its_message(memory: Recollect, tell: Tell) -> None:
    tell(*_SAID)
    memory.forget("a", "m2")
    assert "Milan" not in shown(memory)
    assert "Ann lives in Berlin" in shown(memory)


def test_of_several_doubts_a_likely_one_is_shown(memory: Recollect, tell: Tell) -> None:
    unlikely = _DOUBT | {"probability": 0.5, "about": "Berlin was cold"}
    tell(*_SAID, message("Berlin was cold", id="m3", name="Ann"), extracted("m3", doubts=[unlikely]))
    assert _NOTE in shown(memory)


def test_nobody_brings_the_words_of_another_person_into_doubt(memory: Recollect, tell: Tell) -> None:
    by_ben = _DOUBT | {"about": "we got the keys in Milan", "stated_by": "Ben"}
    tell(*_SAID[:2], message("we got the keys in Milan", id="m2", name="Ben"), extracted("m2", doubts=[by_ben]))
    assert "later" not in shown(memory)


def test_a_message_that_may_be_wrong_is_shown_with_the_whole_message_that_says_so(
    memory: Recollect, tell: Tell
) -> None:
    doubt: dict[str, object] = {"subject": "Ann", "event": "m1", "probability": 0.6}
    said = message("no wait. not Berlin", id="m2", name="Ann")
    tell(*_SAID[:2], said, extracted("m2", doubts=[doubt]))
    assert 'Ann lives in Berlin (said 2026-01-05; later, 2026-01-07: "no wait. not Berlin")' in shown(memory)
    messages = memory.retrieve("a", "where does Ann live, Berlin?", gate=False, kinds={"episode"}).items
    [later] = [it.later for it in messages if it.id == "m1"]
    assert later is not None
    assert later.source_event == "m2"
    memory.forget("a", "m2")
    assert "wait" not in memory.retrieve("a", "where does Ann live, Berlin?", gate=False).context


def test_a_message_that_was_in_doubt_is_forgotten_with_its_words(memory: Recollect, tell: Tell) -> None:
    doubt: dict[str, object] = {"subject": "Ann", "event": "m1", "probability": 0.6}
    tell(*_SAID[:2], message("no wait. not Berlin", id="m2", name="Ann"), extracted("m2", doubts=[doubt]))
    memory.forget("a", "m1")
    assert "I live in Berlin" not in memory.retrieve("a", "where does Ann live, Berlin?", gate=False).context


def test_a_statement_of_several_parts_is_brought_into_doubt_by_a_change_of_one(embedder: SentenceEmbedder) -> None:
    said = PriorStatement(session_id=None, speaker="Ann", subject="Ann", predicate="says", object=_HARP, kind=None)
    read_pairs = pair_reader(CHANGES_MODEL, embedder)
    [(kind, item)] = find_changes(
        "Lotte stopped the harp", "Ann", [said], vectors=embedder.embed, read_pairs=read_pairs
    )
    assert (kind, item["object"]) == ("doubts", _HARP)


def test_a_rule_that_may_be_withdrawn_stands_with_what_was_said(memory: Recollect, tell: Tell) -> None:
    rule: dict[str, object] = {"category": "communication", "key": "language", "value": "write to me in Swedish always"}
    rule |= {"strength": 0.9, "standing": True, "subject": "Ann"}
    said = "my roommates read along so let's go back to english"
    doubt: dict[str, object] = {"subject": "Ann", "object": rule["value"], "about": said, "probability": 0.4}
    tell(message("write to me in Swedish always", id="m1", name="Ann"), extracted("m1", preferences=[rule]))
    tell(message(said, id="m2", name="Ann"), extracted("m2", doubts=[doubt]))
    context = memory.retrieve("a", "", speaker="Ann", mode="passive", session_id="next", gate=False).context
    assert f'write to me in Swedish always (later, 2026-01-07: "{said}")' in context


@pytest.mark.parametrize(
    ("later", "kinds"),
    [
        ("my roommates read along so let's go back to english for good", ["doubts"]),
        ("never use my last name", []),
        ("the roommates bought a piano", []),
    ],
)
def test_a_sentence_that_may_withdraw_a_rule_brings_the_likeliest_one_into_doubt(
    later: str, kinds: list[str], embedder: SentenceEmbedder
) -> None:
    rules = ["write to me in Swedish always", "use fahrenheit for me always"]
    found = changes_of_rules(later, rules, embedder)
    assert [kind for kind, _ in found] == kinds
    assert all(item["object"] == rules[0] for _, item in found)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("one, no exclamation marks", "two, when I ask about money give me pounds even if it is invoiced in crowns"),
        ("answer me in english but short, and never ask how my day was", "ok write short like I do"),
    ],
)
def test_a_further_rule_ends_none(earlier: str, later: str, embedder: SentenceEmbedder) -> None:
    assert changes_of_rules(later, [earlier], embedder) == []


def changes_of_rules(later: str, rules: list[str], embedder: SentenceEmbedder) -> list[tuple[str, dict[str, Any]]]:
    """Return what a sentence changes of the rules of its speaker."""
    before = [
        PriorStatement(
            session_id=None, speaker="Ann", subject="Ann", predicate="", object=text, kind="rule", is_preference=True
        )
        for text in rules
    ]
    embed = reading_embed(embedder)
    assert embed is not None
    read = read_clauses(later, to_assistant=True, embedding=embed([later])[0])
    read_pairs = pair_reader(CHANGES_MODEL, embedder)
    return find_changes(later, "Ann", before, vectors=embedder.embed, read=read, read_pairs=read_pairs)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("dentist on tuesday at 3", "thursday i mean"),
        ("her name is Lana, she starts monday", "*Lena"),
        ("we're 12 for dinner on friday", "13, forgot the baby"),
    ],
)
def test_a_message_that_puts_the_one_before_right_brings_it_into_doubt(
    earlier: str, later: str, embedder: SentenceEmbedder
) -> None:
    reader = partial(pair_reader, MESSAGES_MODEL, embedder)
    said = [Said("m1", "good morning"), Said("m2", earlier)]
    [(kind, item)] = corrected_messages("Ann", Said("m3", later), said, reader)
    assert (kind, item["event"], item["source_events"]) == ("doubts", "m2", ("m3", "m2"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("dentist on tuesday at 3", "need to bring the xrays"),
        ("her name is Lena, she starts monday", "she's from Porto"),
        ("we're 12 for dinner on friday", "and 3 dogs lol"),
        ("dentist on tuesday at 3", "thanks!"),
    ],
)
def test_a_message_that_adds_to_the_one_before_changes_nothing(
    earlier: str, later: str, embedder: SentenceEmbedder
) -> None:
    reader = partial(pair_reader, MESSAGES_MODEL, embedder)
    assert [*corrected_messages("Ann", Said("m3", later), [Said("m2", earlier)], reader)] == []


def test_a_long_message_is_not_read_as_a_correction() -> None:
    def reader() -> ReadPairs | None:
        raise AssertionError("it was read")

    said = [Said("m2", "her name is Lana")]
    assert [*corrected_messages("Ann", Said("m3", "*Lena " + "who starts on monday " * 8), said, reader)] == []


def test_a_code_that_is_hidden_is_not_shown_by_its_correction(embedder: SentenceEmbedder) -> None:
    reader = partial(pair_reader, MESSAGES_MODEL, embedder)
    said, later = Said("m2", "my door code is 7741#"), Said("m3", "7714# careful")
    assert [*corrected_messages("Ann", later, [said], reader)] == []
    assert [*corrected_messages("Ann", later, [Said("m2", "the order is 7741#")], reader)] != []


def test_extraction_brings_a_message_into_doubt_until_it_is_erased(tmp_path: Path) -> None:
    said = [
        message("supplier comes every tuesday, 40 boxes", id="m1", name="Ann", session_id="s1"),
        message("*friday", id="m2", name="Ben", session_id="s1"),
        message("*wednesday", id="m3", name="Ann", session_id="s1"),
        message("*saturday", id="m4", name="Ann", session_id="s2"),
    ]
    with Recollect(tmp_path, workers=False) as memory:
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(300)
        for event in said:
            memory.append("a", event)
            memory.settle("a")
        doubts = [doubt for event in events_of(memory) for doubt in event.get("doubts", ())]
        assert [(doubt["event"], doubt["source_events"]) for doubt in doubts] == [("m1", ["m3", "m1"])]
        memory.erase("a", event_ids=["m1"])
        memory.settle("a")
        assert not any("m1" in str(event) for event in events_of(memory))


def events_of(memory: Recollect) -> list[dict[str, Any]]:
    return [event.data() for event in memory.parts.log.read("a", after=0, limit=100)]


def test_a_message_is_read_with_the_last_two_of_its_speaker_in_the_session() -> None:
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)
    texts = [
        ("a1", "Ann", "one"),
        ("b1", "Ben", "two"),
        ("a2", "Ann", "three"),
        ("a3", "Ann", "four"),
        ("a4", "Ann", ""),
    ]
    turns = [EarlierTurn(id=id, role="user", speaker=speaker, text=text, sent_at=at) for id, speaker, text in texts]
    conversations = Conversations(lambda session_id: turns if session_id == "s1" else [])
    assert [said.event_id for said in conversations.of("s1").last_of("Ann")] == ["a2", "a3"]
    assert [said.event_id for said in conversations.of("s1").last_of("Ben")] == ["b1"]
    assert conversations.of("s2").last_of("Ann") == ()
