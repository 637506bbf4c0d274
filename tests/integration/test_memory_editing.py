"""Single memories by id: get, update, pin, end and forget, for every kind; what is forgotten is gone from all lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, NotFound
from recollect.events.validation import drafts
from recollect.projections.queries.page_queries import LISTS

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def open_memory(folder: Path) -> Recollect:
    return Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with open_memory(tmp_path) as memory:
        yield memory


def event_of(kind: str, /, *, id: str | None = None, **payload: Any) -> Event:
    return {"type": kind, "payload": payload} | ({} if id is None else {"id": id})


#: A memory of each kind, by the id that lists have.
KNOWN: list[Event] = [
    message("I love tea", id="said", session_id="s1", name="Ann"),
    event_of("action.recorded", id="act", text="booked a table", tags=["travel"], details={"seats": 2}),
    event_of("fact.stated", id="fact", subject="Ann", predicate="lives in", object="Porto"),
    event_of("fact.stated", id="task", subject="Ann", predicate="has to", object="call Bob", type="task"),
    event_of("preference.stated", id="preference", key="tone", value="short"),
    event_of("procedure.recorded", id="procedure", name="tea", trigger="thirst", steps=["boil"]),
    event_of("relationship.stated", id="relationship", source="Ann", type="knows", target="Bob"),
    event_of("entity.described", name="Rex", description="a dog"),
    event_of("document.added", document_id="document", title="Rules", text="Be kind."),
]
KINDS = {
    "said": "episode",
    "act": "episode",
    "fact": "fact",
    "task": "fact",
    "preference": "preference",
    "procedure": "procedure",
    "relationship": "relationship",
    "Rex": "entity",
    "document": "document",
    "document#0": "document",
}
PINNABLE = ["said", "act", "fact", "task", "preference", "procedure", "relationship"]
ENDING = ["fact", "task", "preference", "procedure", "relationship"]


def everything(memory: Recollect, namespace: str = "a") -> dict[str, list[dict[str, Any]]]:
    names = [name for name in LISTS if name != "forgotten"]
    return {name: memory.list(namespace, name, limit=1_000)["items"] for name in names}


def version(memory: Recollect) -> int:
    return memory.parts.log.head("a").version


@pytest.mark.parametrize("id", KINDS)
def test_a_memory_of_any_kind_is_read_by_its_id(memory: Recollect, id: str) -> None:
    memory.append("a", KNOWN)
    item = memory.get("a", id)
    assert item["kind"] == KINDS[id]
    assert memory.get("a", id, as_of=len(KNOWN)) == item
    with pytest.raises(NotFound):
        memory.get("a", id, as_of=0)


def test_an_action_keeps_its_tags_and_details(memory: Recollect) -> None:
    memory.append("a", KNOWN)
    item = memory.get("a", "act")
    assert (item.get("tags"), item.get("details")) == (["travel"], {"seats": 2})


@pytest.mark.parametrize("change", ["get", "update", "pin", "unpin", "end", "forget"])
def test_an_unknown_id_is_refused_and_nothing_is_recorded(memory: Recollect, change: str) -> None:
    memory.append("a", KNOWN)
    options = {"text": "x"} if change == "update" else {}
    with pytest.raises(NotFound, match="no memory with the id 'nobody'"):
        getattr(memory, change)("a", "nobody", **options)
    with pytest.raises(NotFound):
        getattr(memory, change)("b", "fact", **options)
    assert version(memory) == len(KNOWN)


@pytest.mark.parametrize(
    ("id", "changes", "field", "value"),
    [
        ("said", {"text": "I love cocoa"}, "text", "I love cocoa"),
        ("said", {"metadata": {"channel": "email"}}, "metadata", {"channel": "email"}),
        ("act", {"text": "booked two tables"}, "text", "booked two tables"),
        ("fact", {"text": "Lisbon"}, "object", "Lisbon"),
        ("fact", {"object": "Lisbon"}, "object", "Lisbon"),
        ("preference", {"text": "long"}, "value", "long"),
        ("preference", {"strength": 0.9, "standing": True}, "standing", True),
        ("procedure", {"steps": ["boil", "pour"]}, "steps", ["boil", "pour"]),
        ("procedure", {"trigger": "guests"}, "trigger", "guests"),
        ("relationship", {"type": "married to"}, "type", "married to"),
        ("relationship", {"properties": {"since": "2020"}}, "properties", {"since": "2020"}),
        ("document", {"text": "Be very kind."}, "text", "Be very kind."),
        ("document#0", {"title": "The rules"}, "title", "The rules"),
        ("Rex", {"text": "an old dog"}, "description", "an old dog"),
        ("Rex", {"metadata": {"chip": 7}, "importance": 8}, "importance", 8),
    ],
)
def test_an_update_is_what_is_read_and_listed_afterwards(
    memory: Recollect, id: str, changes: dict[str, Any], field: str, value: object
) -> None:
    memory.append("a", KNOWN)
    before = memory.get("a", id)
    updated = memory.update("a", id, **changes)
    assert updated[field] == value
    new_id = updated["name"] if updated["kind"] == "entity" else updated["id"]
    assert memory.get("a", new_id) == updated
    # What the change does not name stays.
    kept = before.keys() & {"subject", "predicate", "category", "name", "source", "target", "title", "speaker", "role"}
    assert {name: updated[name] for name in kept - changes.keys()} == {
        name: before[name] for name in kept - changes.keys()
    }
    listed = everything(memory)
    texts = [item.get(field) for items in listed.values() for item in items if item.get("status") in ("active", None)]
    assert value in texts
    assert before.get(field) not in [text for text in texts if text is not None]
    assert memory.check("a").is_equal


@pytest.mark.parametrize(
    ("id", "changes", "field"),
    [
        ("fact", {}, "text"),
        ("fact", {"text": ""}, "text"),
        ("fact", {"objekt": "x"}, "objekt"),
        ("fact", {"text": "a", "object": "b"}, "text"),
        ("fact", {"valid_from": "yesterday"}, "valid_from"),
        ("preference", {"strength": 2}, "strength"),
        ("procedure", {"text": "x"}, "text"),
        ("said", {"role": "assistant"}, "role"),
        ("Rex", {"type": "dog"}, "type"),
    ],
)
def test_a_change_that_a_kind_does_not_have_is_refused_by_name(
    memory: Recollect, id: str, changes: dict[str, Any], field: str
) -> None:
    memory.append("a", KNOWN)
    with pytest.raises(InvalidInput) as refused:
        memory.update("a", id, **changes)
    assert refused.value.field == field
    assert version(memory) == len(KNOWN)


def test_a_corrected_message_takes_its_place_and_what_it_said_is_gone(memory: Recollect) -> None:
    at = _START
    memory.append("a", message("I live in Oslo.", id="m1", name="Ann", session_id="s1", occurred_at=at.isoformat()))
    memory.settle("a")
    assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Oslo"]
    new = memory.update("a", "m1", text="I live in Bergen.")
    assert (new.get("session_id"), new.get("occurred_at"), new.get("parent_id")) == ("s1", "2026-01-05T09:00:00Z", "m1")
    memory.settle("a")
    assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Bergen"]
    assert memory.retrieve("a", "Oslo").items == ()
    with pytest.raises(NotFound):
        memory.get("a", "m1")
    assert memory.get("a", "m1", as_of=1).get("text") == "I live in Oslo."


@pytest.mark.parametrize("id", PINNABLE)
def test_a_pin_is_set_and_removed(memory: Recollect, id: str) -> None:
    memory.append("a", KNOWN)
    assert memory.pin("a", id, reason="important")["pinned"]
    assert memory.get("a", id).get("pinned")
    assert not memory.unpin("a", id)["pinned"]
    assert memory.check("a").is_equal


@pytest.mark.parametrize("id", ENDING)
def test_what_ends_is_kept_with_its_status_and_is_no_longer_active(memory: Recollect, id: str) -> None:
    memory.append("a", KNOWN)
    ended = memory.end("a", id, ended_at="2026-01-04T00:00:00Z")
    assert ended["status"] == "ended"
    if ended["kind"] == "fact":
        assert ended["valid_until"] == "2026-01-04T00:00:00Z"
    name = f"{ended['kind']}s"
    assert id not in [item["id"] for item in memory.list("a", name, filters={"status": "active"})["items"]]
    assert id in [item["id"] for item in memory.list("a", name, filters={"status": "ended"})["items"]]
    assert id not in [item.id for item in memory.retrieve("a", "Porto Bob tone tea thirst", gate=False).items]


@pytest.mark.parametrize(
    ("change", "id"), [("pin", "Rex"), ("pin", "document"), ("end", "said"), ("end", "Rex"), ("end", "document")]
)
def test_a_kind_without_a_pin_or_an_end_says_so(memory: Recollect, change: str, id: str) -> None:
    memory.append("a", KNOWN)
    with pytest.raises(InvalidInput, match=f"kind {KINDS[id]}"):
        getattr(memory, change)("a", id)
    assert version(memory) == len(KNOWN)


@pytest.mark.parametrize("id", [id for id in KINDS if id != "document#0"])
def test_what_is_forgotten_is_in_no_list_and_no_retrieval_and_cannot_be_named_again(memory: Recollect, id: str) -> None:
    memory.append("a", KNOWN)
    forgotten = memory.forget("a", id, reason="asked")
    [event] = memory.events("a", after=len(KNOWN))["items"][:1]
    expected = {"id": id, "kind": KINDS[id], "version": len(KNOWN) + 1, "event_id": event["id"]}
    assert forgotten == expected
    assert id not in [
        item.get(key) for items in everything(memory).values() for item in items for key in ("id", "name")
    ]
    assert id not in [item.id.partition("#")[0] for item in memory.retrieve("a", "Ann Rex tea Rules", gate=False).items]
    for change in (memory.get, memory.pin, memory.forget):
        with pytest.raises(NotFound):
            change("a", id)
    assert memory.check("a").is_equal


def held(memory: Recollect) -> dict[str, str]:
    """Return the active facts by predicate, and the active preferences by name."""
    facts = {
        fact["predicate"]: fact["object"] for fact in memory.list("a", "facts", filters={"status": "active"})["items"]
    }
    preferences = memory.list("a", "preferences", filters={"status": "active"})["items"]
    return facts | {preference["name"]: preference["value"] for preference in preferences}


def test_what_a_forgotten_message_alone_states_is_forgotten_too(memory: Recollect) -> None:
    tea = {"subject": "Ann", "predicate": "likes", "object": "tea"}
    dog = {"subject": "Ann", "predicate": "has pet", "object": "Rex the dog"}
    memory.append("a", [message("I like tea, my dog is Rex", id="m1"), message("I like tea", id="m2")])
    extracted = event_of(
        "facts.extracted",
        source_events=["m1", "m2"],
        extractor="rules",
        facts=[tea | {"source_events": ["m1", "m2"]}, dog | {"source_events": ["m1"]}],
        preferences=[{"key": "drink", "value": "tea", "source_events": ["m1"]}],
        entities=[{"name": "Rex", "source_events": ["m1"]}],
        questions=[{"source_event": "m1", "text": "Who?"}],
        dates=[{"source_event": "m1", "text": "x", "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}],
    )
    noted = event_of("observations.recorded", observations=["Ann has a dog"], source_events=["m1"])
    memory.parts.log.append("a", drafts([extracted, noted]))
    memory.forget("a", "m1")
    listed = everything(memory)
    assert [(fact["object"], fact["source_events"]) for fact in listed["facts"]] == [("tea", ["m2"])]
    for name in ("preferences", "questions", "dates", "observations"):
        assert listed[name] == [], name
    assert "Rex" not in [entity["name"] for entity in listed["entities"]]
    # A job that read the message before derives the same again afterwards.
    late = extracted | {"id": "late"}
    memory.parts.log.append("a", drafts([late, noted | {"id": "late too"}]))
    listed = everything(memory)
    assert [fact["object"] for fact in listed["facts"]] == ["tea"]
    assert (listed["preferences"], listed["questions"], listed["observations"]) == ([], [], [])
    assert memory.check("a").is_equal


def test_what_a_forgotten_message_replaced_or_ended_holds_again(memory: Recollect) -> None:
    texts = [
        "I live in Lisbon.", "I work at Siemens.", "I love olives.", "I prefer tea.", "My sister Nora is a nurse.",
        "I moved to Porto. I quit my job. I don't like olives any more.",
    ]  # fmt: skip
    said = [
        message(text, id=f"m{day}", name="Ann", occurred_at=_START + timedelta(days=day))
        for day, text in enumerate(texts)
    ]
    memory.append("a", said)
    memory.settle("a")
    before = held(memory)
    assert before["lives in"] == "Porto"
    assert "works at" not in before
    assert before["olives"] == "dislikes"
    memory.forget("a", "m5")
    after = held(memory)
    assert (after["lives in"], after["works at"], after["olives"]) == ("Lisbon", "Siemens", "likes")
    assert memory.check("a").is_equal


def test_a_summary_is_written_again_without_a_forgotten_message(memory: Recollect) -> None:
    texts = [f"We painted room {number} in a light green on Saturday, all of us together." for number in range(7)]
    texts.insert(3, "The combination of my safe is eleven, forty and seven.")
    memory.append(
        "a",
        [
            message(text, id=f"t{at}", session_id="s1", name="Ann", occurred_at=_START + timedelta(minutes=at))
            for at, text in enumerate(texts)
        ],
    )
    night = _START + timedelta(days=2)
    memory.compact("a", now=night)
    memory.compact("a", now=night + timedelta(days=9))
    assert memory.get("a", "t3").get("status") == "expired"
    assert memory.retrieve("a", "What is the combination of the safe?").items
    memory.forget("a", "t3")
    [summary] = [item for item in memory.episodes("a")["items"] if item["tier"] != "raw"]
    assert "safe" not in summary["text"]
    assert [source.id for source in memory.sources("a", summary["id"])] == ["t0", "t1", "t2", "t4", "t5", "t6", "t7"]
    assert memory.retrieve("a", "room 5 light green").items
    assert all("safe" not in item.text for item in memory.retrieve("a", "combination of the safe", gate=False).items)
    [session] = memory.sessions("a")["items"]
    assert session["summary"] is None
    with pytest.raises(NotFound):
        memory.get("a", "t3")
    assert memory.check("a").is_equal


def test_a_forgotten_entity_is_back_when_it_is_named_again(memory: Recollect) -> None:
    memory.append("a", [message("I met Zelda in Rome"), event_of("entity.described", name="Zelda", description="chef")])
    memory.append("a", event_of("fact.stated", id="f1", subject="Zelda", predicate="works as", object="chef"))
    memory.forget("a", "Zelda")
    assert memory.facts("a")["items"] == []
    assert "Zelda" not in [entity["name"] for entity in memory.entities("a")["items"]]
    memory.append("a", message("I met Zelda again"))
    assert memory.get("a", "Zelda").get("description") is None
    assert memory.facts("a")["items"] == []
    assert memory.check("a").is_equal


def test_a_forgotten_fact_is_not_extracted_again_and_a_user_can_state_it_again(memory: Recollect) -> None:
    at = _START.isoformat()
    memory.append("a", message("I live in Porto.", id="m1", name="Ann", occurred_at=at))
    memory.settle("a")
    [fact] = memory.facts("a")["items"]
    memory.forget("a", fact["id"])
    payload = {"subject": "Ann", "predicate": "lives in", "object": "Porto"}
    again = event_of(
        "facts.extracted", source_events=["m1"], extractor="rules", facts=[payload | {"source_events": ["m1"]}]
    )
    memory.parts.log.append("a", drafts([again | {"occurred_at": at}]))
    assert memory.facts("a")["items"] == []
    memory.append("a", event_of("fact.stated", **payload))
    assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Porto"]


Edit = tuple[str, int]


@given(
    st.lists(st.tuples(st.sampled_from(["pin", "unpin", "end", "forget", "update"]), st.integers(0, 30)), max_size=12),
    st.lists(st.sampled_from(["tea", "cocoa", "Porto", "Lisbon", "Rex"]), min_size=1, max_size=5),
)
def test_whatever_is_edited_a_replay_gives_the_same_and_nothing_forgotten_returns(
    edits: list[Edit], objects: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_memory(Path(folder)) as memory:
        for number, value in enumerate(objects):
            memory.append("a", message(f"I like {value}", id=f"m{number}", session_id="s1", name="Ann"))
            fact = {"subject": "Ann", "predicate": "likes", "object": value, "source_events": [f"m{number}"]}
            memory.append("a", event_of("fact.stated", id=f"f{number}", **fact))
        forgotten: set[str] = set()
        for change, number in edits:
            ids = [item["id"] for name in ("episodes", "facts") for item in memory.list("a", name)["items"]]
            if ids:
                _edit(memory, change, ids[number % len(ids)], forgotten)
        listed = [item for items in everything(memory).values() for item in items]
        assert forgotten.isdisjoint(item.get("id") for item in listed)
        assert not any(item.get("source_events") and forgotten.issuperset(item["source_events"]) for item in listed)
        found = memory.retrieve("a", "Ann likes tea cocoa Porto Lisbon Rex", gate=False, limit=50).items
        assert forgotten.isdisjoint(item.id for item in found)
        assert memory.check("a").is_equal


def _edit(memory: Recollect, change: str, id: str, forgotten: set[str]) -> None:
    options = {"text": "a walk"} if change == "update" else {}
    method: Callable[..., object] = getattr(memory, change)
    try:
        method("a", id, **options)
    except InvalidInput:
        # Messages have no end.
        assert change == "end"
        return
    if change == "forget" or (change == "update" and id.startswith("m")):
        forgotten.add(id)
