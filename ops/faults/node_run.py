"""Node run: two nodes under load while each part is killed or paused at random; then, what was promised is compared."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence

import httpx
import orjson
from load import LoadClient, Promises
from msgspec import Struct, field
from parts import Cluster, Node, Part, cluster

from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import StorageError
from recollect.events.integrity.verify import verify

CLIENTS = 4
NAMESPACES = 24
#: Seconds between two faults, and of one fault.
_CALM = (2.0, 8.0)
_FAULT = (0.5, 6.0)
#: Seconds that a cluster may take to be well again, and to do all work that is left.
_RECOVER_SECONDS_MAX = 120.0
_SETTLE_SECONDS_MAX = 300.0


class Faults(Struct):
    """What was done to the parts, and how long each took to be well again."""

    #: The last fault, as text.
    last: str = ""
    done: Counter[str] = field(default_factory=Counter[str])
    #: Seconds from the end of the fault until the part worked again, by kind of part.
    recovered: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, name: str, kind: str, seconds: float) -> None:
        """Record one fault."""
        self.done[f"{kind} {name}"] += 1
        self.last = f"{kind} {name}, well after {seconds:.1f} s"
        self.recovered.setdefault(name.partition(" ")[0], []).append(seconds)


def run_nodes(seconds: float, seed: int, *, pause_seconds: float = 0.05) -> bool:
    """Run load and faults for `seconds`, then compare; print a report and return whether all promises were kept."""
    chance, stop, faults = random.Random(seed), threading.Event(), Faults()
    with cluster(2) as running:
        names = [f"user-{number}" for number in range(NAMESPACES)]
        clients = [
            # Two clients each share their namespaces, so that appends of both nodes meet.
            LoadClient(number, running.nodes, names[number // 2 :: CLIENTS // 2], seed, pause_seconds, stop)
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(chance.uniform(*_CALM))
            disturb(running, chance, faults)
            print(f"{time.monotonic() - until + seconds:.0f} s: {faults.last}", flush=True)
        stop.set()
        for client in clients:
            client.join(120)
        promises = [client.promises for client in clients]
        problems = [f"{client.name} hangs" for client in clients if client.is_alive()]
        settle_seconds, left = wait_until_settled(running)
        problems += left
        log = running.open_log()
        problems += compare(log, promises)
        problems += compare_read_models(running, log, names[:4])
        log.close()
        report(running, promises, faults, settle_seconds)
    print(f"violations {len(problems)}")
    for problem in problems[:20]:
        print(f"  {problem}")
    return not problems


def disturb(running: Cluster, chance: random.Random, faults: Faults) -> None:
    """Kill or pause one part, let it be down for a while, bring it back and wait until it works."""
    name = chance.choice(("postgres", "postgres", "redis", "api", "api", "worker", "scheduler"))
    seconds = chance.uniform(*_FAULT)
    if name == "postgres":
        kind = chance.choice(("kill", "pause"))
        if kind == "kill":
            running.postgres.kill()
            time.sleep(seconds)
            running.postgres.start()
        else:
            running.postgres.pause()
            time.sleep(seconds)
            running.postgres.resume()
        faults.add(name, kind, until_it_appends(running.nodes))
    elif name == "redis":
        running.redis.stop()
        time.sleep(seconds)
        if chance.random() < 0.3:
            # Also a Redis that has lost everything.
            running.redis.start()
            running.redis.flush()
        else:
            running.redis.start()
        faults.add(name, "kill", until_it_appends(running.nodes))
    else:
        node = chance.choice(running.nodes)
        part = node.parts[name]
        kind = chance.choice(("kill", "pause"))
        node.is_down = name == "api"
        down(part, kind, seconds)
        faults.add(part.name, kind, node.wait() if name == "api" else 0.0)
        node.is_down = False


def down(part: Part, kind: str, seconds: float) -> None:
    """Kill a process and start it again, or pause it."""
    if kind == "kill":
        part.kill()
        time.sleep(seconds)
        part.start()
    else:
        part.pause()
        time.sleep(seconds)
        part.resume()


def until_it_appends(nodes: Sequence[Node]) -> float:
    """Return the seconds until every node acknowledges an append."""
    started = time.monotonic()
    for node in nodes:
        while time.monotonic() - started < _RECOVER_SECONDS_MAX:
            event = {"type": "message.added", "payload": {"role": "user", "text": "still there?"}}
            try:
                if httpx.post(f"{node.base}/v1/namespaces/probe/events", json=event, timeout=30).is_success:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
    return time.monotonic() - started


def wait_until_settled(running: Cluster) -> tuple[float, list[str]]:
    """Wait until every node reports no backlog; return the seconds it took, and what is left then."""
    started = time.monotonic()
    left = [f"node {node.name} reports a backlog" for node in running.nodes]
    while left and time.monotonic() - started < _SETTLE_SECONDS_MAX:
        time.sleep(1)
        left = [problem for node in running.nodes for problem in backlog_of(node)]
    return time.monotonic() - started, left


def backlog_of(node: Node) -> list[str]:
    """Return what a node still has to do, or what is wrong with it."""
    try:
        health = httpx.get(f"{node.base}/health", timeout=30).json()
    except httpx.HTTPError as error:
        return [f"node {node.name}: {error!r}"]
    lag = {name: health["lag"][name] for name in ("read_models", "embeddings", "extraction") if health["lag"][name]}
    problems = [*health["problems"], *([f"lag {lag}"] if lag else [])]
    # A process that was killed is shown for ten minutes.
    return [f"node {node.name}: {problem}" for problem in problems if "has died" not in problem]


def compare(log: EventLog, promises: Sequence[Promises]) -> list[str]:
    """Return what the log has lost, moved, doubled or was never sent, and effects that it has twice."""
    acknowledged = {key: version for client in promises for key, version in client.acknowledged.items()}
    sent = {key for client in promises for key in client.sent}
    problems: list[str] = []
    versions: dict[tuple[str, str], int] = {}
    for namespace in sorted({namespace for namespace, _ in sent}):
        events = events_of(log, namespace)
        problems += effect_problems(namespace, events)
        for event in events:
            if event.type != "message.added":
                continue
            if (namespace, event.id) in versions:
                problems.append(f"{namespace} {event.id} is in the log twice")
            if (namespace, event.id) not in sent:
                problems.append(f"{namespace} {event.id} was never sent")
            versions[namespace, event.id] = event.version
        if not verify(log, namespace).is_intact:
            problems.append(f"{namespace}: the hash chain is broken")
    problems += [
        f"{namespace} {event_id} was acknowledged as version {version} and is at {versions.get((namespace, event_id))}"
        for (namespace, event_id), version in acknowledged.items()
        if versions.get((namespace, event_id)) != version
    ]
    return problems


def events_of(log: EventLog, namespace: str) -> list[RecordedEvent]:
    """Return all events of a namespace."""
    events: list[RecordedEvent] = []
    while page := log.read(namespace, after=len(events), limit=5_000):
        events += page
    return events


def effect_problems(namespace: str, events: Sequence[RecordedEvent]) -> list[str]:
    """Return effects that are in the log twice: a message read twice, a summary of the same turns made twice."""
    read: Counter[str] = Counter()
    summarised: Counter[tuple[str, str]] = Counter()
    for event in events:
        payload = orjson.loads(event.payload)
        if event.type == "facts.extracted":
            items = [*payload.get("facts", ()), *payload.get("preferences", ()), *payload.get("relationships", ())]
            statements = Counter(orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode() for item in items)
            read.update(set(statements))
        elif event.type in ("episodes.compressed", "episode.distilled"):
            summarised.update((event.type, source) for source in payload["source_events"])
    return [
        *(f"{namespace}: extracted {count} times: {item[:120]}" for item, count in read.items() if count > 1),
        *(
            f"{namespace}: {kind} {count} times of {source}"
            for (kind, source), count in summarised.items()
            if count > 1
        ),
    ]


def compare_read_models(running: Cluster, log: EventLog, namespaces: Sequence[str]) -> list[str]:
    """Return the namespaces whose read model is not what a replay of the log gives."""
    problems: list[str] = []
    for node in running.nodes:
        for namespace in namespaces:
            try:
                version = log.head(namespace).version
            except StorageError as error:
                problems.append(str(error))
                continue
            answer = httpx.post(f"{node.base}/v1/namespaces/{namespace}/check", timeout=120).json()
            if not answer.get("equal") or answer["version"] != version:
                problems.append(f"node {node.name}: the read model of {namespace} is not that of a replay: {answer}")
    return problems


def report(running: Cluster, promises: Sequence[Promises], faults: Faults, settle_seconds: float) -> None:
    """Print what was done, what came of it, and the times."""
    outcomes: Counter[str] = Counter()
    for client in promises:
        outcomes.update(client.outcomes)
    print(f"faults {sum(faults.done.values())}: {dict(sorted(faults.done.items()))}")
    print(f"appends acknowledged {sum(len(client.acknowledged) for client in promises)}")
    print(f"answers {dict(sorted(outcomes.items()))}")
    print(f"retrievals with a note {sum(client.degraded for client in promises)}")
    for name in ("append", "retrieve", "health"):
        seconds = sorted(value for client in promises for value in getattr(client, f"{name}_seconds"))
        print(f"{name:9} {percentiles(seconds)}")
    for name, values in sorted(faults.recovered.items()):
        print(
            f"recovery of {name:9} p50 {statistics.median(values):.1f} s, max {max(values):.1f} s, {len(values)} times"
        )
    print(f"processes that ended themselves and were started again: {sum(part.restarts for part in running.parts())}")
    print(f"all work done {settle_seconds:.0f} s after the last fault")
    tracebacks: Counter[str] = Counter()
    for part in running.parts():
        tracebacks.update(part.tracebacks())
    print(f"tracebacks in the logs: {dict(tracebacks) or 'none'}")


def percentiles(seconds: Sequence[float]) -> str:
    """Return the percentiles of sorted times, as text."""
    if not seconds:
        return "none"
    points = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
    last = len(seconds) - 1
    return ", ".join(f"{name} {1_000 * seconds[min(last, int(at * len(seconds)))]:.0f} ms" for name, at in points)
