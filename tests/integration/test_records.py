"""What is known of jobs: one contract, in a file and in Redis."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from support.redis import RedisServer

from recollect.events.envelope import now_us
from recollect.jobs.following.cursor import Cursor
from recollect.jobs.queue.broker import open_run_store
from recollect.jobs.queue.run_store import (
    HEARTBEAT_SECONDS_MAX,
    DeadLetter,
    Finished,
    Heartbeat,
    RunStore,
    new_heartbeat,
)

_STALE_US = 1_000


@pytest.fixture(params=["file", "redis"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[RunStore]:
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        server.flush()
    url = request.getfixturevalue("redis_server").url if request.param == "redis" else "memory://"
    records = open_run_store(url, tmp_path)
    yield records
    records.close()


def letter(id: str, died_us: int = 1) -> DeadLetter:
    arguments = ("compact", 1, "")
    return DeadLetter(id=id, queue="think", actor="run", arguments=arguments, failed_at_us=died_us, error="it broke")


def test_a_slot_is_claimed_once(records: RunStore) -> None:
    assert records.claim("compact", 100, 1_000, _STALE_US)
    assert not records.claim("compact", 100, 1_500, _STALE_US)
    assert records.claim("compact", 200, 1_500, _STALE_US)
    assert records.claim("repair", 100, 1_500, _STALE_US)


def test_of_many_who_claim_a_slot_one_gets_it(records: RunStore) -> None:
    got: list[bool] = []
    threads = [
        threading.Thread(target=lambda: got.append(records.claim("compact", 100, 1_000, _STALE_US))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]


def test_a_slot_that_nobody_goes_on_with_is_taken_up_again(records: RunStore) -> None:
    assert records.claim("compact", 100, 1_000, _STALE_US)
    records.record_progress("compact", 100, 1_900)
    assert not records.claim("compact", 100, 2_500, _STALE_US)
    assert records.claim("compact", 100, 2_900, _STALE_US)
    records.end("compact", 100, 3_000)
    assert not records.claim("compact", 100, 9_000, _STALE_US)


def test_the_last_run_of_every_job_is_told(records: RunStore) -> None:
    for slot_us in (100, 200):
        records.claim("compact", slot_us, 1_000 + slot_us, _STALE_US)
    records.record_progress("compact", 200, 1_300, events=3)
    records.record_progress("compact", 200, 1_400, error="a: the disk is full")
    records.end("compact", 200, 1_500)
    (run,) = records.runs()
    assert (run.scheduled_at_us, run.started_at_us, run.progressed_at_us, run.ended_at_us) == (200, 1_200, 1_400, 1_500)
    assert (run.namespaces, run.events, run.errors, run.error) == (2, 3, 1, "a: the disk is full")


def test_attempts_are_counted_until_the_work_is_done(records: RunStore) -> None:
    assert [records.add_attempt("m"), records.add_attempt("m"), records.add_attempt("other")] == [1, 2, 1]
    records.clear_attempts("m")
    assert records.add_attempt("m") == 1


def test_dead_letters_are_kept_until_somebody_takes_them(records: RunStore) -> None:
    records.add_dead_letter(letter("b", 2))
    records.add_dead_letter(letter("a", 1))
    assert records.dead_letters() == [letter("a", 1), letter("b", 2)]
    assert records.pop_dead_letter("a") == letter("a", 1)
    assert records.pop_dead_letter("a") is None
    assert [one.id for one in records.dead_letters()] == ["b"]


def test_who_is_not_heard_of_any_more_is_dead(records: RunStore) -> None:
    now = now_us()
    beat = new_heartbeat("worker", now)
    records.heartbeat(beat)
    assert records.heartbeats() == [beat]
    assert beat.is_alive(now)
    assert not beat.is_alive(now + int(HEARTBEAT_SECONDS_MAX * 1_000_000))
    records.heartbeat(Heartbeat(id=beat.id, role=beat.role, host=beat.host, pid=beat.pid, seen_at_us=now + 1))
    assert [one.seen_at_us for one in records.heartbeats()] == [now + 1]
    records.deregister(beat.id)
    assert records.heartbeats() == []


def test_the_state_of_a_namespace_is_the_last_one_of_each_job(records: RunStore) -> None:
    first, later = (Finished(namespace_key="ab" * 16, version=version, basis="cd" * 8, due_us=9) for version in (4, 5))
    other = Finished(namespace_key="ef" * 16, version=1, basis="cd" * 8, due_us=None)
    records.record_finished("compact", [first, other])
    records.record_finished("compact", [later])
    records.record_finished("retain", [])
    assert records.finished("compact", ["ab" * 16, "00" * 16, "ef" * 16]) == {"ab" * 16: later, "ef" * 16: other}
    assert records.finished("retain", ["ab" * 16]) == {}
    assert records.finished("compact", []) == {}
    assert later.is_idle(5, "cd" * 8, 8)
    assert not later.is_idle(5, "cd" * 8, 9)
    assert not later.is_idle(6, "cd" * 8, 8)
    assert not later.is_idle(5, "00" * 8, 8)


def test_a_cursor_is_stored_by_name_and_namespace_and_can_be_set_back_and_removed(records: RunStore) -> None:
    assert records.cursor("follow crm", "n1") is None
    cursors = {"n1": Cursor(position=7), "n2": Cursor(position=9, erasure_version=3, failures=2, retry_at_us=5)}
    for key, cursor in cursors.items():
        records.set_cursor("follow crm", key, cursor)
    assert records.cursors("follow crm") == cursors
    assert records.cursors("follow other") == {}
    records.set_cursor("follow crm", "n1", Cursor(position=0))
    assert records.cursor("follow crm", "n1") == Cursor(position=0)
    records.set_cursor("follow crm", "n1", None)
    assert list(records.cursors("follow crm")) == ["n2"]
