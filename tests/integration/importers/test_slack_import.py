from __future__ import annotations

from pathlib import Path
from typing import Any

from support.exports import write_zip
from support.imports import events, run, texts

from recollect.api.settings import Settings

SLACK_USERS = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lund"}}, {"id": "U2", "name": "bob"}]
SLACK_DAY = [
    {"type": "message", "subtype": "channel_join", "user": "U1", "text": "<@U1> has joined", "ts": "1769940000.000100"},
    {
        "type": "message",
        "user": "U1",
        "ts": "1769940005.000200",
        "text": "<@U2> <https://example.org|site> is up &amp; <!here> :tada: :+1::skin-tone-3: :ship_it: 9:30:45",
    },
    {"type": "message", "user": "U2", "text": "thanks", "ts": "1769940010.000300", "thread_ts": "1769940005.000200"},
    {
        "type": "message",
        "subtype": "bot_message",
        "bot_id": "B1",
        "username": "ci",
        "text": "build ok",
        "ts": "1769940020.000400",
    },
]


def sample(folder: Path) -> Path:
    files: dict[str, Any] = {
        "channels.json": [{"id": "C1", "name": "general"}],
        "users.json": SLACK_USERS,
        "general/2026-02-01.json": SLACK_DAY,
    }
    return write_zip(folder / "slack.zip", files)


SAMPLES = {"slack": sample}


def test_slack_texts_have_names_and_no_escapes(tmp_path: Path, settings_of_test: Settings) -> None:
    run(sample(tmp_path), settings_of_test)
    assert texts(settings_of_test) == [
        "user: @bob site (https://example.org) is up & @here 🎉 👍 (ship it) 9:30:45",
        "user: thanks",
        "assistant: build ok",
    ]
    assert events(settings_of_test, "message.added")[0].data()["name"] == "Ann Lund"


def test_bots_have_names_and_what_they_say_in_attachments(tmp_path: Path, settings_of_test: Settings) -> None:
    bot: dict[str, Any] = {"type": "message", "subtype": "bot_message", "text": ""}
    day = [
        bot | {"bot_id": "B2", "ts": "1769940001.1", "text": "merged", "bot_profile": {"name": "GitHub"}},
        bot | {"bot_id": "B3", "ts": "1769940002.1", "attachments": [{"fallback": "build ok"}]},
        {"type": "message", "user": "U3", "bot_id": "B3", "ts": "1769940003.1", "text": "deployed"},
    ]
    users = [{"id": "U3", "is_bot": True, "profile": {"real_name": "CI", "bot_id": "B3"}}]
    files = {"channels.json": [], "users.json": users, "general/2026-02-01.json": day}
    run(write_zip(tmp_path / "slack.zip", files), settings_of_test)
    messages = [event.data() for event in events(settings_of_test, "message.added")]
    assert [(message["role"], message["name"], message["text"]) for message in messages] == [
        ("assistant", "GitHub", "merged"),
        ("assistant", "CI", "build ok"),
        ("assistant", "CI", "deployed"),
    ]
