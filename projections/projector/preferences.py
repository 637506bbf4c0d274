"""Preferences: adds preferences and their endings to the timelines of a category and name."""

from __future__ import annotations

import apsw

from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.fact_endings import Ending, FactEndings
from recollect.projections.projector.fact_rows import PREFERENCE_TABLE
from recollect.projections.projector.value_timelines import ValueTimelines


class Preferences(ValueTimelines):
    """The table `preferences`."""

    def __init__(self, connection: apsw.Connection, endings: FactEndings) -> None:
        super().__init__(connection, PREFERENCE_TABLE, endings.of_preference)
        self._endings = endings

    def end(self, event: RecordedEvent, ending: Ending) -> None:
        """End the preferences that an ending speaks of."""
        for id in self._endings.matching_preferences(ending):
            for row in self.rows.select("id = ?", id):
                self.add_act(row.group, ending.id, ending.kind, ending.at_us, row.value)
                self.refresh(event, row.group, row.topic)
