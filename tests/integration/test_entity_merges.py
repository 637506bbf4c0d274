"""Entities: types by evidence, and names that are of one entity, with its facts, until an event separates them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import InvalidInput, NotFound
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

Say = Callable[..., None]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def say(memory: Recollect) -> Say:
    """Append messages of Ann, a day after each other, and extract from them."""
    days = itertools.count(1)

    def say(*texts: str, name: str = "Ann") -> None:
        for text in texts:
            at = f"2026-01-{next(days):02}T10:00:00Z"
            memory.append("a", message(text, name=name, session_id="s", occurred_at=at))
            memory.settle("a")

    return say


def names(memory: Recollect) -> dict[str, list[str]]:
    """Return the aliases of each entity by name."""
    return {item["name"]: item["aliases"] for item in memory.entities("a")["items"]}


def types(memory: Recollect) -> dict[str, str]:
    """Return the type of each entity by name."""
    return {item["name"]: item["type"] for item in memory.entities("a")["items"]}


def subjects(memory: Recollect, name: str) -> list[str]:
    """Return the subjects of the facts about an entity."""
    return [item["subject"] for item in memory.facts("a", filters={"subject": name})["items"]]


def described(name: str, *aliases: str, **payload: Any) -> Event:
    return {"type": "entity.described", "payload": {"name": name, "aliases": aliases, **payload}}


# -- types ------------------------------------------------------------------------------------------------------------


def test_entities_have_types_and_no_sentence_start_is_one(memory: Recollect, say: Say) -> None:
    say("My sister Anna lives in Porto.", "Cooking is fun. Absolutely!", "I work at Siemens and my dog is called Rex.")
    assert types(memory) == {
        "Ann": "person",
        "Anna": "person",
        "Porto": "location",
        "Siemens": "organization",
        "Rex": "animal",
    }


def test_strong_evidence_outweighs_many_weak_mentions(memory: Recollect, say: Say) -> None:
    say("Max came too.", "Max loves the sea.", "We took Max along.", "My dog Max is three.", "Max sleeps.")
    assert types(memory)["Max"] == "animal"


def test_a_stated_type_decides(memory: Recollect, say: Say) -> None:
    say("My dog Max is three.")
    memory.append("a", described("Max", type="project"))
    say("My dog Max barks.")
    assert types(memory)["Max"] == "project"


def test_names_are_found_in_messages_without_capitals(memory: Recollect, say: Say) -> None:
    say("my sister anna lives in porto")
    assert {"Anna", "Porto"} <= types(memory).keys()


def test_a_name_without_a_type_is_listed_on_request(memory: Recollect, say: Say) -> None:
    say("We saw Zorblax with Anna.")
    assert "Zorblax" not in types(memory)
    assert [item["name"] for item in memory.entities("a", filters={"type": "other"})["items"]] == ["Zorblax"]


def test_a_forgotten_message_takes_its_evidence_with_it(memory: Recollect, say: Say) -> None:
    memory.append("a", message("We met my dog Max", name="Ann", id="m1", occurred_at="2026-01-01T10:00:00Z"))
    memory.settle("a")
    assert types(memory)["Max"] == "animal"
    memory.forget("a", "m1")
    assert "Max" not in types(memory)


# -- merges -----------------------------------------------------------------------------------------------------------


def test_a_role_is_the_person_whose_name_is_said_later(memory: Recollect, say: Say) -> None:
    say("My mom lives in Leeds.", "My mom's name is Wendy.", "Wendy works at Siemens.")
    assert names(memory)["Wendy"] == ["Ann's mom"]
    assert set(subjects(memory, "Wendy")) == set(subjects(memory, "Ann's mom")) == {"Ann's mom", "Wendy"}
    merged = memory.get("a", "Wendy").get("merged") or []
    assert [(item["name"], item["reason"]) for item in merged] == [("Ann's mom", "role")]
    assert merged[0]["source_events"]


def test_people_are_introduced_in_the_words_of_chats(memory: Recollect, say: Say) -> None:
    say("my bf tom works at greggs lol", "my mum is called sandra")
    known = {(item["source"], item["type"], item["target"]) for item in memory.list("a", "relationships")["items"]}
    assert known == {("Ann", "boyfriend", "Tom"), ("Ann", "mum", "Sandra")}


def test_two_people_of_one_role_are_not_merged_with_it(memory: Recollect, say: Say) -> None:
    say("My sister lives in Leeds.", "My sister Anna called.", "My sister Beth called.")
    assert names(memory)["Anna"] == names(memory)["Beth"] == []


def test_a_first_name_is_the_only_person_with_this_full_name(memory: Recollect, say: Say) -> None:
    say("I met Jonathan Miller.", "Jonathan called me.", "Jon said hi.")
    assert sorted(names(memory)["Jonathan Miller"]) == ["Jon", "Jonathan"]


def test_initials_are_the_only_place_that_has_them(memory: Recollect, say: Say) -> None:
    say("I moved to New York City.", "We live in NYC now.")
    assert names(memory)["New York City"] == ["NYC"]


def test_people_with_one_first_name_and_two_surnames_stay_apart(memory: Recollect, say: Say) -> None:
    say("I met Jonathan Miller.", "Jonathan called me.", "Jonathan Smith called me.")
    known = names(memory)
    assert known["Jonathan Miller"] == known["Jonathan Smith"] == known["Jonathan"] == []


def test_people_whom_one_sentence_names_are_two(memory: Recollect, say: Say) -> None:
    say("Melanie and Mel said hi.")
    assert names(memory)["Melanie"] == []


def test_two_speakers_are_two_people(memory: Recollect, say: Say) -> None:
    say("Hello", name="Joanna")
    say("Hello", name="Jo")
    say("Hey Jo, and hey Joanna!", name="Ann")
    assert names(memory)["Joanna"] == names(memory)["Jo"] == []


def test_a_question_by_role_finds_the_facts_of_the_name(memory: Recollect, say: Say) -> None:
    say("My mom is 60 years old.", "My mom's name is Wendy.")
    memory.append("a", {"type": "fact.stated", "payload": {"subject": "Wendy", "predicate": "likes", "object": "figs"}})
    for question in ("What does my mom like?", "What does my mother like?", "What does Wendy like?"):
        assert "Wendy (Ann's mom) likes figs" in [item.text for item in memory.retrieve("a", question).items], question


def test_the_newest_value_of_any_name_is_retrieved(memory: Recollect, say: Say) -> None:
    say("My mom lives in Leeds.", "My mom's name is Wendy.", "Wendy lives in Bath.")
    with memory.parts.read_models.reading("a") as snapshot:
        lines = [item.line for item in snapshot.knowledge.items() if item.predicate == "lives in"]
    assert lines == ["Wendy (Ann's mom) lives in Bath"]


def test_a_person_with_two_names_has_one_current_value_until_the_names_are_separated(memory: Recollect) -> None:
    def stated(subject: str, object: str, day: int) -> Event:
        payload = {"subject": subject, "predicate": "lives in", "object": object}
        return {"type": "fact.stated", "occurred_at": f"2026-01-0{day}T10:00:00Z", "payload": payload}

    def listed() -> dict[str, str]:
        return {fact["object"]: fact["status"] for fact in memory.facts("a")["items"]}

    described = {"name": "Daniel Dennett", "type": "person", "aliases": ["Dan"]}
    facts = [stated("Dan", "Oslo", 1), stated("Daniel Dennett", "Bergen", 5), stated("Dan", "Ghent", 3)]
    memory.append("a", [*facts, {"type": "entity.described", "payload": described}])
    assert listed() == {"Oslo": "superseded", "Bergen": "active", "Ghent": "superseded"}
    (current,) = memory.facts("a", filters={"status": "active", "subject": "dan"})["items"]
    homes = memory.fact_history("a", current["id"])["items"]
    assert [(home["object"], (home["valid_until"] or "")[:10]) for home in homes] == [
        ("Oslo", "2026-01-03"),
        ("Ghent", "2026-01-05"),
        ("Bergen", ""),
    ]
    memory.separate("a", "Daniel Dennett", "Dan")
    assert listed() == {"Oslo": "superseded", "Bergen": "active", "Ghent": "active"}


def test_an_event_undoes_a_merge_for_good(memory: Recollect, say: Say) -> None:
    say("My mom lives in Leeds.", "My mom's name is Wendy.")
    assert memory.separate("a", "Wendy", "ann's mom")["aliases"] == []
    say("Wendy is my mom.")
    assert names(memory)["Wendy"] == []
    assert subjects(memory, "Wendy") == []
    memory.append("a", described("Wendy", "Ann's mom"))
    assert names(memory)["Wendy"] == ["Ann's mom"]


def test_only_a_merge_can_be_undone(memory: Recollect) -> None:
    memory.append("a", described("Wendy"))
    with pytest.raises(InvalidInput, match="no other name of 'Wendy'"):
        memory.separate("a", "Wendy", "Bob")
    with pytest.raises(NotFound):
        memory.separate("a", "Bob", "Wendy")


def test_a_forgotten_entity_takes_the_facts_of_its_other_names_with_it(memory: Recollect, say: Say) -> None:
    say("My mom lives in Leeds.", "My mom's name is Wendy.")
    memory.forget("a", "Wendy")
    assert memory.facts("a")["items"] == []
    assert "Wendy" not in names(memory)


def test_an_alias_is_of_the_entity_for_which_it_was_stated_last(memory: Recollect) -> None:
    memory.append("a", [described("Robert", "Bob"), described("Bobby", "Bob")])
    assert names(memory) == {"Robert": [], "Bobby": ["Bob"]}


# -- replay -----------------------------------------------------------------------------------------------------------

_NAMES = st.sampled_from(
    ["Ann", "Wendy", "Ann's mom", "Ann's mother", "Jon", "Jon Miller", "Jon Smith", "The Jon Miller"]
)


@st.composite
def _events(draw: st.DrawFn) -> Event:
    """Return an event about names, roles or merges."""
    name, other = draw(_NAMES), draw(_NAMES)
    entity = {"name": name, "type": draw(st.sampled_from(["person", "animal", "other"])), "confidence": 0.8}
    return draw(
        st.sampled_from(
            [
                message(f"with {name} and {other}", name=other),
                # Of one who is a person by the name alone.
                message(f"with User and {other}", name=draw(st.sampled_from(["user", "u17"]))),
                described(name, other),
                described(name, type="person"),
                {"type": "entity.separated", "payload": {"name": name, "alias": other}},
                {"type": "fact.stated", "payload": {"subject": name, "predicate": "likes", "object": "tea"}},
                {"type": "relationship.stated", "payload": {"source": name, "type": "mom", "target": other}},
                {"type": "memory.forgotten", "payload": {"memory_id": name, "kind": "entity"}},
                {"type": "memory.forgotten", "payload": {"memory_id": draw(st.sampled_from(["e1", "e2", "e3"]))}},
                {
                    "type": "facts.extracted",
                    "payload": {
                        "source_events": ["e1", "e2"],
                        "extractor": "rules",
                        "entities": [
                            entity | {"source_events": ["e1"]},
                            entity | {"type": "person", "aliases": [other], "source_events": ["e2"]},
                        ],
                    },
                },
            ]
        )
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(history=st.lists(_events(), min_size=1, max_size=14), cut=st.integers(1, 5))
def test_merges_and_types_are_the_same_live_and_in_a_replay(
    tmp_path_factory: pytest.TempPathFactory, history: list[Event], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("models")
    log = SqliteLog(folder / "log.db")
    models = ReadModels(folder, log)
    pending = drafts([{"id": f"e{number}"} | event for number, event in enumerate(history)])
    while pending:
        log.append("a", pending[:cut])
        pending = pending[cut:]
        models.catch_up("a")
    assert models.catch_up("a").parked is None
    assert models.check("a").is_equal
    models.close()
    log.close()


# -- entities of the same messages -------------------------------------------------------------------------------------


def test_entities_of_the_same_messages_are_counted_by_all_their_names_and_without_speakers(
    memory: Recollect, say: Say
) -> None:
    memory.append("a", described("Robert Winter", "Bobby"))
    say("Yesterday we saw Robert Winter with Rex in Porto.", "Then Bobby was in Porto.", "Bobby was with Rex in Porto.")
    say("Then Ann was in Porto with Lisa.", name="Carla")
    say("Ann sings.")
    with memory.parts.read_models.reading("a") as snapshot:
        queries = snapshot.entities
        ids = {name: queries.ids_by_name([name]) for name in ("porto", "bobby", "robert winter", "rex", "ann", "lisa")}
        assert ids["bobby"] == ids["robert winter"]
        [porto] = ids["porto"]
        [versions] = queries.episodes_naming([porto], limit=500)
        assert len(versions) == 4
        named = queries.co_mentioned(porto, versions, limit=5)
        assert named[:2] == [*ids["bobby"], *ids["rex"]]
        assert ids["lisa"] <= set(named)
        assert not ids["ann"] & set(named)
