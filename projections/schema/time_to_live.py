"""Time to live: the days after which a memory that nobody confirms is stale, by type."""

from __future__ import annotations

#: Days until a memory is stale that nobody confirms, by type (`004`).
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
