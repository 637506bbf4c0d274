"""One peer on one data set, in a process of its own, in the peers' environment.

`worker.py PEER MODEL FOLDER RESULT FILE...`. The result is JSON: for each file the ids that each question with an
answer brought, and its milliseconds; and what it all cost.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from peer import Message, Peer

#: Peers by name: the module, and the class in it.
PEERS = {
    "mem0": ("mem0_peer", "Mem0"),
    "chroma": ("chroma_peer", "Chroma"),
    "lancedb": ("lancedb_peer", "LanceDb"),
    "sqlite-vec": ("sqlite_peer", "Sqlite"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def main(name: str, model: str, folder: Path, result: Path, files: Sequence[Path]) -> None:
    module, kind = PEERS[name]
    peer: Peer = getattr(importlib.import_module(module), kind)(folder, model)
    ingest_seconds = cpu_seconds = 0.0
    answers: dict[str, list[tuple[list[str], float]]] = {}
    for number, file in enumerate(files):
        conversation: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        collection = f"conversation{number}"
        told = messages(conversation["events"])
        started, cpu_started = time.perf_counter(), time.process_time()
        peer.add(collection, told)
        ingest_seconds += time.perf_counter() - started
        cpu_seconds += time.process_time() - cpu_started
        asked = [it for it in conversation["questions"] if it["gold"] or it["gold_sessions"]]
        answers[str(file)] = [_ask(peer, collection, question) for question in asked]
    note = peer.note
    peer.close()
    costs = {
        "ingest_seconds": ingest_seconds,
        "ingest_cpu_seconds": cpu_seconds,
        "peak_mib": peak_mib(),
        "disk_mib": disk_mib(folder),
    }
    result.write_text(json.dumps({"answers": answers, "note": note, **costs}), encoding="utf-8")


def messages(events: Sequence[dict[str, Any]]) -> list[Message]:
    """Return the messages with a text as "Speaker: text (what the attachments show)", as Recollect embeds them."""
    told: list[Message] = []
    for event in events:
        payload = event["payload"]
        if event["type"] == "message.added" and "text" in payload:
            speaker = payload.get("name") or event.get("actor") or payload["role"]
            captions = " ".join(it["caption"] for it in payload.get("attachments", ()) if it.get("caption"))
            text = f"{speaker}: {payload['text']}" + (f" ({captions})" if captions else "")
            told.append(Message(event["id"], text, _microseconds(event.get("occurred_at")) or 0))
    return told


def peak_mib() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def disk_mib(folder: Path) -> float:
    """Return what the files in `folder` hold."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def _ask(peer: Peer, collection: str, question: dict[str, Any]) -> tuple[list[str], float]:
    until_us = _microseconds(question.get("until"))
    started = time.perf_counter()
    found = peer.search(collection, question["query"], until_us)
    return found, (time.perf_counter() - started) * 1_000


def _microseconds(moment: str | None) -> int | None:
    return None if moment is None else (datetime.fromisoformat(moment) - _EPOCH) // timedelta(microseconds=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), [Path(name) for name in sys.argv[5:]])
