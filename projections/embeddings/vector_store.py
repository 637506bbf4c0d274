"""One namespace's vectors of one model: the file and the index over it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recollect.events.backends.log import EventLog
from recollect.events.storage.database import connect, storage_errors
from recollect.projections.embeddings.passages import PARTS, Passage
from recollect.projections.embeddings.token_codes import TokenCodes, Vector
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.queries.snapshot import Snapshot

#: Rows of other models removed in one transaction: others wait for milliseconds, not for all of it.
_REMOVED_ROWS = 1_000

_NEW_ROWS = """
SELECT embeddings.version, embeddings.part, vectors.vector
FROM embeddings JOIN vectors ON vectors.key = embeddings.vector_key
WHERE embeddings.model = ? AND embeddings.version > ? AND embeddings.version <= ?
ORDER BY embeddings.version, embeddings.part, embeddings.chunk
"""

_TURN_VECTOR = """
SELECT vectors.vector FROM embeddings JOIN vectors ON vectors.key = embeddings.vector_key
WHERE embeddings.model = ? AND embeddings.version = ? AND embeddings.part = 'turn' AND embeddings.chunk = 0
"""

# In two steps: one after the other, each table's pages stay in SQLite's cache.
_TURN_KEYS = """
SELECT vector_key, version FROM embeddings WHERE model = ? AND version IN (%s) AND part = 'turn' AND chunk < ?
ORDER BY version, chunk
"""
_CODES = "SELECT vector_key, codes FROM token_codes WHERE vector_key IN (%s)"

# Never back: where another process embeds the same, it may have come further.
_SAVE_PROGRESS = """
INSERT INTO embedded VALUES (?, ?, ?, ?)
ON CONFLICT (model) DO UPDATE SET
    checkpoint = excluded.checkpoint, last_id = excluded.last_id, source = excluded.source
    WHERE source <> excluded.source OR checkpoint < excluded.checkpoint
