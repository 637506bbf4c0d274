"""Vector store: reads and writes the vectors of one model in a namespace's file, and loads the index over them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence, Set
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import orjson

from recollect.events.backends.log import EventLog
from recollect.events.errors import ErasedMeanwhile
from recollect.events.storage.database import connect, storage_errors
from recollect.events.storage.heap import trim_heap
from recollect.projections.embeddings.passages import Passage
from recollect.projections.embeddings.stored_vectors import SCALE_BYTES, packed, restored, restored_matrix
from recollect.projections.embeddings.token_codes import StoredCodes, Vector
from recollect.projections.embeddings.vector_file import StoredArrays, VectorFile, due_rows
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vector_schema import migrate
from recollect.projections.queries.records import json_list
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.layout import remove_vector_file

_logger = logging.getLogger(__name__)

#: Rows of other models removed in one transaction, so that other writers wait for milliseconds.
_REMOVED_ROWS = 1_000

# The vectors of the episodes after one version up to another, in the order of the index.
_VECTORS_BETWEEN = """
SELECT embeddings.version, vectors.key, vectors.vector
FROM embeddings JOIN vectors ON vectors.key = embeddings.vector_key
WHERE embeddings.model = ? AND embeddings.version > ? AND embeddings.version <= ?
ORDER BY embeddings.version, embeddings.chunk
"""

# The vectors of the first chunks of a JSON list of versions.
_TURN_VECTORS = """
SELECT embeddings.version, vectors.vector
FROM json_each(?) CROSS JOIN embeddings ON embeddings.model = ? AND embeddings.version = value
JOIN vectors ON vectors.key = embeddings.vector_key
WHERE embeddings.chunk = 0
"""

_EMBEDDED_AMONG = "SELECT DISTINCT version FROM json_each(?) CROSS JOIN embeddings ON model = ? AND version = value"
# The codes of a JSON list of keys.
_CODES = "SELECT vector_key, codes FROM json_each(?) CROSS JOIN token_codes ON vector_key = value"
_VECTORS_AFTER = "SELECT count(*) FROM embeddings WHERE model = ? AND version > ? AND version <= ?"

_INSERT_VECTOR = "INSERT OR IGNORE INTO vectors (model, digest, vector) VALUES (?, ?, ?)"
_INSERT_CODES = """
INSERT OR REPLACE INTO token_codes (vector_key, codes) SELECT key, ? FROM vectors WHERE model = ? AND digest = ?
"""
# The flags of a JSON list of versions.
_TEXT_FLAGS = "SELECT version, flags FROM json_each(?) CROSS JOIN text_flags ON version = value"
_INSERT_FLAGS = "INSERT OR REPLACE INTO text_flags (version, flags) VALUES (?, ?)"
_INSERT_PASSAGE = """
INSERT OR REPLACE INTO embeddings (model, version, part, chunk, vector_key)
SELECT model, ?, 'turn', ?, key FROM vectors WHERE model = ? AND digest = ?
"""
_NEWEST = "SELECT max(version) FROM embeddings WHERE model = ?"
_HAS_VECTOR = "SELECT 1 FROM vectors WHERE model = ?1 AND digest = unhex(value)"
_HAS_CODES = "SELECT 1 FROM vectors JOIN token_codes ON vector_key = key WHERE model = ?1 AND digest = unhex(value)"
_TEXT_VECTORS = """
SELECT digest, vector FROM json_each(?2) CROSS JOIN vectors ON model = ?1 AND digest = unhex(value)
"""
_MISSING = "SELECT unhex(value) FROM json_each(?2) WHERE NOT EXISTS (%s)"

# The checkpoint never decreases: another process that embeds the same namespace may be ahead.
_SAVE_PROGRESS = """
INSERT INTO embedded (model, source, checkpoint, last_id) VALUES (?, ?, ?, ?)
ON CONFLICT (model) DO UPDATE SET
    checkpoint = excluded.checkpoint, last_id = excluded.last_id, source = excluded.source
    WHERE source <> excluded.source OR checkpoint < excluded.checkpoint
