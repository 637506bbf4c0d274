"""Poisoned events: versions whose projection fails, as that of an event that a handler does not expect."""

from __future__ import annotations

import pytest

from recollect.events.envelope import RecordedEvent
from recollect.projections.projector import event_handlers, projector
from recollect.projections.projector.write_batch import WriteBatch
from recollect.projections.read_models import replay


def poison_versions(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return a set to which a test adds the versions whose projection fails from then on."""
    bad: set[int] = set()

    def apply(changes: WriteBatch, event: RecordedEvent) -> None:
        if event.version in bad:
            raise ValueError("poisoned")
        event_handlers.apply_event(changes, event)

    # A handler that fails: no event that the catalogue takes makes one of today fail.
    monkeypatch.setattr(projector, "apply_event", apply)
    monkeypatch.setattr(replay, "apply_event", apply)
    return bad
