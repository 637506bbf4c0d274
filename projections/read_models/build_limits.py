"""Build limits: how many read models of past versions may be built or waited for at a time.

A build replays a namespace up to a version, which takes a second for 20,000 events. Without limits, one caller who asks
for 500 moments would keep the processor busy for all others, and the threads of the HTTP server waiting.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from recollect.events.errors import TooManyBuilds

#: Versions that are built or wait for it, over all namespaces.
_BUILDS_MAX = 8
#: The same of one namespace: a reader who goes through its past, one moment after the other, does not fill it.
_NAMESPACE_BUILDS_MAX = 4
#: Threads that wait for a build, of the 40 that the HTTP server has for requests.
_WAITERS_MAX = 16
#: Builds at once in the threads of callers: more of them would only share the processor.
_CALLERS_MAX = 2
#: Seconds after which a caller may ask again: the time of a build of a usual namespace.
_RETRY_SECONDS = 2

#: A namespace and a version.
_Moment = tuple[str, int]


class BuildLimits:
    """The builds of one process. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The number of builds and waiting threads of each version.
        self._users: Counter[_Moment] = Counter()
        self._callers = threading.BoundedSemaphore(_CALLERS_MAX)

    def enter(self, namespace: str, version: int) -> None:
        """Count one more build of a version, or one more thread that waits for it; `leave` ends it.

        Raises:
            TooManyBuilds: too many versions are being built, or too many threads wait.
        """
        moment = (namespace, version)
        with self._lock:
            if moment not in self._users:
                of_namespace = sum(name == namespace for name, _ in self._users)
                if len(self._users) >= _BUILDS_MAX or of_namespace >= _NAMESPACE_BUILDS_MAX:
                    raise TooManyBuilds(
                        f"{len(self._users)} read models of the past are being built; ask again when they are done",
                        retry_seconds=_RETRY_SECONDS,
                    )
            if self._users.total() >= _WAITERS_MAX:
                raise TooManyBuilds(
                    "many requests wait for read models of the past; ask again when these are built",
                    retry_seconds=_RETRY_SECONDS,
                )
            self._users[moment] += 1

    def leave(self, namespace: str, version: int) -> None:
        """Count one build or waiting thread less."""
        with self._lock:
            self._users[namespace, version] -= 1
            if self._users[namespace, version] <= 0:
                del self._users[namespace, version]

    @contextmanager
    def caller(self, namespace: str, version: int) -> Generator[None]:
        """Let the thread of a caller build a version, after the other callers.

        Raises:
            TooManyBuilds: too many versions are being built, or too many threads wait.
        """
        self.enter(namespace, version)
        try:
            with self._callers:
                yield
        finally:
            self.leave(namespace, version)
