"""Episodes with turns: the queries on episodes, over a read model and turns that it no longer holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import apsw

from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.queries.episode_writers import Writer, writer_of
from recollect.projections.queries.queried_episodes import EpisodeDetails


class EpisodesWithTurns(EpisodeQueries):
    """The queries of a read model, and turns that it no longer holds.

    Parameters:
        turns: the turns by version, which are in no row of the read model.
    """

    def __init__(self, connection: apsw.Connection, days: DayZone, turns: Mapping[int, EpisodeDetails]) -> None:
        super().__init__(connection, days)
        self._turns = turns

    def versions_of(self, episode_ids: Collection[str]) -> list[int]:
        """Return the versions of the episodes and turns with these ids; missing ones are left out."""
        ids = frozenset(episode_ids)
        return [*super().versions_of(ids), *(version for version, turn in self._turns.items() if turn.id in ids)]

    def all_writers(self) -> set[Writer]:
        """Return who wrote the episodes and turns."""
        return super().all_writers() | {writer_of(turn.type, turn.role, turn.id) for turn in self._turns.values()}

    def versions_written_by(self, writer: Writer) -> list[int]:
        """Return the versions of the episodes and turns of a writer."""
        turns = (version for version, turn in self._turns.items() if writer_of(turn.type, turn.role, turn.id) == writer)
        return [*super().versions_written_by(writer), *turns]

    def texts(self, versions: Sequence[int]) -> dict[int, str]:
        """Return the texts of these episodes and turns by version; missing ones are left out."""
        texts = {version: self._turns[version].text for version in versions if version in self._turns}
        return super().texts(versions) | texts

    def ids(self, versions: Sequence[int]) -> dict[int, str]:
        """Return the ids of the episodes and turns of `versions`; missing ones are left out."""
        return super().ids(versions) | {it: self._turns[it].id for it in versions if it in self._turns}

    def details(self, version: int) -> EpisodeDetails:
        """Return the episode or the turn of a version.

        Raises:
            LookupError: no episode and no turn has this version.
        """
        turn = self._turns.get(version)
        return super().details(version) if turn is None else turn
