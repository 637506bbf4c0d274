"""Episode queries: select turns and summaries by session, time and text, and the sources of summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import apsw

from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.episode_writers import WRITER_COLUMNS, Writer
from recollect.projections.queries.queried_episodes import (
    EpisodeDetails,
    EpisodeRow,
    EpisodeToEmbed,
    SpokenAfter,
    SpokenText,
    SummaryRow,
    TierTotals,
)
from recollect.projections.queries.records import (
    Bindings,
    fetch_dicts,
    fetch_records,
    fetch_tuples,
    fetch_value,
    fetch_values,
    json_list,
)

#: Condition of a live episode: raw, and not stale, superseded, invalidated or rejected.
_LIVE = "episodes.tier = 'raw' AND episodes.status = 'active'"
#: Condition of a live turn: a message of a conversation, also one that repeats a recalled memory.
_LIVE_TURN = "episodes.tier = 'raw' AND episodes.status IN ('active', 'echo') AND episodes.type = 'conversation'"
#: Condition of an episode that is not the source of a summary.
_UNSUMMARISED = "NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version)"
#: Columns of `EpisodeRow`.
_ROW = (
    "episodes.version, episodes.id, episodes.session_id, episodes.role, episodes.speaker, episodes.text, "
    "episodes.caption, episodes.importance, episodes.occurred_at_us, episodes.utc_offset"
)

# Input of compression.
_UNSUMMARISED_BEFORE = f"""
SELECT {_ROW} FROM episodes WHERE {_LIVE} AND occurred_at_us < ? AND {_UNSUMMARISED} ORDER BY session_id, version
"""
# Input of distillation.
_COMPRESSED_BEFORE = f"""
SELECT {_ROW} FROM episodes
WHERE tier = 'compressed' AND status = 'active' AND pinned = 0 AND occurred_at_us < ? ORDER BY version LIMIT ?
"""
# The part of a conversation that is in no summary.
_SESSION_TURNS = f"""
SELECT {_ROW} FROM episodes WHERE session_id = ? AND {_LIVE_TURN} AND {_UNSUMMARISED} ORDER BY version
"""
# The messages of its users in that part, most important first.
_SESSION_USER_TURNS = f"""
SELECT {_ROW} FROM episodes WHERE session_id = ? AND role = 'user' AND {_LIVE_TURN} AND {_UNSUMMARISED}
ORDER BY importance DESC, version DESC LIMIT ?
"""
# The size of that part.
_SESSION_TOKENS = f"""
SELECT coalesce(sum(token_count), 0) FROM episodes WHERE session_id = ? AND {_LIVE_TURN} AND {_UNSUMMARISED}
"""
# Summaries of a session, of any tier.
_SESSION_SUMMARIES = """
SELECT version, id, session_id, text FROM episodes WHERE session_id = ? AND tier <> 'raw' ORDER BY version
"""
# Input of the observer.
_UNOBSERVED_TURNS = f"""
SELECT {_ROW} FROM episodes LEFT JOIN observation_cursors ON observation_cursors.session_id = episodes.session_id
WHERE episodes.session_id = ? AND {_LIVE_TURN} AND version > coalesce(through, 0) ORDER BY version LIMIT ?
"""
# Input of short forms. Repeats the condition of the partial index episodes_long, so that SQLite uses it; `+` keeps it
# from reading all episodes in the order of versions instead.
_LONG_TURNS = f"""
SELECT {_ROW} FROM episodes
WHERE tier = 'raw' AND type = 'conversation' AND short IS NULL AND token_count > 100 AND token_count > ?
ORDER BY +version LIMIT ?
"""
_DISTILLED = """
SELECT version, id, session_id, text FROM episodes WHERE tier = 'distilled' AND status = 'active' ORDER BY version
"""
# Old raw episodes that are sources of a summary or not active; without pinned episodes and sources of corrections.
_EXPIRED_RAW = """
SELECT id FROM episodes
WHERE tier = 'raw' AND pinned = 0 AND importance < ? AND occurred_at_us < ?
    AND (status <> 'active' OR EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version))
    AND id NOT IN (
        SELECT source.value FROM facts, json_each(facts.source_events) AS source WHERE source_type = 'corrected'
    )
