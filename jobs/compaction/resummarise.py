"""Resummarising: writes the summaries of a forgotten message again, without it."""

from __future__ import annotations

from recollect.events.envelope import EventDraft, datetime_of
from recollect.events.validation import draft
from recollect.jobs.derivation.derived_events import derived_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.extractive import summarise
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns

#: Tokens of the shortest summary: a sentence needs as many.
_TOKENS_MIN = 30


def resummarised(context: JobContext, namespace: str, snapshot: Snapshot, message_id: str) -> list[EventDraft]:
    """Return `episode.distilled` for each summary of a message, from the messages that remain.

    The events follow the one that forgets the message, which hides the old summaries. Sentences are extracted, since
    the caller waits for the result. A summary of no other message has no successor.
    """
    event = context.log.find(namespace, message_id)
    if event is None:
        return []
    drafts: list[EventDraft] = []
    for summary_id in snapshot.pages.summary_ids(message_id):
        summary = snapshot.pages.row("episodes", summary_id)
        if summary is None:
            continue
        sources = snapshot.episodes.source_versions(summary["version"])
        versions = [version for version in sources if version != event.version]
        turns = read_turns(context.log, namespace, versions)
        vectors = context.vectors().vectors_of_episodes(namespace, snapshot, [turn.version for turn in turns])
        tokens_max = max(_TOKENS_MIN, summary["token_count"])
        text = summarise(turns, [vectors.get(turn.version) for turn in turns], tokens_max) if turns else ""
        if not text:
            continue
        drafts.append(
            draft(
                {
                    "id": derived_id("resummarise", summary_id, message_id),
                    "type": "episode.distilled",
                    "session_id": summary["session_id"],
                    "occurred_at": datetime_of(summary["occurred_at_us"]),
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
