"""Log run: clients append to one PostgreSQL log and read it while the server is paused, killed and started again."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from recollect.events.backends.log import each_head
from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.envelope import EventDraft
from recollect.events.errors import AppendUnknown, Conflict, StorageError
from recollect.events.validation import draft

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.append_history import Append, Outcome, Read, violations
from support.postgres import PostgresServer, new_database

#: Namespaces at a time, and the seconds after which the clients go on to others, so that whole reads stay short.
NAMESPACES = 3
_EPOCH_SECONDS = 20.0
#: Clients, each with connections of its own, as in a process of its own.
CLIENTS = 6
#: Pauses of the server in seconds: shorter and longer than the log waits for an answer.
_PAUSES = (0.5, 2.0, 6.0, 14.0)
#: Seconds between two faults.
_CALM = (0.5, 3.0)
#: Seconds that an operation may take: two of the times that the log waits for its server, and some for a busy machine.
OPERATION_SECONDS_MAX = 30.0


class LogClient(threading.Thread):
    """One client: appends and reads at random until it is stopped, and records each operation."""

    def __init__(self, number: int, url: str, seed: int, started_at: float, stop: threading.Event) -> None:
        super().__init__(name=f"client-{number}")
        self._number = number
        self._chance = random.Random(seed * 1_000 + number)
        self._stop_asked = stop
        self._log = PostgresLog(url)
        self._started_at = started_at
        self._sent = 0
        self.appends: list[Append] = []
        self.reads: list[Read] = []
        #: Errors that are not those of the contract; each is a defect.
        self.surprises: list[str] = []
        #: Reads that failed with a clear error.
        self.reads_refused = 0

    def run(self) -> None:
        """Work until the stop."""
        while not self._stop_asked.is_set():
            epoch = int((time.monotonic() - self._started_at) / _EPOCH_SECONDS)
            namespace = f"{epoch:04}-{self._chance.randrange(NAMESPACES)}"
            try:
                if self._chance.random() < 0.7:
                    self._append(namespace)
                else:
                    self._read(namespace)
            except Exception as error:
                self.surprises.append(repr(error))
        self._log.close()

    def _append(self, namespace: str) -> None:
        drafts = [self._draft() for _ in range(self._chance.choice((1, 1, 1, 3)))]
        ids = tuple(str(it.id) for it in drafts)
        expected = None
        if self._chance.random() < 0.2 and self.reads:
            expected = next((len(read.ids) for read in reversed(self.reads) if read.namespace == namespace), None)
        called_at = time.monotonic()
        versions: tuple[int, ...] = ()
        outcome: Outcome = "ok"
        try:
            versions = tuple(it.version for it in self._log.append(namespace, drafts, expected_version=expected))
        except AppendUnknown:
            outcome = "unknown"
        except (StorageError, Conflict):
            outcome = "refused"
        self.appends.append(
            Append(
                namespace=namespace,
                ids=ids,
                called_at=called_at,
                answered_at=time.monotonic(),
                outcome=outcome,
                versions=versions,
                expected_version=expected,
            )
        )

    def _read(self, namespace: str) -> None:
        called_at = time.monotonic()
        try:
            ids = read_ids(self._log, namespace)
        except StorageError:
            self.reads_refused += 1
            return
        self.reads.append(Read(namespace=namespace, ids=ids, called_at=called_at, answered_at=time.monotonic()))

    def _draft(self) -> EventDraft:
        self._sent += 1
        payload = {"role": "user", "text": f"message {self._sent} of client {self._number}"}
        return draft({"type": "message.added", "id": f"{self._number}:{self._sent}", "payload": payload})


def read_ids(log: PostgresLog, namespace: str) -> tuple[str, ...]:
    """Return the ids of all events of a namespace, which fit in one page and so are of one moment."""
    return tuple(event.id for event in log.read(namespace, limit=100_000))


def disturb(server: PostgresServer, chance: random.Random) -> str:
    """Do one thing to the server, and return its name once the server runs again."""
    fault = chance.choice(("pause", "pause", "kill", "restart"))
    if fault == "pause":
        seconds = chance.choice(_PAUSES)
        server.pause()
        time.sleep(seconds)
        server.resume()
        return f"pause {seconds:g} s"
    if fault == "kill":
        server.kill()
        time.sleep(chance.uniform(0, 2))
    else:
        server.stop()
    server.start()
    return fault


def run_linearizable(seconds: float, seed: int) -> bool:
    """Run clients and faults for `seconds`, check the history, print a report; return whether the log was sound."""
    chance = random.Random(seed)
    server = PostgresServer()
    url = new_database(server.url)
    stop = threading.Event()
    started_at = time.monotonic()
    clients = [LogClient(number, url, seed, started_at, stop) for number in range(CLIENTS)]
    faults: Counter[str] = Counter()
    for client in clients:
        client.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(chance.uniform(*_CALM))
        faults[disturb(server, chance)] += 1
    stop.set()
    hanging: list[str] = []
    for client in clients:
        client.join(2 * OPERATION_SECONDS_MAX)
        if client.is_alive():
            hanging.append(client.name)
    log = PostgresLog(url)
    final = {head.namespace: read_ids(log, head.namespace) for head in each_head(log)}
    log.close()
    appends = [append for client in clients for append in client.appends]
    reads = [read for client in clients for read in client.reads]
    problems = violations(appends, reads, {name: list(ids) for name, ids in final.items()})
    problems += [f"{name} hangs" for name in hanging]
    problems += [surprise for client in clients for surprise in client.surprises]
    slowest = max((append.answered_at - append.called_at for append in appends), default=0.0)
    if slowest > OPERATION_SECONDS_MAX:
        problems.append(f"an append took {slowest:.0f} s")
    outcomes = Counter(append.outcome for append in appends)
    refused = sum(client.reads_refused for client in clients)
    print(f"seed {seed}: {seconds:.0f} s, {CLIENTS} clients, {dict(faults)}")
    print(f"appends {dict(outcomes)}, slowest {slowest:.1f} s; reads {len(reads)}, refused {refused}")
    print(f"events in the log {sum(map(len, final.values()))}, violations {len(problems)}")
    for problem in problems[:20]:
        print(f"  {problem}")
    server.remove()
    return not problems
