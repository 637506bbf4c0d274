"""Store items: how a LangGraph store's items are kept as documents, and its namespaces as ours.

Each tuple of labels is a namespace of its own, so that tenants have files, keys and erasures of their own. Every byte
of a label other than letters, digits and hyphens is written as `_` and two hexadecimal digits, and `:` joins the
labels: different tuples have different names, with any characters in their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, cast

from msgspec import Struct

from recollect.events.errors import InvalidNamespace
from recollect.events.late_pattern import late_pattern
from recollect.events.limits import NAME_CHARS_MAX

#: The first part of the names of all namespaces of stores.
STORE_PREFIX = "langgraph"
_SEPARATOR = ":"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_ESCAPED = late_pattern(r"_([0-9a-f]{2})")
#: The first part of the ids of documents that hold items, so that no id is also the name of an entity.
_ITEM = "item:"
_CONTROL = late_pattern(r"[\x00-\x1f\x7f]")
#: The field of a document's metadata that holds the item.
_FIELD = "store_item"

Labels = tuple[str, ...]


class StoredItem(Struct, frozen=True, kw_only=True):
    """An item of a store."""

    labels: Labels
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    #: Whether searches by meaning and words read it.
    is_indexed: bool
    #: What searches read, which is stored as the text of the document.
    text: str
    #: Minutes after its last write or read that it expires; None: never.
    ttl_minutes: float | None = None
    #: When it expires.
    expires_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return whether the item's time to live is over."""
        return self.expires_at is not None and self.expires_at <= now

    def event(self) -> dict[str, Any]:
        """Return the event that stores it."""
        fields = {
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "indexed": self.is_indexed,
            "ttl_minutes": self.ttl_minutes,
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
        }
        document = {
            "document_id": document_id(self.key),
            "title": self.key or "item",
            "text": self.text,
            "metadata": {_FIELD: fields},
        }
        return {"type": "document.added", "payload": document}


def namespace_of(labels: Labels, prefix: str = STORE_PREFIX) -> str:
    """Return the namespace of a tuple of labels.

    Raises:
        InvalidNamespace: the labels are too long for the name of a namespace.
    """
    name = _SEPARATOR.join((prefix, *(_escaped(label) for label in labels)))
    if len(name) > NAME_CHARS_MAX:
        raise InvalidNamespace(
            f"the labels have {len(name)} characters as the name of a namespace, which has {NAME_CHARS_MAX} at most; "
            "use shorter labels, such as ids",
            field="namespace",
        )
    return name


def labels_of(namespace: str, prefix: str = STORE_PREFIX) -> Labels | None:
    """Return the labels of a namespace; None for a namespace that is not of the store."""
    first, *names = namespace.split(_SEPARATOR)
    if first != prefix or not names:
        return None
    return tuple(
        _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), name).encode("latin-1").decode(errors="surrogatepass")
        for name in names
    )


def document_id(key: str) -> str:
    """Return the document id of a key; it has the key's hash when the key is not a valid name."""
    if len(key) + len(_ITEM) > NAME_CHARS_MAX or _CONTROL.search(key):
        return f"{_ITEM}sha256:{sha256(key.encode(errors='surrogatepass')).hexdigest()}"
    return f"{_ITEM}{key}"


def item_of(document: Mapping[str, Any], labels: Labels) -> StoredItem | None:
    """Return the item of a document; None for a document that holds none."""
    metadata: Any = document.get("metadata")
    fields: Any = cast(Mapping[str, Any], metadata).get(_FIELD) if isinstance(metadata, Mapping) else None
    if not isinstance(fields, dict):
        return None
    item = cast(dict[str, Any], fields)
    expires_at = item.get("expires_at")
    return StoredItem(
        labels=labels,
        key=item["key"],
        value=item["value"],
        created_at=datetime.fromisoformat(item["created_at"]),
        updated_at=datetime.fromisoformat(item["updated_at"]),
        is_indexed=item["indexed"],
        text=document["text"],
        ttl_minutes=item.get("ttl_minutes"),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
    )


def expiry(ttl_minutes: float | None, now: datetime) -> datetime | None:
    """Return when an item that is written or read now expires."""
    return None if ttl_minutes is None or math.isinf(ttl_minutes) else now + timedelta(minutes=ttl_minutes)


def value_text(value: object) -> str:
    """Return the text of a value: its leaves, each after the names of its fields."""
    return "\n".join(_leaves(value, ""))


def passes(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Return whether a value passes a filter: names, or dotted paths, with values or operators such as `$gt`."""
    return all(_equals(_at_path(value, path), wanted) for path, wanted in conditions.items())


def is_matched(labels: Labels, path: Sequence[str], *, is_suffix: bool) -> bool:
    """Return whether labels begin or end with a path, in which `*` stands for any label."""
    if len(labels) < len(path):
        return False
    compared = labels[len(labels) - len(path) :] if is_suffix else labels[: len(path)]
    return all(wanted in ("*", label) for label, wanted in zip(compared, path, strict=True))


def _escaped(label: str) -> str:
    return "".join(
        chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in str(label).encode(errors="surrogatepass")
    )


def _leaves(value: object, name: str) -> Iterator[str]:
    """Yield the leaves of a value, in order. The log accepts a bounded size, and JSON has no cycles."""
    if isinstance(value, Mapping):
        for key, field in cast(Mapping[str, object], value).items():
            yield from _leaves(field, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for field in cast(Sequence[object], value):
            yield from _leaves(field, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def _at_path(value: Mapping[str, Any], path: str) -> Any:
    """Return the field with a name, or else at a dotted path; None when there is none."""
    if path in value:
        return value[path]
    field: Any = value
    for name in path.split("."):
        field = cast(Mapping[str, Any], field).get(name) if isinstance(field, Mapping) else None
    return field


def _equals(field: Any, wanted: Any) -> bool:
    """Return whether a field has a value, or passes operators; of an object, the named fields are compared."""
    if isinstance(wanted, Mapping):
        conditions = cast(Mapping[str, Any], wanted)
        if any(name.startswith("$") for name in conditions):
            return all(_passes_operator(field, name, operand) for name, operand in conditions.items())
        fields = cast(Mapping[str, Any], field) if isinstance(field, Mapping) else None
        return fields is not None and all(_equals(fields.get(name), each) for name, each in conditions.items())
    if isinstance(wanted, list | tuple):
        return isinstance(field, list | tuple) and list(cast(Any, field)) == list(cast(Any, wanted))
    return bool(field == wanted)


def _passes_operator(field: Any, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return bool(field == operand)
    if operator == "$ne":
        return bool(field != operand)
    order = {"$gt": (1,), "$gte": (0, 1), "$lt": (-1,), "$lte": (-1, 0)}.get(operator)
    if order is None:
        raise ValueError(f"unknown operator {operator!r}; use $eq, $ne, $gt, $gte, $lt or $lte")
    if field is None:
        return False
    left, right = (field, operand) if isinstance(field, str) and isinstance(operand, str) else _numbers(field, operand)
    # Comparisons with what is not a number are all false.
    return any((left > right, left == right, left < right)[1 - sign] for sign in order)


def _numbers(field: Any, operand: Any) -> tuple[Any, Any]:
    """Return both as numbers; NaN, which compares with nothing, when one is not a number."""
    try:
        return float(field), float(operand)
    except (TypeError, ValueError):
        return math.nan, math.nan
