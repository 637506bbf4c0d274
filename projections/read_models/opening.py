"""Opening: compares the file of a read model with its schema, its namespace and the log before it is used."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import apsw

from recollect.events.backends.answer_deadline import answers_by
from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile, LogRewound, OtherVersion, StorageError
from recollect.events.storage.namespace_folder import folder_name
from recollect.projections.projector.projector import Projector
from recollect.projections.read_models.log_checkpoint import has_checkpoint
from recollect.projections.schema.schema import SCHEMA_VERSION, ReadModelState, read_state

_logger = logging.getLogger(__name__)

#: Seconds that the log has to show an event while a file is opened, which holds up all other namespaces. Without an
#: answer the file is used: a later catch-up compares it with the log again.
_OPENING_SECONDS_MAX = 0.25


class RebuildLog:
    """Warns of files that are built again from the log; of an upgrade once, which concerns all namespaces."""

    def __init__(self) -> None:
        self._is_upgrade_logged = False

    def warn(self, namespace: str, problem: str | ForeignFile) -> None:
        """Log why the read model of `namespace` is built again."""
        if not isinstance(problem, OtherVersion):
            name = folder_name(namespace)
            _logger.warning("the read model of namespace %.12s is built again from the log: %s", name, problem)
        elif not self._is_upgrade_logged:
            self._is_upgrade_logged = True
            _logger.warning("read models are built again from the log for this version of Recollect")


def open_projector(log: EventLog, namespace: str, connection: apsw.Connection, path: Path) -> Projector:
    """Return the projector of an open file.

    Raises:
        OtherVersion: the file is of another schema. ForeignFile: it is not a read model of this log and namespace.
        LogRewound: the log no longer has the event at the checkpoint.
    """
    try:
        row = read_state(connection)
    except (apsw.SQLError, LookupError) as error:
        if isinstance(error, apsw.SQLError) and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            # The first versions had the state in a table of another name.
            raise OtherVersion(f"{path} is of another version") from error
        raise ForeignFile(f"{path} has no read model: {error}") from error
    if row.schema_version != SCHEMA_VERSION:
        raise OtherVersion(f"{path} is of another version")
    if (row.log_id, row.namespace) != (log.log_id, namespace):
        raise ForeignFile(f"{path} is of another log or namespace")
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
