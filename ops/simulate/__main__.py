"""`python ops/simulate`: what a very large service of Recollect needs, from the measured costs of its parts.

`parts.toml` has the costs with the commands that measure them, `workload.toml` the service, its machines and prices.
Any value is replaced by an option: `--set load.namespaces=1000000`. `--check` compares the model with runs on one
machine.
"""

from __future__ import annotations

import argparse
import sys
import tomllib

from model import Demand, Table, demand, disk_bytes, night_cpu_seconds, read_table, replay_cpu_seconds

#: The share by which a prediction may differ from a measurement.
_DIFFERENCE_MAX = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="GROUP.NAME=VALUE", help="replace a value")
    parser.add_argument("--check", action="store_true", help="compare the model with the measured runs")
    options = parser.parse_args()
    tables = read_table("parts.toml") | read_table("workload.toml")
    for assignment in options.set:
        _replace(parser, tables, assignment)
    if options.check:
        sys.exit(0 if _check(tables) else 1)
    _show(tables, demand(tables, tables["load"]))


def _replace(parser: argparse.ArgumentParser, tables: Table, assignment: str) -> None:
    """Replace one value; end with a message when there is none of that name."""
    path, _, value = assignment.partition("=")
    group, _, name = path.partition(".")
    if name not in tables.get(group, {}) or not value:
        parser.error(f"{assignment!r}: give GROUP.NAME=VALUE, of the groups {', '.join(tables)}")
    try:
        tables[group][name] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parser.error(f"{assignment!r}: the value is no number")


def _show(tables: Table, needed: Demand) -> None:
    """Print the machines, what saturates first, and what a million messages cost."""
    load, price = tables["load"], tables["price"]
    print(f"{load['namespaces']:,} namespaces, {load['events_day']:,} events a day\n")
    _rows("cores at the peak", {name: f"{cores:,.0f}" for name, cores in needed.cores.items()})
    _rows("disk, TB", {name: f"{size / 1e12:,.1f}" for name, size in needed.disk.items()})
    print(f"archive: {needed.archive_bytes / 1e12:,.1f} TB of object storage")
    print(f"memory: {needed.memory_bytes / 1e12:,.1f} TB; network: {needed.network_bytes_second / 1e9:,.1f} GB/s\n")
    machines = needed.machines(tables["machine"])
    _rows("machines by resource", {name: f"{count:,.0f}" for name, count in machines.items()})
    first = max(machines, key=lambda name: machines[name])
    archived = needed.archive_bytes / 1e9 * price["archive_gb_month"]
    month = machines[first] * price["machine_month"] + archived
    print(f"saturated first: {first}, so {machines[first]:,.0f} machines")
    print(
        f"{price['currency']} {month:,.0f} a month, {month / needed.messages_month * 1e6:,.2f} a million messages, "
        f"{month / load['namespaces']:,.4f} a namespace"
    )


def _rows(title: str, rows: dict[str, str]) -> None:
    print(title)
    for name, value in rows.items():
        print(f"  {name:<18}{value:>14}")
    print()


def _check(tables: Table) -> bool:
    """Print predicted and measured values of the runs; return whether all agree."""
    agree = True
    print(f"{'namespaces':>10}  {'what':<34}{'predicted':>12}{'measured':>12}{'ratio':>8}")
    for run in read_table("runs.toml")["runs"]:
        namespaces, messages = run["namespaces"], run["namespaces"] * run["messages"]
        predicted = {
            "disk_gib": sum(disk_bytes(tables, namespaces, messages).values()) / 2**30,
            "idle_night_cpu_seconds": night_cpu_seconds(tables, 0, namespaces, 0),
            "night_cpu_seconds": night_cpu_seconds(
                tables, run["active"], namespaces - run["active"], run["active"] * run["news"]
            ),
            "replay_cpu_seconds": replay_cpu_seconds(tables, namespaces, messages),
        }
        for name, value in predicted.items():
            if name in run["measured"]:
                measured = run["measured"][name]
                ratio = value / measured
                agrees = abs(ratio - 1) <= _DIFFERENCE_MAX
                agree = agree and agrees
                mark = "" if agrees else "  differs"
                print(f"{namespaces:>10,}  {name:<34}{value:>12,.2f}{measured:>12,.2f}{ratio:>8.2f}{mark}")
    return agree


if __name__ == "__main__":
    main()
