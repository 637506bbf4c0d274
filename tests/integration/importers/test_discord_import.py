from __future__ import annotations

from pathlib import Path
from typing import Any

from support.exports import write_json, write_zip
from support.imports import run, texts

from recollect.api.settings import Settings

DISCORD: dict[str, Any] = {
    "guild": {"id": "1", "name": "Rowers"},
    "channel": {"id": "55", "type": "GuildTextChat", "category": "Text", "name": "boats", "topic": None},
    "dateRange": {"after": None, "before": None},
    "exportedAt": "2026-03-01T00:00:00Z",
    "messages": [
        {
            "id": "900",
            "type": "GuildMemberJoin",
            "timestamp": "2026-02-01T10:00:00+00:00",
            "content": "Joined",
            "author": {"id": "7", "name": "ann", "isBot": False},
        },
        {
            "id": "901",
            "type": "Default",
            "timestamp": "2026-02-01T10:00:00.5+00:00",
            "content": "I bought a skiff",
            "author": {"id": "7", "name": "ann", "nickname": "Ann", "isBot": False},
            "attachments": [],
            "embeds": [],
        },
        {
            "id": "902",
            "type": "Reply",
            "timestamp": "2026-02-01T10:01:00+00:00",
            "content": "",
            "author": {"id": "8", "name": "weatherbot", "isBot": True},
            "embeds": [{"title": "Wind", "description": "calm"}],
        },
    ],
    "messageCount": 3,
}


def sample(folder: Path) -> Path:
    return write_json(folder / "Rowers - boats [55].json", DISCORD)


SAMPLES = {"discord": sample}


def test_discord_reads_the_exporter_and_the_package_of_an_account(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test)
    package = {
        "messages/c55/channel.json": {"id": "55", "name": "boats"},
        "messages/c55/messages.json": [
            {"ID": 9, "Timestamp": "2025-05-05 10:00:00", "Contents": "my own words", "Attachments": ""}
        ],
    }
    assert run(write_zip(tmp_path / "package.zip", package), settings_of_test).format == "discord"
    assert texts(settings_of_test) == ["user: I bought a skiff", "assistant: Wind\ncalm", "user: my own words"]
