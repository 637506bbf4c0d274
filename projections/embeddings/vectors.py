"""Embeddings: a projection of its own, behind the read models, with a checkpoint for every model.

Vectors are remembered by (model, sha256 of the text), so that a rebuild embeds nothing twice; and tagged with their
model, so that two spaces never mix.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import cast

import numpy as np

from recollect.events.errors import ForeignFile, RecollectError
from recollect.events.progress import OnProgress
from recollect.events.storage.atomic_file import write_once
from recollect.events.storage.database import storage_errors
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.passages import PASSAGES_VERSION, Passage, passages, summary_passages
from recollect.projections.embeddings.token_codes import TokenCodeCache, Vector, encoded
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vector_store import EmbeddedText, VectorStore
from recollect.projections.projection_settings import INDEX_BYTES_MAX
from recollect.projections.projector.episode_events import Episode, episode_from_event, is_episode_event
from recollect.projections.queries.episode_queries import EpisodeToEmbed, SpokenText
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.queries.summary_sources import read_events
from recollect.projections.read_models.layout import namespace_folder, remove_database
from recollect.projections.read_models.open_files import OpenFiles
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.schema.schema import SCHEMA_VERSION

_logger = logging.getLogger(__name__)

#: Episodes embedded in one transaction: what a kill can cost, a second or two of work.
_BATCH_EPISODES = 128
#: Namespaces whose vectors are open at once.
_OPEN_MAX = 64

#: Gives the vectors in use. Asked once for each piece of work: the model can change, and one piece has one space.
CurrentVectors = Callable[[], "Vectors"]


@dataclass(frozen=True, slots=True)
class EmbeddingBacklog:
    """How many episodes of a read model have no vectors yet."""

    missing: int
    total: int


class Vectors:
    """One model's vectors of all namespaces in the data folder `data`. Safe to use from many threads and processes.

    Other objects may work on the same files with other models: none sees a vector of another's.

    Parameters:
        models: the read models that the texts come from.
        embedder: makes the vectors; `pending` and `index` want it ready, since its files say which vectors are its.
        index_bytes_max: memory for indexes; the least recently used one goes first.
    """

    def __init__(
        self, data: Path, read_models: ReadModels, embedder: Embedder, *, index_bytes_max: int = INDEX_BYTES_MAX
    ) -> None:
        self._data = data
        self._models = read_models
        self.embedder = embedder
        self._index_bytes_max = index_bytes_max
        self._stores: OpenFiles[VectorStore] = OpenFiles(_OPEN_MAX)
        # One at a time embeds: two would only share the same processor.
        self._embedding = threading.Lock()
        self._closed = False
        self._basis: Vector | None = None
        self._codes = TokenCodeCache()
        #: By namespace, the version of the last event whose knowledge was embedded.
        self._learned: dict[str, int] = {}

    def embed_new(
        self,
        namespace: str,
        *,
        on_progress: OnProgress | None = None,
        stop: threading.Event | None = None,
        deadline: float = math.inf,
    ) -> int:
        """Embed the episodes that have no vectors yet; return how many that were. 0 unless the model is ready.

        Parameters:
            on_progress: called with (episodes embedded, episodes in all) after each batch.
            stop: when it is set, the work ends after the batch at hand.
            deadline: `time.monotonic()` seconds after which no further batch is begun.
        """
        done = 0
        with self._embedding:
            while self.embedder.state == "ready" and time.monotonic() < deadline:
                if self._closed or (stop is not None and stop.is_set()):
                    break
                embedded = self._embed_batch(namespace)
                if not embedded:
                    break
                done += embedded
                if on_progress is not None:
                    with self._models.reading(namespace) as snapshot:
                        pending = self.backlog(namespace, snapshot)
                    on_progress(pending.total - pending.missing, pending.total)
            if self.embedder.state == "ready" and not self._closed:
                self._embed_knowledge(namespace)
        return done

    def backlog(self, namespace: str, snapshot: Snapshot) -> EmbeddingBacklog:
        """Return how many episodes of `snapshot` have no vectors yet."""
        checkpoint = 0
        if self._path(namespace).exists():
            with self._using(namespace, snapshot) as store, store.lock:
                checkpoint = store.checkpoint()
        missing = snapshot.episodes.count_after(checkpoint)
        return EmbeddingBacklog(missing, snapshot.episodes.count()) if missing else EmbeddingBacklog(0, 0)

    def index(self, namespace: str, snapshot: Snapshot) -> VectorIndex:
        """Return the index of `namespace`, with everything embedded so far. The model must be ready."""
        if not self._path(namespace).exists():
            return VectorIndex(self.embedder.dimensions)
        with self._using(namespace, snapshot) as store:
            with storage_errors(self._path(namespace)):
                index = store.extended_index(self.embedder.dimensions)
            self._keep_within_memory()
            return index

    def vectors_of_episodes(self, namespace: str, snapshot: Snapshot, versions: Iterable[int]) -> dict[int, Vector]:
        """Return the vectors of those turns that have been embedded; of none unless the model is ready."""
        if self.embedder.state != "ready" or not self._path(namespace).exists():
            return {}
        with self._using(namespace, snapshot) as store, store.lock:
            found = {version: store.of_turn(version) for version in versions}
        return {version: vector for version, vector in found.items() if vector is not None}

    def vectors_of_texts(self, namespace: str, snapshot: Snapshot, texts: Sequence[str]) -> Vector | None:
        """Return a vector a text, shape (len(texts), dimensions), and remember them; None unless the model is ready."""
        if self.embedder.state != "ready" or not texts:
            return None
        digests = [sha256(text.encode(errors="replace")).digest() for text in texts]
        with self._using(namespace, snapshot) as store:
            with store.lock:
                missing = store.missing(dict(zip(digests, texts, strict=True)))
            if missing:
                vectors = self.embedder.embed(list(missing.values()))
                with store.lock:
                    store.save_texts(
                        {digest: EmbeddedText(vector) for digest, vector in zip(missing, vectors, strict=True)}
                    )
            with store.lock:
                found = [store.texts(digest) for digest in digests]
        whole = [vector for vector in found if vector is not None]
        # Fewer when another process has just removed this model's vectors.
        return np.stack(whole) if len(whole) == len(found) else None

    def cached_texts(self, namespace: str, snapshot: Snapshot, digests: Sequence[bytes]) -> list[Vector | None]:
        """Return the vectors of texts that were embedded, by the digests of these. The model must be ready."""
        if not self._path(namespace).exists():
            return [None] * len(digests)
        with self._using(namespace, snapshot) as store, store.lock:
            return [store.texts(digest) for digest in digests]

    def _embed_knowledge(self, namespace: str) -> None:
        """Embed what is known and was not embedded yet."""
        with self._models.reading(namespace) as snapshot:
            learned = snapshot.progress.state().knowledge_version if snapshot.version else 0
            if self._learned.get(namespace, 0) < learned:
                texts = [item.text for item in snapshot.knowledge.items()]
                for start in range(0, len(texts), _BATCH_EPISODES):
                    self.vectors_of_texts(namespace, snapshot, texts[start : start + _BATCH_EPISODES])
                self._learned[namespace] = learned

    def remove_other_models(self, namespace: str, keep: Collection[str]) -> None:
        """Remove the vectors of `namespace` that are of models whose tags are not in `keep`."""
        if self._path(namespace).exists():
            with self._models.reading(namespace) as snapshot, self._using(namespace, snapshot) as store:
                store.remove_other_models(keep)

    def close(self) -> None:
        """Close every file; work at hand ends after its batch."""
        self._closed = True
        self._stores.drop_all()

    def _embed_batch(self, namespace: str) -> int:
        with self._models.reading(namespace) as snapshot:
            if snapshot.version == 0:
                return 0
            with self._using(namespace, snapshot) as store:
                while True:
                    with store.lock:
                        after = store.checkpoint()
                    episodes = snapshot.episodes.to_embed(after, limit=_BATCH_EPISODES)
                    found = [
                        (episode.version, passage, sha256(passage.text.encode(errors="replace")).digest())
                        for episode in episodes
                        for passage in self._passages(namespace, snapshot, episode)
                    ]
                    if not episodes or self._embed_episodes(store, after, episodes[-1], found):
                        return len(episodes)

    def _passages(self, namespace: str, snapshot: Snapshot, episode: EpisodeToEmbed) -> Iterator[Passage]:
        """Yield the passages of an episode; those of its sources too when it is a summary."""
        if episode.tier == "raw":
            return passages(episode.spoken, episode.before)
        versions = snapshot.episodes.source_versions(episode.version)
        sources = [
            episode_from_event(event, event.data())
            for event in read_events(self._models.log, namespace, versions)
            if is_episode_event(event)
        ]
        return summary_passages(episode.spoken, [_spoken(source) for source in sources])

    def _embed_episodes(
        self, store: VectorStore, after: int, last: EpisodeToEmbed, found: Sequence[tuple[int, Passage, bytes]]
    ) -> bool:
        """Embed the passages of the episodes after the checkpoint `after` up to `last`; False when it has moved."""
        turns = {digest for _, passage, digest in found if passage.part == "turn"}
        with store.lock:
            missing = store.missing({digest: passage.text for _, passage, digest in found}, with_codes=turns)
        kept: dict[bytes, EmbeddedText] = {}
        if missing:
            basis = self.basis()
            for digest, one in zip(missing, self.embedder.embed_tokens(list(missing.values())), strict=True):
                kept[digest] = EmbeddedText(one.vector, encoded(one.tokens, basis) if digest in turns else None)
        with store.lock:
            return store.save(kept, found, after=after, last=(last.version, last.id))

    def basis(self) -> Vector:
        """Return the directions of the codes of this model: kept in the data folder, since codes are of no use without.

        Whoever comes first makes them; the same model makes nearly the same ones, and nearly is not enough.
        """
        basis = self._basis
        if basis is None:
            path = self._data / f"basis-{self.embedder.fingerprint}.npy"
            if not path.exists():
                content = BytesIO()
                np.save(content, self.embedder.basis())
                write_once(path, content.getvalue())
            basis = self._basis = cast(Vector, np.load(path))
        return basis

    def codes(self, namespace: str, snapshot: Snapshot, versions: Sequence[int]) -> Mapping[int, Sequence[bytes]]:
        """Return the codes of those turns that have some, of each chunk, by version. The model must be ready."""
        if not self._path(namespace).exists() or not versions:
            return {}
        with self._using(namespace, snapshot) as store:
            found = self._codes.of(store.era, versions)
            missing = [version for version in versions if version not in found]
            if missing:
                with store.lock:
                    era, read = store.era, store.codes(missing)
                self._codes.keep(era, read)
                found |= read
        return found

    @contextmanager
    def _using(self, namespace: str, snapshot: Snapshot) -> Generator[VectorStore]:
        with self._stores.using(namespace, partial(self._open, namespace, snapshot)) as store:
            try:
                with storage_errors(self._path(namespace)):
                    with store.lock:
                        store.reset_if_log_was_replaced(self._models.log, namespace, snapshot)
                    yield store
            except ForeignFile:
                self._start_anew(namespace)
                raise

    def _open(self, namespace: str, snapshot: Snapshot) -> VectorStore:
        if not self.embedder.fingerprint:
            raise RecollectError(
                f"the embedding model {self.embedder.name!r} is not ready, so its vectors cannot be told from those of "
                "other models; wait until it is loaded"
            )
        source = f"log {snapshot.progress.state().log_id}, schema {SCHEMA_VERSION}, passages {PASSAGES_VERSION}"
        path = self._path(namespace)
        try:
            return VectorStore(path, self.embedder.fingerprint, source)
        except ForeignFile as problem:
            _logger.warning("the vectors of namespace %r are made anew: %s", namespace, problem)
            remove_database(path)
            return VectorStore(path, self.embedder.fingerprint, source)

    def _start_anew(self, namespace: str) -> None:
        _logger.warning("the vectors of namespace %r are damaged and made anew", namespace)
        with self._stores.lock:
            self._stores.drop(namespace)
            remove_database(self._path(namespace))

    def _keep_within_memory(self) -> None:
        with self._stores.lock:
            stores = self._stores.files()
            held = sum(store.index.size_bytes for store in stores if store.index is not None)
            if held > self._index_bytes_max and len(stores) > 1:
                self._stores.drop_idle()

    def _path(self, namespace: str) -> Path:
        return namespace_folder(self._data, namespace) / "vectors.db"


def _spoken(episode: Episode) -> SpokenText:
    return SpokenText(episode.speaker, episode.text, episode.caption, episode.role not in (None, episode.speaker))
