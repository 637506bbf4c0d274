"""What is in a read model, for tests of what handlers write."""

from __future__ import annotations

from typing import Any

from recollect.projections.read_models.read_models import ReadModels


def rows(models: ReadModels, query: str, *, namespace: str = "a") -> list[tuple[Any, ...]]:
    """Return the rows of a query on the read model of `namespace`, caught up with the log."""
    models.catch_up(namespace)
    with models.reading(namespace) as snapshot:
        return list(snapshot.connection.execute(query))
