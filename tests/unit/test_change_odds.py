"""Change odds: how probable a change of a statement is among the other statements of its speaker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.jobs.extraction.change_odds import Floats, first_odds, odds
from recollect.jobs.extraction.comparison import READ_MIN, Pairs, compared, pairs_of
from recollect.projections.queries.knowledge_queries import PriorStatement

_STATEMENTS = ("the dentist is on Tuesday at 3", "I play the cello", "my brother lives in Leeds")


def _pairs(statements: Sequence[str] = _STATEMENTS) -> Pairs:
    """Return the pairs of `dentist moved to Thursday`, by words alone."""
    before = [
        PriorStatement(session_id=None, speaker="Ann", subject="Ann", predicate=SAYS, object=words, kind=None)
        for words in statements
    ]
    pairs = pairs_of("the dentist moved to Thursday", "Ann", before, None, None)
    assert pairs is not None
    return pairs


def _odds(*encoder: float) -> Floats:
    pairs = _pairs(_STATEMENTS[: len(encoder)])
    return odds(pairs.inputs, np.array(encoder, np.float32), pairs.is_rule, pairs.is_plain)


def test_the_words_alone_choose_the_statement_that_is_most_likely_changed() -> None:
    first = first_odds(_pairs().inputs, _pairs().is_rule, has_vectors=False)
    assert first.argmax() == 0
    assert first[0] >= READ_MIN


def test_a_pair_is_more_probable_when_the_encoder_says_a_change() -> None:
    yes, no = _odds(0.9, 0.01, 0.01), _odds(0.01, 0.01, 0.01)
    assert yes[0] > yes[1:].max()
    assert yes[0] > no[0]
    assert ((yes > 0) & (yes < 1)).all()


def test_a_pair_is_less_probable_beside_one_that_is_a_change() -> None:
    assert _odds(0.6, 0.99, 0.01)[0] < _odds(0.6, 0.01, 0.01)[0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_statements_that_the_encoder_does_not_read_have_numbers_too(count: int) -> None:
    assert np.isfinite(_odds(*[float("nan")] * count)).all()


def test_the_encoder_reads_only_what_may_be_a_change() -> None:
    read: list[str] = []

    def by_encoder(pairs: Sequence[tuple[str, str]]) -> Floats:
        read.extend(statement for statement, _ in pairs)
        return np.tile(np.array([0.1, 0, 0.9, 0, 0], np.float32), (len(pairs), 1))

    found = {it.prior.object: it for it in compared(_pairs(), by_encoder)}
    assert [*found] == [*_STATEMENTS]
    first = first_odds(_pairs().inputs, _pairs().is_rule, has_vectors=False)
    assert len(read) == int((first >= READ_MIN).sum())
    assert found[_STATEMENTS[0]].relation == "replaces"
