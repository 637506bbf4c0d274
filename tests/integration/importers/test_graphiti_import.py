from __future__ import annotations

from pathlib import Path

from support.exports import write_lines
from support.imports import events, run

from recollect.api.settings import Settings

GRAPHITI = [
    {
        "kind": "edge",
        "uuid": "e1",
        "group_id": "g",
        "source_node_uuid": "n1",
        "target_node_uuid": "n2",
        "name": "WORKS_AT",
        "fact": "Ann works at Fernside",
        "episodes": ["p1"],
        "created_at": "2026-01-01T00:00:00Z",
        "valid_at": "2024-05-01T00:00:00Z",
        "invalid_at": "2025-12-01T00:00:00Z",
        "expired_at": None,
    },
    {
        "kind": "entity",
        "uuid": "n1",
        "group_id": "g",
        "name": "Ann",
        "labels": ["Person"],
        "summary": "Ann keeps bees",
        "created_at": "2026-01-01T00:00:00Z",
    },
    {"kind": "entity", "uuid": "n2", "group_id": "g", "name": "Fernside", "labels": ["Entity"], "summary": ""},
    {
        "kind": "episode",
        "uuid": "p1",
        "group_id": "g",
        "source": "message",
        "content": "Ann: I keep bees",
        "valid_at": "2026-01-01T08:00:00Z",
        "created_at": "2026-01-01T08:00:01Z",
    },
    {
        "kind": "edge",
        "uuid": "e2",
        "group_id": "g",
        "source_node_uuid": "n1",
        "target_node_uuid": "n2",
        "name": "ADVISES",
        "fact": "Ann advises Fernside on bees",
        "created_at": "2026-01-03T00:00:00Z",
        "valid_at": None,
        "invalid_at": None,
    },
]


def sample(folder: Path) -> Path:
    return write_lines(folder / "graph.jsonl", GRAPHITI)


SAMPLES = {"graphiti": sample}


def test_graphiti_edges_keep_their_validity(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test)
    [ended] = [
        event.data() for event in events(settings_of_test, "fact.stated") if event.data()["object"] == "Fernside"
    ]
    assert (ended["subject"], ended["predicate"]) == ("Ann", "works at")
    assert (ended["valid_from"], ended["valid_until"]) == ("2024-05-01T00:00:00Z", "2025-12-01T00:00:00Z")
    [relation] = [event.data() for event in events(settings_of_test, "relationship.stated")]
    assert (relation["source"], relation["type"], relation["target"]) == ("Ann", "advises", "Fernside")
