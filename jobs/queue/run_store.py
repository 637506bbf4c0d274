"""What is known of jobs wherever they run: slots and runs, attempts, dead letters, heartbeats."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from typing import Literal, Protocol

#: After this without a sign of life a worker or scheduler is taken for dead.
HEARTBEAT_SECONDS_MAX = 30.0
#: Dead letters that are kept; older ones go first.
DEAD_LETTERS_MAX = 1_000

Role = Literal["worker", "scheduler"]
ROLES: tuple[Role, ...] = ("worker", "scheduler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job in one of its slots. Times are microseconds since 1970 UTC."""

    job: str
    scheduled_at_us: int
    started_at_us: int
    #: When something of it was last done.
    progressed_at_us: int
    #: None while it goes on.
    ended_at_us: int | None
    namespaces: int
    events: int
    errors: int
    #: The last one.
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that failed for good."""

    id: str
    queue: str
    actor: str
    arguments: tuple[str | int, ...]
    failed_at_us: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A sign of life."""

    id: str
    role: Role
    host: str
    pid: int
    seen_at_us: int

    def is_alive(self, now_us: int) -> bool:
        """Tell whether it was heard of lately."""
        return now_us - self.seen_at_us < HEARTBEAT_SECONDS_MAX * 1_000_000


def new_heartbeat(role: Role, now_us: int) -> Heartbeat:
    """Return the first sign of life of this process in `role`."""
    return Heartbeat(id=secrets.token_hex(4), role=role, host=socket.gethostname(), pid=os.getpid(), seen_at_us=now_us)


class RunStore(Protocol):
    """The port: a file beside the data for one machine, Redis for several. Safe to use from many threads."""

    def claim(self, job: str, slot_us: int, now_us: int, stale_us: int) -> bool:
        """Tell whether the caller has to begin this slot; of several callers one has to.

        A slot that was claimed, not ended, and not touched for `stale_us` is taken up again: its scheduler died, or its
        messages were lost.
        """
        ...

    def record_progress(
        self, job: str, slot_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """Count one namespace of a slot."""
        ...

    def finish_batch(self, job: str, slot_us: int, after: str) -> None:
        """Note that a page of namespaces was worked off."""
        ...

    def has_batch(self, job: str, slot_us: int, after: str) -> bool:
        """Tell whether a page was worked off already."""
        ...

    def end(self, job: str, slot_us: int, now_us: int) -> None:
        """Note that a slot is done."""
        ...

    def runs(self) -> list[Run]:
        """Return the last run of every job, by name."""
        ...

    def add_attempt(self, message_id: str) -> int:
        """Count an attempt on a message before the work, and return how many that makes."""
        ...

    def clear_attempts(self, message_id: str) -> None:
        """Forget the attempts on a message that was worked off."""
        ...

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """Keep a message that failed for good."""
        ...

    def dead_letters(self) -> list[DeadLetter]:
        """Return the messages that failed for good, oldest first."""
        ...

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Remove a dead letter and return it; None when somebody else was faster."""
        ...

    def heartbeat(self, beat: Heartbeat) -> None:
        """Leave a sign of life."""
        ...

    def deregister(self, beat_id: str) -> None:
        """Say that a process ends as it should."""
        ...

    def heartbeats(self) -> list[Heartbeat]:
        """Return the last sign of life of all that did not leave, dead ones too, for a day."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
