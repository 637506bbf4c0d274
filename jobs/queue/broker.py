"""Broker: opens the message broker and the run store of a URL, and counts the attempts at each message."""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import dramatiq
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import AgeLimit, Middleware, Retries, ShutdownNotifications, SkipMessage, TimeLimit

from recollect.events.envelope import now_us
from recollect.events.errors import InvalidInput, short_text
from recollect.jobs.queue.run_store import DeadLetter, RunStore
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore

_logger = logging.getLogger(__name__)

#: Attempts at a message, those ended by a kill included, before it becomes a dead letter.
ATTEMPTS_MAX = 4
#: Seconds after which the work of one message is stopped.
_JOB_SECONDS_MAX = 600.0
#: A message is dropped after a day: the sweep or the next scheduled run has sent another one by then.
_AGE_MS_MAX = 86_400_000
#: Redis gives a message to another worker when its worker sent no heartbeat for this time.
_HEARTBEAT_MS = 15_000
#: Characters of a traceback that a dead letter stores: its end, which names the error.
_ERROR_CHARS_MAX = 4_000


def open_run_store(url: str, data: Path) -> RunStore:
    """Return the run store for the broker at `url`: a file in the data folder `data`, or the same Redis.

    Raises:
        InvalidInput: no broker supports this URL. StorageError: the file cannot be written.
    """
    if _is_redis(url):
        # Late, here and below: the client of Redis takes 0.15 s to import, and most folders have no Redis.
        from recollect.jobs.queue.redis_run_store import RedisRunStore  # noqa: PLC0415

        return RedisRunStore(url)
    return SqliteRunStore(data / "jobs.db")


def open_broker(run_store: RunStore, url: str, *, job_seconds_max: float = _JOB_SECONDS_MAX) -> dramatiq.Broker:
    """Return the broker at `url`: ``memory://`` within this process, ``redis://host:port/db`` across machines.

    Neither can lose work: a message only says that a namespace may have work, and the sweep finds work without one.

    Parameters:
        job_seconds_max: seconds after which the work of one message is stopped.

    Raises:
        InvalidInput: no broker supports this URL.
    """
    middleware: list[Middleware] = [
        # First, because a message that it skips must not be retried.
        Attempts(run_store),
        AgeLimit(max_age=_AGE_MS_MAX),
        TimeLimit(time_limit=int(job_seconds_max * 1_000)),
        ShutdownNotifications(),
        Retries(max_retries=ATTEMPTS_MAX - 1, min_backoff=1_000, max_backoff=30_000),
    ]
    if _is_redis(url):
        from dramatiq.brokers.redis import RedisBroker  # noqa: PLC0415

        # Dead letters go to the run store; dramatiq would purge its own after a week.
        return RedisBroker(url=url, middleware=middleware, namespace="recollect", heartbeat_timeout=_HEARTBEAT_MS)
    return StubBroker(middleware=middleware)


def _is_redis(url: str) -> bool:
    if url.startswith(("redis://", "rediss://", "unix://")):
        return True
    if url != "memory://":
        raise InvalidInput("no broker for this URL; use memory:// or redis://host:port/0", field="broker")
    return False


class Attempts(Middleware):
    """Counts attempts at a message before its work, so that a message that kills its worker becomes a dead letter."""

    def __init__(self, run_store: RunStore) -> None:
        self._run_store = run_store

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:  # noqa: ARG002 -- dramatiq's
        """Count an attempt; skip a message that was attempted too often."""
        try:
            attempts = self._run_store.add_attempt(message.message_id)
        except Exception as error:
            # A full disk, or a broker that has just gone: the attempt counts as none.
            _logger.warning("an attempt could not be counted: %s", short_text(error))
            return
        if attempts > ATTEMPTS_MAX:
            self._add_dead_letter(message, "the worker died at every attempt")
            raise SkipMessage("too many attempts")

    def before_enqueue(self, broker: dramatiq.Broker, message: Any, delay: int | None) -> None:  # noqa: ARG002 -- dramatiq's
        """Remove the traceback that a retry carries: it may quote an event, and Redis would keep it out of reach."""
        message.options.pop("traceback", None)

    def after_process_message(
        self,
        broker: dramatiq.Broker,  # noqa: ARG002 -- dramatiq's
        message: Any,
        *,
        result: Any = None,  # noqa: ARG002 -- dramatiq's
        exception: BaseException | None = None,
    ) -> None:
        """Delete the attempts of a message that succeeded; store a message that failed as a dead letter."""
        if exception is None:
            # What is left of a message that is done expires.
            with suppress(Exception):
                self._run_store.clear_attempts(message.message_id)
        elif message.failed:
            self._add_dead_letter(message, "".join(traceback.format_exception(exception)))

    def _add_dead_letter(self, message: Any, error: str) -> None:
        """Store a message as a dead letter and delete its attempts."""
        self._run_store.add_dead_letter(
            DeadLetter(
                id=message.message_id,
                queue=message.queue_name,
                actor=message.actor_name,
                arguments=tuple(message.args),
                failed_at_us=now_us(),
                error=error[-_ERROR_CHARS_MAX:],
            )
        )
        self._run_store.clear_attempts(message.message_id)
