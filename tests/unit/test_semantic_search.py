from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from recollect.api.retrieval.search.semantic_search import window_means
from recollect.projections.search_index.episode_arrays import EpisodeArrays, empty_episode_arrays


def episodes(sessions: Sequence[str | None], raw: Sequence[int] | None = None) -> EpisodeArrays:
    names = tuple(dict.fromkeys(sessions))
    return replace(
        empty_episode_arrays(0),
        versions=np.arange(1, len(sessions) + 1),
        sessions=np.array([names.index(session) for session in sessions], np.int64),
        session_ids=names,
        raw=np.array(raw or [1] * len(sessions), np.int64),
    )


def means(values: Sequence[float], arrays: EpisodeArrays) -> list[float]:
    return window_means(np.array(values, np.float32), arrays).tolist()


def test_the_nearer_a_turn_the_more_it_counts() -> None:
    around = means([0, 0, 0, 1, 0, 0, 0], episodes(["s"] * 7))
    assert around == pytest.approx([0, 0.25 / 2.25, 0.5 / 2.5, 1 / 2.5, 0.5 / 2.5, 0.25 / 2.25, 0])


def test_turns_of_other_sessions_and_turns_without_a_session_do_not_count() -> None:
    assert means([1, 0, 0, 1], episodes(["s", "t", None, None])) == [1, 0, 0, 1]
    # What another session said in between parts two turns.
    assert means([1, 0, 1], episodes(["s", "t", "s"])) == [1, 0, 1]


def test_a_summary_has_its_own_value_and_adds_to_no_turn() -> None:
    assert means([1, 0, 1], episodes(["s"] * 3, raw=[1, 0, 1])) == [1, 0, 1]


def test_what_has_no_vector_yet_neither_has_a_mean_nor_lowers_one() -> None:
    first, second, third = means([1, float("nan"), 1], episodes(["s"] * 3))
    assert (first, third) == (1, 1)
    assert np.isnan(second)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_episodes_are_enough(count: int) -> None:
    assert means([1.0] * count, episodes(["s"] * count)) == [1.0] * count
