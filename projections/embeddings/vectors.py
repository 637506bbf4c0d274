"""Vectors: embeds the episodes and the knowledge of all namespaces with one model, and reads their vectors.

Embedding is a projection that follows the read models, with a checkpoint for each model. Vectors are stored by (model,
digest of what was embedded): a rebuild embeds nothing twice, and vectors of two models are never compared.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.events.errors import ErasedMeanwhile, ForeignFile, RecollectError
from recollect.events.progress import OnProgress
from recollect.events.storage.database import storage_errors
from recollect.events.storage.namespace_folder import folder_name
from recollect.projections.embeddings.content_tokens import content_tokens
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.embedding_source import EmbeddingSource, Stretches
from recollect.projections.embeddings.episode_embedding import BATCH_EPISODES, EpisodeEmbedding
from recollect.projections.embeddings.fair_lock import FairLock
from recollect.projections.embeddings.passages import (
    PASSAGES_VERSION,
)
from recollect.projections.embeddings.stored_vectors import as_stored
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.token_codes import CodedPassages, TokenCodeCache, Vector, coded_passages, encoded
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vector_pruning import digests_in_use, prune_vectors
from recollect.projections.embeddings.vector_store import StoredEmbedding, VectorStore
from recollect.projections.projector.projector import APPLY_SECONDS
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.layout import VECTORS_FILE, namespace_folder, remove_vector_file, remove_vectors
from recollect.projections.read_models.open_files import OpenFiles
from recollect.projections.read_models.purges import Target
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.schema.schema import SCHEMA_VERSION
from recollect.projections.search_index.index_cache import IndexCache
from recollect.projections.text.text_flags import TEXT_FLAGS_VERSION

if TYPE_CHECKING:
    from recollect.projections.embeddings.shared_vectors import SharedVectors

_logger = logging.getLogger(__name__)
T = TypeVar("T")

#: Bytes of vectors in private memory, over all namespaces; the least recently used index is dropped first: 1.3 million
#: vectors of 384 dimensions, a byte each.
_INDEX_BYTES_MAX = 512 << 20
#: Namespaces whose paths are cached.
_PATHS_MAX = 4_096
#: Passages of one turn whose tokens are compared with a query: those whose vectors are nearest to it. With 1, 2 and 4
#: recall@10 of long messages is 63.9, 65.4 and 64.7 (BEAM, 179 questions), that of RealMem's sessions 68.5 to 68.7. A
#: query takes a seventh less time with 2 than with 4.
_COMPARED_PASSAGES_MAX = 2

#: Returns the vectors in use. Callers call it once for each unit of work: the model can change between two calls, and
#: one unit of work must not compare vectors of two models.
CurrentVectors = Callable[[], "Vectors"]


class EmbeddingBacklog(Struct, frozen=True):
    """The episodes of a read model that have no vectors yet."""

    #: Episodes without vectors.
    missing: int
    #: Episodes in all; 0 when none is missing.
    total: int


class EpisodeCodes(NamedTuple):
    """The token codes of some episodes."""

    #: The version of the episode of each passage, ascending, shape (passages,).
    versions: NDArray[np.int64]
    #: The key of each passage; passages with the same text share a key. Shape (passages,).
    keys: NDArray[np.int64]
    #: The codes, each key in one of them; passages without codes are in none.
    parts: tuple[CodedPassages, ...]


class Vectors:
    """The vectors of one model in the data folder `data`. Safe to use from many threads and processes.

    Other instances may use the same files with other models; each sees the vectors of its own model only.

    Parameters:
        read_models: the source of the texts.
        embedder: the embedding model. `backlog`, `index` and `codes` need it ready, since its fingerprint selects
            the vectors.
        shared: the vectors of all machines of the log; None: this machine embeds all texts itself.
        indexes: those of the retrievals of this process, which the embedding of knowledge brings up to date.
    """

    def __init__(
        self,
        data: Path,
        read_models: ReadModels,
        embedder: Embedder,
        *,
        shared: SharedVectors | None = None,
        indexes: IndexCache | None = None,
    ) -> None:
        self._data = data
        self._read_models = read_models
        self._indexes = indexes or IndexCache()
        self.embedder = embedder
        self._source = EmbeddingSource(data, embedder, read_models.log, shared)
        self._stores: OpenFiles[VectorStore] = OpenFiles(
            read_models.open_files_max, lease=read_models.disk_limit.in_use
        )
        # One thread embeds at a time: two would only share the processor. Namespaces take turns after each batch.
        self._embed_lock = FairLock()
        self._closed = False
        self._code_cache = TokenCodeCache()
        #: By namespace, the version up to which knowledge was embedded.
        self._knowledge_versions: dict[str, int] = {}

    def embed_new(
        self,
        namespace: str,
        *,
        on_progress: OnProgress | None = None,
        stop: threading.Event | None = None,
        deadline: float = math.inf,
        wait_until: float = -math.inf,
    ) -> int:
        """Embed the episodes and the knowledge that have no vectors yet; return the number of episodes embedded.

        Without a ready model it embeds nothing. While much is missing, what was said last comes first.

        Parameters:
            on_progress: called with (episodes embedded, episodes in all) after each batch.
            stop: when set, the work ends after the current batch.
            deadline: `time.monotonic()` seconds after which no further batch begins; until then the call waits for
                another thread that embeds.
            wait_until: the same seconds, until which it waits for that thread, if they are later than `deadline`.
        """
        done = 0
        while self.embedder.state == "ready" and time.monotonic() < deadline:
            if self._closed or (stop is not None and stop.is_set()):
                break
            with self._embed_lock.locked(max(deadline, wait_until) - time.monotonic()) as is_held:
                if not is_held:
                    return done
                started = time.perf_counter()
                embedded = self._again_after_erasures(self._embed_batch, namespace)
            if not embedded:
                break
            APPLY_SECONDS.observe(time.perf_counter() - started, "embeddings")
            done += embedded
            if on_progress is not None:
                with self._read_models.reading(namespace) as snapshot:
                    backlog = self.backlog(namespace, snapshot)
                on_progress(backlog.total - backlog.missing, backlog.total)
        if self.embedder.state == "ready" and not self._closed:
            with self._embed_lock.locked(deadline - time.monotonic()) as is_held:
                if is_held:
                    self._again_after_erasures(self._embed_knowledge, namespace)
        return done

    def _again_after_erasures(self, embed: Callable[[str], T], namespace: str) -> T:
        """Return what `embed` returns; when another process erases meanwhile, it begins again with what is left."""
        while True:
            try:
                return embed(namespace)
            except ErasedMeanwhile:
                self.drop(namespace)

    @property
    def open_count(self) -> int:
        """Return the number of namespaces whose vectors are open."""
        return self._stores.count

    def size_bytes(self) -> dict[str, int]:
        """Return the memory of what is loaded, by part."""
        return {"vectors": self._index_bytes(), "token codes": self._code_cache.size_bytes}

    def backlog(self, namespace: str, snapshot: Snapshot) -> EmbeddingBacklog:
        """Return the number of episodes of `snapshot` without vectors. The model must be ready."""
        checkpoint = 0
        if self._path(namespace).exists():
            with self._using(namespace, snapshot) as store, store.lock:
                checkpoint = store.checkpoint()
        missing = snapshot.episodes.count_after(checkpoint)
        return EmbeddingBacklog(missing, snapshot.episodes.count()) if missing else EmbeddingBacklog(0, 0)

    def index(self, namespace: str, snapshot: Snapshot) -> VectorIndex:
        """Return the index of `namespace` with all vectors embedded so far. The model must be ready."""
        if not self._path(namespace).exists():
            return VectorIndex(self.embedder.dimensions)
        with self._using(namespace, snapshot) as store:
            with storage_errors(self._path(namespace)):
                index = store.extended_index(self.embedder.dimensions)
            self._drop_over_memory_limit()
            return index

    def vectors_of_episodes(self, namespace: str, snapshot: Snapshot, versions: Iterable[int]) -> dict[int, Vector]:
        """Return the vectors of the episodes `versions`, by version, without those not embedded yet.

        Empty unless the model is ready.
        """
        if self.embedder.state != "ready" or not self._path(namespace).exists():
            return {}
        with self._using(namespace, snapshot) as store, store.lock:
            return store.turn_vectors(versions)

    def vectors_of_texts(
        self, namespace: str, snapshot: Snapshot, texts: Sequence[str], *, erasure_version: int | None = None
    ) -> Vector | None:
        """Return the vectors of `texts`, shape (len(texts), dimensions); embed and store the missing ones.

        Parameters:
            erasure_version: of the last erasure, read before the texts were; None: other machines do not get them.

        Returns:
            None when the model is not ready, `texts` is empty, or another process has removed the model's vectors.
        """
        if self.embedder.state != "ready" or not texts:
            return None
        digests = [Stretch(text).digest for text in texts]
        stretches = dict(zip(digests, map(Stretch, texts), strict=True))
        with self._using(namespace, snapshot) as store:
            self._embed_missing(namespace, store, stretches, erasure_version)
            with store.lock:
                vectors = store.text_vectors(stretches)
        # Fewer when another process has removed this model's vectors meanwhile.
        return np.stack([vectors[digest] for digest in digests]) if len(vectors) == len(stretches) else None

    def _embed_missing(
        self, namespace: str, store: VectorStore, stretches: Stretches, erasure_version: int | None
    ) -> None:
        """Embed and store those of `stretches` that have no vectors yet."""
        with store.lock:
            missing = sorted(store.missing(stretches, with_codes=False))
        if missing:
            wanted = {digest: stretches[digest] for digest in missing}
            new = self._source.obtain(namespace, wanted, self._embedded_texts, erasure_version, with_codes=False)
            with store.lock:
                store.save_texts(new)

    def cached_texts(self, namespace: str, snapshot: Snapshot, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the stored vectors of texts by their digests, without those that have none. The model must be ready.

        Parameters:
            digests: sha256 of each text.
        """
        if not self._path(namespace).exists():
            return {}
        with self._using(namespace, snapshot) as store, store.lock:
            return store.text_vectors(digests)

    def _embed_knowledge(self, namespace: str) -> None:
        """Embed the texts of the knowledge items that have no vectors yet."""
        erasure_version = self._source.erasure_version(namespace)
        with self._read_models.reading(namespace) as snapshot:
            knowledge_version = snapshot.state.knowledge_version if snapshot.version else 0
            if self._knowledge_versions.get(namespace, 0) < knowledge_version:
                knowledge = self._indexes.knowledge(snapshot)
                texts = zip(knowledge.digests, knowledge.items, strict=True)
                with self._using(namespace, snapshot) as store:
                    new = [(digest, Stretch(item.text)) for digest, item in texts if digest not in store.knowledge]
                    for start in range(0, len(new), BATCH_EPISODES):
                        batch = dict(new[start : start + BATCH_EPISODES])
                        self._embed_missing(namespace, store, batch, erasure_version)
                    store.knowledge = frozenset(knowledge.digests)
                if self._indexes.holds(snapshot):
                    # The next query finds its vectors in memory.
                    self.index(namespace, snapshot)
                self._knowledge_versions[namespace] = knowledge_version

    def remove_other_models(self, namespace: str, keep: Collection[str]) -> None:
        """Remove the vectors of `namespace` of all models whose fingerprints are not in `keep`."""
        if self._path(namespace).exists():
            with self._read_models.reading(namespace) as snapshot, self._using(namespace, snapshot) as store:
                store.remove_other_models(keep)

    def prune(self, namespace: str, version: int) -> Target:
        """Remove the vectors of texts that the read model no longer has; return what was removed.

        It needs no ready model. The next `embed_new` gives the episodes their vectors again, most from the file.

        Parameters:
            version: of the erasure that removed the texts.
        """
        path = self._path(namespace)
        if not path.exists():
            with storage_errors(path):
                remove_vector_file(path)
            return {"store": "vectors and token codes", "rows": 0}
        with self._read_models.reading(namespace) as snapshot:
            kept = set(digests_in_use(self._read_models.log, namespace, snapshot))
        with self._stores.lock:
            self._stores.drop(namespace)
            rows = prune_vectors(path, kept, version)
        method = "rows overwritten (secure_delete), WAL emptied"
        return {"store": "vectors and token codes", "method": method, "rows": rows}

    def drop(self, namespace: str) -> None:
        """Drop the vectors of `namespace` from memory; the next use reads its file again."""
        self._stores.drop(namespace)
        self._code_cache.clear()
        self._knowledge_versions.pop(namespace, None)

    def close(self) -> None:
        """Close every file; running work ends after its batch."""
        self._closed = True
        self._stores.drop_all()

    def _embed_batch(self, namespace: str) -> int:
        """Embed the next episodes after the checkpoint; return their number, 0 when none is left."""
        erasure_version = self._source.erasure_version(namespace)
        obtain = partial(
            self._source.obtain, namespace, compute=self._embedded, erasure_version=erasure_version, with_codes=True
        )
        with self._read_models.reading(namespace) as snapshot:
            if snapshot.version == 0:
                return 0
            with self._using(namespace, snapshot) as store:
                return EpisodeEmbedding(self._read_models.log, namespace, snapshot, store, obtain).embed_next()

    def _embedded_texts(self, stretches: Stretches) -> dict[bytes, StoredEmbedding]:
        """Return the embeddings of texts that are not passages, by their digests."""
        if not stretches:
            return {}
        vectors = self.embedder.embed([stretch.text for stretch in stretches.values()])
        return {digest: StoredEmbedding(as_stored(vector)) for digest, vector in zip(stretches, vectors, strict=True)}

    def _embedded(self, stretches: Mapping[bytes, Stretch]) -> dict[bytes, StoredEmbedding]:
        """Return the embeddings of stretches, by their digests.

        A change of what is embedded for a stretch needs a migration that drops the vectors.
        """
        if not stretches:
            return {}
        basis = self.basis()
        embeddings = self.embedder.embed_tokens([*stretches.values()])
        return {
            digest: StoredEmbedding(
                as_stored(embedding.vector), encoded(content_tokens(stretch.part, embedding), basis)
            )
            for (digest, stretch), embedding in zip(stretches.items(), embeddings, strict=True)
        }

    def basis(self) -> Vector:
        """Return the basis of the model's token codes, shape (dimensions, at most 64)."""
        return self._source.basis()

    def codes(self, namespace: str, snapshot: Snapshot, versions: Sequence[int], query: Vector) -> EpisodeCodes:
        """Return the token codes of the turns of `versions`. The model must be ready.

        Parameters:
            versions: ascending; turns without codes have no passages.
            query: normalised, shape (dimensions,); of a long turn the passages nearest to it are compared.
        """
        if not self._path(namespace).exists() or not versions:
            return EpisodeCodes(np.empty(0, np.int64), np.empty(0, np.int64), ())
        with self._using(namespace, snapshot) as store:
            generation, index = store.loaded_index(len(query))
            of_versions, of_keys = index.nearest_keys(versions, query, limit=_COMPARED_PASSAGES_MAX)
            keys = np.unique(of_keys)
            cached = self._code_cache.get(generation, keys)
            parts = [cached] if len(cached.keys) else []
            if len(cached.keys) < len(keys):
                missing = np.setdiff1d(keys, cached.keys, assume_unique=True)
                with store.lock:
                    generation, stored = store.cache_generation, store.codes(missing.tolist())
                read = coded_passages(stored)
                self._code_cache.put(generation, read)
                parts += [read] if len(read.keys) else []
        return EpisodeCodes(of_versions, of_keys, tuple(parts))

    def text_flags(self, namespace: str, snapshot: Snapshot, versions: Sequence[int]) -> dict[int, int]:
        """Return the flags of the texts of embedded episodes by version. The model must be ready."""
        if not self._path(namespace).exists() or not versions:
            return {}
        with self._using(namespace, snapshot) as store, store.lock:
            return store.text_flags(versions)

    @contextmanager
    def _using(self, namespace: str, snapshot: Snapshot) -> Generator[VectorStore]:
        """Yield the open store of `namespace`; when its file is damaged, remove it."""
        with self._stores.using(namespace, partial(self._open, namespace, snapshot)) as store:
            try:
                with storage_errors(self._path(namespace)):
                    with store.lock:
                        store.reset_if_log_was_replaced(self._read_models.log, namespace, snapshot)
                    yield store
            except ForeignFile:
                self._remove_damaged(namespace)
                raise

    def _open(self, namespace: str, snapshot: Snapshot) -> VectorStore:
        if not self.embedder.fingerprint:
            raise RecollectError(
                f"the embedding model {self.embedder.name!r} is not ready, so its vectors cannot be selected from "
                "those of other models; wait until it is loaded"
            )
        source = (
            f"log {snapshot.state.log_id}, schema {SCHEMA_VERSION}, passages {PASSAGES_VERSION}, "
            f"text flags {TEXT_FLAGS_VERSION}"
        )
        path = self._path(namespace)
        try:
            return VectorStore(path, self.embedder.fingerprint, source)
        except ForeignFile as problem:
            _logger.warning("the vectors of namespace %.12s are embedded again: %s", folder_name(namespace), problem)
            remove_vectors(path)
            return VectorStore(path, self.embedder.fingerprint, source)

    def _remove_damaged(self, namespace: str) -> None:
        """Remove the file; the next use embeds its texts again."""
        _logger.warning("the vectors of namespace %.12s are damaged and are embedded again", folder_name(namespace))
        with self._stores.lock:
            self._stores.drop(namespace)
            remove_vectors(self._path(namespace))

    def _drop_over_memory_limit(self) -> None:
        """Close the least recently used store when the indexes take more than `_INDEX_BYTES_MAX`."""
        with self._stores.lock:
            if self._index_bytes() > _INDEX_BYTES_MAX and self._stores.count > 1:
                self._stores.drop_idle()

    def _index_bytes(self) -> int:
        """Return the private memory of the indexes in use, with the room for further vectors."""
        return sum(store.index.size_bytes for store in self._stores.files() if store.index is not None)

    def _path(self, namespace: str) -> Path:
        return _vectors_path(self._data, namespace)


@lru_cache(maxsize=_PATHS_MAX)
def _vectors_path(data: Path, namespace: str) -> Path:
    """Return the path of a namespace's vectors, which a retrieval needs six times."""
    return namespace_folder(data, namespace) / VECTORS_FILE
