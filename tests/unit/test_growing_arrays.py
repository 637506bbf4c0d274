from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.projections.search_index.growing_arrays import GrowingArrays

Arrays = dict[str, NDArray[np.int64]]
EMPTY: Arrays = {"a": np.empty(0, np.int64), "b": np.empty(0, np.int64)}


def pair(numbers: list[int]) -> Arrays:
    return {"a": np.array(numbers, np.int64), "b": -np.array(numbers, np.int64)}


@given(st.lists(st.lists(st.integers(0, 9), max_size=40), max_size=12), st.integers(0, 2**16))
def test_every_view_keeps_its_numbers_whatever_is_appended_to_it_later(parts: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Each version is an owner, its views and the numbers that they must have; a new one grows from any of them.
    versions: list[tuple[GrowingArrays, Arrays, list[int]]] = [(GrowingArrays(), EMPTY, [])]
    for part in parts:
        owner, views, numbers = versions[int(rng.integers(len(versions)))]
        versions.append((*owner.extended(views, pair(part)), numbers + part))

    for _, views, numbers in versions:
        assert views["a"].tolist() == numbers
        assert views["b"].tolist() == [-number for number in numbers]


def test_an_append_copies_nothing_while_there_is_room() -> None:
    owner, views = GrowingArrays().extended(EMPTY, pair(list(range(100))))
    owner, views = owner.extended(views, pair([1]))
    same, longer = owner.extended(views, pair([2]))

    assert same is owner
    assert np.shares_memory(longer["a"], views["a"])


def test_threads_that_extend_the_same_arrays_do_not_share_what_they_append() -> None:
    owner, views = GrowingArrays().extended(EMPTY, pair(list(range(10))))

    def appended(number: int) -> int:
        return int(owner.extended(views, pair([number]))[1]["a"][-1])

    with ThreadPoolExecutor(4) as pool:
        extended = list(pool.map(appended, range(50)))

    assert extended == list(range(50))
