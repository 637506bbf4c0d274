"""Instruments: the counters and histograms of this process, which /metrics shows.

They are of this package, since prometheus-client takes 60 ms to import and 2 µs to count, and every command and every
append would pay for it; it only renders what is counted here. Labels come from small sets: event types, stages, route
templates. A name of a namespace, a user or a file is never one.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence

#: Label sets of one instrument: more than the event types, routes with their statuses, or models that a server has.
#: Further ones are counted as `other`, so that no client can fill the memory of the server or of Prometheus.
SERIES_MAX = 500
OTHER = "other"
#: Seconds, from an append of 0.3 ms to a request of a language model of a minute.
SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

Labels = tuple[str, ...]


class Instrument:
    """A named series of numbers for each label set. Safe to use from many threads.

    Parameters:
        name: the name in /metrics, without its suffix.
        description: what it counts, in one line.
        labels: the names of its labels.
    """

    def __init__(self, name: str, description: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.description = description
        self.labels = tuple(labels)
        self._lock = threading.Lock()
        INSTRUMENTS[name] = self

    def _other(self) -> Labels:
        """Return the label set of everything over `SERIES_MAX`."""
        return (OTHER,) * len(self.labels)


#: All instruments of the modules that were imported, by name.
INSTRUMENTS: dict[str, Instrument] = {}


class Counter(Instrument):
    """A number that only grows, for each label set."""

    def __init__(self, name: str, description: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, description, labels)
        self._values: dict[Labels, float] = {} if self.labels else {(): 0.0}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Add `amount` to the number of the label set `labels`."""
        with self._lock:
            values = self._values
            if labels not in values and len(values) >= SERIES_MAX:
                labels = self._other()
            values[labels] = values.get(labels, 0.0) + amount

    def add_all(self, amounts: Mapping[str, float]) -> None:
        """Add to the counts of several values of a metric's only label."""
        for label, amount in amounts.items():
            self.add(label, amount=amount)

    def values(self) -> dict[Labels, float]:
        """Return a copy of the numbers by label set."""
        with self._lock:
            return dict(self._values)


class _Distribution:
    """The observations of one label set."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histogram(Instrument):
    """A distribution of numbers, for each label set.

    Parameters:
        buckets: the upper bounds of the buckets, ascending; one without a bound follows.
    """

    def __init__(
        self, name: str, description: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS_BUCKETS
    ) -> None:
        super().__init__(name, description, labels)
        self.buckets = tuple(buckets)
        self._distributions: dict[Labels, _Distribution] = {}
        if not self.labels:
            self._distributions[()] = _Distribution(len(self.buckets) + 1)

    def observe(self, value: float, *labels: str) -> None:
        """Add an observation to the label set `labels`."""
        with self._lock:
            distribution = self._distributions.get(labels)
            if distribution is None:
                if len(self._distributions) >= SERIES_MAX:
                    labels = self._other()
                distribution = self._distributions.setdefault(labels, _Distribution(len(self.buckets) + 1))
            distribution.counts[bisect_left(self.buckets, value)] += 1
            distribution.total += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Add observations to a histogram without labels, under one lock."""
        with self._lock:
            distribution = self._distributions[()]
            for value in values:
                distribution.counts[bisect_left(self.buckets, value)] += 1
            distribution.total += sum(values)

    def values(self) -> dict[Labels, tuple[list[int], float]]:
        """Return the observations in each bucket, and their sum, by label set."""
        with self._lock:
            return {labels: (list(entry.counts), entry.total) for labels, entry in self._distributions.items()}
