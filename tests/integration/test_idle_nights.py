"""A night opens the namespaces with news or with something due, and no other."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.events import message
from support.waiting import eventually

from recollect import Recollect
from recollect.api.assembly.memory_parts import open_parts
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, microseconds, now_us
from recollect.jobs.compaction.due_time import compaction_due_us
from recollect.jobs.queue.due_namespaces import BATCH_NAMESPACES
from recollect.jobs.queue.nightly import compact
from recollect.jobs.queue.workers import Workers

#: More than one batch.
NAMESPACES = [f"n{number:02}" for number in range(BATCH_NAMESPACES + 2)]
#: When the conversations of these tests took place. The nights after them are in the past, too.
SAID_AT = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1_500)


class Nights:
    """A memory whose nights run on its workers, one at a time."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = load_settings(data=folder, embedding_model="none", **settings)
        self.memory = Recollect(settings=self.settings, workers=False)
        self.at_us = microseconds(SAID_AT + timedelta(days=2))

    def run(self, job: str = "compact", *, days: float = 1, in_processes: bool = False) -> tuple[int, int, int]:
        """Run `job` so many days later; return the namespaces and events of the run, and the files it left open."""
        self.at_us += int(days * DAY_US)
        # What is opened by a run of its own is open after it.
        self.memory.close()
        self.memory = Recollect(settings=self.settings, workers=False)
        parts = self.memory.parts
        reopen = partial(open_parts, self.settings, workers=False) if in_processes else None
        workers = Workers(parts.job_context, parts.run_store, parts.backlog, schedule=False, open_parts=reopen)
        workers.allow_night_processes()
        parts.run_store.claim(job, self.at_us, now_us(), 1)
        for worker in workers._workers:  # pyright: ignore[reportPrivateUsage]
            worker.start()
        workers.actors.run.send(job, self.at_us, "")
        try:
            eventually(lambda: all(run.ended_at_us for run in parts.run_store.runs() if run.job == job))
        finally:
            for worker in workers._workers:  # pyright: ignore[reportPrivateUsage]
                worker.stop()
            if workers._night is not None:  # pyright: ignore[reportPrivateUsage]
                workers._night.close()  # pyright: ignore[reportPrivateUsage]
        [run] = [run for run in parts.run_store.runs() if run.job == job]
        assert (run.scheduled_at_us, run.errors) == (self.at_us, 0)
        return run.namespaces, run.events, parts.read_models.live.count

    def say(self, namespace: str, text: str) -> None:
        self.memory.append(namespace, message(text, session_id="s", occurred_at=SAID_AT))


@pytest.fixture
def nights(tmp_path: Path) -> Generator[Nights]:
    nights = Nights(tmp_path, retention=[{"namespace": "n0*", "type": "message.added", "ttl_days": 30}])
    for namespace in NAMESPACES:
        nights.say(namespace, f"I live in Porto, said {namespace}.")
    yield nights
    nights.memory.close()


def test_a_night_opens_namespaces_with_news_and_all_of_them_after_a_change_of_settings(nights: Nights) -> None:
    namespaces, events, opened = nights.run(days=0, in_processes=True)
    assert namespaces == len(NAMESPACES)
    assert events >= len(NAMESPACES)
    # A full batch is processed elsewhere.
    assert opened == len(NAMESPACES) - BATCH_NAMESPACES
    assert nights.run(days=0.1) == (0, 0, 0)
    nights.say("n07", "I moved to Oslo.")
    namespaces, events, opened = nights.run(days=0.1)
    assert (namespaces, opened) == (1, 1)
    assert events
    assert nights.run(days=0.1) == (0, 0, 0)


def test_what_falls_due_by_time_is_compacted_without_news(nights: Nights) -> None:
    nights.run(days=0)
    # Raw episodes with a summary expire after a week, and summaries of that age are distilled.
    namespaces, events, _ = nights.run(days=7)
    assert namespaces == len(NAMESPACES)
    assert events >= len(NAMESPACES)
    assert nights.run(days=1) == (0, 0, 0)
    nights.settings = load_settings(data=nights.settings.storage.data, embedding_model="none", ttl_days={"fact": 400})
    assert nights.run(days=0.1)[0] == len(NAMESPACES)
    assert nights.run(days=0.1)[0] == 0


def test_retention_reads_the_namespaces_of_its_rules_until_an_event_comes_of_age(nights: Nights) -> None:
    # Events are retained from the time at which they were recorded.
    nights.at_us = now_us()
    assert nights.run("retain", days=0)[:2] == (10, 0)
    assert nights.run("retain", days=29)[:2] == (0, 0)
    assert nights.run("retain", days=2)[:2] == (10, 10)


def test_namespaces_without_lost_messages_are_repaired_once(nights: Nights) -> None:
    assert nights.run("repair", days=0)[0] == len(NAMESPACES)
    assert nights.run("repair", days=1) == (0, 0, 0)


def test_the_due_time_is_when_compaction_appends_the_next_event(nights: Nights) -> None:
    memory = nights.memory
    preference = {"type": "preference.stated", "occurred_at": SAID_AT, "payload": {"key": "tone", "value": "short"}}
    memory.append("n00", preference)
    at_us = nights.at_us
    context = memory.parts.job_context
    appended: list[int] = []
    for _ in range(8):
        compact(context, "n00", at_us)
        due_us = compaction_due_us(context, "n00", at_us)
        if due_us is None or due_us > now_us():
            break
        assert due_us > at_us
        assert compact(context, "n00", due_us - 1_000_000) == 0
        at_us = due_us + 1_000_000
        appended.append(compact(context, "n00", at_us))
    # After a week, and when the memories are past their time to live.
    assert len([count for count in appended if count]) >= 2
