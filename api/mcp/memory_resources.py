"""Memory resources: the profile of the user and single memories, which a client may attach; prompts for its menu."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

import orjson
from msgspec import Struct

from recollect.api.mcp.recall_tool import recall
from recollect.api.mcp.shown_memories import shown_memory
from recollect.api.mcp.shown_secrets import text_without_secrets
from recollect.api.mcp.tool_arguments import NAME_CHARS_MAX, RecallArguments
from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.errors import InvalidInput, NotFound

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


class MemoryPrompt(Struct, frozen=True, kw_only=True):
    """One prompt."""

    name: str
    description: str
    arguments: tuple[str, ...] = ()


PROMPTS = (
    MemoryPrompt(name="catch_me_up", description="What my last sessions were about, and what is open"),
    MemoryPrompt(
        name="what_do_you_know_about",
        description="All that the memory has about a person or thing",
        arguments=("subject",),
    ),
)


def render_prompt(session: ToolSession, name: str, arguments: Mapping[str, str]) -> str:
    """Return the text of a prompt.

    Raises:
        NotFound: there is no such prompt. InvalidInput: the subject is missing. ScopeMissing: the caller may not read.
    """
    session.caller.require_scopes({"read"})
    if name == "catch_me_up":
        memories = profile(session)
        request = "Sum up in a few sentences what my last sessions were about, and what is still open."
    elif name == "what_do_you_know_about":
        subject = arguments.get("subject", "").strip()
        if not 1 <= len(subject) <= NAME_CHARS_MAX:
            raise InvalidInput(f"give 1 to {NAME_CHARS_MAX} characters", field="subject")
        memories = recall(session, RecallArguments(query=subject)).text
        request = f"Say what you know about {subject}, with dates, and what is no longer true."
    else:
        raise NotFound(f"there is no such prompt; use {', '.join(prompt.name for prompt in PROMPTS)}", field="name")
    session.record("prompt", frozenset({"read"}), ToolAnswer(text="", data={}, count=1))
    return f"{memories or 'The memory has nothing yet.'}\n\n{request} Use these memories alone."
