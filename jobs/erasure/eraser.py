"""Eraser: carries out erasures: the log, the archive, the keys, everything derived on this machine, and the receipt.

A request is stored first. Each step can be repeated, so an erasure that was killed is completed by `resume`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from recollect.events.backends.log import EventLog
from recollect.events.encryption.erasure_ledger import ErasureLedger, LedgerErasure, Scope, requested_erasure
from recollect.events.encryption.key_store import DestroyedKey, KeyStore
from recollect.events.envelope import EventDraft, datetime_of, now_us, rfc3339
from recollect.events.errors import NotFound, NotSupported, VersionConflict
from recollect.events.integrity.receipt import signed
from recollect.events.limits import check_namespace
from recollect.events.validation import draft
from recollect.jobs.erasure.edit_transfer import store_edits
from recollect.jobs.erasure.erasure_plan import ErasurePlan, plan_erasure
from recollect.jobs.erasure.erasure_receipt import read_records, receipt_fields
from recollect.jobs.erasure.residue_scan import scan
from recollect.projections.read_models.purges import Target
from recollect.projections.read_models.read_models import ReadModels

#: Plans of one erasure: each was overtaken by an append, and the pause before the next one grows.
_PLANS_MAX = 100
#: Ranges of versions in one erasure event: 0.4 MB of JSON.
_RANGES_MAX = 20_000
_PURGED_ELSEWHERE: Target = {
    "store": "derived data",
    "method": "removed by another process of this machine, or another machine",
}


class Eraser:
    """Erases events of one data folder and its log.

    Parameters:
        later_texts: returns what the data folder has of a namespace that was written after its last erasure, and is
            searched for residue.

    Raises:
        NotSupported: the log was opened without a key store.
    """

    def __init__(
        self,
        log: EventLog,
        read_models: ReadModels,
        later_texts: Callable[[str], Iterable[bytes]] = lambda _: (),
    ) -> None:
        if log.keys is None:
            raise NotSupported("needs the log's key store; open the log with its keys", field="log")
        self._log = log
        self._keys: KeyStore = log.keys
        self._read_models = read_models
        self._later_texts = later_texts
        self._ledger = ErasureLedger(log.keys)
        #: Number of erasures that `resume` has completed or repeated.
        self.resumed = 0

    def plan(self, namespace: str, scope: Scope, names: Sequence[str] = ()) -> ErasurePlan:
        """Return what `erase` would erase now.

        Raises:
            NotFound: the namespace, the session or an event does not exist, or was erased before.
        """
        return self._plan(requested_erasure(self._keys, check_namespace(namespace), scope, names))

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
        erasure = requested_erasure(
            self._keys, check_namespace(namespace), scope, names, reason=reason, requested_by=requested_by
        )
        plan = self._plan(erasure)
        self._ledger.add(erasure)
        return orjson.loads(self._carry_out(erasure, plan) or b"{}")

    def resume(self) -> None:
        """Complete the erasures that were interrupted, and repeat those that the log has lost.

        A log loses erasures when it is restored from an older backup.
        """
        erasures = self._ledger.erasures()
        pending = [erasure for erasure in erasures if not erasure.is_complete]
        newest = {erasure.namespace: erasure for erasure in erasures if erasure.record_id is not None}
        rewound = {namespace for namespace, erasure in newest.items() if self._is_lost(erasure)}
        lost = [erasure for erasure in erasures if erasure.namespace in rewound and self._is_lost(erasure)]
        # Events whose keys were destroyed belong to erasures of subjects and namespaces, so these come first.
        lost.sort(key=lambda erasure: erasure.scope not in ("namespace", "subject"))
        self.resumed += sum(self._carry_out(erasure) is not None for erasure in [*lost, *pending])

    def receipts(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Return the receipts of a namespace, or all, in their order."""
        return [orjson.loads(receipt) for receipt in self._ledger.receipts(namespace)]

    def readmit(self, namespace: str, subject: str | None = None) -> bool:
        """Accept the events of an erased namespace or subject again; return whether it was erased."""
        return self._keys.readmit(check_namespace(namespace), subject)

    def _plan(self, erasure: LedgerErasure) -> ErasurePlan:
        """Return the plan of a request; raise `NotFound` when there is nothing that it could mean."""
        plan = plan_erasure(self._log, self._keys, erasure)
        if not plan.head:
            raise NotFound(f"{erasure.namespace!r} has no events", field="namespace")
        if not plan.ranges and erasure.scope in ("session", "message"):
            raise NotFound(f"the namespace has no such {erasure.scope}, or it was erased before", field=erasure.scope)
        return plan

    def _is_lost(self, erasure: LedgerErasure) -> bool:
        """Return whether the log does not have the event that records a completed erasure."""
        return erasure.record_id is not None and self._log.find(erasure.namespace, erasure.record_id) is None

    def _carry_out(self, erasure: LedgerErasure, plan: ErasurePlan | None = None) -> bytes | None:
        """Carry out an erasure from any step on; return its receipt; None when a repeated one had nothing to erase.

        Parameters:
            plan: what it erases, when that is known already.
        """
        for owner in erasure.owners:
            self._keys.block_pseudonym(erasure.namespace, owner)
        plan = self._erase_events(erasure, plan)
        records = read_records(self._log, erasure)
        if erasure.is_complete and not records:
            # The log is another one now, or was restored from before the erased events.
            self._ledger.forget_record(erasure)
            return None
        purged = self._purge(erasure.namespace)
        keys = self._destroy_keys(erasure)
        later_texts = self._later_texts(erasure.namespace)
        searched = scan(self._log, self._read_models.data, erasure, plan.windows, later_texts)
        fields = receipt_fields(self._log, erasure, plan, records, keys, [*purged, *searched])
        return self._ledger.complete(
            erasure,
            fields["log"]["record_id"],
            lambda previous: signed(
                self._keys, fields | {"prev_receipt_sha256": previous, "completed_at": rfc3339(now_us())}
            ),
        )

    def _erase_events(self, erasure: LedgerErasure, plan: ErasurePlan | None) -> ErasurePlan:
        """Erase the events in the log; return the plan that was carried out as a whole.

        One plan is enough. An event that was appended after it makes a transaction fail, and only then the log is read
        again: the event may be derived from erased ones. After the transaction no such event comes any longer, since
        jobs expect the version that they have read (`append_derived`).
        """
        for attempt in range(_PLANS_MAX):
            plan = plan or plan_erasure(self._log, self._keys, erasure)
            store_edits(self._keys, erasure.namespace, plan.edits)
            try:
                self._erase_parts(erasure, plan)
            except VersionConflict:
                plan = None
                time.sleep(min(0.5, 0.01 * attempt))
            else:
                return plan
        raise VersionConflict(erasure.namespace, 0, self._log.head(erasure.namespace).version)

    def _erase_parts(self, erasure: LedgerErasure, plan: ErasurePlan) -> None:
        """Erase the events of a plan, each part of them with the event that records it."""
        starts = range(0, len(plan.ranges), _RANGES_MAX)
        # The record of a part moves the head by one.
        for head, start in enumerate(starts, start=plan.head):
            ranges = plan.ranges[start : start + _RANGES_MAX]
            versions = [version for first, last in ranges for version in range(first, last + 1)]
            record = _record(erasure, ranges, head, None if len(starts) > 1 else plan.digest)
            self._log.erase(erasure.namespace, versions, record, expected_version=head)

    def _purge(self, namespace: str) -> Sequence[Target]:
        """Remove what was derived from erased events in the data folder; return what was removed."""
        purges = self._read_models.purges
        purges.follow(self._log.head(namespace))
        return purges.targets.pop(namespace, None) or [_PURGED_ELSEWHERE]

    def _destroy_keys(self, erasure: LedgerErasure) -> list[DestroyedKey]:
        """Destroy the keys of a subject, or every key of a namespace; return the destroyed ones."""
        owners = (None,) if erasure.scope == "namespace" else erasure.owners
        return [key for owner in owners for key in self._keys.destroy(erasure.namespace, owner)]


def _record(erasure: LedgerErasure, ranges: Sequence[tuple[int, int]], head: int, digest: str | None) -> EventDraft:
    """Return the event that records a part of an erasure. `head` is in its id: each part has a record of its own."""
    is_named = erasure.pseudonyms and erasure.scope != "retention"
    return draft(
        {
            "id": f"erasure:{erasure.id}:{head}",
            "type": "namespace.erased" if erasure.scope == "namespace" else "events.erased",
            "actor": "erasure",
            "payload": {
                "erasure_id": erasure.id,
                "scope": erasure.scope,
                "versions": ranges,
                "requested_at": datetime_of(erasure.requested_us),
                "digest": digest,
                "reason": erasure.reason or None,
                "pseudonym": erasure.pseudonyms[0].hex() if is_named else None,
            },
        }
    )
