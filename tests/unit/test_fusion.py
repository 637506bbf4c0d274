from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.api.retrieval.fusion import K, fuse

_LISTS = st.dictionaries(
    st.sampled_from(["keyword", "semantic", "graph"]), st.lists(st.integers(1, 20), unique=True, max_size=10)
)


def test_the_score_is_the_sum_of_reciprocal_ranks() -> None:
    best, *_ = fuse({"keyword": [7, 3], "semantic": [3, 7]})
    assert best.score == pytest.approx(1 / (K + 1) + 1 / (K + 2))
    assert best.ranks == {"keyword": 1, "semantic": 2}


def test_who_is_in_two_lists_beats_who_leads_one() -> None:
    assert [one.version for one in fuse({"a": [1, 2], "b": [3, 2]})] == [2, 3, 1]


@given(_LISTS)
def test_every_candidate_comes_once_in_falling_order_whatever_the_order_of_lists(lists: dict[str, list[int]]) -> None:
    fused = fuse(lists)
    assert sorted(one.version for one in fused) == sorted({version for each in lists.values() for version in each})
    keys = [(-one.score, -one.version) for one in fused]
    assert keys == sorted(keys)
    backwards = fuse(dict(reversed(lists.items())))
    assert [one.version for one in backwards] == [one.version for one in fused]
