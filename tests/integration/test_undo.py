"""Undo: restores exactly what was there before an edit, live and in a replay, for every kind of memory."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.command_line import recollect
from support.events import Event, message
from support.read_models import connection_of

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.catalogue import DERIVED_EVENTS, type_of
from recollect.events.errors import InvalidInput, NotFound
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
DERIVED = frozenset(map(type_of, DERIVED_EVENTS))
#: Bookkeeping that an undo does not restore: counts of mentions, the summary of a session, the record of the edits.
#: A row of `repetitions` names a memory that an undo removes.
_BOOKKEEPING = frozenset(
    (
        "read_model",
        "entities",
        "entity_names",
        "sessions",
        "edits",
        "knowledge_changes",
        "repetitions",
        "sqlite_sequence",
    )
)


def event_of(kind: str, /, *, id: str | None = None, causation_id: str | None = None, **payload: Any) -> Event:
    fields = {"type": kind, "payload": payload, "id": id, "causation_id": causation_id}
    return {name: value for name, value in fields.items() if value is not None}


#: Memories of all kinds, with values that replaced others, a pin, an ending, and facts that a job extracted.
_STATED: list[Event] = [
    message("I like tea, my dog is Rex", id="m1", session_id="s1", name="Ann"),
    message("I live in Porto", id="m2", session_id="s1", name="Ann"),
    event_of("fact.stated", id="old-home", subject="Ann", predicate="lives in", object="Faro", source_events=["m1"]),
    event_of("fact.stated", id="home", subject="Ann", predicate="lives in", object="Porto", source_type="observed"),
    event_of("fact.stated", id="home again", subject="Ann", predicate="lives in", object="Porto", confidence=0.5),
    event_of("fact.stated", id="tea", subject="Ann", predicate="likes", object="tea", confidence=0.6),
    event_of("fact.stated", id="cake", subject="Ann", predicate="likes", object="cake", confidence=0.7),
    event_of("preference.stated", id="tone", key="tone", value="short", strength=0.4),
    event_of("preference.stated", id="units", key="units", value="metric"),
    event_of("procedure.recorded", id="brew", name="tea", trigger="thirst", steps=["boil"]),
    event_of("relationship.stated", id="knows", source="Ann", type="knows", target="Bob", confidence=0.7),
    event_of("relationship.stated", id="boss", source="Ann", type="boss", target="Eve"),
    event_of("document.added", document_id="rules", title="Rules", text="Be kind. " * 300),
    event_of("memory.pinned", memory_id="cake"),
    event_of(
        "facts.extracted",
        id="x",
        source_events=["m1"],
        extractor="rules",
        facts=[{"subject": "Ann", "predicate": "has pet", "object": "Rex", "source_events": ["m1"]}],
        preferences=[{"key": "drink", "value": "tea", "source_events": ["m1"]}],
        entities=[{"name": "Rex", "type": "animal", "source_events": ["m1"]}],
        questions=[{"source_event": "m1", "text": "Who?"}],
        dates=[{"source_event": "m1", "text": "x", "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}],
    ),
    event_of("observations.recorded", observations=["Ann has a dog"], source_events=["m1"]),
    event_of("memory.status_changed", memory_id="tea", status="stale"),
    event_of("facts.decayed", facts=[{"fact_id": "home", "confidence": 0.3}]),
]
_FACTS = ["old-home", "home", "tea", "cake", "x#f0"]
_PREFERENCES = ["tone", "units", "x#p0"]
_MEMORIES = [*_FACTS, *_PREFERENCES, "brew", "knows", "boss", "m1", "m2"]


def _correction(id: str, value: str) -> Event:
    fact = next((event["payload"] for event in _STATED if event.get("id") == id), None)
    own = {"subject": "Ann", "predicate": "has pet"} if fact is None else fact
    named = {name: own[name] for name in ("subject", "predicate")}
    return event_of("fact.corrected", **named, object=value, corrects=id)


def _edit(kind: str, id: str) -> Event:
    return event_of(kind, memory_id=id)


def _topic_correction(predicate: str, value: str) -> Event:
    return event_of("fact.corrected", subject="Ann", predicate=predicate, object=value)


def _retraction(id: str) -> Event:
    return event_of("fact.retracted", fact_id=id)


def _preference(key: str, value: str) -> Event:
    return event_of("preference.stated", key=key, value=value, source_type="corrected")


def _procedure(steps: list[str]) -> Event:
    return event_of("procedure.recorded", causation_id="brew", name="tea", trigger="thirst", steps=steps)


def _relationship(target: str) -> Event:
    return event_of("relationship.stated", causation_id="boss", source="Ann", type="boss", target=target)


def _document(text: str) -> Event:
    return event_of("document.added", document_id="rules", title="Rules", text=text)


_EDIT_TYPES = ["memory.pinned", "memory.unpinned", "memory.ended", "memory.invalidated", "memory.forgotten"]
_VALUES = st.sampled_from(["Faro", "Porto", "Lisbon", "tea", "cake", "short", "Rex"])
_EDITS = st.one_of(
    st.builds(_edit, st.sampled_from(_EDIT_TYPES), st.sampled_from(_MEMORIES)),
    st.builds(_correction, st.sampled_from(_FACTS), _VALUES),
    st.builds(_topic_correction, st.sampled_from(["lives in", "likes"]), _VALUES),
    st.builds(_retraction, st.sampled_from(_FACTS)),
    st.builds(_preference, st.sampled_from(["tone", "units", "drink"]), _VALUES),
    st.builds(_procedure, st.lists(_VALUES, min_size=1, max_size=2)),
    st.builds(_relationship, st.sampled_from(["Eve", "Bob"])),
    st.just(event_of("memory.forgotten", memory_id="rules", kind="document")),
    st.just(event_of("document.removed", document_id="rules")),
    st.builds(_document, _VALUES),
    st.just(event_of("memory.ended", memory_id="home", ended_at="2026-01-01T00:00:00Z")),
)


class Live:
    """A log with a read model that follows each event at once."""

    def __init__(self, folder: Path) -> None:
        self.log = SqliteLog(folder / "log.db")
        self.models = ReadModels(folder, self.log)
        self._number = 0

    def append(self, event: Event) -> str:
        """Append an event an hour after the one before; return its id."""
        self._number += 1
        at = _START + timedelta(hours=self._number)
        [appended] = self.log.append("a", drafts([{"id": f"e{self._number}", "occurred_at": at.isoformat(), **event}]))
        self.models.catch_up("a")
        return appended.id

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all rows but the bookkeeping, and the keyword index as it can be searched."""
        with self.models.reading("a") as snapshot:
            connection = connection_of(snapshot)
            names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'episodes_fts%'"
            tables = [name for (name,) in connection.execute(names) if name not in _BOOKKEEPING]
            rows = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}
            words = "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH 'tea OR porto OR dog' ORDER BY 1"
            return rows | {"keywords": list(connection.execute(words))}

    def require_edit(self, id: str) -> None:
        """Pass over an example whose event is no edit: a document that is added where there is none."""
        with self.models.reading("a") as snapshot:
            assume(snapshot.memory_ids.exists("edit", id))

    def close(self) -> None:
        self.models.close()
        self.log.close()


