"""Key store: one data key for each subject of a namespace, in the file keys.db.

The master key wraps a key for each namespace and the secrets of the store; the namespace's key wraps its data keys.
Destroying a key deletes its row's bytes from the file. A tombstone stays, so that no new key takes its place.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from recollect.events.encryption.master_key import KEY_BYTES, KeyOptions, LocalMasterKey, MasterKey, unwrap, wrap
from recollect.events.envelope import now_us
from recollect.events.errors import Erased, KeyMissing
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.storage.database import connect, storage_errors

#: The file of the key store.
KEYS_NAME = "keys.db"
#: Bytes of a key's id. Random, so ids of two stores never collide.
KID_BYTES = 16
#: Bytes of the HMAC that stands for the name of a subject or for an erased id.
PSEUDONYM_BYTES = 16
#: What the ids of erased events begin with.
ERASED_ID_PREFIX = "erased:"
#: Unwrapped keys in memory: about 0.5 kB each.
CIPHERS_MAX = 20_000

#: (namespace, name of the subject); None for the namespace itself.
Owner = tuple[str, str | None]
Row = tuple[Any, ...]


class DestroyedKey(NamedTuple):
    """A destroyed data key, as a receipt names it."""

    kid: bytes
    #: sha256 of the wrapped key, to find it in a copy of the key store.
    wrapped_sha256: bytes
    destroyed_us: int


class _Secrets(NamedTuple):
    """The secrets of the store."""

    pepper: bytes
    signing_key: Ed25519PrivateKey


class KeyStore:
    """The keys in ``<folder>/keys.db``, which is created by the first key. Safe to use from many threads and processes.

    Parameters:
        folder: the folder of the file.
        master: the master key; None stores the namespaces' keys as they are, protected by the mode of the file alone.
    """

    def __init__(self, folder: Path, master: MasterKey | None = None) -> None:
        self.path = folder / KEYS_NAME
        self._master = master
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._data_version = -1
        self._ciphers: BoundedCache[bytes, AESGCM] = BoundedCache(CIPHERS_MAX)
        self._kids: dict[Owner, bytes] = {}
        self._tombstones: set[tuple[str, bytes]] = set()
        #: Grows whenever the cached keys are dropped; until then, keys that were returned are valid.
        self.generation = 0

    @property
    def exists(self) -> bool:
        """Return whether the store has any key; a new one has none, and no erasures."""
        return self._connection is not None or self.path.exists()

    def refresh(self) -> None:
        """Drop the cached keys when another process has changed the file: a destroyed key must not serve any longer."""
        if not self.exists:
            return
        try:
            with self._lock:
                version = self._open().pragma("data_version")
                if version != self._data_version:
                    self._data_version = version
                    self._forget_cached()
        except (OSError, apsw.Error) as error:
            # Entering the block for each append and each read would take 2 µs.
            with storage_errors(self.path):
                raise error

    def prepare(self, owners: Iterable[Owner]) -> dict[Owner, bytes]:
        """Return the id of the key of each owner; create the missing keys, durably, in one transaction.

        An erased owner gets no key and is left out.
        """
        self.refresh()
        kids = self._kids
        folded = {owner: (owner[0], _folded(owner[1])) for owner in owners}
        missing = [owner for owner in set(folded.values()) - kids.keys() if not self._is_blocked(*owner)]
        if missing:
            with self.transaction() as connection:
                stored = {
                    owner: self._stored_kid(connection, owner) or self._new_key(connection, owner) for owner in missing
                }
            # Only now: an event that is encrypted with a key that is not on disk could never be read.
            kids |= stored
        return {owner: kids[name] for owner, name in folded.items() if name in kids and not self._is_blocked(*name)}

    @property
    def has_erasures(self) -> bool:
        """Return whether the events of a namespace or of a subject are refused."""
        return bool(self._tombstones)

    def check_not_erased(self, namespace: str, subject: str | None) -> None:
        """Raise `Erased` when the namespace or its subject was erased."""
        if not self._tombstones:
            return
        folded = _folded(subject)
        if self._is_erased(namespace, None):
            raise Erased(
                f"namespace {namespace!r} was erased, so its events are refused; use another namespace, or admit it "
                "again with `recollect readmit`"
            )
        if folded is not None and self._is_erased(namespace, folded):
            raise Erased(
                f"the subject of this event was erased from namespace {namespace!r}, so its events are refused; admit "
                "it again with `recollect readmit`"
            )

    def cipher(self, kid: bytes) -> AESGCM:
        """Return the cipher of a data key.

        Raises:
            Erased: the key was destroyed. KeyMissing: the key is not in this store, or the master key is missing.
        """
        cipher = self._ciphers.get(kid)
        if cipher is None:
            cipher = AESGCM(self._data_key(kid))
            self._ciphers.put(kid, cipher)
        return cipher

    def pseudonym(self, kind: str, namespace: str, name: str) -> bytes:
        """Return the HMAC that stands for `name`: without the key store, it cannot be compared with a guess."""
        message = "\n".join((kind, namespace, name)).encode(errors="surrogatepass")
        return hmac.digest(self._secrets.pepper, message, "sha256")[:PSEUDONYM_BYTES]

    def subject_pseudonym(self, namespace: str, subject: str | None) -> bytes:
        """Return the HMAC that stands for a subject, independent of letter case and spaces; empty for None."""
        folded = _folded(subject)
        return b"" if folded is None else self.pseudonym("subject", namespace, folded)

    def erased_id(self, namespace: str, event_id: str) -> str:
        """Return the id under which an erased event stays known."""
        return f"{ERASED_ID_PREFIX}{self.pseudonym('event', namespace, event_id).hex()}"

    @property
    def public_key(self) -> bytes:
        """Return the key that verifies receipts."""
        return self._secrets.signing_key.public_key().public_bytes_raw()

    @property
    def signing_key(self) -> Ed25519PrivateKey:
        """Return the key that signs receipts."""
        return self._secrets.signing_key

    def block(self, namespace: str, subject: str | None) -> None:
        """Refuse the events of an owner from now on; its keys still serve until `destroy`."""
        self.block_pseudonym(namespace, self.subject_pseudonym(namespace, subject))

    def block_pseudonym(self, namespace: str, pseudonym: bytes) -> None:
        """Refuse the events of an owner, given its pseudonym, from now on."""
        with self.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?)", (namespace, pseudonym, now_us()))
        self._forget_cached()

    def readmit(self, namespace: str, subject: str | None) -> bool:
        """Accept the events of an erased owner again, with a new key; return whether it was erased."""
        pseudonym = self.subject_pseudonym(namespace, subject)
        with self.transaction() as connection:
            connection.execute("DELETE FROM tombstones WHERE namespace = ? AND subject = ?", (namespace, pseudonym))
            changed = connection.changes() > 0
        self._forget_cached()
        return changed

    def destroy(self, namespace: str, subject: bytes | None) -> list[DestroyedKey]:
        """Destroy the keys of a subject, given its pseudonym, or all keys of a namespace; return all destroyed ones.

        Parameters:
            subject: the pseudonym; None for every key of the namespace, with the key that wraps them.
        """
        condition = "namespace = ?1 AND (?2 IS NULL OR subject = ?2)"
        with self.transaction() as connection:
            connection.execute(
                f"UPDATE data_keys SET wrapped = NULL, destroyed_us = ?3 WHERE {condition} AND wrapped IS NOT NULL",
                (namespace, subject, now_us()),
            )
            if subject is None:
                connection.execute("DELETE FROM namespace_keys WHERE namespace = ?", (namespace,))
            rows: list[Row] = connection.execute(
                f"SELECT kid, wrapped_sha256, destroyed_us FROM data_keys WHERE {condition} AND wrapped IS NULL",
                (namespace, subject),
            ).fetchall()
        self._forget_cached()
        return [DestroyedKey(*row) for row in rows]

    @contextmanager
    def transaction(self) -> Generator[apsw.Connection]:
        """Run the block as one durable transaction on the file."""
        with self._lock, storage_errors(self.path):
            connection = self._open()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file and drop the keys in memory."""
        with self._lock:
            self._forget_cached()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> apsw.Connection:
        """Return the connection; create the file, readable by its owner alone, when it is missing."""
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = connect(self.path, synchronous="EXTRA", journal="DELETE")
            try:
                connection.execute(files(__package__).joinpath("key_store.sql").read_text(encoding="utf-8"))
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._wrap_plain_keys()
            self._read_tombstones()
        return self._connection

    @cached_property
    def _secrets(self) -> _Secrets:
        """Return the secrets; the first call of a new store generates them."""
        with self.transaction() as connection:
            row: Row | None = connection.execute("SELECT pepper, signing_key FROM secrets").fetchone()
            if row is None:
                signing_key = Ed25519PrivateKey.generate()
                pepper = os.urandom(KEY_BYTES)
                connection.execute(
                    "INSERT INTO secrets VALUES (?, ?, ?)",
                    (
                        wrap(self._master, pepper, b"pepper"),
                        wrap(self._master, signing_key.private_bytes_raw(), b"signing key"),
                        signing_key.public_key().public_bytes_raw(),
                    ),
                )
                return _Secrets(pepper, signing_key)
        return _Secrets(
            unwrap(self._master, row[0], b"pepper"),
            Ed25519PrivateKey.from_private_bytes(unwrap(self._master, row[1], b"signing key")),
        )

    def _wrap_plain_keys(self) -> None:
        """Wrap the keys that were stored before a master key was set."""
        if self._master is None:
            return
        with self.transaction() as connection:
            for table, name, column in (
                ("namespace_keys", "namespace", "wrapped"),
                ("secrets", "'pepper'", "pepper"),
                ("secrets", "'signing key'", "signing_key"),
            ):
                rows: list[Row] = connection.execute(
                    f"SELECT {name}, {column} FROM {table} WHERE substr({column}, 1, 1) = x'00'"
                ).fetchall()
                for label, plain in rows:
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? WHERE {name} = ?",
                        (wrap(self._master, plain[1:], str(label).encode()), label),
                    )

    def _stored_kid(self, connection: apsw.Connection, owner: Owner) -> bytes | None:
        """Return the id of the key that the owner has, or None."""
        pseudonym = self.subject_pseudonym(*owner)
        row: Row | None = connection.execute(
            "SELECT kid FROM data_keys WHERE namespace = ? AND subject = ? AND wrapped IS NOT NULL",
            (owner[0], pseudonym),
        ).fetchone()
        return None if row is None else row[0]

    def _new_key(self, connection: apsw.Connection, owner: Owner) -> bytes:
        """Create a data key for the owner and return its id."""
        kid, key = os.urandom(KID_BYTES), os.urandom(KEY_BYTES)
        wrapped = self._namespace_key(connection, owner[0]).wrap(key, kid)
        connection.execute(
            "INSERT INTO data_keys VALUES (?, ?, ?, ?, ?, ?, NULL)",
            (kid, owner[0], self.subject_pseudonym(*owner), wrapped, sha256(wrapped).digest(), now_us()),
        )
        return kid

    def _namespace_key(self, connection: apsw.Connection, namespace: str) -> LocalMasterKey:
        """Return the key that wraps the data keys of a namespace; create it when it is missing."""
        row: Row | None = connection.execute(
            "SELECT wrapped FROM namespace_keys WHERE namespace = ?", (namespace,)
        ).fetchone()
        if row is not None:
            return LocalMasterKey(unwrap(self._master, row[0], namespace.encode()))
        key = os.urandom(KEY_BYTES)
        connection.execute(
            "INSERT INTO namespace_keys VALUES (?, ?)", (namespace, wrap(self._master, key, namespace.encode()))
        )
        return LocalMasterKey(key)

    def _data_key(self, kid: bytes) -> bytes:
        """Return the bytes of a data key."""
        row: Row | None = None
        if self.path.exists():
            with self.transaction() as connection:
                row = connection.execute("SELECT namespace, wrapped FROM data_keys WHERE kid = ?", (kid,)).fetchone()
                if row is not None and row[1] is not None:
                    try:
                        return self._namespace_key(connection, row[0]).unwrap(row[1], kid)
                    except InvalidTag as error:
                        raise KeyMissing(f"a key in {self.path} is damaged; restore that file from a backup") from error
        if row is None:
            raise KeyMissing(
                f"{self.path} does not have the key of an event; restore that file, or name its folder with "
                "RECOLLECT_KEYS"
            )
        raise Erased(f"the key of an event of namespace {row[0]!r} was destroyed by an erasure")

    def _is_erased(self, namespace: str, subject: str | None) -> bool:
        return bool(self._tombstones) and (namespace, self.subject_pseudonym(namespace, subject)) in self._tombstones

    def _is_blocked(self, namespace: str, subject: str | None) -> bool:
        """Return whether a subject or its namespace was erased."""
        return self._is_erased(namespace, None) or (subject is not None and self._is_erased(namespace, subject))

    def _read_tombstones(self) -> None:
        assert self._connection is not None
        rows: list[Row] = self._connection.execute("SELECT namespace, subject FROM tombstones").fetchall()
        self._tombstones = {(namespace, subject) for namespace, subject in rows}

    def _forget_cached(self) -> None:
        """Drop everything that the file may contradict."""
        with self._lock:
            self.generation += 1
            self._ciphers.clear()
            self._kids = {}
            if self._connection is not None:
                self._read_tombstones()


def open_key_store(data: Path, options: KeyOptions) -> KeyStore:
    """Return the key store of a data folder.

    Raises:
        InvalidInput: the master key is not valid.
    """
    return KeyStore(options.folder or data, options.master())


def _folded(subject: str | None) -> str | None:
    """Return a subject's name without differences in letter case and spaces; None for an empty one."""
    return None if subject is None else " ".join(subject.split()).casefold() or None
