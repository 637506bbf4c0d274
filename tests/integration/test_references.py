"""Ids that events name: unknown ones are refused at the doors of producers, and nothing is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.events import Event, message
from support.server import serving

from recollect import AsyncRecollect, Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import EventIdConflict, InvalidNamespace, NotFound
from recollect.events.validation import draft, drafts


def event_of(kind: str, /, *, id: str | None = None, **payload: Any) -> Event:
    return {"type": kind, "payload": payload} | ({} if id is None else {"id": id})


#: Events that name an id, made for a given one, and what is there to be named.
REFERRING: dict[str, Callable[[str], Event]] = {
    "fact_id": lambda id: event_of("fact.retracted", fact_id=id),
    "corrects": lambda id: event_of("fact.corrected", subject="Ann", predicate="likes", object="cocoa", corrects=id),
    "procedure_id": lambda id: event_of("procedure.used", procedure_id=id, outcome="success"),
    "document_id": lambda id: event_of("document.removed", document_id=id),
    "memory_id": lambda id: event_of("memory.pinned", memory_id=id),
    "memory_ids": lambda id: event_of("retrieval.rated", trace_id="gone", rating="noise", memory_ids=[id]),
}
KNOWN: list[Event] = [
    message("I love tea", id="said"),
    event_of("fact.stated", id="fact", subject="Ann", predicate="likes", object="tea"),
    event_of("preference.stated", id="preference", key="tone", value="short"),
    event_of("procedure.recorded", id="procedure", name="tea", trigger="thirst", steps=["boil"]),
    event_of("relationship.stated", id="relationship", source="Ann", type="knows", target="Bob"),
    event_of("entity.described", name="Rex", description="a dog"),
    event_of("document.added", document_id="document", title="Rules", text="Be kind."),
]
_MEMORIES = ["said", "fact", "preference", "procedure", "relationship"]
NAMED = {
    "fact_id": ["fact"],
    "corrects": ["fact"],
    "procedure_id": ["procedure"],
    "document_id": ["document"],
    "memory_id": _MEMORIES,
    "memory_ids": [*_MEMORIES, "document", "document#0", "Rex"],
}


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.mark.parametrize("field", sorted(REFERRING))
def test_an_unknown_id_is_refused_with_its_field_and_the_known_ones_are_taken(memory: Recollect, field: str) -> None:
    memory.append("a", KNOWN)
    for append in (memory.append, memory.append_and_retrieve):
        with pytest.raises(NotFound, match="'nobody'") as refused:
            append("a", [message("hello"), REFERRING[field]("nobody")])
        assert refused.value.field.startswith(f"events.1.payload.{field}")
    assert memory.parts.log.head("a").version == len(KNOWN)
    for known in NAMED[field]:
        assert not memory.append("a", REFERRING[field](known))[0].duplicate


@pytest.mark.parametrize("field", sorted(REFERRING))
def test_an_id_of_the_same_batch_is_known_and_one_of_another_namespace_is_not(memory: Recollect, field: str) -> None:
    memory.append("a", [*KNOWN, REFERRING[field](NAMED[field][0])])
    with pytest.raises(NotFound, match="namespace 'b'"):
        memory.append("b", REFERRING[field](NAMED[field][0]))


def test_what_a_kind_does_not_have_is_unknown_though_another_kind_has_it(memory: Recollect) -> None:
    memory.append("a", KNOWN)
    for event in (event_of("fact.retracted", fact_id="said"), event_of("procedure.used", procedure_id="fact")):
        event["payload"] |= {"outcome": "success"} if event["type"] == "procedure.used" else {}
        with pytest.raises(NotFound):
            memory.append("a", event)


def test_the_same_event_again_is_a_duplicate_though_what_it_named_is_gone(memory: Recollect) -> None:
    memory.append("a", KNOWN)
    removal = event_of("document.removed", id="removal", document_id="document")
    assert not memory.append("a", removal)[0].duplicate
    assert memory.append("a", removal)[0].duplicate
    with pytest.raises(NotFound):
        memory.append("a", event_of("document.removed", document_id="document"))
    with pytest.raises(EventIdConflict):
        memory.append("a", event_of("document.removed", id="removal", document_id="other"))


def test_an_expired_episode_is_still_known_by_its_summary(memory: Recollect) -> None:
    derived = [
        event_of("episodes.compressed", text="She loves tea.", source_events=["said"]),
        event_of("episodes.expired", episode_ids=["said"]),
    ]
    memory.parts.log.append("a", drafts([*KNOWN, *derived]))
    assert memory.append("a", event_of("memory.invalidated", memory_id="said"))


def test_a_read_model_that_cannot_tell_refuses_nothing(memory: Recollect) -> None:
    memory.append("a", KNOWN)
    memory.parts.log.append("a", [draft(message("of the future"))._replace(schema_version=7)])
    assert memory.parts.read_models.catch_up("a").parked is not None
    assert memory.append("a", event_of("fact.retracted", fact_id="after.the.parked.event"))


def test_a_bad_namespace_is_refused_as_such(memory: Recollect) -> None:
    with pytest.raises(InvalidNamespace):
        memory.append("a b", event_of("fact.retracted", fact_id="x"))


def test_the_async_twin_refuses_unknown_ids_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncRecollect(
            settings=load_settings(data=tmp_path, embedding_model="none"), workers=False
        ) as memory:
            with pytest.raises(NotFound):
                await memory.append("a", event_of("memory.pinned", memory_id="nobody"))
            await memory.append("a", [*KNOWN, event_of("memory.pinned", memory_id="said")])

    asyncio.run(run())


def test_http_and_the_command_line_refuse_unknown_ids_and_an_import_does_not(tmp_path: Path) -> None:
    event = event_of("memory.pinned", memory_id="nobody")
    body = orjson.dumps(event)
    with serving(tmp_path) as server:
        url = f"{server.base}/v1/namespaces/a/events"
        answer = httpx.post(url, content=body)
        assert (answer.status_code, answer.json()["field"]) == (404, "events.0.payload.memory_id")
        assert "'nobody'" in answer.json()["detail"]
        assert httpx.get(url).json()["items"] == []
        assert httpx.post(url, json={"events": [message("hello", id="e1")]}).status_code == 201
        assert httpx.post(url, json=event_of("memory.pinned", memory_id="e1")).status_code == 201
    refused = recollect("append", "a", body.decode(), data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "events.0.payload.memory_id: namespace 'a' has no memory with the id 'nobody'" in refused.stderr
    known = orjson.dumps(event_of("memory.invalidated", memory_id="e1")).decode()
    assert recollect("append", "a", known, data=tmp_path).returncode == 0
    imported = recollect("import", "jsonl", "-", "--namespace", "a", data=tmp_path, stdin=body)
    assert imported.stdout == "1 event imported, 0 there already\n"
