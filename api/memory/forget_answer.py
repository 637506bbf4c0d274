"""Forget answer: what the message of a turn asked to forget, and what was forgotten for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson
from msgspec.structs import replace

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.contract.result_json import ForgetCandidateJson, ForgottenJson
from recollect.events.envelope import Appended, EventDraft, RecordedEvent
from recollect.events.errors import RecollectError
from recollect.jobs.forgetting.forget_events import ACTOR, forget_candidates, is_undecided, requests_of
from recollect.jobs.forgetting.forget_requests import ForgetRequest

#: Events at the end of the log among which the message is looked for: it was appended for this retrieval, or before it.
_TAIL_EVENTS = 500
#: Memories that an unclear request may mean, at most.
_CANDIDATES_MAX = 3
_UNCLEAR = (
    "The user asks to forget something, but it is not clear what, so nothing was forgotten. Ask what exactly to forget."
)
_UNSURE = "The user may ask to forget something. Nothing was forgotten: if they do, ask what exactly to forget."
_UNDECIDED = (
    "The user asks to forget something. It is not decided yet what that is: say that you will forget it, and do not "
    "mention it again."
)
_FORGOTTEN = (
    "The user asked to forget something. It is forgotten: confirm it, do not repeat it, never mention it again."
)


class ForgetAnswer(NamedTuple):
    """What a message asked to forget; empty for nearly all messages."""

    forgotten: tuple[ForgottenJson, ...] = ()
    candidates: tuple[ForgetCandidateJson, ...] = ()
    #: Lines for the context, by which the assistant can confirm it. They have none of the forgotten values.
    notes: tuple[str, ...] = ()

    def added_to(self, result: RetrieveResult) -> RetrieveResult:
        """Return a result with what was asked."""
        return replace(result, forgotten=self.forgotten, forget_candidates=self.candidates) if self.notes else result


def forget_answer(
    parts: MemoryParts, namespace: str, request: RetrieveRequest, appended: Sequence[str]
) -> ForgetAnswer:
    """Return what the message of a turn asked to forget.

    Parameters:
        appended: ids of the events of the turn; without any, the message is the last one with the words of the query.
    """
    if request.as_of is not None:
        return ForgetAnswer()
    requests = requests_of(parts.job_context, request.query, request.speaker or "")
    if not requests:
        return ForgetAnswer()
    try:
        head = parts.log.head(namespace).version
        tail = parts.log.read(namespace, after=max(0, head - _TAIL_EVENTS), limit=_TAIL_EVENTS)
    except RecollectError:
        # A retrieval does not fail because of it.
        return ForgetAnswer()
    message = next((event for event in reversed(tail) if _is_message(event, request.query, appended)), None)
    if message is None:
        return ForgetAnswer()
    forgotten = tuple(
        ForgottenJson(id=event.data()["memory_id"], kind=event.data().get("kind", "memory"), event_id=event.id)
        for event in tail
        if event.type == "memory.forgotten" and event.actor == ACTOR and event.causation_id == message.id
    )
    if forgotten:
        return ForgetAnswer(forgotten, notes=(_FORGOTTEN,))
    if is_undecided(parts.job_context, len(appended)):
        return ForgetAnswer(notes=(_UNDECIDED,))
    note = _UNCLEAR if any(it.is_sure for it in requests) else _UNSURE
    return ForgetAnswer(candidates=_candidates(parts, namespace, requests, message.id), notes=(note,))


def with_forgotten(recorded: Sequence[Appended], prepared: Sequence[EventDraft], own: int) -> list[Appended]:
    """Return a caller's events with the memories that were forgotten because of them.

    Parameters:
        prepared: the events as they were appended.
        own: the number of those of the caller, which come before those that the server has added.
    """
    forgotten: dict[str | None, list[str]] = {}
    for event in prepared[own:]:
        if event.type == "memory.forgotten" and event.actor == ACTOR:
            forgotten.setdefault(event.causation_id, []).append(orjson.loads(event.payload)["memory_id"])
    return [
        event._replace(forgotten=tuple(forgotten[event.id])) if event.id in forgotten else event
        for event in recorded[:own]
    ]


def _is_message(event: RecordedEvent, query: str, appended: Sequence[str]) -> bool:
    """Return whether an event is the message of the turn."""
    if event.type != "message.added" or event.is_erased:
        return False
    return event.id in appended if appended else event.data().get("text") == query


def _candidates(
    parts: MemoryParts, namespace: str, requests: Sequence[ForgetRequest], message_id: str
) -> tuple[ForgetCandidateJson, ...]:
    """Return the user's own messages that an unclear request may mean."""
    try:
        likeliest = forget_candidates(parts.job_context, namespace, requests, message_id, _CANDIDATES_MAX)
    except RecollectError:
        return ()
    return tuple(ForgetCandidateJson(id=it.id, kind="episode", text=it.text) for it in likeliest)
