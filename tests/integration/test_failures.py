"""Failures: an event that cannot be projected parks its namespace; an operator retries it, or leaves it out."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.access import Application, application, headers
from support.command_line import recollect
from support.events import message
from support.poisoned_events import poison_versions
from support.viewer import CHROMIUM, INSTALL, Viewer, browser, viewer_server

from recollect import Recollect
from recollect.api.operations.background_state import background_state
from recollect.api.operations.failures import list_failures, retry_parked, skip_parked
from recollect.api.settings import load_settings
from recollect.events.errors import LogRewound, NotFound, ProjectionFailed
from recollect.events.integrity.backup import backup, restore


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    return poison_versions(monkeypatch)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def texts(memory: Recollect) -> list[str | None]:
    return [item["text"] for item in memory.list("a", "episodes")["items"]]


def parked_at(memory: Recollect) -> int | None:
    parked = memory.parts.read_models.catch_up("a").parked
    return None if parked is None else parked.version


def test_a_skipped_event_is_left_out_live_and_in_every_replay_with_equal_rows(
    memory: Recollect, poison: set[int]
) -> None:
    poison.add(2)
    memory.append("a", [message(text) for text in ("one", "two", "three")])
    assert parked_at(memory) == 2
    progress = skip_parked(memory.parts, "a", 2, "a payload of an old release")
    assert (progress["version"], progress["parked"]) == (4, None)
    assert texts(memory) == ["one", "three"]
    assert memory.check("a").is_equal
    assert memory.replay("a") == 4
    assert texts(memory) == ["one", "three"]
    assert memory.events("a", after=3)["items"][0]["payload"]["reason"] == "a payload of an old release"
    # A version that can project the event does.
    poison.clear()
    memory.replay("a")
    assert texts(memory) == ["one", "two", "three"]


def test_several_events_are_skipped_one_after_the_other(memory: Recollect, poison: set[int]) -> None:
    poison.update((1, 3))
    memory.append("a", [message(text) for text in ("one", "two", "three")])
    assert parked_at(memory) == 1
    assert skip_parked(memory.parts, "a", 1, "old")["parked"]["version"] == 3
    assert skip_parked(memory.parts, "a", 3, "old")["parked"] is None
    assert texts(memory) == ["two"]
    assert memory.check("a").is_equal


def test_only_the_event_at_which_a_namespace_is_parked_is_skipped(memory: Recollect, poison: set[int]) -> None:
    memory.append("a", [message("one"), message("two")])
    with pytest.raises(NotFound, match="not parked"):
        skip_parked(memory.parts, "a", 1, "no reason")
    poison.add(3)
    memory.append("a", message("three"))
    assert parked_at(memory) == 3
    with pytest.raises(NotFound, match="not parked at version 1"):
        skip_parked(memory.parts, "a", 1, "no reason")


def test_a_retry_goes_on_once_the_cause_is_gone(memory: Recollect, poison: set[int]) -> None:
    poison.add(1)
    memory.append("a", message("one"))
    assert parked_at(memory) == 1
    assert retry_parked(memory.parts, "a")["parked"]["error"] == "ValueError: poisoned"
    poison.clear()
    assert retry_parked(memory.parts, "a") == {"version": 1, "head": 1, "parked": None}


def test_a_replay_stops_or_parks_at_an_event_that_cannot_be_projected(memory: Recollect, poison: set[int]) -> None:
    memory.append("a", [message(text) for text in ("one", "two", "three")])
    memory.parts.read_models.catch_up("a")
    poison.add(2)
    with pytest.raises(ProjectionFailed):
        memory.replay("a")
    assert len(texts(memory)) == 3
    assert memory.replay("a", parks=True) == 1
    assert texts(memory) == ["one"]
    assert parked_at(memory) == 2


def test_a_read_model_that_is_ahead_of_a_restored_log_is_listed_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = load_settings(data=data, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", message("one"))
        backup(data / "log.db", tmp_path / "backup")
        memory.append("a", message("two"))
        memory.parts.read_models.catch_up("a")
    restore(tmp_path / "backup", data / "log.db")
    with Recollect(settings=settings, workers=False) as memory:
        with pytest.raises(LogRewound):
            memory.parts.read_models.catch_up("a")
        [parked] = list_failures(memory.parts, background_state(memory.parts))["parked"]
        assert (parked["namespace"], parked["version"], parked["type"]) == ("a", 2, None)
        assert "recollect replay" in parked["error"]
        with pytest.raises(LogRewound, match="recollect replay"):
            retry_parked(memory.parts, "a")
    shown = recollect("jobs", data=data)
    assert "Rebuild with: recollect replay" in shown.stdout + shown.stderr


def test_one_page_lists_failures_and_its_routes_retry_and_skip(tmp_path: Path, poison: set[int]) -> None:
    poison.add(1)
    with application(tmp_path) as house:
        house.memory.append("a", [message("secret words"), message("two")])
        house.memory.parts.read_models.catch_up("a")
        _, operator = house.access.tokens.create(name="op", scopes=["read", "admin"], patterns=["*"], days=None)
        page = house.http.get("/v1/failures", headers=headers(operator)).json()
        [parked] = page["parked"]
        assert (parked["namespace"], parked["version"], parked["type"]) == ("a", 1, "message.added")
        assert "secret" not in str(page)
        assert page["dead_letters"] == []
        assert page["lag"]["totals"]["read_models"] == 2
        retried = _post(house, "retry", operator, None)
        assert retried["parked"]["version"] == 1
        skipped = _post(house, "skip", operator, {"version": 1, "reason": "old"})
        assert (skipped["version"], skipped["parked"]) == (3, None)
        assert house.http.get("/v1/failures", headers=headers(operator)).json()["parked"] == []


def _post(house: Application, name: str, token: str, body: object) -> Any:
    answer = house.http.post(f"/v1/namespaces/a/{name}", json=body, headers=headers(token))
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.skipif(CHROMIUM is None, reason=INSTALL)
def test_the_viewer_shows_what_is_parked_and_skips_it_with_a_reason(memory: Recollect, poison: set[int]) -> None:
    poison.add(2)
    memory.append("a", [message(text) for text in ("one", "two", "three")])
    assert parked_at(memory) == 2
    with viewer_server(memory) as (address, _), browser() as chromium:
        viewer = Viewer(chromium, address, size=(390, 844))
        page = viewer.open("health", "a")
        page.get_by_text("ValueError: poisoned").wait_for()
        assert viewer.violations() == []
        page.get_by_role("button", name="Retry").click()
        page.get_by_text("Version 1 of 3, parked at 2").first.wait_for()
        page.get_by_label("Why version 2 is left out").fill("a payload of an old release")
        page.keyboard.press("Enter")
        page.get_by_text("Failures: 0").wait_for()
        assert texts(memory) == ["one", "three"]
