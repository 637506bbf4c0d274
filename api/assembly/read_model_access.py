"""Read model access: opens the read model of a namespace, caught up with the log or as of a past moment."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from recollect.api.as_of import AsOf, parse_as_of
from recollect.api.assembly.memory_parts import MemoryParts
from recollect.events.limits import check_namespace
from recollect.projections.queries.snapshot import Snapshot


@contextmanager
def reading(parts: MemoryParts, namespace: str, as_of: AsOf = None) -> Generator[Snapshot]:
    """Open the read model: caught up with the log, or as of a past version.

    Raises:
        InvalidInput: `as_of` is neither a version nor a time, or lies in the future. InvalidNamespace: the name.
        ProjectionFailed: the read model of that version cannot be built. StorageError: the disk.
    """
    moment = parse_as_of(as_of)
    if moment is None:
        parts.read_models.catch_up(check_namespace(namespace))
        opened = parts.read_models.reading(namespace)
    else:
        version = parts.history.version(check_namespace(namespace), moment)
        opened = parts.history.reading(namespace, version)
    with opened as snapshot:
        yield snapshot
