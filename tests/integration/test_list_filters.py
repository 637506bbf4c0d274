"""Filters of lists and retrievals: each selects what it says; an unknown one is refused with the names there are."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.events.validation import drafts
from recollect.projections.queries.page_filters import FILTERS
from recollect.projections.queries.page_queries import LISTS

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def event_of(kind: str, /, *, id: str | None = None, at: int = 0, **payload: Any) -> Event:
    event = {"type": kind, "payload": payload, "occurred_at": _START + timedelta(hours=at)}
    return event | ({} if id is None else {"id": id})


def said(id: str, text: str, at: int, name: str, /, **metadata: Any) -> Event:
    event = message(text, id=id, name=name, session_id=f"s{at % 2}", occurred_at=_START + timedelta(hours=at))
    event["payload"]["metadata"] = metadata
    return event


_EVENTS: list[Event] = [
    said("m0", "Jonas moved to Porto", 0, "Jonas", channel="email", urgent=True, n=1),
    said("m1", "I like Lisbon", 1, "Ann", channel="chat", n="1"),
    said("m2", "I like Faro", 2, "Ann", channel="email", n=None),
    event_of("action.recorded", id="act", at=3, text="booked", tags=["travel"], outcome="success"),
    event_of("entity.described", name="Jonas", type="person", aliases=["Joni"], metadata={"customer": 7}),
    event_of("fact.stated", id="f0", at=0, subject="Jonas", predicate="lives in", object="Porto", source_events=["m0"]),
    event_of("fact.stated", id="f1", at=1, subject="Ann", predicate="likes", object="Lisbon", source_events=["m1"]),
    event_of(
        "fact.stated", id="f2", at=2, subject="Ann", predicate="has to", object="go", type="task", source_events=["m2"]
    ),
    event_of("preference.stated", id="p0", key="tone", value="short", standing=True, source_events=["m1"]),
    event_of(
        "preference.stated", id="p1", category="tools", key="editor", value="vim", subject="Jonas", source_events=["m2"]
    ),
    event_of("relationship.stated", id="r0", source="Jonas", type="knows", target="Ann", source_events=["m0"]),
    event_of("document.added", document_id="d0", title="Rules", text="Be kind.", metadata={"team": "a"}),
    event_of("memory.invalidated", at=4, memory_id="f1"),
    event_of("memory.pinned", at=4, memory_id="f0"),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recollect]:
    folder: Path = tmp_path_factory.mktemp("filters")
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        memory.append("a", _EVENTS)
        rejected = {"subject": "Ann", "predicate": "is", "object": "the moon", "confidence": 0.1}
        event = event_of("facts.extracted", id="x", source_events=["m1"], extractor="rules", rejected=[rejected])
        memory.parts.log.append("a", drafts([event]))
        yield memory


def listed(memory: Recollect, name: str, **filters: Any) -> list[str]:
    return [item["id"] for item in memory.list("a", name, filters=filters)["items"]]


@pytest.mark.parametrize(
    ("name", "filters", "ids"),
    [
        ("episodes", {"speaker": "ann"}, ["m1", "m2"]),
        ("episodes", {"speaker": ["Ann", "Jonas"]}, ["m0", "m1", "m2"]),
        ("episodes", {"type": "action"}, ["act"]),
        ("episodes", {"tag": "travel"}, ["act"]),
        ("episodes", {"outcome": "failure"}, []),
        ("episodes", {"role": "user", "session_id": "s0"}, ["m0", "m2"]),
        ("episodes", {"since": "2026-01-05T10:00:00Z", "until": "2026-01-05T12:00:00+01:00"}, ["m1"]),
        ("episodes", {"since": _START + timedelta(hours=2)}, ["m2", "act"]),
        ("episodes", {"metadata": {"channel": "email"}}, ["m0", "m2"]),
        ("episodes", {"metadata": {"channel": ["email", "chat"], "n": 1}}, ["m0"]),
        ("episodes", {"metadata": {"n": "1"}}, ["m1"]),
        ("episodes", {"metadata": {"n": None}}, ["m2"]),
        ("episodes", {"metadata": {"urgent": True}}, ["m0"]),
        ("episodes", {"metadata": {"nothing": "x"}}, []),
        ("facts", {}, ["f0", "f1", "f2"]),
        ("facts", {"status": "active"}, ["f0", "f2"]),
        ("facts", {"status": ["invalidated", "rejected"]}, ["f1", "x#r0"]),
        ("facts", {"status": "active", "subject": "Jonas"}, ["f0"]),
        ("facts", {"subject": "joni"}, ["f0"]),
        ("facts", {"type": "task"}, ["f2"]),
        ("facts", {"predicate": "LIVES IN"}, ["f0"]),
        ("facts", {"speaker": "Ann"}, ["f1", "f2"]),
        ("facts", {"metadata": {"channel": "email"}}, ["f0", "f2"]),
        ("facts", {"pinned": True}, ["f0"]),
        ("facts", {"until": _START + timedelta(hours=1)}, ["f0"]),
        ("preferences", {"standing": "true"}, ["p0"]),
        ("preferences", {"category": "tools"}, ["p1"]),
        ("preferences", {"subject": "Joni"}, ["p1"]),
        ("preferences", {"speaker": "Ann", "metadata": {"channel": "chat"}}, ["p0"]),
        ("relationships", {"source": "Joni", "target": "ann", "type": "knows"}, ["r0"]),
        ("relationships", {"source": "Ann"}, []),
        ("documents", {"metadata": {"team": "a"}}, ["d0"]),
        ("documents", {"metadata": {"team": "b"}}, []),
    ],
)
def test_a_filter_selects_what_it_says(memory: Recollect, name: str, filters: dict[str, Any], ids: list[str]) -> None:
    assert listed(memory, name, **filters) == ids


def test_entities_are_selected_by_type_name_and_metadata(memory: Recollect) -> None:
    people = memory.entities("a", filters={"type": "person"})["items"]
    assert [item["name"] for item in people] == ["Jonas", "Ann"]
    for filters in ({"name": "Joni"}, {"metadata": {"customer": 7}}):
        assert [item["name"] for item in memory.entities("a", filters=filters)["items"]] == ["Jonas"]


def test_pages_continue_within_a_filter(memory: Recollect) -> None:
    first = memory.episodes("a", limit=1, filters={"metadata": {"channel": "email"}})
    second = memory.episodes("a", limit=1, after=first["next"] or "", filters={"metadata": {"channel": "email"}})
    assert [item["id"] for page in (first, second) for item in page["items"]] == ["m0", "m2"]


def test_a_filter_applies_to_the_past_too(memory: Recollect) -> None:
    page = memory.facts("a", as_of=len(_EVENTS) - 2, filters={"status": "active"})
    assert [item["id"] for item in page["items"]] == ["f0", "f1", "f2"]


@pytest.mark.parametrize("name", sorted(LISTS))
def test_an_unknown_filter_is_refused_with_the_names_that_a_list_has(memory: Recollect, name: str) -> None:
    with pytest.raises(InvalidInput, match=", ".join(FILTERS[name])) as refused:
        memory.list("a", name, filters={"stauts": "active"})
    assert refused.value.field == "stauts"


@pytest.mark.parametrize(
    ("name", "filters", "field"),
    [
        ("facts", {"status": "actve"}, "status"),
        ("facts", {"status": []}, "status"),
        ("facts", {"subject": 5}, "subject"),
        ("facts", {"pinned": "maybe"}, "pinned"),
        ("facts", {"since": "yesterday"}, "since"),
        ("facts", {"since": "2026-01-05T09:00:00"}, "since"),
        ("facts", {"metadata": "email"}, "metadata"),
        ("facts", {"metadata": {"a": {"b": 1}}}, "metadata.a"),
        ("episodes", {"type": "message"}, "type"),
    ],
)
def test_a_wrong_value_is_refused_by_name(memory: Recollect, name: str, filters: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.list("a", name, filters=filters)
    assert refused.value.field == field


def test_a_list_that_does_not_exist_is_refused_with_those_that_do(memory: Recollect) -> None:
    with pytest.raises(InvalidInput, match="facts, preferences"):
        memory.list("ann", "memories")


def test_every_filter_of_every_list_can_be_used(memory: Recollect) -> None:
    values = {"text": "x", "name": "x", "time": _START, "flag": True, "metadata": {"x": 1}}
    for name, filters in FILTERS.items():
        for key, one in filters.items():
            value = one.choices[0] if one.choices else values[one.kind]
            assert "items" in memory.list("a", name, filters={key: value}), f"{name}: {key}"


def test_a_retrieval_returns_only_what_is_labelled_as_asked(memory: Recollect) -> None:
    def ids(**metadata: Any) -> set[str]:
        result = memory.retrieve("a", "Jonas Ann Porto Lisbon Faro Rules", gate=False, metadata=metadata)
        return {item.id for item in result.items}

    assert {"m0", "m1", "m2", "d0#0"} <= ids()
    assert ids(channel="email") <= {"m0", "m2", "f0", "f2", "p1", "r0"}
    assert {"m0", "m2"} <= ids(channel="email")
    assert ids(channel=["chat"], n="1") & {"m0", "m2", "d0#0"} == set()
    assert "m1" in ids(channel=["chat"], n="1")
    assert ids(team="a") == {"d0#0"}
    assert ids(team="b") == set()
    with pytest.raises(InvalidInput):
        ids(channel={"a": 1})


def test_the_messages_behind_a_summary_are_selected_by_their_labels(tmp_path: Path) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        texts = [f"We painted room {number} in light green on Saturday, all of us together." for number in range(8)]
        memory.append("a", [said(f"t{at}", text, 0, "Ann", floor=at % 2) for at, text in enumerate(texts)])
        for days in (2, 12):
            memory.compact("a", now=_START + timedelta(days=days))
        assert [item["tier"] for item in memory.episodes("a")["items"]] == ["distilled"]
        items = memory.retrieve("a", "room light green", gate=False, metadata={"floor": 1}).items
        assert {item.id for item in items} == {"t1", "t3", "t5", "t7"}
