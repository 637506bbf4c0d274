"""Messages that have frozen whole servers: others are served meanwhile, and SIGTERM ends the process.

Goal: what one namespace is sent harms no other. Method: a real server with its workers gets the messages of the
security trial; as long as it works on them it is asked in another namespace. The seconds are guards against a hang, no
measure of speed: the messages once took from ten seconds to hours.
"""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from support.events import message
from support.server import Server, serving

_HOSTILE = {
    "blank lines": "notes" + "\n" * 12_000 + "end",
    "exclamation marks": "no" + "!" * 15_000 + "x",
    "codes": "ERR-" * 7_500,
    "200,000 exclamation marks": "wow" + "!" * 200_000 + "x",
    "fences": "<recalled-memory" * 32_000,
    "likings": "I like tea and " * 1_300,
    "dates": "today " * 3_300,
    "sentences": "Is it? a. " * 50_000,
    "names": "The " * 100_000,
    "statements": "I live in Porto. " * 30_000,
    "statements without spaces": "我住在北京。" * 25_000,
    "lists": "- item one\n" * 45_000,
    "requests to forget": "Please forget my tea. " * 25_000,
    "many requests to forget": "".join(f"Please forget my {number} teas. " for number in range(20_000)),
    "combining marks": "a" + "\u0301" * 250_000,
    "quotations and brackets": "“(«[{<'\"" * 40_000,
    "faces": "\N{GRINNING FACE}" * 120_000,
    "NULs": "a\0b " * 60_000,
}
_ANSWER_SECONDS_MAX = 5.0
_DONE_SECONDS_MAX = 240.0


@pytest.mark.parametrize("share", [pytest.param(1, marks=pytest.mark.long), 4])
def test_hostile_messages_of_one_namespace_keep_nobody_else_waiting_and_are_read_to_their_end(
    tmp_path: Path, share: int
) -> None:
    with serving(tmp_path) as server, httpx.Client(base_url=server.base, timeout=_ANSWER_SECONDS_MAX) as http:
        _append(http, "calm", "I live in Porto.")
        for text in _HOSTILE.values():
            # A fourth of the time; `test_patterns_are_linear.py` shows that the whole text takes four times as long.
            _append(http, "hostile", text if share == 1 else text[: len(text) // share] + text[-4:])
        _append(http, "hostile", "I live in Oslo.")
        deadline = time.monotonic() + _DONE_SECONDS_MAX
        while "Oslo" not in _facts(http, "hostile"):
            assert time.monotonic() < deadline, "what was said after the messages was not read in time"
            # The client raises when it is not answered within its time.
            _assert_served(http)
            time.sleep(0.1)
        assert server.stop() == 0


@pytest.mark.long
def test_a_server_that_reads_hostile_messages_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        _send_many(server, _HOSTILE["sentences"])
        # Long enough for the workers to begin, and not to end.
        time.sleep(1.0)
        # `stop` waits for half a minute at most; the job alone would take longer.
        assert server.stop() == 0
    with serving(tmp_path) as server:
        assert httpx.get(f"{server.base}/health/ready", timeout=_ANSWER_SECONDS_MAX).status_code == 200
        assert server.stop() == 0


def _send_many(server: Server, text: str) -> None:
    with httpx.Client(base_url=server.base, timeout=_ANSWER_SECONDS_MAX) as http:
        for _ in range(8):
            _append(http, "hostile", text)


def _append(http: httpx.Client, namespace: str, text: str) -> None:
    answer = http.post(f"/v1/namespaces/{namespace}/events", json=message(text, session_id="s"))
    assert answer.status_code == 201, answer.text


def _assert_served(http: httpx.Client) -> None:
    assert http.get("/health/ready").status_code == 200
    found = http.post("/v1/namespaces/calm/retrieve", json={"query": "Where do I live?"})
    assert found.status_code == 200
    assert "Porto" in found.json()["context"]


def _facts(http: httpx.Client, namespace: str) -> str:
    return http.get(f"/v1/namespaces/{namespace}/facts").text
