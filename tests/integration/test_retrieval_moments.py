"""What is asked as of a moment is answered as it was then; `until` ends what may be told."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.corpora import OPTIONS, QUERIES, corpora
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.memory import Memory

from recollect.events.envelope import datetime_of, now_us, rfc3339
from recollect.events.errors import InvalidInput


@given(corpus=corpora(), query=QUERIES, options=OPTIONS, data=st.data())
def test_as_of_a_version_nothing_that_was_recorded_later_is_seen(
    corpus: list[Event], query: str, options: dict[str, Any], data: st.DataObject
) -> None:
    version = data.draw(st.integers(0, len(corpus)))
    later = {event["id"] for event in corpus[version:]}
    with TemporaryDirectory() as folder, Memory(Path(folder)) as memory:
        memory.add(corpus)
        memory.embed()
        result = memory.ask(query, HashingEmbedder(), as_of=version, **options)
        assert not later & {id for item in result.items for id in item.source_events}
        assert result.version == version


def test_what_was_superseded_expired_or_taken_back_later_is_shown_as_it_was(tmp_path: Path) -> None:
    def fact(object: str, **payload: Any) -> Event:
        stated = {"subject": "Ann", "predicate": "lives in", "object": object, **payload}
        return {"type": "fact.stated", "payload": stated, "id": object}

    with Memory(tmp_path) as memory:
        memory.add([fact("Porto")])
        memory.add([fact("Lisbon")])
        memory.add([{"type": "fact.retracted", "payload": {"fact_id": "Lisbon"}}])
        shown = [[item.text for item in memory.ask("where does Ann live?", as_of=at).items] for at in (1, 2, 3)]
    assert shown == [["Ann lives in Porto"], ["Ann lives in Lisbon"], []]


def test_what_held_at_a_moment_is_shown_for_that_moment_though_it_is_over_now(tmp_path: Path) -> None:
    ends_us = now_us() + 400_000
    payload = {"subject": "Ann", "predicate": "visits", "object": "Porto", "valid_until": rfc3339(ends_us)}
    with Memory(tmp_path) as memory:
        memory.add([{"type": "fact.stated", "payload": payload}])
        moment = datetime_of(now_us())
        assert len(memory.ask("whom or what does Ann visit?", as_of=moment).items) == 1
        while now_us() <= ends_us:
            time.sleep(0.05)
        assert memory.ask("whom or what does Ann visit?").items == ()
        for as_of in (1, moment):
            assert len(memory.ask("whom or what does Ann visit?", as_of=as_of).items) == 1


def test_as_of_a_moment_other_namespaces_are_seen_as_they_were_then_too(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.add([message("the sofa is red", id="e1")])
        memory.add([message("the sofa is red here too", id="b1")], "b")
        moment = datetime_of(now_us())
        time.sleep(0.002)
        memory.add([message("the sofa is blue", id="b2")], "b")
        memory.add([message("the sofa is green", id="e2")])
        for as_of in (moment, 1):
            found = {item.id for item in memory.ask("sofa", as_of=as_of, also=("b",)).items}
            assert found & {"e2"} == set()
            assert "e1" in found
        assert {item.id for item in memory.ask("sofa", as_of=moment, also=("b",)).items} == {"e1", "b1"}


def test_with_until_nothing_that_was_said_later_comes_along_in_any_mode(tmp_path: Path) -> None:
    early, late = "2025-03-01T10:00:00Z", "2025-09-01T10:00:00Z"
    with Memory(tmp_path) as memory:
        for at in (early, late):
            payload = {"subject": "Ann", "predicate": "likes", "object": f"tea of {at[:7]}"}
            memory.add([{"type": "fact.stated", "payload": payload, "id": at, "occurred_at": at}])
            memory.add([message(f"tea of {at[:7]}", occurred_at=at, session_id="old", id=f"said {at}")])
        for mode in ("active", "passive"):
            result = memory.ask(
                "tea", mode=mode, session_id="new" if mode == "passive" else None, until="2025-06-01T00:00:00Z"
            )
            assert "2025-03" in result.context
            assert "2025-09" not in result.context


def test_an_as_of_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, pytest.raises(InvalidInput, match="as_of"):
        memory.ask("x", as_of=10_000)
