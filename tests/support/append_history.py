"""Append history: what clients asked of a log, when, and what it answered; the check that the log was linearizable.

The history has real times: an operation takes effect at one moment between its call and its answer. For a log that
only grows this is exact and needs no search, since the final log has the order of all appends:

- an acknowledged event is in the final log once, at the version that was acknowledged;
- a refused event is not in it; one with an unknown outcome is in it once or not at all;
- versions have no gaps, and an append has a later version than every append that was answered before its call;
- a read has every event that was acknowledged before its call, none of an append that was called after its answer,
  and no fewer events than a read that was answered before its call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

Outcome = Literal["ok", "refused", "unknown"]


class Append(Struct, frozen=True, kw_only=True):
    """One append of a client."""

    namespace: str
    ids: tuple[str, ...]
    #: Monotonic seconds of the call and of its answer.
    called_at: float
    answered_at: float
    outcome: Outcome
    #: The version of each event; empty unless the outcome is `ok`.
    versions: tuple[int, ...] = ()
    #: The head that the append expected; None when it expected none.
    expected_version: int | None = None


class Read(Struct, frozen=True, kw_only=True):
    """One read of a whole namespace."""

    namespace: str
    #: The ids of all events, in the order of their versions.
    ids: tuple[str, ...]
    called_at: float
    answered_at: float


def violations(appends: Sequence[Append], reads: Sequence[Read], final: dict[str, Sequence[str]]) -> list[str]:
    """Return what contradicts a linearizable log; empty when nothing does.

    Parameters:
        final: the ids of each namespace in the order of versions 1, 2, …, read after the last operation.
    """
    problems: list[str] = []
    for namespace, ids in sorted(final.items()):
        mine = [append for append in appends if append.namespace == namespace]
        found = [
            *_final_problems(mine, ids),
            *_order_problems(mine),
            *_read_problems(mine, [read for read in reads if read.namespace == namespace], ids),
        ]
        problems += [f"{namespace}: {problem}" for problem in found]
    return problems


def _final_problems(appends: Sequence[Append], ids: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the final log: lost, moved, doubled, refused or foreign events."""
    version_of = {event_id: version for version, event_id in enumerate(ids, start=1)}
    if len(version_of) != len(ids):
        yield f"{len(ids) - len(version_of)} events are in the log twice"
    called = {event_id for append in appends for event_id in append.ids}
    for event_id in ids:
        if event_id not in called:
            yield f"{event_id} is in the log and was never sent"
    for append in appends:
        recorded = [event_id for event_id in append.ids if event_id in version_of]
        if append.outcome == "refused" and recorded:
            yield f"{recorded[0]} was refused and is in the log"
        if append.outcome == "unknown" and recorded and len(recorded) < len(append.ids):
            yield f"{recorded[0]} is in the log without the rest of its batch"
        if append.outcome == "ok":
            yield from _acknowledged_problems(append, version_of)


def _acknowledged_problems(append: Append, version_of: dict[str, int]) -> Iterator[str]:
    for event_id, version in zip(append.ids, append.versions, strict=True):
        if version_of.get(event_id) != version:
            yield f"{event_id} was acknowledged as version {version} and is at {version_of.get(event_id)}"
    first = append.versions[0]
    if append.versions != tuple(range(first, first + len(append.ids))):
        yield f"the batch of {append.ids[0]} has gaps: {append.versions}"
    if append.expected_version is not None and first != append.expected_version + 1:
        yield f"{append.ids[0]} expected version {append.expected_version} and came after {first - 1}"


def _order_problems(appends: Sequence[Append]) -> Iterator[str]:
    """Yield appends with an earlier version than one that was answered before their call."""
    answered = sorted((it for it in appends if it.outcome == "ok"), key=lambda append: append.answered_at)
    at, newest = 0, 0
    for append in sorted(answered, key=lambda append: append.called_at):
        while at < len(answered) and answered[at].answered_at < append.called_at:
            newest = max(newest, answered[at].versions[-1])
            at += 1
        if append.versions[0] <= newest:
            yield f"{append.ids[0]} has version {append.versions[0]}, and version {newest} was answered before its call"


def _read_problems(appends: Sequence[Append], reads: Sequence[Read], ids: Sequence[str]) -> Iterator[str]:
    """Yield reads that miss an acknowledged event, see one of the future, or go back behind an earlier read."""
    called_at = {event_id: append.called_at for append in appends for event_id in append.ids}
    #: When each length of the log was known to some client, and that length.
    known = [(append.answered_at, append.versions[-1]) for append in appends if append.outcome == "ok"]
    known += [(read.answered_at, len(read.ids)) for read in reads]
    known.sort()
    at, newest = 0, 0
    for read in sorted(reads, key=lambda read: read.called_at):
        while at < len(known) and known[at][0] < read.called_at:
            newest = max(newest, known[at][1])
            at += 1
        if len(read.ids) < newest:
            yield f"a read has {len(read.ids)} events, and {newest} were known before its call"
        if read.ids != tuple(ids[: len(read.ids)]):
            yield f"a read of {len(read.ids)} events has others than the final log"
        future = [event_id for event_id in read.ids if called_at.get(event_id, 0.0) > read.answered_at]
        if future:
            yield f"a read has {future[0]}, which was sent after its answer"
