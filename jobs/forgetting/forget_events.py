"""Forget events: derives the events that forget what a user's message asks to forget.

They are appended in one batch with the message, so that nothing can be recalled in between; a job derives them for
messages that came in another way. Their ids are hashes of the message and of what is forgotten, so that both add
nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import uuid_utils

from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.events.errors import RecollectError
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.events.validation import draft
from recollect.jobs.compaction.resummarise import resummarised
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.derived_events import derived_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.forgetting.forget_matches import (
    SpokenMessage,
    matching_messages,
    names_knowledge,
    spoken_message,
)
from recollect.jobs.forgetting.forget_requests import ForgetRequest, forget_requests, is_request_alone, may_request
from recollect.projections.queries.snapshot import Snapshot

#: The producer of the events, and their reason.
ACTOR = "forgetting"
_REASON = "the user asked to forget it"
#: Events of the log that are read at once.
_BATCH = 1_000
#: Requests of one batch that are done: each is compared with all messages of its speaker.
_REQUESTS_MAX = 20
#: Kinds of knowledge that a request can name. Documents are not the user's words.
_KINDS = frozenset(("fact", "preference", "relationship", "procedure", "entity"))


def with_forgettings(context: JobContext, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    """Return the drafts, and after them the events that forget what the messages among them ask to forget.

    Where the read model cannot be read, the job adds them later: an append depends on the log alone.
    """
    if not any(event.type == "message.added" and may_request(_content(event)) for event in drafts):
        return [*drafts]
    named = [event if event.id else event._replace(id=str(uuid_utils.uuid7())) for event in drafts]
    messages = [message for event in named if (message := _message(event)) is not None]
    asking = [place for place, message in enumerate(messages) if _requests(message)]
    added: list[EventDraft] = []
    try:
        new = [place for place in asking if context.log.find(namespace, messages[place].id) is None]
        if not new:
            return named
        context.catch_up(namespace)
        with context.read_models.reading(namespace) as snapshot:
            recorded = [message for _, message in _messages(context, namespace, snapshot)]
            for place in new[:_REQUESTS_MAX]:
                before = [*recorded, *messages[:place]]
                added += _events(context, namespace, snapshot, messages[place], before)
    except RecollectError:
        return named
    ids = {event.id for event in named}
    return [*named, *(event for event in added if event.id not in ids)][: max(len(named), BATCH_EVENTS_MAX)]


def forget(context: JobContext, namespace: str, _: int) -> int:
    """Forget what the messages that are not extracted yet ask for; return the number of appended events."""
    return append_derived(context, namespace, lambda snapshot: _planned(context, namespace, snapshot))


def _planned(context: JobContext, namespace: str, snapshot: Snapshot) -> list[EventDraft]:
    """Return the events for the messages after the cursor of the extraction that are not in the log."""
    cursor = snapshot.progress.job_cursor("extraction")
    if not any(_requests(message) for _, message in _messages(context, namespace, snapshot, after=cursor)):
        return []
    messages = [*_messages(context, namespace, snapshot)]
    asking = [place for place, (version, message) in enumerate(messages) if version > cursor and _requests(message)]
    drafts: dict[str, EventDraft] = {}
    for place in asking[:_REQUESTS_MAX]:
        before = [message for _, message in messages[:place]]
        drafts |= {added.id or "": added for added in _events(context, namespace, snapshot, messages[place][1], before)}
    return [added for id, added in drafts.items() if context.log.find(namespace, id) is None][:BATCH_EVENTS_MAX]


def _requests(message: SpokenMessage) -> list[ForgetRequest]:
    return forget_requests(message.text, message.speaker) if message.is_user else []


def _content(event: EventDraft | RecordedEvent) -> str:
    """Return the text of a message, or of all its turns."""
    payload = orjson.loads(event.payload)
    return "\n".join(turn.get("text") or "" for turn in payload.get("turns") or [payload])


def _message(event: EventDraft | RecordedEvent) -> SpokenMessage | None:
    """Return a message as it is compared; None: the event is none."""
    if event.type != "message.added" or event.id is None:
        return None
    return spoken_message(event.id, event.session_id, event.actor, event.occurred_at_us, orjson.loads(event.payload))


def _messages(
    context: JobContext, namespace: str, snapshot: Snapshot, after: int = 0
) -> Iterator[tuple[int, SpokenMessage]]:
    """Yield the version and the text of the messages that are not forgotten, oldest first."""
    hidden = snapshot.memory_ids.forgotten()
    while after < snapshot.version:
        events = context.log.read(namespace, after=after, limit=min(_BATCH, snapshot.version - after))
        if not events:
            return
        after = events[-1].version
        for event in events:
            if event.type == "message.added" and event.id not in hidden and not event.is_erased:
                message = _message(event)
                if message is not None:
                    yield event.version, message


def _events(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    message: SpokenMessage,
    before: Sequence[SpokenMessage],
) -> list[EventDraft]:
    """Return the events that forget what a message asks for; none when nothing is clear."""
    requests = _requests(message)
    own = {it.id for it in before if it.is_user and it.speaker == message.speaker}
    messages: dict[str, SpokenMessage] = {}
    knowledge: dict[str, str] = {}
    for request in requests:
        matching = matching_messages(request, message, before)
        messages |= matching
        matched = matching.keys()
        knowledge |= {
            item.id: item.kind
            for item in snapshot.knowledge.items()
            if item.kind in _KINDS
            and messages.keys().isdisjoint(item.source_events)
            and (item.kind != "entity" or not matched.isdisjoint(own))
            and names_knowledge(request, item.line, item.source_events, message.speaker, own)
        }
    if not messages and not knowledge:
        return []
    # The request itself says what is forgotten.
    if is_request_alone(message.text, message.speaker) or any(len(request.stems) > 2 for request in requests):
        messages[message.id] = message
    summaries = resummarised(context, namespace, snapshot, [*messages])
    return [
        *(_forgotten(message, id, session_id=it.session_id) for id, it in messages.items()),
        *(_forgotten(message, id, kind="entity" if kind == "entity" else "memory") for id, kind in knowledge.items()),
        *summaries,
    ]


def _forgotten(
    request: SpokenMessage, memory_id: str, *, kind: str = "memory", session_id: str | None = None
) -> EventDraft:
    """Return the event that forgets a memory for a request."""
    own_kind = {} if kind == "memory" else {"kind": kind}
    return draft(
        {
            "id": derived_id("forget", request.id, memory_id),
            "type": "memory.forgotten",
            "session_id": session_id,
            "actor": ACTOR,
            "causation_id": request.id,
            "payload": {"memory_id": memory_id, "reason": _REASON, **own_kind},
        }
    )._replace(occurred_at_us=request.occurred_at_us)
