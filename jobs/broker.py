"""Which broker carries the messages to the workers, by its URL."""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import AgeLimit, Middleware, Retries, ShutdownNotifications, TimeLimit

from recollect.events.errors import InvalidInput

#: After this a message is dropped: the sweep has long sent another one.
_AGE_MS_MAX = 3_600_000
#: A stuck job is ended after this. A batch of embeddings takes seconds.
_TIME_MS_MAX = 600_000


def open_broker(url: str) -> dramatiq.Broker:
    """Return the broker at `url`: ``memory://`` within this process, ``redis://host:port/db`` across machines.

    Nothing is lost with either: a message says only that a namespace has news, and the sweep finds what got lost.

    Raises:
        InvalidInput: no broker knows this URL.
    """
    if url == "memory://":
        return StubBroker(middleware=_middleware())
    if url.startswith(("redis://", "rediss://")):
        return RedisBroker(url=url, middleware=_middleware(), namespace="recollect")
    raise InvalidInput(f"no broker for {url!r}; use memory:// or redis://host:port/0", field="broker")


def _middleware() -> list[Middleware]:
    # Few retries: the next news or the next sweep tries again anyway.
    return [
        AgeLimit(max_age=_AGE_MS_MAX),
        TimeLimit(time_limit=_TIME_MS_MAX),
        ShutdownNotifications(),
        Retries(max_retries=2, min_backoff=1_000, max_backoff=30_000),
    ]
