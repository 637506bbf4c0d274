"""Time to live: defines the days until an unconfirmed memory becomes stale, by type."""

from __future__ import annotations

#: Days without confirmation until a memory becomes stale, by type (`004`).
TTL_DAYS = {
    "fact": 730,
    "event": 365,
    "preference": 730,
    "decision": 730,
    "problem": 365,
    "commit": 365,
    "relationship": 730,
    "task": 90,
    "procedure": 365,
}
