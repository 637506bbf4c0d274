"""What nobody confirms grows old: time to live, and the confidence of what was only inferred."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import EventDraft, instant
from recollect.events.validation import draft
from recollect.jobs.compaction.active_memories import active_memories
from recollect.jobs.compaction.session_batches import DAY_US
from recollect.jobs.derivation.append_derived import derived_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.read_models.read_models import Snapshot

#: Less than this part of its confidence is not worth an event.
_LOSS_MIN = 0.1
#: Facts in one event.
_FACTS_MAX = 500


def age(_: JobContext, __: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `memory.status_changed` to stale for memories past their time to live."""
    return [
        stale(memory.id, "past its time to live", now_us)
        for memory in active_memories(snapshot.connection)
        if memory.stale_at_us is not None and memory.stale_at_us < now_us
    ]


def stale(memory_id: str, reason: str, now_us: int) -> EventDraft:
    """Return the event that makes a memory stale."""
    return draft(
        {
            "id": derived_id("stale", memory_id, str(now_us)),
            "type": "memory.status_changed",
            "occurred_at": instant(now_us),
            "actor": "compaction",
            "payload": {"memory_id": memory_id, "status": "stale", "reason": reason},
        }
    )


def decay(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `facts.decayed` for inferred facts, by half-life since they last changed; stale below the floor."""
    policy = context.policy
    decayed: list[dict[str, str | float]] = []
    drafts: list[EventDraft] = []
    for memory in active_memories(snapshot.connection):
        if memory.kind != "fact" or memory.source_type != "inferred":
            continue
        left = 0.5 ** ((now_us - memory.updated_at_us) / (policy.decay_half_life_days * DAY_US))
        confidence = memory.confidence * left
        if confidence < policy.decay_floor:
            drafts.append(stale(memory.id, "nobody confirmed it", now_us))
        elif left < 1 - _LOSS_MIN:
            decayed.append({"fact_id": memory.id, "confidence": round(confidence, 4)})
    for first in range(0, len(decayed), _FACTS_MAX):
        facts = decayed[first : first + _FACTS_MAX]
        drafts.append(
            draft(
                {
                    "id": derived_id("decay", str(now_us), *(str(one["fact_id"]) for one in facts)),
                    "type": "facts.decayed",
                    "occurred_at": instant(now_us),
                    "actor": "compaction",
                    "payload": {"facts": facts},
                }
            )
        )
    return drafts
