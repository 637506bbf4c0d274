"""Which episodes a request may see at all."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.api.retrieval.request import RetrieveRequest
from recollect.events.envelope import microseconds


@dataclass(frozen=True, slots=True)
class Scope:
    """A condition on the table `episodes`."""

    #: SQL that begins with " AND", or nothing.
    condition: str
    #: What its question marks stand for.
    values: tuple[int | str, ...]


def scope_of(request: RetrieveRequest) -> Scope:
    """Return what `request` limits the search to."""
    conditions: list[str] = []
    values: list[int | str] = []
    if request.since is not None:
        conditions.append(" AND occurred_at_us >= ?")
        values.append(microseconds(request.since))
    if request.until is not None:
        conditions.append(" AND occurred_at_us < ?")
        values.append(microseconds(request.until))
    if request.session_id is not None:
        conditions.append(" AND session_id = ?")
        values.append(request.session_id)
    return Scope("".join(conditions), tuple(values))
