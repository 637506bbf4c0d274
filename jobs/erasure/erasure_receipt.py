"""Erasure receipt: the fields of the receipt of an erasure that was carried out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version as package_version
from typing import Any

from recollect.events.backends.log import EventLog
from recollect.events.encryption.erasure_ledger import LedgerErasure
from recollect.events.encryption.key_store import DestroyedKey
from recollect.events.envelope import RecordedEvent, rfc3339
from recollect.events.integrity.receipt import FORMAT, EventDigest, read_ranges
from recollect.jobs.erasure.erasure_plan import ErasurePlan
from recollect.projections.read_models.purges import Target

#: What an erasure does not reach, in the words of the receipt.
_EXCLUSIONS: tuple[str, ...] = (
    "what was removed or rewritten and not searched: compressed segments of the archive, the words of keyword indexes, "
    "vectors and token codes, and texts under 24 bytes",
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
_LOG_TARGET: Target = {"store": "log", "method": "content, ids and headers overwritten; leaves and hashes stay"}


def read_records(log: EventLog, erasure: LedgerErasure) -> list[RecordedEvent]:
    """Return the events that record an erasure, also those of an earlier attempt."""
    namespace = erasure.namespace
    events = [log.read_stored(namespace, after=version - 1, limit=1)[0] for version in log.erasures(namespace)]
    return [event for event in events if event.data().get("erasure_id") == erasure.id]


def receipt_fields(
    log: EventLog,
    erasure: LedgerErasure,
    plan: ErasurePlan,
    records: Sequence[RecordedEvent],
    keys: Sequence[DestroyedKey],
    targets: Sequence[Target],
) -> dict[str, Any]:
    """Return the fields of the receipt except those of its chain.

    Parameters:
        plan: the last one, which was carried out as a whole.
        records: the events that record all attempts.
        targets: what was done to the stores other than the log.
    """
    head = log.head(erasure.namespace)
    ranges: list[tuple[int, int]] = [(first, last) for event in records for first, last in event.data()["versions"]]
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
            "log_id": log.log_id,
            "head": head.version,
            "hash": head.hash.hex(),
            "versions": ranges,
            "count": sum(last - first + 1 for first, last in ranges),
            "digest": EventDigest(read_ranges(log, erasure.namespace, ranges)).hex,
            "record_id": records[-1].id if records else None,
        },
        "events": plan.counts(),
        "keys": [
            {
                "kid": key.kid.hex(),
                "alg": "AES-256-GCM",
                "wrapped_sha256": key.wrapped_sha256.hex(),
                "destroyed_at": rfc3339(key.destroyed_us),
            }
            for key in keys
        ],
        "targets": [_LOG_TARGET, *targets],
        "exclusions": _exclusions(log, erasure, plan),
        "software": {"recollect": package_version("recollect")},
    }


def _scope_fields(erasure: LedgerErasure) -> dict[str, Any]:
    """Return the scope of an erasure: HMACs of names, or the criteria of retention."""
    if erasure.scope == "retention":
        return {"kind": erasure.scope, "recorded_before": {type: rfc3339(us) for type, us in erasure.cutoffs.items()}}
    return {"kind": erasure.scope, "pseudonyms": [name.hex() for name in erasure.pseudonyms]}


def _exclusions(log: EventLog, erasure: LedgerErasure, plan: ErasurePlan) -> list[str]:
    """Return what the erasure does not reach."""
    exclusions = [*_EXCLUSIONS]
    if log.archive is None:
        exclusions.append(_POSTGRES_EXCLUSION)
    if erasure.scope in ("session", "message") or (erasure.scope == "subject" and plan.derived):
        exclusions.append(_SHARED_KEY_EXCLUSION)
    return exclusions
