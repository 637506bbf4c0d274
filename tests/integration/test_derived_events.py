"""What only jobs may record: refused at every door of producers, taken by the log itself and by an import."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.events import PAYLOADS, message
from support.read_models import connection_of
from support.server import serving

from recollect import AsyncRecollect, Recollect
from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.catalogue import DERIVED_EVENTS, EVENT_CLASSES, Envelope, type_of
from recollect.events.errors import InvalidEvent
from recollect.events.validation import draft, drafts, producer_draft
from recollect.projections.read_models.read_models import ReadModels

DERIVED = sorted(type_of(event_class) for event_class in DERIVED_EVENTS)


def event_of(name: str, **payload: Any) -> dict[str, Any]:
    return {"type": name, "payload": PAYLOADS[name] | payload, "session_id": "s"}


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.mark.parametrize("name", DERIVED)
def test_a_producer_cannot_append_a_derived_event_in_whatever_shape(name: str) -> None:
    whole = EVENT_CLASSES[name].model_validate(event_of(name))
    shapes: list[dict[str, Any] | Envelope] = [event_of(name), whole, {"type": name, "payload": {}}]
    for event in shapes:
        with pytest.raises(InvalidEvent, match=f"{name} is derived") as refused:
            producer_draft(event)
        assert refused.value.field == "event.type"
        assert "import jsonl" in str(refused.value)
    assert draft(whole).type == name


def test_python_refuses_derived_events_and_erasure_and_records_nothing_of_the_batch(memory: Recollect) -> None:
    for name, error in (("facts.extracted", InvalidEvent), ("namespace.erased", InvalidEvent)):
        batch = [message("hello"), event_of(name)]
        for append in (memory.append, memory.append_and_retrieve):
            with pytest.raises(error) as refused:
                append("a", batch)
            assert refused.value.field == "events.1.type"
    assert memory.parts.log.heads() == []


def test_the_async_twin_refuses_them_too(tmp_path: Path) -> None:
    async def run() -> None:
        settings = load_settings(data=tmp_path, embedding_model="none")
        async with AsyncRecollect(settings=settings, workers=False) as memory:
            for name, error in (("facts.extracted", InvalidEvent), ("namespace.erased", InvalidEvent)):
                with pytest.raises(error):
                    await memory.append("a", event_of(name))
                with pytest.raises(error):
                    await memory.append_and_retrieve("a", event_of(name))

    asyncio.run(run())


def test_http_and_the_command_line_refuse_them_and_extraction_goes_on(tmp_path: Path) -> None:
    forged = event_of("facts.extracted", through=10**9)
    with serving(tmp_path) as server:
        url = f"{server.base}/v1/namespaces/a/events"
        for body in (forged, {"events": [message("hello"), forged]}):
            answer = httpx.post(url, json=body)
            assert (answer.status_code, answer.json()["error"]) == (422, "InvalidEvent")
            assert "facts.extracted is derived" in answer.json()["detail"]
        erased = httpx.post(url, json=event_of("namespace.erased"))
        assert (erased.status_code, erased.json()["error"]) == (422, "InvalidEvent")
        assert erased.headers["content-type"] == "application/problem+json"
        assert "recorded by an erasure alone" in erased.json()["detail"]
        assert httpx.get(url).json()["items"] == []
    for name in ("facts.extracted", "namespace.erased"):
        refused = recollect("append", "a", orjson.dumps(event_of(name)).decode(), data=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"event.type: {name} is" in refused.stderr


def test_an_export_with_derived_events_and_erasure_is_taken_back_whole(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path / "one" / "log.db")) as log:
        log.append("a", drafts([event_of(name) for name in EVENT_CLASSES]))
    exported = recollect("export", data=tmp_path / "one").stdout
    imported = recollect("import", "jsonl", "-", data=tmp_path / "two", stdin=exported.encode())
    assert imported.stdout == f"{len(EVENT_CLASSES)} events imported, 0 there already\n"
    again = [orjson.loads(line) for line in recollect("export", data=tmp_path / "two").stdout.splitlines()]
    before = [orjson.loads(line) for line in exported.splitlines()]
    assert [(event["type"], event["payload"]) for event in again] == [
        (event["type"], event["payload"]) for event in before
    ]


@pytest.mark.parametrize("name", ["facts.extracted", "observations.recorded", "observations.reflected"])
def test_the_log_refuses_a_through_beyond_the_events_own_version(log: SqliteLog, name: str) -> None:
    batch = drafts([message("hello"), event_of(name, through=3)])
    with pytest.raises(InvalidEvent, match="over 2, the version of this event") as refused:
        log.append("a", batch)
    assert refused.value.field == "events.1.payload.through"
    assert log.heads() == []
    good = draft(event_of(name, through=1) | {"id": "good"})
    assert [one.version for one in log.append("a", [batch[0], good])] == [1, 2]
    # What is recorded already is a duplicate, whatever it says.
    assert log.append("a", [good])[0].duplicate


def test_a_forged_through_in_a_log_of_before_does_not_switch_extraction_off(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older_program:
        older_program.setattr("recollect.events.backends.staging.CURSOR_EVENT_TYPES", frozenset[str]())
        memory.parts.log.append("a", drafts([message("hello"), event_of("facts.extracted", through=10**9)]))
        memory.parts.log.append("a", [draft(event_of("observations.recorded", through=10**9))])
    memory.parts.read_models.catch_up("a")
    with memory.parts.read_models.reading("a") as snapshot:
        assert connection_of(snapshot).execute("SELECT DISTINCT through FROM job_cursors").fetchall() == [(2,)]
        assert connection_of(snapshot).execute("SELECT through FROM observation_cursors").fetchall() == [(3,)]
    assert memory.check("a").is_equal
    memory.append("a", message("I live in Oslo.", name="Ann"))
    memory.compact("a")
    assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Oslo"]


def test_an_export_of_a_log_with_a_forged_through_is_taken_back_without_it(tmp_path: Path, log: SqliteLog) -> None:
    forged = event_of("facts.extracted", through=10**9) | {"version": 2, "id": "forged"}
    good = event_of("facts.extracted", through=2) | {"version": 3, "id": "good"}
    lines = [orjson.dumps(event) for event in (message("hello", id="e1"), forged, good)]
    for expected in (3, 0):
        assert import_jsonl(log, lines, namespace="a", on_progress=lambda _: None).added == expected
    assert ["through" in event.data() for event in log.read("a")] == [False, False, True]
    models = ReadModels(tmp_path, log)
    assert models.catch_up("a").behind == 0
    models.close()
