"""
title: Recollect
description: Long-term memory for every chat: recalls before each answer, and records both sides of the conversation.
version: 0.1.0
required_open_webui_version: 0.6.31
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field

_logger = logging.getLogger(__name__)


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
        messages: list[dict[str, Any]] = body.get("messages") or []
        if __user__ is None or not messages or messages[-1].get("role") != "user":
            return body
        context = await self._turn(__user__, __metadata__ or {}, messages[-1], retrieve=True)
        if context:
            messages.insert(len(messages) - 1, {"role": "system", "content": context})
        return body

    async def outlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record the assistant's answer. Open WebUI calls it for chats in its own pages only."""
        messages: list[dict[str, Any]] = body.get("messages") or []
        if __user__ is not None and messages and messages[-1].get("role") == "assistant":
            chat = __metadata__ or {"chat_id": body.get("chat_id")}
            await self._turn(__user__, chat, messages[-1], retrieve=False)
        return body

    async def _turn(
        self, user: dict[str, Any], chat: dict[str, Any], message: dict[str, Any], *, retrieve: bool
    ) -> str:
        """Append a message, and return the memories for it; an empty text when the memory cannot be reached."""
        namespace = self.valves.namespace.replace("{user_id}", str(user["id"]))
        fields = {"role": message["role"], "content": message.get("content")}
        # With an id, a message that is sent again is recorded once.
        if message.get("id"):
            fields["id"] = f"open-webui:{message['id']}"
        parameters = {"retrieve": "true", "budget_tokens": self.valves.budget_tokens} if retrieve else {}
        try:
            async with httpx.AsyncClient(timeout=self.valves.seconds_max, trust_env=False) as client:
                answer = await client.post(
                    f"{self.valves.url.rstrip('/')}/v1/namespaces/{quote(namespace, safe='')}/messages",
                    params=parameters,
                    json={"messages": [fields], "session_id": chat.get("chat_id")},
                    headers={"Authorization": f"Bearer {self.valves.token}"} if self.valves.token else {},
                )
                answer.raise_for_status()
                return (answer.json().get("retrieval") or {}).get("context", "")
        except (httpx.HTTPError, ValueError) as error:
            _logger.warning("no memories: %s", type(error).__name__)
            return ""
