"""Retrieval on the way in: what belongs to a message is asked for while it is recorded, in one round trip (`001`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput, first_problem

#: Fields of a request that a turn itself gives.
_FIXED_FIELDS = {
    "query": "a turn is asked for by its message; leave it out, or call retrieve",
    "as_of": "a turn is prepared with what is known now; leave it out, or call retrieve",
}


def turn_request(drafts: Sequence[EventDraft], options: Mapping[str, Any]) -> RetrieveRequest | None:
    """Return what to ask for the last message of a user in `drafts`; None when there is none.

    Parameters:
        options: further fields of the request.

    Raises:
        InvalidInput: an option is wrong.
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
    try:
        request = RetrieveRequest.model_validate({"mode": "passive", **session, **options, "query": query})
    except ValidationError as error:
        raise first_problem(error) from None
    return None if message is None else request


def _query_text(payload: dict[str, Any]) -> str:
    """Return what a message asks: its text; of turns the last one; of data its JSON."""
    if "text" in payload:
        return payload["text"]
    if "turns" in payload:
        return payload["turns"][-1]["text"]
    return orjson.dumps(payload.get("data")).decode()
