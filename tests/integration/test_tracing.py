"""Tracing: the spans of a bot's turn, read with the in-memory exporter of OpenTelemetry's SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.access import Application, application
from support.events import message

from recollect.api.assembly.tracing_setup import time_ordered_ids
from recollect.events.tracing import CAPTURE_VARIABLE, hidden_namespace, use_tracer

NAMESPACE = "ann.canary"
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = {"traceparent": f"00-{_TRACE}-00f067aa0ba902b7-01"}


@pytest.fixture
def spans() -> Generator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(id_generator=time_ordered_ids())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_tracer(provider.get_tracer("test"))
    yield exporter
    use_tracer(None)


@pytest.fixture
def house(tmp_path: Path) -> Generator[Application]:
    with application(tmp_path) as house:
        yield house


def turn(house: Application, headers: dict[str, str]) -> str:
    """Append and retrieve in two requests; return the id of the retrieval's trace."""
    home = f"/v1/namespaces/{NAMESPACE}"
    assert house.http.post(f"{home}/events", json=message("my falcon likes mice"), headers=headers).status_code == 201
    answer = house.http.post(f"{home}/retrieve", json={"query": "what does the falcon like?"}, headers=headers)
    assert answer.json()["items"]
    return answer.json()["trace_id"]


def parents(spans: Sequence[ReadableSpan]) -> set[tuple[str, str | None]]:
    """Return the name of each span with that of its parent."""
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    return {(span.name, names.get(span.parent.span_id) if span.parent else None) for span in spans}


def texts(spans: Sequence[ReadableSpan]) -> str:
    return " ".join(f"{span.name} {dict(span.attributes or {})} {span.status.description}" for span in spans)


def test_a_turn_is_traced_by_the_names_of_the_conventions(house: Application, spans: InMemorySpanExporter) -> None:
    trace_id = turn(house, _PARENT)
    finished = spans.get_finished_spans()
    names = parents(finished)
    append, retrieve = "POST /v1/namespaces/{namespace}/events", "POST /v1/namespaces/{namespace}/retrieve"
    assert {(append, None), (retrieve, None), ("create_memory", append), ("log.append", "create_memory")} <= names
    assert {("search_memory", retrieve), ("projector.apply", "search_memory")} <= names
    assert {("recall.lexical", "search_memory"), ("recall.fuse", "search_memory")} <= names
    assert {f"{span.context.trace_id:032x}" for span in finished if span.context} == {_TRACE}
    assert trace_id == _TRACE
    search = next(dict(span.attributes or {}) for span in finished if span.name == "search_memory")
    assert search["gen_ai.operation.name"] == "search_memory"
    assert search["gen_ai.memory.store.id"] == hidden_namespace(NAMESPACE)
    assert search["gen_ai.memory.record.count"] == 1
    create = next(dict(span.attributes or {}) for span in finished if span.name == "create_memory")
    assert create["recollect.event.version"] == 1
    assert "falcon" not in texts(finished)
    assert NAMESPACE not in texts(finished)


def test_the_stages_lie_within_their_retrieval(house: Application, spans: InMemorySpanExporter) -> None:
    turn(house, {})
    finished = spans.get_finished_spans()
    search = next(span for span in finished if span.name == "search_memory")
    stages = [span for span in finished if span.name.startswith("recall.")]
    assert len(stages) > 3
    for stage in stages:
        assert search.start_time is not None
        assert stage.start_time is not None
        # The clock of stages is another one than that of spans, by some microseconds.
        assert stage.start_time >= search.start_time - 1_000_000


def test_a_second_retrieval_of_a_trace_has_an_id_of_its_own(house: Application, spans: InMemorySpanExporter) -> None:
    first, second = turn(house, _PARENT), turn(house, _PARENT)
    assert first == _TRACE != second
    listed = house.memory.traces(NAMESPACE, limit=1)
    assert [item["trace_id"] for item in listed["items"]] == [second]
    older = house.memory.traces(NAMESPACE, limit=1, after=listed["next"] or "")
    assert [item["trace_id"] for item in older["items"]] == [first]
    assert house.memory.trace(NAMESPACE, first)["query"] == "what does the falcon like?"


def test_changes_and_deletions_are_named_so(house: Application, spans: InMemorySpanExporter) -> None:
    turn(house, {})
    id = house.memory.episodes(NAMESPACE)["items"][0]["id"]
    spans.clear()
    house.memory.pin(NAMESPACE, id)
    house.memory.forget(NAMESPACE, id)
    names = [span.name for span in spans.get_finished_spans()]
    assert [name for name in names if name.endswith("_memory")] == ["update_memory", "delete_memory"]


def test_texts_are_in_spans_only_when_a_variable_allows_it(
    house: Application, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE_VARIABLE, "true")
    turn(house, {})
    search = next(span for span in spans.get_finished_spans() if span.name == "search_memory")
    assert dict(search.attributes or {})["gen_ai.memory.query.text"] == "what does the falcon like?"


def test_errors_are_recorded_by_their_type_alone(house: Application, spans: InMemorySpanExporter) -> None:
    house.http.post(f"/v1/namespaces/{NAMESPACE}/events", json=message("a falcon", id="one"))
    refused = message("another falcon", id="one")
    assert house.http.post(f"/v1/namespaces/{NAMESPACE}/events", json=refused).status_code == 409
    failed = [span for span in spans.get_finished_spans() if not span.status.is_ok]
    assert {span.name for span in failed} == {"log.append", "create_memory"}
    assert {str(dict(span.attributes or {})["error.type"]) for span in failed} == {"EventIdConflict"}
    assert "falcon" not in texts(failed)
    assert not [event for span in failed for event in span.events]


@pytest.mark.parametrize("given", ["", "00-abc-def-01", f"00-{'0' * 32}-{'0' * 16}-01", "x" * 10_000, "00-é"])
def test_a_hostile_traceparent_begins_a_new_trace(house: Application, spans: InMemorySpanExporter, given: str) -> None:
    answer = house.http.get("/health/live", headers=[(b"traceparent", given.encode())])
    assert answer.status_code == 200
    (span,) = spans.get_finished_spans()
    assert span.parent is None or not span.parent.is_valid


_UNTRACED = """
import sys
from recollect import Recollect
with Recollect(sys.argv[1], workers=False) as memory:
    memory.append("a", {"type": "message.added", "payload": {"role": "user", "text": "I love tea"}})
    assert memory.retrieve("a", "what does she love?").items
# redis-py imports the metrics of OpenTelemetry where it is installed.
unused = ("opentelemetry.sdk.trace", "opentelemetry.exporter", "prometheus_client")
print(*(name for name in unused if name in sys.modules))
"""


def test_without_the_setting_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _UNTRACED, str(tmp_path)],
        env=os.environ | {"RECOLLECT_EMBEDDING_MODEL": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


_FOREIGN_TRACING = """
import asyncio
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import httpx
from recollect import Recollect
from recollect.api.http.app import create_app

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)


async def ask(app):
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get("/v1/namespaces/ann-smith/facts")


with Recollect(sys.argv[1], workers=False) as memory:
    print(asyncio.run(ask(create_app(memory))).status_code)
print(*(span.to_json() for span in exporter.get_finished_spans()))
"""


def test_the_web_framework_puts_no_names_of_namespaces_into_spans_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FOREIGN_TRACING, str(tmp_path)],
        env=os.environ | {"RECOLLECT_EMBEDDING_MODEL": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200")
    assert "ann-smith" not in done.stdout
