"""Index cache: keeps the in-memory indexes of the read models used last and brings them up to date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays, empty_episode_arrays
from recollect.projections.search_index.expired_turns import ExpiredTurns
from recollect.projections.search_index.knowledge_index import KnowledgeIndex, load_knowledge_index
from recollect.projections.search_index.postings import PostingLists, Postings

#: Read models whose indexes are cached; the least recently used one is evicted first.
_READ_MODELS_MAX = 64
#: Versions read in one step: their rows are Python objects for a moment, 400 bytes each, whose memory stays with the
#: process. An extension that runs out of time keeps its finished steps.
READ_VERSIONS = 5_000
#: Episodes of all cached arrays together, about 50 bytes each: 200 MB.
_EPISODES_MAX = 4_000_000


class IndexSnapshot(NamedTuple):
    """The in-memory index of one read model at a version."""

    episodes: EpisodeArrays
    postings: PostingLists
    expired_turns: ExpiredTurns
    knowledge: KnowledgeIndex
    #: Version of the last event that `knowledge` contains.
    knowledge_version: int


class IndexCache:
    """The in-memory indexes of the read models in use, by file. Safe to use from many threads.

    Parameters:
        read_versions: versions read in one step.
        new_postings: makes the empty postings of a read model.
    """

    def __init__(self, *, read_versions: int = READ_VERSIONS, new_postings: Callable[[], Postings] = Postings) -> None:
        self._read_versions = read_versions
        self._new_postings = new_postings
        #: Whether this process answers queries.
        self._has_queries = False
        self._indexes: BoundedCache[str, IndexSnapshot] = BoundedCache(
            _EPISODES_MAX, _episode_count, entries_max=_READ_MODELS_MAX
        )

    def get(self, snapshot: Snapshot) -> IndexSnapshot:
        """Return the index of the read model behind `snapshot`, at the version of `snapshot`."""
        self._has_queries = True
        return self._current(snapshot)

    def knowledge(self, snapshot: Snapshot) -> KnowledgeIndex:
        """Return the knowledge of the read model behind `snapshot`, at its version, for work in the background.

        In a process that answers queries the index is brought up to date, so that the next query finds it so. It is
        added when there is room, and never in place of another one.
        """
        has_room = self._has_queries and len(self._indexes) < _READ_MODELS_MAX
        if not has_room and not self.holds(snapshot):
            return load_knowledge_index(snapshot, KnowledgeIndex())
        knowledge = self._current(snapshot).knowledge
        knowledge.prepare()
        return knowledge

    def holds(self, snapshot: Snapshot) -> bool:
        """Return whether an index of the read model behind `snapshot` is cached."""
        return self._indexes.get(snapshot.file_identity) is not None

    def _current(self, snapshot: Snapshot) -> IndexSnapshot:
        """Return the index at the version of `snapshot`, which is cached."""
        # Every generation and every read model of the past is a file of its own; a model in memory has none.
        path = snapshot.file_identity
        row = snapshot.state
        index = self._indexes.get(path)
        if index is None or index.episodes.last_removal_version < row.last_removal_version or not path:
            episodes = empty_episode_arrays(row.last_removal_version)
            index = IndexSnapshot(episodes, self._new_postings(), ExpiredTurns(), KnowledgeIndex(), 0)
        if index.knowledge_version != row.knowledge_version:
            knowledge = load_knowledge_index(snapshot, index.knowledge)
            index = index._replace(knowledge=knowledge, knowledge_version=row.knowledge_version)
        if index.episodes.through >= snapshot.version:
            result = index._replace(episodes=index.episodes.cut_at(snapshot.version))
        else:
            # Each step is cached, so that a retrieval that runs out of time does not lose the steps before.
            for through in range(index.episodes.through + self._read_versions, snapshot.version, self._read_versions):
                index = index._replace(episodes=index.episodes.extended(snapshot.episodes, through))
                self._put(path, index)
            result = index = index._replace(episodes=index.episodes.extended(snapshot.episodes, snapshot.version))
        self._put(path, index)
        return result

    def size_bytes(self) -> dict[str, int]:
        """Return the memory of the cached indexes, by part; knowledge is not counted."""
        indexes = self._indexes.values()
        return {
            "episode arrays": sum(index.episodes.size_bytes for index in indexes),
            "posting lists": sum(index.postings.size_bytes for index in indexes),
            "expired turns": sum(index.expired_turns.size_bytes for index in indexes),
        }

    def drop_removed(self) -> None:
        """Drop the indexes of read models whose files are removed."""
        self._indexes.remove(lambda path: not Path(path.rpartition(" ")[0]).exists())

    def _put(self, path: str, index: IndexSnapshot) -> None:
        if path:
            # Another thread may have cached a later version meanwhile.
            self._indexes.put(path, index, unless=lambda cached: _progress(cached) >= _progress(index))


def _episode_count(index: IndexSnapshot) -> int:
    return len(index.episodes)


def _progress(index: IndexSnapshot) -> tuple[int, int, int]:
    """Return the order of two indexes of one file: the later one is greater."""
    return index.episodes.last_removal_version, index.episodes.through, index.knowledge_version
