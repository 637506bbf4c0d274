"""Cost of encryption: append, read and replay of an encrypted log, beside a plain one in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import texts
from projection_bench import in_batches
from table import compare, heading, seconds

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.encryption.key_store import KeyStore
from recollect.events.envelope import EventDraft
from recollect.events.validation import drafts
from recollect.projections.read_models.read_models import ReadModels

EVENTS = 30_000
_ROUNDS = 5


def run(folder: Path, events: int = EVENTS) -> None:
    heading(f"Encryption of {events:,} events, AES-256-GCM, a key for each speaker (floor: the same log without it)")
    batches = [drafts(batch) for batch in in_batches(texts.real(events))]
    append_rates: dict[str, list[float]] = {"plain": [], "encrypted": []}
    logs: dict[str, SqliteLog] = {}
    for number in range(_ROUNDS):
        for name, rates in append_rates.items():
            home = folder / f"{name}-{number}"
            logs[name] = SqliteLog(home / "log.db", keys=KeyStore(home) if name == "encrypted" else None)
            rates.append(events / seconds(lambda log=logs[name]: _append(log, batches)))
            if number < _ROUNDS - 1:
                logs[name].close()
    compare("append", *_medians(append_rates))
    compare("read", *_medians(_rates(logs, events, _read)))
    models = {name: ReadModels(folder / f"{name}-{_ROUNDS - 1}", log) for name, log in logs.items()}
    replay_rates: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(_ROUNDS):
        for name, read_models in models.items():
            replay_rates[name].append(events / seconds(lambda read_models=read_models: read_models.replay("a")))
    compare("replay", *_medians(replay_rates))
    for name, log in logs.items():
        print(f"  {name} log: {(log.size_bytes() or 0) / events:,.0f} bytes an event")
        models[name].close()
        log.close()


def _append(log: SqliteLog, batches: list[list[EventDraft]]) -> None:
    for batch in batches:
        log.append("a", batch)


def _read(log: SqliteLog) -> None:
    after = 0
    while events := log.read("a", after=after, limit=5_000):
        for event in events:
            event.data()
        after = events[-1].version


def _rates(logs: dict[str, SqliteLog], events: int, work: Callable[[SqliteLog], None]) -> dict[str, list[float]]:
    """Return the rates of `work` on each log, measured in turn."""
    rates: dict[str, list[float]] = {name: [] for name in logs}
    for _ in range(_ROUNDS):
        for name, log in logs.items():
            rates[name].append(events / seconds(lambda log=log: work(log)))
    return rates


def _medians(rates: dict[str, list[float]]) -> tuple[float, float]:
    """Return the median rate of the encrypted log, then that of the plain one."""
    return statistics.median(rates["encrypted"]), statistics.median(rates["plain"])
