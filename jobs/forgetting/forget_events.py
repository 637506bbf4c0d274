"""Forget events: derives the events that forget what a user's message asks to forget.

They are appended in one batch with the message, so that nothing can be recalled in between; a job derives them for
messages that came in another way. Their ids are hashes of the message and of what is forgotten, so that both add
nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson
import uuid_utils

from recollect.events.envelope import ENCODING_JSON, EventDraft, RecordedEvent
from recollect.events.errors import RecollectError
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.events.memory_kinds import MEMORY_KINDS
from recollect.events.validation import draft
from recollect.jobs.compaction.resummarise import resummarised
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.event_drafts import derived_id, rest_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.change_features import stems_of
from recollect.jobs.forgetting.forget_matches import (
    SimilaritiesTo,
    SpokenMessage,
    likeliest_messages,
    matching_messages,
    named_texts,
    spoken_message,
    values_of,
)
from recollect.jobs.forgetting.forget_model import Encoders, encoders_of
from recollect.jobs.forgetting.forget_requests import (
    SENTENCES_MAX,
    ForgetRequest,
    forget_requests,
    may_request,
    stays,
)
from recollect.projections.embeddings.reading_encoder import Embed, reading_embed, wait_for_encoders
from recollect.projections.projection_settings import DEFAULT_MODEL, FORGETTING_MODEL
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.sentences import sentence_bounds

#: The producer of the events, and their reason.
ACTOR = "forgetting"
_REASON = "the user asked to forget it"
#: Events of the log that are read at once.
_BATCH = 1_000
#: Requests of one batch that are done: each is compared with all messages of its speaker.
_REQUESTS_MAX = 20
#: Seconds that an append waits for the projection of the messages before it, and for the encoder to load, which takes
#: .5 s once it was converted; a client waits 5.
_CATCH_UP_SECONDS_MAX = 1.0
_ENCODER_SECONDS_MAX = 2.0
#: Seconds that the job waits for the models.
_LOAD_SECONDS_MAX = 60.0
#: Kinds of knowledge that a request can name. Documents are not the user's words.
_KINDS = frozenset(kind.name for kind in MEMORY_KINDS if kind.has_status)
#: Messages of one append that are read before it: a sentence takes .1 ms, one in five is embedded, in 6 ms. The job
#: reads the requests of a larger batch.
_READ_MESSAGES_MAX = 20
#: Items of knowledge without a message that a request is compared with.
_ITEMS_MAX = 24
#: Events before an answer among which those of its request are.
_TAIL_EVENTS = 64


def may_read_all(drafts: Sequence[EventDraft]) -> bool:
    """Return whether `with_forgettings` may read all messages, too long for an event loop: 1 s for 50,000."""
    said = _said(drafts)
    return len(said) <= _READ_MESSAGES_MAX and _may_ask(said)


def with_forgettings(context: JobContext, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    """Return the drafts, and after them the events that forget what the messages among them ask to forget.

    Where the read model cannot be read in time, the job adds them later: an append depends on the log alone.
    """
    said = _said(drafts)
    if len(said) > _READ_MESSAGES_MAX:
        return [*drafts]
    if not _may_ask(said):
        return _with_answer(context, namespace, drafts)
    named = [event if event.id else event._replace(id=str(uuid_utils.uuid7())) for event in drafts]
    by_id = {event.id: event for event in named}
    messages = _said(named)
    asking = [place for place, message in enumerate(messages) if _requests(context, message)]
    added: list[EventDraft] = []
    try:
        new = [place for place in asking if context.log.find(namespace, messages[place].id) is None]
        if not new:
            return named
        deadline = time.monotonic() + _CATCH_UP_SECONDS_MAX
        if context.read_models.catch_up(namespace, deadline=deadline).behind:
            return named
        with context.read_models.reading(namespace) as snapshot:
            recorded = [*_messages(context, namespace, snapshot)]
            for place in new[:_REQUESTS_MAX]:
                before = [*recorded, *messages[:place]]
                after = messages[place + 1 :]
                event = by_id[messages[place].id]
                added += _events(context, namespace, snapshot, event, before, after, waits=False)
    except RecollectError:
        return named
    return [*named, *(event for event in added if event.id not in by_id)][: max(len(named), BATCH_EVENTS_MAX)]


def forget(context: JobContext, namespace: str, _: int) -> int:
    """Forget what the messages that are not extracted yet ask for; return the number of appended events."""
    return append_derived(context, namespace, lambda snapshot: _planned(context, namespace, snapshot))


def _encoders(context: JobContext, *, waits: bool) -> Encoders | None:
    """Return what reads requests and messages; None while their models load: words decide alone then.

    Parameters:
        waits: whether to wait until they are loaded. An append waits for the encoder alone, and not for long.
    """
    embedder = context.vectors().embedder
    if waits:
        return encoders_of(embedder, _LOAD_SECONDS_MAX)
    return encoders_of(embedder, _ENCODER_SECONDS_MAX) if embedder.state == "ready" else None


def _planned(context: JobContext, namespace: str, snapshot: Snapshot) -> list[EventDraft]:
    """Return the events for the messages after the cursor of the extraction that are not in the log."""
    cursor = snapshot.progress.job_cursor("extraction")
    unread = _messages(context, namespace, snapshot, after=cursor)
    asking = {it.id for it in unread if _requests(context, it, waits=True)}
    messages = [*_messages(context, namespace, snapshot)] if asking else []
    places = [place for place, message in enumerate(messages) if message.id in asking]
    drafts: dict[str, EventDraft] = {}
    for place in places[:_REQUESTS_MAX]:
        before, after = messages[:place], messages[place + 1 :]
        event = context.log.find(namespace, messages[place].id)
        if event is not None:
            events = _events(context, namespace, snapshot, event, before, after, waits=True)
            drafts |= {added.id or "": added for added in events}
    return [added for id, added in drafts.items() if context.log.find(namespace, id) is None][:BATCH_EVENTS_MAX]


def requests_of(context: JobContext, text: str, speaker: str, *, waits: bool = False) -> list[ForgetRequest]:
    """Return what a text asks to forget; the encoder of forgetting is loaded for a text that may ask alone.

    Parameters:
        waits: whether to wait until it is loaded. An append and a retrieval do not: words decide alone until then, and
            the job reads the message again.
    """
    if not may_request(text):
        return []
    if waits:
        wait_for_encoders(context.vectors().embedder, [FORGETTING_MODEL], context.stop)
    encoders = encoders_of(context.vectors().embedder, 0)
    return forget_requests(text, speaker, None if encoders is None else encoders.read_pairs)


def _requests(context: JobContext, message: SpokenMessage, *, waits: bool = False) -> list[ForgetRequest]:
    """Return the requests of a message that are carried out when what they name is clear."""
    requests = requests_of(context, message.text, message.speaker, waits=waits) if message.is_user else []
    return [it for it in requests if it.is_sure]


def _message(event: EventDraft | RecordedEvent, version: int = 0) -> SpokenMessage | None:
    """Return a message as it is compared; None for another event."""
    if event.type != "message.added":
        return None
    payload = orjson.loads(event.payload)
    return spoken_message(event.id or "", event.session_id, event.actor, event.occurred_at_us, payload, version)


def _said(drafts: Sequence[EventDraft]) -> list[SpokenMessage]:
    """Return the messages among drafts."""
    return [message for event in drafts if (message := _message(event)) is not None]


def _may_ask(said: Sequence[SpokenMessage]) -> bool:
    """Return whether a user may ask to forget in one of some messages, by words alone."""
    return any(message.is_user and may_request(message.text) for message in said)


def _messages(context: JobContext, namespace: str, snapshot: Snapshot, after: int = 0) -> Iterator[SpokenMessage]:
    """Yield the messages that are not forgotten, oldest first."""
    hidden = snapshot.memory_ids.forgotten()
    while after < snapshot.version:
        events = context.log.read(namespace, after=after, limit=min(_BATCH, snapshot.version - after))
        if not events:
            return
        after = events[-1].version
        for event in events:
            if event.type == "message.added" and event.id not in hidden and not event.is_erased:
                message = _message(event, event.version)
                if message is not None:
                    yield message


def _events(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    event: EventDraft | RecordedEvent,
    before: Sequence[SpokenMessage],
    after: Sequence[SpokenMessage],
    *,
    waits: bool,
) -> list[EventDraft]:
    """Return the events that forget what a message asks for; none when nothing is clear.

    Parameters:
        before, after: the messages before and after it, oldest first; its answer may repeat what is forgotten.
        waits: as in `requests_of`.
    """
    message = _message(event)
    if message is None:
        return []
    encoders = _encoders(context, waits=waits)
    # Read again: the encoder may have been loaded meanwhile.
    requests = _requests(context, message, waits=waits)
    similarities_to = _similarities(context, namespace, snapshot, encoders)
    following = next((it for it in requests if it.following), None)
    messages = {} if following is None else {message.id: message}
    named = [it for it in requests if not it.following]
    for request in named:
        messages |= matching_messages(request, message, before, encoders, similarities_to)
    knowledge = _knowledge(snapshot, named, message.speaker, encoders) | _entities(snapshot, messages, before)
    if not messages and not knowledge:
        return []
    answer = next((it for it in after if it.session_id == message.session_id), None)
    if answer is not None and not answer.is_user and _repeats(answer.text, messages.values()):
        messages[answer.id] = answer
    embed = reading_embed(context.vectors().embedder, waits=waits)
    if following is None:
        rest = _rest(message.text, requests, [*messages.values()], embed)
    else:
        # What a colon introduces goes on to the end of its message.
        rest = message.text[: message.text.replace("’", "'").find(following.text)].strip()
    has_turns = "turns" in orjson.loads(event.payload)
    if not (rest and has_turns):
        # Of a message with the words of several, none can be left out.
        messages[message.id] = message
    summaries = resummarised(context, namespace, snapshot, [*messages])
    return [
        *(_forgotten(message, id, session_id=it.session_id) for id, it in messages.items()),
        *(_forgotten(message, id, kind="entity" if kind == "entity" else "memory") for id, kind in knowledge.items()),
        *summaries,
        *([_with_text(event, rest)] if rest and not has_turns else []),
    ]


def _rest(text: str, requests: Sequence[ForgetRequest], forgotten: Sequence[SpokenMessage], embed: Embed | None) -> str:
    """Return what stays of a message that asks to forget: nothing that repeats what is forgotten."""
    parts: list[str] = []
    after = 0
    for place, (start, end) in enumerate(sentence_bounds(text)):
        sentence = text[start:end]
        # More sentences than are read are a text, which stays.
        if (place >= SENTENCES_MAX or stays(sentence, requests, embed)) and not _repeats(sentence, forgotten):
            parts.append(text[after:end])
        after = end
    return "".join(parts).strip()


def _with_text(event: EventDraft | RecordedEvent, text: str) -> EventDraft:
    """Return a message with another text, which the first one caused."""
    payload = orjson.loads(event.payload) | {"text": text}
    return EventDraft(
        id=rest_id(event.id or ""),
        type=event.type,
        schema_version=event.schema_version,
        occurred_at_us=event.occurred_at_us,
        session_id=event.session_id,
        actor=event.actor,
        causation_id=event.id,
        correlation_id=event.correlation_id,
        encoding=ENCODING_JSON,
        payload=orjson.dumps(payload),
        subject=payload.get("name") or event.actor,
    )


def _similarities(
    context: JobContext, namespace: str, snapshot: Snapshot, encoders: Encoders | None
) -> SimilaritiesTo | None:
    """Return the comparison of a text with messages by their stored vectors; None without an encoder of texts."""
    if encoders is None:
        return None

    def similarities_to(text: str, messages: Sequence[SpokenMessage]) -> list[float]:
        stored = context.vectors().vectors_of_episodes(namespace, snapshot, [it.version for it in messages])
        vector = encoders.embed([text])[0].vector
        return [float(stored[it.version] @ vector) if it.version in stored else 0.0 for it in messages]

    return similarities_to


def forget_candidates(
    context: JobContext, namespace: str, requests: Sequence[ForgetRequest], message_id: str, count: int
) -> list[SpokenMessage]:
    """Return the earlier messages of its speaker that an unclear request of a message may name, likeliest first."""
    context.read_models.catch_up(namespace, deadline=time.monotonic() + _CATCH_UP_SECONDS_MAX)
    with context.read_models.reading(namespace) as snapshot:
        messages = [*_messages(context, namespace, snapshot)]
        message = next((it for it in messages if it.id == message_id), None)
        if message is None:
            return []
        own = [it for it in messages if it.is_user and it.speaker == message.speaker and it.version < message.version]
        encoders = _encoders(context, waits=False)
        return likeliest_messages(requests, own, encoders, _similarities(context, namespace, snapshot, encoders))[
            :count
        ]


def is_undecided(context: JobContext, count: int) -> bool:
    """Return whether the job decides later what a message asks to forget: its models load, or it came among many.

    Parameters:
        count: messages that were appended with it.
    """
    embedder = context.vectors().embedder
    is_loading = embedder.state == "loading" or (embedder.state == "ready" and embedder.name == DEFAULT_MODEL)
    return count > _READ_MESSAGES_MAX or (is_loading and encoders_of(embedder, 0) is None)


def _knowledge(
    snapshot: Snapshot, requests: Sequence[ForgetRequest], speaker: str, encoders: Encoders | None
) -> dict[str, str]:
    """Return the kinds of the items of knowledge about a speaker that no message states and a request names, by id."""
    items = [
        item
        for item in snapshot.knowledge.items()
        if item.kind in _KINDS and not item.source_events and item.line.casefold().startswith(speaker.casefold())
    ][-_ITEMS_MAX:]
    lines = ["I " + item.line[len(speaker) :].removeprefix("'s") for item in items]
    ids = [item.id for item in items]
    places = {place for it in requests for place in named_texts(it.text, it.odds, lines, ids, encoders)}
    return {items[place].id: items[place].kind for place in places}


def _entities(
    snapshot: Snapshot, forgotten: Mapping[str, SpokenMessage], before: Sequence[SpokenMessage]
) -> dict[str, str]:
    """Return the kind of the described entities that forgotten messages alone name, by id."""
    gone = "\n".join(it.text for it in forgotten.values()).casefold()
    if not gone:
        return {}
    kept = "\n".join(it.text for it in before if it.id not in forgotten).casefold()
    speakers = {it.speaker.casefold() for it in before}
    names = {name: name.casefold() for name in snapshot.entities.described()}
    return {id: "entity" for id, name in names.items() if name in gone and name not in kept and name not in speakers}


def _with_answer(context: JobContext, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    """Return the drafts; the first is forgotten if it is an answer that repeats what the request before it forgot."""
    if not drafts or drafts[0].type != "message.added":
        return [*drafts]
    first = drafts[0] if drafts[0].id else drafts[0]._replace(id=str(uuid_utils.uuid7()))
    answer = _message(first)
    if answer is None or answer.is_user:
        return [*drafts]
    try:
        tail = _forgetting_tail(context, namespace)
        said = [it for it in tail if it.type == "message.added" and it.session_id == answer.session_id]
        # What is left of a request is recorded after it.
        spoken = [it for it in said if it.id != rest_id(it.causation_id or "")]
        request_id = spoken[-1].id if spoken else None
        ids = [it.data()["memory_id"] for it in tail if it.actor == ACTOR and it.causation_id == request_id]
        events = [event for id in ids if (event := context.log.find(namespace, id)) and not event.is_erased]
    except RecollectError:
        return [*drafts]
    forgotten = [it for it in map(_message, events) if it is not None]
    request = _message(spoken[-1]) if forgotten else None
    if request is None or not _repeats(answer.text, forgotten):
        return [*drafts]
    return [first, *drafts[1:], _forgotten(request, answer.id, session_id=answer.session_id)]


def _forgetting_tail(context: JobContext, namespace: str) -> list[RecordedEvent]:
    """Return the last events of a namespace; none where no request among them has forgotten anything."""
    head = context.log.head(namespace).version
    first = max(0, head - _TAIL_EVENTS)
    seen = max(first, context.unforgotten_versions.get(namespace) or 0)
    new = context.log.read(namespace, after=seen, limit=_TAIL_EVENTS)
    if not any(it.actor == ACTOR for it in new):
        context.unforgotten_versions.put(namespace, head)
        return []
    return new if seen == first else context.log.read(namespace, after=first, limit=_TAIL_EVENTS)


def _repeats(text: str, forgotten: Iterable[SpokenMessage]) -> bool:
    """Return whether a text has a value or a word of what is forgotten.

    Of 37 sentences next to labelled requests that are worth keeping, 21 have such a word: none of them is other news.
    """
    stems, values = stems_of(text), values_of(text)
    return any(not (stems.isdisjoint(stems_of(it.text)) and values.isdisjoint(it.values)) for it in forgotten)


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
