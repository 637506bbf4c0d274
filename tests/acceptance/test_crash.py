"""`kill -9` in the middle of concurrent HTTP appends, again and again: nothing that was acknowledged is lost.

`pytest tests/acceptance/test_crash.py --rounds 200 -s` is the long form.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.command_line import recollect
from support.events import message
from support.postgres import PostgresServer, new_database
from support.server import Server, begin, serving
from support.waiting import eventually

from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log
from recollect.projections.read_models.layout import generations, namespace_folder

_CLIENTS = 8
_NAMESPACES = ("a", "b", "c")
_BATCH_SIZES = (1, 1, 3, 20)
#: Acknowledged events of a round, at least, before something dies: a busy machine lets clients wait for seconds.
_APPENDS_BEFORE_HARM = 5
#: Rounds on one data folder; then verify, replay --check and a new one, so that the checks stay short.
_ROUNDS_A_FOLDER = 20

Harm = Callable[[Server, random.Random, int], None]


class Client(threading.Thread):
    """Appends single events and batches until the server is gone; remembers what was acknowledged.

    An error is answered as a client should: by sending the same ids again.
    """

    def __init__(self, base: str, name: str, seed: int, pause_seconds: float = 0.0) -> None:
        super().__init__()
        self._base = base
        self._name = name
        self._random = random.Random(seed)
        self._pause_seconds = pause_seconds
        self._stopped = threading.Event()
        #: namespace → {event id: version}
        self.acknowledged: dict[str, dict[str, int]] = {namespace: {} for namespace in _NAMESPACES}
        self.refused: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self._base, timeout=30) as http:
            number = 0
            while not self._stopped.wait(self._pause_seconds):
                namespace = self._random.choice(_NAMESPACES)
                size = self._random.choice(_BATCH_SIZES)
                batch = [
                    message(f"{self._name} {number} {at} Lisbon", id=f"{self._name}.{number}.{at}", session_id="s")
                    for at in range(size)
                ]
                number += 1
                try:
                    answer = self._append(http, namespace, batch)
                except httpx.TransportError:
                    return
                self.acknowledged[namespace] |= {one["id"]: one["version"] for one in answer["events"]}

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def _append(self, http: httpx.Client, namespace: str, batch: list[dict[str, Any]]) -> dict[str, Any]:
        while True:
            answer = http.post(f"/v1/namespaces/{namespace}/events", json={"events": batch})
            if answer.status_code in (200, 201):  # 200: all of it was recorded before
                return answer.json()
            if answer.status_code != 503:
                self.refused.append(answer.text)
                raise httpx.TransportError(answer.text)


class Ledger:
    """What clients were told, against what the log has."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._acknowledged: dict[str, dict[str, int]] = {namespace: {} for namespace in _NAMESPACES}
        self.total = 0

    def add(self, clients: list[Client]) -> None:
        assert [answer for client in clients for answer in client.refused] == []
        for client in clients:
            for namespace, events in client.acknowledged.items():
                self._acknowledged[namespace] |= events
                self.total += len(events)

    def assert_nothing_lost(self) -> None:
        log = open_log(self._url)
        for namespace, acknowledged in self._acknowledged.items():
            stored = _stored(log, namespace)
            assert acknowledged.items() <= stored.items()
            # Batches are whole: ids are <client>.<batch>.<place>, places from 0 without a gap.
            places: dict[str, list[int]] = {}
            for event_id in stored:
                if ":" in event_id:
                    # What the server's own workers made of the messages.
                    continue
                batch, _, place = event_id.rpartition(".")
                places.setdefault(batch, []).append(int(place))
            assert all(len(found) in _BATCH_SIZES and found == list(range(len(found))) for found in places.values())
        log.close()


def _stored(log: EventLog, namespace: str) -> dict[str, int]:
    """Return event id → version of all that is stored; assert that versions have no gap and ids come once."""
    stored: dict[str, int] = {}
    version = 0
    while page := log.read(namespace, after=version):
        for event in page:
            assert event.version == version + 1
            version = event.version
            assert event.id not in stored
            stored[event.id] = version
    assert log.head(namespace).version == version
    return stored


