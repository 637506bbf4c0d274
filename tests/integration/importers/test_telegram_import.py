from __future__ import annotations

from pathlib import Path

from support.exports import TELEGRAM_CHAT, write_json
from support.imports import events, run

from recollect.api.settings import Settings

TELEGRAM_ACCOUNT = {
    "about": "…",
    "personal_information": {"user_id": 1, "first_name": "Ann"},
    "chats": {"about": "…", "list": [TELEGRAM_CHAT, {**TELEGRAM_CHAT, "id": 77, "name": "Club"}]},
}


def sample(folder: Path) -> Path:
    return write_json(folder / "telegram" / "result.json", TELEGRAM_ACCOUNT)


SAMPLES = {"telegram": sample}


def test_telegram_reads_entities_and_days_and_skips_service_messages(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    report = run(write_json(tmp_path / "result.json", TELEGRAM_CHAT), settings_of_test)
    messages = [
        (event.session_id, event.data()["name"], event.data()["text"])
        for event in events(settings_of_test, "message.added")
    ]
    assert messages == [
        ("telegram:4242:2026-02-01", "Ann", "see example.org"),
        ("telegram:4242:2026-02-02", "Bob", "I moved to Lund"),
        ("telegram:4242:2026-02-02", "Bob", "(forwarded from News) old form"),
    ]
    assert report.skipped == {"service message": 1}
