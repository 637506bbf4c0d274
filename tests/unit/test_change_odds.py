"""Change odds: how probable a change of a statement is among the other statements of its speaker."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.jobs.extraction.change_features import KINDS, Read, pair_features
from recollect.jobs.extraction.change_odds import Floats, change_probabilities, odds_inputs
from recollect.jobs.extraction.comparison import HINTED, network

_STATEMENTS = ("the dentist is on Tuesday at 3", "I play the cello", "my brother lives in Leeds")


def _inputs(by_network: Floats, by_encoder: Floats, cosines: Floats) -> Floats:
    """Return the inputs of `dentist moved to Thursday` beside some of the statements."""
    reads = [Read(text) for text in _STATEMENTS[: len(by_network)]]
    features, _ = pair_features(Read("dentist moved to Thursday"), reads, "Ann", cosines.tolist(), network().lexicon)
    of_sentence = np.zeros(len(HINTED) + len(KINDS), np.float32)
    return odds_inputs(by_network, by_encoder, of_sentence, np.array(features, np.float32), cosines)


def _row(*values: float) -> Floats:
    return np.array(values, np.float32)


def test_a_pair_that_both_readings_give_a_change_is_more_probable_than_one_that_neither_does() -> None:
    probabilities = change_probabilities(_inputs(_row(0.9, 0.01, 0.01), _row(0.9, 0.01, 0.01), _row(0.7, 0.1, 0.1)))
    assert probabilities[0] > probabilities[1:].max()
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_a_pair_is_less_probable_when_the_readings_say_no() -> None:
    cosines = _row(0.7, 0.1, 0.1)
    yes = change_probabilities(_inputs(_row(0.9, 0.01, 0.01), _row(0.9, 0.01, 0.01), cosines))
    no = change_probabilities(_inputs(_row(0.01, 0.01, 0.01), _row(0.01, 0.01, 0.01), cosines))
    assert no[0] < yes[0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_statements_that_the_encoder_does_not_read_have_numbers_too(count: int) -> None:
    inputs = _inputs(np.full(count, 0.5, np.float32), np.full(count, np.nan, np.float32), np.zeros(count, np.float32))
    assert inputs.shape[0] == count
    assert np.isfinite(inputs).all()
    assert np.isfinite(change_probabilities(inputs)).all()
