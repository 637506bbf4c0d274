"""Model reply: collects the text of a reply from the bytes of a response, whole or streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from recollect.api.integrations.model_request import content_text

#: Bytes of a response that are kept, at most: a reply of a language model has kilobytes.
_BYTES_MAX = 4 << 20
_EVENT_STREAM = "text/event-stream"


class ModelReply:
    """The text of a reply, from the bytes of a response as they arrive.

    Parameters:
        content_type: the response's `Content-Type`.
    """

    def __init__(self, content_type: str) -> None:
        self._is_stream = content_type.startswith(_EVENT_STREAM)
        self._buffer = bytearray()
        self._texts: list[str] = []
        self._bytes_read = 0

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        self._bytes_read += len(data)
        if self._bytes_read > _BYTES_MAX:
            return
        self._buffer += data
        # A line that arrives in many pieces is split once, at its end.
        if self._is_stream and b"\n" in data:
            *lines, rest = self._buffer.split(b"\n")
            self._buffer = rest
            self._texts.extend(text for line in lines if (text := _streamed_text(bytes(line))))

    def text(self) -> str | None:
        """Return the text that arrived so far: empty for a call of a tool.

        It is None for a whole response that is not a reply, or was cut: OpenAI's client requests that again.
        """
        return "".join(self._texts) if self._is_stream else _whole_text(bytes(self._buffer))


def _streamed_text(line: bytes) -> str:
    """Return the text of one line of a stream of server-sent events."""
    if not line.startswith(b"data:"):
        return ""
    event = _json_object(line[5:])
    if event.get("type") == "response.output_text.delta":
        return str(event.get("delta") or "")
    return content_text(_field(_first_choice(event), "delta").get("content"))


def _whole_text(body: bytes) -> str | None:
    """Return the text of the body of a whole response; None when it is not a reply."""
    reply = _json_object(body)
    output: Any = reply.get("output")
    if isinstance(output, list):
        items = [cast(Mapping[str, Any], item) for item in cast(list[Any], output) if isinstance(item, Mapping)]
        return "\n".join(content_text(item.get("content")) for item in items if item.get("type") == "message")
    choice = _first_choice(reply)
    return content_text(_field(choice, "message").get("content")) if choice else None


def _first_choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first of several alternative replies, which a bot shows."""
    choices: Any = event.get("choices")
    for choice in cast(Sequence[Any], choices) if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and not cast(Mapping[str, Any], choice).get("index"):
            return cast(Mapping[str, Any], choice)
    return {}


def _field(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: Any = fields.get(name)
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def _json_object(data: bytes) -> Mapping[str, Any]:
    try:
        value: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}
