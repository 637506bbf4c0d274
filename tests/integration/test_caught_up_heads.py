"""A process that starts opens only the namespaces that were not settled when the last one ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.embedders import HashingEmbedder
from support.events import message_draft

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.caught_up_heads import CAUGHT_UP_FILE
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.layout import namespace_folder
from recollect.projections.read_models.read_models import ReadModels

NAMESPACES = ("a", "b", "c")

#: Compares all namespaces in a process that has just started; returns those behind and how many it opened.
Start = Callable[[], tuple[list[str], int]]


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
def start(tmp_path: Path, log: SqliteLog, embedder: HashingEmbedder) -> Start:
    def compared() -> tuple[list[str], int]:
        models = ReadModels(tmp_path, log)
        vectors = Vectors(tmp_path, models, embedder)
        behind = BacklogMonitor(log, models, lambda: vectors).scan(unread=False).behind
        opened = models.live.count
        vectors.close()
        models.close()
        return [backlog.namespace for backlog in behind], opened

    models = ReadModels(tmp_path, log)
    vectors = Vectors(tmp_path, models, embedder)
    for namespace in NAMESPACES:
        log.append(namespace, [message_draft("red apples")])
        models.catch_up(namespace)
        vectors.embed_new(namespace)
    vectors.close()
    models.close()
    return compared


def test_a_second_start_opens_nothing(start: Start) -> None:
    assert start() == ([], 3)
    assert start() == ([], 0)


def test_news_and_removed_vectors_are_seen(start: Start, log: SqliteLog, tmp_path: Path) -> None:
    start()
    log.append("a", [message_draft("green pears")])
    (namespace_folder(tmp_path, "c") / "vectors.db").unlink()
    assert start() == (["a", "c"], 2)


def test_another_model_opens_all_and_a_loading_one_none(start: Start, embedder: HashingEmbedder) -> None:
    start()
    embedder.state = "loading"
    assert start() == ([], 0)
    embedder.state = "ready"
    assert start() == ([], 0)
    embedder.fingerprint = "another"
    assert start() == (list(NAMESPACES), 3)


def test_a_damaged_file_is_written_again(start: Start, tmp_path: Path) -> None:
    start()
    (tmp_path / CAUGHT_UP_FILE).write_bytes(b"no database" * 1_000)
    assert start() == ([], 3)
    assert start() == ([], 0)
