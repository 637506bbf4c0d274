"""Retention: erases the events that are over the limits of the operator's rules, by age or by number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from fnmatch import fnmatchcase

from recollect.events.backends.log import EventLog
from recollect.events.encryption.erasure_ledger import retention_criterion
from recollect.events.envelope import DAY_US
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.erasure.eraser import Eraser
from recollect.jobs.job_settings import RetentionRule

#: Events read at once.
_BATCH = 5_000


def retain(context: JobContext, namespace: str, now_us: int) -> int:
    """Erase the events of `namespace` that are over a limit at `now_us`; return the number of erasures, 0 or 1."""
    rules = [rule for rule in context.settings.retention.retention if fnmatchcase(namespace, rule.namespace)]
    if not rules or context.log.keys is None:
        return 0
    cutoffs = _cutoffs(context.log, namespace, rules, now_us)
    criteria = [retention_criterion(type, cutoff_us) for type, cutoff_us in sorted(cutoffs.items())]
    eraser = Eraser(context.log, context.read_models)
    if not criteria or not eraser.plan(namespace, "retention", criteria).versions:
        return 0
    eraser.erase(namespace, "retention", criteria, reason="retention", requested_by="retention")
    return 1


def _cutoffs(log: EventLog, namespace: str, rules: Iterable[RetentionRule], now_us: int) -> dict[str, int]:
    """Return the time before which events of each type are erased, for the types that have such events."""
    cutoffs: dict[str, int] = {}
    keep: dict[str, int] = {}
    for rule in rules:
        if rule.ttl_days is not None:
            cutoffs[rule.type] = max(cutoffs.get(rule.type, 0), now_us - rule.ttl_days * DAY_US)
        if rule.keep_last is not None:
            keep[rule.type] = min(keep.get(rule.type, rule.keep_last), rule.keep_last)
    for type, cutoff_us in _cutoffs_by_number(log, namespace, keep).items():
        cutoffs[type] = max(cutoffs.get(type, 0), cutoff_us)
    return cutoffs


def _cutoffs_by_number(log: EventLog, namespace: str, keep: dict[str, int]) -> dict[str, int]:
    """Return the time of recording of the oldest event to keep, by type; events of one batch share it and stay."""
    newest: dict[str, deque[int]] = {type: deque(maxlen=count) for type, count in keep.items()}
    last_us: dict[str, int] = {}
    after = 0
    while newest and (events := log.read_stored(namespace, after=after, limit=_BATCH)):
        for event in events:
            if event.type in newest:
                newest[event.type].append(event.recorded_at_us)
                last_us[event.type] = event.recorded_at_us
        after = events[-1].version
    # Where none is kept, everything up to the last one goes.
    return {type: times[0] if times else last_us[type] + 1 for type, times in newest.items() if type in last_us}
