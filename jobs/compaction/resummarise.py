"""Resummarising: writes the summaries of forgotten messages again, without them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import EventDraft
from recollect.events.validation import draft
from recollect.jobs.derivation.event_drafts import derived_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns

#: Tokens of the shortest summary: a sentence needs as many.
_TOKENS_MIN = 30


def resummarised(
    context: JobContext, namespace: str, snapshot: Snapshot, message_ids: Sequence[str]
) -> list[EventDraft]:
    """Return `episode.distilled` for each summary of some messages, from the messages that remain.

    The events follow those that forget the messages, which hide the old summaries. Sentences are extracted, since
    the caller waits for the result. A summary of no other message has no successor.
    """
    events = [event for id in message_ids if (event := context.log.find(namespace, id)) is not None]
    gone = {event.version for event in events}
    drafts: list[EventDraft] = []
    for summary_id in dict.fromkeys(id for event in events for id in snapshot.pages.summary_ids(event.id)):
        summary = snapshot.pages.row("episodes", summary_id)
        if summary is None:
            continue
        sources = snapshot.episodes.source_versions(summary["version"])
        versions = [version for version in sources if version not in gone]
        turns = read_turns(context.log, namespace, versions, snapshot.days)
        vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
        tokens_max = max(_TOKENS_MIN, summary["token_count"])
        text = summarise(turns, [vectors.get(turn.version) for turn in turns], tokens_max) if turns else ""
        if not text:
            continue
        drafts.append(
            draft(
                {
                    "id": derived_id("resummarise", summary_id, *message_ids),
                    "type": "episode.distilled",
                    "session_id": summary["session_id"],
                    "occurred_at": snapshot.days.local(summary["occurred_at_us"], summary["utc_offset"]),
                    "actor": "compaction",
                    "payload": {
                        "text": text,
                        "source_events": [summary_id],
                        "importance": max(turn.importance for turn in turns),
                    },
                }
            )
        )
    return drafts
