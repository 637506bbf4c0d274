"""Eraser: carries out erasures: the log, the archive, the keys, everything derived on this machine, and the receipt.

A request is stored first. Each step can be repeated, so an erasure that was killed is completed by `resume`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version as package_version
from typing import Any

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.encryption.erasure_ledger import Erasure, ErasureLedger, Scope, pseudonym_of, retention_cutoffs
from recollect.events.encryption.key_store import DestroyedKey, KeyStore
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.envelope import datetime_of, now_us, rfc3339
from recollect.events.errors import NotFound, NotSupported, VersionConflict
from recollect.events.integrity.receipt import FORMAT, EventDigest, read_ranges, signed
from recollect.events.limits import check_namespace
from recollect.events.validation import draft
from recollect.jobs.erasure.care_transfer import store_care
from recollect.jobs.erasure.erasure_plan import ErasurePlan, plan_erasure
from recollect.jobs.erasure.residue_scan import plan_windows, scan
from recollect.projections.read_models.read_models import ReadModels

#: Plans of one erasure: each was overtaken by an append, and the pause before the next one grows.
_PLANS_MAX = 100
#: Ranges of versions in one erasure event: 0.4 MB of JSON.
_RANGES_MAX = 20_000
_CARRIED_ON_BY = "another process of this machine, or another machine"

#: What an erasure does not reach, in the words of the receipt.
_EXCLUSIONS: tuple[str, ...] = (
    "copies outside of this installation: backups and exports made before, replicas, snapshots of file systems",
    "blocks that the disk or the file system has not overwritten yet; encrypt the disk",
    "versions, times of recording and types of other events, and ids of erased events in the headers of other events",
    "words about or of the subject in the messages of other people; search for them and erase those messages",
    "memory of processes and of language model providers that have read the events",
)
_POSTGRES_EXCLUSION = (
    "dead rows and the WAL of PostgreSQL until the server reuses them: payloads there are ciphertext, headers are not; "
    "files of the server are not searched"
)
_SHARED_KEY_EXCLUSION = "ciphertext in older backups of the log stays readable with the key of the subject or namespace"


@dataclass(slots=True)
class _Progress:
    """What one erasure has done so far."""

    versions: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    events: int = 0
    derived: int = 0
    by_type: dict[str, int] = field(default_factory=dict[str, int])
    record_id: str | None = None
    #: Windows of the erased texts, for the residue scan.
    windows: set[bytes] = field(default_factory=set[bytes])
    keys: list[DestroyedKey] = field(default_factory=list[DestroyedKey])


class Eraser:
    """Erases events of one data folder and its log.

    Raises:
        NotSupported: the log was opened without a key store.
    """

    def __init__(self, log: EventLog, read_models: ReadModels) -> None:
        if log.keys is None:
            raise NotSupported("needs the log's key store; open the log with its keys", field="log")
        self._log = log
        self._keys: KeyStore = log.keys
        self._read_models = read_models
        self._cipher = PayloadCipher(log.keys)
        self._ledger = ErasureLedger(log.keys)
        #: Number of erasures that `resume` has completed or repeated.
        self.resumed = 0

    def plan(self, namespace: str, scope: Scope, names: Sequence[str] = ()) -> ErasurePlan:
        """Return what `erase` would erase now.

        Raises:
            NotFound: the namespace, the session or an event does not exist, or was erased before.
        """
        pseudonyms = [pseudonym_of(self._keys, check_namespace(namespace), scope, name) for name in names]
        plan = plan_erasure(self._log, namespace, scope, pseudonyms)
        if not plan.head:
            raise NotFound(f"{namespace!r} has no events", field="namespace")
        if not plan.versions and scope in ("session", "message"):
            raise NotFound(f"the namespace has no such {scope}, or it was erased before", field=scope)
        return plan

    def erase(
        self,
        namespace: str,
        scope: Scope,
        names: Sequence[str] = (),
        *,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> dict[str, Any]:
        """Erase, and return the receipt.

        Parameters:
            names: the subject, the session, or the ids of events; none for a namespace.
            reason: stored unencrypted in the log and in the receipt; it must not name anybody.
            requested_by: who asked, such as the id of a token.

        Raises:
            NotFound: as `plan`. StorageError: the disk failed; the erasure is completed by `resume`.
        """
        plan = self.plan(namespace, scope, names)
        erasure = self._ledger.add(namespace, scope, names, reason=reason, requested_by=requested_by)
        return orjson.loads(self._carry_out(erasure, plan) or b"{}")

    def resume(self) -> list[dict[str, Any]]:
        """Complete the erasures that were interrupted, and repeat those that the log has lost; return their receipts.

        A log loses erasures when it is restored from an older backup.
        """
        erasures = self._ledger.erasures()
        pending = [erasure for erasure in erasures if not erasure.is_complete]
        newest = {erasure.namespace: erasure for erasure in erasures if erasure.record_id is not None}
        rewound = {namespace for namespace, erasure in newest.items() if self._is_lost(erasure)}
        lost = [erasure for erasure in erasures if erasure.namespace in rewound and self._is_lost(erasure)]
        # Events whose keys were destroyed belong to erasures of subjects and namespaces, so these come first.
        lost.sort(key=lambda erasure: erasure.scope not in ("namespace", "subject"))
        receipts = [self._carry_out(erasure) for erasure in [*lost, *pending]]
        self.resumed += sum(receipt is not None for receipt in receipts)
        return [orjson.loads(receipt) for receipt in receipts if receipt is not None]

    def receipts(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Return the receipts of a namespace, or all, in their order."""
        return [orjson.loads(receipt) for receipt in self._ledger.receipts(namespace)]

    def readmit(self, namespace: str, subject: str | None = None) -> bool:
        """Accept the events of an erased namespace or subject again; return whether it was erased."""
        return self._keys.readmit(check_namespace(namespace), subject)

    def _is_lost(self, erasure: Erasure) -> bool:
        """Return whether the log does not have the event that records a completed erasure."""
        return erasure.record_id is not None and self._log.find(erasure.namespace, erasure.record_id) is None

    def _carry_out(self, erasure: Erasure, plan: ErasurePlan | None = None) -> bytes | None:
        """Carry out an erasure from any step on; return its receipt; None when a repeated one had nothing to erase.

        Parameters:
            plan: what it erases, when that is known already.
        """
        namespace, scope = erasure.namespace, erasure.scope
        owners = {"namespace": (b"",), "subject": erasure.pseudonyms}.get(scope, ())
        for pseudonym in owners:
            self._keys.block_pseudonym(namespace, pseudonym)
        progress = _Progress()
        self._erase_events(erasure, plan, progress)
        if erasure.is_complete and not progress.events:
            # The log is another one now, or was restored from before the erased events.
            self._ledger.forget_record(erasure)
            return None
        self._read_models.purges.follow(self._log.head(namespace))
        for pseudonym in owners:
            progress.keys += self._keys.destroy(namespace, None if scope == "namespace" else pseudonym)
        fields = self._receipt_fields(erasure, progress)
        return self._ledger.complete(
            erasure,
            progress.record_id,
            lambda previous: signed(
                self._keys, fields | {"prev_receipt_sha256": previous, "completed_at": rfc3339(now_us())}
            ),
        )

    def _erase_events(self, erasure: Erasure, plan: ErasurePlan | None, progress: _Progress) -> None:
        """Erase the events in the log, with one event for each part of them that records it.

        One plan is enough. An event that was appended after it makes the transaction fail, and only then, or for
        another part, the log is read again: the event may be derived from erased ones. After the transaction no such
        event comes any longer, since jobs expect the version that they have read (`append_derived`).
        """
        namespace = erasure.namespace
        for attempt in range(_PLANS_MAX):
            plan = plan or plan_erasure(self._log, namespace, erasure.scope, erasure.pseudonyms)
            ranges = plan.ranges()
            part = ranges[:_RANGES_MAX]
            if part and not self._erase_part(erasure, plan, part, progress):
                time.sleep(min(0.5, 0.01 * attempt))
            elif len(part) == len(ranges):
                self._add_recorded(erasure, progress)
                return
            plan = None
        raise VersionConflict(namespace, 0, self._log.head(namespace).version)

    def _erase_part(
        self, erasure: Erasure, plan: ErasurePlan, ranges: Sequence[tuple[int, int]], progress: _Progress
    ) -> bool:
        """Erase the first ranges of a plan, and record that; return False when the head has moved since the plan."""
        versions = [version for version in plan.versions if version <= ranges[-1][1]]
        record = _record(erasure, ranges, plan)
        windows = plan_windows(self._cipher, plan)
        store_care(self._keys, erasure.namespace, plan.care)
        try:
            self._log.erase(erasure.namespace, versions, record, expected_version=plan.head)
        except VersionConflict:
            return False
        progress.windows = progress.windows or windows
        progress.derived += plan.derived
        for name, count in plan.by_type.items():
            progress.by_type[name] = progress.by_type.get(name, 0) + count
        progress.record_id = record.id
        return True

    def _add_recorded(self, erasure: Erasure, progress: _Progress) -> None:
        """Add the versions that the log records for this erasure, also those of an earlier attempt."""
        for version in self._log.erasures(erasure.namespace):
            [event] = self._log.read_stored(erasure.namespace, after=version - 1, limit=1)
            payload = event.data()
            if payload.get("erasure_id") == erasure.id:
                progress.versions += [(first, last) for first, last in payload["versions"]]
                progress.record_id = event.id
        progress.events = sum(last - first + 1 for first, last in progress.versions)

    def _receipt_fields(self, erasure: Erasure, progress: _Progress) -> dict[str, Any]:
        """Return the fields of the receipt except those of its chain."""
        head = self._log.head(erasure.namespace)
        targets = self._read_models.purges.targets.pop(erasure.namespace, None)
        return {
            "v": FORMAT,
            "receipt_id": f"{erasure.id}:{head.version}",
            "erasure_id": erasure.id,
            "namespace": erasure.namespace,
            "scope": _scope_fields(erasure),
            "reason": erasure.reason,
            "requested_by": erasure.requested_by,
            "requested_at": rfc3339(erasure.requested_us),
            "log": {
                "log_id": self._log.log_id,
                "head": head.version,
                "hash": head.hash.hex(),
                "versions": progress.versions,
                "count": progress.events,
                "digest": self._digest(erasure.namespace, progress.versions),
                "record_id": progress.record_id,
            },
            "events": {"derived": progress.derived, "by_type": dict(sorted(progress.by_type.items()))},
            "keys": [
                {
                    "kid": key.kid.hex(),
                    "alg": "AES-256-GCM",
                    "wrapped_sha256": key.wrapped_sha256.hex(),
                    "destroyed_at": rfc3339(key.destroyed_us),
                }
                for key in progress.keys
            ],
            "targets": [
                {"store": "log", "method": "content, ids and headers overwritten; leaves and hashes stay"},
                *(targets or [{"store": "derived data", "method": f"removed by {_CARRIED_ON_BY}"}]),
                *scan(self._log, self._read_models.data, erasure, progress.windows),
            ],
            "exclusions": self._exclusions(erasure, progress),
            "software": {"recollect": package_version("recollect")},
        }

    def _digest(self, namespace: str, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the digest over the versions and leaves of all erased events."""
        digest = EventDigest()
        for event in read_ranges(self._log, namespace, ranges):
            digest.add(event)
        return digest.hex

    def _exclusions(self, erasure: Erasure, progress: _Progress) -> list[str]:
        """Return what the erasure does not reach."""
        exclusions = [*_EXCLUSIONS]
        if self._log.archive is None:
            exclusions.append(_POSTGRES_EXCLUSION)
        if erasure.scope in ("session", "message") or (erasure.scope == "subject" and progress.derived):
            exclusions.append(_SHARED_KEY_EXCLUSION)
        return exclusions


def _scope_fields(erasure: Erasure) -> dict[str, Any]:
    """Return the scope of an erasure for its receipt: HMACs of names, or the criteria of retention."""
    if erasure.scope == "retention":
        cutoffs = retention_cutoffs(erasure.pseudonyms)
        return {"kind": erasure.scope, "recorded_before": {type: rfc3339(us) for type, us in cutoffs.items()}}
    return {"kind": erasure.scope, "pseudonyms": [name.hex() for name in erasure.pseudonyms]}


def _record(erasure: Erasure, ranges: Sequence[tuple[int, int]], plan: ErasurePlan) -> Any:
    """Return the event that records a part of an erasure."""
    whole = erasure.scope == "namespace"
    payload: dict[str, Any] = {
        "erasure_id": erasure.id,
        "scope": erasure.scope,
        "versions": ranges,
        "requested_at": datetime_of(erasure.requested_us),
    }
    if len(ranges) < _RANGES_MAX:
        payload["digest"] = plan.digest.hex
    if erasure.reason:
        payload["reason"] = erasure.reason
    if erasure.pseudonyms and erasure.scope != "retention":
        payload["pseudonym"] = erasure.pseudonyms[0].hex()
    return draft(
        {
            # The head is part of the id: each part of an erasure has a record of its own.
            "id": f"erasure:{erasure.id}:{plan.head}",
            "type": "namespace.erased" if whole else "events.erased",
            "actor": "erasure",
            "payload": payload,
        }
    )
