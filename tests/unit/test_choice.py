"""The choice: which messages belong to an answer, and how many are enough."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recollect.api.retrieval.ranking.choice import enough, enough_in_turn
from recollect.api.retrieval.ranking.choice_inputs import CANDIDATE_FEATURES, QUERY_FEATURES, ChoiceInputs
from recollect.api.retrieval.ranking.choice_model import chances, load_weights

_PROBABILITIES = arrays(np.float32, st.integers(1, 32), elements=st.floats(0, 1, width=32))


def _inputs(count: int, seed: int = 1) -> ChoiceInputs:
    """Return inputs of chance for some candidates."""
    chance = np.random.default_rng(seed)
    features = chance.normal(size=(count, len(CANDIDATE_FEATURES))).astype(np.float32)
    return ChoiceInputs(np.arange(count), features, chance.normal(size=len(QUERY_FEATURES)).astype(np.float32))


def test_one_certain_message_is_enough() -> None:
    assert enough(np.array([0.9, 0.02, 0.01], np.float32)) == 1


def test_an_answer_in_many_messages_gets_them_all() -> None:
    assert enough(np.array([0.8, 0.7, 0.7, 0.6, 0.01], np.float32)) == 4


def test_a_question_always_gets_its_best_message_and_a_turn_does_not() -> None:
    unlikely = np.array([0.01, 0.0001], np.float32)
    assert enough(unlikely) == 1
    assert enough_in_turn(unlikely, asks_memory=True) == 0


def test_where_what_is_known_answers_no_unlikely_message_is_added() -> None:
    unlikely = np.array([0.02, 0.02, 0.02], np.float32)
    assert enough(unlikely, [0.9]) == 0
    assert enough(np.array([0.5, 0.02], np.float32), [0.9]) == 1


def test_a_turn_gets_at_most_three_messages() -> None:
    assert enough_in_turn(np.full(9, 0.5, np.float32), asks_memory=False) == 3
    assert enough(np.full(9, 0.5, np.float32)) == 9


def test_a_turn_that_asks_for_no_memory_gets_no_doubtful_message() -> None:
    doubtful = np.array([0.3, 0.2, 0.1], np.float32)
    assert enough_in_turn(doubtful, asks_memory=True) == 2
    assert enough_in_turn(doubtful, asks_memory=False) == 1


@given(_PROBABILITIES)
def test_what_is_left_out_is_less_probable_than_what_is_shown(
    values: np.ndarray[tuple[int], np.dtype[np.float32]],
) -> None:
    probabilities = np.sort(values)[::-1]
    count = enough(probabilities)
    assert 1 <= count <= len(probabilities)
    assert count == enough(np.append(probabilities, np.float32(0)))


def test_doubtful_messages_are_shown_where_none_is_certain() -> None:
    doubtful = np.array([0.1, 0.08, 0.06, 0.05], np.float32)
    assert enough(doubtful) == 4
    assert enough(np.array([0.9, 0.03, 0.02], np.float32)) == 1


def test_the_weights_fit_the_features() -> None:
    weights = load_weights()
    networks = len(weights["feature_mean"])
    assert weights["feature_mean"].shape == (networks, 1, len(CANDIDATE_FEATURES))
    assert weights["query_mean"].shape == (networks, 1, len(QUERY_FEATURES))


def test_probabilities_are_between_0_and_1_for_one_candidate_and_for_many() -> None:
    for count in (1, 2, 32):
        items, answer = chances(_inputs(count))
        assert items.shape == (count,)
        assert ((items >= 0) & (items <= 1)).all()
        assert 0 <= answer <= 1


def test_the_probability_of_a_candidate_does_not_depend_on_its_place() -> None:
    inputs = _inputs(8)
    turned = ChoiceInputs(inputs.candidates, inputs.features[::-1].copy(), inputs.query)
    assert np.allclose(chances(inputs).items, chances(turned).items[::-1], atol=1e-5)
