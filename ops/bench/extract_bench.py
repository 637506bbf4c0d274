"""Extraction by rules: messages a second on one core (floor: splitting the same messages into sentences)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import texts
from table import compare, heading, seconds

from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.extraction.spoken_sentences import sentences

MESSAGES = 5_000


def run(_: Path) -> None:
    heading(f"Extraction by rules, {MESSAGES:,} messages (floor: their sentences)")
    said = [
        IncomingMessage(
            event["id"], event.get("session_id"), "Ann", event["payload"]["text"], datetime.now(UTC), is_assistant=False
        )
        for event in texts.real(MESSAGES)
    ]

    def read_all() -> None:
        for one in said:
            list(extract_by_rules(one, []))

    read_all()
    ours = MESSAGES / seconds(read_all)
    floor = MESSAGES / seconds(lambda: [sentences(one.text) for one in said])
    compare("read", ours, floor, "messages/s")
