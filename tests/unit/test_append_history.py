"""The check of histories: a linearizable log passes, and each kind of fault is found."""

from __future__ import annotations

import pytest
from support.append_history import Append, Outcome, Read, violations


def append(
    ids: str,
    at: tuple[float, float],
    versions: tuple[int, ...] = (),
    outcome: Outcome = "ok",
    expected: int | None = None,
) -> Append:
    called_at, answered_at = at
    return Append(
        namespace="a",
        ids=tuple(ids),
        called_at=called_at,
        answered_at=answered_at,
        outcome=outcome,
        versions=versions,
        expected_version=expected,
    )


def read(ids: str, at: tuple[float, float]) -> Read:
    return Read(namespace="a", ids=tuple(ids), called_at=at[0], answered_at=at[1])


def test_appends_at_the_same_time_may_come_in_any_order_and_unknown_ones_may_be_there_or_not() -> None:
    appends = [
        append("x", (0, 5), (2,)),
        append("y", (1, 4), (1,)),
        append("u", (0, 9), outcome="unknown"),
        append("w", (0, 9), outcome="unknown"),
        append("r", (6, 7), outcome="refused"),
        append("z", (10, 11), (4,), expected=3),
    ]
    reads = [read("y", (1, 4)), read("yx", (5.5, 6)), read("yxu", (8, 9))]
    assert violations(appends, reads, {"a": tuple("yxuz")}) == []


@pytest.mark.parametrize(
    ("appends", "reads", "final", "problem"),
    [
        ([append("x", (0, 1), (1,))], [], "", "was acknowledged"),
        ([append("x", (0, 1), (1,)), append("y", (0, 1), (2,))], [], "yx", "was acknowledged"),
        ([append("x", (0, 1), (1,))], [], "xx", "twice"),
        ([append("x", (0, 1), outcome="unknown")], [], "xx", "twice"),
        ([append("x", (0, 1), outcome="refused")], [], "x", "was refused"),
        ([], [], "x", "never sent"),
        ([append("xy", (0, 1), outcome="unknown")], [], "x", "without the rest"),
        ([append("x", (0, 1), (2,)), append("y", (2, 3), (1,))], [], "yx", "before its call"),
        ([append("xy", (0, 1), (1, 3)), append("z", (0, 1), (2,))], [], "xzy", "gaps"),
        ([append("x", (0, 1), (1,)), append("y", (2, 3), (2,), expected=0)], [], "xy", "expected version 0"),
        ([append("x", (0, 1), (1,))], [read("", (2, 3))], "x", "were known before"),
        ([append("x", (0, 9), (1,))], [read("x", (1, 2)), read("", (3, 4))], "x", "were known before"),
        ([append("x", (5, 6), (1,))], [read("x", (1, 2))], "x", "sent after its answer"),
        ([append("x", (0, 1), (1,)), append("y", (0, 1), (2,))], [read("y", (0, 1))], "xy", "others than"),
    ],
)
def test_each_fault_is_found(appends: list[Append], reads: list[Read], final: str, problem: str) -> None:
    assert any(problem in violation for violation in violations(appends, reads, {"a": tuple(final)}))
