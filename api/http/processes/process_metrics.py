"""Process metrics: the metrics of all server processes, each with the label `process`.

Each process counts for itself. They are shown apart, not as sums: Prometheus sees that one began again from zero
after a restart, which would look like thousands of requests in a sum.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import orjson
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric

from recollect.api.http.processes.channels import METRICS, Channels, Packet
from recollect.api.http.processes.process_table import ProcessTable
from recollect.api.operations.metrics import counted_metrics

#: Seconds in which the other processes answer; those that are busy for longer are left out of the answer.
_ANSWER_SECONDS = 1.0
#: A metric as it is sent: name, description, kind, and its samples with their labels.
_Sent = tuple[str, str, str, list[tuple[str, dict[str, str], float]]]


class ProcessMetrics:
    """Asks the other processes for their metrics, and answers them.

    Parameters:
        number: the number of this process.
    """

    def __init__(self, number: int, table: ProcessTable, channels: Channels) -> None:
        self._number, self._table, self._channels = number, table, channels

    def answer(self, packet: Packet) -> None:
        """Send the metrics of this process on the socket that came with a question."""
        if packet.descriptor is None:
            return
        connection = socket.socket(fileno=packet.descriptor)
        # The event loop does not wait for the process that asks.
        threading.Thread(target=_send, args=(connection,), name="recollect-metrics", daemon=True).start()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all processes that serve. It waits for the other ones."""
        answers = self._ask()
        answers[self._number] = _sent_metrics()
        families: dict[str, Metric] = {}
        for number, metrics in sorted(answers.items()):
            label = {"process": self._table.name(number)}
            for name, description, kind, samples in metrics:
                family = families.setdefault(name, Metric(name, description, kind))
                for sample, labels, value in samples:
                    family.add_sample(sample, labels | label, value)
        yield from families.values()

    def _ask(self) -> dict[int, list[_Sent]]:
        """Return the answers of the other processes."""
        answers: dict[int, list[_Sent]] = {}
        deadline = time.monotonic() + _ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            for process in self._table.processes():
                if process.number != self._number and process.is_serving:
                    own = self._question(process.number)
                    if own is not None:
                        selector.register(own, selectors.EVENT_READ, (process.number, bytearray()))
            while selector.get_map() and time.monotonic() < deadline:
                for key, _ in selector.select(deadline - time.monotonic()):
                    _read(selector, key, answers)
            for key in list((selector.get_map() or {}).values()):
                _socket(key).close()
        return answers

    def _question(self, number: int) -> socket.socket | None:
        """Ask a process; return the socket of its answer, None when it cannot be asked."""
        own, other = socket.socketpair()
        own.setblocking(False)
        with other:
            if self._channels.send(number, METRICS, b"", other.fileno()):
                return own
        own.close()
        return None


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, answers: dict[int, list[_Sent]]) -> None:
    """Read what a process has sent; store its answer at the end."""
    number, received = key.data
    part = b""
    with suppress(OSError):
        part = _socket(key).recv(1 << 20)
    if part:
        received += part
        return
    selector.unregister(key.fileobj)
    _socket(key).close()
    with suppress(orjson.JSONDecodeError):
        answers[number] = orjson.loads(received)


def _socket(key: selectors.SelectorKey) -> socket.socket:
    assert isinstance(key.fileobj, socket.socket)
    return key.fileobj


def _send(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.settimeout(_ANSWER_SECONDS)
        connection.sendall(orjson.dumps(_sent_metrics()))


def _sent_metrics() -> list[_Sent]:
    """Return what this process has counted, its memory and its processor time."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    metrics: Iterable[Metric] = (*counted_metrics(), *registry.collect())
    return [
        (metric.name, metric.documentation, metric.type, [_sample(sample) for sample in metric.samples])
        for metric in metrics
    ]


def _sample(sample: Any) -> tuple[str, dict[str, str], float]:
    return sample.name, dict(sample.labels), sample.value
