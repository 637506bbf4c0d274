"""Unasked forgetting: prints the messages of conversations that are read as requests to forget something.

    .venv/bin/python ops/trials/run_unasked.py FOLDER

FOLDER has conversations, one a JSON file with `events`. Read each printed message: people who talk to each other, or to
an assistant, seldom ask to forget anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import orjson

from recollect.jobs.forgetting.forget_requests import forget_requests
from recollect.projections.embeddings.embedder import open_embedder
from recollect.projections.embeddings.reading_encoder import pair_reader
from recollect.projections.projection_settings import DEFAULT_MODEL, FORGETTING_MODEL


def user_messages(folder: Path) -> list[tuple[str, str]]:
    """Return the conversation and the text of each message of a user."""
    messages: list[tuple[str, str]] = []
    for file in sorted(folder.glob("*.json")):
        for event in orjson.loads(file.read_bytes())["events"]:
            payload: dict[str, Any] = event.get("payload", event)
            if payload.get("role") == "user":
                messages.append((file.stem, payload["text"]))
    return messages


def main() -> None:
    """Print the requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of conversations")
    messages = user_messages(parser.parse_args().folder)
    embedder = open_embedder(DEFAULT_MODEL)
    embedder.start()
    read_pairs = pair_reader(FORGETTING_MODEL, embedder)
    found = [(name, request.text) for name, text in messages for request in forget_requests(text, "user", read_pairs)]
    print(*(f"{name}: {text}" for name, text in found), sep="\n")
    print(f"{len(messages)} messages, {len(found)} requests, carried out where what they name is clear")


if __name__ == "__main__":
    main()
