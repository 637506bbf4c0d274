"""Derived events: the drafts that jobs append, one function for each type.

An id is a hash of the job and the ids of its sources, so that two workers that derive the same event append it once.
The event takes the time and the zone of its sources, or of the run if it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from recollect.events.envelope import EventDraft, datetime_of
from recollect.events.validation import draft
from recollect.projections.projector.fact_timeline import LLM_JOB
from recollect.projections.queries.queried_episodes import EpisodeRow

#: The beginning of the ids of events by which a second reading invalidates statements of the first.
REPLACED_ID = "replaced-"


class SummaryDraft(NamedTuple):
    """A summary, its length and the length of its sources, in estimated tokens."""

    text: str
    token_count: int
    source_tokens: int


def derived_id(job: str, *source_ids: str) -> str:
    """Return the id of the event that `job` derives from the events or memories `source_ids`; it is deterministic."""
    return f"{job}:{sha256(chr(10).join(source_ids).encode(errors='replace')).hexdigest()[:32]}"


def rest_id(message_id: str) -> str:
    """Return the id of the message that has the rest of one which asked to forget something."""
    return derived_id("rest", message_id)


def facts_extracted(
    last_id: str,
    occurred_at_us: int,
    *,
    source_events: Sequence[str],
    through: int | None = None,
    llm_through: int | None = None,
    extractor: str,
    items: Mapping[str, Sequence[Mapping[str, Any]]],
) -> EventDraft:
    """Return `facts.extracted`: the items that were extracted from messages.

    Parameters:
        last_id, occurred_at_us: the id and the time of the last event that was read.
        source_events: the ids of the messages that the items come from.
        through: the version of the last event that the rules have read; None in an event of a language model.
        llm_through: the version of the last event that a language model has read; None without one.
        extractor: the name of the language model, or `rules`.
        items: the items by field of the payload.
    """
    versions = {"through": through, "llm_through": llm_through}
    read = {name: version for name, version in versions.items() if version is not None}
    return draft(
        {
            "id": derived_id("extract" if through is not None else LLM_JOB, last_id),
            "type": "facts.extracted",
            "occurred_at": datetime_of(occurred_at_us),
            "actor": "extraction",
            "payload": {"source_events": source_events, "extractor": extractor} | read | {**items},
        }
    )


def reading_replaced(memory_id: str, model: str, again: str, at_us: int) -> EventDraft:
    """Return `memory.invalidated`: a statement of a language model that another reading does not have.

    Parameters:
        again: the part of ids that distinguishes this reading from others.
        at_us: the time of the last message that was read.
    """
    return draft(
        {
            "id": f"{REPLACED_ID}{derived_id('reread', memory_id, again)}",
            "type": "memory.invalidated",
            "occurred_at": datetime_of(at_us),
            "actor": "extraction",
            "payload": {"memory_id": memory_id, "reason": f"read again by {model}"},
        }
    )


def reading_restored(event_id: str, again: str, at_us: int) -> EventDraft:
    """Return `edit.undone`: a statement that `reading_replaced` invalidated is read again."""
    return draft(
        {
            "id": derived_id("reread", event_id, again),
            "type": "edit.undone",
            "occurred_at": datetime_of(at_us),
            "actor": "extraction",
            "payload": {"event_id": event_id, "reason": "read again"},
        }
    )


def episodes_compressed(group: Sequence[EpisodeRow], summary: SummaryDraft, *, expires_after_us: int) -> EventDraft:
    """Return `episodes.compressed`: the summary of a group of raw episodes of one session."""
    # The time is that of the last source, so that every worker derives the same event at any time.
    last = max(group, key=lambda raw: raw.occurred_at_us)
    return draft(
        {
            "id": derived_id("compress", *(raw.id for raw in group)),
            "type": "episodes.compressed",
            "session_id": group[0].session_id,
            "occurred_at": last.sent_at,
            "actor": "compaction",
            "payload": {
                "text": summary.text,
                "source_events": [raw.id for raw in group],
                "importance": max(raw.importance for raw in group),
                "token_count": summary.token_count,
                "source_tokens": summary.source_tokens,
                "expires_at": datetime_of(last.occurred_at_us + expires_after_us),
            },
        }
    )


def episode_distilled(compressed: EpisodeRow, summary: SummaryDraft) -> EventDraft:
    """Return `episode.distilled`: the short summary of a compressed episode, which does not expire."""
    return draft(
        {
            "id": derived_id("distill", compressed.id),
            "type": "episode.distilled",
            "session_id": compressed.session_id,
            "occurred_at": compressed.sent_at,
            "actor": "compaction",
            "payload": {
                "text": summary.text,
                "source_events": [compressed.id],
                "importance": compressed.importance,
                "token_count": summary.token_count,
                "source_tokens": summary.source_tokens,
            },
        }
    )


def conversation_compacted(session_id: str, turns: Sequence[EpisodeRow], summary: SummaryDraft) -> EventDraft:
    """Return `conversation.compacted`: the summary of the oldest turns of a running conversation."""
    return draft(
        {
            "id": derived_id("window", session_id, turns[-1].id),
            "type": "conversation.compacted",
            "session_id": session_id,
            "occurred_at": turns[-1].sent_at,
            "actor": "window",
            "payload": {
                "text": summary.text,
                "source_events": [turn.id for turn in turns],
                "tags": ["auto-compaction"],
                "token_count": summary.token_count,
                "source_tokens": summary.source_tokens,
            },
        }
    )


def episodes_expired(ids: Sequence[str], now_us: int) -> EventDraft:
    """Return `episodes.expired`: the episodes `ids` leave the read models."""
    return draft(
        {
            "id": derived_id("expire", *ids),
            "type": "episodes.expired",
            "occurred_at": datetime_of(now_us),
            "actor": "compaction",
            "payload": {"episode_ids": ids},
        }
    )


def memory_stale(memory_id: str, reason: str, now_us: int) -> EventDraft:
    """Return `memory.status_changed`: a memory becomes stale."""
    return draft(
        {
            "id": derived_id("stale", memory_id, str(now_us)),
            "type": "memory.status_changed",
            "occurred_at": datetime_of(now_us),
            "actor": "compaction",
            "payload": {"memory_id": memory_id, "status": "stale", "reason": reason},
        }
    )


def facts_decayed(confidences: Mapping[str, float], now_us: int) -> EventDraft:
    """Return `facts.decayed`: the new confidences of inferred facts, by id."""
    return draft(
        {
            "id": derived_id("decay", str(now_us), *confidences),
            "type": "facts.decayed",
            "occurred_at": datetime_of(now_us),
            "actor": "compaction",
            "payload": {"facts": [{"fact_id": id, "confidence": confidence} for id, confidence in confidences.items()]},
        }
    )


def memories_merged(kept_id: str, merged_ids: Sequence[str], similarity: float, now_us: int) -> EventDraft:
    """Return `memories.merged`: near-duplicates are merged into the memory `kept_id`.

    Parameters:
        similarity: the lowest cosine between a merged memory and the kept memory.
    """
    return draft(
        {
            "id": derived_id("merge", kept_id, *merged_ids),
            "type": "memories.merged",
            "occurred_at": datetime_of(now_us),
            "actor": "compaction",
            "payload": {
                "kept_id": kept_id,
                "merged_ids": merged_ids,
                "similarity": round(min(1.0, similarity), 4),
            },
        }
    )


def observations_recorded(session_id: str, turns: Sequence[EpisodeRow], observations: Sequence[str]) -> EventDraft:
    """Return `observations.recorded`: short notes on the next turns of a session."""
    return draft(
        {
            "id": derived_id("observe", session_id, turns[-1].id),
            "type": "observations.recorded",
            "session_id": session_id,
            "occurred_at": turns[-1].sent_at,
            "actor": "observer",
            "payload": {
                "observations": observations,
                "source_events": [turn.id for turn in turns],
                "through": turns[-1].version,
            },
        }
    )


def observations_reflected(
    session_id: str, observations: Sequence[str], *, source_events: Sequence[str], occurred_at_us: int
) -> EventDraft:
    """Return `observations.reflected`: the most informative observations of a session, which replace all of them."""
    return draft(
        {
            "id": derived_id("reflect", session_id, *source_events),
            "type": "observations.reflected",
            "session_id": session_id,
            "occurred_at": datetime_of(occurred_at_us),
            "actor": "reflector",
            "payload": {"observations": observations, "source_events": source_events},
        }
    )


def turns_summarised(turns: Sequence[EpisodeRow], texts: Sequence[str]) -> EventDraft:
    """Return `turns.summarised`: a short form of each of `turns`."""
    return draft(
        {
            "id": derived_id("shorten", *(turn.id for turn in turns)),
            "type": "turns.summarised",
            "occurred_at": datetime_of(max(turn.occurred_at_us for turn in turns)),
            "actor": "observer",
            "payload": {
                "summaries": [{"event_id": turn.id, "text": text} for turn, text in zip(turns, texts, strict=True)]
            },
        }
    )
