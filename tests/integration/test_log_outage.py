"""PostgreSQL is away or paused: memory answers from the local read models in its time, and appends fail clearly."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pytest
from support.events import message
from support.postgres import PostgresServer, new_database

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.errors import LogUnreachable, StorageError
from recollect.events.validation import draft


@pytest.fixture
def memory(tmp_path: Path, postgres_server: PostgresServer) -> Generator[Recollect]:
    log = new_database(postgres_server.url)
    settings = load_settings(data=tmp_path, log=log, embedding_model="none", retrieval_budget_ms=1_000)
    with Recollect(settings=settings, workers=False) as opened:
        opened.append("ann", message("My dog is called Rex."))
        assert opened.retrieve("ann", "What is the dog called?").items
        yield opened
        postgres_server.resume()


def test_a_retrieval_answers_from_the_local_read_model_while_the_server_hangs(
    memory: Recollect, postgres_server: PostgresServer
) -> None:
    # Longer than a server may be silent before its outage is remembered.
    time.sleep(0.4)
    postgres_server.pause()
    results = [memory.retrieve("ann", "What is the dog called?") for _ in range(5)]
    assert all(result.items for result in results)
    assert all(any("does not answer" in note for note in result.degraded) for result in results)
    # The first one waits for a share of its budget. The others know that the server is away: without that, each of
    # them would wait as long.
    assert sorted(result.stages_ms["catch_up"] for result in results)[2] < 300
    # Without a local read model there is nothing to answer from.
    unread = memory.retrieve("bob", "What is the dog called?")
    assert not unread.items
    assert any("does not answer" in note for note in unread.degraded)


def test_an_append_to_a_paused_server_ends_and_its_id_may_be_sent_again(postgres_server: PostgresServer) -> None:
    log = PostgresLog(new_database(postgres_server.url), reconnect_seconds_max=0.5)
    log.append("ann", [draft(message("My dog is called Rex."))])
    postgres_server.pause()
    with pytest.raises(StorageError):
        log.append("ann", [draft(message("I live in Porto.", id="m2"))])
    with pytest.raises(LogUnreachable):
        log.head("ann")
    postgres_server.resume()
    (first,) = log.append("ann", [draft(message("I live in Porto.", id="m2"))])
    (second,) = log.append("ann", [draft(message("I live in Porto.", id="m2"))])
    assert (first.version, second.version, second.duplicate) == (2, 2, True)
    log.close()
