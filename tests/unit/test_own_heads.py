"""Which heads a writer knows without asking the server."""

from __future__ import annotations

from recollect.events.backends.own_heads import OwnHeads
from recollect.events.backends.staging import StagedHead
from recollect.events.chain import GENESIS


def test_a_head_is_known_after_a_commit_until_another_writer_moves_it() -> None:
    own = OwnHeads()
    assert own.find(["a"]) is None
    own.committed([_head("a", 2)], {"a": (0, GENESIS)})
    assert own.find(["a", "b"]) is None
    [known] = own.find(["a"]) or []
    assert (known.namespace, known.key, known.version, known.hash, known.moved) == ("a", "a", 2, b"2", False)
    assert (known.recorded_at_us, known.erasure_version, known.is_new) == (20, 1, False)

    own.committed([_head("a", 4)], {"a": (3, b"3")})
    assert own.find(["a"]) is None, "two writers take turns, so that a guess would fail"
    own.committed([_head("a", 5)], {"a": (4, b"4")})
    assert own.find(["a"]) is not None

    own.committed([_head("a", 6)], {"a": (5, b"of a replica")})
    assert own.find(["a"]) is None, "another event has the place of the one that this writer knows"


def test_a_known_head_is_not_changed_by_a_transaction_that_fails() -> None:
    own = OwnHeads()
    own.committed([_head("a", 2)], {"a": (1, b"1")})
    [first] = own.find(["a"]) or []
    first.version, first.moved = 3, True
    [again] = own.find(["a"]) or []
    assert (again.version, again.moved) == (2, False)


def _head(namespace: str, version: int) -> StagedHead:
    return StagedHead(namespace, namespace, version, str(version).encode(), 10 * version, erasure_version=1)
