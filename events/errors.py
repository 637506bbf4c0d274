"""The errors of Recollect: one small tree, each message saying what to do.

RecollectError
├── InvalidInput            the caller's input; nothing was written        HTTP 422, exit 2
│   ├── InvalidEvent        an event's field                               HTTP 422
│   ├── InvalidNamespace    a namespace's name                             HTTP 422
│   ├── TooLarge            over a stated limit                            HTTP 413
│   ├── NotFound            what is named is not there                     HTTP 404
│   └── NotSupported        what this version or backend cannot do         HTTP 501
├── Conflict                the log holds something else; nothing written  HTTP 409, exit 2
│   ├── EventIdConflict     same id, other content
│   └── VersionConflict     `expected_version` is not the head
├── StorageError            the disk or a file on it                       HTTP 503, exit 2
│   ├── AppendUnknown       the append failed; it may be there all the same
│   ├── DiskFull            no room left                                   HTTP 507
│   ├── ReadOnly            the folder or file cannot be written
│   ├── ForeignFile         a file of ours is not ours, or is damaged
│   ├── LogMissing          the log of the data folder is gone, or is another one
│   ├── NewerFile           a newer Recollect wrote it
│   ├── LogRewound          the log lost what a read model has folded
│   └── FolderInUse         another process holds the data folder for what only one may do
├── StillBuilding           a read model of the past is not there yet; in `degraded` of a retrieval
├── NotSettled              background work of a namespace is left           HTTP 500, exit 1
└── ProjectionFailed        an event that a read model cannot fold         HTTP 500, exit 1
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class RecollectError(Exception):
    """Anything that Recollect raises on purpose."""


class InvalidInput(RecollectError):
    """The input was refused and nothing was written.

    Parameters:
        message: what is wrong and what would be right.
        field: where, as a dotted path such as ``events.3.payload.text``.
    """

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class InvalidEvent(InvalidInput):
    """An event does not fit the catalogue."""


class InvalidNamespace(InvalidInput):
    """A namespace's name is missing or not allowed."""


class TooLarge(InvalidInput):
    """An event, a batch or a request is over its limit."""


class NotFound(InvalidInput):
    """What the caller names is not there."""


class NotSupported(InvalidInput):
    """This version or this backend cannot do what is asked for; an event that asks for it would be a false promise."""


class Conflict(RecollectError):
    """The log already holds something else; nothing was written."""


class EventIdConflict(Conflict):
    """An event with this id, but other content, is in the log. Use a new id for new content."""

    def __init__(self, namespace: str, event_id: str, version: int) -> None:
        super().__init__(
            f"event id {event_id!r} is taken in namespace {namespace!r} by version {version}, which has other "
            "content; use a new id for new content"
        )
        self.namespace = namespace
        self.event_id = event_id
        self.version = version


class VersionConflict(Conflict):
    """The namespace's head is not the expected version. Read what came in between, then append again."""

    def __init__(self, namespace: str, expected: int, actual: int) -> None:
        super().__init__(
            f"namespace {namespace!r} is at version {actual}, not at the expected {expected}; read the events "
            "in between, then append again"
        )
        self.namespace = namespace
        self.expected = expected
        self.actual = actual


class StorageError(RecollectError):
    """The disk, or a file on it, does not let us work."""

    #: The file at fault, when SQLite named one.
    path: Path | None = None


class AppendUnknown(StorageError):
    """The append failed while it was written, so it may be there all the same. Send the same ids again."""


class DiskFull(StorageError):
    """There is no room left on the disk. Free some; nothing acknowledged was lost."""


class ReadOnly(StorageError):
    """The data folder, or a file in it, cannot be written. Check its owner, mode and mount."""


class ForeignFile(StorageError):
    """A file in the data folder is damaged or was not written by Recollect."""


class LogMissing(StorageError):
    """The data folder was made from a missing log. Restore it, or begin another with `recollect init --new-log`."""


class NewerFile(StorageError):
    """A newer Recollect wrote this file. Install that version or a later one."""


class LogRewound(StorageError):
    """The log does not have an event that a read model has folded: an older copy of the log was put in its place.

    What the read model says is no longer true, so it refuses to answer until it is rebuilt.

    Parameters:
        namespace: whose read model.
        version: the last event that it has folded.
    """

    def __init__(self, namespace: str, version: int) -> None:
        super().__init__(
            f"the read model of namespace {namespace!r} has folded version {version}, which the log does not have or "
            "has otherwise: it was restored from a backup. Rebuild with: recollect replay"
        )
        self.namespace = namespace
        self.version = version


class FolderInUse(StorageError):
    """Another process serves this data folder, or changes its model. Stop it, or use another folder."""


class StillBuilding(RecollectError):
    """A read model of the past was not built in time; it is being built, so ask again."""


class NotSettled(RecollectError):
    """Background work of a namespace is left, mostly because others keep appending to it. Settle it again.

    Parameters:
        namespace: whose work.
        reason: why settling ended.
    """

    def __init__(self, namespace: str, reason: str) -> None:
        super().__init__(
            f"the background work of namespace {namespace!r} did not come to its end: {reason}; call settle again "
            "when no one appends to it"
        )
        self.namespace = namespace
        self.reason = reason


class ProjectionFailed(RecollectError):
    """A read model could not fold an event.

    Parameters:
        namespace: whose read model.
        version: the event that failed.
        reason: the failure, as text.
    """

    def __init__(self, namespace: str, version: int, reason: str) -> None:
        super().__init__(f"namespace {namespace!r}: version {version} could not be projected: {reason}")
        self.namespace = namespace
        self.version = version
        self.reason = reason


def first_problem(error: ValidationError, *, root: str = "") -> InvalidInput:
    """Return the first problem that pydantic found, as our error.

    Parameters:
        root: the field's name when the problem is with the input as a whole.
    """
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in problem["loc"]) or root
    return InvalidInput(problem["msg"].removeprefix("Value error, "), field=field)


def short_text(error: BaseException) -> str:
    """Return the type of an error and its message on one line, cut at 200 characters: enough for a log or a reason."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
