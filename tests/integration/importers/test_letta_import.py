from __future__ import annotations

from pathlib import Path

from support.exports import write_json
from support.imports import events, facts, run, texts

from recollect.api.settings import Settings

LETTA = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Helper",
            "created_at": "2026-01-01T00:00:00Z",
            "system": "You are Helper",
            "block_ids": ["block-0", "block-1"],
            "messages": [
                {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Helper"}]},
                {
                    "id": "message-1",
                    "role": "user",
                    "content": [{"type": "text", "text": '{"type": "user_message", "message": "I row on Sundays"}'}],
                    "created_at": "2026-01-02T10:00:00Z",
                },
                {
                    "id": "message-2",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "inner thought"}],
                    "tool_calls": [
                        {"id": "t", "function": {"name": "send_message", "arguments": '{"message": "Nice, rowing!"}'}}
                    ],
                    "created_at": "2026-01-02T10:00:01Z",
                },
                {"id": "message-3", "role": "tool", "content": [{"type": "text", "text": "{}"}]},
                {"id": "message-4", "role": "user", "content": '{"type": "heartbeat", "reason": "timer"}'},
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Ann\nLikes rowing.", "limit": 5000},
        {"id": "block-1", "label": "persona", "value": "I am Helper", "limit": 5000},
        {"id": "block-2", "label": "house rules", "value": "The boat house closes at nine.", "limit": 5000},
    ],
    "tools": [{"name": "x", "source_code": "import os"}],
    "metadata": {"revision_id": "1"},
}


def sample(folder: Path) -> Path:
    return write_json(folder / "helper.af", LETTA)


SAMPLES = {"letta": sample}


def test_letta_blocks_and_what_was_sent_by_its_tool_are_read(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test)
    assert texts(settings_of_test) == ["user: I row on Sundays", "assistant: Nice, rowing!"]
    assert ("user", "name is", "Ann") in facts(settings_of_test)
    assert [event.data()["title"] for event in events(settings_of_test, "document.added")] == ["house rules"]
