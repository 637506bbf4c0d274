"""Instruments: counts by label set, and a limit on the number of label sets."""

from __future__ import annotations

from collections.abc import Generator
from threading import Thread

import pytest

from recollect.events.instruments import INSTRUMENTS, OTHER, SERIES_MAX, Counter, Histogram


@pytest.fixture(autouse=True)
def unregistered() -> Generator[None]:
    """Leave no instrument of a test behind, since /metrics would show it."""
    yield
    for name in [name for name in INSTRUMENTS if name.startswith("test_")]:
        del INSTRUMENTS[name]


def test_a_counter_without_labels_begins_at_zero() -> None:
    assert Counter("test_a", "counts").values() == {(): 0.0}
    assert Counter("test_b", "counts", ("kind",)).values() == {}


def test_threads_that_count_at_once_lose_nothing() -> None:
    counter, histogram = Counter("test_a", "counts", ("kind",)), Histogram("test_b", "times")

    def count() -> None:
        for _ in range(2_000):
            counter.add("x")
            histogram.observe(0.003)

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.values() == {("x",): 8_000.0}
    assert sum(histogram.values()[()][0]) == 8_000


def test_an_observation_belongs_to_the_first_bucket_that_is_not_below_it() -> None:
    histogram = Histogram("test_a", "times", buckets=(1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(value)
    assert histogram.values() == {(): ([2, 1, 1], 12.0)}


def test_label_sets_over_the_limit_are_counted_together() -> None:
    counter, histogram = Counter("test_a", "counts", ("kind",)), Histogram("test_b", "times", ("kind",))
    for number in range(SERIES_MAX + 10):
        counter.add(str(number))
        histogram.observe(1.0, str(number))
    assert counter.values()[OTHER,] == 10
    assert sum(histogram.values()[OTHER,][0]) == 10
    assert len(counter.values()) == len(histogram.values()) == SERIES_MAX + 1