"""
# The progress goes first: a model that was removed in part is embedded anew, and never taken for whole.
_REMOVALS = (
    "DELETE FROM embedded WHERE model = ?1 AND ?2",
    "DELETE FROM embeddings WHERE model = ?1 AND (version, part, chunk) IN "
    "(SELECT version, part, chunk FROM embeddings WHERE model = ?1 LIMIT ?2)",
    "DELETE FROM token_codes WHERE vector_key IN (SELECT vector_key FROM token_codes JOIN vectors "
    "ON key = vector_key WHERE model = ?1 LIMIT ?2)",
    "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE model = ?1 LIMIT ?2)",
)


#: Versions whose vectors are loaded before others have their turn: some 10 ms.
_LOADED_VERSIONS = 2_000
#: Chunks of one text that are compared piece by piece: of longer texts the beginning.
_CODED_CHUNKS_MAX = 10
_eras = count()


class EmbeddedText(NamedTuple):
    """What is kept of one text."""

    vector: Vector
    #: Of a turn: its pieces.
    codes: TokenCodes | None = None


class VectorStore:
    """The file of one namespace's vectors, as one model sees it."""

    def __init__(self, path: Path, model: str, source: str) -> None:
        self._path = path
        self._model = model
        self._source = source
        self._connection = connect(path)
        #: Held while the connection or the index changes.
        self.lock = threading.Lock()
        #: Held while the index is loaded.
        self._loading = threading.Lock()
        #: Whole, up to the checkpoint of the last call.
        self.index: VectorIndex | None = None
        self._loaded: VectorIndex | None = None
        self._indexed = 0
        #: Another number whenever episodes may have got other vectors.
        self.era = next(_eras)
        self._agreed = False
        with storage_errors(path):
            self._connection.execute(_schema())

    def checkpoint(self) -> int:
        """Return the version of the last episode with vectors; 0 when they were made from another source."""
        row: tuple[Any, ...] | None = self._connection.execute(
            "SELECT checkpoint FROM embedded WHERE model = ? AND source = ?", (self._model, self._source)
        ).fetchone()
        return 0 if row is None else row[0]

    def reset_if_log_was_replaced(self, log: EventLog, namespace: str, snapshot: Snapshot) -> None:
        """Forget which vectors stand for which episode when the last one embedded is another one now.

        Then an older copy of the log was put in place and went on in another way. Vectors are kept by their texts.
        """
        if self._agreed:
            return
        row: tuple[Any, ...] | None = self._connection.execute(
            "SELECT checkpoint, last_id FROM embedded WHERE model = ? AND source = ?", (self._model, self._source)
        ).fetchone()
        if row is not None and row[0] > snapshot.version:
            # Not folded yet, or the log is shorter now: the next snapshot will tell.
            return
        # The episode itself may have expired; its event stays.
        if row is not None and [event.id for event in log.read(namespace, after=row[0] - 1, limit=1)] != [row[1]]:
            with self._transaction():
                self._connection.execute("DELETE FROM embedded WHERE model = ?", (self._model,))
        self._agreed = True

    def missing(self, texts: dict[bytes, str], *, with_codes: Collection[bytes] = ()) -> dict[bytes, str]:
        """Return those of `texts`, by digest, that were never embedded, or of which codes are wanted and not there."""
        find = "SELECT 1 FROM vectors WHERE model = ? AND digest = ?"
        coded = "SELECT 1 FROM vectors JOIN token_codes ON vector_key = key WHERE model = ? AND digest = ?"
        known = {
            digest
            for digest in texts
            if self._connection.execute(coded if digest in with_codes else find, (self._model, digest)).fetchone()
        }
        return {digest: text for digest, text in texts.items() if digest not in known}

    def save(
        self,
        vectors: dict[bytes, EmbeddedText],
        found: Sequence[tuple[int, Passage, bytes]],
        *,
        after: int,
        last: tuple[int, str],
    ) -> bool:
        """Write new vectors, the passages they stand for and the checkpoint in one transaction.

        Parameters:
            after: the checkpoint that the passages follow.
            last: version and id of the last episode among them.

        Returns:
            False when nothing was written: another process has removed what they follow, or a remembered vector.
        """
        with self._transaction():
            remembered = {digest: passage.text for _, passage, digest in found if digest not in vectors}
            if self.checkpoint() < after or self.missing(remembered):
                return False
            if self.checkpoint() == 0:
                self._connection.execute("DELETE FROM embeddings WHERE model = ?", (self._model,))
            self._remember(vectors)
            self._connection.executemany(
                "INSERT OR REPLACE INTO embeddings "
                "SELECT model, ?, ?, ?, key FROM vectors WHERE model = ? AND digest = ?",
                [(version, passage.part, passage.chunk, self._model, digest) for version, passage, digest in found],
            )
            self._connection.execute(_SAVE_PROGRESS, (self._model, self._source, *last))
        return True

    def save_texts(self, vectors: dict[bytes, EmbeddedText]) -> None:
        """Keep what became of texts, by the digests of these."""
        with self._transaction():
            self._remember(vectors)

    def _remember(self, vectors: dict[bytes, EmbeddedText]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO vectors (model, digest, vector) VALUES (?, ?, ?)",
            [(self._model, digest, kept.vector.astype("<f4").tobytes()) for digest, kept in vectors.items()],
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO token_codes SELECT key, ? FROM vectors WHERE model = ? AND digest = ?",
            [(kept.codes.tobytes(), self._model, digest) for digest, kept in vectors.items() if kept.codes is not None],
        )

    def texts(self, digest: bytes) -> Vector | None:
        """Return the vector of a text, if it was ever embedded."""
        return self._vector("SELECT vector FROM vectors WHERE model = ? AND digest = ?", digest)

    def of_turn(self, version: int) -> Vector | None:
        """Return the vector of an episode's turn, of its first chunk when it is long."""
        return self._vector(_TURN_VECTOR, version)

    def codes(self, versions: Sequence[int]) -> dict[int, list[bytes]]:
        """Return the codes of the turns `versions` that have some, by version, of each chunk."""
        keys: list[tuple[Any, ...]] = self._connection.execute(
            _TURN_KEYS % _marks(versions), (self._model, *versions, _CODED_CHUNKS_MAX)
        ).fetchall()
        wanted = sorted({key for key, _ in keys})
        rows: list[tuple[Any, ...]] = self._connection.execute(_CODES % _marks(wanted), wanted).fetchall()
        codes: dict[int, bytes] = dict(rows)
        chunks: dict[int, list[bytes]] = {}
        for key, version in keys:
            if codes.get(key):
                chunks.setdefault(version, []).append(codes[key])
        return chunks

    def _vector(self, query: str, value: bytes | int) -> Vector | None:
        row: tuple[Any, ...] | None = self._connection.execute(query, (self._model, value)).fetchone()
        return None if row is None else np.frombuffer(row[0], "<f4")

    def remove_other_models(self, keep: Collection[str]) -> None:
        """Remove everything of models whose tags are not in `keep`, a little at a time."""
        tags = "SELECT model FROM embedded UNION SELECT model FROM embeddings UNION SELECT model FROM vectors"
        rows: list[tuple[Any, ...]] = self._connection.execute(tags).fetchall()
        for tag in {row[0] for row in rows}.difference(keep):
            for removal in _REMOVALS:
                self._remove(removal, tag)

    def _remove(self, removal: str, tag: str) -> None:
        removed = True
        while removed:
            with self.lock, self._transaction():
                self._connection.execute(removal, (tag, _REMOVED_ROWS))
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
        """Return the index with what was embedded since the last call.

        It is loaded by one thread, a little at a time, so that others can use the file meanwhile.
        """
        with self._loading:
            while True:
                with self.lock:
                    checkpoint = self.checkpoint()
                    if self._loaded is None or checkpoint < self._indexed:
                        self._loaded, self._indexed = VectorIndex(dimensions), 0
                        self.era = next(_eras)
                    if checkpoint == self._indexed:
                        self.index = self._loaded
                        return self.index
                    self._load(self._loaded, min(checkpoint, self._indexed + _LOADED_VERSIONS))

    def _load(self, index: VectorIndex, until: int) -> None:
        """Add what was embedded of the episodes up to the version `until`."""
        rows: list[tuple[Any, ...]] = self._connection.execute(
            _NEW_ROWS, (self._model, self._indexed, until)
        ).fetchall()
        for part in PARTS:
            mine = [row for row in rows if row[1] == part]
            matrix = np.frombuffer(b"".join(row[2] for row in mine), "<f4").reshape(len(mine), index.dimensions)
            index.add(part, [row[0] for row in mine], matrix)
        self._indexed = until

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))


@cache
def _schema() -> str:
    return files(__package__).joinpath("vectors.sql").read_text(encoding="utf-8")
