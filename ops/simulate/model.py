"""The model: what a number of namespaces and events costs in processor time, disk, memory and machines.

Every function is a sum of (units x cost of a unit), so that each term can be read, measured and replaced. What the
model does not have is listed in docs/explanation/simulation.md.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

DAY_SECONDS = 86_400
_MS = 1_000
_FOLDER = Path(__file__).parent

#: Units and costs by group, as in the files.
Table = dict[str, Any]


def read_table(name: str) -> Table:
    """Return a file of this folder."""
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))


def disk_bytes(parts: Table, namespaces: float, events: float) -> dict[str, float]:
    """Return the bytes of a data folder by kind, with `events` in all namespaces together."""
    kinds = {"log": "append", "read models": "project", "vectors": "embed"}
    sizes = {
        kind: namespaces * parts[part]["bytes_namespace"] + events * parts[part]["bytes_event"]
        for kind, part in kinds.items()
    }
    return {**sizes, "recorded states": namespaces * parts["night"]["bytes_idle"]}


def night_cpu_seconds(parts: Table, active: float, idle: float, messages: float) -> float:
    """Return the processor seconds of a night, with the start of its processes.

    Parameters:
        messages: of the day, in the active namespaces together.
    """
    night = parts["night"]
    started = night["cpu_ms_start"] if active else 0.0
    work = active * night["cpu_ms_active"] + messages * night["cpu_ms_message"] + idle * night["cpu_ms_idle"]
    return (work + started) / _MS


def replay_cpu_seconds(parts: Table, namespaces: float, events: float) -> float:
    """Return the processor seconds of a replay of all read models, without embeddings."""
    replay = parts["replay"]
    return (namespaces * replay["cpu_ms_namespace"] + events * replay["cpu_ms_event"]) / _MS


class Demand(Struct, frozen=True, kw_only=True):
    """What a workload needs at its peak."""

    #: Cores by part; nights are spread over their hours, the other parts have the peak factor.
    cores: dict[str, float]
    #: Bytes on disk by kind, with the copies of the log.
    disk: dict[str, float]
    #: Sealed events in object storage.
    archive_bytes: float
    memory_bytes: float
    writes_second: float
    network_bytes_second: float
    messages_month: float

    def machines(self, machine: Table) -> dict[str, float]:
        """Return how many machines each resource needs; the greatest one saturates first."""
        capacity = {name: value * machine["used_share"] for name, value in machine.items() if name != "used_share"}
        return {
            "cores": sum(self.cores.values()) / capacity["cores"],
            "disk": sum(self.disk.values()) / capacity["disk_bytes"],
            "memory": self.memory_bytes / (capacity["memory_bytes"]),
            "disk writes": self.writes_second / capacity["disk_writes_second"],
            "network": self.network_bytes_second / capacity["network_bytes_second"],
        }


def demand(parts: Table, load: Table) -> Demand:
    """Return what the workload `load` needs."""
    events_second = load["events_day"] / DAY_SECONDS * load["peak_factor"]
    messages_second = events_second * load["messages_share"]
    queries_second = messages_second * load["retrievals_message"]
    active, namespaces = load["namespaces"] * load["active_share"], load["namespaces"]
    night_share = DAY_SECONDS / (load["night_hours"] * 3_600)
    day_messages = load["events_day"] * load["messages_share"]
    night_second = night_cpu_seconds(parts, active, namespaces - active, day_messages) / DAY_SECONDS * night_share
    retrieve = parts["retrieve"]
    cores = {
        "append": events_second * parts["append"]["cpu_ms_event"] / _MS,
        "project": events_second * parts["project"]["cpu_ms_event"] / _MS,
        "embed": messages_second * parts["embed"]["cpu_ms_event"] / _MS,
        "extract": messages_second * parts["extract"]["cpu_ms_event"] / _MS,
        "retrieve": queries_second * retrieve["cpu_ms_query"] / _MS,
        "cold namespaces": queries_second * load["cold_share"] * retrieve["cpu_ms_cold"] / _MS,
        "nights": night_second,
    }
    kept = disk_bytes(parts, namespaces, load["events_day"] * load["kept_days"])
    logged_events = load["events_day"] * load["retention_days"]
    sealed_events = logged_events * load["sealed_share"]
    logged = disk_bytes(parts, namespaces, logged_events - sealed_events)["log"]
    disk = {**kept, "log": logged * load["copies"]}
    # A process for each core has the model; namespaces in memory come on top.
    memory = sum(cores.values()) * parts["process"]["memory_bytes"]
    memory += namespaces * load["resident_share"] * retrieve["memory_bytes_namespace"]
    written = events_second * sum(parts[part]["bytes_event"] for part in ("append", "project", "embed"))
    return Demand(
        cores=cores,
        disk=disk,
        archive_bytes=sealed_events * parts["archive"]["bytes_event"],
        memory_bytes=memory,
        # An append, a batch of a read model and one of vectors for each event at most; batches have fewer.
        writes_second=3 * events_second,
        network_bytes_second=written * load["copies"] / 2,
        messages_month=day_messages * 30,
    )
