"""A server on loopback that speaks OpenAI's chat protocol, of four characters: sensible, slow, wrong and silent."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What the server does with a request: returns the text of its answer, or a `Raw` response.
Behaviour = Callable[[dict[str, Any]], Any]
TOKENS = 150
#: A line of a conversation in a request.
_LINE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Raw:
    """An answer as it is: a status, and bytes of which perhaps only a part is sent, or each after a wait."""

    def __init__(
        self,
        status: int,
        body: bytes,
        *,
        cut: bool = False,
        wait_seconds: float = 0.0,
        silent: bool = False,
        byte_seconds: float = 0.0,
        content_type: str = "application/json",
    ) -> None:
        self.status = status
        self.content_type = content_type
        self.body = body
        self.cut = cut
        self.wait_seconds = wait_seconds
        #: Whether the server accepts the request and never answers.
        self.silent = silent
        #: Seconds before each byte.
        self.byte_seconds = byte_seconds


SILENT = Raw(200, b"", silent=True)
#: It sends a byte now and then, so that no read of the client takes long.
DRIPPING = Raw(200, b" " * 10_000, byte_seconds=0.05)


class OpenAiServer:
    """The server; `behaviour` may change between requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        #: The headers of each request, by their names in lower case.
        self.headers: list[dict[str, str]] = []
        self.behaviour: Behaviour = lambda _: "none"
        self._closed = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                answer = server.behaviour(request)
                raw = answer if isinstance(answer, Raw) else Raw(200, _completion(answer))
                if raw.silent:
                    server._closed.wait()
                    self.close_connection = True
                    return
                time.sleep(raw.wait_seconds)
                self.send_response(raw.status)
                self.send_header("Content-Type", raw.content_type)
                self.send_header("Content-Length", str(len(raw.body)))
                self.end_headers()
                try:
                    self._send(raw)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _send(self, raw: Raw) -> None:
                if raw.byte_seconds:
                    for byte in raw.body:
                        time.sleep(raw.byte_seconds)
                        self.wfile.write(bytes([byte]))
                self.wfile.write(raw.body[: len(raw.body) // 2] if raw.cut else raw.body)
                if raw.cut:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        # By default, `close` waits for half a second.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def conversation(self, request: int = -1) -> str:
        """Return the conversation of a request."""
        return next(part["content"] for part in self.requests[request]["messages"] if part["role"] == "user")

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()


def said(text: str) -> Raw:
    """Answer in words."""
    return Raw(200, json.dumps(_message({"role": "assistant", "content": text})).encode())


def streamed(*chunks: str) -> Raw:
    """Answer in words, chunk by chunk, as server-sent events."""
    deltas = [_chunk({"role": "assistant", "content": ""}), *(_chunk({"content": chunk}) for chunk in chunks)]
    return _events([*deltas, _chunk({}, finish_reason="stop")], end="data: [DONE]\n\n")


def streamed_call(name: str, **arguments: str) -> Raw:
    """Call a tool, as server-sent events."""
    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    return _events([_chunk(delta), _chunk({}, finish_reason="tool_calls")], end="data: [DONE]\n\n")


def responded(text: str) -> Raw:
    """Answer in words, as the Responses API does."""
    return Raw(200, json.dumps(_response(text)).encode())


def responded_in_chunks(*chunks: str) -> Raw:
    """Answer in words, chunk by chunk, as the Responses API does."""
    place: dict[str, Any] = {"item_id": "m1", "output_index": 0, "content_index": 0, "logprobs": []}
    deltas: list[dict[str, Any]] = [{"type": "response.output_text.delta", "delta": chunk, **place} for chunk in chunks]
    events: list[dict[str, Any]] = [*deltas, {"type": "response.completed", "response": _response("".join(chunks))}]
    return _events([event | {"sequence_number": at} for at, event in enumerate(events)])


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


def _events(events: Sequence[dict[str, Any]], end: str = "") -> Raw:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end
    return Raw(200, body.encode(), content_type="text/event-stream")


def _response(text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    message: dict[str, Any] = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    fields = {"id": "r1", "object": "response", "created_at": 1, "model": "tiny", "status": "completed"}
    return fields | {"output": [message], "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}


def sensible(script: Mapping[str, Sequence[str]]) -> Behaviour:
    """Return the behaviour of a model that reads `sentence | words | kind`, by a part of the line, as scripted."""

    def answer(request: dict[str, Any]) -> str:
        lines = _LINE.findall(request["messages"][-1]["content"])
        read = [
            f"{number} | {statement}"
            for number, line in lines
            for part, statements in script.items()
            if part in line
            for statement in statements
        ]
        return "\n".join(read) or "none"

    return answer


@contextmanager
def openai_server() -> Generator[OpenAiServer]:
    server = OpenAiServer()
    yield server
    server.close()


def _completion(text: str) -> bytes:
    return json.dumps(_message({"role": "assistant", "content": text})).encode()


def _message(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": TOKENS - 50, "completion_tokens": 50, "total_tokens": TOKENS},
    }
