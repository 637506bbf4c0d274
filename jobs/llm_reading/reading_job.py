"""LLM reading: the job that reads the messages with a language model, window by window, behind the rules.

It has a cursor of its own: what the rules have read while the model was late, paused or out of budget is read by the
model later. Without an answer the cursor stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.jobs.derivation.append_derived import append_all_derived
from recollect.jobs.derivation.event_drafts import facts_extracted
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.extraction_job import (
    ATTRIBUTED_KINDS,
    LLM_CURSOR,
    by_kind,
    conversations_before,
    dated,
    incoming_messages,
    outside_of_play,
    recordable,
    said_at_us,
)
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage, Item, sources_of
from recollect.jobs.job_settings import QUIET_US
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.llm_reading.claim_reader import claim_reader
from recollect.jobs.llm_reading.item_merge import added_items
from recollect.jobs.llm_reading.llm_extractor import read_window
from recollect.projections.projector.stated_fact import voice_of
from recollect.projections.queries.session_queries import EarlierTurn
from recollect.projections.queries.snapshot import Snapshot

#: The message events of a window, with their messages.
Window = Sequence[tuple[RecordedEvent, list[IncomingMessage]]]

#: Messages and characters of one window: a small model loses the thread in more, and a request stays under 2,000 tokens.
_MESSAGES_MAX = 8
_CHARS_MAX = 4_000
#: Messages that one request reads at least, unless the conversation has been quiet for five minutes.
_MESSAGES_MIN = 6
#: Messages before a window that its request shows.
_EARLIER_TURNS_MAX = 4
#: Events that are searched for the stored items of a window.
_EVENTS_MAX = 1_000
#: Microseconds after which a scheduled run looks again at a namespace with unread messages.
_AGAIN_US = 900_000_000


def read_by_llm(context: JobContext, namespace: str, now_us: int) -> int:
    """Read the messages of a namespace that the language model has not read; return the number of appended events.

    It stops when the model gives no answer; the next run continues.
    """
    if context.llm is None or not context.llm.may_read(namespace):
        return 0
    return append_all_derived(context, namespace, partial(_reading, context, namespace, now_us))


def reading_due_us(context: JobContext, namespace: str, now_us: int) -> int | None:
    """Return when a namespace has to be looked at again, in microseconds; None when the model has read it all."""
    if context.llm is None or not context.llm.may_read(namespace):
        return None
    with context.read_models.reading(namespace) as snapshot:
        unread = snapshot.progress.first_turn_after(snapshot.progress.job_cursor(LLM_CURSOR))
    return None if unread is None else now_us + _AGAIN_US


def _reading(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `facts.extracted` for the next window; nothing while the conversation goes on, or without an answer."""
    llm = context.llm
    if llm is None:
        return []
    through = snapshot.progress.job_cursor(LLM_CURSOR)
    window = list(next_window(context.log, namespace, through, snapshot))
    if not window:
        return []
    last = window[-1][0]
    messages = [message for _, parts in window for message in parts]
    is_full = len(messages) >= _MESSAGES_MAX or sum(len(message.text) for message in messages) >= _CHARS_MAX
    if not is_full and len(messages) < _MESSAGES_MIN and now_us - last.occurred_at_us < QUIET_US:
        # The conversation is going on; one request then reads more messages.
        return []
    llm.note_seen(sum(len(message.text.split()) for message in messages))
    read = read_items(context, llm, namespace, window, snapshot, through)
    return [] if read is None else [reading_event(read, llm.name, llm_through=last.version)]


class ReadItems(NamedTuple):
    """What a language model has read in a window, without what the rules have read there."""

    #: The last event of the window.
    last: RecordedEvent
    #: The time of the latest message that has items, in microseconds.
    said_us: int
    items: list[ExtractedItem]


