from __future__ import annotations

from pathlib import Path
from typing import Any

from support.exports import chatgpt_conversation, write_json, write_zip
from support.imports import events, facts, run, texts

from recollect.api.settings import Settings


def sample(folder: Path) -> Path:
    files: dict[str, Any] = {
        "export_manifest.json": {"version": 1},
        "user.json": {"id": "u"},
        "conversations-000.json": [chatgpt_conversation("c1")],
        "conversations-001.json": [chatgpt_conversation("c2", title=None, text="I moved to Lund")],
        "chat.html": "<html>",
    }
    return write_zip(folder / "openai.zip", files)


SAMPLES = {"chatgpt": sample}


def test_chatgpt_keeps_the_branch_that_the_user_sees(tmp_path: Path, settings_of_test: Settings) -> None:
    path = write_json(tmp_path / "conversations.json", [chatgpt_conversation()])
    report = run(path, settings_of_test)
    assert texts(settings_of_test) == [
        "user: I am allergic to walnuts",
        "assistant: Noted: no walnuts.",
        "user: my cat Biscuit",
    ]
    assert report.skipped == {"abandoned branch": 1, "thoughts and tool calls": 2}
    first = events(settings_of_test, "message.added")[0]
    assert first.as_json()["occurred_at"] == "2026-02-25T06:13:30.500000Z"
    assert first.session_id == "chatgpt:c1"
    assert first.data()["metadata"] == {"import": "chatgpt", "conversation_id": "c1", "message_id": "u"}
    assert events(settings_of_test, "message.added")[2].data()["attachments"][0]["uri"] == "sediment://file_1"


def test_the_hidden_profile_of_chatgpt_becomes_facts_and_a_preference_that_is_not_standing(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    run(sample(tmp_path), settings_of_test)
    assert facts(settings_of_test) == [("user", "preferred name is", "Ann"), ("user", "lives in", "Porto")]
    [preference] = [event.data() for event in events(settings_of_test, "preference.stated")]
    assert preference["value"] == "Keep answers short."
    assert "standing" not in preference


def test_the_words_of_openai_around_the_profile_are_not_imported(tmp_path: Path, settings_of_test: Settings) -> None:
    chat = chatgpt_conversation()
    content = chat["mapping"]["p"]["message"]["content"]
    content["user_profile"] = (
        "The user provided the following information about themselves. This user profile is shown to you in all "
        "conversations they have.\nUser profile:\n```Preferred name: Ann\nRole: baker\nOther Information: I row.```"
    )
    content["user_instructions"] = "The user provided the additional info:\n```Be brief.```"
    path = write_json(tmp_path / "conversations.json", [chat])
    run(path, settings_of_test)
    own = {
        "about_user_message": "Preferred name: Ann\nRole: baker\nOther Information: I row.",
        "about_model_message": "Be brief.",
    }
    chat["mapping"]["p"]["message"]["metadata"]["user_context_message_data"] = own
    content["user_profile"] = "Another wrapper."
    assert run(write_json(path, [chat]), settings_of_test, user="Ann").added == 0
    assert facts(settings_of_test) == [
        ("user", "preferred name is", "Ann"),
        ("user", "occupation is", "baker"),
        ("user", "note", "I row"),
    ]
    assert events(settings_of_test, "preference.stated")[0].data()["value"] == "Be brief."
