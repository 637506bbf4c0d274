"""The job that reads knowledge out of messages: each message once, by rules or by a language model."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

from pydantic import ValidationError

from recollect.events.backends.log import EventLog
from recollect.events.catalogue import (
    DateMention,
    Entity,
    Fact,
    FactCorrection,
    Payload,
    Preference,
    Procedure,
    Question,
    Relationship,
)
from recollect.events.envelope import EventDraft, RecordedEvent, datetime_of
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.derived_events import facts_extracted
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.llm_extractor import extract_by_llm
from recollect.jobs.extraction.rule_extractor import (
    SECONDS_MAX,
    ExtractedItem,
    IncomingMessage,
    ReadingTimeout,
    extract_by_rules,
)
from recollect.projections.projector.episode_events import episode_from_event
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.queries.snapshot import Snapshot

_logger = logging.getLogger(__name__)

#: Who reads, when no language model does.
RULES = "rules"
#: Facts that a correction may be about: the latest ones.
_KNOWN_MAX = 40
#: After this a conversation is quiet.
_QUIET_US = 300_000_000
#: Items that are read in one message; a list of a thousand dates is no memory.
_ITEMS_MAX = 100
#: Processor time after which idle talk is recorded as read; what takes less is read again with the next message.
_READ_AGAIN_SECONDS_MAX = 1.0
#: Items of one extraction, in JSON; an event has twice as much room.
_BYTES_MAX = 512 << 10
#: What each kind of item is in the catalogue.
_MODELS: dict[str, type[Payload]] = {
    "facts": Fact,
    "rejected": Fact,
    "corrections": FactCorrection,
    "preferences": Preference,
    "entities": Entity,
    "relationships": Relationship,
    "procedures": Procedure,
    "dates": DateMention,
    "questions": Question,
}
#: What can wait until there is more: alone it is not worth an event for each message.
_PATIENT = ("questions", "dates")
#: Roles that tell something about people.
_ROLES = ("user", "assistant")


def extract(context: JobContext, namespace: str, now_us: int, *, seconds_max: float = SECONDS_MAX) -> int:
    """Read the messages of `namespace` that nobody has read yet; return how many events were appended.

    Parameters:
        seconds_max: processor time that the rules may take for one message; the rest of it is left out.
    """
    return append_all_derived(context, namespace, partial(_extraction, context, namespace, now_us, seconds_max))


def _extraction(
    context: JobContext, namespace: str, now_us: int, seconds_max: float, snapshot: Snapshot
) -> Sequence[EventDraft]:
    """Return `facts.extracted` for the next messages.

    When they say nothing it is appended only if there were as many as one extraction looks at: so nothing is read again and
    again, and idle talk does not fill the log.
    """
    settings = context.settings
    through = snapshot.progress.job_cursor("extraction")
    messages, last = _next_messages(
        context.log, namespace, through, snapshot, settings.extraction.extraction_messages_max
    )
    if last is None:
        return []
    asking = context.llm is not None
    if asking and len(messages) < settings.llm.llm_messages_min and now_us - last.occurred_at_us < _QUIET_US:
        # More is said right now, and is better read together.
        return []
    begun = time.thread_time()
    found, extractor = _read(context, namespace, snapshot, messages, seconds_max)
    found = _recordable(found)
    quiet = now_us - last.occurred_at_us >= _QUIET_US
    idle = not found or (not quiet and all(one.kind in _PATIENT for one in found))
    waits = idle and time.thread_time() - begun < min(_READ_AGAIN_SECONDS_MAX, seconds_max)
    if waits and not asking and len(messages) < settings.extraction.extraction_messages_max:
        return []
    sources = list(dict.fromkeys(id for one in found for id in _sources(one.item))) or [last.id]
    return [
        facts_extracted(
            last.id,
            last.occurred_at_us,
            source_events=sources,
            through=last.version,
            extractor=extractor,
            items=_by_kind(found, settings.extraction.extraction_confidence_min),
        )
    ]


def _read(
    context: JobContext, namespace: str, snapshot: Snapshot, messages: Sequence[IncomingMessage], seconds_max: float
) -> tuple[list[ExtractedItem], str]:
    """Return what is read in `messages`, and who read it: the language model, or the rules where there is none.

    Dates and questions are read by the rules in any case: they do that exactly.
    """
    before = snapshot.knowledge.latest_statements(_KNOWN_MAX)
    by_rules: list[ExtractedItem] = []
    for said in messages:
        if context.stop.is_set():
            raise InterruptedError("the worker stops; the messages are read again")
        by_rules += _read_by_rules(namespace, said, before, seconds_max)
    people = [said for said in messages if not said.assistant]
    by_llm = extract_by_llm(context.llm, namespace, people) if context.llm is not None and people else None
    if by_llm is None or context.llm is None:
        return by_rules, RULES
    exact = [one for one in by_rules if one.kind in ("dates", "questions", "procedures")]
    return [*by_llm, *exact], context.llm.name


def _read_by_rules(
    namespace: str, said: IncomingMessage, before: list[PriorStatement], seconds_max: float
) -> list[ExtractedItem]:
    """Return what the rules read in a message, in the time that it may take."""
    found: list[ExtractedItem] = []
    try:
        found.extend(islice(extract_by_rules(said, before, seconds_max=seconds_max), _ITEMS_MAX))
    except ReadingTimeout:
        _logger.warning(
            "Extraction of event %r in namespace %r took too long; the rest of the message is left out.",
            said.event_id,
            namespace,
        )
    return found


def _next_messages(
    log: EventLog, namespace: str, after: int, snapshot: Snapshot, most: int
) -> tuple[list[IncomingMessage], RecordedEvent | None]:
    """Return up to `most` messages after the version `after`, and the last event that was looked at."""
    messages: list[IncomingMessage] = []
    last: RecordedEvent | None = None
    while after < snapshot.version and len(messages) < most:
        for event in log.read(namespace, after=after, limit=min(1_000, snapshot.version - after)):
            after = event.version
            if event.type == "message.added":
                last = event
                said = _said(event)
                if said is not None:
                    messages.append(said)
                if len(messages) == most:
                    break
    return messages, last


def _said(event: RecordedEvent) -> IncomingMessage | None:
    """Return what a person said; None for tools and systems."""
    payload = event.data()
    if payload["role"] not in _ROLES:
        return None
    episode = episode_from_event(event, payload)
    return IncomingMessage(
        event.id,
        event.session_id,
        episode.speaker,
        episode.text,
        datetime_of(event.occurred_at_us),
        payload["role"] == "assistant" and payload.get("name") is None,
    )


def _recordable(found: Sequence[ExtractedItem]) -> list[ExtractedItem]:
    """Return what the catalogue takes, in one event: a word of a thousand letters must not stop the reading for good."""
    kept: list[ExtractedItem] = []
    left = _BYTES_MAX
    for one in found:
        try:
            left -= len(_MODELS[one.kind].model_validate(one.item).model_dump_json())
        except ValidationError:
            continue
        if left < 0:
            break
        kept.append(one)
    return kept


def _sources(item: dict[str, Any]) -> list[str]:
    return item.get("source_events") or [item["source_event"]]


def _by_kind(found: Sequence[ExtractedItem], confidence_min: float) -> dict[str, list[dict[str, Any]]]:
    """Sort what was found; what is not sure enough is rejected."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for kind, item in found:
        unsure = kind == "facts" and item["confidence"] < confidence_min
        kinds.setdefault("rejected" if unsure else kind, []).append(item)
    return kinds
