"""Workers and schedulers as processes on a real Redis, on their worst days: the outcome is what it would have been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dramatiq
import pytest
from support.events import message
from support.read_models import connection_of
from support.redis import RedisServer
from support.waiting import eventually

from recollect import Recollect
from recollect.api.operations.health import health_report
from recollect.api.settings import Settings, load_settings
from recollect.events.envelope import microseconds, now_us
from recollect.events.validation import drafts
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import ATTEMPTS_MAX, open_broker
from recollect.jobs.queue.due_namespaces import BATCH_NAMESPACES
from recollect.jobs.queue.registry import SCHEDULED_JOBS
from recollect.jobs.queue.run_store import new_heartbeat
from recollect.projections.schema.content_hash import content_hash

NAMESPACES = [f"n{number}" for number in range(2 * BATCH_NAMESPACES + 5)]
#: Long ago enough to be distilled, and in whole seconds, so that every run of these tests has the same log.
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_SAID = ("I live in Porto.", "We painted the kitchen green.", "My dog is called Rex.", "The tram was late again.")


def fill(memory: Recollect) -> None:
    for name in NAMESPACES:
        turns = [
            message(
                f"{_SAID[at % len(_SAID)]} ({at})",
                id=f"{name}:{at}",
                session_id=f"s{at // 6}",
                name=("Ann", "Bob")[at % 2],
                occurred_at=_START + timedelta(minutes=at),
            )
            for at in range(12)
        ]
        memory.parts.log.append(name, drafts(turns))


def content(memory: Recollect, name: str) -> str:
    """Return what the read model says; the log's own id, which differs between logs, is left out."""
    memory.parts.read_models.catch_up(name)
    with memory.parts.read_models.reading(name) as snapshot:
        return "\n".join(
            str(row)
            for table in (
                "episodes",
                "episode_sources",
                "facts",
                "preferences",
                "entities",
                "mentions",
            )
            for row in connection_of(snapshot).execute(f"SELECT * FROM {table} ORDER BY 1, 2")
        )


def events_of(memory: Recollect) -> dict[str, list[str]]:
    return {name: [event.id for event in memory.parts.log.read(name, after=0, limit=1_000)] for name in NAMESPACES}


def settings_for(folder: Path, redis: RedisServer, model: str, **limits: float) -> Settings:
    limits = {"slot_stale_seconds": 3, "sweep_seconds": 1} | limits
    return load_settings(data=folder, broker=redis.url, embedding_model=model, **limits)


