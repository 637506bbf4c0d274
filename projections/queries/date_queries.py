"""Date queries: select the dates that messages name."""

from __future__ import annotations

from collections.abc import Sequence, Set

import apsw

from recollect.events.envelope import DAY_US
from recollect.projections.queries.queried_episodes import NamedDate
from recollect.projections.queries.records import fetch_tuples, json_list

# Episodes that name a date in a time range, sources of summaries that do, and their summaries. The days of a date are
# those of the zone of its message, so the middle of its first or last day is compared.
_MENTIONING_DATES = f"""
WITH naming AS (
    SELECT event_id, max(probability) AS probability FROM date_mentions
    WHERE start_us < ?1 AND end_us > ?2 AND end_us - start_us <= ?3
        AND start_us + min(end_us - start_us, {DAY_US}) / 2 < ?1 AND end_us - min(end_us - start_us, {DAY_US}) / 2 > ?2
    GROUP BY event_id
)
SELECT version, probability FROM naming JOIN episodes ON episodes.id = event_id
UNION ALL SELECT source, probability FROM naming JOIN episode_sources ON episode_sources.id = event_id
UNION ALL SELECT version, probability FROM naming JOIN episode_sources ON episode_sources.id = event_id
"""
_DATED_MESSAGES = "SELECT event_id, min(start_us), max(end_us) FROM date_mentions GROUP BY event_id"
# The dates of episodes and of sources of summaries.
_DATES_OF = """
WITH episode AS (
    SELECT episodes.id AS id, version FROM json_each(?1) CROSS JOIN episodes ON episodes.id = value WHERE tier = 'raw'
    UNION SELECT episode_sources.id, source FROM json_each(?1) CROSS JOIN episode_sources ON episode_sources.id = value
)
SELECT id, version, text, start_us, end_us, probability
FROM episode JOIN date_mentions ON event_id = id ORDER BY version, date_mentions.key
"""
# The dates that messages name, with an empty row for a message that names none. It may have expired.
_NAMED_DATES = """
SELECT id, date_mentions.text, start_us, end_us, probability
FROM (
    SELECT id, version FROM episodes WHERE id IN (SELECT value FROM json_each(?1))
    UNION SELECT id, source FROM episode_sources WHERE id IN (SELECT value FROM json_each(?1))
) AS message LEFT JOIN date_mentions ON event_id = id WHERE version <= ?2 ORDER BY key
"""


class DateQueries:
    """Queries on the table `date_mentions`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def named(self, episode_ids: Sequence[str], *, through: int) -> dict[str, list[NamedDate]]:
        """Return the dates that messages name, the empty list for a message without one.

        Parameters:
            through: the version of the last message that was read for dates; later ones are left out.
        """
        dates: dict[str, list[NamedDate]] = {}
        rows = fetch_tuples(self._connection, _NAMED_DATES, (json_list(episode_ids), through)) if episode_ids else ()
        for id, *date in rows:
            of_message = dates.setdefault(id, [])
            if date[0] is not None:
                of_message.append(NamedDate(*date))
        return dates

    def mentioning(self, start_us: int, end_us: int, *, range_us_max: int) -> list[tuple[int, float]]:
        """Return the versions of the episodes that name a date in a time range or have a source that does.

        Each comes with the probability that its words mean this date, and may come more than once.

        The versions of these sources are included.

        Parameters:
            range_us_max: dates with a longer range, such as a year, are left out.
        """
        return fetch_tuples(self._connection, _MENTIONING_DATES, (end_us, start_us, range_us_max))

    def around(self, start_us: int, end_us: int, event_ids: Set[str]) -> dict[tuple[str, int], list[NamedDate]]:
        """Return the dates of the messages that may be about a time range without naming it, by id and version.

        These are the messages with a date that begins before its end and one that ends after its start.

        Parameters:
            event_ids: other messages whose dates are returned.
        """
        ids = [
            id
            for id, first_us, last_us in fetch_tuples(self._connection, _DATED_MESSAGES)
            if (first_us < end_us and last_us > start_us) or id in event_ids
        ]
        dates: dict[tuple[str, int], list[NamedDate]] = {}
        for id, version, *date in fetch_tuples(self._connection, _DATES_OF, (json_list(ids),)):
            dates.setdefault((id, version), []).append(NamedDate(*date))
        return dates