def read_items(
    context: JobContext,
    llm: LlmClient,
    namespace: str,
    window: Window,
    snapshot: Snapshot,
    through: int,
    *,
    extractor: str | None = None,
) -> ReadItems | None:
    """Return what the model reads in a window that begins after the version `through`; None without an answer.

    Parameters:
        extractor: the extractor whose items are left out, since they are stored already; None: those of all.
    """
    last = window[-1][0]
    said = [message for _, parts in window for message in parts]
    messages = list(outside_of_play(said, conversations_before(snapshot, through)))
    says_claim = claim_reader(context.vectors().embedder)
    reading = read_window(llm, namespace, messages, _earlier_turns(snapshot, messages, through), says_claim)
    if reading is None:
        return None
    stored = _stored_items(context.log, namespace, window[0][0].version, messages, extractor)
    added = added_items(stored, reading.items)
    said_us = said_at_us(added, messages, last)
    return ReadItems(last, said_us, recordable(dated(_attributed(added, messages), messages, said_us)))


def _attributed(items: Iterable[ExtractedItem], messages: Sequence[IncomingMessage]) -> Iterator[ExtractedItem]:
    """Yield the items; what a message says about others than its speaker has the speaker."""
    speakers: dict[str, set[str]] = {}
    for message in messages:
        speakers.setdefault(message.event_id, set()).add(message.speaker)
    for extracted in items:
        item = extracted.item
        if extracted.kind in ATTRIBUTED_KINDS and "stated_by" not in item:
            subject: str = item.get("subject") or item["source"]
            said_by = speakers.get(sources_of(item)[0], set())
            # Of a message with turns of several people, the rules know the speaker; a model does not.
            if len(said_by) == 1 and voice_of(subject, *said_by):
                item["stated_by"] = next(iter(said_by))
        yield extracted


def reading_event(read: ReadItems, extractor: str, *, llm_through: int | None, again: str = "") -> EventDraft:
    """Return `facts.extracted` for what a model has read.

    Parameters:
        again: makes the id of a second reading another one.
    """
    sources = list(dict.fromkeys(id for extracted in read.items for id in sources_of(extracted.item)))
    return facts_extracted(
        read.last.id + again,
        read.said_us,
        source_events=sources or [read.last.id],
        llm_through=llm_through,
        extractor=extractor,
        items=by_kind(read.items),
    )


def next_window(
    log: EventLog, namespace: str, after: int, snapshot: Snapshot
) -> Iterator[tuple[RecordedEvent, list[IncomingMessage]]]:
    """Yield the message events of the next window with their messages; those of tools have none."""
    messages_left, chars_left = _MESSAGES_MAX, _CHARS_MAX
    while after < snapshot.version:
        events = log.read(namespace, after=after, limit=min(200, snapshot.version - after))
        offsets = snapshot.episodes.utc_offsets([event.version for event in events])
        for event in events:
            after = event.version
            if event.type != "message.added":
                continue
            messages = incoming_messages(event, offsets)
            yield event, messages
            messages_left -= len(messages)
            chars_left -= sum(len(message.text) for message in messages)
            if messages_left <= 0 or chars_left <= 0:
                return


def _earlier_turns(
    snapshot: Snapshot, messages: Sequence[IncomingMessage], through: int
) -> Mapping[str | None, Sequence[EarlierTurn]]:
    """Return the messages before the window, by session: they name whom its pronouns mean."""
    sessions = dict.fromkeys(message.session_id for message in messages if message.session_id is not None)
    return {id: snapshot.sessions.earlier_turns(id, through=through, limit=_EARLIER_TURNS_MAX) for id in sessions}


def _stored_items(
    log: EventLog, namespace: str, first: int, messages: Sequence[IncomingMessage], extractor: str | None
) -> list[Item]:
    """Return the facts and preferences that one extractor, or any, has read in the messages of a window."""
    ids = {message.event_id for message in messages}
    events = log.read(namespace, after=first, limit=_EVENTS_MAX)
    payloads = [event.data() for event in events if event.type == "facts.extracted"]
    payloads = [payload for payload in payloads if extractor in (None, payload["extractor"])]
    items = [item for payload in payloads for kind in ("facts", "preferences") for item in payload.get(kind, ())]
    return [item for item in items if not ids.isdisjoint(sources_of(item))]
