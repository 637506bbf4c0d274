"""Retention: erases the events that are over the limits of the operator's rules, by age or by number.

It looks at the headers of stored events and decrypts none. A namespace is not looked at again until it has new events
or an event of it comes of age.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import chain

from msgspec import Struct, field

from recollect.events.backends.log import each_page
from recollect.events.encryption.erasure_ledger import retention_criterion
from recollect.events.envelope import DAY_US, Head, RecordedEvent
from recollect.jobs.derivation.job_context import JobContext, RetentionLook
from recollect.jobs.erasure.eraser import Eraser
from recollect.jobs.job_settings import RetentionRule

#: Events read at once.
_BATCH = 5_000


def retain(context: JobContext, namespace: str, now_us: int) -> int:
    """Erase the events of `namespace` that are over a limit at `now_us`; return the number of erasures, 0 or 1."""
    rules = _rules(context, namespace)
    if not rules or context.log.keys is None:
        return 0
    head = context.log.head(namespace)
    look = context.retention_looks.get(namespace)
    if look is not None and look.version == head.version and (look.due_us is None or now_us <= look.due_us):
        return 0
    limits = _Limits.of(rules)
    for event in chain.from_iterable(each_page(context.log.read_stored, namespace, limit=_BATCH)):
        limits.add(event)
    cutoffs = limits.cutoffs(now_us)
    if not cutoffs:
        context.retention_looks.put(namespace, RetentionLook(version=limits.version, due_us=limits.due_us()))
        return 0
    criteria = [retention_criterion(type, cutoff_us) for type, cutoff_us in sorted(cutoffs.items())]
    eraser = Eraser(context.log, context.read_models)
    eraser.erase(namespace, "retention", criteria, reason="retention", requested_by="retention")
    return 1


def is_retained(context: JobContext, head: Head) -> bool:
    """Return whether a rule of retention fits a namespace."""
    return context.log.keys is not None and bool(_rules(context, head.namespace))


def retention_due_us(context: JobContext, namespace: str, at_us: int) -> int | None:
    """Return when the next event of `namespace` is over its time to live, in microseconds; None: no event ever is."""
    look = context.retention_looks.get(namespace)
    # After an erasure the namespace is looked at again.
    return at_us if look is None else look.due_us


def _rules(context: JobContext, namespace: str) -> list[RetentionRule]:
    return [rule for rule in context.settings.retention.retention if fnmatchcase(namespace, rule.namespace)]


class _Limits(Struct):
    """The limits of a namespace by type, and the times of recording of the events under them."""

    #: The shortest time to live, in microseconds.
    ttl_us: dict[str, int] = field(default_factory=dict[str, int])
    #: The times of the newest events, as many as are kept.
    newest_us: dict[str, deque[int]] = field(default_factory=dict[str, deque[int]])
    oldest_us: dict[str, int] = field(default_factory=dict[str, int])
    last_us: dict[str, int] = field(default_factory=dict[str, int])
    #: The version of the last event.
    version: int = 0

    @classmethod
    def of(cls, rules: Iterable[RetentionRule]) -> _Limits:
        """Return the limits of rules: of two for one type, the stricter one holds."""
        limits = cls()
        for rule in rules:
            if rule.ttl_days is not None:
                ttl_us = rule.ttl_days * DAY_US
                limits.ttl_us[rule.type] = min(limits.ttl_us.get(rule.type, ttl_us), ttl_us)
            if rule.keep_last is not None:
                earlier = limits.newest_us.get(rule.type)
                kept = rule.keep_last if earlier is None else min(earlier.maxlen or 0, rule.keep_last)
                limits.newest_us[rule.type] = deque(maxlen=kept)
        return limits

    def add(self, event: RecordedEvent) -> None:
        """Count an event, in the order of versions; erased events have a type of their own."""
        self.version = event.version
        if event.type in self.ttl_us or event.type in self.newest_us:
            self.oldest_us.setdefault(event.type, event.recorded_at_us)
            self.last_us[event.type] = event.recorded_at_us
            if event.type in self.newest_us:
                self.newest_us[event.type].append(event.recorded_at_us)

    def cutoffs(self, now_us: int) -> dict[str, int]:
        """Return the time before which the events of each type are erased, for the types that have such events."""
        cutoffs = {type: now_us - ttl_us for type, ttl_us in self.ttl_us.items()}
        for type, times_us in self.newest_us.items():
            # Events of one batch share their time and stay. Where none is kept, everything up to the last one goes.
            cutoff_us = times_us[0] if times_us else self.last_us.get(type, 0) + 1
            cutoffs[type] = max(cutoffs.get(type, 0), cutoff_us)
        return {type: us for type, us in cutoffs.items() if type in self.oldest_us and self.oldest_us[type] < us}

    def due_us(self) -> int | None:
        """Return the time up to which no event is over its time to live; None for any time."""
        ages = (self.oldest_us[type] + ttl_us for type, ttl_us in self.ttl_us.items() if type in self.oldest_us)
        return min(ages, default=None)
