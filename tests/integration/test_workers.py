"""Workers on the real broker of one process."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from support.embedders import HashingEmbedder
from support.events import message_draft
from support.waiting import eventually

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import InvalidInput, LogUnreachable
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.job_settings import JobSettings, QueueSettings
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.broker import open_run_store
from recollect.jobs.queue.workers import Workers
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.read_models import ReadModels


class Setting:
    def __init__(self, folder: Path, log: SqliteLog, models: ReadModels) -> None:
        self.records = open_run_store("memory://", folder)
        self.log = log
        self.models = models
        self.embedder = HashingEmbedder()
        self.vectors = Vectors(folder, models, self.embedder)
        self.workers: list[Workers] = []

    def start(self, *, sweep_seconds: float = 60.0, listen: bool = True) -> Workers:
        context = JobContext(
            log=self.log,
            read_models=self.models,
            vectors=lambda: self.vectors,
            settings=JobSettings(queue=QueueSettings(sweep_seconds=sweep_seconds)),
        )
        lag = BacklogMonitor(self.log, self.models, context.vectors, self.records)
        workers = Workers(context, self.records, lag)
        if listen:
            self.log.on_append(workers.notify)
        workers.start()
        self.workers.append(workers)
        return workers

    def embedded(self, namespace: str, count: int) -> bool:
        progress = self.models.progress(namespace)
        if progress.version < count:
            return False
        with self.models.reading(namespace) as snapshot:
            return self.vectors.backlog(namespace, snapshot).missing == 0


@pytest.fixture
def setting(tmp_path: Path, log: SqliteLog, models: ReadModels) -> Generator[Setting]:
    setting = Setting(tmp_path, log, models)
    yield setting
    for workers in setting.workers:
        workers.stop()
    setting.records.close()
    setting.vectors.close()


def test_what_is_appended_is_folded_and_embedded_by_workers(setting: Setting) -> None:
    setting.start()
    setting.log.append("a", [message_draft("red apples")])
    eventually(lambda: setting.embedded("a", 1))


def test_what_nobody_told_of_is_found_by_the_first_sweep(setting: Setting) -> None:
    setting.log.append("a", [message_draft("red apples")])
    workers = setting.start()
    eventually(lambda: setting.embedded("a", 1))
    assert workers.status()["last_sweep"] is not None


def test_a_lost_message_is_made_good_by_the_next_sweep(setting: Setting) -> None:
    setting.start(sweep_seconds=0.1, listen=False)
    setting.log.append("a", [message_draft("red apples")])
    eventually(lambda: setting.embedded("a", 1))


def test_embedding_begins_when_the_model_has_loaded(setting: Setting) -> None:
    setting.embedder.state = "loading"
    setting.start()
    setting.log.append("a", [message_draft("red apples")])
    eventually(lambda: setting.models.progress("a").version == 1)
    assert not setting.embedded("a", 1)
    setting.embedder.state = "ready"
    eventually(lambda: setting.embedded("a", 1))


def test_repeated_news_change_nothing(setting: Setting) -> None:
    workers = setting.start()
    setting.log.append("a", [message_draft("red apples")])
    for _ in range(200):
        workers.notify("a")
    eventually(lambda: setting.embedded("a", 1))
    assert setting.models.check("a").is_equal


def test_a_stop_is_quick_and_can_be_repeated(setting: Setting) -> None:
    workers = setting.start()
    workers.stop()
    workers.stop()
    assert workers.status()["running"] is False


def test_an_unknown_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="memory://"):
        open_run_store("amqp://somewhere", tmp_path)


def test_an_extraction_whose_message_was_lost_is_found_by_the_sweep(setting: Setting) -> None:
    setting.log.append("a", [message_draft("I live in Porto.")])
    # Projected and embedded, and then the broker lost its messages.
    setting.models.catch_up("a")
    setting.vectors.embed_new("a")
    setting.start(sweep_seconds=0.1, listen=False)
    eventually(lambda: [event.type for event in setting.log.read("a", after=1)] == ["facts.extracted"])


def test_an_outage_of_the_log_leaves_no_dead_letter_and_the_work_is_done_after_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 0

    def unreachable(namespace: str, **_: object) -> None:
        nonlocal failures
        failures += 1
        raise LogUnreachable(f"the server of {namespace} is away")

    with monkeypatch.context() as outage:
        outage.setattr(setting.models, "catch_up", unreachable)
        setting.start(sweep_seconds=0.05)
        setting.log.append("a", [message_draft("red apples")])
        # More often than a message is attempted.
        eventually(lambda: failures > 5)
    eventually(lambda: setting.embedded("a", 1))
    assert setting.records.dead_letters() == []
