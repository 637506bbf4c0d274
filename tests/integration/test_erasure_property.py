"""After an erasure and the jobs, a memory equals one that never got the erased events, ids and versions aside."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings

#: Statements that refer to each other: facts, corrections, endings, preferences, names, tasks.
SENTENCES = (
    "I live in Porto and I work at Acme.",
    "Actually I live in Lisbon now.",
    "My sister Mara lives in Berlin.",
    "She moved to Hamburg last week.",
    "I love green tea.",
    "I don't like green tea any more.",
    "Please always answer in short sentences.",
    "My dog Rex is four years old.",
    "I have to call the dentist tomorrow.",
    "I called the dentist.",
    "What did I say about my sister?",
    "My favourite colour is blue.",
    "Jonathan and Mara married in Rome.",
    "Thanks, good night!",
)
#: What differs between two logs with the same content.
_ASIDE = frozenset(("id", "version", "hash", "updated_at", "created_at", "superseded_by", "memory_id", "recorded_at"))
_LISTS = ("episodes", "facts", "preferences", "entities", "relationships", "procedures", "sessions")
_numbers = itertools.count()


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Event], set[int], bool]:
    """Return messages, the numbers of those to erase, and whether the jobs ran before the erasure."""
    count = draw(st.integers(2, 12))
    events = [
        message(
            draw(st.sampled_from(SENTENCES)),
            name=draw(st.sampled_from(("Ann", "Bob"))),
            id=f"m{number}",
            session_id=draw(st.sampled_from(("s1", "s2"))),
            occurred_at=f"2026-01-01T10:{number:02}:00Z",
        )
        for number in range(count)
    ]
    erased = draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))
    return events, erased, draw(st.booleans())


def content(memory: Recollect, namespace: str) -> dict[str, list[Any]]:
    """Return everything that a namespace holds, without ids and versions."""
    return {
        name: sorted((_without(item) for item in memory.list(namespace, name, limit=1_000)["items"]), key=repr)
        for name in _LISTS
    }


def _without(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _without(value) for name, value in item.items() if name not in _ASIDE}  # pyright: ignore
    return [_without(element) for element in item] if isinstance(item, list) else item  # pyright: ignore


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("property")
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        yield memory


def live(memory: Recollect, namespace: str, events: list[Event]) -> None:
    """Append, then run all jobs."""
    if events:
        memory.append(namespace, events)
    memory.compact(namespace, now="2026-01-20T00:00:00Z")


#: Messages of which the last one has no content, and is erased.
_NOTHING_SAID_LAST = [
    message(text, name="Ann", id=f"m{number}", session_id="s1", occurred_at=f"2026-01-01T10:{number:02}:00Z")
    for number, text in enumerate([SENTENCES[0]] * 8 + [SENTENCES[-1]])
]
#: Messages of which the other person's is erased: who is left talked to an assistant, and is read so.
_ONE_PERSON_LEFT = [
    message(SENTENCES[7], name="Ann", id="m0", session_id="s1", occurred_at="2026-01-01T10:00:00Z"),
    message(SENTENCES[-1], name="Bob", id="m1", session_id="s1", occurred_at="2026-01-01T10:01:00Z"),
]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(history=(_NOTHING_SAID_LAST, {8}, True))
@example(history=(_ONE_PERSON_LEFT, {1}, True))
@given(history=histories())
def test_the_rest_answers_as_if_it_had_never_been_said(
    memory: Recollect, history: tuple[list[Event], set[int], bool]
) -> None:
    events, erased, read = history
    rest = [event for number, event in enumerate(events) if number not in erased]
    with_all, without = (f"{name}{next(_numbers)}" for name in ("all", "rest"))
    # The jobs run once before the erasure, or not at all: other runs make other groups of messages.
    memory.append(with_all, events)
    if read:
        live(memory, with_all, [])
    live(memory, without, rest)
    memory.erase(with_all, event_ids=[f"m{number}" for number in erased])
    live(memory, with_all, [])
    assert content(memory, with_all) == content(memory, without)
    assert memory.check(with_all).is_equal
