"""The simulation of very many namespaces: its sums, and its agreement with the measured runs."""

from __future__ import annotations

import copy
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "ops" / "simulate"


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "model.py"))


def tables(model: dict[str, Any]) -> dict[str, Any]:
    return {**model["read_table"]("parts.toml"), **model["read_table"]("workload.toml")}


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_twice_the_namespaces_and_events_need_twice_the_machines(model: dict[str, Any]) -> None:
    one = tables(model)
    two = copy.deepcopy(one)
    two["load"]["namespaces"] *= 2
    two["load"]["events_day"] *= 2
    before, after = (model["demand"](each, each["load"]).machines(each["machine"]) for each in (one, two))
    assert {name: count / before[name] for name, count in after.items()} == pytest.approx(dict.fromkeys(before, 2.0))


def test_idle_namespaces_cost_disk_and_next_to_no_time(model: dict[str, Any]) -> None:
    one = tables(model)
    more = copy.deepcopy(one)
    # The same active ones, and ten times as many in all.
    more["load"]["namespaces"] *= 10
    more["load"]["active_share"] /= 10
    before, after = (model["demand"](each, each["load"]) for each in (one, more))
    assert sum(after.cores.values()) < 1.05 * sum(before.cores.values())
    empty_bytes = 9 * one["load"]["namespaces"] * one["project"]["bytes_namespace"]
    assert after.disk["read models"] - before.disk["read models"] == pytest.approx(empty_bytes)


def test_the_model_agrees_with_the_measured_runs() -> None:
    result = simulated("--check")
    assert result.returncode == 0, result.stdout
    assert {line.split()[0] for line in result.stdout.splitlines()[1:]} == {"1,000", "10,000", "100,000"}


def test_values_are_replaced_and_unknown_names_are_refused() -> None:
    assert simulated("--set", "load.namespaces=1000").stdout.startswith("1,000 namespaces")
    assert "GROUP.NAME=VALUE" in simulated("--set", "load.names=1").stderr
