"""What is in a read model, for tests of what handlers write."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels


def rows(models: ReadModels, query: str, *, namespace: str = "a") -> list[tuple[Any, ...]]:
    """Return the rows of a query on the read model of `namespace`, caught up with the log."""
    models.catch_up(namespace)
    with models.reading(namespace) as snapshot:
        return list(connection_of(snapshot).execute(query))


def connection_of(snapshot: Snapshot) -> apsw.Connection:
    """Return the connection of a snapshot, which it lends to nobody else: tests look at the tables themselves."""
    return getattr(snapshot, "_connection")  # noqa: B009 -- private, and meant to be