def kill_the_server(server: Server, chance: random.Random, number: int) -> None:
    time.sleep(chance.uniform(0.1, 0.6))
    server.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> tuple[Callable[[Path], str], Harm]:
    """How to get the URL of a new log, and what dies in a round."""
    if request.param == "sqlite":
        return (lambda folder: f"sqlite:///{folder / 'log.db'}"), kill_the_server
    database: PostgresServer = request.getfixturevalue("postgres_server")

    def kill_database_or_server_or_both(server: Server, chance: random.Random, number: int) -> None:
        time.sleep(chance.uniform(0.1, 0.4))
        if number % 3:
            database.kill()
            if number % 3 == 2:
                server.kill()
            database.start()
        time.sleep(chance.uniform(0.1, 0.3))
        server.kill()

    return (lambda _: new_database(database.url)), kill_database_or_server_or_both


@contextmanager
def appending(server: Server, name: str, *, clients: int, pause_seconds: float = 0.0) -> Generator[list[Client]]:
    """Let clients append while the block runs; join them at its end."""
    threads = [
        Client(server.base, f"{name}c{at}", random.Random(f"{name} {at}").getrandbits(32), pause_seconds)
        for at in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.stop()


def wait_for_appends(clients: list[Client]) -> None:
    eventually(
        lambda: (
            sum(len(events) for client in clients for events in client.acknowledged.values()) >= _APPENDS_BEFORE_HARM
        ),
        seconds_max=60.0,
    )


def test_no_acknowledged_event_is_lost_by_kill_9(
    backend: tuple[Callable[[Path], str], Harm],
    tmp_path: Path,
    rounds: int,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new_log, harm = backend
    total = 0
    for first in range(0, rounds, _ROUNDS_A_FOLDER):
        folder = tmp_path / str(first)
        folder.mkdir()
        url = new_log(folder)
        monkeypatch.setenv("RECOLLECT_LOG", url)
        ledger = Ledger(url)
        for number in range(first, min(first + _ROUNDS_A_FOLDER, rounds)):
            with serving(folder) as server:
                with appending(server, f"r{number}", clients=_CLIENTS) as clients:
                    wait_for_appends(clients)
                    harm(server, random.Random(f"{seed} {number}"), number)
                ledger.add(clients)
            ledger.assert_nothing_lost()
        assert_clean(folder)
        total += ledger.total
    print(f"{rounds} rounds: {total} acknowledged events, 0 lost, versions gapless, verify and replay --check clean")


@pytest.mark.long
def test_a_replay_that_is_killed_leaves_the_read_models_as_they_were(tmp_path: Path, rounds: int, seed: int) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'log.db'}")
    begun = killed = 0
    with serving(tmp_path) as server:
        with appending(server, "load", clients=4) as clients:
            time.sleep(0.5)
        ledger.add(clients)
        with appending(server, "during", clients=2, pause_seconds=0.02) as clients:
            while killed < rounds:
                chance = random.Random(f"{seed} {begun}")
                folder = namespace_folder(tmp_path, chance.choice(_NAMESPACES))
                left_over = being_built(folder)
                replay = begin("replay", data=tmp_path)
                begun += 1
                while replay.poll() is None and being_built(folder) <= left_over:
                    time.sleep(0.002)
                time.sleep(chance.uniform(0, 0.1))
                replay.kill()
                # One that was faster than its killer does not count.
                killed += replay.wait() != 0
        ledger.add(clients)
        # The server that served all the while answers from what is whole.
        assert_clean(tmp_path)
        server.kill()
    ledger.assert_nothing_lost()
    assert_nothing_left_over(tmp_path)
    print(f"{begun} replays, {killed} killed at work: digests equal, nothing lost, nothing left over")


def being_built(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("building-*.db")}


def assert_clean(data: Path) -> None:
    for arguments in (("verify",), ("replay", "--check")):
        checked = recollect(*arguments, data=data)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def assert_nothing_left_over(data: Path) -> None:
    """What killed replays left goes with the next replay once it is old; two generations stay."""
    for file in data.glob("namespaces/*/*/building-*"):
        os.utime(file, (0, 0))
    assert recollect("replay", data=data).returncode == 0
    for namespace in _NAMESPACES:
        folder = namespace_folder(data, namespace)
        assert [*folder.glob("building-*")] == []
        assert len(generations(folder)) <= 2
