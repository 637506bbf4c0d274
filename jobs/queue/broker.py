"""Which broker carries the messages to the workers, and which records go with it, by its URL."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import AgeLimit, Middleware, Retries, ShutdownNotifications, SkipMessage, TimeLimit

from recollect.events.envelope import now_us
from recollect.events.errors import InvalidInput
from recollect.jobs.job_settings import QueueSettings
from recollect.jobs.queue.redis_run_store import RedisRunStore
from recollect.jobs.queue.run_store import DeadLetter, RunStore
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore

#: After this a message is dropped: the sweep, or the next slot, has long sent another one.
_AGE_MS_MAX = 86_400_000
#: Redis hands a message to another worker when its own has not been heard of for this time.
_HEARTBEAT_MS = 15_000
_ERROR_CHARS_MAX = 4_000


def open_run_store(url: str, data: Path) -> RunStore:
    """Return the records that go with the broker at `url`: a file in the data folder, or the same Redis.

    Raises:
        InvalidInput: no broker knows this URL. StorageError: the file cannot be written.
    """
    return RedisRunStore(url) if _is_redis(url) else SqliteRunStore(data / "jobs.db")


def open_broker(run_store: RunStore, settings: QueueSettings) -> dramatiq.Broker:
    """Return the broker of the settings: ``memory://`` within this process, ``redis://host:port/db`` across machines.

    Nothing is lost with either: a message says only that there may be work, and the sweep finds what got lost.

    Raises:
        InvalidInput: no broker knows this URL.
    """
    middleware: list[Middleware] = [
        # Before the others, since what it skips is not to be retried.
        Attempts(run_store, settings.attempts_max),
        AgeLimit(max_age=_AGE_MS_MAX),
        TimeLimit(time_limit=int(settings.job_seconds_max * 1_000)),
        ShutdownNotifications(),
        Retries(max_retries=settings.attempts_max - 1, min_backoff=1_000, max_backoff=30_000),
    ]
    if _is_redis(settings.broker):
        # Dead letters have records of their own, which nobody purges after a week.
        return RedisBroker(
            url=settings.broker, middleware=middleware, namespace="recollect", heartbeat_timeout=_HEARTBEAT_MS
        )
    return StubBroker(middleware=middleware)


def _is_redis(url: str) -> bool:
    if url.startswith(("redis://", "rediss://", "unix://")):
        return True
    if url != "memory://":
        raise InvalidInput(f"no broker for {url!r}; use memory:// or redis://host:port/0", field="broker")
    return False


class Attempts(Middleware):
    """Counts attempts before the work, so that a message whose worker is killed each time ends as a dead letter."""

    def __init__(self, run_store: RunStore, attempts_max: int) -> None:
        self._records = run_store
        self._attempts_max = attempts_max

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:  # noqa: ARG002 -- dramatiq's
        """Count; refuse a message that was tried too often."""
        if self._records.add_attempt(message.message_id) > self._attempts_max:
            self._bury(message, "its worker died on it every time")
            raise SkipMessage("tried too often")

    def after_process_message(
        self,
        broker: dramatiq.Broker,  # noqa: ARG002 -- dramatiq's
        message: Any,
        *,
        result: Any = None,  # noqa: ARG002 -- dramatiq's
        exception: BaseException | None = None,
    ) -> None:
        """Forget the attempts on what went well; bury what failed for good."""
        if exception is None:
            self._records.clear_attempts(message.message_id)
        elif message.failed:
            self._bury(message, "".join(traceback.format_exception(exception)))

    def _bury(self, message: Any, error: str) -> None:
        self._records.add_dead_letter(
            DeadLetter(
                id=message.message_id,
                queue=message.queue_name,
                actor=message.actor_name,
                arguments=tuple(message.args),
                failed_at_us=now_us(),
                error=error[-_ERROR_CHARS_MAX:],
            )
        )
        self._records.clear_attempts(message.message_id)
