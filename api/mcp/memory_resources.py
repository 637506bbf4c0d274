"""Memory resources: the profile of the user, and single memories by id, which a client may attach to a conversation."""

from __future__ import annotations

from urllib.parse import unquote

import orjson

from recollect.api.mcp.shown_memories import shown_memory
from recollect.api.mcp.shown_secrets import text_without_secrets
from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.errors import NotFound

_PROFILE = "recollect://profile"
_MEMORY = "recollect://memory/"
_TEXT, _JSON = "text/markdown", "application/json"

#: Address, name and media type of each resource, and of each template.
RESOURCES = ((_PROFILE, "who the user is, and what the last sessions were about", _TEXT),)
TEMPLATES = ((f"{_MEMORY}{{id}}", "one memory of any kind, by its id", _JSON),)


def read_resource(session: ToolSession, uri: str) -> tuple[str, str]:
    """Return the text of a resource and its media type.

    Raises:
        NotFound: there is no such resource. ScopeMissing: the caller may not read.
    """
    session.caller.require_scopes({"read"})
    if uri == _PROFILE:
        text, media_type = profile(session) or "The memory has no profile yet.", _TEXT
    elif uri.startswith(_MEMORY):
        memory = shown_memory(session, unquote(uri.removeprefix(_MEMORY)))
        text = text_without_secrets(session, orjson.dumps(memory, option=orjson.OPT_INDENT_2).decode())
        media_type = _JSON
    else:
        raise NotFound(f"there is no such resource; use {_PROFILE} or {_MEMORY}ID", field="uri")
    session.record("resource", frozenset({"read"}), ToolAnswer(text="", data={}, count=1))
    return text, media_type


def profile(session: ToolSession) -> str:
    """Return the context for the start of a session; empty when there is nothing."""
    return str(session.retrieve(RetrieveRequest(query="", mode="passive", speaker=session.speaker))["context"])
