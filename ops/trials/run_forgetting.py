"""Forgetting: counts which messages are forgotten for the requests of labelled scenes, through the whole product.

    .venv/bin/python ops/trials/run_forgetting.py FILE [--failures FILE]

A file has the scenes of `ops/train/forgetting`. Each request, and each sentence that only sounds like one, is the last
message of a conversation of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect import Recollect
from recollect.jobs.forgetting.forget_model import encoders_of

_START = "2026-03-02T10:{:02}:00Z"


def spoken(memory: Recollect, namespace: str, said: Sequence[str]) -> None:
    """Append the messages of a scene; the ids end in their places."""
    events = [
        {
            "id": f"{namespace}:{place}",
            "type": "message.added",
            "session_id": "old",
            "occurred_at": _START.format(place),
            "payload": {"role": "assistant", "name": "Bot", "text": text[3:]}
            if text.startswith("a: ")
            else {"role": "user", "name": "Ann", "text": text},
        }
        for place, text in enumerate(said)
    ]
    memory.append(namespace, events)
    memory.settle(namespace, now=_START.format(58))


def asked(memory: Recollect, namespace: str, said: Sequence[str], text: str) -> tuple[set[int], set[int], list[str]]:
    """Return the places that a message forgets, those it names as candidates, and all values that are still listed."""
    spoken(memory, namespace, said)
    event = {
        "id": f"{namespace}:request",
        "type": "message.added",
        "session_id": "old",
        "occurred_at": _START.format(59),
        "payload": {"role": "user", "name": "Ann", "text": text},
    }
    _, result = memory.append_and_retrieve(namespace, event)
    if result is None:
        return set(), set(), []
    places = {f"{namespace}:{place}": place for place in range(len(said))}
    forgotten = {places[item["id"]] for item in result.forgotten if item["id"] in places}
    candidates = {places[item["id"]] for item in result.forget_candidates if item["id"] in places}
    return forgotten, candidates, [item["text"] for item in result.forget_candidates]


def verdict(said: Sequence[str], named: set[int], forgotten: set[int], candidates: set[int]) -> str:
    """Return how what was forgotten compares with what a request names."""
    own = {place for place, text in enumerate(said) if not text.startswith("a: ")}
    if forgotten & own - named:
        return "forgets another"
    if not named:
        return "right"
    if named & own <= forgotten:
        return "right" if named <= forgotten else "answer stays"
    if forgotten:
        return "in part"
    return "candidates" if candidates & named else "missed"


def main() -> None:
    """Run all scenes and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--failures", type=Path, help="write what is not right into this file")
    arguments = parser.parse_args()
    asks: Counter[str] = Counter()
    others: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False) as memory:
        embedder = memory.parts.vectors.embedder
        embedder.start()
        if not embedder.wait_ready(60):
            raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
        # The first requests are undecided until the encoder of pairs is loaded.
        encoders_of(embedder, 60)
        for number, line in enumerate(arguments.file.read_text(encoding="utf-8").splitlines()):
            scene: dict[str, Any] = json.loads(line)
            said: list[str] = scene["said"]
            for place, (text, named, *_) in enumerate(scene["ask"]):
                request = text.replace(" || ", " ")
                forgotten, candidates, _ = asked(memory, f"{number}-{place}", said, request)
                kind = verdict(said, set(named), forgotten, candidates)
                asks[kind] += 1
                if kind != "right":
                    wrong.append(
                        f"{kind}: {scene['voice']}: {request} {named} {sorted(forgotten)} {sorted(candidates)}"
                    )
            for place, text in enumerate(scene["none"]):
                forgotten, candidates, texts = asked(memory, f"{number}-none-{place}", said, text)
                kind = "forgets" if forgotten else "asks back" if texts else "right"
                others[kind] += 1
                if kind != "right":
                    wrong.append(f"none {kind}: {scene['voice']}: {text} {sorted(forgotten)} {sorted(candidates)}")
    print(f"requests: {sum(asks.values())} {dict(asks.most_common())}")
    print(f"others: {sum(others.values())} {dict(others.most_common())}")
    if arguments.failures:
        arguments.failures.write_text("\n".join(wrong), encoding="utf-8")


if __name__ == "__main__":
    main()
