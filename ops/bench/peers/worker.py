"""One peer on one data set, in a process of its own, in the peers' environment.

`worker.py PEER MODEL FOLDER RESULT ITEMS PIECE_TOKENS FILE...`. The result is JSON: for each file the ids that each
question with an answer brought, and its milliseconds; and what it all cost.
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


def main(
    name: str, model: str, folder: Path, result: Path, items: int, piece_tokens: int, files: Sequence[Path]
) -> None:
    """Let a peer work through the files.

    Parameters:
        items: memories that a question asks for.
        piece_tokens: tokens of the pieces that messages are stored in; 0: whole, of which the model reads the start.
    """
    module, kind = PEERS[name]
    peer: Peer = getattr(importlib.import_module(module), kind)(folder, model)
    tokenizer = importlib.import_module("transformers").AutoTokenizer.from_pretrained(model) if piece_tokens else None
    ingest_seconds = cpu_seconds = 0.0
    answers: dict[str, list[tuple[list[str], float]]] = {}
    for number, file in enumerate(files):
        conversation: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        collection = f"conversation{number}"
        told = messages(conversation["events"])
        if tokenizer is not None:
            told = [piece for message in told for piece in _pieces(message, tokenizer, piece_tokens)]
        started, cpu_started = time.perf_counter(), time.process_time()
        peer.add(collection, told)
        ingest_seconds += time.perf_counter() - started
        cpu_seconds += time.process_time() - cpu_started
        asked = [it for it in conversation["questions"] if it["gold"] or it["gold_sessions"]]
        answers[str(file)] = [_ask(peer, collection, question, items) for question in asked]
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


def _pieces(message: Message, tokenizer: Any, tokens: int) -> list[Message]:
    """Return the pieces of a message; their ids have their number after the last `#`."""
    spans = tokenizer(message.text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    starts = [start for start, _ in spans[::tokens]]
    bounds = zip(starts, [*starts[1:], len(message.text)], strict=True)
    return [
        message._replace(id=f"{message.id}#{number}", text=message.text[start:end])
        for number, (start, end) in enumerate(bounds)
    ]


def _ask(peer: Peer, collection: str, question: dict[str, Any], items: int) -> tuple[list[str], float]:
    until_us = _microseconds(question.get("until"))
    started = time.perf_counter()
    found = peer.search(collection, question["query"], until_us, items)
    latency_ms = (time.perf_counter() - started) * 1_000
    return [*dict.fromkeys(_message_id(id) for id in found)], latency_ms


def _message_id(id: str) -> str:
    """Return the id of the message that a piece belongs to."""
    start, _, number = id.rpartition("#")
    return start if number.isdecimal() else id


def _microseconds(moment: str | None) -> int | None:
    return None if moment is None else (datetime.fromisoformat(moment) - _EPOCH) // timedelta(microseconds=1)


if __name__ == "__main__":
    main(
        sys.argv[1],
        sys.argv[2],
        Path(sys.argv[3]),
        Path(sys.argv[4]),
        int(sys.argv[5]),
        int(sys.argv[6]),
        [Path(name) for name in sys.argv[7:]],
    )
