"""Two releases on one log: a release reads what a later one appends, and says which events it cannot read."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest
from integration.test_log_contract import BACKENDS, new_log
from integration.test_schema_evolution import LOGS, event_draft
from support.events import message, message_draft

from recollect import Recollect
from recollect.api.pages.export import export_lines
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import EventDraft


@pytest.fixture(params=BACKENDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Recollect]:
    """A memory on the events of the last released log."""
    released = Path(shutil.copy(LOGS[-1], tmp_path / "released.db"))
    url = new_log(request.param, request, tmp_path)
    settings = load_settings(data=tmp_path / "data", log=url, embedding_model="none", retrieval_budget_ms=10_000)
    source = SqliteLog(released)
    with Recollect(settings=settings, workers=False) as memory:
        memory.parts.log.append("ann", [event_draft(event) for event in source.read("ann")])
        yield memory
    source.close()


def of_later_release(type: str, payload: dict[str, Any], **fields: Any) -> EventDraft:
    """Return an event that the catalogue of this release does not have."""
    return message_draft("x")._replace(type=type, payload=orjson.dumps(payload), **fields)


def test_types_and_fields_of_a_later_release_are_kept_and_passed_over(memory: Recollect) -> None:
    said = {"role": "user", "name": "Ann", "text": "My canary is called Pip.", "mood": "glad", "scene": {"at": "home"}}
    fact = {"subject": "Ann", "predicate": "lives in", "object": "Faro", "certainty_kind": "guess"}
    memory.parts.log.append(
        "ann",
        [
            of_later_release("mood.recorded", {"mood": "glad", "about": ["Pip"]}, id="mood"),
            of_later_release("message.added", said, id="said", session_id="later"),
            of_later_release("fact.stated", fact, id="fact"),
        ],
    )
    memory.append("ann", message("I sold my bicycle.", name="Ann"))

    assert memory.parts.read_models.catch_up("ann").behind == 0
    assert memory.check("ann").is_equal
    assert memory.verify("ann").is_intact
    assert "Pip" in memory.retrieve("ann", "What is the canary called?").context
    assert {"Faro"} <= {item["object"] for item in memory.facts("ann", limit=100)["items"]}
    memory.compact("ann")
    exported = [orjson.loads(line) for line in export_lines(memory.parts.log, "ann")]
    [kept] = [event for event in exported if event["id"] == "said"]
    assert kept["payload"] == said
    assert "mood" in {event["id"] for event in exported}
    memory.erase("ann", everything=True)
    assert "glad" not in "".join(map(str, export_lines(memory.parts.log, "ann")))


def test_an_event_that_only_a_later_release_can_read_stops_the_namespace_before_it_until_the_upgrade(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.append("ann", message("My canary is called Pip.", name="Ann"))
    later = {"role": "user", "text": "I moved to Faro.", "name": "Ann"}
    memory.parts.log.append("ann", [of_later_release("message.added", later, schema_version=2)])
    memory.append("bob", message("I live in Rome.", name="Bob"))

    answer = memory.retrieve("ann", "What is the canary called?")
    assert "Pip" in answer.context
    assert "install the version that recorded it, or a later one" in str(answer.degraded)
    # Appends go on, and so do other namespaces.
    memory.append("ann", message("I sold my bicycle.", name="Ann"))
    assert "projection" not in str(memory.retrieve("bob", "Where does Bob live?").degraded)

    # The later release converts what this one has recorded.
    for module in ("upcast", "envelope"):
        monkeypatch.setattr(f"recollect.events.{module}.UPCASTERS", {"message.added": (dict[str, Any],)})
    memory.replay("ann")
    assert memory.parts.read_models.progress("ann").parked is None
    texts = str(memory.episodes("ann", limit=100)["items"])
    assert "Faro" in texts
    assert "bicycle" in texts
