"""The import of a ChatGPT export of 100 MB: seconds, peak memory, and messages in a second of a processor.

The export is generated: conversations of 24 messages with a branch that was generated again, as the shape of 2026 has
them, with the words of conversations. The floor is orjson decoding the whole file at once.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import texts
from table import heading

MEGABYTES = 100
_TURNS = 24
_CODE = """
import sys, time
from pathlib import Path
from recollect.api.importers.file_import import import_path
from recollect.api.settings import load_settings
started = time.perf_counter()
report = import_path(Path(sys.argv[1]), settings=load_settings(data=Path(sys.argv[2]), embedding_model="none"),
    namespace="ann", dry_run=sys.argv[3] == "dry")
print(time.perf_counter() - started, time.process_time(), report.imported.get("message.added", 0),
    report.duplicates, report.failures,
    next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def run(folder: Path) -> None:
    export = folder / "conversations.json"
    messages = write_export(export, MEGABYTES << 20)
    size = export.stat().st_size
    heading(f"Import of a ChatGPT export of {size / 1e6:.0f} MB with {messages:,} messages in the branches that count")
    started, cpu_started = time.perf_counter(), time.process_time()
    orjson.loads(export.read_bytes())
    print(
        f"  floor, orjson on the whole file: {time.perf_counter() - started:.1f} s, of a processor "
        f"{time.process_time() - cpu_started:.1f} s, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )
    for name, mode in (("import", "real"), ("dry run again", "dry")):
        command = [sys.executable, "-c", _CODE, str(export), str(folder / "data"), mode]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, cpu_seconds, imported, duplicates, failures, peak_kb = done.stdout.split()
        print(
            f"  {name:<14}{float(seconds):7.1f} s, of a processor {float(cpu_seconds):6.1f} s  "
            f"{messages / float(cpu_seconds):8,.0f} messages/s  peak {int(peak_kb) / 1024:.0f} MB  "
            f"new {int(imported):,}, there already {int(duplicates):,}, failed {failures}",
            flush=True,
        )


def write_export(path: Path, bytes_min: int) -> int:
    """Write an export of at least `bytes_min`, one conversation at a time; return the number of visible messages."""
    chance = random.Random(1)
    words = [event["payload"]["text"] for event in texts.real(2_000) if event["payload"].get("text")]
    written = count = number = 0
    with path.open("wb") as file:
        file.write(b"[")
        while written < bytes_min:
            conversation = _conversation(number, words, chance)
            raw = json.dumps(conversation).encode()
            file.write((b"," if number else b"") + raw)
            written += len(raw)
            number += 1
            count += _TURNS
        file.write(b"]")
    return count


def _conversation(number: int, words: list[str], chance: random.Random) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": [], "message": None}}
    parent = "root"
    for turn in range(_TURNS):
        role = ("user", "assistant")[turn % 2]
        id = f"{number}-{turn}"
        mapping[id] = _node(id, parent, role, " ".join(chance.choices(words, k=3 if role == "user" else 12)), turn)
        if turn == 3:
            mapping[f"{id}-old"] = _node(f"{id}-old", parent, role, "A discarded answer.", turn)
        parent = id
    return {
        "id": f"c{number}",
        "conversation_id": f"c{number}",
        "title": f"Conversation {number}",
        "create_time": 1_700_000_000.0 + number * 3_600,
        "current_node": parent,
        "mapping": mapping,
    }


def _node(id: str, parent: str, role: str, text: str, turn: int) -> dict[str, Any]:
    return {
        "id": id,
        "parent": parent,
        "children": [],
        "message": {
            "id": id,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1_700_000_000.5 + int(id.partition("-")[0]) * 3_600 + turn * 20,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "weight": 1.0,
            "metadata": {"model_slug": "gpt-5", "timestamp_": "absolute"} if role == "assistant" else {},
            "recipient": "all",
        },
    }
