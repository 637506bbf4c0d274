"""Run store: the port for scheduled runs, attempts, dead letters and heartbeats."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from recollect.jobs.following.cursor import CursorStore

#: A worker or scheduler without a heartbeat for this time counts as dead: six heartbeats were missed.
HEARTBEAT_SECONDS_MAX = 30.0
#: A process that died is shown for this time, in which an operator sees the alert of it.
HEARTBEAT_SHOWN_SECONDS_MAX = 600.0
#: Dead letters that are stored; the oldest are deleted first.
DEAD_LETTERS_MAX = 1_000

Role = Literal["worker", "scheduler"]
ROLES: tuple[Role, ...] = ("worker", "scheduler")


class Run(Struct, frozen=True, kw_only=True):
    """A scheduled run of a job. Times are microseconds since 1970 UTC."""

    job: str
    #: When the run was due.
    scheduled_at_us: int
    started_at_us: int
    #: When a namespace was last finished.
    progressed_at_us: int
    #: None while the run is in progress.
    ended_at_us: int | None
    #: Number of namespaces that were processed.
    namespaces: int
    #: Number of events that were appended.
    events: int
    #: Number of namespaces whose work failed.
    errors: int
    #: The message of the last error.
    error: str | None


class Finished(Struct, frozen=True, kw_only=True):
    """The state of a namespace in which a scheduled job had nothing left to do."""

    #: The name of the namespace's folder, since the store has no names of users.
    namespace_key: str
    #: The head of the namespace.
    version: int
    #: What else the work depends on, such as settings and the embedding model, as a hash.
    basis: str
    #: The time from which the job has work again without new events, in microseconds since 1970 UTC; None: never.
    due_us: int | None

    def is_idle(self, version: int, basis: str, at_us: int) -> bool:
        """Return whether the job has nothing to do at `at_us` in a namespace whose head is `version`."""
        return (self.version, self.basis) == (version, basis) and (self.due_us is None or self.due_us > at_us)


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A message that failed at every attempt."""

    #: The id of the message.
    id: str
    queue: str
    actor: str
    #: The arguments of the actor.
    arguments: tuple[str | int, ...]
    #: Microseconds since 1970 UTC.
    failed_at_us: int
    #: The end of the traceback.
    error: str


class Heartbeat(Struct, frozen=True, kw_only=True):
    """The latest heartbeat of a process."""

    #: Random; new for each start of a process and each role.
    id: str
    role: Role
    host: str
    pid: int
    #: Microseconds since 1970 UTC.
    seen_at_us: int

    def is_alive(self, now_us: int) -> bool:
        """Return whether the heartbeat is younger than `HEARTBEAT_SECONDS_MAX`."""
        return now_us - self.seen_at_us < HEARTBEAT_SECONDS_MAX * 1_000_000


def new_heartbeat(role: Role, now_us: int) -> Heartbeat:
    """Return the first heartbeat of this process in `role`."""
    return Heartbeat(id=secrets.token_hex(4), role=role, host=socket.gethostname(), pid=os.getpid(), seen_at_us=now_us)


class RunStore(CursorStore, Protocol):
    """The port: a SQLite file in the data folder for one machine, Redis for several. Safe to use from many threads."""

    def claim(self, job: str, scheduled_at_us: int, now_us: int, stale_us: int) -> bool:
        """Claim a scheduled run; return whether this caller must start it. Of several callers, one must.

        A run that was claimed, has not ended and made no progress for `stale_us` can be claimed again: its scheduler
        died, or its messages were lost.
        """
        ...

    def record_progress(
        self, job: str, scheduled_at_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """Count one processed namespace of a run, with its appended events or its error."""
        ...

    def record_finished(self, job: str, finished: Sequence[Finished]) -> None:
        """Record the state of namespaces in which a scheduled job had nothing left to do."""
        ...

    def finished(self, job: str, namespace_keys: Sequence[str]) -> dict[str, Finished]:
        """Return the recorded states for a scheduled job by namespace key, without the namespaces that have none."""
        ...

    def end(self, job: str, scheduled_at_us: int, now_us: int) -> None:
        """Record that a run has ended."""
        ...

    def runs(self) -> list[Run]:
        """Return the last run of every job, sorted by job."""
        ...

    def add_attempt(self, message_id: str) -> int:
        """Count an attempt at a message before its work starts; return the number of attempts."""
        ...

    def clear_attempts(self, message_id: str) -> None:
        """Delete the attempts of a message that was processed."""
        ...

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """Store a message that failed at every attempt."""
        ...

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters, oldest first."""
        ...

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Remove a dead letter and return it; None when another process removed it first."""
        ...

    #: What `forget` cannot remove, for the receipt of an erasure; None when nothing is left.
    forget_leaves: str | None

    def forget(self, namespace: str) -> int:
        """Remove the dead letters of a namespace and the errors of runs about it, which may quote its events.

        Returns:
            The number of dead letters and errors.
        """
        ...

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        """Store the latest heartbeat of a process."""
        ...

    def deregister(self, heartbeat_id: str) -> None:
        """Delete the heartbeat of a process that stops normally."""
        ...

    def heartbeats(self) -> list[Heartbeat]:
        """Return the heartbeats younger than `HEARTBEAT_SHOWN_SECONDS_MAX`, sorted by role and id.

        Those of dead processes are among them, so that operators see which ones died.
        """
        ...

    def note_read(self, namespace_key: str, version: int) -> None:
        """Record that the extraction has looked at the messages of a namespace up to `version`.

        Without facts in them it appends no event, so that the log does not say it. `namespace_key` is the name of the
        namespace's folder, since this store has no names of users.
        """
        ...

    def read_through(self, namespace_key: str) -> int:
        """Return the version up to which the extraction has looked at a namespace; 0 when nothing is recorded."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
