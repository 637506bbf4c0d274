from __future__ import annotations

from pathlib import Path
from typing import Any

from support.exports import claude_conversation, write_json, write_zip
from support.imports import events, facts, run, texts

from recollect import Recollect
from recollect.api.settings import Settings

CLAUDE_MEMORIES = [
    {
        "account_uuid": "acct",
        "conversations_memory": "**Work context**\n\nAnn works at Fernside Farm. She plans the orchards.\n\n"
        "**Personal context**\n\n- User prefers metric units\n- **Diet:** vegetarian\n",
        "project_memories": {"p1": "The orchard project ends in October."},
    }
]
CLAUDE_PROJECT = {
    "uuid": "p1",
    "name": "Orchard",
    "description": "Planting plans",
    "prompt_template": "Answer with sources.",
    "created_at": "2026-02-01T00:00:00Z",
    "docs": [{"uuid": "doc1", "filename": "soil.md", "content": "The soil of the upper field is acid."}],
}


def sample(folder: Path) -> Path:
    files: dict[str, Any] = {
        "users.json": [{"uuid": "acct"}],
        "conversations.json": [claude_conversation()],
        "projects/p1.json": CLAUDE_PROJECT,
        "memories.json": CLAUDE_MEMORIES,
    }
    return write_zip(folder / "data-batch-0000.zip", files)


SAMPLES = {"claude": sample}


def test_claude_keeps_the_last_branch_the_memories_and_the_documents(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    run(sample(tmp_path), settings_of_test, user="Ann")
    assert texts(settings_of_test) == ["user: My garden has a fig tree", "assistant: Figs like sun."]
    assert ("Ann", "works at", "Fernside Farm") in facts(settings_of_test)
    assert ("Ann", "prefers", "metric units") in facts(settings_of_test)
    assert ("Ann", "diet is", "vegetarian") in facts(settings_of_test)
    titles = [event.data()["title"] for event in events(settings_of_test, "document.added")]
    assert titles == ["Orchard", "Orchard: soil.md"]


def test_a_claude_export_without_parents_or_blocks_is_read_as_it_was_in_2023(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    old = {
        "uuid": "old",
        "name": "",
        "created_at": "2023-08-01T00:00:00Z",
        "chat_messages": [
            {"uuid": "a", "sender": "human", "text": "Hello from 2023", "created_at": "2023-08-01T00:00:00Z"}
        ],
    }
    run(write_json(tmp_path / "conversations.json", [old]), settings_of_test)
    assert texts(settings_of_test) == ["user: Hello from 2023"]


def test_an_imported_message_and_fact_say_so_in_a_retrieval(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test, user="Ann")
    with Recollect(settings=settings_of_test, workers=False) as memory:
        items = memory.retrieve("ann", "where does Ann work, at which farm? what about the fig tree?").as_json()[
            "items"
        ]
    provenances = {(item["kind"], item["provenance"], item["trust"]) for item in items if item["kind"] != "document"}
    assert provenances <= {("episode", "import", 2), ("fact", "import", 2)}
    assert provenances
    labels = {tuple(event.data()["labels"]) for event in events(settings_of_test, "message.added")}
    assert labels == {("imported",), ("imported", "imported: others")}
