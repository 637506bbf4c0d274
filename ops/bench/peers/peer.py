"""What a peer is to the benchmark. Modules named `*_peer` run in the peers' environment, where Recollect is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Message(NamedTuple):
    """A message as a peer gets it."""

    id: str
    #: "Speaker: text", and what the attachments show.
    text: str
    #: Microseconds since 1970 UTC; 0 when it is not known.
    occurred_us: int


class Peer(Protocol):
    """A memory in a folder of its own; a collection is a conversation."""

    def __init__(self, folder: Path, model: str) -> None:
        """Open it; `model` is a folder with the embedding model, or a name."""
        ...

    @property
    def note(self) -> str:
        """Say what it had to do without; empty when nothing."""
        ...

    def add(self, collection: str, messages: Sequence[Message]) -> None:
        """Store and embed the messages of a new collection."""
        ...

    def search(self, collection: str, query: str, until_us: int | None, count: int) -> list[str]:
        """Return the ids of `count` messages at most, best first; with `until_us` only of those before it."""
        ...

    def close(self) -> None:
        """Write what is not yet written, and close it."""
        ...