ORDER BY version LIMIT ?
"""
# Episodes with a time of expiry are summaries.
_EXPIRED_SUMMARIES = "SELECT id FROM episodes WHERE pinned = 0 AND expires_at_us < ? ORDER BY version LIMIT ?"
# The least important summaries, after a number of more important ones.
_SUMMARIES_OVER = """
SELECT id FROM episodes WHERE tier <> 'raw' AND status = 'active' AND pinned = 0
ORDER BY importance DESC, occurred_at_us DESC, version DESC LIMIT -1 OFFSET ?
"""
# Texts of a few words, such as greetings, do not show the topic of a session.
_LAST_TEXTS = f"""
SELECT substr(text, 1, ?) FROM episodes WHERE session_id = ? AND {_LIVE} AND token_count > 4
ORDER BY version DESC LIMIT ?
"""
_LAST_VERSIONS = f"""
SELECT version, id FROM episodes WHERE session_id = ? AND {_LIVE} ORDER BY version DESC LIMIT ?
"""
_PINNED_VERSIONS = """
SELECT version FROM episodes WHERE pinned = 1 AND status = 'active' AND version <= ? ORDER BY version DESC LIMIT ?
"""
_DETAILS = """
SELECT version, id, type, text, caption, occurred_at_us, session_id, speaker, tier, role, short, utc_offset
FROM episodes WHERE version IN (SELECT value FROM json_each(?))
"""
_IDS = "SELECT version, id FROM episodes WHERE version IN (SELECT value FROM json_each(?))"
# Input of `EpisodeArrays`. The length is that of the indexed texts; search terms count for summaries only, since those
# of other episodes repeat the text.
_ARRAY_ROWS = """
SELECT version, occurred_at_us, session_id, role, speaker, importance, previous,
    ifnull(octet_length(text), 0) + ifnull(octet_length(caption), 0)
        + iif(tier = 'raw', 0, ifnull(octet_length(terms), 0)),
    tier = 'raw', utc_offset
