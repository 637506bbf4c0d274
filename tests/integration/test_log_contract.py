"""What every backend of the log promises. A further backend joins by another entry in `BACKENDS`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import message_draft
from support.postgres import new_database

from recollect.api.pages.list_pages import list_events
from recollect.events.backends.log import EventLog, each_head, version_recorded_by
from recollect.events.backends.open_log import open_log
from recollect.events.chain import GENESIS
from recollect.events.envelope import Head
from recollect.events.errors import (
    EventIdConflict,
    InvalidEvent,
    InvalidNamespace,
    NotSupported,
    StorageError,
    TooLarge,
    VersionConflict,
)
from recollect.events.integrity.verify import verify
from recollect.events.limits import READ_BYTES_MAX

BACKENDS = ("postgres", "sqlite")


@pytest.fixture(params=BACKENDS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], EventLog]:
    url = new_log(request.param, request, tmp_path)
    return lambda: open_log(url)


def new_log(backend: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the URL of a log that is not there yet."""
    if backend == "sqlite":
        return f"sqlite:///{folder / 'log.db'}"
    return new_database(request.getfixturevalue("postgres_url"))


@pytest.fixture
def log(reopen: Callable[[], EventLog]) -> Generator[EventLog]:
    log = reopen()
    yield log
    log.close()


def texts(log: EventLog, namespace: str) -> list[str]:
    return [event.data()["text"] for event in log.read(namespace)]


def test_versions_are_1_2_3_within_each_namespace(log: EventLog) -> None:
    for namespace in ("a", "b", "a", "b", "a"):
        log.append(namespace, [message_draft("x")])

    assert [event.version for event in log.read("a")] == [1, 2, 3]
    assert [event.version for event in log.read("b")] == [1, 2]


def test_the_version_at_a_time_is_the_last_one_recorded_by_then(log: EventLog) -> None:
    for count in (1, 3, 1, 1, 2):
        log.append("a", [message_draft("x") for _ in range(count)])
    times = [event.recorded_at_us for event in log.read("a")]
    for at_us in [moment for time in times for moment in (time - 1, time, time + 1)]:
        assert version_recorded_by(log, "a", at_us) == sum(time <= at_us for time in times)
    assert version_recorded_by(log, "nobody", times[-1]) == 0


def test_what_was_appended_is_read_back_as_it_was(log: EventLog) -> None:
    draft = message_draft(
        "café 東京 🙂",
        id="e1",
        session_id="s",
        actor="ann",
        causation_id="c",
        correlation_id="r",
        occurred_at="2026-01-02T03:04:05.678901+02:00",
    )
    [appended] = log.append("a", [draft])
    [event] = log.read("a")

    assert event.id == appended.id == "e1"
    assert event.data() == {"role": "user", "text": "café 東京 🙂"}
    assert event.as_json()["occurred_at"] == "2026-01-02T03:04:05.678901+02:00"
    assert (event.session_id, event.actor, event.causation_id, event.correlation_id) == ("s", "ann", "c", "r")
    assert event.hash == appended.hash == log.head("a").hash


def test_an_event_without_an_id_gets_a_uuid_and_is_found_by_it(log: EventLog) -> None:
    [appended] = log.append("a", [message_draft("x")])
    found = log.find("a", appended.id)

    assert len(appended.id) == 36
    assert found is not None
    assert found.version == 1
    assert log.find("b", appended.id) is None
    assert log.find("a", "nobody") is None


def test_acknowledged_events_survive_reopening(reopen: Callable[[], EventLog]) -> None:
    log = reopen()
    log.append("a", [message_draft("kept")])
    log_id = log.log_id
    log.close()

    log = reopen()
    assert texts(log, "a") == ["kept"]
    assert log.log_id == log_id
    log.close()


def test_the_same_id_and_content_again_is_the_same_event(log: EventLog) -> None:
    first = log.append("a", [message_draft("x", id="e1"), message_draft("y", id="e2")])
    again = log.append("a", [message_draft("y", id="e2"), message_draft("z", id="e3"), message_draft("x", id="e1")])

    assert [one.version for one in first] == [1, 2]
    assert [(one.version, one.duplicate) for one in again] == [(2, True), (3, False), (1, True)]
    assert log.head("a").version == 3


def test_the_same_id_with_other_content_is_refused_and_the_whole_batch_with_it(log: EventLog) -> None:
    log.append("a", [message_draft("x", id="e1")])

    with pytest.raises(EventIdConflict, match="e1"):
        log.append("a", [message_draft("new"), message_draft("other", id="e1")])
    assert texts(log, "a") == ["x"]


def test_the_same_id_twice_in_one_batch_is_recorded_once_or_refused(log: EventLog) -> None:
    [first, second] = log.append("a", [message_draft("x", id="e1"), message_draft("x", id="e1")])
    assert (first.duplicate, second.duplicate) == (False, True)

    with pytest.raises(EventIdConflict):
        log.append("a", [message_draft("y", id="e2"), message_draft("z", id="e2")])
    assert log.head("a").version == 1


