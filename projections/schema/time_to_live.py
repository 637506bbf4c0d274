"""Time to live: defines the days until an unconfirmed memory becomes stale, by type."""

from __future__ import annotations

from recollect.events.memory_kinds import MEMORY_KINDS

#: Days without confirmation until a memory becomes stale, by type (`004`).
TTL_DAYS = {
    "fact": 730,
    "event": 365,
    "decision": 730,
    "problem": 365,
    "commit": 365,
    "task": 90,
} | {kind.name: kind.ttl_days for kind in MEMORY_KINDS if kind.ttl_days is not None}
