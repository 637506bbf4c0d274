"""Memory prompts: messages that a user picks from a menu of the client, with what the memory has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.api.mcp.memory_resources import profile
from recollect.api.mcp.recall_tool import recall
from recollect.api.mcp.tool_arguments import NAME_CHARS_MAX, RecallArguments
from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.mcp.tool_session import ToolSession
from recollect.events.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPrompt:
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
