"""Bounded caches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.events.storage.bounded_cache import BoundedCache


def test_the_least_recently_used_value_goes_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.get_all(["a", "b", "c"]) == {"a": 1, "c": 3}


def test_sizes_add_up_to_the_maximum_and_the_newest_value_stays_whatever_its_size() -> None:
    cache: BoundedCache[str, str] = BoundedCache(5, len)
    cache.put_all({"a": "12", "b": "345"})
    assert len(cache) == 2
    cache.put("a", "123")
    assert cache.get("b") is None
    cache.put("c", "123456")
    assert cache.get_all("abc") == {"c": "123456"}


def test_the_number_of_values_is_bounded_beside_their_sizes() -> None:
    cache: BoundedCache[str, str] = BoundedCache(100, len, entries_max=2)
    cache.put_all({"a": "1", "b": "2", "c": "3"})
    assert cache.get_all("abc") == {"b": "2", "c": "3"}


def test_a_value_that_is_kept_already_can_stay() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 5)
    cache.put("a", 3, unless=lambda known: known > 3)
    assert cache.get("a") == 5
    cache.put("a", 7, unless=lambda known: known > 7)
    assert cache.get("a") == 7


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.text("x", max_size=6)), max_size=40), st.integers(1, 12))
def test_the_sum_of_sizes_is_never_over_the_maximum_but_for_one_value(
    puts: list[tuple[str, str]], maximum: int
) -> None:
    cache: BoundedCache[str, str] = BoundedCache(maximum, len)
    for key, value in puts:
        cache.put(key, value)
        kept = cache.get_all("abcd")
        assert len(kept) <= 1 or sum(map(len, kept.values())) <= maximum
        assert kept.get(key) == value
    cache.clear()
    assert not len(cache)
