"""Events over the limits of the operator's rules are erased by the nightly job, with a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, RecordedEvent, now_us
from recollect.events.errors import InvalidInput
from recollect.jobs.erasure.retention import retain


def opened(folder: Path, rules: list[dict[str, Any]]) -> Recollect:
    settings = load_settings(data=folder, embedding_model="none", retention=rules)
    return Recollect(settings=settings, workers=False)


def texts(memory: Recollect, namespace: str) -> list[str]:
    return [event["payload"]["text"] for event in memory.events(namespace)["items"] if event["type"] == "message.added"]


def test_the_newest_events_of_a_type_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path, [{"namespace": "chat-*", "type": "message.added", "keep_last": 2}]) as memory:
        for namespace in ("chat-1", "other"):
            for number in range(5):
                memory.append(namespace, message(f"number {number}", id=f"m{number}"))
            memory.append(namespace, {"type": "observation.recorded", "payload": {"text": "it rains"}})
        for _ in range(2):
            assert [retain(memory.parts.job_context, name, now_us()) for name in ("chat-1", "other")] in (
                [1, 0],
                [0, 0],
            )
        assert texts(memory, "chat-1") == ["number 3", "number 4"]
        assert len(texts(memory, "other")) == 5
        [receipt] = memory.receipts()
        assert receipt["events"]["by_type"] == {"message.added": 3}
        assert "message.added" in receipt["scope"].get("recorded_before", {})
        assert memory.verify("chat-1").is_intact


def test_events_are_erased_after_their_time(tmp_path: Path) -> None:
    with opened(tmp_path, [{"type": "message.added", "ttl_days": 30}]) as memory:
        memory.append("a", message("My cat Zoe lives in Oslo."))
        memory.compact("a")
        assert retain(memory.parts.job_context, "a", now_us() + 29 * DAY_US) == 0
        assert retain(memory.parts.job_context, "a", now_us() + 31 * DAY_US) == 1
        assert texts(memory, "a") == []
        assert "Oslo" not in str(memory.facts("a"))


def test_a_namespace_is_read_again_only_for_new_events_or_when_one_comes_of_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [{"type": "message.added", "ttl_days": 30}, {"type": "message.added", "keep_last": 2}]
    reads: list[str] = []
    with opened(tmp_path, rules) as memory:
        log, context = memory.parts.log, memory.parts.job_context
        read = log.read_stored

        def counted(namespace: str, **span: int) -> list[RecordedEvent]:
            reads.append(namespace)
            return read(namespace, **span)

        monkeypatch.setattr(log, "read_stored", counted)
        memory.append("a", message("hello"))
        assert [retain(context, "a", now_us() + days * DAY_US) for days in (1, 2, 29)] == [0, 0, 0]
        assert len(reads) == 2
        memory.append("a", [message("how are you?"), message("fine")])
        assert retain(context, "a", now_us()) == 1
        assert texts(memory, "a") == ["how are you?", "fine"]
        assert [retain(context, "a", now_us() + days * DAY_US) for days in (1, 29, 31, 32)] == [0, 0, 1, 0]


def test_a_rule_that_limits_nothing_is_refused(tmp_path: Path) -> None:
    for rule in ({"type": "message.added"}, {"type": "facts.extracted", "ttl_days": 3}, {"type": "x", "keep_last": 1}):
        with pytest.raises(InvalidInput, match="RECOLLECT_RETENTION"):
            load_settings(data=tmp_path, retention=[rule])
