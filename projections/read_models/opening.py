"""Opening: compares the file of a read model with its schema, its namespace and the log before it is used."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from recollect.events.backends.answer_deadline import answers_by
from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile, LogRewound, StorageError
from recollect.projections.projector.projector import Projector
from recollect.projections.read_models.log_checkpoint import has_checkpoint
from recollect.projections.schema.schema import SCHEMA_VERSION, ReadModelState, read_state

#: Seconds that the log has to show an event while a file is opened, which holds up all other namespaces. Without an
#: answer the file is used: a later catch-up compares it with the log again.
_OPENING_SECONDS_MAX = 0.25


def open_projector(log: EventLog, namespace: str, connection: apsw.Connection, path: Path) -> Projector:
    """Return the projector of an open file.

    Raises:
        ForeignFile: the file is no read model of this schema, log and namespace.
        LogRewound: the log no longer has the event at the checkpoint.
    """
    try:
        row = read_state(connection)
    except (apsw.SQLError, LookupError) as error:
        raise ForeignFile(f"{path} is no read model: {error}") from error
    if (row.schema_version, row.log_id, row.namespace) != (SCHEMA_VERSION, log.log_id, namespace):
        raise ForeignFile(f"{path} is of another schema, log or namespace")
    if row.checkpoint and not _may_have_checkpoint(log, namespace, row):
        raise LogRewound(namespace, row.checkpoint)
    return Projector(log, namespace, connection, path)


def _may_have_checkpoint(log: EventLog, namespace: str, row: ReadModelState) -> bool:
    """Return whether the log has the projected events, or cannot be read in time."""
    try:
        with answers_by(time.monotonic() + _OPENING_SECONDS_MAX):
            return has_checkpoint(log, namespace, row)
    except StorageError:
        # If the log is damaged, keep the read model: it may be the only copy. `recollect verify` reports the damage.
        return True
