"""PostgreSQL connection: waits for answers of the server up to a deadline, and remembers that the server is away.

libpq waits for an answer without a limit: a server that is paused, or whose machine has hung, keeps its connections and
never answers.
"""

from __future__ import annotations

import select
import threading
import time
from typing import Any

import psycopg

from recollect.events.backends.answer_deadline import answer_deadline, seconds_left
from recollect.events.errors import LogUnreachable

#: Seconds that a statement waits for its answer without a deadline of its own; an append takes milliseconds, and a
#: page of events less than a second.
ANSWER_SECONDS_MAX = 10.0
#: Seconds without any answer after which a failure counts as an outage. A busy pool alone is not an outage.
_SILENT_SECONDS = 0.3
#: Seconds between two attempts during an outage. All other reads fail at once, so that retrievals keep their time.
_ATTEMPT_SECONDS = 1.0
#: Of what psycopg waits for, the interval in which it looks for signals.
_INTERVAL_SECONDS = 0.1


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that closes itself when the server does not answer by the deadline of `answers_by`."""

    def wait(self, gen: Any, interval: float = _INTERVAL_SECONDS, timeout: float | None = None) -> Any:
        """Return the result of `gen`, as psycopg's method does.

        Raises:
            OperationalError: no answer came in time. The connection is closed then, because the answer may come later.
        """
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        seconds = seconds_left(ANSWER_SECONDS_MAX)
        started = time.monotonic()
        try:
            return super().wait(gen, interval, seconds)
        except psycopg.OperationalError as error:
            if not self.closed and time.monotonic() - started >= seconds:
                self.close()
                raise psycopg.OperationalError(f"no answer in {seconds:.1f} s") from error
            raise


def has_ended(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection has something to read, as it has once the server has ended it."""
    ready = select.poll()
    ready.register(connection.fileno(), select.POLLIN)
    return bool(ready.poll(0))


class Outage:
    """The outage of one server: since when it does not answer, and when it is tried again. Safe to use from threads.

    Parameters:
        location: the server, for messages.
        patience_seconds: seconds of an outage in which a read without a deadline waits for the server to come back.
    """

    def __init__(self, location: str, patience_seconds: float) -> None:
        self._location = location
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._answered_at = time.monotonic()
        #: When the outage began, and when the next attempt is due, in monotonic seconds; None while the server answers.
        self._since: float | None = None
        self._attempt_at = 0.0

    @property
    def is_long(self) -> bool:
        """Return whether the outage is longer than callers wait for its end."""
        since = self._since
        return since is not None and time.monotonic() - since > self._patience_seconds

    def check(self) -> None:
        """Raise `LogUnreachable` when the server is away and the caller has no time to wait for it.

        One caller in each second is let through, to find out whether the server is back.
        """
        since = self._since
        if since is None or (answer_deadline() is None and not self.is_long):
            return
        with self._lock:
            now = time.monotonic()
            if now < self._attempt_at:
                raise LogUnreachable(f"{self._location} has not answered for {now - since:.0f} s")
            self._attempt_at = now + _ATTEMPT_SECONDS

    def answered(self) -> None:
        """Record an answer, which ends an outage."""
        self._answered_at = time.monotonic()
        if self._since is not None:
            with self._lock:
                self._since = None

    def failed(self) -> None:
        """Record that the server did not answer, or could not be reached."""
        with self._lock:
            now = time.monotonic()
            if self._since is None and now - self._answered_at > _SILENT_SECONDS:
                self._since = now
                self._attempt_at = now + _ATTEMPT_SECONDS
