"""API fuzz: schemathesis with all its checks (schemathesis.toml) on the OpenAPI description of a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from fuzz_server import FuzzServer

#: The phases of one round; the second generates as many cases as asked.
_PHASES = "examples,coverage,fuzzing,stateful"
#: Characters of a line of the report; a traceback of the tool can have lines of 200,000.
_LINE_LENGTH_MAX = 1_000
#: Events of the memory that the cases read, so that lists and graphs are not empty.
_TEXTS = ("I live in Porto.", "I love green tea.", "My sister Mia plays the cello.", "Always answer in French.")


def fuzz_api(server: FuzzServer, cases: int, seed: int) -> bool:
    """Run rounds of schemathesis until `cases` were sent; return whether no check failed."""
    with server.client() as http:
        events = [{"type": "message.added", "payload": {"role": "user", "text": text}} for text in _TEXTS]
        http.post("/v1/namespaces/ann/events", json={"events": events}).raise_for_status()
    sent, failed, number = 0, 0, 0
    while sent < cases:
        report = _round(server, seed + number)
        generated = re.search(r"(\d[\d,]*) generated", report)
        if generated is None:
            print(report[-4_000:])
            return False
        count = int(generated[1].replace(",", ""))
        found = [re.search(pattern, report) for pattern in (r"(\d+) unique failures", r"(\d+) errors?\b")]
        failed += sum(int(number[1]) for number in found if number)
        sent, number = sent + count, number + 1
        print(f"round {number}: {count} cases, {sent} in all, {failed} failures and errors", flush=True)
        if failed:
            # From the first heading of errors or failures on; the text before it is the progress.
            heading = re.search(r"= (?:ERRORS|FAILURES) =", report)
            lines = report[heading.start() if heading else 0 :].splitlines()
            print("\n".join(line[:_LINE_LENGTH_MAX] for line in lines))
            break
    return not failed


def _round(server: FuzzServer, seed: int) -> str:
    """Return the report of one round."""
    config = Path(__file__).with_name("schemathesis.toml")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)]
    command += ["run", f"{server.url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {server.token()}", "--phases", _PHASES]
    command += ["--continue-on-failure", "--seed", str(seed), "--max-examples", "60", "--no-color"]
    # One worker: CPython 3.11 fails when two threads parse Python ("AST constructor recursion depth mismatch").
    command += ["--suppress-health-check", "all", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=config.parent)
    return done.stdout + done.stderr