class Processes:
    """Workers and schedulers of one folder."""

    def __init__(self, folder: Path, redis: RedisServer, model: str) -> None:
        self._environment = os.environ | {
            "RECOLLECT_DATA": str(folder),
            "RECOLLECT_BROKER": redis.url,
            "RECOLLECT_EMBEDDING_MODEL": model,
            "RECOLLECT_SLOT_STALE_SECONDS": "3",
            "RECOLLECT_SWEEP_SECONDS": "1",
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, role: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "from recollect.api.cli.main import run; run()", role]
        process = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self.running.remove(process)

    def stop_all(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running.clear()


@contextmanager
def memory_of(settings: Settings) -> Generator[Recollect]:
    with Recollect(settings=settings, workers=False) as memory:
        yield memory


def begin(memory: Recollect, redis: RedisServer, slot_us: int) -> None:
    """Begin the nightly compaction of a slot, as a scheduler does."""
    memory.parts.run_store.claim("compact", slot_us, now_us(), 10**12)
    broker = open_broker(memory.parts.run_store, memory.parts.settings.queue.broker)
    declare_actors(broker, memory.parts.job_context, memory.parts.run_store).run.send("compact", slot_us, "")
    broker.close()


def compacted(memory: Recollect) -> bool:
    for name in NAMESPACES:
        memory.parts.read_models.catch_up(name)
        with memory.parts.read_models.reading(name) as snapshot:
            counts = (
                connection_of(snapshot)
                .execute(
                    "SELECT count(*) FILTER (WHERE tier = 'raw'), count(*) FILTER (WHERE tier = 'distilled') "
                    "FROM episodes"
                )
                .fetchall()
            )
            if counts != [(0, 2)]:
                return False
    return True


@pytest.fixture
def redis(redis_server: RedisServer) -> Generator[RedisServer]:
    redis_server.flush()
    yield redis_server
    redis_server.stop()
    redis_server.start()


@pytest.mark.long
def test_a_nightly_run_among_kills_and_flushes_leaves_what_an_undisturbed_one_does(
    tmp_path: Path, redis: RedisServer, seed: int, outage_seconds: float
) -> None:
    slot_us = microseconds(_START + timedelta(days=20))
    with memory_of(load_settings(data=tmp_path / "calm", embedding_model="none")) as calm:
        fill(calm)
        for name in NAMESPACES:
            calm.compact(name, now=_START + timedelta(days=20))
        expected = {name: content(calm, name) for name in NAMESPACES}
        expected_events = events_of(calm)

    chance = random.Random(seed)
    folder = tmp_path / "chaos"
    processes = Processes(folder, redis, "none")
    with memory_of(settings_for(folder, redis, "none")) as memory:
        fill(memory)
        try:
            workers = [processes.start("worker") for _ in range(2)]
            begin(memory, redis, slot_us)
            for disturbance in ("kill", "repeat", "flush", "outage", "kill"):
                time.sleep(chance.uniform(0.3, 1.5))
                if disturbance == "kill":
                    processes.kill(workers.pop(chance.randrange(len(workers))))
                    workers.append(processes.start("worker"))
                elif disturbance == "flush":
                    redis.flush()
                elif disturbance == "outage":
                    redis.stop()
                    time.sleep(outage_seconds)
                    redis.start()
                # Whatever got lost or is under way: begin it again, twice.
                begin(memory, redis, slot_us)
                begin(memory, redis, slot_us)
            try:
                eventually(lambda: compacted(memory))
            except AssertionError:
                pytest.fail(f"not compacted in time; runs: {memory.parts.run_store.runs()}")
        finally:
            processes.stop_all()
        assert events_of(memory) == expected_events
        assert {name: content(memory, name) for name in NAMESPACES} == expected
        assert all(memory.parts.read_models.check(name).is_equal for name in NAMESPACES[:5])
        with memory.parts.read_models.reading("n0") as snapshot:
            assert content_hash(connection_of(snapshot))


@pytest.mark.long
def test_two_schedulers_begin_each_slot_once_and_a_third_goes_on_where_one_was_killed(
    tmp_path: Path, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(tmp_path, redis, "none")
    with memory_of(settings) as memory:
        fill(memory)
        # A slot of the past is known, so that the present one is not the first of this memory.
        for job in SCHEDULED_JOBS:
            memory.parts.run_store.claim(job, 1, 1, 1)
            memory.parts.run_store.end(job, 1, 1)
        processes = Processes(tmp_path, redis, "none")
        try:
            first, _ = processes.start("scheduler"), processes.start("scheduler")
            eventually(lambda: {run.scheduled_at_us > 1 for run in memory.parts.run_store.runs()} == {True})
            processes.kill(first)
            processes.start("worker")
            processes.start("scheduler")
            eventually(lambda: all(run.ended_at_us for run in memory.parts.run_store.runs()))
        finally:
            processes.stop_all()
        runs = {run.job: run for run in memory.parts.run_store.runs()}
        assert runs["compact"].namespaces == runs["repair"].namespaces == len(NAMESPACES)
        assert compacted(memory)
        kinds = [event.type for event in memory.parts.log.read("n0", after=0, limit=1_000)]
        assert kinds.count("episodes.compressed") == kinds.count("episode.distilled") == 2


def test_who_appends_without_workers_tells_those_elsewhere(tmp_path: Path, redis: RedisServer) -> None:
    settings = settings_for(tmp_path, redis, "none", sweep_seconds=3_600.0)
    with memory_of(settings) as memory:
        memory.append("a", message("I live in Porto."))
    with memory_of(settings) as memory:
        assert memory.parts.workers is not None
        assert memory.parts.workers.status()["running"] is False
        assert memory.parts.workers.queue_depths()["project"] == 1


def test_what_is_appended_while_redis_is_away_is_embedded_when_it_is_back(
    tmp_path: Path, redis: RedisServer, tiny_model: str
) -> None:
    settings = settings_for(tmp_path, redis, tiny_model)
    processes = Processes(tmp_path, redis, tiny_model)
    with memory_of(settings) as memory:
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(60)
        try:
            processes.start("worker")
            eventually(lambda: any(beat.role == "worker" for beat in memory.parts.run_store.heartbeats()))
            redis.stop()
            memory.append("a", message("red apples"))
            assert memory.retrieve("a", "apples").items
            time.sleep(1)
            assert any("broker" in problem for problem in health_report(memory.parts)["problems"])
            redis.start()
            eventually(lambda: not memory.parts.backlog.scan(unread=False).behind)
        finally:
            processes.stop_all()


def test_a_message_that_kills_its_worker_each_time_becomes_a_dead_letter(tmp_path: Path, redis: RedisServer) -> None:
    settings = settings_for(tmp_path, redis, "none")
    with memory_of(settings) as memory:
        broker = open_broker(memory.parts.run_store, settings.queue.broker)
        actors = declare_actors(broker, memory.parts.job_context, memory.parts.run_store)
        sent = actors.process_background.send("a")
        for _ in range(ATTEMPTS_MAX):
            # Each worker began, and was killed in the middle.
            memory.parts.run_store.add_attempt(sent.message_id)
        worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=100)
        broker.emit_after("process_boot")
        worker.start()
        try:
            eventually(lambda: [letter.id for letter in memory.parts.run_store.dead_letters()] == [sent.message_id], 20)
        finally:
            worker.stop()
            broker.close()
        assert "the worker died at every attempt" in memory.parts.run_store.dead_letters()[0].error
        assert any("dead letter" in problem for problem in health_report(memory.parts)["problems"])


def test_a_stuck_job_is_ended_and_what_failed_for_good_is_a_dead_letter(tmp_path: Path, redis: RedisServer) -> None:
    settings = settings_for(tmp_path, redis, "none")
    with memory_of(settings) as memory:
        broker = open_broker(memory.parts.run_store, settings.queue.broker, job_seconds_max=0.5)
        let_go = threading.Event()

        def stuck() -> None:
            while not let_go.wait(0.05):
                pass

        # The pauses between the attempts of a job take 1, 2 and 4 seconds; of this one a tenth.
        options = {"min_backoff": 100}
        actor = dramatiq.Actor(
            stuck, broker=broker, actor_name="stuck", queue_name="think", priority=0, options=options
        )
        actor.send()
        worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=100)
        broker.emit_after("process_boot")
        worker.start()
        try:
            eventually(lambda: bool(memory.parts.run_store.dead_letters()), 60)
        finally:
            let_go.set()
            worker.stop()
            broker.close()
        assert "TimeLimitExceeded" in memory.parts.run_store.dead_letters()[0].error


def test_a_worker_that_was_not_heard_of_is_missed_when_work_waits(tmp_path: Path, redis: RedisServer) -> None:
    with memory_of(settings_for(tmp_path, redis, "none")) as memory:
        memory.parts.run_store.heartbeat(new_heartbeat("worker", 1))
        assert any("no worker is alive" in problem for problem in health_report(memory.parts)["problems"])
