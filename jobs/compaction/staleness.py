"""Staleness: marks memories past their time to live, and lowers the confidence of unconfirmed inferred facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.event_drafts import facts_decayed, memory_stale
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.knowledge_queries import ActiveMemory
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Half-life, in days, of the confidence of an inferred fact that is not confirmed.
DECAY_HALF_LIFE_DAYS = 120
#: Confidence under which an inferred fact becomes stale.
DECAY_FLOOR = 0.2
#: Share of its confidence that a fact must have lost before an event records it.
LOSS_MIN = 0.1
#: Facts in one event.
_FACTS_MAX = 500


def mark_stale(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memory.status_changed` to stale for the memories past their time to live."""
    ttl_days = context.settings.compaction.ttl_days
    return [
        memory_stale(memory.id, "past its time to live", now_us)
        for memory in snapshot.knowledge.active_memories()
        if (due_us := stale_at_us(memory, ttl_days)) is not None and due_us < now_us
    ]


def stale_at_us(memory: ActiveMemory, ttl_days: Mapping[str, int]) -> int | None:
    """Return the time at which a memory becomes stale; None: never.

    The read model depends on the log alone, so it has the default time to live of a type. A fact whose producer gave
    it another one keeps that.

    Parameters:
        ttl_days: the time to live of each type, by the settings.
    """
    default_days = TTL_DAYS[memory.type]
    if memory.stale_at_us is None or memory.ttl_days not in (None, default_days):
        return memory.stale_at_us
    return memory.stale_at_us + (ttl_days[memory.type] - default_days) * DAY_US


def decay_confidence(_: JobContext, __: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `facts.decayed` for inferred facts, by half-life; mark the facts below the floor as stale."""
    decayed: dict[str, float] = {}
    drafts: list[EventDraft] = []
    for memory in snapshot.knowledge.active_memories():
        if memory.kind != "fact" or memory.source_type != "inferred":
            continue
        remaining = 0.5 ** ((now_us - memory.updated_at_us) / (DECAY_HALF_LIFE_DAYS * DAY_US))
        confidence = memory.confidence * remaining
        if confidence < DECAY_FLOOR:
            drafts.append(memory_stale(memory.id, "nobody confirmed it", now_us))
        elif remaining < 1 - LOSS_MIN:
            decayed[memory.id] = round(confidence, 4)
    facts = list(decayed.items())
    for first in range(0, len(facts), _FACTS_MAX):
        drafts.append(facts_decayed(dict(facts[first : first + _FACTS_MAX]), now_us))
    return drafts
