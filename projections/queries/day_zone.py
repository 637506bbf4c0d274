"""Day zone: the zones in which the days of a namespace are counted, where times and questions name none.

The zone of a time is its own offset, else the zone that its message or session names, both in `utc_offset` of the
episode; else the zone of the namespace, else that of the settings.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import cached_property

import apsw

from recollect.events.envelope import DAY_US
from recollect.events.local_time import fixed_zone, local_time, offset_minutes, zone_named, zone_offset
from recollect.projections.queries.records import fetch_tuples, fetch_value

_MINUTE_US = 60_000_000
# The zone that the namespace was configured with.
_NAMESPACE_ZONE = "SELECT value FROM namespace_settings WHERE name = 'timezone'"
# The zone of the last message of a user, and of all users.
_OF_USER = "SELECT at_us, utc_offset, timezone FROM user_zones WHERE speaker = ?"
_OF_LAST_USER = "SELECT at_us, utc_offset, timezone FROM user_zones ORDER BY at_us DESC, version DESC LIMIT 1"


def day_end_us(at_us: int, utc_offset: int) -> int:
    """Return the end of the day of a time in its zone, in microseconds since 1970 UTC."""
    offset_us = utc_offset * _MINUTE_US
    return ((at_us + offset_us) // DAY_US + 1) * DAY_US - offset_us


class DayZone:
    """The zones of the times of one read model.

    Parameters:
        connection: the read model.
        default: the zone of the settings.
    """

    def __init__(self, connection: apsw.Connection, default: tzinfo = UTC) -> None:
        self._connection = connection
        self.default = default

    @cached_property
    def of_namespace(self) -> tzinfo:
        """Return the zone of the namespace, else that of the settings."""
        name: str | None = fetch_value(self._connection, _NAMESPACE_ZONE)
        return (name and zone_named(name)) or self.default

    def of_user(self, speaker: str | None) -> tzinfo:
        """Return the zone of the last message of a user: the named one where its offset is the same, for other days.

        Parameters:
            speaker: the user; None, or a name that no message has, for the user who wrote last.
        """
        rows = fetch_tuples(self._connection, _OF_USER, (speaker.casefold(),)) if speaker else []
        rows = rows or fetch_tuples(self._connection, _OF_LAST_USER)
        if not rows or rows[0][1] is None:
            return self.of_namespace
        at_us, offset, name = rows[0]
        if name is not None:
            return zone_named(name) or fixed_zone(offset)
        is_of_namespace = offset_minutes(local_time(at_us, self.of_namespace)) == offset
        return self.of_namespace if is_of_namespace else fixed_zone(offset)

    def local(self, at_us: int, stored: int | None) -> datetime:
        """Return a time in its zone; `stored` is its offset in the read model."""
        return local_time(at_us, fixed_zone(self.offset(at_us, stored)))

    def offset(self, at_us: int, stored: int | None, session_id: str | None = None) -> int:
        """Return the minutes east of UTC of a time; `stored` is its offset in the read model.

        Parameters:
            session_id: the session of a turn that was read from the log, whose zone it has not been compared with.
        """
        if stored is None and session_id is not None:
            stored = self._of_session(session_id, at_us)
        if stored is not None:
            return stored
        zone = self.of_namespace
        return 0 if zone is UTC else offset_minutes(local_time(at_us, zone))

    def _of_session(self, session_id: str, at_us: int) -> int | None:
        """Return the minutes east of UTC of the zone of a session: the zone that it names, else that of its turns."""
        rows = fetch_tuples(self._connection, "SELECT timezone, utc_offset FROM sessions WHERE id = ?", (session_id,))
        if not rows:
            return None
        named = zone_offset(rows[0][0], at_us)
        return rows[0][1] if named is None else named
