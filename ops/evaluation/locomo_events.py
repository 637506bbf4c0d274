"""LoCoMo events (Maharana et al. 2024): prints the conversations of a file as lines for `recollect import jsonl -`.

    python ops/evaluation/locomo_events.py locomo10.json | recollect import jsonl -

The file is the published one, or one of a conversation with questions. Each conversation becomes the namespace
``locomo-<sample_id>``, and each event has the id ``<sample_id>:<dia_id>``, so that a second import adds nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson

_PREFIX = "locomo-"
_SESSION = re.compile(r"session_(\d+)")
#: The published file has times of sessions only; this interval is set between their turns.
_TURN_INTERVAL = timedelta(seconds=20)


def main(path: Path) -> None:
    try:
        # All of them before the first line, so that nothing of another file is imported.
        events = [*locomo_events(orjson.loads(path.read_bytes()))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{path} is not a LoCoMo file: {type(error).__name__}: {error}") from error
    for event in events:
        sys.stdout.buffer.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))


def locomo_events(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the events of a file, each with its namespace."""
    samples: list[dict[str, Any]] = cast(Any, content) if isinstance(content, list) else [content]
    for sample in samples:
        if "events" in sample:
            namespace = _PREFIX + sample["name"].removeprefix(_PREFIX)
            yield from ({"namespace": namespace} | event for event in sample["events"])
        else:
            yield from _published(sample["sample_id"], sample["conversation"])


def _published(sample_id: str, conversation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a conversation of the published file."""
    sessions = sorted((int(match[1]), name) for name in conversation if (match := _SESSION.fullmatch(name)))
    for _, name in sessions:
        start = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for number, turn in enumerate(conversation[name]):
            yield {"namespace": _PREFIX + sample_id} | _turn(sample_id, name, turn, start + number * _TURN_INTERVAL)


def _turn(sample_id: str, session: str, turn: dict[str, Any], occurred_at: datetime) -> dict[str, Any]:
    """Return the event of a turn."""
    payload: dict[str, Any] = {"role": "user", "name": turn["speaker"], "text": turn["text"]}
    if turn.get("blip_caption"):
        payload["attachments"] = [{"media_type": "image/jpeg", "caption": turn["blip_caption"]}]
    return {
        "id": f"{sample_id}:{turn['dia_id']}",
        "type": "message.added",
        "session_id": f"{sample_id}:{session}",
        "occurred_at": occurred_at,
        "payload": payload,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