FROM episodes WHERE status = 'active' AND version > ? AND version <= ? ORDER BY version
"""
# The sources of a summary, and whether each is an active one that has expired.
_EXPIRED_SOURCES = """
SELECT source, status = 'active' AND NOT EXISTS (SELECT 1 FROM episodes WHERE episodes.version = source)
FROM episode_sources WHERE episode_sources.version = ? ORDER BY source
"""
# Episodes after a version.
_TO_EMBED = """
SELECT version, id, tier, previous, speaker, text, caption
FROM episodes WHERE version > ? ORDER BY version LIMIT ?
"""
# Episodes, each with the version of the previous one of its session when that has not expired.
_PREVIOUS = """
SELECT e.version, e.previous
FROM episodes AS e JOIN episodes AS p ON p.version = e.previous WHERE e.version IN (SELECT value FROM json_each(?))
"""
_SPOKEN_AFTER = "SELECT previous, speaker, text, caption FROM episodes WHERE version = ?"
_TIER_TOTALS = """
SELECT tier, count(*), sum(token_count + (length(coalesce(caption, '')) + 3) / 4) FROM episodes GROUP BY tier
"""
#: The tiers of episodes, in the order of compaction.
TIERS = ("raw", "compressed", "distilled")
# The oldest of some episodes, which may have expired.
_FIRST_TIME = """
SELECT occurred_at_us, utc_offset FROM episodes WHERE id IN (SELECT value FROM json_each(?1))
UNION ALL SELECT occurred_at_us, utc_offset FROM episode_sources WHERE id IN (SELECT value FROM json_each(?1))
ORDER BY occurred_at_us LIMIT 1
"""
_VERSIONS_OF = "SELECT version FROM episodes WHERE id IN (SELECT value FROM json_each(?))"
_WRITERS = f"SELECT DISTINCT {WRITER_COLUMNS} FROM episodes WHERE id IN (SELECT value FROM json_each(?))"
_TEXTS = "SELECT version, text FROM episodes WHERE version IN (SELECT value FROM json_each(?))"
_UTC_OFFSETS = """
SELECT version, occurred_at_us, utc_offset FROM episodes WHERE version IN (SELECT value FROM json_each(?))
"""
# A message that may be shown, also one that a summary stands for.
_SAID = """
SELECT occurred_at_us, text FROM episodes
WHERE id = ? AND tier = 'raw' AND status NOT IN ('forgotten', 'invalidated', 'rejected', 'quarantined')
"""


class EpisodeQueries:
    """Queries on the tables `episodes` and `episode_sources`."""

    def __init__(self, connection: apsw.Connection, days: DayZone) -> None:
        self._connection = connection
        self._days = days
        #: The episodes that `details` has returned: a result reads each of them several times.
        self._details: dict[int, EpisodeDetails] = {}

    def count(self) -> int:
        """Return the number of episodes."""
        # SQLite counts over the shortest index; a condition on the version would prevent it.
        return fetch_value(self._connection, "SELECT count(*) FROM episodes")

    def count_after(self, version: int) -> int:
        """Return the number of episodes after `version`."""
        return fetch_value(self._connection, "SELECT count(*) FROM episodes WHERE version > ?", (version,))

    def count_turns_after(self, version: int) -> int:
        """Return the number of messages after `version`."""
        statement = "SELECT count(*) FROM episodes WHERE type = 'conversation' AND tier = 'raw' AND version > ?"
        return fetch_value(self._connection, statement, (version,))

    def version_of(self, episode_id: str) -> int | None:
        """Return the version of an episode; None: no episode has this id."""
        return fetch_value(self._connection, "SELECT version FROM episodes WHERE id = ?", (episode_id,))

    def versions_of(self, episode_ids: Collection[str]) -> list[int]:
        """Return the versions of the episodes with these ids; missing episodes are left out."""
        return fetch_values(self._connection, _VERSIONS_OF, (json_list(episode_ids),)) if episode_ids else []

    def first_time(self, episode_ids: Sequence[str]) -> tuple[int, int] | None:
        """Return the time of the oldest of these episodes, and its minutes east of UTC; None: they are not here.

        Those that have expired are still here as sources of summaries.
        """
        rows = fetch_tuples(self._connection, _FIRST_TIME, (json_list(episode_ids),))
        return (rows[0][0], self._days.offset(*rows[0])) if rows else None

    def writers(self, episode_ids: Sequence[str]) -> set[Writer]:
        """Return who wrote these episodes; missing episodes are left out."""
        return _writers(fetch_tuples(self._connection, _WRITERS, (json_list(episode_ids),)))

    def all_writers(self) -> set[Writer]:
        """Return who wrote the episodes that are not summaries."""
        statement = f"SELECT DISTINCT {WRITER_COLUMNS} FROM episodes WHERE tier = 'raw'"
        return _writers(fetch_tuples(self._connection, statement))

    def versions_written_by(self, writer: Writer) -> list[int]:
        """Return the versions of the episodes of a writer that are not summaries."""
        statement = f"SELECT version FROM episodes WHERE tier = 'raw' AND ({WRITER_COLUMNS}) IS (?, ?, ?)"
        return fetch_values(self._connection, statement, writer)

    def texts(self, versions: Sequence[int]) -> dict[int, str]:
        """Return the texts of these episodes by version; missing episodes are left out."""
        return dict(fetch_tuples(self._connection, _TEXTS, (json_list(versions),)))

    def said(self, episode_id: str) -> tuple[int, str] | None:
        """Return the time and the text of a message that may be shown; None without one."""
        return self._connection.execute(_SAID, (episode_id,)).fetchone()

    def details(self, version: int) -> EpisodeDetails:
        """Return the episode of a version.

        Raises:
            LookupError: no episode has this version.
        """
        if version not in self._details:
            self.read_details([version])
        if version not in self._details:
            raise LookupError(f"no episode has the version {version}")
        return self._details[version]

    def read_details(self, versions: Sequence[int]) -> None:
        """Read the episodes of `versions` in one statement; `details` then returns them without another one."""
        offset = self._days.offset
        unread = [version for version in versions if version not in self._details]
        for row in fetch_tuples(self._connection, _DETAILS, (json_list(unread),)) if unread else ():
            self._details[row[0]] = EpisodeDetails(*row[:-1], utc_offset=offset(row[5], row[-1]))

    def ids(self, versions: Sequence[int]) -> dict[int, str]:
        """Return the ids of the episodes of `versions`; missing episodes are left out."""
        ids = {version: self._details[version].id for version in versions if version in self._details}
        unread = [version for version in versions if version not in ids]
        return ids | dict(fetch_tuples(self._connection, _IDS, (json_list(unread),)) if unread else ())

    def utc_offsets(self, versions: Sequence[int]) -> dict[int, int]:
        """Return the minutes east of UTC of these episodes by version; missing episodes are left out."""
        rows = fetch_tuples(self._connection, _UTC_OFFSETS, (json_list(versions),))
        return {version: self._days.offset(at_us, offset) for version, at_us, offset in rows}

    def _zoned(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row of an episode with its zone, which is that of the namespace when it has none."""
        row["utc_offset"] = self._days.offset(row["occurred_at_us"], row["utc_offset"])
        return row

    def _rows(self, statement: str, bindings: Bindings) -> list[EpisodeRow]:
        return [EpisodeRow(**self._zoned(row)) for row in fetch_dicts(self._connection, statement, bindings)]

    def unsummarised_before(self, cutoff_us: int) -> list[EpisodeRow]:
        """Return the live episodes before `cutoff_us` that are in no summary, ordered by session and version."""
        return self._rows(_UNSUMMARISED_BEFORE, (cutoff_us,))

    def compressed_before(self, cutoff_us: int, *, limit: int) -> list[EpisodeRow]:
        """Return the active compressed episodes before `cutoff_us` that are not pinned, ordered by version."""
        return self._rows(_COMPRESSED_BEFORE, (cutoff_us, limit))

    def session_turns(self, session_id: str) -> list[EpisodeRow]:
        """Return the live turns of a session that are in no summary, ordered by version."""
        return self._rows(_SESSION_TURNS, (session_id,))

    def session_user_turns(self, session_id: str, *, limit: int) -> list[EpisodeRow]:
        """Return the users' live messages of a session that are in no summary, most important and newest first."""
        return self._rows(_SESSION_USER_TURNS, (session_id, limit))

    def session_tokens(self, session_id: str) -> int:
        """Return the estimated tokens of `session_turns`."""
        return fetch_value(self._connection, _SESSION_TOKENS, (session_id,))

    def session_summaries(self, session_id: str) -> list[SummaryRow]:
        """Return the summaries of a session, ordered by version."""
        return fetch_records(self._connection, SummaryRow, _SESSION_SUMMARIES, (session_id,))

    def unobserved_turns(self, session_id: str, *, limit: int) -> list[EpisodeRow]:
        """Return the live turns of a session after its last observed turn, ordered by version."""
        return self._rows(_UNOBSERVED_TURNS, (session_id, limit))

    def long_turns(self, *, tokens_min: int, limit: int) -> list[EpisodeRow]:
        """Return the messages of over `tokens_min` tokens (at least 100) without a short form, ordered by version."""
        return self._rows(_LONG_TURNS, (tokens_min, limit))

    def distilled(self) -> list[SummaryRow]:
        """Return the active distilled episodes, ordered by version."""
        return fetch_records(self._connection, SummaryRow, _DISTILLED)

    def expired_raw_ids(self, *, importance_kept: int, cutoff_us: int, limit: int) -> list[str]:
        """Return the ids of the raw episodes before `cutoff_us` that may expire, ordered by version.

        Parameters:
            importance_kept: lowest importance of the episodes that never expire.
        """
        return fetch_values(self._connection, _EXPIRED_RAW, (importance_kept, cutoff_us, limit))

    def expired_summary_ids(self, now_us: int, *, limit: int) -> list[str]:
        """Return the ids of the episodes past their time of expiry that are not pinned, ordered by version."""
        return fetch_values(self._connection, _EXPIRED_SUMMARIES, (now_us, limit))

    def summary_ids_over(self, summaries_max: int) -> list[str]:
        """Return the ids of the active summaries after the `summaries_max` most important ones."""
        return fetch_values(self._connection, _SUMMARIES_OVER, (summaries_max,))

    def last_texts(self, session_id: str, *, chars: int, limit: int) -> list[str]:
        """Return the first `chars` characters of a session's last live episodes of over 4 tokens, oldest first."""
        return fetch_values(self._connection, _LAST_TEXTS, (chars, session_id, limit))[::-1]

    def pinned_versions(self, through: int, *, limit: int) -> list[int]:
        """Return the versions of the newest pinned episodes up to the version `through`, newest first."""
        return fetch_values(self._connection, _PINNED_VERSIONS, (through, limit))

    def last_versions(self, session_id: str, *, limit: int) -> list[tuple[int, str]]:
        """Return version and id of a session's last live episodes, oldest first."""
        rows: list[Any] = fetch_tuples(self._connection, _LAST_VERSIONS, (session_id, limit))
        return rows[::-1]

    def containing(self, patterns: Sequence[str], *, limit: int) -> list[int]:
        """Return the versions of active episodes that match LIKE patterns: most patterns first, then newest."""
        score = " + ".join(["(text LIKE ? ESCAPE '\\')"] * len(patterns))
        statement = (
            f"SELECT version, {score} AS score FROM episodes WHERE score > 0 AND status = 'active' "
            "ORDER BY score DESC, version DESC LIMIT ?"
        )
        return [row[0] for row in fetch_tuples(self._connection, statement, (*patterns, limit))]

    def source_versions(self, version: int) -> list[int]:
        """Return the versions of a summary's active sources, ascending; empty for other episodes."""
        statement = "SELECT source FROM episode_sources WHERE version = ? AND status = 'active' ORDER BY source"
        return fetch_values(self._connection, statement, (version,))

    def source_ids(self, version: int) -> list[str]:
        """Return the event ids of a summary's active sources, in order; empty for other episodes."""
        return fetch_values(
            self._connection,
            "SELECT id FROM episode_sources WHERE version = ? AND status = 'active' ORDER BY source",
            (version,),
        )

    def expired_sources(self, version: int) -> list[int] | None:
        """Return the versions of a summary's active sources that have expired, ascending; None: it has no source."""
        rows = fetch_tuples(self._connection, _EXPIRED_SOURCES, (version,))
        return [source for source, is_readable in rows if is_readable] if rows else None

    def to_embed(self, after: int, *, limit: int) -> list[EpisodeToEmbed]:
        """Return the next episodes after a version, including summaries, ordered by version."""
        return [
            EpisodeToEmbed(version=version, id=id, tier=tier, spoken=SpokenText(*columns), previous=previous)
            for version, id, tier, previous, *columns in fetch_tuples(self._connection, _TO_EMBED, (after, limit))
        ]

    def previous(self, versions: Sequence[int]) -> dict[int, int]:
        """Return the version of the previous episode of its session for each of these, unless it has expired."""
        return dict(fetch_tuples(self._connection, _PREVIOUS, (json_list(versions),)))

    def spoken_after(self, version: int) -> SpokenAfter | None:
        """Return the text of an episode and the version of the one before it; None when it has expired."""
        rows = fetch_tuples(self._connection, _SPOKEN_AFTER, (version,))
        return SpokenAfter(SpokenText(*rows[0][1:]), rows[0][0]) if rows else None

    def tier_totals(self) -> dict[str, TierTotals]:
        """Return the number and size of the episodes by tier."""
        rows = fetch_tuples(self._connection, _TIER_TOTALS)
        totals = {tier: TierTotals(episodes=episodes, tokens=tokens) for tier, episodes, tokens in rows}
        return {tier: totals.get(tier, TierTotals(episodes=0, tokens=0)) for tier in TIERS}

    def array_rows(self, after: int, through: int) -> list[tuple[Any, ...]]:
        """Return the rows of `EpisodeArrays` after the version `after` up to `through`.

        Columns: version, occurred_at_us, session_id, role, speaker, importance, previous, length in octets, is raw,
        utc_offset.
        """
        return fetch_tuples(self._connection, _ARRAY_ROWS, (after, through))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over these columns of all episodes, ordered by version."""
        statement = f"SELECT {', '.join(names)} FROM episodes ORDER BY version"
        rows: Any = self._connection.execute(statement)
        return rows


def _writers(rows: Sequence[tuple[Any, ...]]) -> set[Writer]:
    return {Writer(type, role, bool(imported)) for type, role, imported in rows}
