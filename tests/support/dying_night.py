"""A process that runs scheduled nights with the real queue, and dies before the write that it is given.

    python dying_night.py FOLDER BROKER POINT

Writes are the commits of all SQLite files, renamed, linked and removed files, and on Redis the changes of the run store
and of the queue. It dies as by `kill -9`. Without a death it writes the number of writes to FOLDER/points and ends.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import apsw
import dramatiq

from recollect import Recollect
from recollect.api.settings import Settings, load_settings
from recollect.events.envelope import microseconds, now_us
from recollect.jobs.queue import due_namespaces
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import open_broker

#: The exit code of a death.
DIED = 9
#: When the conversations took place.
SAID_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
#: The scheduled runs: compressed after a day, distilled after a week, expired after two; the last one finds nothing.
NIGHTS = [
    (job, microseconds(SAID_AT + timedelta(days=days)))
    for job, days in (("compact", 2), ("retain", 2), ("compact", 9), ("repair", 9), ("compact", 17), ("compact", 18))
]
#: Seconds that one run may take on a busy machine.
_RUN_SECONDS_MAX = 60.0
_RUN_STORE_WRITES = (
    "claim", "record_progress", "record_finished", "end", "add_attempt", "clear_attempts",
)  # fmt: skip


class Death:
    """Counts the writes of this process, and ends it before one of them.

    Parameters:
        point: the number of the write, from 1; 0 for none.
    """

    def __init__(self, point: int) -> None:
        self._point = point
        self._lock = threading.Lock()
        self.points = 0

    def reach(self, *_: object) -> bool:
        """Count a write that is about to be made. False is what SQLite's hook needs to go on."""
        with self._lock:
            self.points += 1
            if self.points == self._point:
                os._exit(DIED)
        return False

    def before(self, owner: Any, *names: str) -> None:
        """Count each call of these functions as a write."""
        for name in names:
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*arguments: Any, **options: Any) -> Any:
            self.reach()
            return function(*arguments, **options)

        return counted


def settings_of(folder: Path, broker: str) -> Settings:
    """Return the settings of the memory in `folder`."""
    retention = [{"namespace": "b", "type": "message.added", "keep_last": 4}]
    return load_settings(data=folder, broker=broker, embedding_model="none", retention=retention)


def run_nights(folder: Path, broker_url: str, death: Death) -> None:
    """Run all nights that have not ended, as a scheduler and a worker do after a start."""
    settings = settings_of(folder, broker_url)
    with Recollect(settings=settings, workers=False) as memory:
        store = memory.parts.run_store
        broker: Any = open_broker(store, settings.queue.broker)
        waiting: dict[str, int] = {"timeout": int(1_000 * _RUN_SECONDS_MAX)}
        if settings.queue.broker.startswith("redis"):
            from dramatiq.brokers import redis  # noqa: PLC0415

            death.before(type(store), *_RUN_STORE_WRITES)
            death.before(redis.RedisBroker, "enqueue")
            death.before(getattr(redis, "_RedisConsumer"), "ack")  # noqa: B009
            # The messages of a dead process are delivered again at once, and not after 15 seconds and at random.
            broker.heartbeat_timeout, broker.maintenance_chance = 1, 1_000_000
            waiting["interval"] = 5
        actors = declare_actors(broker, memory.parts.job_context, store)
        worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=10)
        broker.emit_after("process_boot")
        worker.start()
        broker.join("think", **waiting)
        for job, slot_us in NIGHTS:
            # Every unfinished run counts as stalled.
            if store.claim(job, slot_us, now_us(), 0):
                actors.run.send(job, slot_us, "")
                _wait_for(lambda job=job, slot_us=slot_us: _has_ended(store, job, slot_us))
                broker.join("think", **waiting)
                left = due_namespaces.next_batch(memory.parts.job_context, store, job, slot_us, "").due
                # After an erasure a namespace is looked at once more.
                assert not left or job == "retain", f"{job} has ended and has left {[head.namespace for head in left]}"
        worker.stop()
        broker.close()
    (folder / "points").write_text(str(death.points))


def _has_ended(store: Any, job: str, slot_us: int) -> bool:
    return any((run.job, run.scheduled_at_us) == (job, slot_us) and run.ended_at_us for run in store.runs())


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _RUN_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "the run does not end"
        time.sleep(0.005)


def main() -> None:
    # Two batches of three namespaces, as a night of many has several.
    setattr(due_namespaces, "BATCH_NAMESPACES", 2)  # noqa: B010
    folder, broker, point = sys.argv[1:]
    death = Death(int(point))
    apsw.connection_hooks.append(lambda connection: connection.set_commit_hook(death.reach))
    death.before(os, "replace", "rename", "link", "unlink")
    run_nights(Path(folder), broker, death)


if __name__ == "__main__":
    main()
