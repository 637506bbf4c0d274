"""Memory kinds from the outside: lists, graph, sources, windows, jobs, health; in Python, HTTP and the shell."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import Server, recollect_process, serving

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.events.validation import drafts
from recollect.jobs.queue.run_store import DeadLetter

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    with serving(tmp_path) as server:
        yield server


def stated(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


KINDS: dict[str, dict[str, Any]] = {
    "facts": stated("fact.stated", subject="Ann", predicate="lives in", object="Porto"),
    "preferences": stated("preference.stated", key="tone", value="short", standing=True),
    "procedures": stated("procedure.recorded", name="tea", trigger="thirst", steps=["boil", "pour"]),
    "relationships": stated("relationship.stated", source="Ann", type="knows", target="Bob"),
    "documents": stated("document.added", document_id="d1", title="Rules", text="Be kind."),
    "observations": stated("observations.recorded", observations=["calm"], source_events=["m1"]),
    "questions": stated(
        "facts.extracted", source_events=["m1"], extractor="rules", questions=[{"source_event": "m1", "text": "Why?"}]
    ),
    "dates": stated(
        "facts.extracted",
        source_events=["m1"],
        extractor="rules",
        dates=[{"source_event": "m1", "text": "today", "start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}],
    ),
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_has_its_list_and_each_moment_its_own(name: str, memory: Recollect) -> None:
    memory.parts.log.append("a", drafts([message("hello"), KINDS[name]]))
    page = memory.list("a", name)
    assert len(page["items"]) == 1
    assert page["next"] is None
    assert memory.list("a", name, as_of=1)["items"] == []


def test_lists_come_in_pages(memory: Recollect) -> None:
    memory.append("a", [stated("fact.stated", subject="Ann", predicate="likes", object=f"{at}") for at in range(5)])
    first = memory.facts("a", limit=3)
    second = memory.facts("a", limit=3, after=first["next"] or "")
    assert [one["object"] for one in first["items"] + second["items"]] == ["0", "1", "2", "3", "4"]
    assert second["next"] is None


def test_the_graph_goes_round_circles_and_not_through_contradictions(memory: Recollect) -> None:
    edges = [("Ann", "knows", "Bob"), ("Bob", "knows", "Cleo"), ("Cleo", "knows", "Ann")]
    edges += [("Cleo", "contradicts", "Dan"), ("Dan", "knows", "Eve")]
    memory.append("a", [stated("relationship.stated", source=a, type=kind, target=b) for a, kind, b in edges])
    near = memory.graph("a", "ann", depth=1)
    assert {(edge["source"], edge["target"]) for edge in near["edges"]} == {("Ann", "Bob"), ("Cleo", "Ann")}
    far = memory.graph("a", "Ann", depth=5)
    assert far["nodes"] == ["Ann", "Bob", "Cleo", "Dan"]
    assert [edge["weight"] for edge in far["edges"] if edge["type"] == "contradicts"] == [0.0]
    assert memory.graph("a", "nobody") == {"entity": None, "nodes": [], "edges": []}
    with pytest.raises(InvalidInput, match="depth"):
        memory.graph("a", "Ann", depth=6)


def test_documents_are_in_the_graph(memory: Recollect) -> None:
    relations = [{"type": "governs", "target": "deployments"}]
    memory.append("a", stated("document.added", document_id="d1", title="Rules", text="x", relations=relations))
    (edge,) = memory.graph("a", "d1", depth=1)["edges"]
    assert (edge["source"], edge["type"], edge["target"], edge["weight"]) == ("d1", "governs", "deployments", 1.0)


def converse(memory: Recollect) -> list[str]:
    said = ["We painted the kitchen green.", "My sister Clara came from Porto.", "The tram 28 was late again today."]
    events = [
        message(said[at % 3], id=f"m{at}", session_id="s1", name="Ann", occurred_at=_START + timedelta(minutes=at))
        for at in range(9)
    ]
    memory.append("a", events)
    return [event["id"] for event in events]


def test_the_exact_words_behind_a_summary_come_back(memory: Recollect) -> None:
    ids = converse(memory)
    memory.compact("a", now=_START + timedelta(days=30))
    (summary,) = memory.episodes("a")["items"]
    assert summary["tier"] == "distilled"
    assert [source.id for source in memory.sources("a", summary["id"])] == ids
    plain = memory.retrieve("a", "the tram")
    (item,) = [item for item in plain.items if item.text == "The tram 28 was late again today."]
    assert item.id in ids
    # The same words were said three times.
    assert (item.speaker, {*item.source_events}) == ("Ann", {"m2", "m5", "m8"})
    assert (item.tier, item.summary_id, item.sources) == ("distilled", summary["id"], ())
    assert "The tram 28 was late again today." in plain.context
    wide = memory.retrieve("a", "the tram", expand=True)
    assert [source.id for source in wide.items[0].sources] == ids
    assert wide.context == plain.context
    assert wide.as_json()["items"][0].get("sources", [])[0]["speaker"] == "Ann"


def test_what_was_forgotten_is_still_known_as_of_before(memory: Recollect) -> None:
    ids = converse(memory)
    memory.compact("a", now=_START + timedelta(days=30))
    then = memory.retrieve("a", "the tram", as_of=len(ids))
    assert {item.id for item in then.items} <= set(ids)
    assert then.items


def test_a_time_to_compact_at_is_checked(memory: Recollect) -> None:
    converse(memory)
    for now in ("tomorrow", "42", datetime.now(UTC) + timedelta(days=1)):
        with pytest.raises(InvalidInput, match="now"):
            memory.compact("a", now=now)


def test_kinds_sources_windows_and_metrics_are_served(server: Server, tmp_path: Path) -> None:
    base = f"{server.base}/v1/namespaces/ann"
    events = [message(f"I live in Porto, said {at}", session_id="s1", name="Ann") for at in range(4)]
    assert httpx.post(f"{base}/events", json={"events": events}).status_code == 201
    lines = b"".join(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE) for event in KINDS.values())
    assert recollect("import", "jsonl", "-", "--namespace", "ann", data=tmp_path, stdin=lines).returncode == 0
    for name in KINDS:
        assert httpx.get(f"{base}/{name}").json()["items"], name
    assert httpx.get(f"{base}/graph", params={"entity": "Ann"}).json()["nodes"] == ["Ann", "Bob"]
    assert httpx.get(f"{base}/graph", params={"entity": "Ann", "depth": 9}).status_code == 422
    assert httpx.get(f"{base}/episodes/nothing/sources").json() == {"items": [], "next": None}
    window = httpx.post(f"{base}/sessions/s1/window", json={"budget_tokens": 500}).json()
    assert len(window["messages"]) == 4
    assert httpx.post(f"{base}/sessions/s1/window", json={"budget_tokens": 1}).status_code == 422
    health = httpx.get(f"{server.base}/health").json()
    assert {one["role"] for one in health["processes"]} == {"worker", "scheduler"}
    assert health["status"] == "ok", health["problems"]
    metrics = httpx.get(f"{server.base}/metrics").text
    assert 'recollect_processes_alive{role="worker"} 1.0' in metrics
    assert 'recollect_queue_messages{queue="think"}' in metrics


def test_compaction_and_jobs_on_the_command_line(tmp_path: Path) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        converse(memory)
    dry = recollect("compact", "--now", "2026-01-07T00:00:00Z", "--dry-run", data=tmp_path)
    assert "events that would be appended: 1 extract, 1 compress\n" in dry.stdout, dry.stderr
    done = recollect("compact", "--now", "2026-01-07T00:00:00Z", data=tmp_path)
    assert done.stdout == dry.stdout.replace("that would be appended", "appended")
    assert "raw: 9 episodes" in done.stdout
    assert recollect("compact", "--now", "never", data=tmp_path).returncode == 2
    assert recollect_process("worker", data=tmp_path).returncode == 2
    shown = recollect("jobs", data=tmp_path)
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, "with a backlog: 0 of 1 namespace")


def test_dead_letters_are_shown_and_requeued(tmp_path: Path) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("a", message("I live in Porto"))
        letter = DeadLetter(
            id="x1", queue="think", actor="think", arguments=("a",), failed_at_us=1, error="Boom: no disk"
        )
        memory.parts.run_store.add_dead_letter(letter)
    assert "dead letter x1: think('a',)" in recollect("jobs", data=tmp_path).stdout
    assert "no disk" in recollect("jobs", "show", "x1", data=tmp_path).stdout
    assert recollect("jobs", "show", "x2", data=tmp_path).returncode == 2
    assert recollect("jobs", "requeue", data=tmp_path).returncode == 2
    done = recollect("jobs", "requeue", "--all", data=tmp_path)
    assert done.stdout.strip() == "1 dead letters requeued", done.stderr
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        assert [one["object"] for one in memory.facts("a")["items"]] == ["Porto"]
        assert memory.parts.run_store.dead_letters() == []
