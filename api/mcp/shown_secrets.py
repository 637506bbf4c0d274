"""Shown secrets: hides PINs and codes in what a model reads, unless its query asks for just that one."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.retrieval.answer.withheld_secrets import SecretFilter


def without_secrets(session: ToolSession, answer: ToolAnswer, query: str) -> ToolAnswer:
    """Return an answer without the secrets that the query of the call does not ask for."""
    secrets = _filter(session, query)
    return replace(answer, text=secrets.text(answer.text), data=_shown(secrets, answer.data))


def text_without_secrets(session: ToolSession, text: str) -> str:
    """Return a text without any PIN or code."""
    return _filter(session, "").text(text)


def _filter(session: ToolSession, query: str) -> SecretFilter:
    policies = session.memory.parts.settings.privacy.policies(session.namespace)
    return SecretFilter(policies, query)


def _shown(secrets: SecretFilter, value: Any) -> Any:
    """Return a JSON value with all its texts filtered; ids stay."""
    if isinstance(value, str):
        return secrets.text(value)
    if isinstance(value, list):
        return [_shown(secrets, item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: member if name.endswith("id") else _shown(secrets, member) for name, member in members.items()}
    return value
