"""Head cache: the heads that this process wrote last.

A writer that knows a head can append in one round trip: the server compares the head and commits. So it keeps the heads
of its commits. A head that another writer has moved since is read and locked first. So is the head of a namespace in
which two writers take turns: guessing would cost them a failed transaction each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recollect.events.backends.staging import StagedHead
from recollect.events.storage.bounded_cache import BoundedCache

#: The version and the hash of a head before a commit.
HeadBefore = tuple[int, bytes]
#: Namespaces whose heads are kept, 300 bytes each.
_HEADS_MAX = 10_000


class _OwnHead(NamedTuple):
    """A head as a commit of this process left it."""

    version: int
    hash: bytes
    recorded_at_us: int
    erasure_version: int
    #: Whether no other writer had moved the head between that commit and the one before it.
    is_alone: bool


class OwnHeads:
    """The heads of one writer's last commits. Used by one thread at a time."""

    def __init__(self) -> None:
        self._heads: BoundedCache[str, _OwnHead] = BoundedCache(_HEADS_MAX)

    def find(self, namespaces: Iterable[str]) -> list[StagedHead] | None:
        """Return the heads of `namespaces`; None unless all of them are known and this writer is alone in each."""
        heads: list[StagedHead] = []
        for namespace in namespaces:
            own = self._heads.get(namespace)
            if own is None or not own.is_alone:
                return None
            heads.append(StagedHead(namespace, namespace, *own[:4]))
        return heads

    def committed(self, heads: Iterable[StagedHead], heads_before: Mapping[str, HeadBefore]) -> None:
        """Keep the heads that a commit moved.

        Parameters:
            heads_before: what it has moved them from, by namespace.
        """
        for head in heads:
            last = self._heads.get(head.namespace)
            is_alone = last is None or (last.version, last.hash) == heads_before[head.namespace]
            own = _OwnHead(head.version, head.hash, head.recorded_at_us, head.erasure_version, is_alone)
            self._heads.put(head.namespace, own)
