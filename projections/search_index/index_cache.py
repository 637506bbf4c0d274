"""What retrieval keeps in memory of each read model: its roster, the postings of words asked for, its shelf."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays, empty_episode_arrays
from recollect.projections.search_index.knowledge_index import KnowledgeIndex, StemCache, load_knowledge_index
from recollect.projections.search_index.postings import Postings

#: Read models whose rosters are kept, the least recently used one goes first; about 100 bytes an episode.
_KEPT_MAX = 64
#: Versions that are read at once.
READ_VERSIONS = 50_000
#: Episodes of all rosters together.
_EPISODES_MAX = 4_000_000


class IndexSnapshot(NamedTuple):
    """What is in memory of one read model, as it was at a version."""

    episodes: EpisodeArrays
    postings: Postings
    knowledge: KnowledgeIndex
    #: The version of the last event that the shelf knows of.
    knowledge_version: int


class IndexCache:
    """The rosters and postings in use, by the file of their read model. Safe to use from many threads.

    Parameters:
        read_versions: versions that are read at once.
        new_postings: makes the postings of a read model.
    """

    def __init__(self, *, read_versions: int = READ_VERSIONS, new_postings: Callable[[], Postings] = Postings) -> None:
        self._read_versions = read_versions
        self._new_postings = new_postings
        self._held: BoundedCache[str, IndexSnapshot] = BoundedCache(_EPISODES_MAX, _episodes, entries_max=_KEPT_MAX)
        self._stems = StemCache()

    def get(self, snapshot: Snapshot) -> IndexSnapshot:
        """Return what is in memory of the read model behind `snapshot`, brought to its version."""
        # The file says which model it is: of now or of the past, before or after a replay.
        path = snapshot.file_identity
        row = snapshot.progress.state()
        held = self._held.get(path)
        if held is None or held.episodes.last_removal_version < row.removal or not path:
            held = IndexSnapshot(empty_episode_arrays(row.removal), self._new_postings(), KnowledgeIndex((), ()), 0)
        if held.knowledge_version != row.learned:
            held = held._replace(knowledge=load_knowledge_index(snapshot, self._stems), knowledge_version=row.learned)
        if held.episodes.through >= snapshot.version:
            cut = held._replace(episodes=held.episodes.until(snapshot.version))
        else:
            # What was read stays, even if there is no time for all of it.
            for through in range(held.episodes.through + self._read_versions, snapshot.version, self._read_versions):
                held = held._replace(episodes=held.episodes.extended(snapshot.episodes, through))
                self._keep(path, held)
            cut = held = held._replace(episodes=held.episodes.extended(snapshot.episodes, snapshot.version))
        self._keep(path, held)
        return cut

    def _keep(self, path: str, index: IndexSnapshot) -> None:
        if path:
            # Another thread may have been faster, and further.
            self._held.put(path, index, unless=lambda known: _progress(known) >= _progress(index))


def _episodes(index: IndexSnapshot) -> int:
    return len(index.episodes)


def _progress(index: IndexSnapshot) -> tuple[int, int, int]:
    return index.episodes.last_removal_version, index.episodes.through, index.knowledge_version
