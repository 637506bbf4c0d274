"""Field problems: the first problem of an input, and the field that a caller means with an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from recollect.events.errors import InvalidInput

#: Messages by the type of the problem, where pydantic's own do not say what to do.
_NO_TIME = "give a time with its zone, such as 2026-11-20T09:00:00Z"
_PLAIN_MESSAGES = {
    "extra_forbidden": "there is no such field",
    "missing": "is missing",
    "datetime_parsing": _NO_TIME,
    "datetime_from_date_parsing": _NO_TIME,
    "timezone_aware": _NO_TIME,
}
#: Fields that a message names besides the first one.
_FIELDS_NAMED = 5
#: Names of fields in other memory libraries and APIs, each with ours; the first one that the object has is meant.
_OTHER_NAMES = {
    "content": ("text", "messages"),
    "message": ("text", "messages"),
    "body": ("text", "content"),
    "memory": ("text", "object"),
    "data": ("text", "payload"),
    "text": ("content", "query", "object"),
    "value": ("object",),
    "input": ("messages", "query"),
    "question": ("query",),
    "prompt": ("query",),
    "search_query": ("query",),
    "q": ("query",),
    "top_k": ("limit",),
    "k": ("limit",),
    "n_results": ("limit",),
    "num_results": ("limit",),
    "max_results": ("limit",),
    "max_tokens": ("budget_tokens",),
    "token_budget": ("budget_tokens",),
    "filters": ("metadata",),
    "filter": ("metadata",),
    "where": ("metadata",),
    "tags": ("metadata",),
    "user_id": ("speaker", "name", "actor", "subject"),
    "user": ("speaker", "name", "actor", "subject"),
    "agent_id": ("actor",),
    "thread_id": ("session_id",),
    "conversation_id": ("session_id",),
    "chat_id": ("session_id",),
    "run_id": ("session_id",),
    "session": ("session_id",),
    "timestamp": ("occurred_at",),
    "created_at": ("occurred_at", "stated_at"),
    "time": ("occurred_at",),
    "date": ("occurred_at",),
    "event_id": ("id",),
}
#: Names of the user whose memory it is, which other libraries have where ours have the namespace.
OWNER_NAMES = frozenset(("user_id", "user"))
#: Names that a message lists when none is near; the largest payload has fewer.
_NAMES_MAX = 30
_NAME_CHARS_MAX = 80


def first_problem(error: ValidationError, model: type[BaseModel], *, root: str = "") -> InvalidInput:
    """Return the first problem of a pydantic error as an `InvalidInput`; its message names the other wrong fields.

    Parameters:
        model: what the input was to be, for the name of a field that is meant with an unknown one.
        root: the field's name when the problem concerns the input as a whole.
    """
    first, *others = error.errors(include_url=False, include_input=False)
    field = ".".join(str(part) for part in first["loc"]) or root
    reason = _PLAIN_MESSAGES.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason += _hint(model, first["loc"])
    # A field with several types has a problem for each of them.
    fields = dict.fromkeys(".".join(str(part) for part in problem["loc"]) or root for problem in others)
    names = [name for name in fields if not name.startswith(field)]
    if names:
        more = f" and {len(names) - _FIELDS_NAMED} more" if len(names) > _FIELDS_NAMED else ""
        reason += f"; also wrong: {', '.join(names[:_FIELDS_NAMED])}{more}"
    return InvalidInput(reason, field=field)


def _hint(model: type[BaseModel], path: Sequence[str | int]) -> str:
    """Return what to write in place of an unknown field of `model`; empty for a path that the model does not explain.

    Parameters:
        path: where the field is, as in an error of pydantic.
    """
    owner = _owner(model, path[:-1])
    if owner is None or not path:
        return ""
    name, own = str(path[-1])[:_NAME_CHARS_MAX].casefold(), list(owner.model_fields)
    owner_hint = "; the namespace says whose memory it is" if name in OWNER_NAMES else ""
    meant = next((other for other in _OTHER_NAMES.get(name, ()) if other in own), None)
    meant = meant or next(iter(difflib.get_close_matches(name, own, n=1, cutoff=0.75)), None)
    if meant is not None:
        return f"{owner_hint}; did you mean {meant}?"
    for field, inner in _inner_models(owner):
        for other in (name, *_OTHER_NAMES.get(name, ())):
            if other in inner.model_fields:
                return f"{owner_hint}; did you mean {field}.{other}?"
    return f"; there are {', '.join(own[:_NAMES_MAX])}"


def _owner(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model of the object at a path; None when there is none."""
    for part in path:
        if isinstance(part, int):
            continue
        inner = dict(_inner_models(model)).get(part)
        if inner is None:
            return None
        model = inner
    return model


def _inner_models(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the fields that hold an object of a model, or a list of them."""
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        if inner is not None:
            yield name, inner


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)
