"""Shared vectors: a cache of vectors in the log's database, so that the machines of a log embed each text once.

Vectors of texts are personal data. Rows belong to one namespace; where the log is encrypted, so are they, by the key of
the namespace; and an erasure removes those of the erased texts (`prune`). The cache is never needed: without the
database, each machine embeds for itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from psycopg_pool import ConnectionPool, PoolTimeout

from recollect.events.backends.postgres_schema import connection_string, storage_error
from recollect.events.encryption.key_store import KID_BYTES, KeyStore
from recollect.events.encryption.master_key import NONCE_BYTES
from recollect.events.errors import Erased, KeyMissing, RecollectError
from recollect.projections.embeddings.stored_vectors import SCALE_BYTES, packed, restored
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vector_store import StoredEmbedding

_logger = logging.getLogger(__name__)

#: Connections: one embeds, one reads, one removes.
_CONNECTIONS_MAX = 3
#: Seconds that a statement waits for a connection, and for another machine that embeds in the same namespace: about
#: two batches. After that the machine embeds by itself.
_WAIT_SECONDS = 5
#: Seconds without a further attempt after a failure, so that a database that is away delays one batch, not each.
_PAUSE_SECONDS = 30.0
#: Share of `bytes_max` that is left after rows were removed for it, so that this happens now and then only.
_KEPT_SHARE = 0.9
#: Seconds between two looks of a process at the time of the last removal.
_TRIM_SECONDS = 3_600.0

_EXISTS = "SELECT to_regclass('recollect_cache.vectors_1') IS NOT NULL, encrypted FROM log"
_READ = """
SELECT digest, content FROM recollect_cache.vectors_1
WHERE namespace = %b AND model = %b AND digest = ANY(%b) AND (has_codes OR NOT %b)
"""
_WRITE = """
INSERT INTO recollect_cache.vectors_1 (namespace, model, digest, has_codes, content, size_bytes)
SELECT %b, %b, new.digest, new.has_codes, new.content, octet_length(new.content)
FROM unnest(%b::bytea[], %b::boolean[], %b::bytea[]) AS new (digest, has_codes, content)
ON CONFLICT (namespace, model, digest) DO UPDATE
SET has_codes = excluded.has_codes, content = excluded.content, size_bytes = excluded.size_bytes
WHERE excluded.has_codes AND NOT vectors_1.has_codes
"""
_ERASURE_VERSION = "SELECT erasure_version FROM heads WHERE namespace = %s"
_REMOVED_BEFORE = "SELECT removed FROM recollect_cache.erasures_1 WHERE namespace = %b AND version >= %b"
_PRUNE = """
DELETE FROM recollect_cache.vectors_1 WHERE namespace = %b AND NOT EXISTS (
    SELECT FROM unnest(%b::bytea[]) AS kept (digest) WHERE kept.digest = vectors_1.digest
)
"""
_NOTE_ERASURE = """
INSERT INTO recollect_cache.erasures_1 VALUES (%b, %b, %b)
ON CONFLICT (namespace) DO UPDATE SET version = excluded.version, removed = excluded.removed
"""
_CLAIM_TRIM = """
UPDATE recollect_cache.trims_1 SET trimmed_at = now() WHERE trimmed_at < now() - interval '1 hour' RETURNING 1
"""
_TRIM_OLD = "DELETE FROM recollect_cache.vectors_1 WHERE saved_on < current_date - %s::integer"
_SIZE = "SELECT coalesce(sum(size_bytes), 0)::bigint FROM recollect_cache.vectors_1"
#: All but the newest rows that have together no more than a number of bytes.
_TRIM_OLDEST = """
DELETE FROM recollect_cache.vectors_1 WHERE ctid IN (
    SELECT ctid FROM (
        SELECT ctid, sum(size_bytes) OVER (ORDER BY saved_on DESC, ctid DESC) AS bytes_with_newer
        FROM recollect_cache.vectors_1
    ) AS sized WHERE bytes_with_newer > %s
)
"""

_Connection = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")


class SharedKey(NamedTuple):
    """What the vectors of one model are stored under."""

    #: All that determines a vector besides its text: the model, the format of vectors, the basis of the codes.
    model: str
    #: Dimensions of a vector.
    dimensions: int

    @property
    def digest(self) -> bytes:
        """Return the sha256 of the model."""
        return sha256(self.model.encode()).digest()


class SharedVectors:
    """The shared vectors of the log at `url`. Safe to use from many threads, processes and machines.

    No connection is opened before the first use. A failure of the database is an empty cache to all methods but `prune`
    and `trim`.

    Parameters:
        url: the URL of a log in PostgreSQL.
        keys: the key store of the log; without one, nothing of an encrypted log is shared.
        bytes_max: bytes of all rows; the oldest ones are removed first. 0 shares nothing, and erasures are followed.
        days_max: days after which a row is removed.
        wait_seconds: seconds that a call waits for a connection.
    """

    def __init__(
        self, url: str, keys: KeyStore | None, *, bytes_max: int, days_max: int, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        conninfo, self._location = connection_string(url, _WAIT_SECONDS)
        self._keys = keys
        self._bytes_max = bytes_max
        self._days_max = days_max
        self._pool = ConnectionPool[_Connection](
            conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=_CONNECTIONS_MAX,
            timeout=wait_seconds,
            check=ConnectionPool[_Connection].check_connection,
            name="recollect-vectors",
            open=True,
        )
        self._lock = threading.Lock()
        #: Whether the tables were there when they were last looked for, and whether the log is encrypted.
        self._has_tables = False
        self._encrypted = False
        #: `time.monotonic()` seconds until which the database is left alone, and of the next removal of old rows.
        self._paused_until = 0.0
        self._next_trim = 0.0

    def read(
        self, namespace: str, key: SharedKey, digests: Collection[bytes], *, with_codes: bool
    ) -> dict[bytes, StoredEmbedding]:
        """Return the stored embeddings among `digests`.

        Parameters:
            with_codes: leave out those without token codes.
        """

        def select(connection: _Connection) -> dict[bytes, StoredEmbedding]:
            names = self._names(namespace, digests)
            values = (_hashed(namespace), key.digest, [*names], with_codes)
            rows = connection.execute(_READ, values, binary=True).fetchall()
            plains = {names[name]: self._opened(namespace, key, name, content) for name, content in rows}
            return {
                digest: _unpacked(plain, key.dimensions, with_codes=with_codes)
                for digest, plain in plains.items()
                if plain is not None
            }

        return self._attempt(select, {}) if digests and self._bytes_max else {}

    def write(
        self, namespace: str, key: SharedKey, embeddings: Mapping[bytes, StoredEmbedding], *, erasure_version: int
    ) -> None:
        """Store embeddings; nothing when events of the namespace were erased meanwhile.

        Parameters:
            erasure_version: of the last erasure, read before the texts were.
        """

        def insert(connection: _Connection) -> int:
            rows = [
                (name, embeddings[digest].codes is not None, content)
                for name, digest in self._names(namespace, embeddings).items()
                if (content := self._sealed(namespace, key, name, _packed(embeddings[digest]))) is not None
            ]
            if not rows:
                return 0
            with connection.transaction():
                # An erasure takes this lock exclusively after its commit: either it removes these rows, or its version
                # is seen here.
                connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (_lock_number("erase", namespace),))
                row = connection.execute(_ERASURE_VERSION, (namespace,)).fetchone()
                if row is None or row[0] != erasure_version:
                    return 0
                columns = [list(column) for column in zip(*rows, strict=True)]
                return connection.execute(_WRITE, (_hashed(namespace), key.digest, *columns)).rowcount

        if embeddings and self._bytes_max and self._attempt(insert, 0):
            self._trim_when_due()

    @contextmanager
    def embedding(self, namespace: str) -> Generator[None]:
        """Let one machine at a time embed texts of `namespace`; another waits some seconds, then goes on."""
        number = _lock_number("embed", namespace)
        connection = self._attempt(lambda _: self._pool.getconn(), None) if self._bytes_max else None
        try:
            is_locked = connection is not None and _is_locked(connection, number)
            try:
                yield
            finally:
                if connection is not None and is_locked:
                    _unlock(connection, number)
        finally:
            if connection is not None:
                self._pool.putconn(connection)

    def basis(self, model: str, compute: Callable[[], Vector]) -> Vector:
        """Return the basis of the token codes of a model: that of the first machine which has computed it."""
        select = "SELECT basis FROM recollect_cache.bases_1 WHERE model = %s"

        def read(connection: _Connection) -> bytes | None:
            row = connection.execute(select, (model,), binary=True).fetchone()
            return None if row is None else row[0]

        stored = self._attempt(read, None) if self._bytes_max else None
        if stored is None:
            own = compute()
            content = BytesIO()
            np.save(content, own)

            def write(connection: _Connection) -> bytes | None:
                insert = "INSERT INTO recollect_cache.bases_1 VALUES (%s, %s) ON CONFLICT DO NOTHING"
                connection.execute(insert, (model, content.getvalue()))
                return read(connection)

            stored = (self._attempt(write, None) if self._bytes_max else None) or content.getvalue()
        return cast(Vector, np.load(BytesIO(stored)))

    def prune(self, namespace: str, version: int, kept: Iterable[bytes]) -> int:
        """Remove the vectors of erased texts; return how many this, or another machine, has removed for this erasure.

        Parameters:
            version: of the erasure, which is committed.
            kept: digests of the texts that the namespace still has.

        Raises:
            StorageError: the database cannot be reached.
        """
        with self._connection(create=False) as connection, connection.transaction():
            if not self._has_tables:
                return 0
            hashed = _hashed(namespace)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_number("erase", namespace),))
            row = connection.execute(_REMOVED_BEFORE, (hashed, version)).fetchone()
            if row is not None:
                return row[0]
            removed = connection.execute(_PRUNE, (hashed, [*self._names(namespace, kept)])).rowcount
            connection.execute(_NOTE_ERASURE, (hashed, version, removed))
            return removed

    def trim(self) -> int:
        """Remove the rows that are too old, and the oldest ones over `bytes_max`; return their number.

        Raises:
            StorageError: the database cannot be reached.
        """
        with self._connection() as connection:
            removed = connection.execute(_TRIM_OLD, (self._days_max,)).rowcount
            row = connection.execute(_SIZE).fetchone()
            if row is not None and row[0] > self._bytes_max:
                removed += connection.execute(_TRIM_OLDEST, (int(_KEPT_SHARE * self._bytes_max),)).rowcount
        return removed

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _trim_when_due(self) -> None:
        """Remove old rows when no process has done that for an hour."""
        with self._lock:
            now = time.monotonic()
            is_due, self._next_trim = now >= self._next_trim, max(self._next_trim, now + _TRIM_SECONDS)
        if is_due and self._attempt(lambda connection: connection.execute(_CLAIM_TRIM).fetchone(), None):
            self._attempt(lambda _: self.trim(), 0)

    def _attempt(self, work: Callable[[_Connection], Result], otherwise: Result) -> Result:
        """Return the result of `work` with a connection; `otherwise` while the database fails, which is logged."""
        if time.monotonic() < self._paused_until:
            return otherwise
        try:
            with self._connection() as connection:
                return work(connection)
        except RecollectError as error:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            self._has_tables = False
            _logger.warning("shared vectors are not used for %d s: %s", _PAUSE_SECONDS, error)
            return otherwise

    @contextmanager
    def _connection(self, *, create: bool = True) -> Generator[_Connection]:
        """Yield a connection, after the tables were created where they are missing; translate PostgreSQL's errors."""
        try:
            with self._pool.connection() as connection:
                if not self._has_tables:
                    self._has_tables, self._encrypted = _prepare(connection, create=create)
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            raise storage_error(error, self._location) from error

    def _names(self, namespace: str, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the digests by their names in the database.

        A sha256 can be compared with those of guessed texts; an HMAC cannot be computed without the key store.
        """
        if not self._encrypted or self._keys is None:
            return {digest: digest for digest in digests}
        keys = self._keys
        return {keys.pseudonym("vector", namespace, digest.hex()): digest for digest in digests}

    def _sealed(self, namespace: str, key: SharedKey, name: bytes, plain: bytes) -> bytes | None:
        """Return what is stored for a vector; None when it must not be: its namespace, or the key store, is gone."""
        if not self._encrypted:
            return plain
        kid = None if self._keys is None else self._keys.prepare([(namespace, None)]).get((namespace, None))
        if self._keys is None or kid is None:
            return None
        nonce = os.urandom(NONCE_BYTES)
        return kid + nonce + self._keys.cipher(kid).encrypt(nonce, plain, _associated(namespace, key, name) + kid)

    def _opened(self, namespace: str, key: SharedKey, name: bytes, stored: bytes) -> bytes | None:
        """Return the packed embedding; None when it cannot be decrypted, which counts as missing."""
        if not self._encrypted:
            return stored
        if self._keys is None:
            return None
        kid, nonce = stored[:KID_BYTES], stored[KID_BYTES : KID_BYTES + NONCE_BYTES]
        try:
            cipher: AESGCM = self._keys.cipher(kid)
            return cipher.decrypt(nonce, stored[KID_BYTES + NONCE_BYTES :], _associated(namespace, key, name) + kid)
        except (InvalidTag, Erased, KeyMissing):
            return None


def _prepare(connection: _Connection, *, create: bool) -> tuple[bool, bool]:
    """Create missing tables; return whether the tables exist, and whether the log is encrypted."""
    [exists, encrypted] = connection.execute(_EXISTS).fetchall()[0]
    if not exists and create:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('recollect.vectors'))")
            # Another process may have created them meanwhile.
            if not connection.execute(_EXISTS).fetchall()[0][0]:
                connection.execute(files(__package__).joinpath("shared_vectors.sql").read_bytes())
    return exists or create, encrypted


def _is_locked(connection: _Connection, number: int) -> bool:
    """Return whether the lock was acquired within the time limit of the connection."""
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (number,))
    except psycopg.Error:
        return False
    return True


def _unlock(connection: _Connection, number: int) -> None:
    try:
        connection.execute("SELECT pg_advisory_unlock(%s)", (number,))
    except psycopg.Error:
        # The server releases the locks of a connection that has ended.
        connection.close()


def _hashed(namespace: str) -> bytes:
    return sha256(namespace.encode()).digest()


def _lock_number(use: str, namespace: str) -> int:
    """Return the number of an advisory lock, a signed integer of 8 bytes."""
    return int.from_bytes(sha256(f"recollect.vectors {use} {namespace}".encode()).digest()[:8], "big", signed=True)


def _associated(namespace: str, key: SharedKey, name: bytes) -> bytes:
    """Return the associated data: a row cannot be moved to another text, model or namespace."""
    return f"vector\n{namespace}\n".encode() + key.digest + name


def _packed(embedding: StoredEmbedding) -> bytes:
    codes = b"" if embedding.codes is None else embedding.codes.tobytes()
    return packed(embedding.vector) + codes


def _unpacked(content: bytes, dimensions: int, *, with_codes: bool) -> StoredEmbedding:
    end = dimensions + SCALE_BYTES
    codes = np.frombuffer(content[end:], np.uint8)
    return StoredEmbedding(restored(content[:end]), codes if with_codes else None)
