"""The routes that look at a namespace as a whole: map, timeline, moments, sizes, sources and dead letters."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from support.access import Application, application
from support.events import message, moved_home

from recollect.jobs.queue.run_store import DeadLetter

HOME = "/v1/namespaces/ann"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Application]:
    with application(tmp_path_factory.mktemp("overview")) as house:
        house.memory.append(
            "ann",
            [
                message("I met Biscuit in Porto", id="m1", name="Ann", occurred_at="2026-01-05T09:10:00Z"),
                {"type": "entity.described", "payload": {"name": "Biscuit", "type": "animal", "aliases": ["Bis"]}},
                {"type": "entity.described", "payload": {"name": "Porto", "type": "location"}},
                message("Biscuit loves Porto", id="m2", name="Ann", occurred_at="2026-01-06T09:10:00Z"),
                {
                    "type": "fact.stated",
                    "id": "f1",
                    "payload": {"subject": "Bis", "predicate": "lives in", "object": "porto", "source_events": ["m2"]},
                },
                {
                    "type": "fact.stated",
                    "id": "f2",
                    "payload": {"subject": "Biscuit", "predicate": "weighs", "object": "4 kg"},
                },
                {
                    "type": "relationship.stated",
                    "id": "r1",
                    "payload": {"source": "Ann", "type": "owns", "target": "Biscuit"},
                },
                {"type": "memory.ended", "id": "e1", "payload": {"memory_id": "f2"}},
                {
                    "type": "document.added",
                    "payload": {
                        "document_id": "leash",
                        "title": "Leash rules",
                        "text": "Bis walks on a leash. Bis wears a bell. Ann has the leash; porto does not.",
                        "relations": [
                            {"type": "governs", "target": "porto"},
                            {"type": "supersedes", "target": "old"},
                            {"type": "mentions", "target": "nobody"},
                        ],
                    },
                },
                {"type": "document.added", "payload": {"document_id": "old", "title": "Old", "text": "Bark."}},
            ],
        )
        yield house


def get(house: Application, path: str, **parameters: Any) -> dict[str, Any]:
    answer = house.http.get(f"{HOME}/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def named_edges(answer: dict[str, Any], kind: str) -> list[tuple[Any, ...]]:
    names = {entity["id"]: entity["name"] for entity in answer["entities"]}
    edges = [edge for edge in answer["edges"] if edge["kind"] == kind]
    return [
        (names[edge["source"]], edge.get("type"), names.get(edge["target"], edge.get("text")), edge.get("status"))
        for edge in edges
    ]


def test_the_map_has_entities_with_relationships_and_facts_the_ended_ones_too(house: Application) -> None:
    answer = get(house, "map")
    assert answer["entities"][0]["name"] == "Ann"
    assert answer["total"] == len(answer["entities"]) == 3
    assert named_edges(answer, "relationship") == [("Ann", "owns", "Biscuit", "active")]
    assert named_edges(answer, "fact") == [
        ("Biscuit", "lives in", "Porto", "active"),
        ("Biscuit", "weighs", "4 kg", "ended"),
    ]


def test_the_map_connects_what_messages_name_together_and_who_names_it(house: Application) -> None:
    pairs = {frozenset((source, target)) for source, _, target, _ in named_edges(get(house, "map"), "together")}
    assert pairs == {frozenset(pair) for pair in (("Ann", "Biscuit"), ("Ann", "Porto"), ("Biscuit", "Porto"))}


def test_the_map_keeps_edges_between_the_entities_of_its_answer_only(house: Application) -> None:
    answer = get(house, "map", limit=1)
    assert ([entity["name"] for entity in answer["entities"]], answer["total"]) == (["Ann"], 3)
    assert answer["edges"] == []
    assert house.http.get(f"{HOME}/map", params={"limit": 5_001}).status_code == 422


def test_the_map_connects_documents_with_what_they_govern_replace_and_name(house: Application) -> None:
    answer = get(house, "map")
    names = {entity["id"]: entity["name"] for entity in answer["entities"]}
    links = {
        document["id"]: [(link["type"], names.get(link["entity"], link["document"])) for link in document["links"]]
        for document in answer["documents"]
    }
    # `porto` governs, so that it is not mentioned as well.
    stated = [("governs", "Porto"), ("supersedes", "old")]
    assert links == {"leash": [*stated, ("mentions", "Biscuit"), ("mentions", "Ann")], "old": []}
    assert [document["review"] for document in answer["documents"]] == [None, None]


def test_the_map_of_the_past_has_what_was_there(house: Application) -> None:
    answer = get(house, "map", as_of=5)
    assert answer["version"] == 5
    assert [edge["type"] for edge in answer["edges"] if edge["kind"] != "together"] == ["lives in"]


def test_the_profile_has_sentences_by_topic_with_speaker_and_the_last_changes(house: Application) -> None:
    house.memory.append(
        "ben",
        [
            *moved_home("Ben"),
            {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "works at", "object": "Helio"}},
            {"type": "preference.stated", "payload": {"key": "tone", "value": "short", "category": "communication"}},
            {"type": "preference.stated", "payload": {"key": "units", "value": "Metric, please", "standing": True}},
        ],
    )
    answer = house.http.get("/v1/namespaces/ben/profile").json()
    assert [(item["topic"], item["text"]) for item in answer["items"]] == [
        ("home", "Ben lives in Bergen"),
        ("work", "Ann works at Helio"),
        ("preference", "tone: short"),
        ("rule", "Metric, please"),
    ]
    assert (answer["items"][0]["said_by"], answer["items"][0]["said_at"]) == ("Ben", "2026-03-05T09:00:00Z")
    assert answer["items"][1]["said_by"] is None
    assert {person["name"] for person in answer["people"]} == {"Ann", "Ben", "user"}
    [change] = answer["changes"]
    assert (change["before"], change["after"], change["changed_at"]) == (
        "Ben lives in Oslo",
        "Bergen",
        "2026-03-05T09:00:00Z",
    )
    then = house.http.get("/v1/namespaces/ben/profile", params={"true_at": "2026-02-01T00:00:00Z"}).json()
    assert [item["text"] for item in then["items"]] == ["Ben lives in Oslo"]
    assert house.http.get("/v1/namespaces/ben/profile", params={"limit": 1}).json()["total"] == 4


def test_moments_are_versions_with_their_times_from_the_first_to_the_last(house: Application) -> None:
    house.memory.append("long", [message(f"m{number}") for number in range(200)])
    answer = house.http.get("/v1/namespaces/long/moments", params={"limit": 40}).json()
    versions = [item["version"] for item in answer["items"]]
    assert answer["version"] == 200
    assert versions[0] == 1
    assert versions[-12:] == [*range(189, 201)]
    assert versions == sorted(set(versions))
    assert 30 <= len(versions) <= 40
    assert set(answer["items"][0]) == {"version", "type", "recorded_at", "occurred_at"}
    assert house.http.get("/v1/namespaces/empty/moments").json() == {"version": 0, "items": [], "next": None}


def test_the_timeline_counts_episodes_by_period_and_tier(house: Application) -> None:
    answer = get(house, "timeline", periods=2)
    assert [item["tiers"] for item in answer["items"]] == [{"raw": 1}, {"raw": 1}]
    assert answer["items"][0]["start"] == "2026-01-05T09:00:00Z"
    assert answer["items"][0]["end"] <= answer["items"][1]["start"]
    assert house.http.get("/v1/namespaces/empty/timeline").json()["items"] == []


def test_stats_count_memories_and_bytes(house: Application) -> None:
    answer = get(house, "stats")
    assert answer["episodes"]["raw"]["episodes"] == 2
    assert answer["memories"]["facts"] == {"active": 1, "others": 1}
    assert answer["entities"] == 3
    assert answer["bytes"]["read_model"] > 0


def test_the_sources_of_a_memory_are_its_messages(house: Application) -> None:
    assert [item["text"] for item in get(house, "memories/f1/sources")["items"]] == ["Biscuit loves Porto"]
    assert get(house, "memories/f2/sources")["items"] == []
    assert house.http.get(f"{HOME}/memories/nothing/sources").status_code == 404


def test_dead_letters_are_listed_and_requeued(house: Application) -> None:
    store = house.memory.parts.run_store
    store.add_dead_letter(
        DeadLetter(id="x1", queue="q", actor="project", arguments=("ann",), failed_at_us=1, error="a\nb")
    )
    store.add_dead_letter(DeadLetter(id="x2", queue="q", actor="gone", arguments=("ann",), failed_at_us=2, error="c"))
    listed = house.http.get("/v1/dead-letters").json()["items"]
    assert [(letter["id"], letter["error"]) for letter in listed] == [("x1", "b"), ("x2", "c")]
    assert house.http.post("/v1/dead-letters/x1/requeue").json() == {"requeued": 1, "failed": []}
    assert [letter["id"] for letter in house.http.post("/v1/dead-letters/requeue").json()["failed"]] == ["x2"]
    assert house.http.post("/v1/dead-letters/x1/requeue").status_code == 404
    assert store.pop_dead_letter("x2") is not None
