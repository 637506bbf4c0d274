"""Errors: the tree of all exceptions that Recollect raises; each message tells the user what to do.

RecollectError
├── InvalidInput            the input is not valid; nothing was written    HTTP 422, exit 2
│   ├── InvalidEvent        an event's field                               HTTP 422
│   ├── InvalidNamespace    a namespace's name                             HTTP 422
│   ├── TooLarge            over a stated limit                            HTTP 413
│   ├── NotFound            an object that does not exist                  HTTP 404
│   └── NotSupported        not supported by this version or backend       HTTP 501
├── Conflict                conflicts with the log; nothing was written    HTTP 409, exit 2
│   ├── EventIdConflict     same id, other content
│   ├── VersionConflict     `expected_version` is not the head
│   └── Erased              the event, its subject or its namespace was erased  HTTP 410
├── AccessDenied            the caller may not do this; nothing was done   exit 2
│   ├── Unauthenticated     no token, or one that is wrong or has ended    HTTP 401
│   ├── ScopeMissing        the token lacks a scope                        HTTP 403
│   ├── ForeignOrigin       a page of another site sent the request        HTTP 403
│   ├── ForeignHost         the request names a host that is not this one  HTTP 421
│   └── TooManyRequests     over the rate of a token or an address         HTTP 429
├── StorageError            the disk or a file on it                       HTTP 503, exit 2
│   ├── AppendUnknown       the append failed, but may be recorded all the same
│   ├── LogUnreachable      the database server of the log does not answer; nothing was recorded
│   ├── DiskFull            no space left                                  HTTP 507
│   ├── ReadOnly            the folder or file cannot be written
│   ├── ForeignFile         a file is damaged, or another program wrote it
│   │   └── OtherVersion    a read model of another version, which is built again
│   ├── LogMissing          the log of the data folder is missing, or is another log
│   ├── NewerFile           a newer version of Recollect wrote it
│   ├── LogRewound          the log lost events that a read model has projected
│   ├── KeyMissing          the key of an encrypted event cannot be read
│   ├── MemoryClosed        the memory or the client was closed
│   └── FolderInUse         another process holds the lock of the data folder
├── StillBuilding           a read model of the past is not built yet; in `degraded` of a retrieval
│   └── TooManyBuilds       too many others are being built                HTTP 429
├── ServerUnavailable       a remote server is not reached, or not in time exit 2
├── ContractMismatch        an answer is not that of this version          exit 2
├── NotSettled              background work of a namespace is unfinished   HTTP 500, exit 1
└── ProjectionFailed        an event could not be projected                HTTP 500, exit 1
"""

from __future__ import annotations

from pathlib import Path


class RecollectError(Exception):
    """Base of every error that Recollect raises on purpose."""


class InvalidInput(RecollectError):
    """The input was refused and nothing was written.

    Parameters:
        message: the problem and its solution.
        field: dotted path of the field, such as ``events.3.payload.text``.
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
    """The object that the caller names does not exist."""


class NotSupported(InvalidInput):
    """This version or this backend does not support the operation or the event."""


class Conflict(RecollectError):
    """The input conflicts with the log; nothing was written."""


class EventIdConflict(Conflict):
    """The log has an event with this id and other content. Use a new id for new content."""

    def __init__(self, namespace: str, event_id: str, version: int) -> None:
        super().__init__(
            f"event id {event_id!r} is taken in namespace {namespace!r} by version {version}, which has other "
            "content; use a new id for new content"
        )
        self.namespace = namespace
        self.event_id = event_id
        self.version = version


class VersionConflict(Conflict):
    """The namespace's head is not the expected version. Read the events in between, then append again."""

    def __init__(self, namespace: str, expected: int, actual: int) -> None:
        super().__init__(
            f"namespace {namespace!r} is at version {actual}, not at the expected {expected}; read the events "
            "in between, then append again"
        )
        self.namespace = namespace
        self.expected = expected
        self.actual = actual


class Erased(Conflict):
    """The event, its subject or its namespace was erased, and stays erased. Nothing was written."""


class AccessDenied(RecollectError):
    """The caller may not do this; nothing was done."""


class Unauthenticated(AccessDenied):
    """The request has no token, or one that is unknown, revoked or expired. Send `Authorization: Bearer <token>`."""


class ScopeMissing(AccessDenied):
    """The token lacks a scope that the route needs. Create a token with this scope."""


class ForeignOrigin(AccessDenied):
    """A web page of another site sent the request. Send it from a program, or from a page of an allowed host."""


