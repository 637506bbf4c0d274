"""A server on loopback that speaks OpenAI's chat protocol, and has good days and bad."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What the server does with a request: returns the arguments of the tool call, or an `Answer` of another kind.
Behaviour = Callable[[dict[str, Any]], Any]
TOKENS = 150


class Raw:
    """An answer as it is: a status, and bytes of which perhaps only a part is sent."""

    def __init__(self, status: int, body: bytes, *, cut: bool = False, wait_seconds: float = 0.0) -> None:
        self.status = status
        self.body = body
        self.cut = cut
        self.wait_seconds = wait_seconds


class OpenAiServer:
    """The server; `behaviour` may change between requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.behaviour: Behaviour = lambda _: {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(request)
                answer = server.behaviour(request)
                raw = answer if isinstance(answer, Raw) else Raw(200, _completion(request, answer))
                time.sleep(raw.wait_seconds)
                self.send_response(raw.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw.body)))
                self.end_headers()
                self.wfile.write(raw.body[: len(raw.body) // 2] if raw.cut else raw.body)
                if raw.cut:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def said(text: str) -> Raw:
    """Answer in words, without the tool call that was asked for."""
    return Raw(200, json.dumps(_message({"role": "assistant", "content": text})).encode())


@contextmanager
def openai_server() -> Generator[OpenAiServer]:
    server = OpenAiServer()
    yield server
    server.close()


def _completion(request: dict[str, Any], arguments: Any) -> bytes:
    tool = request["tools"][0]["function"]["name"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": text}}
    return json.dumps(_message({"role": "assistant", "content": None, "tool_calls": [call]})).encode()


def _message(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": TOKENS - 50, "completion_tokens": 50, "total_tokens": TOKENS},
    }
