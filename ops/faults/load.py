"""Load: clients that append messages, retrieve and ask for health, and remember what they were promised."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import httpx
from msgspec import Struct, field
from parts import Node

#: Messages with something to extract, so that jobs append derived events.
_SAID = (
    "I live in Porto.",
    "My dog is called Rex.",
    "I love green tea.",
    "My sister Clara works as a pilot.",
    "We painted the kitchen green, and it took the whole week.",
    "The tram was late again.",
)
#: Long ago, so that compaction has something to do.
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
#: Seconds that a client waits for an answer; a server answers appends in less, whatever is down.
_ANSWER_SECONDS_MAX = 30.0
#: Attempts at one append, each at the other node, before it is given up with an unknown outcome.
_ATTEMPTS_MAX = 40


class Promises(Struct):
    """What the clients were told. Each client has its own, so that none needs a lock."""

    #: The version of each acknowledged event, by namespace and id.
    acknowledged: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    #: Every id that was sent.
    sent: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    #: Seconds of each append until its acknowledgement, all attempts included.
    append_seconds: list[float] = field(default_factory=list[float])
    #: Seconds of each retrieval from a server that was neither killed nor paused.
    retrieve_seconds: list[float] = field(default_factory=list[float])
    #: The same of /health/live and /health/ready.
    health_seconds: list[float] = field(default_factory=list[float])
    #: What came of each request: a status, or the name of a transport error.
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    #: Retrievals with a note that something is missing.
    degraded: int = 0

    def count(self, outcome: str) -> None:
        """Count the outcome of a request."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


class LoadClient(threading.Thread):
    """One client with namespaces of its own.

    Parameters:
        pause_seconds: between two requests, so that the load leaves the machine some room.
    """

    def __init__(
        self,
        number: int,
        nodes: list[Node],
        namespaces: list[str],
        seed: int,
        pause_seconds: float,
        stop: threading.Event,
    ) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._nodes = nodes
        self._namespaces = namespaces
        self._chance = random.Random(seed * 1_000 + number)
        self._pause_seconds = pause_seconds
        self._stop_asked = stop
        self._sent = 0
        self._number = number
        self.promises = Promises()

    def run(self) -> None:
        """Send requests until the stop; an append that has begun is brought to its end."""
        with httpx.Client(timeout=_ANSWER_SECONDS_MAX) as http:
            while not self._stop_asked.is_set():
                chance = self._chance.random()
                namespace = self._chance.choice(self._namespaces)
                if chance < 0.5:
                    self._append(http, namespace)
                elif chance < 0.8:
                    self._retrieve(http, namespace)
                elif chance < 0.98:
                    self._health(http)
                else:
                    self._compact(http, namespace)
                time.sleep(self._pause_seconds)

    def _append(self, http: httpx.Client, namespace: str) -> None:
        self._sent += 1
        event_id = f"{self._number}:{self._sent}"
        said = _START + timedelta(minutes=self._sent)
        event = {
            "type": "message.added",
            "id": event_id,
            "session_id": f"s{self._sent // 12}",
            "occurred_at": said.isoformat(),
            "payload": {"role": "user", "text": f"{self._chance.choice(_SAID)} ({self._sent})", "name": "Ann"},
        }
        self.promises.sent.add((namespace, event_id))
        started = time.monotonic()
        first = self._chance.randrange(len(self._nodes))
        for attempt in range(_ATTEMPTS_MAX):
            node = self._nodes[(first + attempt) % len(self._nodes)]
            answer = self._ask(http, "append", "POST", f"{node.base}/v1/namespaces/{namespace}/events", event)
            if answer is not None and answer.status_code in (200, 201):
                self.promises.acknowledged[namespace, event_id] = answer.json()["events"][0]["version"]
                self.promises.append_seconds.append(time.monotonic() - started)
                return
            if self._stop_asked.is_set():
                return
            # The same id again, which is always safe.
            time.sleep(0.2)

    def _retrieve(self, http: httpx.Client, namespace: str) -> None:
        node = self._chance.choice(self._nodes)
        url = f"{node.base}/v1/namespaces/{namespace}/retrieve"
        started, was_down = time.monotonic(), node.is_down
        answer = self._ask(http, "retrieve", "POST", url, {"query": "What is the name of the dog?"})
        if answer is not None and answer.status_code == 200 and not (was_down or node.is_down):
            self.promises.retrieve_seconds.append(time.monotonic() - started)
            # Without a model every answer says that meaning is turned off.
            self.promises.degraded += any(not note.startswith("semantic") for note in answer.json()["degraded"])

    def _health(self, http: httpx.Client) -> None:
        path = self._chance.choice(("live", "ready"))
        node = self._chance.choice(self._nodes)
        started, was_down = time.monotonic(), node.is_down
        answer = self._ask(http, path, "GET", f"{node.base}/health/{path}", None)
        if answer is not None and not (was_down or node.is_down):
            self.promises.health_seconds.append(time.monotonic() - started)

    def _compact(self, http: httpx.Client, namespace: str) -> None:
        """Ask a node for a compaction; another client may ask the other one for the same."""
        base = self._chance.choice(self._nodes).base
        self._ask(http, "compact", "POST", f"{base}/v1/namespaces/{namespace}/compact", {})

    def _ask(
        self, http: httpx.Client, what: str, method: str, url: str, body: Mapping[str, object] | None
    ) -> httpx.Response | None:
        """Return the answer; None when there was none. Count either."""
        try:
            answer = http.request(method, url, json=body)
        except httpx.HTTPError as error:
            self.promises.count(f"{what} {type(error).__name__}")
            return None
        self.promises.count(f"{what} {answer.status_code}")
        return answer
