"""Tenants of a soak: namespaces, what the server has acknowledged of each, and the checks of what it answers."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
from msgspec import Struct, field

_DATA = Path(os.environ.get("RECOLLECT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
#: Events of users in a namespace, after which it is erased and a new one takes its place.
TENANT_EVENTS_MAX = 240
#: A message in so many has a canary: a word that occurs nowhere else.
_CANARY_EVERY = 6
_CANARY = re.compile(r"\bzq[0-9a-f]{12}\b")
#: Characters of a message: one of the data sets has answers of several pages.
_TEXT_CHARACTERS_MAX = 400
#: Seconds that one request may take, with all attempts at it: a server that was killed starts in a fraction of them.
_REQUEST_SECONDS_MAX = 180.0
#: Different messages. The caches of words and names are full after them, so that memory which grows later is a leak.
_TEXTS = 300
_SAID = ("I live in Porto.", "My dog is called Rex.", "I love green tea.", "My sister Clara works as a pilot.")


class Said(Struct):
    """One acknowledged message."""

    #: Its version in the log.
    version: int
    subject: str
    session: str
    #: The canary in its text; empty when it has none.
    canary: str
    is_erased: bool = False


class Clock:
    """A clock that passes a day in `day_seconds`. It begins 300 days ago, so that it stays in the past."""

    def __init__(self, day_seconds: float) -> None:
        self._began_at, self._day_seconds = time.monotonic(), day_seconds
        self._start = datetime.now(UTC) - timedelta(days=300)

    def now(self) -> datetime:
        """Return the time of this clock."""
        return self._start + timedelta(days=(time.monotonic() - self._began_at) / self._day_seconds)


class Ledger(Struct):
    """What happened in the whole run; `lock` is held for each change."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    counts: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    #: Seconds of appends and retrievals since the last sample. Those that met a restart are not among them.
    append_seconds: list[float] = field(default_factory=list[float])
    retrieve_seconds: list[float] = field(default_factory=list[float])
    #: Canaries whose erasure was acknowledged.
    erased: set[str] = field(default_factory=set[str])

    def count(self, what: str) -> None:
        """Count something."""
        with self.lock:
            self.counts[what] += 1

    def violate(self, text: str) -> None:
        """Record a violation, and print it at once."""
        with self.lock:
            self.violations.append(text)
        print(f"VIOLATION {text}", flush=True)


class Server:
    """Requests to the server, which are sent again while it is away.

    Parameters:
        expects_restarts: whether a request may meet a server that is away; otherwise that is a violation.
    """

    def __init__(self, base: str, ledger: Ledger, expects_restarts: Callable[[], bool]) -> None:
        # The server closes a connection after 5 idle seconds, which a request could meet.
        self._http = httpx.Client(base_url=base, timeout=60.0, limits=httpx.Limits(keepalive_expiry=2.0))
        self._ledger = ledger
        self._expects_restarts = expects_restarts

    def ask(self, method: str, path: str, seconds: list[float] | None = None, **request: Any) -> httpx.Response:
        """Return the answer, of any status but 503; 404 when an attempt that was not answered has done it.

        Parameters:
            seconds: gets the time of the request, when the first attempt was answered.
        """
        started = time.monotonic()
        attempts = 0
        while True:
            attempts += 1
            try:
                answer = self._http.request(method, path, **request)
                if answer.status_code != 503:
                    break
                problem = f"503 {answer.text[:200]}"
            except httpx.HTTPError as error:
                problem = repr(error)
            self._ledger.count("requests sent again")
            if not self._expects_restarts():
                self._ledger.violate(f"{method} {path}: {problem}, while nothing was killed")
            if time.monotonic() - started > _REQUEST_SECONDS_MAX:
                raise RuntimeError(f"{method} {path} was not answered in time: {problem}")
            time.sleep(0.3)
        if seconds is not None and attempts == 1:
            with self._ledger.lock:
                seconds.append(time.monotonic() - started)
        if not answer.is_success and (attempts == 1 or answer.status_code != 404):
            self._ledger.violate(f"{method} {path.partition('?')[0]}: {answer.status_code} {answer.text[:300]}")
        return answer


