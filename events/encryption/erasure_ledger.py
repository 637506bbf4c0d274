"""Erasure ledger: the requested erasures and their receipts, stored with the keys and apart from the log.

It does not name what was erased. HMACs stand for subjects, sessions and ids, so that an erasure can be repeated on a
log that was restored from an older backup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Any, Literal

import orjson
import uuid_utils
from msgspec import Struct

from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import now_us
from recollect.events.errors import ForeignFile

Scope = Literal["namespace", "subject", "session", "message", "retention"]


class LedgerErasure(Struct, frozen=True, kw_only=True):
    """A requested erasure."""

    id: str
    namespace: str
    scope: Scope
    #: HMACs of the subject, of the session, or of the ids of events; criteria of retention (`retention_criterion`).
    pseudonyms: tuple[bytes, ...]
    reason: str | None
    #: Who asked, such as the id of a token.
    requested_by: str | None
    #: Microseconds since 1970 UTC.
    requested_us: int
    is_complete: bool = False
    #: The id of the last event that records it; None when nothing was erased.
    record_id: str | None = None

    @property
    def owners(self) -> tuple[bytes, ...]:
        """Return the pseudonyms of the owners of keys whose events are refused from now on, and whose keys end."""
        return {"namespace": (b"",), "subject": self.pseudonyms}.get(self.scope, ())

    @property
    def cutoffs(self) -> dict[str, int]:
        """Return the time before which the events of each type are erased, by retention."""
        if self.scope != "retention":
            return {}
        pairs = (criterion.decode().partition("<") for criterion in self.pseudonyms)
        return {type: int(cutoff_us) for type, _, cutoff_us in pairs}


def requested_erasure(
    keys: KeyStore,
    namespace: str,
    scope: Scope,
    names: Collection[str] = (),
    *,
    reason: str | None = None,
    requested_by: str | None = None,
) -> LedgerErasure:
    """Return the erasure of a subject, a session or events by their names; of a namespace without any."""
    return LedgerErasure(
        id=str(uuid_utils.uuid7()),
        namespace=namespace,
        scope=scope,
        pseudonyms=tuple(pseudonym_of(keys, namespace, scope, name) for name in names),
        reason=reason,
        requested_by=requested_by,
        requested_us=now_us(),
    )


class ErasureLedger:
    """The erasures and receipts in a key store."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys

    def add(self, erasure: LedgerErasure) -> None:
        """Store a request durably: from now on the erasure is carried out, also after a kill."""
        with self._keys.transaction() as connection:
            connection.execute(
                "INSERT INTO erasures (id, namespace, kind, pseudonyms, reason, requested_by, requested_us) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    erasure.id,
                    erasure.namespace,
                    erasure.scope,
                    orjson.dumps([pseudonym.hex() for pseudonym in erasure.pseudonyms]).decode(),
                    erasure.reason,
                    erasure.requested_by,
                    erasure.requested_us,
                ),
            )

    def erasures(self) -> list[LedgerErasure]:
        """Return all erasures in the order of their requests; none when there is no key store yet."""
        if not self._keys.exists:
            return []
        with self._keys.transaction() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT id, namespace, kind, pseudonyms, reason, requested_by, requested_us, is_complete, record_id "
                "FROM erasures ORDER BY number"
            ).fetchall()
        try:
            return [
                LedgerErasure(
                    id=row[0],
                    namespace=row[1],
                    scope=row[2],
                    pseudonyms=tuple(bytes.fromhex(pseudonym) for pseudonym in orjson.loads(row[3])),
                    reason=row[4],
                    requested_by=row[5],
                    requested_us=row[6],
                    is_complete=bool(row[7]),
                    record_id=row[8],
                )
                for row in rows
            ]
        except ValueError as error:
            raise ForeignFile(f"{self._keys.path} is damaged ({error}); restore it from a copy") from error

    def complete(self, erasure: LedgerErasure, record_id: str | None, sign: Callable[[str | None], bytes]) -> bytes:
        """Store the receipt of an erasure, and return it.

        Parameters:
            record_id: the id of the last event that records it.
            sign: returns the signed receipt, given the sha256 of the receipt before it, in hex; None for the first.
        """
        with self._keys.transaction() as connection:
            last: tuple[Any, ...] | None = connection.execute(
                "SELECT content FROM receipts ORDER BY number DESC LIMIT 1"
            ).fetchone()
            receipt = sign(None if last is None else sha256(last[0].encode()).hexdigest())
            connection.execute(
                "INSERT INTO receipts (erasure_id, namespace, content) VALUES (?, ?, ?)",
                (erasure.id, erasure.namespace, receipt.decode()),
            )
            connection.execute(
                "UPDATE erasures SET is_complete = 1, record_id = ? WHERE id = ?", (record_id, erasure.id)
            )
        return receipt

    def forget_record(self, erasure: LedgerErasure) -> None:
        """Note that the log has no event of a completed erasure, and none that it would erase."""
        with self._keys.transaction() as connection:
            connection.execute("UPDATE erasures SET record_id = NULL WHERE id = ?", (erasure.id,))

    def receipts(self, namespace: str | None = None) -> list[bytes]:
        """Return the receipts in their order, of one namespace or of all."""
        if not self._keys.exists:
            return []
        with self._keys.transaction() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(
                "SELECT content FROM receipts WHERE ?1 IS NULL OR namespace = ?1 ORDER BY number", (namespace,)
            ).fetchall()
        return [content.encode() for (content,) in rows]


def pseudonym_of(keys: KeyStore, namespace: str, scope: Scope, name: str) -> bytes:
    """Return the HMAC that stands for a subject, a session or the id of an event; a criterion of retention as it is."""
    match scope:
        case "retention":
            return name.encode()
        case "subject":
            return keys.subject_pseudonym(namespace, name)
        case "session":
            return keys.pseudonym("session", namespace, name)
        case _:
            return keys.pseudonym("event", namespace, name)


def retention_criterion(type: str, cutoff_us: int) -> str:
    """Return the criterion of events of a type that were recorded before a time, in microseconds since 1970 UTC."""
    return f"{type}<{cutoff_us}"
