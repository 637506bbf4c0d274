"""Episode embedding: gives the episodes of a namespace vectors, token codes and text flags, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.events.backends.log import EventLog
from recollect.projections.embeddings.embedding_source import Obtain
from recollect.projections.embeddings.passages import Passage, passages, summary_passages
from recollect.projections.embeddings.vector_pruning import source_turns
from recollect.projections.embeddings.vector_store import StoredEmbedding, VectorStore
from recollect.projections.embeddings.windows import SessionWindows
from recollect.projections.queries.queried_episodes import EpisodeToEmbed
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns
from recollect.projections.text.text_flags import text_flags

#: Episodes embedded in one transaction: a killed process loses a second or two of work.
BATCH_EPISODES = 256
#: Newest events whose episodes are embedded before a backlog: what a conversation is about now, a second of work.
_NEWEST_EVENTS = 64


class EpisodeEmbedding:
    """The episodes of one snapshot and the open file of their vectors.

    Parameters:
        obtain: returns the embeddings of the passages that the file lacks.
    """

    def __init__(self, log: EventLog, namespace: str, snapshot: Snapshot, store: VectorStore, obtain: Obtain) -> None:
        self._log, self._namespace, self._snapshot = log, namespace, snapshot
        self._store, self._obtain = store, obtain
        self._windows = SessionWindows(snapshot.episodes.spoken_after)

    def embed_next(self) -> int:
        """Embed the next episodes after the checkpoint; return their number, 0 when none is left."""
        while True:
            with self._store.lock:
                after = self._store.checkpoint()
            self._embed_newest(after)
            episodes = self._snapshot.episodes.to_embed(after, limit=BATCH_EPISODES)
            if not episodes or self._embed(after, episodes):
                return len(episodes)

    def _embed_newest(self, after: int) -> None:
        """Embed the newest episodes out of turn, unless their turn comes soon or they have vectors already.

        Parameters:
            after: the checkpoint. At the first one, the file may still have rows of another source.
        """
        version = self._snapshot.version
        if not after or version - after <= BATCH_EPISODES + _NEWEST_EVENTS:
            return
        with self._store.lock:
            newest = max(self._store.newest(), version - _NEWEST_EVENTS)
        batch = self._batch(self._snapshot.episodes.to_embed(newest, limit=_NEWEST_EVENTS))
        if not batch:
            return
        new = self._missing(batch)
        with self._store.lock:
            self._store.save_ahead(new, batch, after=after)

    def _embed(self, after: int, episodes: Sequence[EpisodeToEmbed]) -> bool:
        """Embed `episodes`, those after the checkpoint `after`; store their vectors and the new checkpoint.

        Returns:
            False when nothing was stored: another process has reset the checkpoint or removed a vector meanwhile.
        """
        batch = self._batch(episodes)
        new = self._missing(batch)
        last = episodes[-1]
        flags = {episode.version: text_flags(episode.spoken.text) for episode in episodes}
        with self._store.lock:
            return self._store.save(new, batch, flags, after=after, last=(last.version, last.id))

    def _missing(self, batch: Sequence[tuple[int, Passage, bytes]]) -> dict[bytes, StoredEmbedding]:
        """Return the embeddings of the stretches of a batch that are not stored, by their digests."""
        stretches = {digest: passage.stretch for _, passage, digest in batch}
        with self._store.lock:
            missing = self._store.missing(stretches, with_codes=True)
        return self._obtain({digest: stretch for digest, stretch in stretches.items() if digest in missing})

    def _batch(self, episodes: Sequence[EpisodeToEmbed]) -> list[tuple[int, Passage, bytes]]:
        """Return the passages of episodes, each with its version and the digest of its stretch."""
        return [
            (version, passage, passage.stretch.digest)
            for episode in episodes
            for version, passage in self._passages(episode)
        ]

    def _passages(self, episode: EpisodeToEmbed) -> Iterator[tuple[int, Passage]]:
        """Yield the passages of an episode, each with its version; for a summary, also those of its sources.

        An expired source has its passages under its own version as well, since retrieval ranks the sources of the
        summaries that it finds. Only a file that is embedded again lacks them: expiry removes no vectors.
        """
        if episode.tier == "raw":
            context = self._windows.context(episode.version, episode.spoken, episode.previous)
            yield from ((episode.version, passage) for passage in passages(episode.spoken, context))
            return
        queries = self._snapshot.episodes
        turns = read_turns(self._log, self._namespace, queries.source_versions(episode.version))
        versions = [turn.version for turn in turns]
        sources = source_turns(turns, self._snapshot, self._windows)
        yield from ((episode.version, passage) for passage in summary_passages(episode.spoken, sources))
        with self._store.lock:
            embedded = self._store.embedded_among(versions)
        live = queries.texts(versions)
        for version, source in zip(versions, sources, strict=True):
            if version not in embedded and version not in live:
                yield from ((version, passage) for passage in passages(source.spoken, source.context))
