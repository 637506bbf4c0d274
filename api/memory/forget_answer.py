"""Forget answer: tells the caller of a turn what its message asked to forget, and what was forgotten for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result_json import ForgetCandidateJson, ForgottenJson
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import RecollectError
from recollect.jobs.forgetting.forget_events import ACTOR, requests_of
from recollect.jobs.forgetting.forget_requests import ForgetRequest

#: Events at the end of the log among which the message is looked for: it was appended for this retrieval, or before it.
_TAIL_EVENTS = 500
#: Memories that an unclear request may mean, at most.
_CANDIDATES_MAX = 3
_UNCLEAR = (
    "The user asks to forget something, but it is not clear what, so nothing was forgotten. Ask what exactly to forget."
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
    return ForgetAnswer(candidates=_candidates(parts, namespace, request, requests, appended), notes=(_UNCLEAR,))


def _is_message(event: RecordedEvent, query: str, appended: Sequence[str]) -> bool:
    """Return whether an event is the message of the turn."""
    if event.type != "message.added" or event.is_erased:
        return False
    return event.id in appended if appended else event.data().get("text") == query


def _candidates(
    parts: MemoryParts,
    namespace: str,
    request: RetrieveRequest,
    requests: Sequence[ForgetRequest],
    appended: Sequence[str],
) -> tuple[ForgetCandidateJson, ...]:
    """Return the memories that the words of an unclear request find."""
    words = " ".join(part.text for part in requests)
    result = parts.retriever.retrieve(
        namespace,
        RetrieveRequest(query=words, limit=_CANDIDATES_MAX, speaker=request.speaker, no_store=True),
        exclude=appended,
    )
    return tuple(ForgetCandidateJson(id=item.id, kind=item.kind, text=item.text) for item in result.items)