def test_an_id_is_taken_in_its_namespace_only(log: EventLog) -> None:
    log.append("a", [message_draft("x", id="e1")])
    [other] = log.append("b", [message_draft("y", id="e1")])
    assert (other.version, other.duplicate) == (1, False)


@pytest.mark.parametrize("event_id", ["0198c5d2-7f1e-7c3a-9b7e-0123456789ab", "0198C5D2-7F1E-7C3A-9B7E-0123456789AB"])
def test_ids_come_back_letter_for_letter(log: EventLog, event_id: str) -> None:
    log.append("a", [message_draft("x", id=event_id)])
    assert log.read("a")[0].id == event_id


def test_an_append_at_the_expected_version_goes_in_and_any_other_is_refused(log: EventLog) -> None:
    log.append("a", [message_draft("x")], expected_version=0)

    with pytest.raises(VersionConflict) as refused:
        log.append("a", [message_draft("y")], expected_version=0)
    assert (refused.value.expected, refused.value.actual) == (0, 1)
    log.append("a", [message_draft("y")], expected_version=1)
    assert texts(log, "a") == ["x", "y"]


def test_a_retry_of_an_expected_append_is_a_duplicate_not_a_conflict(log: EventLog) -> None:
    log.append("a", [message_draft("x", id="e1")], expected_version=0)
    [again] = log.append("a", [message_draft("x", id="e1")], expected_version=0)
    assert again.duplicate


def test_only_one_of_many_racing_for_the_same_version_wins(log: EventLog) -> None:
    outcomes: list[str] = []

    def race(number: int) -> None:
        try:
            log.append("a", [message_draft(str(number))], expected_version=0)
            outcomes.append("won")
        except VersionConflict:
            outcomes.append("lost")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 15 + ["won"]


def test_racing_writers_leave_no_gap_while_readers_watch(log: EventLog) -> None:
    done = threading.Event()
    gaps: list[tuple[int, int]] = []

    def watch() -> None:
        seen = 0
        while not done.is_set():
            for event in log.read("a", after=seen):
                if event.version != seen + 1:
                    gaps.append((seen, event.version))
                seen = event.version

    def write(writer: int) -> None:
        for number in range(50):
            log.append("a", [message_draft(f"{writer}.{number}.{part}") for part in range(3)])

    watcher = threading.Thread(target=watch)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    watcher.start()
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    watcher.join()

    assert gaps == []
    assert log.head("a").version == 600
    # A batch stays together.
    stored = [event.data()["text"].rpartition(".") for event in log.read("a")]
    assert all(stored[at][0] == stored[at + 2][0] for at in range(0, 600, 3))
    assert verify(log, "a").is_intact


def test_a_refused_append_burns_no_version(log: EventLog) -> None:
    log.append("a", [message_draft("x", id="e1")])
    with pytest.raises(EventIdConflict):
        log.append("a", [message_draft("y"), message_draft("z", id="e1")])
    [after] = log.append("a", [message_draft("w")])
    assert after.version == 2


async def test_many_tasks_append_at_once_and_each_gets_its_own_answer(log: EventLog) -> None:
    async def one(number: int) -> int:
        [appended] = await log.append_async("a", [message_draft(str(number), id=str(number))])
        return appended.version

    versions = await asyncio.gather(*(one(number) for number in range(200)))
    assert sorted(versions) == list(range(1, 201))
    by_version = {event.version: event.id for event in log.read("a")}
    assert all(by_version[version] == str(number) for number, version in enumerate(versions))


def test_a_cancelled_wait_loses_nothing_else(log: EventLog) -> None:
    async def both() -> int:
        given_up = asyncio.create_task(log.append_async("a", [message_draft("x")]))
        kept = asyncio.create_task(log.append_async("a", [message_draft("y")]))
        await asyncio.sleep(0)
        given_up.cancel()
        return (await kept)[0].version

    assert asyncio.run(both()) == 2


def test_heads_name_every_namespace_in_pages_by_name(log: EventLog) -> None:
    for namespace in ("c", "a", "b"):
        log.append(namespace, [message_draft("x")])
    log.append("b", [message_draft("y")])

    assert [(head.namespace, head.version) for head in each_head(log)] == [("a", 1), ("b", 2), ("c", 1)]
    assert [head.namespace for head in log.heads(after="a", limit=1)] == ["b"]
    assert log.head("nobody") == Head("nobody", 0, GENESIS)
    assert log.read("nobody") == []


def test_listeners_hear_of_each_namespace_with_news_and_of_no_other(log: EventLog) -> None:
    heard: list[str] = []
    log.on_append(heard.append)
    log.append("a", [message_draft("x", id="e1")])
    log.append("a", [message_draft("x", id="e1")])
    assert heard == ["a"]


def test_reading_pages_through_after_and_limit(log: EventLog) -> None:
    log.append("a", [message_draft(str(number)) for number in range(10)])
    assert [event.version for event in log.read("a", after=3, limit=4)] == [4, 5, 6, 7]
    assert log.read("a", after=10) == []


