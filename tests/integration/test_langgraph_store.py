"""`RecollectStore` beside LangGraph's own `InMemoryStore`: what both must do, and what only a log can."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from msgspec.structs import replace

from recollect import AsyncRecollect, Recollect, RecollectStore
from recollect.api.integrations import langgraph_store
from recollect.api.integrations.store_items import document_id, item_of, labels_of, namespace_of
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, InvalidNamespace

NAMESPACES = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "123"),
    ("users", "456", "settings"),
    ("admin", "users", "789"),
]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture(params=["recollect", "langgraph"])
def store(request: pytest.FixtureRequest, memory: Recollect) -> BaseStore:
    """A store of ours, and the reference store whose behaviour it must have."""
    return RecollectStore(memory) if request.param == "recollect" else InMemoryStore()


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_an_item_is_put_read_replaced_and_deleted(store: BaseStore) -> None:
    value = {"theme": "dark", "sizes": [1, 2.5, None], "nested": {"on": True}, "name": "Zoë"}
    store.put(("users", "ann"), "settings", value)
    item = store.get(("users", "ann"), "settings")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (value, "settings", ("users", "ann"))
    assert abs(datetime.now(UTC) - item.updated_at) < timedelta(minutes=1)
    store.put(("users", "ann"), "settings", {"theme": "light"})
    replaced = store.get(("users", "ann"), "settings")
    assert replaced is not None
    assert replaced.value == {"theme": "light"}
    assert replaced.updated_at > item.updated_at
    store.delete(("users", "ann"), "settings")
    store.delete(("users", "ann"), "settings")
    store.delete(("nobody",), "settings")
    assert store.get(("users", "ann"), "settings") is None
    assert store.search(("users",)) == []


@pytest.mark.parametrize("key", ["", "a/b", "doc#0", "x" * 300, "new\nline", "Ann", "item:Ann", "日本"])
def test_a_key_may_be_any_text(store: BaseStore, key: str) -> None:
    store.put(("users",), "other", {"at": 0})
    store.put(("users",), key, {"at": 1})
    item = store.get(("users",), key)
    assert item is not None
    assert (item.key, item.value) == (key, {"at": 1})
    assert sorted(keys(store.search(("users",)))) == sorted(["other", key])


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: BaseStore) -> None:
    assert store.list_namespaces() == []
    for number, namespace in enumerate(NAMESPACES):
        store.put(namespace, f"id_{number}", {"data": number})
    assert store.list_namespaces() == sorted(NAMESPACES)
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), *NAMESPACES[1:4]]
    assert store.list_namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert store.list_namespaces(prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert store.list_namespaces(suffix=("*", "settings")) == [("users", "456", "settings")]
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", each) for each in "cdf"]
    assert store.list_namespaces(prefix=("a", "b"), limit=2) == [("a", "b", "c"), ("a", "b", "d", "e")]
    assert store.list_namespaces(prefix=("a", "b"), offset=2) == [("a", "b", "d", "i"), ("a", "b", "f")]
    assert store.list_namespaces(max_depth=1, limit=2, offset=1) == [("admin",), ("b",)]
    assert store.list_namespaces(prefix=("nothing",)) == []


def test_items_below_a_prefix_are_searched_and_filtered(store: BaseStore) -> None:
    fruits = [("red", 4.5), ("red", 3.0), ("green", 4.0), ("blue", 3.5)]
    for number, (colour, score) in enumerate(fruits):
        value = {"colour": colour, "score": score, "meta": {"number": number}, "tags": ["a", number]}
        store.put(("shop", colour), f"fruit{number}", value)
    store.put(("shopping",), "list", {"colour": "red"})
    assert sorted(keys(store.search(("shop",)))) == ["fruit0", "fruit1", "fruit2", "fruit3"]
    assert sorted(keys(store.search((), limit=100))) == ["fruit0", "fruit1", "fruit2", "fruit3", "list"]
    assert sorted(keys(store.search(("shop",), filter={"colour": "red"}))) == ["fruit0", "fruit1"]
    assert keys(store.search(("shop",), filter={"score": {"$gte": 4.0}, "colour": "green"})) == ["fruit2"]
    assert sorted(keys(store.search(("shop",), filter={"score": {"$gt": 3.0, "$lt": 4.5}}))) == ["fruit2", "fruit3"]
    assert sorted(keys(store.search(("shop",), filter={"score": {"$lte": 3.5}}))) == ["fruit1", "fruit3"]
    assert sorted(keys(store.search(("shop",), filter={"colour": {"$ne": "red"}}))) == ["fruit2", "fruit3"]
    assert keys(store.search(("shop",), filter={"meta": {"number": 3}})) == ["fruit3"]
    assert keys(store.search(("shop",), filter={"tags": ["a", 1]})) == ["fruit1"]
    assert store.search(("shop", "purple")) == []
    pages = [keys(store.search(("shop",), limit=3, offset=offset)) for offset in (0, 3)]
    assert sorted(pages[0] + pages[1]) == ["fruit0", "fruit1", "fruit2", "fruit3"]
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(("shop",), filter={"score": {"$near": 1}})


def test_a_search_for_several_pages_reads_all_items(store: BaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_store, "_PAGE_ITEMS", 2)
    for number in range(5):
        store.put(("a", str(number)), "key", {"n": number})
        store.put(("b",), f"key{number}", {"n": number})
    assert len(store.search(("a",))) == len(store.search(("b",))) == 5
    assert len(store.list_namespaces()) == 6


async def test_the_async_methods_do_the_same(store: BaseStore) -> None:
    await asyncio.gather(*(store.aput(("a",), f"key{number}", {"n": number}) for number in range(4)))
    assert sorted(keys(await store.asearch(("a",), filter={"n": {"$gt": 0}}))) == ["key1", "key2", "key3"]
    await store.adelete(("a",), "key0")
    assert await store.aget(("a",), "key0") is None
    assert await store.alist_namespaces() == [("a",)]


def test_a_batch_reads_before_it_writes_and_the_last_write_of_a_key_counts(store: BaseStore) -> None:
    store.put(("a",), "key", {"n": 0})
    ops = [PutOp(("a",), "key", {"n": 1}), GetOp(("a",), "key"), PutOp(("a",), "key", {"n": 2}), SearchOp(("a",))]
    written, read, _, found = store.batch(ops)
    assert written is None
    assert getattr(read, "value", None) == {"n": 0}
    assert isinstance(found, list)
    item = store.get(("a",), "key")
    assert item is not None
    assert item.value == {"n": 2}


@pytest.mark.parametrize("namespace", [(), ("foo.bar",), ("foo", ""), ("langgraph", "foo"), (123,)])
def test_what_langgraph_refuses_is_refused(store: BaseStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "key", {"a": 1})


def test_items_are_found_by_their_text_best_first(memory: Recollect) -> None:
    store = RecollectStore(memory, fields=["text"])
    store.put(("docs",), "apple", {"text": "red apple", "colour": "red"})
    store.put(("docs",), "car", {"text": "red car", "colour": "red"})
    store.put(("docs", "old"), "lime", {"text": "green apple", "colour": "green", "note": "xylophone"})
    store.put(("docs",), "hidden", {"text": "apple apple"}, index=False)
    store.put(("docs",), "noted", {"text": "pear", "note": "a xylophone"}, index=["note"])
    found = store.search(("docs",), query="apple", limit=10)
    assert {found[0].key, found[1].key} == {"apple", "lime"}
    assert (found[0].score or 0) > 0
    # The others follow without a score, those that are not indexed last.
    assert [item.score for item in found[2:]] == [None] * 3
    assert found[-1].key == "hidden"
    assert keys(store.search(("docs",), query="apple", filter={"colour": "green"})) == ["lime"]
    assert keys(store.search(("docs",), query="xylophone", limit=1)) == ["noted"]
    store.put(("docs",), "apple", {"text": "banana"})
    assert keys(store.search(("docs",), query="banana", limit=1)) == ["apple"]


def test_items_survive_the_process_and_their_history_is_in_the_log(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        store = RecollectStore(memory)
        store.put(("users", "ann"), "food", {"likes": "pizza"})
        store.put(("users", "ann"), "food", {"likes": "soup"})
    with Recollect(settings=settings, workers=False) as memory:
        item = RecollectStore(memory).get(("users", "ann"), "food")
        assert item is not None
        assert item.value == {"likes": "soup"}
        assert item.created_at < item.updated_at
        [head] = memory.namespaces()["items"]
        assert (head["namespace"], head["version"]) == ("langgraph:users:ann", 2)


def test_an_expired_item_is_gone_and_a_read_one_lives_on(memory: Recollect) -> None:
    store = RecollectStore(memory, ttl={"default_ttl": 60})
    store.put(("a",), "short", {"n": 1}, ttl=-1)
    store.put(("a",), "forever", {"n": 3}, ttl=None)
    store.put(("b",), "short", {"n": 1}, ttl=-1)
    assert store.get(("a",), "short") is None
    assert keys(store.search(("a",), query="n")) == ["forever"]
    assert store.list_namespaces() == [("a",)]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (2, 0)
    store.put(("a",), "hour", {"n": 2})
    [before] = [item for item in memory.list("langgraph:a", "documents")["items"] if item["title"] == "hour"]
    # As it is after 20 of its 60 minutes.
    item = item_of(before, ("a",))
    assert item is not None
    assert item.expires_at is not None
    memory.append("langgraph:a", [replace(item, expires_at=item.expires_at - timedelta(minutes=20)).event()])
    versions: list[int] = []
    for refresh in (False, True, True):
        assert store.get(("a",), "hour", refresh_ttl=refresh) is not None
        versions.append(memory.namespaces()["items"][0]["version"])
    # A read that changes the expiry by less than a tenth writes nothing.
    assert [version - versions[0] for version in versions] == [0, 1, 1]


def test_tenants_stay_apart(memory: Recollect) -> None:
    store = RecollectStore(memory)
    hostile = [("a", "b"), ("a:b",), ("a/b",), ("a_3ab",), ("a", "b", "*"), ("a%", "b"), ("A", "b"), ("../a", "b")]
    # In a batch, LangGraph does not check labels.
    store.batch([PutOp(namespace, "key", {"n": number}) for number, namespace in enumerate(hostile)])
    items = store.batch([GetOp(namespace, "key") for namespace in hostile])
    assert [getattr(item, "value", None) for item in items] == [{"n": number} for number in range(len(hostile))]
    assert keys(store.search(("a:b",))) == ["key"]
    assert [item.namespace for item in store.search(("a",))] == [("a", "b"), ("a", "b", "*")]
    assert sorted(store.list_namespaces()) == sorted(hostile)
    # What others store in the memory is not seen.
    memory.append("langgraph-user", {"type": "message.added", "payload": {"role": "user", "text": "hi"}})
    assert len(store.search((), limit=100)) == len(hostile)
    with pytest.raises(InvalidNamespace, match="shorter labels"):
        store.put(("x" * 300,), "key", {"n": 1})


def test_what_is_no_memory_that_blocks_is_refused(memory: Recollect) -> None:
    for wrong, message in (("./recollect-data", "give an open memory"), (AsyncRecollect.over(memory), "a Recollect")):
        given: Any = wrong
        with pytest.raises(InvalidInput, match=message):
            RecollectStore(given)


def test_without_langgraph_the_error_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    monkeypatch.delitem(sys.modules, langgraph_store.__name__)
    with pytest.raises(ImportError, match=r"pip install 'recollect\[langgraph\]'"):
        import_module(langgraph_store.__name__)


# Short enough for a name of 200 characters: an escaped character has 12 at most.
labels = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3).map(tuple)


@given(labels, labels)
def test_labels_and_namespaces_are_one_to_one(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert labels_of(namespace_of(first)) == first
    assert (namespace_of(first) == namespace_of(second)) == (first == second)
    assert document_id(first[0]) != document_id(first[0] + "#0")
