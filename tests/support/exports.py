"""Small exports of other programs, in the shapes of 2023 to 2026. All of it is invented."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

DAY = 1_772_000_000


def chatgpt_node(id: str, parent: str | None, children: list[str], message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": id, "parent": parent, "children": children, "message": message}


def chatgpt_message(id: str, role: str, text: str | None, **fields: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": DAY + 10.5,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
    }
    return message | fields


def chatgpt_conversation(id: str = "c1", *, title: str | None = "Trip", text: str = "I am allergic to walnuts") -> Any:
    """A conversation with a hidden profile, a regenerated answer, thoughts, a tool call and a picture."""
    profile = {
        "content_type": "user_editable_context",
        "user_profile": "Preferred name: Ann\nUser lives in Porto",
        "user_instructions": "Keep answers short.",
    }
    hidden = {"is_visually_hidden_from_conversation": True, "is_user_system_message": True}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"}
    nodes = [
        chatgpt_node("root", None, ["p"], None),
        chatgpt_node("p", "root", ["u"], chatgpt_message("p", "user", None, content=profile, metadata=hidden)),
        chatgpt_node("u", "p", ["old", "t"], chatgpt_message("u", "user", text)),
        chatgpt_node("old", "u", [], chatgpt_message("old", "assistant", "A discarded answer")),
        chatgpt_node(
            "t",
            "u",
            ["k"],
            chatgpt_message("t", "assistant", None, content={"content_type": "thoughts", "thoughts": []}),
        ),
        chatgpt_node(
            "k",
            "t",
            ["a"],
            chatgpt_message(
                "k", "assistant", "search()", recipient="browser", content={"content_type": "code", "text": "search()"}
            ),
        ),
        chatgpt_node("a", "k", ["i"], chatgpt_message("a", "assistant", "Noted: no walnuts.", create_time=DAY + 20)),
        chatgpt_node(
            "i",
            "a",
            [],
            chatgpt_message(
                "i",
                "user",
                None,
                create_time=DAY + 30,
                content={"content_type": "multimodal_text", "parts": [picture, "my cat Biscuit"]},
            ),
        ),
    ]
    return {
        "conversation_id": id,
        "id": id,
        "title": title,
        "create_time": DAY + 0.25,
        "update_time": DAY + 40.0,
        "current_node": "i",
        "mapping": {node["id"]: node for node in nodes},
    }


def claude_conversation(id: str = "d1") -> Any:
    root = "00000000-0000-4000-8000-000000000000"

    def message(uuid: str, sender: str, parent: str, content: list[Any], minute: int, text: str = "") -> Any:
        return {
            "uuid": uuid,
            "sender": sender,
            "text": text,
            "content": content,
            "attachments": [{"file_name": "plan.txt", "extracted_content": "x"}] if uuid == "m1" else [],
            "files": [],
            "created_at": f"2026-03-01T09:{minute:02}:00.123456Z",
            "parent_message_uuid": parent,
        }

    return {
        "uuid": id,
        "name": "Garden",
        "summary": "",
        "created_at": "2026-03-01T09:00:00Z",
        "updated_at": "2026-03-01T10:00:00Z",
        "account": {"uuid": "acct"},
        "chat_messages": [
            message("m1", "human", root, [{"type": "text", "text": "My garden has a fig tree"}], 1),
            message("m2", "assistant", "m1", [{"type": "text", "text": "An older answer"}], 2),
            message(
                "m3",
                "assistant",
                "m1",
                [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Figs like sun."},
                    {"type": "tool_use"},
                ],
                3,
            ),
        ],
    }


MEM0 = {
    "results": [
        {
            "id": "7a1",
            "memory": "User's favorite color is green",
            "hash": "h",
            "metadata": None,
            "score": None,
            "user_id": "ann",
            "created_at": "2026-01-02T03:04:05.678-07:00",
            "updated_at": None,
        },
        {"id": "7a2", "memory": "Allergic to peanuts", "user_id": "ann", "created_at": "2026-01-03T00:00:00+00:00"},
    ]
}


TELEGRAM_CHAT: dict[str, Any] = {
    "name": "Bob",
    "type": "personal_chat",
    "id": 4242,
    "messages": [
        {"id": 1, "type": "service", "date": "2026-02-01T10:00:00", "action": "phone_call", "text": ""},
        {
            "id": 2,
            "type": "message",
            "date": "2026-02-01T10:00:05",
            "date_unixtime": "1769940005",
            "from": "Ann",
            "from_id": "user1",
            "text": ["see ", {"type": "link", "text": "example.org"}],
            "text_entities": [{"type": "plain", "text": "see "}, {"type": "link", "text": "example.org"}],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2026-02-02T10:00:05",
            "date_unixtime": "1770026405",
            "from": "Bob",
            "from_id": "user2",
            "text": "I moved to Lund",
            "text_entities": [{"type": "plain", "text": "I moved to Lund"}],
        },
        {
            "id": 4,
            "type": "message",
            "date": "2026-02-02T10:01:05",
            "from": "Bob",
            "from_id": "user2",
            "text": "old form",
            "forwarded_from": "News",
        },
    ],
}


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def write_folder(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def write_zip(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return path


def write_mem0_history(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
            " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);"
            "CREATE TABLE messages (id TEXT, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at TEXT);"
        )
        database.executemany(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            [
                ("1", "m1", None, "User lives in Porto", "ADD", "2025-01-01T00:00:00+00:00", None, 0),
                (
                    "2",
                    "m1",
                    "User lives in Porto",
                    "User lives in Lund",
                    "UPDATE",
                    "2025-01-01T00:00:00+00:00",
                    "2026-01-01T00:00:00+00:00",
                    0,
                ),
                ("3", "m2", None, "User smokes", "ADD", "2025-01-01T00:00:00+00:00", None, 0),
                ("4", "m2", "User smokes", None, "DELETE", "2025-02-01T00:00:00+00:00", None, 1),
            ],
        )
        database.execute(
            "INSERT INTO messages VALUES ('x1', 'ann', 'user', 'hello there', NULL, '2025-01-01 00:00:00')"
        )
        database.commit()
    return path