class ForeignHost(AccessDenied):
    """The request names a host that is not this server's. Use its address, or allow the name in the settings."""


class TooManyRequests(AccessDenied):
    """More requests than allowed in a minute. Wait as long as `Retry-After` says, then send the request again.

    Parameters:
        retry_seconds: the seconds after which a request is accepted again.
    """

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class StorageError(RecollectError):
    """The disk, a file on it, or the database server reports an error."""

    #: The file at fault, where it is known.
    path: Path | None = None


class AppendUnknown(StorageError):
    """The append failed while it was written, so it may be recorded all the same. Send the same ids again."""

    #: The ids of the events, from a client of a remote server; a repeated append with them records nothing twice.
    event_ids: tuple[str, ...] = ()


class LogUnreachable(StorageError):
    """The database server of the log does not answer: nothing was recorded, nothing new was read. Try again soon."""


class DiskFull(StorageError):
    """The disk is full; free some space. No acknowledged event was lost."""


class ReadOnly(StorageError):
    """The data folder or the log's database cannot be written. Check owner, mode and mount, or the database's role."""


class ForeignFile(StorageError):
    """A file in the data folder is damaged or was not written by Recollect."""


class OtherVersion(ForeignFile):
    """The file is the read model of another version of Recollect, and is built again from the log."""


class LogMissing(StorageError):
    """The log of the data folder is missing. Restore it, or begin another with `recollect init --new-log`."""


class NewerFile(StorageError):
    """A newer version of Recollect wrote this file. Install that version or a later one."""


class LogRewound(StorageError):
    """An older copy of the log replaced the log of a read model. Rebuild the read model: recollect replay.

    The read model holds data that the log does not have, so reading it is refused until it is rebuilt.

    Parameters:
        namespace: the namespace of the read model.
        version: the last event that the read model has projected.
    """

    def __init__(self, namespace: str, version: int) -> None:
        super().__init__(
            f"the read model of namespace {namespace!r} has projected version {version}, which the log does not have, "
            "or has with other content: the log was restored from a backup. Rebuild with: recollect replay"
        )
        self.namespace = namespace
        self.version = version


class KeyMissing(StorageError):
    """The key of an encrypted event cannot be read. Restore keys.db, or set the master key that wrapped its keys."""


class MemoryClosed(StorageError):
    """The memory or the client is closed. Open another one, and close it when nothing uses it any more."""


class ErasedMeanwhile(StorageError):
    """Events were erased while their texts were embedded, so nothing of these was stored. Embed again."""


class FolderInUse(StorageError):
    """Another process serves this data folder, or changes its embedding model. Stop it, or use another folder."""


class ServerUnavailable(RecollectError):
    """A remote server cannot be reached, or does not answer in time. Check its address, and that it runs."""


class ContractMismatch(RecollectError):
    """The answer of a remote server is not that of this version of Recollect. Check the address and both versions."""


class StillBuilding(RecollectError):
    """A read model of the past was not built in time. It is being built in the background; send the request again."""


class TooManyBuilds(StillBuilding):
    """Too many read models of the past are being built at a time. Ask for this one when some of them are done.

    Parameters:
        retry_seconds: the seconds after which some of them are probably done.
    """

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class NotSettled(RecollectError):
    """Background work of a namespace is unfinished, mostly because other clients keep appending. Settle it again.

    Parameters:
        namespace: the namespace of the work.
        reason: the reason why settling ended.
    """

    def __init__(self, namespace: str, reason: str) -> None:
        super().__init__(
            f"the background work of namespace {namespace!r} is unfinished: {reason}; call settle again when no client "
            "appends to it"
        )
        self.namespace = namespace
        self.reason = reason


class ProjectionFailed(RecollectError):
    """An event could not be projected to a read model.

    Parameters:
        namespace: the namespace of the read model.
        version: the version of the event.
        reason: the failure, as text.
    """

    def __init__(self, namespace: str, version: int, reason: str) -> None:
        super().__init__(f"namespace {namespace!r}: version {version} could not be projected: {reason}")
        self.namespace = namespace
        self.version = version
        self.reason = reason


def short_text(error: BaseException) -> str:
    """Return the type of an error and its message on one line, for logs; the message is cut at 200 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def public_text(error: BaseException) -> str:
    """Return the message of an error for callers on other machines.

    An error of the disk names files, addresses or namespaces, which are the operator's; its class says what to do.
    """
    if isinstance(error, StorageError):
        return " ".join((type(error).__doc__ or "").partition("\n\n")[0].split())
    return str(error)
