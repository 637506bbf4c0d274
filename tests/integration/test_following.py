"""Followers: get each event of a namespace at least once, in order, from their cursor on; and what events changed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import recollect
from support.events import message, message_draft
from support.postgres import new_database
from support.server import command
from support.waiting import eventually

from recollect import AsyncRecollect, Recollect
from recollect.api.settings import Settings, load_settings
from recollect.events.errors import InvalidInput, ProjectionFailed
from recollect.events.validation import drafts
from recollect.jobs.following.feed import PAGE_EVENTS, Feed
from recollect.jobs.following.follower import Follower


def settings(folder: Path, **values: str) -> Settings:
    return load_settings(data=folder, embedding_model="none", **values)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        yield memory


def say(memory: Recollect, *texts: str, namespace: str = "a") -> list[str]:
    """Append messages of Ann, and return their ids."""
    return [event.id for text in texts for event in memory.append(namespace, message(text, name="Ann"))]


def texts(items: Iterator[dict[str, Any]], count: int) -> list[str]:
    return [item["payload"]["text"] for item in islice(items, count)]


def test_a_follower_gets_what_is_appended_while_it_waits(memory: Recollect) -> None:
    say(memory, "before")
    items = memory.follow("a")
    timer = threading.Timer(0.05, say, (memory, "after"))
    timer.start()
    assert texts(items, 1) == ["after"]
    timer.join()


def test_a_cursor_is_stored_when_the_next_item_is_asked_for(tmp_path: Path) -> None:
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        say(memory, "one", "two", "three")
        assert texts(memory.follow("a", cursor="crm", after=0), 2) == ["one", "two"]
        # The second one was not handled yet.
        assert texts(memory.follow("a", cursor="crm"), 2) == ["two", "three"]
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        assert texts(memory.follow("a", cursor="crm", after=0), 1) == ["three"]
        assert texts(memory.follow("a", cursor="other", after=0), 1) == ["one"]


def test_a_new_cursor_without_a_position_begins_at_the_end_and_stays_there(memory: Recollect) -> None:
    say(memory, "before")
    memory.follow("a", cursor="crm")
    say(memory, "after")
    assert texts(memory.follow("a", cursor="crm"), 1) == ["after"]


def test_following_ends_when_the_memory_is_closed(tmp_path: Path) -> None:
    memory = Recollect(settings=settings(tmp_path), workers=False)
    say(memory, "one")
    items = memory.follow("a", after=0)
    assert texts(items, 1) == ["one"]
    threading.Timer(0.1, memory.close).start()
    assert list(items) == []


def test_only_the_given_types_come_and_the_cursor_passes_the_others(memory: Recollect) -> None:
    say(memory, *["x"] * (PAGE_EVENTS + 5))
    memory.append("a", {"type": "session.ended", "session_id": "s", "payload": {"summary": "Bye."}})
    items = memory.follow("a", cursor="ends", after=0, types=["session.ended"])
    assert next(items)["version"] == PAGE_EVENTS + 6
    say(memory, "y")
    memory.append("a", {"type": "session.ended", "session_id": "t", "payload": {}})
    assert next(items)["session_id"] == "t"


def test_arguments_that_name_nothing_are_refused(memory: Recollect) -> None:
    say(memory, "one")
    wrong: list[dict[str, Any]] = [{"types": ["x.y"]}, {"cursor": "a b"}, {"after": 2}, {"after": -1}]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            memory.follow("a", **arguments)
    with pytest.raises(InvalidInput):
        memory.follow("a", types=["message.added"], knowledge=True)


def test_the_text_of_an_erased_event_never_comes_also_of_a_page_that_was_read_before(memory: Recollect) -> None:
    ids = say(memory, *[f"text {number}" for number in range(6)])
    items = memory.follow("a", after=0)
    assert texts(items, 1) == ["text 0"]
    memory.erase("a", event_ids=[ids[0], ids[3]])
    time.sleep(1.1)
    following = [item.get("payload", {}).get("text") for item in islice(items, 5)]
    # The second item was given out of the page; it ends after a second, and the rest is read again.
    assert following[:4] == ["text 1", "text 2", "text 4", "text 5"]
    assert following[4] is None
    assert texts(memory.follow("a", after=0), 2) == ["text 1", "text 2"]


def test_asyncio_has_the_same(tmp_path: Path) -> None:
    async def follow() -> list[str]:
        async with AsyncRecollect(settings=settings(tmp_path), workers=False) as memory:
            await memory.append("a", [message("one"), message("two")])
            seen: list[str] = []
            async for item in memory.follow("a", cursor="c", after=0):
                seen.append(item["payload"]["text"])
                if len(seen) == 2:
                    break
            assert memory.memory.follow("a", cursor="c").__next__()["payload"]["text"] == "two"
            return seen

    assert asyncio.run(follow()) == ["one", "two"]


@pytest.fixture(params=["sqlite", "postgres"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Recollect]:
    """Open a memory whose log is in SQLite or in PostgreSQL."""
    url = "" if request.param == "sqlite" else new_database(request.getfixturevalue("postgres_url"))
    chosen = settings(tmp_path, **({"log": url} if url else {}))
    return lambda: Recollect(settings=chosen, workers=False)


def test_a_follower_passes_no_append_that_is_in_progress(open_memory: Callable[[], Recollect]) -> None:
    with open_memory() as memory:
        writers = [
            threading.Thread(target=lambda: [memory.parts.log.append("a", [message_draft("x")] * 3) for _ in range(8)])
            for _ in range(4)
        ]
        items = memory.follow("a", after=0)
        for writer in writers:
            writer.start()
        assert [item["version"] for item in islice(items, 96)] == list(range(1, 97))
        for writer in writers:
            writer.join()


@pytest.fixture(scope="module")
def long_memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recollect]:
    with Recollect(settings=settings(tmp_path_factory.mktemp("long")), workers=False) as memory:
        ids = [f"e{number}" for number in range(250)]
        memory.append("a", [message(f"text {id}", id=id) for id in ids])
        memory.erase("a", event_ids=ids[40:50])
        yield memory


@given(after=st.integers(0, 251), count=st.integers(0, 251))
def test_from_any_cursor_a_follower_yields_the_rest_of_the_log(long_memory: Recollect, after: int, count: int) -> None:
    log = long_memory.parts.log.read("a")
    expected = [event.version for event in log if event.version > after and not event.is_erased][:count]
    assert [item["version"] for item in islice(long_memory.follow("a", after=after), len(expected))] == expected


# -- changes of knowledge ---------------------------------------------------------------------------------------------


def changes(memory: Recollect, namespace: str = "a") -> list[dict[str, Any]]:
    """Return all changes of knowledge up to now."""
    feed = Feed(memory.parts.log, memory.parts.read_models, namespace, knowledge=True)
    return [item for _, item in feed.page(0).items]


def short(items: list[dict[str, Any]]) -> list[tuple[str, str, str, str | None, str | None]]:
    return [(item["kind"], item["change"], item["predicate"], item["old"], item["new"]) for item in items]


def test_a_move_and_the_end_of_a_job_are_changes_with_the_old_and_the_new_value(memory: Recollect) -> None:
    for text in ("I live in Porto.", "I work at Siemens.", "I moved to Graz last week.", "I quit my job at Siemens."):
        say(memory, text)
        memory.settle("a")
    found = changes(memory)
    assert [change for change in short(found) if change[2] != "says"] == [
        ("fact", "added", "lives in", None, "Porto"),
        ("fact", "added", "works at", None, "Siemens"),
        ("fact", "replaced", "lives in", "Porto", "Graz"),
        ("fact", "ended", "works at", "Siemens", None),
    ]
    replaced = next(change for change in found if change["change"] == "replaced")
    event = memory.parts.log.read("a", after=replaced["position"] - 1, limit=1)[0]
    assert (replaced["event_id"], replaced["subject"]) == (event.id, "Ann")
    assert replaced["source_events"] == [memory.parts.log.read("a", after=4, limit=1)[0].id]
    statuses = {fact["id"]: fact["status"] for fact in memory.facts("a")["items"]}
    assert [statuses[replaced[name]] for name in ("old_id", "new_id")] == ["superseded", "active"]


def test_tasks_preferences_and_corrections_are_changes_of_their_own(memory: Recollect) -> None:
    stated = {"subject": "Ann", "predicate": "needs to", "object": "call the dentist", "type": "task"}
    [task] = memory.append("a", {"type": "fact.stated", "payload": stated})
    memory.append("a", {"type": "memory.ended", "payload": {"memory_id": task.id}})
    preference = {"category": "communication", "key": "answers"}
    memory.append("a", {"type": "preference.stated", "payload": preference | {"value": "long"}})
    memory.append("a", {"type": "preference.stated", "payload": preference | {"value": "short"}})
    [home] = memory.append(
        "a", {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Linz"}}
    )
    memory.update("a", home.id, object="Wels")
    assert short(changes(memory)) == [
        ("task", "added", "needs to", None, "call the dentist"),
        ("task", "ended", "needs to", "call the dentist", None),
        ("preference", "added", "answers", None, "long"),
        ("preference", "replaced", "answers", "long", "short"),
        ("fact", "added", "lives in", None, "Linz"),
        ("fact", "corrected", "lives in", "Linz", "Wels"),
    ]


def test_a_forgotten_value_is_in_no_change_and_its_undo_adds_it_again(memory: Recollect) -> None:
    [home] = memory.append(
        "a", {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Linz"}}
    )
    forgotten = memory.forget("a", home.id)
    assert short(changes(memory)) == [
        ("fact", "added", "lives in", None, None),
        ("fact", "forgotten", "lives in", None, None),
    ]
    assert [change["old_id"] for change in changes(memory)] == [None, home.id]
    memory.undo("a", forgotten["event_id"])
    assert short(changes(memory))[-1] == ("fact", "added", "lives in", None, "Linz")


def test_what_was_derived_from_an_erased_message_is_in_no_change(memory: Recollect) -> None:
    [id] = say(memory, "I live in Porto.")
    memory.settle("a")
    assert any(change["new"] == "Porto" for change in changes(memory))
    memory.erase("a", event_ids=[id])
    assert "Porto" not in json.dumps(changes(memory))


def test_a_replay_gives_the_same_changes(memory: Recollect) -> None:
    for text in ("I live in Porto and I love tea.", "I moved to Graz.", "I don't like tea any more."):
        say(memory, text)
        memory.settle("a")
    before = changes(memory)
    memory.replay("a")
    assert changes(memory) == before != []


def test_a_cursor_passes_an_event_when_all_its_changes_are_handled(memory: Recollect) -> None:
    facts = [{"subject": "Ann", "predicate": "likes", "object": name, "source_events": ["m"]} for name in "xyz"]
    payload = {"source_events": ["m"], "extractor": "rules", "facts": facts}
    memory.parts.log.append("a", drafts([{"type": "facts.extracted", "payload": payload}]))
    feed = Feed(memory.parts.log, memory.parts.read_models, "a", knowledge=True)
    follower = Follower(feed, memory.parts.run_store, cursor="c", after=0)
    assert [position for position, _ in follower.batch()] == [None, None, 1]
    assert [item["new"] for item in islice(memory.follow("a", cursor="c", knowledge=True), 2)] == ["x", "y"]
    assert next(memory.follow("a", cursor="c", knowledge=True))["new"] == "x"


def test_changes_stop_at_an_event_that_cannot_be_projected(memory: Recollect, monkeypatch: pytest.MonkeyPatch) -> None:
    say(memory, "one")

    def fail(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("recollect.projections.projector.projector.apply_event", fail)
    with pytest.raises(ProjectionFailed):
        next(memory.follow("a", after=0, knowledge=True))


# -- the command ------------------------------------------------------------------------------------------------------


def test_a_follower_that_is_killed_misses_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    data, count = tmp_path / "data", 0
    seen: list[list[int]] = []
    for round in range(3):
        output = tmp_path / f"lines-{round}"
        with (
            Recollect(settings=settings(data), workers=False) as memory,
            output.open("wb") as stdout,
            command("follow", "a", "--cursor", "crm", "--from-start", data=data, stdout=stdout.fileno()) as process,
        ):
            before = count
            while len(versions(output)) < 20:
                say(memory, *["x"] * 4)
                count += 4
            process.signal(signal.SIGKILL)
            process.wait(30)
        seen.append(versions(output))
        assert seen[-1] == list(range(seen[-1][0], seen[-1][-1] + 1))
        assert count > before
    for former, latter in pairwise(seen):
        assert former[-1] <= latter[0] <= former[-1] + 1


def versions(path: Path) -> list[int]:
    """Return the versions of the whole lines of a file."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["version"] for line in lines]


