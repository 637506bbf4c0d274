"""LangGraph store: `RecollectStore` keeps the items of a LangGraph `BaseStore` in the log, one document for each.

Items are found by the words and the meaning of their texts. Replaced and deleted items stay in the log until `erase`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from msgspec.structs import replace

from recollect.api.integrations.store_items import (
    STORE_PREFIX,
    Labels,
    StoredItem,
    document_id,
    expiry,
    is_matched,
    item_of,
    labels_of,
    namespace_of,
    passes,
    value_text,
)
from recollect.api.memory.memory_protocols import StoreMemory, check_memory
from recollect.events.errors import NotFound
from recollect.events.limits import BATCH_EVENTS_MAX

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ImportError as error:
    raise ImportError("RecollectStore needs LangGraph: pip install 'recollect[langgraph]'") from error

#: Items and namespaces that are read at a time: the largest page of a list.
_PAGE_ITEMS = 1_000
#: Items that a search by text returns from one namespace: the largest limit of a retrieval.
_HITS_MAX = 100
#: Tokens of a search's context, which is not used: enough that no item is left out of it for its size.
_TOKENS_MAX = 100_000
#: The share of its time to live after which a read writes the new expiry of an item: each is an event in the log.
_REFRESH_SHARE = 0.1

_Scored = tuple[StoredItem, float | None]


class RecollectStore(BaseStore):
    """A LangGraph store over a memory: ``graph.compile(store=RecollectStore(memory))``.

    Parameters:
        memory: a `Recollect`, or a client of a server with the same methods. `AsyncRecollect.memory` is one.
        fields: the fields of values that searches read, as paths such as ``text`` or ``chapters[*].title``; all when
            None. `index` of `put` comes before it.
        ttl: LangGraph's settings of the time to live, such as ``{"default_ttl": 60, "refresh_on_read": True}``, in
            minutes. Expired items are never returned; `sweep_ttl` deletes them.
        prefix: the first part of the names of the store's namespaces, of letters, digits and hyphens.

    Raises:
        InvalidInput: the memory lacks a method, or is an asynchronous one.
        The errors of `append` and `retrieve`; those of LangGraph for a namespace that it refuses.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: StoreMemory,
        *,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        prefix: str = STORE_PREFIX,
    ) -> None:
        check_memory(memory, StoreMemory, is_blocking=True)
        self._memory = memory
        self._fields = fields
        self._prefix = prefix
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the results of operations, in order. Reads see the store before the writes of the same batch."""
        results: list[Result] = []
        writes: dict[tuple[Labels, str], PutOp] = {}
        now = datetime.now(UTC)
        for op in ops:
            if isinstance(op, PutOp):
                writes[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(self._got(op, now))
            elif isinstance(op, SearchOp):
                results.append(self._searched(op, now))
            else:
                results.append(self._listed(op, now))
        self._write(list(writes.values()), now)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        now = datetime.now(UTC)
        swept = 0
        for labels in self._all_labels(()):
            keys = [item.key for item in self._items(labels) if item.is_expired(now)]
            self._append(labels, [_removal(key) for key in keys])
            swept += len(keys)
        return swept

    def _got(self, op: GetOp, now: datetime) -> Item | None:
        item = self._item(op.namespace, document_id(op.key), now)
        if item is None:
            return None
        self._refresh([item] if op.refresh_ttl else [], now)
        return Item(
            namespace=item.labels,
            key=item.key,
            value=item.value,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def _searched(self, op: SearchOp, now: datetime) -> list[SearchItem]:
        """Return the items below a prefix of labels: those that a query finds, best first, then the others."""
        end = op.offset + op.limit
        conditions = op.filter or {}
        labels = list(self._all_labels(op.namespace_prefix))
        hits: list[_Scored] = self._hits(labels, op.query, now) if op.query else []
        hits = [(item, score) for item, score in hits if passes(item.value, conditions)]
        if len(hits) < end:
            scored = {(item.labels, item.key) for item, _ in hits}
            others = [
                item
                for each in labels
                for item in self._items(each)
                if not item.is_expired(now) and (item.labels, item.key) not in scored and passes(item.value, conditions)
            ]
            others.sort(key=lambda item: item.updated_at, reverse=True)
            # Items that are not indexed come last where a query is given.
            others.sort(key=lambda item: bool(op.query) and not item.is_indexed)
            hits.extend((item, None) for item in others)
        page = hits[op.offset : end]
        self._refresh([item for item, _ in page] if op.refresh_ttl else [], now)
        return [
            SearchItem(item.labels, item.key, item.value, item.created_at, item.updated_at, score)
            for item, score in page
        ]

    def _hits(self, labels: Iterable[Labels], query: str, now: datetime) -> list[_Scored]:
        """Return the items of namespaces that a query finds, best first."""
        scored: list[_Scored] = []
        for each in labels:
            namespace = namespace_of(each, self._prefix)
            options: dict[str, Any] = {"kinds": ["document"], "limit": _HITS_MAX, "budget_tokens": _TOKENS_MAX}
            recalled = self._memory.retrieve(namespace, query, gate=False, no_store=True, **options)
            scores: dict[str, float] = {}
            for chunk in recalled.items:
                scores.setdefault(chunk.id.rpartition("#")[0], chunk.score)
            for id, score in scores.items():
                item = self._item(each, id, now)
                if item is not None and item.is_indexed:
                    scored.append((item, score))
        return sorted(scored, key=lambda hit: -(hit[1] or 0.0))

    def _listed(self, op: ListNamespacesOp, now: datetime) -> list[Labels]:
        """Return the labels with items that meet all conditions, in order."""
        conditions = op.match_conditions or ()
        prefixes = [tuple(condition.path) for condition in conditions if condition.match_type == "prefix"]
        start = next((prefix for prefix in prefixes if "*" not in prefix), ())
        matching = sorted(
            labels
            for labels in self._all_labels(start)
            if all(is_matched(labels, each.path, is_suffix=each.match_type == "suffix") for each in conditions)
        )
        end = op.offset + op.limit
        # A dictionary keeps the order. Namespaces without items are those whose items were all deleted.
        listed: dict[Labels, None] = {}
        for labels in matching:
            cut = labels if op.max_depth is None else labels[: op.max_depth]
            if cut not in listed and any(not item.is_expired(now) for item in self._items(labels)):
                listed[cut] = None
                if len(listed) >= end:
                    break
        return [*listed][op.offset : end]

    def _write(self, ops: Sequence[PutOp], now: datetime) -> None:
        """Write items, those of one namespace all or none."""
        events: dict[Labels, list[dict[str, Any]]] = defaultdict(list)
        for op in ops:
            current = self._item(op.namespace, document_id(op.key), None)
            if op.value is not None:
                events[op.namespace].append(self._put_item(op, current, now).event())
            elif current is not None:
                events[op.namespace].append(_removal(op.key))
        for labels, writes in events.items():
            self._append(labels, writes)

    def _put_item(self, op: PutOp, current: StoredItem | None, now: datetime) -> StoredItem:
        value = cast(dict[str, Any], op.value)
        fields = self._fields if op.index is None else op.index
        is_indexed = fields is not False
        texts = [text for path in fields or () for text in get_text_at_path(value, path)] if fields else []
        text = value_text(value) if fields is None else "\n".join(texts)
        created_at = now if current is None or current.is_expired(now) else current.created_at
        return StoredItem(
            labels=op.namespace,
            key=op.key,
            value=value,
            created_at=created_at,
            updated_at=now,
            # A value without text is stored, and found by no query.
            is_indexed=is_indexed and bool(text.strip()),
            text=text if text.strip() else op.key or "item",
            ttl_minutes=op.ttl,
            expires_at=expiry(op.ttl, now),
        )

    def _refresh(self, items: Sequence[StoredItem], now: datetime) -> None:
        """Write the new expiry of items that are read, those of which a share of the time to live has passed."""
        for item in items:
            later = expiry(item.ttl_minutes, now)
            if later is not None and item.expires_at is not None and item.ttl_minutes:
                passed_minutes = (later - item.expires_at).total_seconds() / 60
                if passed_minutes >= _REFRESH_SHARE * item.ttl_minutes:
                    self._append(item.labels, [replace(item, expires_at=later).event()])

    def _item(self, labels: Labels, id: str, now: datetime | None) -> StoredItem | None:
        """Return an item by the id of its document; None when there is none, or it is expired."""
        try:
            item = item_of(self._memory.get(namespace_of(labels, self._prefix), id), labels)
        except NotFound:
            return None
        return None if item is None or (now is not None and item.is_expired(now)) else item

    def _items(self, labels: Labels) -> Iterator[StoredItem]:
        """Yield the items of a namespace, expired ones too."""
        namespace, after = namespace_of(labels, self._prefix), ""
        while True:
            page = self._memory.list(namespace, "documents", after=after, limit=_PAGE_ITEMS)
            for document in page["items"]:
                item = item_of(document, labels)
                if item is not None:
                    yield item
            if page["next"] is None:
                return
            after = page["next"]

    def _all_labels(self, prefix: Labels) -> Iterator[Labels]:
        """Yield the labels of all namespaces below a prefix, and the prefix itself; no other namespaces are read."""
        start = namespace_of(prefix, self._prefix)
        if prefix:
            yield prefix
        below = after = f"{start}:"
        while True:
            page = self._memory.namespaces(after=after, limit=_PAGE_ITEMS)
            for head in page["items"]:
                name: str = head["namespace"]
                labels = labels_of(name, self._prefix) if name.startswith(below) else None
                if labels is None:
                    return
                yield labels
            if page["next"] is None:
                return
            after = page["next"]

    def _append(self, labels: Labels, events: Sequence[dict[str, Any]]) -> None:
        namespace = namespace_of(labels, self._prefix)
        for start in range(0, len(events), BATCH_EVENTS_MAX):
            self._memory.append(namespace, events[start : start + BATCH_EVENTS_MAX])


def _removal(key: str) -> dict[str, Any]:
    return {"type": "document.removed", "payload": {"document_id": document_id(key)}}