def test_a_page_of_large_events_is_shorter_and_the_next_pages_have_the_rest(log: EventLog) -> None:
    payload_bytes = 1_000_000
    for _ in range(4):
        log.append("a", [message_draft("x" * payload_bytes)] * 10)
    first = log.read("a", limit=100)
    assert READ_BYTES_MAX <= sum(len(event.payload) for event in first) < READ_BYTES_MAX + 2 * payload_bytes
    page = list_events(log, "a", "", 100)
    assert page["next"] == str(first[-1].version)
    rest = list_events(log, "a", str(first[-1].version), 100)
    assert len(page["items"]) + len(rest["items"]) == 40
    assert rest["next"] is None
    if log.archive is not None:
        log.archive.seal(log, "a")
        log.prune("a")
        sealed = log.read("a", limit=100)
        assert [event.version for event in sealed] == list(range(1, len(sealed) + 1))
        assert sealed + log.read("a", after=len(sealed), limit=100) == first + log.read(
            "a", after=len(first), limit=100
        )


@pytest.mark.parametrize("namespace", ["", ".", "..", "a/b", "a\\b", "ä", "a b", "a\n", "a" * 201, "\0"])
def test_names_that_could_leave_the_folder_are_refused(log: EventLog, namespace: str) -> None:
    with pytest.raises(InvalidNamespace):
        log.append(namespace, [message_draft("x")])
    assert log.heads() == []


def test_batches_without_events_or_with_too_many_are_refused(log: EventLog) -> None:
    with pytest.raises(InvalidEvent):
        log.append("a", [])
    with pytest.raises(TooLarge):
        log.append("a", [message_draft("x")] * 1_001)
    assert log.head("a").version == 0


def test_a_closed_log_says_so(reopen: Callable[[], EventLog]) -> None:
    log = reopen()
    log.close()
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.append("a", [message_draft("x")])
    with pytest.raises(StorageError, match="closed"):
        log.read("a")


def test_time_of_recording_never_goes_back_within_a_namespace(log: EventLog) -> None:
    log.append("a", [message_draft(str(number)) for number in range(5)])
    log.append("a", [message_draft("x")])
    times = [event.recorded_at_us for event in log.read("a")]
    assert times == sorted(times)


#: (id, text) of an event; its batch; the expected version.
_Event = tuple[str | None, str]
_Append = tuple[str, list[_Event], int | None]
_EVENTS = st.tuples(st.sampled_from(["i", "j", "k", None]), st.sampled_from(["x", "y"]))
_APPENDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.lists(_EVENTS, min_size=1, max_size=4), st.one_of(st.none(), st.integers(0, 6))
    ),
    max_size=12,
)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(appends=_APPENDS)
def test_any_sequence_of_appends_behaves_like_the_simplest_model_of_a_log(
    backend: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, appends: list[_Append]
) -> None:
    # A fresh log for every example.
    log = open_log(new_log(backend, request, tmp_path_factory.mktemp("log")))
    model: dict[str, list[_Event]] = {"a": [], "b": []}
    for namespace, batch, expected in appends:
        drafts = [message_draft(text, **({} if name is None else {"id": name})) for name, text in batch]
        wanted = _model_append(model[namespace], batch, expected)
        try:
            recorded: list[tuple[int, bool]] | str = [
                (one.version, one.duplicate) for one in log.append(namespace, drafts, expected_version=expected)
            ]
        except (EventIdConflict, VersionConflict) as error:
            recorded = type(error).__name__
        assert recorded == wanted
    for namespace, events in model.items():
        assert texts(log, namespace) == [text for _, text in events]
        assert verify(log, namespace).is_intact
    log.close()


def _model_append(events: list[_Event], batch: list[_Event], expected: int | None) -> list[tuple[int, bool]] | str:
    staged = [*events]
    answers: list[tuple[int, bool]] = []
    for name, text in batch:
        known = next((at for at, event in enumerate(staged) if name is not None and event[0] == name), None)
        if known is not None:
            if staged[known][1] != text:
                return "EventIdConflict"
            answers.append((known + 1, True))
            continue
        if expected not in (None, len(events)):
            return "VersionConflict"
        staged.append((name, text))
        answers.append((len(staged), False))
    events[:] = staged
    return answers


def test_a_log_prunes_into_its_archive_or_refuses_to(log: EventLog) -> None:
    log.append("a", [message_draft(f"{number}") for number in range(20)])
    before = log.read("a")
    assert log.pruned("a") == log.pruned("nobody") == 0

    if log.archive is None:
        with pytest.raises(NotSupported, match="SQLite"):
            log.prune("a")
    else:
        assert log.prune("a") == 0
        log.archive.seal(log, "a")
        log.append("a", [message_draft("not sealed")])
        assert log.prune("a") == log.pruned("a") == 20
        assert log.prune("a") == 0
    log.shrink()
    assert log.read("a", limit=20) == before
    assert log.pruned("nobody") == 0


def test_a_log_knows_the_size_of_its_files_unless_a_server_keeps_them(log: EventLog, tmp_path: Path) -> None:
    log.append("a", [message_draft("x" * 100_000)])
    files = list(tmp_path.glob("log.db*"))

    assert log.size_bytes() == (sum(file.stat().st_size for file in files) if files else None)
