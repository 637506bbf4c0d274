"""Hook input: the prompt on standard input of a hook, as text or in the JSON of coding agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import orjson

#: Bytes of standard input that are read: a prompt with a pasted log; more than a request may have is cut.
_INPUT_BYTES_MAX = 1 << 20
#: Characters of an id of a host that becomes part of an event's id or session.
_ID_CHARS_MAX = 90
#: Events of hosts without a prompt: a conversation begins (Claude Code and Codex; Kiro).
_STARTS = frozenset(("SessionStart", "agentSpawn"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HookInput:
    """The input that a host gives its hook."""

    #: The user's message; empty at the start of a conversation.
    prompt: str
    #: The host's id of the conversation.
    session_id: str | None = None
    #: The host's id of the message in its session, by which recording it again adds nothing.
    prompt_id: str | None = None
    #: Whether a conversation begins, so that who the user is belongs into the context.
    is_start: bool = False


def read_hook_input(stream: BinaryIO) -> HookInput:
    """Return the input of a hook: JSON with the fields of a host, or else the text of a prompt."""
    content = stream.read(_INPUT_BYTES_MAX)
    text = content.decode("utf-8", errors="replace").strip()
    if text.startswith("{"):
        try:
            value: object = orjson.loads(content)
        except orjson.JSONDecodeError:
            # A prompt may begin with a brace.
            return HookInput(prompt=text)
        if isinstance(value, dict) and {"prompt", "hook_event_name"} & value.keys():
            return _from_host(cast("dict[str, Any]", value))
    return HookInput(prompt=text)


def _from_host(fields: dict[str, Any]) -> HookInput:
    """Return the input from the fields of Claude Code, Codex and Kiro, which have the same names."""
    prompt = fields.get("prompt")
    return HookInput(
        prompt=prompt.strip() if isinstance(prompt, str) else "",
        session_id=_id(fields.get("session_id")),
        # That of Claude Code; that of Codex.
        prompt_id=_id(fields.get("prompt_id")) or _id(fields.get("turn_id")),
        is_start=fields.get("hook_event_name") in _STARTS,
    )


def _id(value: object) -> str | None:
    """Return an id of a host; None when it cannot be one of an event."""
    is_id = isinstance(value, str) and value.isprintable() and 1 <= len(value) <= _ID_CHARS_MAX
    return str(value) if is_id else None
