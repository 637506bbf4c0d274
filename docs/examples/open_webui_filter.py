"""
title: Recollect
description: Long-term memory for every chat: recalls before each answer, and records both sides of the conversation.
version: 0.2.0
required_open_webui_version: 0.12.0
"""

from __future__ import annotations

import logging
import zlib
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field

_logger = logging.getLogger(__name__)

#: How the ids of chats without a memory begin: temporary chats, and channels, whose answers other users read.
_WITHOUT_MEMORY = ("temporary:", "local:", "channel:")


class Filter:
    """Puts memories before the user's message, and records messages. Without the memory, chats go on as usual."""

    class Valves(BaseModel):
        """The settings that an administrator sees."""

        url: str = Field("http://host.docker.internal:8787", description="address of `recollect serve`")
        token: str = Field("", description="token with the scopes read and write for the namespaces below")
        namespace: str = Field("user-{user_id}", description="namespace of a user; {user_id} is filled in")
        budget_tokens: int = Field(1_500, description="tokens of the memories in a prompt, at most")
        seconds_max: float = Field(3.0, description="seconds after which a chat goes on without memories")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record the user's message, and put the memories for it before it."""
        chat = __metadata__ or {}
        messages: list[dict[str, Any]] = body.get("messages") or []
        if not messages or messages[-1].get("role") != "user":
            return body
        # Those of the body have no ids, and Open WebUI's notes on attached files. Chats over its API have no other.
        message = chat.get("user_message") or messages[-1]
        context = await self._turn(__user__, chat, "user", message, retrieve=True)
        if context:
            messages.insert(len(messages) - 1, {"role": "system", "content": context})
        return body

    async def outlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record the assistant's answer."""
        messages: list[dict[str, Any]] = body.get("messages") or []
        if messages and messages[-1].get("role") == "assistant":
            await self._turn(__user__, __metadata__ or body, "assistant", messages[-1], retrieve=False)
        return body

    async def _turn(
        self, user: dict[str, Any] | None, chat: dict[str, Any], role: str, message: dict[str, Any], *, retrieve: bool
    ) -> str:
        """Append a message, and return the memories for it; an empty text when there are none."""
        try:
            text, chat_id = _text(message.get("content")), str(chat.get("chat_id") or "")
            # The prompts of internal requests are written by a model.
            if not user or not text.strip() or chat.get("internal") or chat_id.startswith(_WITHOUT_MEMORY):
                return ""
            fields = {"role": role, "content": text}
            if message.get("id"):
                # A message that is sent again is recorded once; an edited one, and a continued answer, again.
                fields["id"] = f"open-webui:{message['id']}:{zlib.crc32(text.encode()):08x}"
            namespace = quote(self.valves.namespace.replace("{user_id}", str(user["id"])), safe="")
            async with httpx.AsyncClient(timeout=self.valves.seconds_max, trust_env=False) as client:
                answer = await client.post(
                    f"{self.valves.url.rstrip('/')}/v1/namespaces/{namespace}/messages",
                    params={"retrieve": "true", "budget_tokens": self.valves.budget_tokens} if retrieve else {},
                    json={"messages": [fields], "session_id": chat_id or None},
                    headers={"Authorization": f"Bearer {self.valves.token}"} if self.valves.token else {},
                )
            if answer.is_error:
                raise ValueError(f"status {answer.status_code}")
            return (answer.json().get("retrieval") or {}).get("context", "")
        except Exception as error:
            _logger.warning("no memories: %s: %s", type(error).__name__, error)
            return ""


def _text(content: Any) -> str:
    """Return the text of a content, which is a text or a list of parts; images are left out."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "") for part in content or [] if isinstance(part, dict)).strip()
