"""LoCoMo import (Maharana et al. 2024): the published file, or a file of one conversation with questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from recollect.api.importers.batches import ImportResult, append_all
from recollect.api.settings import PrivacySettings
from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.progress import OnCount
from recollect.events.validation import producer_draft

#: The settings of callers that have none.
_PRIVACY = PrivacySettings()
_PREFIX = "locomo-"
_SESSION = re.compile(r"session_(\d+)")
#: The published file has times of sessions only; this interval is set between their turns.
_TURN_INTERVAL = timedelta(seconds=20)


def import_locomo(
    log: EventLog, path: Path, *, on_progress: OnCount, privacy: PrivacySettings = _PRIVACY
) -> ImportResult:
    """Append the conversations in `path`, each to the namespace ``locomo-<sample_id>``, and return how many were new.

    Event ids are ``<sample_id>:<dia_id>``, so importing the same file again adds nothing.

    Raises:
        InvalidInput: the file has neither form; nothing is appended.
    """
    try:
        events = read_locomo(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=str(path)) from error
    return append_all(log, events, privacy, on_progress)


def read_locomo(content: bytes, name: str) -> list[tuple[str, EventDraft]]:
    """Return the (namespace, event) pairs of a file; raise `InvalidInput` when it has neither form."""
    try:
        return [event for sample in _samples(orjson.loads(content)) for event in sample]
    except InvalidInput as error:
        raise InvalidInput(error.reason, field=f"{name}: {error.field}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"not a LoCoMo file: {type(error).__name__}: {error}", field=name) from error


def _samples(content: Any) -> Iterator[Iterator[tuple[str, EventDraft]]]:
    samples: list[dict[str, Any]] = cast(Any, content) if isinstance(content, list) else [content]
    for sample in samples:
        if "events" in sample:
            yield _recorded(sample)
        else:
            yield _published(sample["sample_id"], sample["conversation"])


def _recorded(sample: dict[str, Any]) -> Iterator[tuple[str, EventDraft]]:
    namespace = _PREFIX + sample["name"].removeprefix(_PREFIX)
    for number, event in enumerate(sample["events"]):
        yield namespace, producer_draft(event, field=f"events.{number}")


def _published(sample_id: str, conversation: dict[str, Any]) -> Iterator[tuple[str, EventDraft]]:
    sessions = sorted((int(match[1]), name) for name in conversation if (match := _SESSION.fullmatch(name)))
    for _, name in sessions:
        start = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for number, turn in enumerate(conversation[name]):
            yield _PREFIX + sample_id, producer_draft(_turn(sample_id, name, turn, start + number * _TURN_INTERVAL))


def _turn(sample_id: str, session: str, turn: dict[str, Any], occurred_at: datetime) -> dict[str, Any]:
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
