"""What somebody with the right to write the log's tables can do to it, at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from uuid import UUID

from msgspec import Struct, field
from support.events import PAYLOADS, Event

from recollect.events.backends.log import EventLog
from recollect.events.chain import GENESIS, leaf, link
from recollect.events.validation import drafts

COLUMNS = (
    "id",
    "type",
    "schema_version",
    "occurred_at_us",
    "recorded_at_us",
    "session_id",
    "actor",
    "causation_id",
    "correlation_id",
    "encoding",
    "payload",
    "leaf",
    "hash",
)
_OPTIONAL = ("session_id", "actor", "causation_id", "correlation_id")
NAMESPACES = {"a": 120, "b": 90, "long:name@example.com": 60, "solo": 1}

Key = tuple[str, int]


class RawText(Struct, frozen=True):
    """A text whose bytes are no UTF-8, as only a foreign hand can store it."""

    content: bytes


class Stored(Struct):
    """All that the two tables hold."""

    #: (namespace, version) → column → value
    events: dict[Key, dict[str, Any]] = field(default_factory=dict[Key, dict[str, Any]])
    #: namespace → version, hash
    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict[str, tuple[int, bytes]])


def fill(log: EventLog, chance: random.Random) -> None:
    """Append events of every type: with UUIDs and texts as ids, with and without the optional columns."""
    for namespace, count in NAMESPACES.items():
        batch = [_event(chance, number) for number in range(count)]
        for start in range(0, count, 40):
            log.append(namespace, drafts(batch[start : start + 40]))


def _event(chance: random.Random, number: int) -> Event:
    kind = chance.choice(sorted(PAYLOADS))
    event: Event = {"type": kind, "payload": PAYLOADS[kind], "session_id": chance.choice(["s", "Zoë", "李明"])}
    if kind == "message.added":
        event["payload"] = {"role": "user", "text": f"{number} São Paulo 🙂 " * chance.choice([1, 10, 300])}
    if not kind.startswith("session.") and chance.random() < 0.3:
        event["session_id"] = None
    for name in ("actor", "causation_id", "correlation_id"):
        if chance.random() < 0.5:
            event[name] = f"{name} {number} ü"
    if chance.random() < 0.7:
        uuid = str(UUID(int=chance.getrandbits(128)))
        event["id"] = chance.choice([uuid, uuid.upper(), f"text id {number}"])
    return event


class Change(Struct, frozen=True):
    what: str
    stored: Stored
    #: Whether every link fits again, so that only a head hash kept elsewhere shows it.
    consistent: bool = False


def tamper(before: Stored, chance: random.Random, *, raw_text: bool) -> Change:
    """Return one random change that is a change indeed."""
    while True:
        change = chance.choice(_CHANGES)(deepcopy(before), chance)
        texts = [value for event in change.stored.events.values() for value in event.values()]
        if change.stored != before and (raw_text or not any(_is_raw(value) for value in texts)):
            return change


def _is_raw(value: Any) -> bool:
    return isinstance(value, RawText) or (isinstance(value, str) and "\0" in value)


def _flip(stored: Stored, chance: random.Random) -> Change:
    key = chance.choice(list(stored.events))
    event = stored.events[key]
    column = chance.choice([name for name in COLUMNS if event[name] not in (None, "", b"")])
    event[column] = _flipped(event[column], chance)
    return Change(f"one bit of {column}", stored)


def _flipped(value: Any, chance: random.Random) -> Any:
    if isinstance(value, int):
        return value ^ 1 << chance.randrange(30)
    content = bytearray(value.encode() if isinstance(value, str) else value)
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    if isinstance(value, bytes):
        return bytes(content)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return RawText(bytes(content))


def _null(stored: Stored, chance: random.Random) -> Change:
    event = stored.events[chance.choice(list(stored.events))]
    column = chance.choice(_OPTIONAL)
    event[column] = chance.choice(["x", ""]) if event[column] is None else chance.choice([None, ""])
    return Change("NULL and value", stored)


def _delete(stored: Stored, chance: random.Random) -> Change:
    del stored.events[chance.choice(list(stored.events))]
    return Change("a row deleted", stored)


def _swap(stored: Stored, chance: random.Random) -> Change:
    one, other = chance.sample(list(stored.events), 2)
    stored.events[one], stored.events[other] = stored.events[other], stored.events[one]
    return Change("two rows swapped", stored)


def _swap_column(stored: Stored, chance: random.Random) -> Change:
    one, other = (stored.events[key] for key in chance.sample(list(stored.events), 2))
    column = chance.choice(COLUMNS)
    one[column], other[column] = other[column], one[column]
    return Change("a column of two rows swapped", stored)


def _shuffle(stored: Stored, chance: random.Random) -> Change:
    namespace = chance.choice([name for name, count in NAMESPACES.items() if count > 10])
    first = chance.randint(1, stored.heads[namespace][0] - 5)
    keys = [(namespace, version) for version in range(first, first + 5)]
    events = [stored.events[key] for key in keys]
    chance.shuffle(events)
    stored.events.update(zip(keys, events, strict=True))
    return Change("the order of some rows", stored)


def _move(stored: Stored, chance: random.Random) -> Change:
    key = chance.choice(list(stored.events))
    namespace = chance.choice(list(NAMESPACES))
    stored.events[namespace, stored.heads[namespace][0] + chance.randint(1, 3)] = stored.events.pop(key)
    return Change("a row moved to another version or namespace", stored)


def _duplicate(stored: Stored, chance: random.Random) -> Change:
    event = stored.events[chance.choice(list(stored.events))]
    namespace = chance.choice(list(NAMESPACES))
    version, _ = stored.heads[namespace]
    stored.events[namespace, version + 1] = dict(event)
    if chance.random() < 0.5:
        stored.heads[namespace] = (version + 1, event["hash"])
    return Change("a row duplicated", stored)


def _overwrite(stored: Stored, chance: random.Random) -> Change:
    one, other = chance.sample(list(stored.events), 2)
    stored.events[one] = dict(stored.events[other])
    return Change("a row overwritten by another", stored)


def _truncate(stored: Stored, chance: random.Random) -> Change:
    _cut_tail(stored, chance)
    return Change("the tail cut off", stored)


def _truncate_with_head(stored: Stored, chance: random.Random) -> Change:
    namespace, version = _cut_tail(stored, chance)
    stored.heads[namespace] = (version, stored.events[namespace, version]["hash"] if version else GENESIS)
    return Change("the tail cut off and the head put back", stored, consistent=True)


def _cut_tail(stored: Stored, chance: random.Random) -> Key:
    namespace = chance.choice(list(NAMESPACES))
    head, _ = stored.heads[namespace]
    version = chance.randrange(head)
    for removed in range(version + 1, head + 1):
        del stored.events[namespace, removed]
    return namespace, version


def _head_version(stored: Stored, chance: random.Random) -> Change:
    namespace = chance.choice(list(NAMESPACES))
    version, head_hash = stored.heads[namespace]
    stored.heads[namespace] = (chance.choice([0, -1, version - 1, version + 1, version + 1_000]), head_hash)
    return Change("a head's version", stored)


def _head_hash(stored: Stored, chance: random.Random) -> Change:
    namespace = chance.choice(list(NAMESPACES))
    version, head_hash = stored.heads[namespace]
    stored.heads[namespace] = (version, chance.choice([_flipped(head_hash, chance), GENESIS, b""]))
    return Change("a head's hash", stored)


def _head_put_back(stored: Stored, chance: random.Random) -> Change:
    namespace = chance.choice([name for name, count in NAMESPACES.items() if count > 1])
    version = chance.randint(1, stored.heads[namespace][0] - 1)
    stored.heads[namespace] = (version, stored.events[namespace, version]["hash"])
    return Change("a head put back, its events left", stored)


def _heads_swapped(stored: Stored, chance: random.Random) -> Change:
    one, other = chance.sample(list(NAMESPACES), 2)
    stored.heads[one], stored.heads[other] = stored.heads[other], stored.heads[one]
    return Change("two heads swapped", stored)


def _forget(stored: Stored, chance: random.Random) -> Change:
    namespace = chance.choice(list(NAMESPACES))
    stored.events = {key: event for key, event in stored.events.items() if key[0] != namespace}
    del stored.heads[namespace]
    return Change("a namespace removed without a trace", stored, consistent=True)


def _forge(stored: Stored, chance: random.Random) -> Change:
    """Rewrite one event and every link after it, as somebody does who knows how the chain is made."""
    namespace, first = chance.choice(list(stored.events))
    stored.events[namespace, first]["payload"] = b'{"forged":true}'
    head, _ = stored.heads[namespace]
    chain_hash = stored.events[namespace, first - 1]["hash"] if first > 1 else GENESIS
    for version in range(first, head + 1):
        event = stored.events[namespace, version]
        event_id = event["id"] if isinstance(event["id"], str) else str(UUID(bytes=event["id"]))
        columns = ("type", "schema_version", "occurred_at_us", "recorded_at_us", *_OPTIONAL, "encoding")
        header = (namespace, version, event_id, *(event[name] for name in columns))
        event["leaf"] = leaf(header, event["payload"])
        event["hash"] = chain_hash = link(chain_hash, event["leaf"])
    stored.heads[namespace] = (head, chain_hash)
    return Change("an event rewritten with the chain after it", stored, consistent=True)


_CHANGES: tuple[Callable[[Stored, random.Random], Change], ...] = (
    *([_flip] * 8),
    _null,
    _delete,
    _swap,
    _swap_column,
    _shuffle,
    _move,
    _duplicate,
    _overwrite,
    _truncate,
    _truncate_with_head,
    _head_version,
    _head_hash,
    _head_put_back,
    _heads_swapped,
    _forget,
    _forge,
)
