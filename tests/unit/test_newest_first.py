"""Newest first: which of two messages on the same thing precedes the other one."""

from __future__ import annotations

import numpy as np

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.newest_first import update_features, update_probabilities

OLD = "Stand-up is at nine fifteen"
NEW = "We do the stand-up at ten now"


def message(text: str, day: int) -> Item:
    return Item(
        id=f"{day}",
        kind="episode",
        namespace="a",
        text=text,
        score=0.5,
        matched_by=(),
        ranks={},
        source_events=(f"{day}",),
        occurred_at_us=day,
        speaker="Ann",
    )


def probability(first: Item, second: Item, cosine: float) -> float:
    """Return the probability that the second message goes before the first one."""
    cosines = np.full((2, 2), cosine, np.float32)
    return float(update_probabilities(update_features([first, second], cosines))[0, 1])


def test_a_newer_message_on_the_same_thing_is_more_likely_an_update_than_one_on_another() -> None:
    same, other = (probability(message(OLD, 1), message(NEW, 2), cosine) for cosine in (0.9, 0.0))
    assert same > 2 * other


def test_an_older_message_updates_nothing() -> None:
    assert probability(message(NEW, 2), message(OLD, 1), 0.9) == 0


def test_a_message_of_a_better_place_stays_there() -> None:
    features = update_features([message(NEW, 2), message(OLD, 1)], np.ones((2, 2), np.float32))
    assert not update_probabilities(features).any()