"""
# The progress is removed first, so that a model whose removal was interrupted is embedded from the start.
_REMOVALS = (
    "DELETE FROM embedded WHERE model = ?1 AND ?2",
    "DELETE FROM embeddings WHERE model = ?1 AND (version, part, chunk) IN "
    "(SELECT version, part, chunk FROM embeddings WHERE model = ?1 LIMIT ?2)",
    "DELETE FROM token_codes WHERE vector_key IN (SELECT vector_key FROM token_codes JOIN vectors "
    "ON key = vector_key WHERE model = ?1 LIMIT ?2)",
    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE model = ?1 LIMIT ?2)",
)
_MODELS = "SELECT model FROM embedded UNION SELECT model FROM embeddings UNION SELECT model FROM vectors"

#: Versions whose vectors are loaded under the lock at once: about 3 ms, then other threads can use the file. Their
#: float32 vectors are 2 MB for a moment, which stay with the process.
_LOADED_VERSIONS = 500
#: The page cache of the file instead of SQLite's 2 MB: a page has the codes of one or two passages, which are cached as
#: arrays, so that only the inner pages are read again.
_PAGE_CACHE_KIB = 256
_cache_generations = count()


class StoredEmbedding(NamedTuple):
    """The stored embedding of a passage or of another text."""

    vector: Vector
    #: Codes of the tokens; of passages only.
    codes: StoredCodes | None = None


class VectorStore:
    """The vectors of one model in the file of one namespace.

    Parameters:
        model: the fingerprint of the model.
        source: identifies the texts that episodes are embedded from; another source makes the embeddings invalid.

    Raises:
        StorageError: the file cannot be opened; `ForeignFile` when it is damaged.
    """

    def __init__(self, path: Path, model: str, source: str) -> None:
        self._path = path
        self._model = model
        self._source = source
        self._connection = connect(path)
        self._connection.pragma("cache_size", -_PAGE_CACHE_KIB)
        #: Held while the connection or the index changes.
        self.lock = threading.Lock()
        #: Held while the index is loaded.
        self._loading = threading.Lock()
        #: The complete index up to the checkpoint of the last `extended_index`; None before the first.
        self.index: VectorIndex | None = None
        #: The index while it is loaded, up to the version `_indexed`.
        self._loaded: VectorIndex | None = None
        self._indexed = 0
        #: Vectors from which the vector file is written again.
        self._file_due_rows = due_rows(0)
        #: The last version of the mapped vectors; 0: none are mapped.
        self._file_through = 0
        #: The versions between which `ahead` of the index has vectors.
        self._ahead = (0, 0)
        #: Generation of caches over this file: another number whenever episodes may have other vectors.
        self.cache_generation = next(_cache_generations)
        #: Digests of the texts of the knowledge that was embedded last.
        self.knowledge: Set[bytes] = frozenset()
        self._log_checked = False
        with storage_errors(path):
            number = migrate(self._connection)
            self._purged = self._last_purge()
        identity = orjson.dumps([model, source, self._purged, number])
        self._file = VectorFile(path, self._connection, model, sha256(identity).digest())

    def checkpoint(self) -> int:
        """Return the version of the last embedded episode; 0 when the vectors are of another source."""
        row: tuple[Any, ...] | None = self._connection.execute(
            "SELECT checkpoint FROM embedded WHERE model = ? AND source = ?", (self._model, self._source)
        ).fetchone()
        return 0 if row is None else row[0]

    def reset_if_log_was_replaced(self, log: EventLog, namespace: str, snapshot: Snapshot) -> None:
        """Reset the checkpoint when the event at the checkpoint has another id than the embedded one.

        Then the log was replaced by an older copy, which has got other events since. The vectors of texts stay.
        """
        if self._log_checked:
            return
        row: tuple[Any, ...] | None = self._connection.execute(
            "SELECT checkpoint, last_id FROM embedded WHERE model = ? AND source = ?", (self._model, self._source)
        ).fetchone()
        if row is not None and row[0] > snapshot.version:
            # The event is not projected yet, or the log is shorter now; a later snapshot decides.
            return
        # The log is asked, since the episode may have expired; its event stays.
        if row is not None and [event.id for event in log.read(namespace, after=row[0] - 1, limit=1)] != [row[1]]:
            with self._transaction():
                self._connection.execute("DELETE FROM embedded WHERE model = ?", (self._model,))
        self._log_checked = True

    def missing(self, digests: Iterable[bytes], *, with_codes: bool) -> set[bytes]:
        """Return the `digests` without a vector, or without codes where codes are required."""
        statement = _MISSING % (_HAS_CODES if with_codes else _HAS_VECTOR)
        return {digest for (digest,) in self._connection.execute(statement, (self._model, _hex_list(digests)))}

    def save(
        self,
        embeddings: Mapping[bytes, StoredEmbedding],
        passages: Sequence[tuple[int, Passage, bytes]],
        text_flags: Mapping[int, int],
        *,
        after: int,
        last: tuple[int, str],
    ) -> bool:
        """Write new embeddings, the passages that use embeddings, and the checkpoint in one transaction.

        Parameters:
            embeddings: new embeddings by the digests of their stretches.
            passages: (version of the episode, or of an expired source of it, passage, digest of its stretch).
            text_flags: those of the episodes, by version.
            after: the checkpoint that the passages follow.
            last: version and id of the last episode among them.

        Returns:
            False when nothing was written: another process has reset the checkpoint or removed a vector meanwhile.
        """
        with self._transaction():
            stored = {digest for _, _, digest in passages if digest not in embeddings}
            if self.checkpoint() < after or self.missing(stored, with_codes=True):
                return False
            if self.checkpoint() == 0:
                self._connection.execute("DELETE FROM embeddings WHERE model = ?", (self._model,))
                self._connection.execute("DELETE FROM text_flags")
            self._insert(embeddings)
            self._insert_passages(passages)
            self._connection.executemany(_INSERT_FLAGS, [*text_flags.items()])
            self._connection.execute(_SAVE_PROGRESS, (self._model, self._source, *last))
        self._reload_if_passed(passages, after)
        return True

    def newest(self) -> int:
        """Return the version of the newest episode with vectors; 0 when there is none."""
        row: tuple[Any, ...] | None = self._connection.execute(_NEWEST, (self._model,)).fetchone()
        return 0 if row is None or row[0] is None else row[0]

    def save_ahead(
        self, embeddings: Mapping[bytes, StoredEmbedding], passages: Sequence[tuple[int, Passage, bytes]], *, after: int
    ) -> None:
        """Write the embeddings of episodes after the next ones; they are found from now on, and the checkpoint stays.

        Nothing is written when another process has changed the checkpoint `after`, or has removed a vector.
        """
        with self._transaction():
            stored = {digest for _, _, digest in passages if digest not in embeddings}
            if self.checkpoint() != after or self.missing(stored, with_codes=True):
                return
            self._insert(embeddings)
            self._insert_passages(passages)
        self._reload_if_passed(passages, after)

    def _reload_if_passed(self, passages: Sequence[tuple[int, Passage, bytes]], after: int) -> None:
        """Load the index again when it has passed one of the episodes: it is extended in the order of versions."""
        if any(version <= after for version, *_ in passages):
            self._loaded = None

    def _insert_passages(self, passages: Sequence[tuple[int, Passage, bytes]]) -> None:
        self._connection.executemany(
            _INSERT_PASSAGE, [(version, passage.chunk, self._model, digest) for version, passage, digest in passages]
        )

    def save_texts(self, embeddings: Mapping[bytes, StoredEmbedding]) -> None:
        """Write the embeddings of texts that are not passages, by the sha256 of the texts."""
        with self._transaction():
            self._insert(embeddings)

    def _last_purge(self) -> int:
        """Return the version of the last erasure that removed vectors from the file."""
        row: tuple[Any, ...] | None = self._connection.execute("SELECT max(version) FROM purges").fetchone()
        return 0 if row is None or row[0] is None else row[0]

    def _insert(self, embeddings: Mapping[bytes, StoredEmbedding]) -> None:
        if self._last_purge() != self._purged:
            raise ErasedMeanwhile(f"{self._path}: events were erased while their texts were embedded")
        self._connection.executemany(
            _INSERT_VECTOR,
            [(self._model, digest, packed(text.vector)) for digest, text in embeddings.items()],
        )
        self._connection.executemany(
            _INSERT_CODES,
            [
                (text.codes.tobytes(), self._model, digest)
                for digest, text in embeddings.items()
                if text.codes is not None
            ],
        )

    def embedded_among(self, versions: Sequence[int]) -> set[int]:
        """Return the `versions` that have passages; none when the vectors are of another source."""
        if not self.checkpoint():
            return set()
        rows = self._connection.execute(_EMBEDDED_AMONG, (json_list(versions), self._model))
        return {version for (version,) in rows}

    def text_vectors(self, digests: Iterable[bytes]) -> dict[bytes, Vector]:
        """Return the vectors of the texts with these sha256, without those that have none."""
        rows: list[Any] = self._connection.execute(_TEXT_VECTORS, (self._model, _hex_list(digests))).fetchall()
        vectors = restored_matrix((vector for _, vector in rows), len(rows[0][1]) - SCALE_BYTES) if rows else ()
        return {digest: vector for (digest, _), vector in zip(rows, vectors, strict=True)}

    def turn_vectors(self, versions: Iterable[int]) -> dict[int, Vector]:
        """Return the vectors of these episodes by version; of a long one that of its first chunk.

        Episodes without a vector are left out.
        """
        rows: Any = self._connection.execute(_TURN_VECTORS, (json_list(versions), self._model))
        return {version: restored(vector) for version, vector in rows}

    def loaded_index(self, dimensions: int) -> tuple[int, VectorIndex]:
        """Return `cache_generation`, and the index of the last `extended_index`; the first call loads it.

        Parameters:
            dimensions: the number of dimensions of the model's vectors.
        """
        while True:
            with self.lock:
                if self.index is not None:
                    return self.cache_generation, self.index
            self.extended_index(dimensions)

    def codes(self, keys: Sequence[int]) -> dict[int, bytes]:
        """Return the token codes of the passages with these keys; passages without codes are left out."""
        rows: list[Any] = self._connection.execute(_CODES, (json_list(keys),)).fetchall()
        return dict(rows)

    def text_flags(self, versions: Sequence[int]) -> dict[int, int]:
        """Return the stored flags of the texts of these episodes by version; none when they are of another source."""
        if not self.checkpoint():
            return {}
        rows: list[Any] = self._connection.execute(_TEXT_FLAGS, (json_list(versions),)).fetchall()
        return dict(rows)

    def remove_other_models(self, keep: Collection[str]) -> None:
        """Remove the rows of all models whose fingerprints are not in `keep`, in small transactions."""
        rows: list[tuple[Any, ...]] = self._connection.execute(_MODELS).fetchall()
        removed = {row[0] for row in rows}.difference(keep)
        if removed:
            # It may be that of one of them; otherwise the next load writes it again.
            remove_vector_file(self._path)
        for fingerprint in removed:
            for removal in _REMOVALS:
                self._remove(removal, fingerprint)

    def _remove(self, removal: str, fingerprint: str) -> None:
        removed = True
        while removed:
            with self.lock, self._transaction():
                self._connection.execute(removal, (fingerprint, _REMOVED_ROWS))
                removed = self._connection.changes() > 0

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def extended_index(self, dimensions: int) -> VectorIndex:
        """Return the index, extended by the vectors embedded since the last call.

        One thread loads it in steps of `_LOADED_VERSIONS`, so that other threads can use the file in between.

        Parameters:
            dimensions: the number of dimensions of the model's vectors.
        """
        with self._loading:
            is_long = False
            while True:
                with self.lock:
                    checkpoint = self.checkpoint()
                    if self._loaded is None or checkpoint < self._indexed:
                        index = self._begin(dimensions, checkpoint)
                        is_long = self._file_through > 0
                    else:
                        index = self._loaded
                    if checkpoint == self._indexed and index.rows >= self._file_due_rows:
                        index = self._write_file(index, checkpoint)
                    if checkpoint == self._indexed:
                        self._load_ahead(index, checkpoint)
                        self.index = index
                        break
                    if checkpoint > self._indexed + _LOADED_VERSIONS and not is_long:
                        self._reserve(index, checkpoint)
                        is_long = True
                    self._load(index, min(checkpoint, self._indexed + _LOADED_VERSIONS))
            if is_long:
                trim_heap()
            return index

    def _begin(self, dimensions: int, checkpoint: int) -> VectorIndex:
        """Begin a new index, with the vectors of the vector file when they are those of the database."""
        self.cache_generation = next(_cache_generations)
        self._file_due_rows, self._file_through = due_rows(0), 0
        stored = self._file.read(dimensions, checkpoint)
        if stored is not None:
            return self._begin_with(stored)
        self._loaded, self._indexed = VectorIndex(dimensions), 0
        return self._loaded

    def _begin_with(self, stored: StoredArrays) -> VectorIndex:
        """Begin the index with the vectors of the vector file."""
        self._loaded = index = VectorIndex(stored.arrays.codes.shape[1], stored.arrays)
        self._indexed = self._file_through = stored.through
        self._file_due_rows = due_rows(index.rows)
        return index

    def _write_file(self, index: VectorIndex, checkpoint: int) -> VectorIndex:
        """Write the vector file and return an index that maps it; on failure, return `index`.

        Another process may have written it meanwhile; then its file is mapped, and the vectors after it are loaded.
        """
        self._file_due_rows = due_rows(index.rows)
        try:
            # Erasures and other writers of the file wait: no vectors of before an erasure are written after it.
            with self._transaction():
                if self._last_purge() != self._purged:
                    return index
                stored = self._file.read(index.dimensions, checkpoint)
                if stored is None or stored.through <= self._file_through:
                    stored = self._file.write(index.arrays(), checkpoint)
        except (OSError, apsw.Error):
            _logger.debug("%s gets no vector file", self._path, exc_info=True)
            return index
        return self._begin_with(stored)

    def _reserve(self, index: VectorIndex, until: int) -> None:
        """Give `index` room for the vectors of the episodes up to the version `until`, so that it grows once."""
        row: Any = self._connection.execute(_VECTORS_AFTER, (self._model, self._indexed, until)).fetchone()
        index.reserve(row[0])

    def _load(self, index: VectorIndex, until: int) -> None:
        """Add the vectors of the episodes up to the version `until` to `index`."""
        self._add_between(index, self._indexed, until)
        self._indexed = until

    def _load_ahead(self, index: VectorIndex, checkpoint: int) -> None:
        """Give `index` the vectors of the episodes after the checkpoint, which were embedded out of turn."""
        newest, tail = self.newest(), index.tail
        if newest <= checkpoint:
            tail.ahead = None
        elif tail.ahead is None or (checkpoint, newest) != self._ahead:
            ahead = VectorIndex(index.dimensions)
            self._add_between(ahead, checkpoint, newest)
            tail.ahead = ahead
        self._ahead = (checkpoint, newest)

    def _add_between(self, index: VectorIndex, after: int, until: int) -> None:
        rows: list[tuple[Any, ...]] = self._connection.execute(_VECTORS_BETWEEN, (self._model, after, until)).fetchall()
        matrix = restored_matrix((vector for _, _, vector in rows), index.dimensions)
        index.add([version for version, _, _ in rows], matrix, [key for _, key, _ in rows])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _hex_list(digests: Iterable[bytes]) -> str:
    """Return digests for `json_each`, which `unhex` makes digests again."""
    return json_list(digest.hex() for digest in digests)