@given(st.lists(_EDITS, min_size=1, max_size=6))
def test_an_undo_gives_the_rows_before_the_last_edit_and_its_undo_the_rows_after_it(edits: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Live(Path(folder))) as live:
        for event in _STATED:
            live.append(event)
        for event in edits[:-1]:
            live.append(event)
        before = live.rows()
        edit = live.append(edits[-1])
        live.require_edit(edit)
        after = live.rows()
        live.append(event_of("edit.undone", event_id=edit))
        assert live.rows() == before
        live.append(event_of("edit.undone", event_id=edit))
        assert live.rows() == before, "a second undo changes nothing"
        live.append(event_of("edit.undone", event_id=edit, again=True))
        assert live.rows() == after
        assert live.models.check("a").is_equal


@given(st.lists(st.tuples(_EDITS, st.booleans(), st.integers(0, 5)), min_size=1, max_size=8))
def test_edits_and_undos_in_any_order_are_the_same_in_a_replay(steps: list[tuple[Event, bool, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Live(Path(folder))) as live:
        for event in _STATED:
            live.append(event)
        edits: list[str] = []
        for event, is_undo, number in steps:
            if is_undo and edits:
                undone = edits[number % len(edits)]
                live.append(event_of("edit.undone", event_id=undone, again=number % 2 == 0))
            else:
                edits.append(live.append(event))
        for edit in reversed(edits):
            live.append(event_of("edit.undone", event_id=edit))
        rows = live.rows()
        active = [row for row in rows["facts"] if "active" in row and "Ann" in row and "lives in" in row]
        assert len(active) <= 1, "a person lives in one place"
        assert live.models.check("a").is_equal


@given(st.lists(_EDITS, min_size=1, max_size=6))
def test_edits_that_are_undone_from_the_last_to_the_first_leave_nothing(edits: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Live(Path(folder))) as live:
        for event in _STATED:
            live.append(event)
        before = live.rows()
        done = [live.append(event) for event in edits]
        for edit in done:
            live.require_edit(edit)
        for edit in reversed(done):
            live.append(event_of("edit.undone", event_id=edit))
        assert live.rows() == before


@pytest.mark.parametrize("later", ["Braga", "Porto", "Lisbon"])
def test_what_is_said_after_an_edit_stays_when_the_edit_is_undone(tmp_path: Path, later: str) -> None:
    with closing(Live(tmp_path)) as live:
        live.append(event_of("fact.stated", id="home", subject="Ann", predicate="lives in", object="Porto"))
        edit = live.append(_correction("home", "Lisbon"))
        live.append(event_of("fact.stated", subject="Ann", predicate="lives in", object=later))
        live.append(event_of("edit.undone", event_id=edit))
        with live.models.reading("a") as snapshot:
            query = "SELECT object, status FROM facts WHERE status = 'active'"
            assert list(connection_of(snapshot).execute(query)) == [(later, "active")]
        assert live.models.check("a").is_equal


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def _listed(memory: Recollect) -> dict[str, list[Any]]:
    names = (
        "episodes",
        "facts",
        "preferences",
        "procedures",
        "relationships",
        "documents",
        "observations",
        "questions",
    )
    return {name: memory.list("a", name, limit=1_000)["items"] for name in names}


@pytest.mark.parametrize("id", ["home", "tone", "brew", "knows", "m1", "rules"])
def test_a_forgotten_memory_of_any_kind_is_back_as_it_was(memory: Recollect, id: str) -> None:
    memory.append("a", [event for event in _STATED if event["type"] not in DERIVED])
    memory.parts.log.append("a", drafts([event for event in _STATED if event["type"] in DERIVED]))
    before = _listed(memory)
    forgotten = memory.forget("a", id, reason="asked")
    assert _listed(memory) != before
    undone = memory.undo("a", forgotten["event_id"])
    assert undone["undoes"] == forgotten["event_id"]
    assert _listed(memory) == before
    memory.undo("a", undone["id"])
    with pytest.raises(NotFound):
        memory.get("a", id)
    assert memory.check("a").is_equal


def test_a_forgotten_message_is_retrieved_again_after_the_undo(memory: Recollect) -> None:
    memory.append("a", [message("The boat is called Orca", id="m1", session_id="s"), message("Fine", session_id="s")])
    forgotten = memory.forget("a", "m1")
    assert memory.retrieve("a", "How is the boat called?", gate=False).items[:1] != ["m1"]
    memory.undo("a", forgotten["event_id"])
    assert [item.id for item in memory.retrieve("a", "How is the boat called?", gate=False).items][:1] == ["m1"]
    # What a job derives from it afterwards is not left out.
    late = {"subject": "user", "predicate": "owns", "object": "Orca", "source_events": ["m1"]}
    extracted = event_of("facts.extracted", source_events=["m1"], extractor="rules", facts=[late])
    memory.parts.log.append("a", drafts([extracted]))
    assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Orca"]
    assert memory.check("a").is_equal


@pytest.mark.parametrize(
    ("id", "changes"),
    [
        ("home", {"text": "Lisbon"}),
        ("home", {"valid_from": "2026-01-01T00:00:00Z"}),
        ("tone", {"text": "long"}),
        ("tone", {"strength": 0.9, "standing": True}),
        ("brew", {"steps": ["boil", "pour"]}),
        ("brew", {"context": "at home"}),
        ("boss", {"target": "Bob"}),
        ("knows", {"properties": {"since": "school"}}),
    ],
)
def test_an_update_is_undone_as_a_whole(memory: Recollect, id: str, changes: dict[str, Any]) -> None:
    memory.append("a", [event for event in _STATED if event["type"] not in DERIVED])
    before = _listed(memory)
    updated = memory.update("a", id, **changes)
    assert _listed(memory) != before
    [event] = [
        event["id"]
        for event in memory.events("a", limit=1_000)["items"]
        if event["version"] == memory.parts.log.head("a").version
    ]
    assert id in ("home", "knows") or updated["id"] == event
    memory.undo("a", event)
    assert _listed(memory) == before
    assert memory.check("a").is_equal


@pytest.mark.parametrize(("id", "changes"), [("tone", {"strength": 0.9}), ("brew", {"context": "at home"})])
def test_the_undo_of_the_first_part_of_an_update_undoes_all_of_it(
    memory: Recollect, id: str, changes: dict[str, Any]
) -> None:
    memory.append("a", [event for event in _STATED if event["type"] not in DERIVED])
    before, version = _listed(memory), memory.parts.log.head("a").version
    memory.update("a", id, **changes)
    after = _listed(memory)
    undone = memory.undo("a", memory.events("a", after=version)["items"][0]["id"])
    assert _listed(memory) == before
    undone = memory.undo("a", undone["id"])
    assert _listed(memory) == after
    memory.undo("a", undone["id"])
    assert _listed(memory) == before
    assert memory.check("a").is_equal


@pytest.mark.parametrize("part", [0, -1])
def test_the_update_of_a_message_is_undone_as_a_whole_by_either_of_its_parts(memory: Recollect, part: int) -> None:
    memory.append("a", [message("I live in Porto.", id="m1", name="Ann"), message("I like tea.", id="m2", name="Ann")])
    memory.settle("a")
    before, version = _messages_and_homes(memory), memory.parts.log.head("a").version
    new_id = memory.update("a", "m1", text="I live in Faro.")["id"]
    parts = [event["id"] for event in memory.events("a", after=version)["items"]]
    assert parts[-1] == new_id
    memory.settle("a")
    after = _messages_and_homes(memory)
    assert after == (["I like tea.", "I live in Faro."], ["Faro"])
    for expected in (before, after, before):
        event_id = memory.undo("a", parts[part])["id"]
        memory.settle("a")
        assert _messages_and_homes(memory) == expected
        parts, part = [event_id], 0
    assert memory.check("a").is_equal


def _messages_and_homes(memory: Recollect) -> tuple[list[str], list[str]]:
    facts = [fact["object"] for fact in memory.facts("a")["items"] if fact["predicate"] == "lives in"]
    return sorted(item["text"] for item in memory.episodes("a")["items"]), facts


def test_an_update_of_a_message_that_was_updated_again_is_undone_after_the_later_update(memory: Recollect) -> None:
    memory.append("a", message("I live in Porto.", id="m1", name="Ann"))
    first = str(memory.update("a", "m1", text="I live in Faro.")["id"])
    second = str(memory.update("a", first, text="I live in Evora.")["id"])
    with pytest.raises(InvalidInput, match="updated again later"):
        memory.undo("a", first)
    memory.undo("a", second)
    memory.undo("a", first)
    assert [item["id"] for item in memory.episodes("a")["items"]] == ["m1"]


@pytest.mark.parametrize(
    ("id", "changes"),
    [
        ("home", {"text": "Lisbon"}),
        ("home", {"text": "Faro"}),
        ("tone", {"text": "long"}),
        ("tone", {"strength": 0.9}),
        ("brew", {"steps": ["boil", "pour"]}),
        ("brew", {"context": "at home"}),
        ("boss", {"target": "Bob"}),
    ],
)
def test_an_update_keeps_the_pin(memory: Recollect, id: str, changes: dict[str, Any]) -> None:
    memory.append("a", [event for event in _STATED if event["type"] not in DERIVED])
    memory.pin("a", id)
    before, version = _listed(memory), memory.parts.log.head("a").version
    updated = memory.update("a", id, **changes)
    assert (updated["id"] != id, updated.get("pinned")) == (True, True)
    memory.undo("a", memory.events("a", after=version)["items"][-1]["id"])
    assert _listed(memory) == before


def test_what_is_no_edit_is_refused_with_what_to_do(memory: Recollect) -> None:
    memory.append("a", [message("I like tea", id="m1"), event_of("entity.described", name="Rex")])
    with pytest.raises(InvalidInput, match="message.added"):
        memory.undo("a", "m1")
    with pytest.raises(NotFound, match="no event"):
        memory.undo("a", "unknown")
    with pytest.raises(InvalidInput, match="cannot be undone"):
        memory.undo("a", memory.forget("a", "Rex")["event_id"])
    with pytest.raises(NotFound, match="corrected, ended"):
        memory.append("a", event_of("edit.undone", event_id="m1"))


def test_an_undone_forgetting_is_not_repeated_by_an_erasure(memory: Recollect) -> None:
    memory.append("a", [message("I live in Porto.", id="m1", name="Ann"), message("I like tea.", id="m2", name="Ann")])
    memory.settle("a")
    [fact] = [fact for fact in memory.facts("a")["items"] if fact["object"] == "Porto"]
    memory.undo("a", memory.forget("a", fact["id"])["event_id"])
    memory.erase("a", event_ids=["m2"])
    memory.settle("a")
    assert "Porto" in [fact["object"] for fact in memory.facts("a")["items"]]
    assert "tea" not in [fact["object"] for fact in memory.facts("a")["items"]]


def test_the_command_undoes_an_edit_by_its_id(memory: Recollect, tmp_path: Path) -> None:
    memory.append("a", event_of("fact.stated", id="home", subject="Ann", predicate="lives in", object="Porto"))
    memory.close()
    forgotten = recollect("forget", "a", "home", data=tmp_path)
    id = forgotten.stderr.split()[-1]
    assert f"recollect undo a {id}" in forgotten.stderr
    undone = recollect("undo", "a", id, data=tmp_path)
    assert undone.stdout.startswith(f"{id} is undone by ")
    assert "Porto" in recollect("list", "a", "facts", data=tmp_path).stdout
