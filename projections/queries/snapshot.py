"""Snapshot: offers the queries on one read model in one read transaction."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, tzinfo
from functools import cached_property
from pathlib import Path

import apsw

from recollect.projections.queries.change_queries import ChangeQueries
from recollect.projections.queries.date_queries import DateQueries
from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.due_queries import DueQueries
from recollect.projections.queries.entity_queries import EntityQueries
from recollect.projections.queries.episode_queries import EpisodeQueries
from recollect.projections.queries.episodes_with_turns import EpisodesWithTurns
from recollect.projections.queries.fact_queries import FactQueries
from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.queries.knowledge_queries import KnowledgeQueries
from recollect.projections.queries.map_queries import MapQueries
from recollect.projections.queries.memory_id_queries import MemoryIdQueries
from recollect.projections.queries.page_queries import PageQueries
from recollect.projections.queries.profile_queries import ProfileQueries
from recollect.projections.queries.progress_queries import ProgressQueries
from recollect.projections.queries.quarantine_queries import QuarantineQueries
from recollect.projections.queries.queried_episodes import EpisodeDetails
from recollect.projections.queries.restriction_queries import RestrictionQueries
from recollect.projections.queries.session_queries import SessionQueries
from recollect.projections.schema.content_hash import content_hash
from recollect.projections.schema.schema import ReadModelState, read_state

#: SQLite instructions between two checks of the deadline: about 100 µs, of which a check takes one or two.
_INSTRUCTIONS_BETWEEN_CHECKS = 10_000


def file_identity(connection: apsw.Connection) -> str:
    """Return the path and inode of a file, which identify this build of the read model; empty: in memory."""
    name = connection.db_filename("main")
    return f"{name} {Path(name).stat().st_ino}" if name else ""


class QueryTimeout(Exception):
    """A query was interrupted because its deadline has passed."""


class Snapshot:
    """An unchanging view of a read model. Only one thread may use it at a time.

    Parameters:
        connection: in a read transaction; other rooms cannot access it.
        version: the last event projected into the read model.
        default_zone: the zone of the days of users for whom no event names one.
    """

    def __init__(self, connection: apsw.Connection, version: int, default_zone: tzinfo = UTC) -> None:
        self._connection = connection
        #: The zones of the times.
        self.days = DayZone(connection, default_zone)
        #: The last event projected into the read model.
        self.version = version

    @cached_property
    def episodes(self) -> EpisodeQueries:
        """Return the queries on episodes."""
        return EpisodeQueries(self._connection, self.days)

    @cached_property
    def dates(self) -> DateQueries:
        """Return the queries on the dates that messages name."""
        return DateQueries(self._connection)

    @cached_property
    def due(self) -> DueQueries:
        """Return the queries on the times at which episodes fall due."""
        return DueQueries(self._connection, self.days)

    @cached_property
    def sessions(self) -> SessionQueries:
        """Return the queries on sessions and their observations."""
        return SessionQueries(self._connection, self.days)

    @cached_property
    def restrictions(self) -> RestrictionQueries:
        """Return the queries on who must not be shown which messages."""
        return RestrictionQueries(self._connection)

    @cached_property
    def entities(self) -> EntityQueries:
        """Return the queries on entities and the graph."""
        return EntityQueries(self._connection)

    @cached_property
    def knowledge(self) -> KnowledgeQueries:
        """Return the queries on facts, preferences, procedures, relationships and documents."""
        return KnowledgeQueries(self._connection)

    @cached_property
    def facts(self) -> FactQueries:
        """Return the queries on the history of facts."""
        return FactQueries(self._connection)

    @cached_property
    def changes(self) -> ChangeQueries:
        """Return the queries on what events changed about facts and preferences."""
        return ChangeQueries(self._connection)

    @cached_property
    def memory_ids(self) -> MemoryIdQueries:
        """Return the queries for memory ids."""
        return MemoryIdQueries(self._connection)

    @cached_property
    def keywords(self) -> KeywordQueries:
        """Return the queries on the keyword index."""
        return KeywordQueries(self._connection)

    @cached_property
    def pages(self) -> PageQueries:
        """Return the queries for pages of the lists."""
        return PageQueries(self._connection, self.days)

    @cached_property
    def map(self) -> MapQueries:
        """Return the queries for the map of entities and for the timeline."""
        return MapQueries(self._connection)

    @cached_property
    def profile(self) -> ProfileQueries:
        """Return the queries for the profile of the namespace."""
        return ProfileQueries(self._connection, self.days)

    @cached_property
    def quarantine(self) -> QuarantineQueries:
        """Return the queries on memories in quarantine."""
        return QuarantineQueries(self._connection)

    @cached_property
    def progress(self) -> ProgressQueries:
        """Return the queries on checkpoint, cursors and file size."""
        return ProgressQueries(self._connection)

    @cached_property
    def state(self) -> ReadModelState:
        """Return the state of the read model."""
        return read_state(self._connection)

    @cached_property
    def file_identity(self) -> str:
        """Return the identity of the file (`file_identity`)."""
        return file_identity(self._connection)

    def with_turns(self, turns: Mapping[int, EpisodeDetails]) -> Snapshot:
        """Return the same view, in which `turns` that the read model no longer holds can be read by version as well."""
        snapshot = Snapshot(self._connection, self.version)
        snapshot.days = self.days
        snapshot.episodes = EpisodesWithTurns(self._connection, self.days, turns)
        return snapshot

    def content_hash(self) -> str:
        """Return the hash over all rows."""
        return content_hash(self._connection)

    @contextmanager
    def interrupted_at(self, deadline: float) -> Generator[None]:
        """Interrupt the queries of the block at `deadline`.

        Parameters:
            deadline: in seconds of `time.monotonic()`.

        Raises:
            QueryTimeout: the deadline has passed.
        """
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _INSTRUCTIONS_BETWEEN_CHECKS)
        try:
            yield
        except apsw.InterruptError as error:
            raise QueryTimeout from error
        finally:
            self._connection.set_progress_handler(None)
