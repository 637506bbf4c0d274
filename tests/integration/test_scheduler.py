"""Slots: when jobs are due, in whose time zone, once; and how far behind projections are."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.jobs.job_settings import QueueSettings
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import open_broker
from recollect.jobs.queue.registry import SCHEDULED_JOBS
from recollect.jobs.queue.scheduler import Scheduler


class Setting:
    """A scheduler whose messages nobody works off."""

    def __init__(self, memory: Recollect, settings: QueueSettings) -> None:
        self.memory = memory
        self.broker = open_broker(memory.parts.run_store, settings.broker)
        self.scheduler = Scheduler(
            declare_actors(self.broker, memory.parts.job_context, memory.parts.run_store),
            memory.parts.run_store,
            settings,
        )

    def sent(self) -> int:
        queues: dict[str, object] = getattr(self.broker, "queues")  # noqa: B009 -- the stub broker's
        return getattr(queues["think"], "qsize")()  # noqa: B009


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def see_a_first_slot(memory: Recollect) -> None:
    for job in SCHEDULED_JOBS:
        memory.parts.run_store.claim(job, 1, 1, 1)
        memory.parts.run_store.end(job, 1, 1)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
def test_a_night_begins_at_three_where_the_user_lives(zone: str, memory: Recollect) -> None:
    slot_us = Setting(memory, QueueSettings(timezone=zone)).scheduler.latest_due_us("compact")
    assert slot_us is not None
    slot = datetime.fromtimestamp(slot_us / 1e6, UTC).astimezone(ZoneInfo(zone))
    assert (slot.hour, slot.minute) == (3, 0)
    assert 0 <= (datetime.now(UTC) - slot.astimezone(UTC)).total_seconds() <= 25 * 3_600


def test_a_time_zone_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TIMEZONE", "Moon/Copernicus")
    with pytest.raises(InvalidInput, match="RECOLLECT_TIMEZONE"):
        load_settings()


def test_a_new_memory_waits_for_its_first_night(memory: Recollect) -> None:
    setting = Setting(memory, QueueSettings())
    setting.scheduler.check()
    assert setting.sent() == 0


def test_a_slot_that_was_missed_is_begun_once_whoever_looks(memory: Recollect) -> None:
    see_a_first_slot(memory)
    first, second = Setting(memory, QueueSettings()), Setting(memory, QueueSettings())
    for setting in (first, second, first):
        setting.scheduler.check()
    assert (first.sent(), second.sent()) == (len(SCHEDULED_JOBS), 0)


def test_a_slot_whose_scheduler_died_before_it_sent_is_begun_by_another(memory: Recollect) -> None:
    see_a_first_slot(memory)
    settings = QueueSettings(slot_stale_seconds=0.001)
    setting = Setting(memory, settings)
    for job in SCHEDULED_JOBS:
        slot_us = setting.scheduler.latest_due_us(job)
        assert slot_us is not None
        # Claimed long ago, and nothing was heard since.
        assert memory.parts.run_store.claim(job, slot_us, 1, 1)
    setting.scheduler.check()
    assert setting.sent() == len(SCHEDULED_JOBS)


def test_namespaces_that_wait_for_the_extraction_hide_none_that_is_behind(memory: Recollect) -> None:
    for namespace in ("a", "b"):
        memory.append(namespace, message("hello"))
        memory.episodes(namespace)
    memory.append("c", message("hello"))
    scan = memory.parts.backlog.scan(1)
    assert [backlog.namespace for backlog in scan.waiting] == ["a"]
    assert [backlog.namespace for backlog in scan.behind] == ["c"]
    assert not scan.is_complete


def test_a_settled_namespace_is_not_opened_again_before_its_head_moves(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.append("a", message("hello"))
    scan = partial(memory.parts.backlog.scan, unread=False)
    first = scan()
    assert [(one.namespace, one.events, one.messages) for one in first.behind] == [("a", 1, 1)]
    assert first.compared == 1
    memory.episodes("a")
    assert (scan().behind, scan().compared) == ([], 1)

    opened: list[str] = []
    progress = memory.parts.read_models.progress

    def counted(namespace: str) -> object:
        opened.append(namespace)
        return progress(namespace)

    # Counts what is opened; the real one does the work.
    monkeypatch.setattr(memory.parts.read_models, "progress", counted)
    assert (scan().behind, scan().compared) == ([], 1)
    assert opened == []
    memory.append("a", message("hello again"))
    assert [one.namespace for one in scan().behind] == ["a"]
    assert opened == ["a"]
