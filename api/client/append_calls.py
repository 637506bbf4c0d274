"""Append calls: the requests that append events or messages, and retrievals.

Events without an id get one here, before the first attempt, so that a repeated append records nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uuid_utils
from pydantic import BaseModel

from recollect.api.client import answers
from recollect.api.client.call import Call, encoded, namespace_path, query
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.events.envelope import Appended
from recollect.events.errors import InvalidInput, RecollectError

if TYPE_CHECKING:
    from recollect.api.memory.chat_messages import ChatInput
    from recollect.api.memory.recollect import Event


def append(namespace: str, events: Event | Sequence[Event], expected_version: int | None) -> Call[list[Appended]]:
    """Describe `Recollect.append`."""
    listed, own_ids = _with_ids([_fields(event) for event in _listed(events)])
    return Call(
        method="POST",
        path=namespace_path(namespace, "events"),
        body=encoded({"events": listed, "expected_version": expected_version}),
        read=partial(answers.appended, own_ids=own_ids),
        event_ids=_ids(listed),
    )


def append_and_retrieve(
    namespace: str,
    events: Event | Sequence[Event],
    expected_version: int | None,
    wait: bool,
    options: Mapping[str, Any],
) -> Call[tuple[list[Appended], RetrieveResult | None]]:
    """Describe `Recollect.append_and_retrieve`."""
    listed, own_ids = _with_ids([_fields(event) for event in _listed(events)])
    is_stored = not options.get("no_store")
    return Call(
        method="POST",
        path=namespace_path(namespace, "events"),
        parameters=query({"retrieve": True, "wait": wait, **options}),
        body=encoded({"events": listed, "expected_version": expected_version}),
        read=partial(_appended_and_retrieved, own_ids=own_ids),
        event_ids=_ids(listed) if is_stored else (),
        # Where events are to be recorded, the caller has to learn that they are not.
        fallback=None if is_stored else _nothing_retrieved,
    )


def add(
    namespace: str,
    messages: ChatInput,
    session_id: str | None,
    occurred_at: datetime | str | None,
    metadata: Mapping[str, Any] | None,
) -> Call[list[Appended]]:
    """Describe `Recollect.add`."""
    if isinstance(messages, str):
        given: list[object] = [{"role": "user", "content": messages}]
    else:
        given = [_fields(message) for message in _listed(messages)]
    listed, own_ids = _with_ids(given)
    common = {"session_id": session_id, "occurred_at": occurred_at, "metadata": metadata}
    return Call(
        method="POST",
        path=namespace_path(namespace, "messages"),
        body=encoded({"messages": listed, **common}),
        read=partial(answers.appended, own_ids=own_ids),
        event_ids=_ids(listed),
    )


def retrieve(
    namespace: str, query: str | RetrieveRequest, wait: bool, options: Mapping[str, Any]
) -> Call[RetrieveResult]:
    """Describe `Recollect.retrieve`.

    Raises:
        InvalidInput: an option is wrong. InvalidNamespace: the name.
    """
    request = query if isinstance(query, RetrieveRequest) else RetrieveRequest.checked({"query": query, **options})
    return Call(
        method="POST",
        path=namespace_path(namespace, "retrieve"),
        parameters=(("wait", "true" if wait else "false"),),
        body=encoded(request.model_dump(mode="json", exclude_unset=True)),
        read=answers.retrieval,
        fallback=answers.no_retrieval,
    )


def _appended_and_retrieved(
    answer: dict[str, Any], own_ids: frozenset[str]
) -> tuple[list[Appended], RetrieveResult | None]:
    result = answer["retrieval"]
    return answers.appended(answer, own_ids), None if result is None else answers.retrieval(result)


def _nothing_retrieved(error: RecollectError, latency_ms: float) -> tuple[list[Appended], RetrieveResult | None]:
    return [], answers.no_retrieval(error, latency_ms)


def _listed(events: object) -> Sequence[object]:
    """Return events or messages as a sequence; a single one becomes a sequence of one."""
    if isinstance(events, Mapping | BaseModel):
        return [cast(object, events)]
    if isinstance(events, Sequence) and not isinstance(events, str | bytes):
        return cast("Sequence[object]", events)
    raise InvalidInput("give an event or a list of events; a message of a chat goes to add()", field="events")


def _fields(event: object) -> object:
    """Return the fields of an event that is an instance of the catalogue, or of a message; of others itself."""
    if isinstance(event, BaseModel):
        fields = event.model_dump(mode="json", exclude_defaults=True)
        name: object = getattr(event, "type", None)
        return fields if name is None else fields | {"type": name}
    return event


def _with_ids(events: Sequence[object]) -> tuple[list[object], frozenset[str]]:
    """Return the events with an id each, and the new ids; the server rejects items that are not mappings."""
    own_ids: set[str] = set()
    listed: list[object] = []
    for event in events:
        if not isinstance(event, Mapping):
            listed.append(event)
            continue
        fields: dict[str, Any] = dict(cast("Mapping[str, Any]", event))
        if fields.get("id") is None:
            fields["id"] = str(uuid_utils.uuid7())
            own_ids.add(fields["id"])
        listed.append(fields)
    return listed, frozenset(own_ids)


def _ids(events: Sequence[object]) -> tuple[str, ...]:
    """Return the ids of events."""
    return tuple(str(cast("Mapping[str, Any]", event)["id"]) for event in events if isinstance(event, Mapping))
