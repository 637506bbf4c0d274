from __future__ import annotations

from pathlib import Path

from support.exports import write_lines
from support.imports import facts, run

from recollect.api.settings import Settings

MCP_MEMORY = [
    {
        "type": "entity",
        "name": "default_user",
        "entityType": "person",
        "observations": ["Speaks Danish", "User has a boat"],
    },
    {"type": "entity", "name": "Fernside_Farm", "entityType": "organization", "observations": ["Grows figs"]},
    {"type": "relation", "from": "default_user", "to": "Fernside_Farm", "relationType": "works_at"},
]


def sample(folder: Path) -> Path:
    return write_lines(folder / "memory.jsonl", MCP_MEMORY)


SAMPLES = {"mcp-memory": sample}


def test_mcp_memory_entities_get_their_observations(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test, user="Ann")
    assert facts(settings_of_test) == [
        ("Ann", "speaks", "Danish"),
        ("Ann", "has", "a boat"),
        ("Fernside Farm", "note", "Grows figs"),
    ]
