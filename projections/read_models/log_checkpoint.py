"""Log checkpoint: compares the checkpoint of a read model with the log that it was projected from."""

from __future__ import annotations

from recollect.events.backends.log import EventLog
from recollect.projections.schema.schema import ReadModelState


def has_checkpoint(log: EventLog, namespace: str, state: ReadModelState) -> bool:
    """Return whether the log has the projected events: the chain hash at the checkpoint covers all before it.

    Raises:
        StorageError: the log cannot be read.
    """
    events = log.read(namespace, after=state.checkpoint - 1, limit=1)
    return bool(events) and (events[0].version, events[0].hash) == (state.checkpoint, state.checkpoint_hash)
