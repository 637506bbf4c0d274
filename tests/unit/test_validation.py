from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import PAYLOADS, events, message

from recollect.events.catalogue import EVENT_CLASSES, Envelope, MessageAdded
from recollect.events.envelope import microseconds
from recollect.events.errors import InvalidEvent, InvalidInput, TooLarge
from recollect.events.validation import draft, drafts, drafts_from_json


@pytest.mark.parametrize("name", sorted(EVENT_CLASSES))
def test_every_type_of_the_catalogue_is_taken(name: str) -> None:
    event = {"type": name, "payload": PAYLOADS[name], "session_id": "s"}
    made = draft(event)
    assert made.type == name
    # What is stored comes back as it was given; only fields at their default are left out.
    assert EVENT_CLASSES[name].model_validate({**event, "payload": orjson.loads(made.payload)}) == EVENT_CLASSES[
        name
    ].model_validate(event)


def test_the_catalogue_has_the_types_of_the_design_and_thirteen_more() -> None:
    assert set(EVENT_CLASSES) == set(PAYLOADS)
    assert len(EVENT_CLASSES) == 44


def test_every_envelope_class_is_in_the_list_of_its_section() -> None:
    assert set(EVENT_CLASSES.values()) == set(Envelope.__subclasses__())


def test_a_message_may_say_nothing() -> None:
    assert draft(message("")).payload == b'{"role":"user","text":""}'


def test_an_event_of_the_catalogue_is_taken_as_it_is() -> None:
    event = MessageAdded.model_validate(message("hello", id="e1"))
    assert draft(event) == draft(message("hello", id="e1"))


@given(events())
def test_every_event_that_the_generator_makes_is_taken(event: dict[str, Any]) -> None:
    assert draft(event).type == event["type"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "message.addd"}, "event.type"),
        ({"type": None}, "event.type"),
        ({"type": ["message.added"]}, "event.type"),
        ({"payload": None}, "event.payload"),
        ({"payload": {"role": "king", "text": "x"}}, "event.payload.role"),
        ({"payload": {"role": "user"}}, "event.payload"),
        ({"payload": {"role": "user", "text": 7}}, "event.payload.text"),
        ({"payload": {"role": "user", "text": "x", "data": 1}}, "event.payload"),
        ({"payload": {"role": "user", "text": "x", "txt": "y"}}, "event.payload.txt"),
        ({"payload": {"role": "user", "data": float("nan")}}, "event.payload.data"),
        ({"payload": {"role": "user", "data": [{"deep": float("inf")}]}}, "event.payload.data"),
        ({"payload": {"role": "user", "data": 2**70}}, "event.payload.data"),
        ({"payload": {"role": "user", "text": "\ud800"}}, "event.payload"),
        ({"payload": {"role": "user", "data": [{"deep": "\ud800"}]}}, "event.payload"),
        ({"payload": {"role": "user", "name": "\ud800", "text": "x"}}, "event.payload.name"),
        ({"occurred_at": "2026-01-02T03:04:05"}, "event.occurred_at"),
        ({"occurred_at": 1_700_000_000}, "event.occurred_at"),
        ({"occurred_at": "yesterday"}, "event.occurred_at"),
        ({"occurred_at": datetime.now(UTC) + timedelta(days=2)}, "event.occurred_at"),
        ({"id": ""}, "event.id"),
        ({"id": "a\nb"}, "event.id"),
        ({"id": "x" * 201}, "event.id"),
        ({"session_id": 7}, "event.session_id"),
        ({"schema_version": 2}, "event.schema_version"),
        ({"surprise": 1}, "event.surprise"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_name_of_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        draft(message("hello") | change)
    assert refused.value.field.startswith(field)


def test_a_misspelt_type_is_answered_with_the_right_one() -> None:
    with pytest.raises(InvalidEvent, match=r"did you mean message\.added\?"):
        draft(message("x") | {"type": "message.add"})


def test_a_refusal_says_what_to_do_and_names_every_wrong_field() -> None:
    event = {"type": "message.added", "payload": {"role": "king", "text": "x", "mood": 1}, "colour": "red"}
    with pytest.raises(
        InvalidEvent, match=r"give user, assistant, system, or tool:.*; also wrong: payload.mood, colour"
    ):
        draft(event)
    with pytest.raises(InvalidEvent, match=r"send it to \.\.\./messages"):
        draft({"role": "user", "content": "hello"})


def test_a_clock_that_is_a_little_ahead_is_forgiven() -> None:
    soon = datetime.now(UTC) + timedelta(hours=20)
    assert draft(message("x", occurred_at=soon)).occurred_at_us == microseconds(soon)


def test_an_event_over_a_mebibyte_is_refused() -> None:
    draft(message("x" * 1_000_000))
    with pytest.raises(TooLarge, match="attachment"):
        draft(message("x" * (1 << 20)))


def test_a_batch_names_the_event_that_is_wrong() -> None:
    with pytest.raises(InvalidEvent) as refused:
        drafts([message("x"), message("y", role="king")])
    assert refused.value.field == "events.1.payload.role"
    with pytest.raises(InvalidEvent):
        drafts([])
    with pytest.raises(TooLarge):
        drafts([message("x")] * 1_001)


def test_a_body_is_one_event_or_a_batch_with_an_expected_version() -> None:
    one = orjson.dumps(message("x"))
    made, expected = drafts_from_json(b'{"events": [%b, %b], "expected_version": 3}' % (one, one))
    assert (len(made), expected) == (2, 3)
    assert drafts_from_json(one) == ([draft(message("x"))], None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"type": "message.added", "payload": {"role": "user", "text": "\xff"}}',
        b'{"type": "message.added", "payload": {"role": "user", "data": NaN}}',
        b'{"type": "message.added", "payload": {"role": "user", "data": -Infinity}}',
        b'{"events": {}}',
        b'{"events": []}',
        b'{"events": [1]}',
        b'{"events": [], "expected": 1}',
        b'{"events": [{"type": "session.started", "session_id": "s"}], "expected_version": -1}',
        b'{"events": [{"type": "session.started", "session_id": "s"}], "expected_version": true}',
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        drafts_from_json(body)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_clear_refusal(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        drafts_from_json(body)
