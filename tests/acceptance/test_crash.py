"""`kill -9` in the middle of concurrent HTTP appends, again and again: nothing that was acknowledged is lost.

`pytest tests/acceptance/test_crash.py --rounds 20` is the long form.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.events import message
from support.server import recollect, serving

from recollect.events.sqlite import SqliteLog

_CLIENTS = 8
_NAMESPACES = ("a", "b", "c")


class Client(threading.Thread):
    """Appends single events and batches until the server is gone; remembers what was acknowledged."""

    def __init__(self, base: str, name: str, seed: int) -> None:
        super().__init__()
        self._base = base
        self._name = name
        self._random = random.Random(seed)
        #: namespace → {event id: version}
        self.acknowledged: dict[str, dict[str, int]] = {namespace: {} for namespace in _NAMESPACES}

    def run(self) -> None:
        with httpx.Client(base_url=self._base, timeout=10) as http:
            number = 0
            while True:
                namespace = self._random.choice(_NAMESPACES)
                size = self._random.choice([1, 1, 3, 20])
                batch = [
                    message(f"{self._name} {number} {at} Lisbon", id=f"{self._name}.{number}.{at}", session_id="s")
                    for at in range(size)
                ]
                number += 1
                try:
                    answer = http.post(f"/v1/namespaces/{namespace}/events", json={"events": batch})
                except httpx.TransportError:
                    return
                assert answer.status_code == 201, answer.text
                self.acknowledged[namespace] |= {one["id"]: one["version"] for one in answer.json()["events"]}


def test_no_acknowledged_event_is_lost_by_kill_9(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rounds: Any = request.config.getoption("--rounds")
    acknowledged: dict[str, dict[str, int]] = {namespace: {} for namespace in _NAMESPACES}
    for number in range(rounds):
        with serving(tmp_path) as server:
            clients = [Client(server.base, f"r{number}c{at}", seed=number * 100 + at) for at in range(_CLIENTS)]
            for client in clients:
                client.start()
            killer = threading.Timer(random.Random(number).uniform(0.3, 1.5), server.kill)
            killer.start()
            for client in clients:
                client.join()
            killer.join()
        for client in clients:
            for namespace, events in client.acknowledged.items():
                acknowledged[namespace] |= events
        assert_nothing_lost(tmp_path, acknowledged)
    assert sum(map(len, acknowledged.values())) > 50 * rounds
    for arguments in (("verify",), ("replay", "--check")):
        checked = recollect(*arguments, data=tmp_path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    total = sum(map(len, acknowledged.values()))
    print(f"{rounds} rounds: {total} acknowledged events, 0 lost, versions gapless, verify and replay --check clean")


def assert_nothing_lost(data: Path, acknowledged: dict[str, dict[str, int]]) -> None:
    log = SqliteLog(data / "log.db")
    for namespace, events in acknowledged.items():
        stored: dict[str, int] = {}
        version = 0
        while page := log.read(namespace, after=version):
            for event in page:
                assert event.version == version + 1
                version = event.version
                stored[event.id] = version
        assert events.items() <= stored.items()
        assert log.head(namespace).version == version
        # Batches are whole: ids are <client>.<batch>.<place>, places from 0 without a gap.
        places: dict[str, list[int]] = {}
        for event_id in stored:
            batch, _, place = event_id.rpartition(".")
            places.setdefault(batch, []).append(int(place))
        assert all(len(found) in (1, 3, 20) and found == list(range(len(found))) for found in places.values())
    log.close()
