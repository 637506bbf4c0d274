"""Failover: a replica that lacks the last commits becomes the server; nothing goes on as if it had them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec import Struct
from support.events import message_draft
from support.postgres import PostgresServer, new_database

from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.errors import InvalidInput, LogRewound
from recollect.events.integrity.verify import verify
from recollect.jobs.following.feed import Feed
from recollect.jobs.following.follower import Follower
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore
from recollect.projections.read_models.read_models import ReadModels


class Machine(Struct, frozen=True):
    """A machine whose read model and follower have seen five events, of which the replica has three."""

    url: str
    log: PostgresLog
    models: ReadModels
    store: SqliteRunStore

    def follower(self) -> Follower:
        feed = Feed(self.log, self.models, "a", types=(), knowledge=False)
        return Follower(feed, self.store, cursor="crm", after=0)


@pytest.fixture
def machine(tmp_path: Path, postgres_server: PostgresServer) -> Generator[Machine]:
    url = new_database(postgres_server.url)
    log = PostgresLog(url, reconnect_seconds_max=60)
    log.append("a", [message_draft(f"text {number}") for number in range(3)])
    postgres_server.kill()
    postgres_server.copy_data(tmp_path / "replica")
    postgres_server.start()
    for number in range(3, 5):
        log.append("a", [message_draft(f"text {number}")])
    machine = Machine(url, log, ReadModels(tmp_path, log), SqliteRunStore(tmp_path / "jobs.db"))
    assert machine.models.catch_up("a").version == 5
    follower = machine.follower()
    for position, _ in follower.batch():
        follower.move(position)
    assert follower.batch() == []
    postgres_server.kill()
    postgres_server.replace_data(tmp_path / "replica")
    postgres_server.start()
    yield machine
    machine.models.close()
    log.close()


def test_appends_go_on_from_the_head_of_the_replica_with_one_chain(machine: Machine) -> None:
    # The writer knows its last head, and another machine has appended as many events as were lost.
    other = PostgresLog(machine.url)
    other.append("a", [message_draft("other 3"), message_draft("other 4")])
    other.close()
    assert machine.log.append("a", [message_draft("new")])[0].version == 6
    assert verify(machine.log, "a").is_intact


def test_a_read_model_that_is_ahead_refuses_to_answer_also_when_other_events_took_the_lost_places(
    machine: Machine,
) -> None:
    with pytest.raises(LogRewound):
        machine.models.catch_up("a")
    machine.log.append("a", [message_draft(f"other {number}") for number in range(3)])
    with pytest.raises(LogRewound):
        machine.models.catch_up("a")
    with pytest.raises(LogRewound), machine.models.reading("a"):
        pass
    assert machine.models.replay("a") == 6
    assert machine.models.check("a").is_equal


def test_a_read_model_in_use_notices_other_events_that_took_the_lost_places_before_it_looked(machine: Machine) -> None:
    machine.log.append("a", [message_draft(f"other {number}") for number in range(3)])
    with pytest.raises(LogRewound):
        machine.models.catch_up("a")
    with pytest.raises(LogRewound), machine.models.reading("a"):
        pass


def test_a_follower_does_not_pass_over_what_took_the_place_of_lost_events(machine: Machine) -> None:
    with pytest.raises(InvalidInput, match="restored from a backup"):
        machine.follower()
    machine.log.append("a", [message_draft(f"other {number}") for number in range(3)])
    with pytest.raises(InvalidInput, match="restored from a backup"):
        machine.follower()
