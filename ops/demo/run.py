"""Start a server with a demo conversation in it, ask it three questions, keep serving until Ctrl-C.

`make run` calls this. Only the standard library: it does over HTTP what any bot can do.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

NAMESPACE = "lark-street"
QUESTIONS = (
    "What must not be in Tobias's food?",
    "When does the lighthouse exhibition open?",
    "Where does Tobias work now?",
)
#: Loading the model takes seconds, on a slow disk a minute.
READY_SECONDS_MAX = 120.0
EMBEDDED_SECONDS_MAX = 300.0


def main() -> int:
    """Run the demo; return the server's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8787)
    parser.add_argument("--data", default="recollect-data")
    options = parser.parse_args()
    base = f"http://127.0.0.1:{options.port}"
    command = [sys.executable, "-c", "from recollect.api.cli.main import run; run()"]
    server = subprocess.Popen([*command, "--data", options.data, "serve", "--port", str(options.port)])
    # Ctrl-C reaches the server too; SIGTERM to this process is passed on.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: server.terminate())
    try:
        wait_until_ready(base, server)
        load_conversation(base)
        wait_until_embedded(base, server)
        for question in QUESTIONS:
            ask(base, question)
        print_next_steps(base)
        return server.wait()
    except ServerStopped as stopped:
        print(f"The server ended: {stopped}", file=sys.stderr)
        return server.wait() or 1
    except KeyboardInterrupt:
        return server.wait()
    finally:
        if server.poll() is None:
            server.terminate()
            server.wait()


class ServerStopped(Exception):
    """The server is not there any more, or does not come up."""


def call(url: str, body: object | None = None) -> dict[str, Any]:
    """Return the JSON that a request answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def wait_until_ready(base: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise ServerStopped("see its message above")
        try:
            call(f"{base}/health/ready")
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise ServerStopped(f"it was not ready after {READY_SECONDS_MAX:.0f} seconds")


def load_conversation(base: str) -> None:
    lines = Path(__file__).with_name("conversation.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    answer = call(f"{base}/v1/namespaces/{NAMESPACE}/events", {"events": events})
    known = sum(event["duplicate"] for event in answer["events"])
    print(
        f"\n==> Loaded {len(events)} events into the namespace {NAMESPACE!r} ({known} were there already)", flush=True
    )


def wait_until_embedded(base: str, server: subprocess.Popen[bytes]) -> None:
    """Show what retrieval still misses until it misses nothing."""
    shown = ""
    deadline = time.monotonic() + EMBEDDED_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise ServerStopped("see its message above")
        missing = call(f"{base}/v1/namespaces/{NAMESPACE}/retrieve", {"query": QUESTIONS[0]})["degraded"]
        state = "; ".join(missing) or "embedded: keyword and semantic search are ready"
        if state != shown:
            print(f"==> {state}", flush=True)
            shown = state
        if not missing:
            return
        time.sleep(0.5)
    print("==> Going on with keyword search alone", flush=True)


def ask(base: str, question: str) -> None:
    answer = call(f"{base}/v1/namespaces/{NAMESPACE}/retrieve", {"query": question, "limit": 8})
    print(f"\n==> {question}   ({answer['latency_ms']:.0f} ms, {answer['tokens']} tokens)\n{answer['context']}")


def print_next_steps(base: str) -> None:
    me = f"{base}/v1/namespaces/me"
    print(
        f"""
==> Look inside: {base}/
==> Recollect keeps serving at {base} (API: {base}/docs). Ctrl-C stops it. In another terminal, try:
curl -s {base}/v1/namespaces/{NAMESPACE}/retrieve -d '{{"query": "who takes care of the cat?"}}'
curl -s {me}/events -d '{{"type": "message.added", "payload": {{"role": "user", "text": "I moved to Lisbon"}}}}'
curl -s {me}/retrieve -d '{{"query": "did I move?"}}'
""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
