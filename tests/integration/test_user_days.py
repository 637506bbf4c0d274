"""The days of users: where the zone of a time comes from, and what is shown, read and found by it."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fences import content_of

from recollect import Recollect
from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.api.memory.subject_export import as_markdown
from recollect.api.pages.export import export_lines
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidEvent

_ASKED_AT = datetime(2023, 7, 17, 17, tzinfo=UTC)
_SATURDAY = "2023-07-15T20:00:00"
_TEXT = "I painted the boats at the harbour yesterday."


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with _opened(tmp_path / "data") as memory:
        yield memory


def _opened(folder: Path, asked_at: datetime = _ASKED_AT, **values: str) -> Recollect:
    settings = load_settings(data=folder, embedding_model="none", **values)
    return Recollect(settings=settings, workers=False, clock=lambda: asked_at)


def _message(text: str, occurred_at: str, *, session: str = "s", role: str = "user", **payload: Any) -> dict[str, Any]:
    return {
        "type": "message.added",
        "session_id": session,
        "occurred_at": occurred_at,
        "payload": {"role": role, "text": text, **payload},
    }


def _context(memory: Recollect, query: str = "the boats at the harbour", **options: Any) -> str:
    memory.settle("ann")
    return memory.retrieve("ann", query, **options).context


def test_the_own_offset_of_a_message_is_its_day(memory: Recollect) -> None:
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    context = _context(memory)
    assert "[Sat 2023-07-15, 2 days ago]" in context
    assert "yesterday (2023-07-14)" in context, "yesterday is the day before, where the message was sent"
    assert "Today: Mon 2023-07-17 | UTC-08:00" in context


@pytest.mark.parametrize("metadata_of", ["message", "session", "namespace", "setting"])
def test_a_time_in_utc_is_shown_in_the_named_zone(tmp_path: Path, metadata_of: str) -> None:
    zone = "America/Los_Angeles"
    values = {"timezone": zone} if metadata_of == "setting" else {}
    with _opened(tmp_path, _ASKED_AT, **values) as memory:
        if metadata_of == "session":
            session = {"type": "session.started", "session_id": "s", "payload": {"metadata": {"timezone": zone}}}
            memory.append("ann", session)
        metadata: dict[str, Any] = {"metadata": {"timezone": zone}} if metadata_of == "message" else {}
        memory.append("ann", _message(_TEXT, "2023-07-16T03:00:00Z", **metadata))
        if metadata_of == "namespace":
            memory.append("ann", {"type": "namespace.configured", "payload": {"timezone": zone}})
        context = _context(memory)
        assert "[Sat 2023-07-15, 2 days ago]" in context
        assert "yesterday (2023-07-14)" in context
        assert f"Today: Mon 2023-07-17 | {zone}" in context
        assert memory.retrieve("ann", "the boats").items[0].as_json()["occurred_at"] == f"{_SATURDAY}-07:00"


def test_the_nearest_source_of_the_zone_wins(tmp_path: Path) -> None:
    with _opened(tmp_path, timezone="Asia/Tokyo") as memory:
        memory.append("ann", {"type": "namespace.configured", "payload": {"timezone": "Europe/Berlin"}})
        memory.append("ann", _message("The boats are blue.", "2023-07-16T22:30:00Z", session="a"))
        london: dict[str, Any] = {"metadata": {"timezone": "Europe/London"}}
        memory.append("ann", _message("The boats are green.", "2023-07-16T22:30:00Z", session="b", **london))
        memory.append("ann", _message("The boats are red.", "2023-07-16T22:30:00+05:30", session="c", **london))
        times = {item.text: item.as_json()["occurred_at"] for item in memory.retrieve("ann", "boats").items}
        assert times == {
            "The boats are blue.": "2023-07-17T00:30:00+02:00",
            "The boats are green.": "2023-07-16T23:30:00+01:00",
            "The boats are red.": "2023-07-16T22:30:00+05:30",
        }


def test_a_reply_in_utc_is_of_the_day_of_the_message_that_it_answers(memory: Recollect) -> None:
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    memory.append("ann", _message("Were the boats old?", "2023-07-16T04:00:05Z", role="assistant"))
    assert "- [Sat 2023-07-15, 2 days ago] assistant: Were the boats old?" in _context(memory)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_message_of_the_past_does_not_change_the_zone_of_today(tmp_path: Path, at_once: bool) -> None:
    with _opened(tmp_path, timezone="America/New_York") as memory:
        live = {"type": "message.added", "payload": {"role": "user", "text": "I like tea."}}
        messages = [live, _message(_TEXT, "2021-03-01T10:00:00+09:00")]
        for batch in [messages] if at_once else [[message] for message in messages]:
            memory.append("ann", batch)
            memory.settle("ann")
        assert "| America/New_York" in memory.retrieve("ann", "tea").context


def test_a_zone_that_does_not_exist_is_refused_by_the_settings_and_ignored_in_labels(memory: Recollect) -> None:
    with pytest.raises(InvalidEvent, match="time zone"):
        memory.append("ann", {"type": "namespace.configured", "payload": {"timezone": "Mars/Olympus"}})
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}Z", metadata={"timezone": "../etc/passwd"}))
    assert "[Sat 2023-07-15, 2 days ago]" in _context(memory)


def test_a_question_for_a_day_is_read_in_the_zone_of_the_asker(memory: Recollect) -> None:
    memory.append("ann", _message("I painted the boats.", f"{_SATURDAY}-08:00", session="a"))
    memory.append("ann", _message("I baked bread.", "2023-07-16T12:00:00-08:00", session="b"))
    assert [item.text for item in memory.retrieve("ann", "What did I do on Saturday?").items] == [
        "I painted the boats."
    ]
    assert [item.text for item in memory.retrieve("ann", "What did I do yesterday?").items] == ["I baked bread."]


def test_a_request_may_name_the_zone_of_the_asker(memory: Recollect) -> None:
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    context = _context(memory, timezone="Pacific/Auckland", format="preamble")
    assert "Tuesday, July 18, 2023 | Pacific/Auckland" in context


def test_a_day_is_that_of_the_message_although_the_zone_has_changed_its_clocks_since(tmp_path: Path) -> None:
    with _opened(tmp_path, datetime(2023, 11, 20, 20, tzinfo=UTC)) as memory:
        # In summer time; the last message of the user is in winter time.
        memory.append("ann", _message("I saw fireworks.", "2023-07-04T00:20:00-07:00", session="a"))
        memory.append("ann", _message("It rains.", "2023-11-19T10:00:00-08:00", session="b"))
        items = memory.retrieve("ann", "What did I do on July 4?").items
        assert [item.text for item in items] == ["I saw fireworks."]


def test_an_export_and_its_import_keep_the_offset(tmp_path: Path) -> None:
    with _opened(tmp_path / "one") as memory:
        memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00") | {"id": "m1"})
        context = _context(memory)
        lines = list(export_lines(memory.parts.log, "ann"))
    event = orjson.loads(lines[0])
    assert event["occurred_at"] == f"{_SATURDAY}-08:00"
    assert event["payload"] == {"role": "user", "text": _TEXT}, "the offset is in the time alone"
    with _opened(tmp_path / "two") as memory:
        assert import_jsonl(memory.parts.log, lines, namespace=None, on_progress=lambda _: None).added == len(lines)
        assert content_of(_context(memory)) == content_of(context)


def test_the_same_time_with_another_offset_is_the_same_event(memory: Recollect) -> None:
    [first] = memory.append("ann", _message(_TEXT, "2023-07-16T04:00:00Z") | {"id": "m1"})
    [again] = memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00") | {"id": "m1"})
    assert again.duplicate
    assert again.version == first.version


@pytest.mark.parametrize(
    ("session", "metadata", "zone"),
    [
        ("s", {}, "UTC-08:00"),
        (None, {}, "UTC-08:00"),
        ("s", {"metadata": {"timezone": "America/Los_Angeles"}}, "America/Los_Angeles"),
    ],
)
def test_the_days_are_those_of_the_user_after_the_messages_have_expired(
    tmp_path: Path, session: str | None, metadata: dict[str, Any], zone: str
) -> None:
    asked_at = datetime.fromisoformat("2023-09-01T20:00:00-08:00")
    with _opened(tmp_path, asked_at) as memory:
        sent_at = "2023-07-16T04:00:00Z" if metadata else f"{_SATURDAY}-08:00"
        for text in ("I live in Leeds.", "I painted the boats at the harbour."):
            memory.append("ann", _message(text, sent_at, **metadata) | {"session_id": session})
        memory.settle("ann")
        memory.compact("ann", now=asked_at)
        assert all(episode["tier"] != "raw" for episode in memory.list("ann", "episodes")["items"])
        asked = memory.retrieve("ann", "What did I do on July 15, 2023?")
        assert [item.text for item in asked.items if item.kind == "episode"]
        assert f"| {zone}\n" in asked.context
        assert "Leeds (said 2023-07-15)" in memory.retrieve("ann", "Where do I live?", kinds=["fact"]).context
        assert memory.check("ann").is_equal


def test_yesterday_is_that_of_the_one_who_asks(memory: Recollect) -> None:
    def said(speaker: str, text: str, occurred_at: str) -> None:
        memory.append("ann", _message(text, occurred_at) | {"actor": speaker})

    said("Yuki", "I went to the shrine.", "2023-07-17T09:00:00+09:00")
    said("Bob", "I saw the game.", "2023-07-16T20:00:00-08:00")
    yuki, bob, other = (
        memory.retrieve("ann", "What did I do yesterday?", speaker=name) for name in ("yuki", "Bob", "Eve")
    )
    assert "Today: Tue 2023-07-18 | UTC+09:00" in yuki.context
    assert [item.text for item in yuki.items] == ["I went to the shrine."]
    assert "Today: Mon 2023-07-17 | UTC-08:00" in bob.context
    assert [item.text for item in bob.items] == ["I saw the game."]
    assert "Today: Mon 2023-07-17 | UTC-08:00" in other.context, "who has not written asks in the zone of the last user"


def test_a_replay_has_the_same_zones(memory: Recollect) -> None:
    memory.append("ann", {"type": "namespace.configured", "payload": {"timezone": "Europe/Berlin"}})
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    memory.append("ann", _message("Were they old?", "2023-07-16T04:00:05Z", role="assistant"))
    memory.append("ann", _message("Yes.", "2023-07-16T04:00:09Z", metadata={"timezone": "Asia/Kathmandu"}))
    memory.settle("ann")
    check = memory.parts.read_models.check("ann")
    assert check.is_equal


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    minutes=st.integers(-14 * 60, 14 * 60).filter(bool),
    moment=st.datetimes(datetime(2001, 1, 1), datetime(2023, 6, 1)),
)
def test_the_day_that_is_shown_is_the_local_day(memory: Recollect, minutes: int, moment: datetime) -> None:
    sent_at = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    namespace = f"n{minutes}-{sent_at:%Y%m%d%H%M%S}"
    memory.append(namespace, _message("The boats are blue.", sent_at.isoformat()))
    result = memory.retrieve(namespace, "boats")
    assert f"[{sent_at:%a %Y-%m-%d}" in result.context
    assert datetime.fromisoformat(result.items[0].as_json()["occurred_at"]).isoformat() == sent_at.isoformat()


def test_a_session_is_listed_in_its_zone(memory: Recollect) -> None:
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    [session] = memory.list("ann", "sessions")["items"]
    assert (session["started_at"], session["last_at"]) == (f"{_SATURDAY}-08:00", f"{_SATURDAY}-08:00")


def test_the_export_of_a_subject_has_the_local_times(memory: Recollect) -> None:
    memory.append("ann", _message(_TEXT, f"{_SATURDAY}-08:00"))
    assert f"- [{_SATURDAY[:16]}-08:00] " in as_markdown(memory.export_subject("ann"))


def test_the_days_of_dates_stand_in_lines_of_several_messages_also_after_they_have_expired(tmp_path: Path) -> None:
    asked_at = datetime.fromisoformat("2026-02-05T20:00:00-08:00")
    with Recollect(tmp_path, workers=False, clock=lambda: asked_at) as memory:
        # A date is sure when the encoder has read it.
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(300)
        memory.append("ann", _message("The plumber is coming tomorrow at noon", "2026-01-09T20:30:00-08:00"))
        landlord = "The landlord will call on Monday about the boiler"
        memory.append("ann", _message(landlord, "2026-01-09T20:30:00-08:00"))
        memory.settle("ann")
        for _ in range(2):
            context = memory.retrieve("ann", "hi", mode="passive", session_id="new").context
            assert "tomorrow (2026-01-10) at noon" in context
            assert "on Monday (2026-01-12) about the boiler" in context
            memory.compact("ann", now=asked_at)