class Tenant:
    """One namespace. `lock` is held while anything is asked of it, so that what is promised is known at each check."""

    def __init__(self, name: str, texts: Sequence[str], server: Server, ledger: Ledger, seed: int) -> None:
        self.name = name
        self.lock = threading.RLock()
        self.said: dict[str, Said] = {}
        self._texts, self._server, self._ledger = texts, server, ledger
        self._chance = random.Random(f"{seed} {name}")
        self._path = f"/v1/namespaces/{name}"
        self._sent = self._chance.randrange(1_000) * 1_000
        self._first = self._sent

    @property
    def is_full(self) -> bool:
        """Return whether the namespace has had its number of events."""
        return self._sent - self._first >= TENANT_EVENTS_MAX

    def append(self, clock: Clock) -> None:
        """Append a few messages, in one batch."""
        events, said = self._batch(clock, self._chance.choice((1, 2, 2, 4)))
        answer = self._server.ask("POST", f"{self._path}/events", self._ledger.append_seconds, json={"events": events})
        if not answer.is_success:
            return
        for recorded, record in zip(answer.json()["events"], said, strict=True):
            record.version = recorded["version"]
            self.said[recorded["id"]] = record
            self._ledger.count("messages acknowledged")

    def retrieve(self, *, as_of: int | None = None) -> None:
        """Ask about something; no canary that is erased or of others may be in the answer.

        A query never has an erased canary: it would be stored in a trace again.
        """
        kind, known = self._chance.random(), sorted(self.canaries())
        query = self._chance.choice(self._texts)[:200] if kind < 0.4 else "What is my locker word?"
        if kind > 0.7 and known:
            query = f"What is the locker word {self._chance.choice(known)}?"
        body: dict[str, Any] = {"query": query} if as_of is None else {"query": query, "as_of": as_of}
        seconds = self._ledger.retrieve_seconds if as_of is None else None
        answer = self._server.ask("POST", f"{self._path}/retrieve", seconds, json=body)
        if answer.is_success:
            self._ledger.count("retrievals")
            shown = answer.json()
            self._require_own_canaries("retrieve", orjson.dumps([shown["items"], shown["context"]]).decode())

    def erase(self, scope: str, *, kept: Container[str] = ()) -> None:
        """Erase a subject or a session that has something, or the whole namespace.

        Parameters:
            kept: canaries that another namespace has by an import.
        """
        present = [said for said in self.said.values() if not said.is_erased]
        if not present:
            return
        chosen = self._chance.choice(present)
        if scope == "namespace":
            answer = self._server.ask("DELETE", f"{self._path}?confirm={self.name}")
        else:
            body = {"subject": chosen.subject} if scope == "subject" else {"session_id": chosen.session}
            answer = self._server.ask("POST", f"{self._path}/erase", json=body)
        if not answer.is_success and answer.status_code != 404:
            return
        for said in present:
            if scope == "namespace" or getattr(said, scope) == getattr(chosen, scope):
                said.is_erased = True
                if said.canary and said.canary not in kept:
                    with self._ledger.lock:
                        self._ledger.erased.add(said.canary)
        if scope == "subject":
            self._server.ask("POST", f"{self._path}/readmit", json={"subject": chosen.subject})
        self._ledger.count(f"erasures: {scope}")

    def compact(self, clock: Clock) -> None:
        """Run a night at the time of the fast clock."""
        answer = self._server.ask("POST", f"{self._path}/compact", json={"now": clock.now().isoformat()})
        if answer.is_success:
            self._ledger.count("nights")

    def replay(self) -> None:
        """Build the read model again while it serves."""
        if self._server.ask("POST", f"{self._path}/replay").is_success:
            self._ledger.count("replays")

    def check(self) -> None:
        """Compare the log with what was promised, and the read model with a replay."""
        self._server.ask("POST", f"{self._path}/settle", json={"timeout_seconds": 30})
        compared = self._server.ask("POST", f"{self._path}/check").json()
        if not compared.get("equal"):
            self._ledger.violate(f"{self.name}: the read model is not that of a replay: {compared}")
        if not self._server.ask("GET", f"{self._path}/verify").json().get("intact"):
            self._ledger.violate(f"{self.name}: the hash chain is broken")
        self._compare(self.events())
        self._ledger.count("checks")

    def export_subject(self) -> None:
        """Export what is known about a speaker; no canary of others, nor an erased one, may be in it."""
        speakers = sorted({said.subject for said in self.said.values()})
        if speakers:
            subject = self._chance.choice(speakers)
            answer = self._server.ask("GET", f"{self._path}/export", params={"subject": subject})
            self._require_own_canaries("export", answer.text)
            self._ledger.count("exports")

    def import_from(self, source: Tenant) -> None:
        """Import all events of another namespace, as its export has them."""
        events = [event for event in source.events() if not event["type"].endswith("erased")]
        if not events:
            return
        lines = b"\n".join(orjson.dumps(event | {"namespace": self.name}) for event in events)
        answer = self._server.ask("POST", f"{self._path}/import", content=lines)
        if not answer.is_success:
            return
        versions = {event["id"]: event["version"] for event in self.events()}
        for event_id, said in source.said.items():
            if not said.is_erased:
                version = versions.get(event_id)
                if version is None:
                    self._ledger.violate(f"{self.name}: the import of {source.name} has lost {event_id}")
                    continue
                self.said[event_id] = Said(version, said.subject, said.session, said.canary)
        self._ledger.count("imports")

    def events(self) -> list[dict[str, Any]]:
        """Return all events of the namespace."""
        events: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            answer = self._server.ask("GET", f"{self._path}/events", params={"after": after, "limit": 500})
            page: dict[str, Any] = answer.json() if answer.is_success else {}
            events += page.get("items", [])
            after = page.get("next")
        return events

    def require_erased(self) -> None:
        """Record a violation when something is left of the erased namespace."""
        left = [event for event in self.events() if not event["type"].endswith("erased")]
        if left:
            self._ledger.violate(f"{self.name}: {len(left)} events are left after the erasure: {left[0]}"[:600])

    def canaries(self) -> set[str]:
        """Return the canaries of the namespace that are not erased."""
        return {said.canary for said in self.said.values() if said.canary and not said.is_erased}

    def head(self) -> int:
        """Return the last version of a message that was acknowledged."""
        return max((said.version for said in self.said.values()), default=0)

    def _compare(self, events: Sequence[Mapping[str, Any]]) -> None:
        if [event["version"] for event in events] != list(range(1, len(events) + 1)):
            self._ledger.violate(f"{self.name}: versions have a gap")
        at = {event["version"]: event for event in events}
        for event_id, said in self.said.items():
            event = at.get(said.version)
            if event is None or (event["id"] != event_id and not (said.is_erased and event["type"] == "erased")):
                self._ledger.violate(f"{self.name}: {event_id} {said} is not at its version, but {event}"[:600])
            elif said.is_erased != (event["type"] == "erased"):
                self._ledger.violate(f"{self.name}: {event_id} {said} has the type {event['type']}")
        for name, number in Counter(event["id"] for event in events).items():
            if number > 1:
                self._ledger.violate(f"{self.name}: {name} is in the log {number} times")
        self._require_own_canaries("log", orjson.dumps(list(events)).decode())

    def _require_own_canaries(self, where: str, text: str) -> None:
        """Record a violation for each canary in `text` that is erased or of another namespace."""
        for canary in set(_CANARY.findall(text)) - self.canaries():
            kind = "an erased canary" if canary in self._ledger.erased else "a foreign canary"
            self._ledger.violate(f"{self.name}: {where} shows {kind} {canary}: {text[:300]}")

    def _batch(self, clock: Clock, size: int) -> tuple[list[dict[str, Any]], list[Said]]:
        events: list[dict[str, Any]] = []
        said: list[Said] = []
        for _ in range(size):
            self._sent += 1
            speaker = ("Ann", "Bob", "Cleo")[self._sent % 3]
            record = Said(0, speaker, f"s{self._sent // 16}", "")
            text = self._texts[self._sent % len(self._texts)][:_TEXT_CHARACTERS_MAX]
            if self._sent % _CANARY_EVERY == 0:
                record.canary = f"zq{self._chance.getrandbits(48):012x}"
                text = f"{text} My locker word is {record.canary}, please remember it."
            payload = {"role": "user", "name": speaker, "text": text}
            events.append(
                {
                    "type": "message.added",
                    "id": f"{self.name}:{self._sent}",
                    "session_id": record.session,
                    "occurred_at": clock.now().isoformat(),
                    "payload": payload,
                }
            )
            said.append(record)
        return events, said


def real_texts(seed: int) -> list[str]:
    """Return messages of real conversations beside the checkout, or invented ones where they are absent."""
    texts: list[str] = []
    for file in sorted(_DATA.glob("*.json")):
        texts += [event["payload"].get("text", "") for event in orjson.loads(file.read_bytes())["events"]][:400]
    texts = [text for text in texts if text.strip()] or [f"{said} ({number})" for number in range(50) for said in _SAID]
    random.Random(seed).shuffle(texts)
    return texts[:_TEXTS]
