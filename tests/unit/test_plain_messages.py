"""A plain message becomes the same draft as with the classes of the catalogue, and no other event becomes one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.events.errors import InvalidEvent, TooLarge
from recollect.events.limits import EVENT_BYTES_MAX
from recollect.events.plain_messages import plain_message
from recollect.events.validation import draft, producer_draft, producer_drafts

#: Values of a field: what it takes, what is near to that, and what it refuses.
_NAMES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010), min_size=1, max_size=3),
    st.sampled_from(["ann", "a" * 200, "a" * 201, "", "labels", "a\nb", "a\x7f", "\u2028", 7, True, ["a"], b"a"]),
)
_TEXTS: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(max_codepoint=0x100), max_size=20),
    st.sampled_from(["", "\ud800", '\x00\x1f\x7f\u2028"\\/<', "\U0001f600", "a\r\n\t\b\f", None, 7, b"a", ["a"]]),
)
_TIMES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "2026-11-20T09:00:00Z",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999+02:00",
        "2026-11-20T09:00:00.123456-05:30",
        "2026-11-20T09:00:00",
        "9999-12-31T23:59:59Z",
        "soon",
        1_700_000_000,
        datetime(2026, 11, 20, 9, tzinfo=UTC),
        datetime(2026, 11, 20, 9),
    ]
)
_PAYLOADS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool:search", "tool:", "king", None, 1]), "text": _TEXTS},
    optional={"name": _NAMES, "labels": st.just(["x"]), "metadata": st.just({"a": "b"}), "texts": _TEXTS},
)
_EVENTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.sampled_from(["message.added"] * 8 + ["action.recorded", None, 1]), "payload": _PAYLOADS},
    optional={
        "id": _NAMES,
        "session_id": _NAMES,
        "actor": _NAMES,
        "causation_id": _NAMES,
        "correlation_id": _NAMES,
        "occurred_at": _TIMES,
        "schema_version": st.sampled_from([1, 2, True, None]),
        "sesion_id": _NAMES,
    },
)


@given(_EVENTS)
def test_a_plain_message_is_the_draft_of_its_class(event: dict[str, Any]) -> None:
    plain = plain_message(event)
    if plain is not None:
        assert plain == draft(event) == producer_draft(event)


@given(
    st.sampled_from(["user", "assistant", "system"]),
    st.text(max_size=100),
    st.one_of(st.none(), st.from_regex(r"[^\x00-\x1f\x7f]{1,20}", fullmatch=True)),
    _TIMES,
)
def test_what_bots_send_is_plain(role: str, text: str, name: str | None, occurred_at: object) -> None:
    event = {
        "type": "message.added",
        "session_id": name,
        "occurred_at": occurred_at,
        "payload": {"role": role, "name": name, "text": text},
    }
    plain = plain_message(event)
    try:
        expected = draft(event)
    except InvalidEvent:
        assert plain is None
    else:
        assert plain == expected


@pytest.mark.parametrize("event", [None, [], "x", 7, {}, {"type": "message.added"}])
def test_other_values_are_not_plain(event: object) -> None:
    assert plain_message(event) is None


def test_a_text_over_the_limit_is_refused_with_its_field() -> None:
    event = {"type": "message.added", "payload": {"role": "user", "text": "a" * EVENT_BYTES_MAX}}
    assert plain_message(event) is None
    with pytest.raises(TooLarge, match="bytes") as refused:
        producer_drafts([event])
    assert refused.value.field == "events.0.payload"