def test_an_interrupt_ends_the_command_and_each_follower_is_in_the_audit_log(tmp_path: Path) -> None:
    data, output = tmp_path / "data", tmp_path / "lines"
    with closing(Recollect(settings=settings(data), workers=False)) as memory:
        memory.append(
            "a", {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "likes", "object": "tea\x9b"}}
        )
    with (
        output.open("wb") as stdout,
        command("follow", "a", "--from-start", "--knowledge", data=data, stdout=stdout.fileno()) as process,
    ):
        eventually(lambda: output.stat().st_size > 0)
        process.signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert b"\x9b" not in output.read_bytes()
    assert json.loads(output.read_text())["new"] == "tea\x9b"
    assert "recollect follow" in recollect("audit", data=data).stdout


def test_a_reader_that_goes_away_ends_the_command(tmp_path: Path) -> None:
    with closing(Recollect(settings=settings(tmp_path), workers=False)) as memory:
        say(memory, *["x"] * 3)
    reading, writing = os.pipe()
    with command("follow", "a", "--from-start", data=tmp_path, stdout=writing) as process:
        os.close(writing)
        os.read(reading, 10)
        os.close(reading)
        with closing(Recollect(settings=settings(tmp_path), workers=False)) as memory:
            say(memory, "y")
        assert process.wait(30) == 0


@pytest.mark.long
def test_changes_of_events_that_do_not_fit_into_one_page_all_come(tmp_path: Path) -> None:
    with closing(Recollect(settings=settings(tmp_path), workers=False)) as memory:
        for number in range(40):
            stated = {"subject": "Ann", "predicate": f"wrote {number}", "object": "word " * 190_000}
            memory.append("a", {"type": "fact.stated", "payload": stated})
        changes = islice(memory.follow("a", after=0, knowledge=True), 40)
        assert [change["position"] for change in changes] == [*range(1, 41)]
