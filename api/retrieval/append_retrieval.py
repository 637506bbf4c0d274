"""Append retrieval: the passive request for a message that is appended in the same call (`001`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.field_problems import first_problem

#: Fields of a request that the appended message determines, with the error for a caller who sets them.
_FIXED_FIELDS = {
    "query": "the appended message is the query; leave this field out, or call retrieve",
    "as_of": "the retrieval of an append is of the present; leave this field out, or call retrieve",
}


def turn_request(drafts: Sequence[EventDraft], options: Mapping[str, Any]) -> RetrieveRequest | None:
    """Return the passive request for the last message of a user in `drafts`; None without such a message.

    Parameters:
        options: further fields of the request, by name.

    Raises:
        InvalidInput: an option is invalid, or the message determines it.
    """
    for name, reason in _FIXED_FIELDS.items():
        if options.get(name) is not None:
            raise InvalidInput(reason, field=name)
    messages = (draft for draft in reversed(drafts) if draft.type == "message.added")
    message, payload = next(
        ((draft, payload) for draft in messages if (payload := orjson.loads(draft.payload))["role"] == "user"),
        (None, None),
    )
    query = "" if payload is None else _query_text(payload)
    session = {} if message is None or message.session_id is None else {"session_id": message.session_id}
    speaker = {} if message is None or payload is None else {"speaker": _speaker(message, payload)}
    try:
        request = RetrieveRequest.model_validate({"mode": "passive", **session, **speaker, **options, "query": query})
    except ValidationError as error:
        raise first_problem(error, RetrieveRequest) from None
    return None if message is None else request


def _speaker(message: EventDraft, payload: dict[str, Any]) -> str:
    """Return who says a message, or its last turn."""
    turns: list[dict[str, Any]] = payload.get("turns") or [{}]
    return turns[-1].get("name") or payload.get("name") or message.actor or "user"


def _query_text(payload: dict[str, Any]) -> str:
    """Return the query text of a message: its text, the text of its last turn, or its data as JSON."""
    if "text" in payload:
        return payload["text"]
    if "turns" in payload:
        return payload["turns"][-1]["text"]
    return orjson.dumps(payload.get("data")).decode()
