"""Extraction job: reads each message once by rules, and appends the extracted items.

A language model reads the messages behind the rules, in a job of its own: `jobs/llm_reading`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from pydantic import ValidationError

from recollect.events.backends.log import EventLog
from recollect.events.catalogue import (
    DateMention,
    Doubt,
    Entity,
    Fact,
    FactCorrection,
    FactEnding,
    Payload,
    Preference,
    Procedure,
    Question,
    Relationship,
)
from recollect.events.envelope import EventDraft, RecordedEvent, datetime_of, microseconds
from recollect.events.intake.recalled_context import strip_recalled
from recollect.events.local_time import fixed_zone, local_time
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.event_drafts import facts_extracted, rest_id
from recollect.jobs.derivation.job_context import JobContext, ReadMessages
from recollect.jobs.extraction.comparison import Floats
from recollect.jobs.extraction.conversation_state import EARLIER_TURNS_MAX, Conversations, Said
from recollect.jobs.extraction.corrected_messages import corrected_messages
from recollect.jobs.extraction.entity_extractor import extract_entities
from recollect.jobs.extraction.rule_extractor import (
    SECONDS_MAX,
    ExtractedItem,
    ExtractionTimeout,
    IncomingMessage,
    extract_by_rules,
    sources_of,
)
from recollect.jobs.extraction.sentence_vectors import SentenceVectors
from recollect.jobs.job_settings import QUIET_US
from recollect.projections.embeddings.reading_encoder import (
    pair_reader,
    reading_embed,
    wait_for_encoders,
    window_reader,
)
from recollect.projections.projection_settings import CHANGES_MODEL, MESSAGES_MODEL, READING_MODEL
from recollect.projections.projector.episode_events import episode_from_event
from recollect.projections.projector.projector import APPLY_SECONDS
from recollect.projections.projector.stated_fact import voice_of
from recollect.projections.queries.snapshot import Snapshot

_logger = logging.getLogger(__name__)

#: The name of the cursor of `jobs/llm_reading`.
LLM_CURSOR = "llm reading"
#: The extractor that events record when no language model was used.
RULES = "rules"
#: Messages that one extraction reads.
_MESSAGES_MAX = 100
#: Confidence under which an extracted fact is stored as rejected.
FACT_CONFIDENCE_MIN = 0.5
#: Latest statements that a message may change.
_PRIOR_STATEMENTS_MAX = 300
#: Items that are extracted from one message: a list of a thousand dates is not worth remembering.
_ITEMS_MAX = 100
#: Seconds of processor time after which messages without items are recorded as read: another process, and this one
#: after its next start, reads again what is not recorded.
_UNRECORDED_SECONDS_MAX = 1.0
#: Bytes of the items of one extraction, in JSON: half of the room of an event.
_BYTES_MAX = 512 << 10
#: The payload type of each kind of item in the event catalogue.
_PAYLOADS: dict[str, type[Payload]] = {
    "facts": Fact,
    "rejected": Fact,
    "corrections": FactCorrection,
    "endings": FactEnding,
    "doubts": Doubt,
    "preferences": Preference,
    "entities": Entity,
    "relationships": Relationship,
    "procedures": Procedure,
    "dates": DateMention,
    "questions": Question,
}
#: Kinds that wait for further items: alone they are not worth an event for each message.
_DEFERRED_KINDS = ("questions", "dates")
#: Kinds whose items have the time at which they were said.
_DATED_KINDS = frozenset(("facts", "rejected", "corrections", "endings", "doubts", "preferences", "relationships"))
#: Kinds whose items have their speaker, when it is not their subject.
ATTRIBUTED_KINDS = frozenset(("facts", "rejected", "corrections", "endings", "doubts", "relationships"))
#: Roles whose messages are read; tools and systems state nothing about people.
_ROLES = ("user", "assistant")


def extract(context: JobContext, namespace: str, now_us: int, *, seconds_max: float = SECONDS_MAX) -> int:
    """Extract from the unread messages of `namespace`; return the number of appended events.

    Parameters:
        now_us: the current time, in microseconds since 1970 UTC.
        seconds_max: processor time of the rules for one message; the rest of the message is left out.
    """
    started = time.perf_counter()
    appended = append_all_derived(context, namespace, partial(_extraction, context, namespace, now_us, seconds_max))
    if appended:
        APPLY_SECONDS.observe(time.perf_counter() - started, "extraction")
    return appended


def _extraction(
    context: JobContext, namespace: str, now_us: int, seconds_max: float, snapshot: Snapshot
) -> Sequence[EventDraft]:
    """Return `facts.extracted` for the next messages.

    An event without items is returned only for many messages, so that they do not fill the log. Until then this process
    has them in memory, and reads none of them again.
    """
    read = _read_on(context, namespace, snapshot, seconds_max)
    if read is None:
        return []
    quiet = now_us - read.last.occurred_at_us >= QUIET_US
    deferrable = not read.items or (not quiet and all(kind in _DEFERRED_KINDS for kind, _ in read.items))
    if deferrable and read.count < _MESSAGES_MAX and read.seconds < min(_UNRECORDED_SECONDS_MAX, seconds_max):
        context.read_messages.put(namespace, read)
        return []
    items = [ExtractedItem(*item) for item in read.items]
    sources = list(dict.fromkeys(id for extracted in items for id in sources_of(extracted.item))) or [read.last.id]
    return [
        facts_extracted(
            read.last.id,
            read.last.occurred_at_us if read.said_us is None else read.said_us,
            source_events=sources,
            through=read.last.version,
            # Without a language model, none has to read these messages later.
            llm_through=None if context.llm is None else snapshot.progress.job_cursor(LLM_CURSOR),
            extractor=RULES,
            items=by_kind(items),
        )
    ]


def _read_on(context: JobContext, namespace: str, snapshot: Snapshot, seconds_max: float) -> ReadMessages | None:
    """Return the messages that are not recorded as read, with those that this process has read before; None: none."""
    cursor = snapshot.progress.job_cursor("extraction")
    before = _still_there(context.read_messages.get(namespace), cursor, snapshot)
    after, count = (cursor, 0) if before is None else (before.last.version, before.count)
    messages, last = _next_messages(context.log, namespace, after, snapshot, _MESSAGES_MAX - count)
    if last is None:
        return before
    started_seconds = time.thread_time()
    items = _extract_items(context, namespace, snapshot, after, messages, seconds_max)
    said_us = said_at_us(items, messages, last) if items else None
    if before is not None and before.said_us is not None:
        said_us = max(before.said_us, said_us or before.said_us)
    items = [*dated(items, messages, last.occurred_at_us if said_us is None else said_us)]
    if before is not None:
        items = [*(ExtractedItem(*item) for item in before.items), *items]
    return ReadMessages(
        after=cursor,
        last=last._replace(payload=b""),
        count=count + len(messages),
        seconds=time.thread_time() - started_seconds + (0 if before is None else before.seconds),
        items=recordable(items),
        said_us=said_us,
    )


def _still_there(read: ReadMessages | None, cursor: int, snapshot: Snapshot) -> ReadMessages | None:
    """Return the messages that were read; None when others were recorded since, or one is erased or forgotten."""
    if read is None or read.after != cursor:
        return None
    ids = {read.last.id, *(id for _, item in read.items for id in sources_of(item))}
    versions = snapshot.episodes.versions_of(ids)
    return read if len(versions) == len(ids) and max(versions) == read.last.version else None


def _extract_items(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    after: int,
    messages: Sequence[IncomingMessage],
    seconds_max: float,
) -> list[ExtractedItem]:
    """Return the items that the rules read in `messages`, the first ones after the version `after`."""
    before = snapshot.knowledge.latest_statements(_PRIOR_STATEMENTS_MAX, through=after)
    items: list[ExtractedItem] = []
    conversations = conversations_before(snapshot, after)
    has_assistant = any(message.is_assistant for message in messages)
    speakers = {message.speaker for message in messages if not message.is_assistant}
    messages = [*outside_of_play(messages, conversations)]
    wait_for_encoders(context.vectors().embedder, (READING_MODEL, CHANGES_MODEL), context.stop)
    embed = reading_embed(context.vectors().embedder)
    message_reader = partial(pair_reader, MESSAGES_MODEL, context.vectors().embedder)
    extract = partial(
        extract_by_rules,
        seconds_max=seconds_max,
        embed=embed,
        # Once the reading encoder is ready, the model of these vectors is.
        vectors=None
        if embed is None
        else partial(
            _vectors, context, namespace, snapshot, SentenceVectors(context.vectors().embedder.embed, messages)
        ),
        read_pairs=pair_reader(CHANGES_MODEL, context.vectors().embedder),
        read_windows=window_reader(context.vectors().embedder),
    )
    for message in messages:
        if context.stop.is_set():
            raise InterruptedError("the worker is stopping; the messages are read again later")
        conversation = conversations.of(message.session_id)
        # Who talks alone talks to an assistant whose answers are not recorded.
        conversation.has_assistant |= has_assistant or (len(speakers) == 1 and conversation.is_alone(message.speaker))
        items += _extract_by_rules(namespace, message, partial(extract, message, before, conversation=conversation))
        conversation.name_days(message.text, message.sent_at)
        # An event with several turns has no message that a doubt could name.
        if not message.is_assistant and message.has_places:
            said = Said(message.event_id, message.text)
            items += corrected_messages(message.speaker, said, conversation.last_of(message.speaker), message_reader)
            conversation.say(message.speaker, said)
    return items + extract_entities([message for message in messages if not message.is_assistant], snapshot.entities)


def conversations_before(snapshot: Snapshot, through: int) -> Conversations:
    """Return the states of the sessions at the version `through`."""
    return Conversations(
        lambda session_id: snapshot.sessions.earlier_turns(session_id, through=through, limit=EARLIER_TURNS_MAX)
    )


def outside_of_play(messages: Iterable[IncomingMessage], conversations: Conversations) -> Iterator[IncomingMessage]:
    """Yield the messages without what people say in a role play, which is nothing about them."""
    for message in messages:
        if message.is_assistant:
            yield message
            continue
        own = conversations.of(message.session_id).outside_of_play(message.text)
        if own.strip():
            yield message if own == message.text else message._replace(text=own)


def _vectors(
    context: JobContext, namespace: str, snapshot: Snapshot, of_sentences: SentenceVectors, texts: Sequence[str]
) -> Floats | None:
    """Return the vectors of a sentence and of statements; the vectors of statements are stored, as for retrieval."""
    stated = context.vectors().vectors_of_texts(namespace, snapshot, texts[1:])
    return None if stated is None else np.concatenate([of_sentences.of(texts[0])[np.newaxis], stated])


def _extract_by_rules(
    namespace: str, message: IncomingMessage, extract: Callable[[], Iterable[ExtractedItem]]
) -> list[ExtractedItem]:
    """Return the items that the rules read in a message within the time they have, at most `_ITEMS_MAX`."""
    items: list[ExtractedItem] = []
    try:
        items.extend(islice((_said_by(message.speaker, item) for item in extract()), _ITEMS_MAX))
    except ExtractionTimeout:
        _logger.warning(
            "Extraction of a message in namespace %.12s took too long; the rest of the message is left out.",
            folder_name(namespace),
        )
    return items


def _said_by(speaker: str, extracted: ExtractedItem) -> ExtractedItem:
    """Return an item of a message with its speaker, when it is about another person."""
    if extracted.kind in ATTRIBUTED_KINDS:
        subject: str = extracted.item.get("subject") or extracted.item["source"]
        if voice_of(subject, speaker):
            extracted.item["stated_by"] = speaker
    return extracted


def _next_messages(
    log: EventLog, namespace: str, after: int, snapshot: Snapshot, limit: int
) -> tuple[list[IncomingMessage], RecordedEvent | None]:
    """Return the next `limit` messages after the version `after`, and the last message event that was read."""
    messages: list[IncomingMessage] = []
    last: RecordedEvent | None = None
    while after < snapshot.version and len(messages) < limit:
        events = log.read(namespace, after=after, limit=min(1_000, snapshot.version - after))
        offsets = snapshot.episodes.utc_offsets([event.version for event in events])
        for event in events:
            after = event.version
            if event.type == "message.added":
                last = event
                # Of a message that asked to forget, and is forgotten, its rest is read.
                if event.version in offsets or snapshot.episodes.version_of(rest_id(event.id)) is None:
                    messages += incoming_messages(event, offsets)
                if len(messages) >= limit:
                    break
    return messages, last


def incoming_messages(event: RecordedEvent, offsets: Mapping[int, int]) -> list[IncomingMessage]:
    """Return the message of an event, or a message for each of its turns; none for tools and systems.

    Parameters:
        offsets: the minutes of the messages east of UTC, by version.
    """
    payload = event.data()
    if payload["role"] not in _ROLES:
        return []
    episode = episode_from_event(event, payload)
    turns: list[dict[str, Any]] = payload.get("turns") or [payload | {"text": episode.text}]
    return [
        IncomingMessage(
            event_id=event.id,
            session_id=event.session_id,
            # A turn without a name is by the sender of the message, or by the other role.
            speaker=turn.get("name") or (episode.speaker if turn["role"] == payload["role"] else turn["role"]),
            text=strip_recalled(turn["text"]),
            sent_at=local_time(event.occurred_at_us, fixed_zone(offsets.get(event.version) or 0)),
            # An assistant with a name is not a person either.
            is_assistant=turn["role"] == "assistant",
            has_places="turns" not in payload and strip_recalled(turn["text"]) == turn["text"],
        )
        for turn in turns
        if turn["role"] in _ROLES
    ]


def said_at_us(items: Sequence[ExtractedItem], messages: Sequence[IncomingMessage], last: RecordedEvent) -> int:
    """Return the time of the latest message that has items; of the last one when none has.

    A message without items leaves no trace when it is erased, so the time of the event is not its own.
    """
    sources = {id for extracted in items for id in sources_of(extracted.item)}
    times = [microseconds(message.sent_at) for message in messages if message.event_id in sources]
    return max(times, default=last.occurred_at_us)


def dated(
    items: Iterable[ExtractedItem], messages: Sequence[IncomingMessage], event_us: int
) -> Iterator[ExtractedItem]:
    """Yield the items with the time of their message, unless it is the time of the event."""
    times = {message.event_id: message.sent_at for message in messages}
    for extracted in items:
        sent_at = times.get(sources_of(extracted.item)[0])
        if extracted.kind in _DATED_KINDS and sent_at is not None and sent_at != datetime_of(event_us):
            extracted.item.setdefault("stated_at", sent_at)
        yield extracted


def recordable(items: Iterable[ExtractedItem]) -> list[ExtractedItem]:
    """Return the valid items that fit in one event: an invalid item, such as a long word, must not block the job."""
    recordable: list[ExtractedItem] = []
    bytes_left = _BYTES_MAX
    for extracted in items:
        try:
            bytes_left -= len(_PAYLOADS[extracted.kind].model_validate(extracted.item).model_dump_json())
        except ValidationError:
            continue
        if bytes_left < 0:
            break
        recordable.append(extracted)
    return recordable


def by_kind(items: Sequence[ExtractedItem]) -> dict[str, list[dict[str, Any]]]:
    """Return the payloads by kind; facts below `FACT_CONFIDENCE_MIN` become rejected facts."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for kind, item in items:
        is_rejected = kind == "facts" and item["confidence"] < FACT_CONFIDENCE_MIN
        kinds.setdefault("rejected" if is_rejected else kind, []).append(item)
    return kinds
