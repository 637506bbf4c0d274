"""Caught-up heads: the versions up to which the work of namespaces was done, in a file of the data folder.

Without it, each start of a process opens every namespace once, to see whether something is left: with 100,000
namespaces that takes minutes. The file is a cache of one machine, as the read models are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from recollect.events.envelope import Head
from recollect.events.errors import StorageError
from recollect.events.storage.database import connect, storage_errors
from recollect.events.storage.namespace_folder import folder_name, hashed_folder
from recollect.projections.embeddings.passages import PASSAGES_VERSION
from recollect.projections.read_models.layout import VECTORS_FILE
from recollect.projections.schema.schema import SCHEMA_VERSION

_logger = logging.getLogger(__name__)

CAUGHT_UP_FILE = "settled.db"
#: Heads whose states are read in one statement.
_PAGE_HEADS = 1_000

_CREATE = """
CREATE TABLE IF NOT EXISTS settled (
    namespace_key BLOB PRIMARY KEY,  -- the name of the namespace's folder, 16 bytes
    version       INTEGER NOT NULL,  -- the head up to which everything is projected and embedded
    basis         BLOB    NOT NULL,  -- hash of the log's id and the version of the schema
    model         BLOB    NOT NULL,  -- hash of the embedding model; empty without one
    is_done       INTEGER NOT NULL   -- 1: the extraction has read all messages up to it, too
) STRICT, WITHOUT ROWID
"""
_READ = "SELECT namespace_key, version, basis, model, is_done FROM settled WHERE namespace_key IN ({})"
_WRITE = "INSERT OR REPLACE INTO settled (namespace_key, version, basis, model, is_done) VALUES (?, ?, ?, ?, ?)"


class CaughtUpHead(NamedTuple):
    """A namespace in which nothing is to project or embed; a NamedTuple, since there is one for each namespace."""

    namespace: str
    version: int
    is_done: bool


class Basis(NamedTuple):
    """What a state depends on besides the events."""

    #: Hash of the log's id and the version of the schema.
    read_model: bytes
    #: Hash of the embedding model; empty without one, and while it is loading: then no state of vectors is asked for.
    model: bytes


def basis_of(log_id: str, fingerprint: str) -> Basis:
    """Return the basis of states.

    Parameters:
        fingerprint: of the embedding model; empty until it is ready.
    """
    model = _hash(f"{fingerprint} {PASSAGES_VERSION}") if fingerprint else b""
    return Basis(_hash(f"{log_id} {SCHEMA_VERSION}"), model)


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:8]


class CaughtUpHeads:
    """The file of a data folder. Safe to use from many threads and processes.

    A file that cannot be read or written is left out, since all states can be found by opening the namespaces.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._path = data / CAUGHT_UP_FILE
        self._lock = threading.Lock()
        #: States to write, by namespace.
        self._new: dict[str, CaughtUpHead] = {}
        #: The last namespace whose state was read for the basis: a state is read once.
        self._last_read = ""
        self._read_basis: Basis | None = None

    def stored(self, heads: Iterable[Head], basis: Basis) -> Iterator[tuple[Head, CaughtUpHead | None]]:
        """Yield heads with their stored states, once for each head and basis, and later without a state.

        A namespace whose vectors were removed has no state.

        Parameters:
            heads: in the order of their names.
        """
        if basis != self._read_basis:
            self._read_basis, self._last_read = basis, ""
        ordered = iter(heads)
        while page := list(islice(ordered, _PAGE_HEADS)):
            unread = [head for head in page if head.namespace > self._last_read]
            states = self._page_states(unread, basis) if unread else {}
            for head in page:
                yield head, states.get(head.namespace)
            self._last_read = max(self._last_read, page[-1].namespace)

    def remember(self, state: CaughtUpHead) -> None:
        """Store a state with the next `write`."""
        with self._lock:
            self._new[state.namespace] = state

    def write(self, basis: Basis) -> None:
        """Write the states that were remembered."""
        with self._lock:
            states, self._new = list(self._new.values()), {}
        if not states:
            return
        rows = [
            (bytes.fromhex(folder_name(state.namespace)), state.version, *basis, int(state.is_done)) for state in states
        ]
        try:
            connection = self._open()
            try:
                with storage_errors(self._path), connection:
                    connection.executemany(_WRITE, rows)
            finally:
                connection.close()
        except StorageError:
            _logger.warning("the states of namespaces cannot be written; the next start opens them", exc_info=True)

    def _page_states(self, heads: Sequence[Head], basis: Basis) -> dict[str, CaughtUpHead]:
        """Return the states of namespaces at their present heads, by namespace."""
        head_of = {bytes.fromhex(folder_name(head.namespace)): head for head in heads}
        statement = _READ.format(", ".join("?" * len(head_of)))
        try:
            if not self._path.exists():
                return {}
            connection = self._open()
            try:
                with storage_errors(self._path):
                    rows: list[tuple[Any, ...]] = connection.execute(statement, tuple(head_of)).fetchall()
            finally:
                connection.close()
        except StorageError:
            self._path.unlink(missing_ok=True)
            return {}
        states: dict[str, CaughtUpHead] = {}
        for key, version, read_model, model, is_done in rows:
            head = head_of[key]
            if (
                (version, read_model) == (head.version, basis.read_model)
                and basis.model in (model, b"")
                and self._has_files(head.namespace, with_vectors=bool(model))
            ):
                states[head.namespace] = CaughtUpHead(head.namespace, version, bool(is_done))
        return states

    def _has_files(self, namespace: str, *, with_vectors: bool) -> bool:
        folder = hashed_folder(self._data / "namespaces", namespace)
        return (folder / VECTORS_FILE if with_vectors else folder).exists()

    def _open(self) -> Any:
        """Open the file, which is created when it is missing.

        Raises:
            StorageError: it is damaged, or cannot be written.
        """
        connection = connect(self._path, journal="DELETE")
        with storage_errors(self._path):
            connection.execute(_CREATE)
        return connection
