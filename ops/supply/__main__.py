"""`python ops/supply`: locks, checks and lists what Recollect is installed from.

    lock [--upgrade]  write the lock files again, after a change of pyproject.toml or to take newer releases
    wheels            fail if a locked release is not a wheel on a machine that the lock is for
    licences          print the licence of each installed package and of all weights; fail on one that is not allowed
    sbom              print the same as a bill of materials in CycloneDX 1.6

A lock file has exact versions with the hashes of all their files, for Linux, macOS and Windows. PyTorch is in neither:
the index of its CPU builds has other files than PyPI. Its version is in Makefile and Dockerfile, and pip checks the
hash that the index has in its link.
"""

from __future__ import annotations

import argparse
import json
import sys

from bill_of_materials import Component, bill_of_materials, components
from lock_files import check_wheels, write_locks


def print_licences(listed: list[Component]) -> int:
    """Print a line for each component; return the number of those with a licence that is not allowed."""
    for component in listed:
        remark = "" if component.is_allowed() else "  NOT ALLOWED"
        print(f"{component.name:42} {component.version:17} {component.licence}{remark}")
        if component.remark:
            print(f"{'':42} {component.remark}")
    refused = [component.name for component in listed if not component.is_allowed()]
    if refused:
        print(f"not allowed: {', '.join(refused)}; replace them, or extend bill_of_materials.py", file=sys.stderr)
    return len(refused)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="ops/supply", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=["lock", "wheels", "licences", "sbom"])
    parser.add_argument("--upgrade", action="store_true", help="with `lock`: take the newest releases")
    arguments = parser.parse_args()
    match arguments.command:
        case "lock":
            write_locks(upgrade=arguments.upgrade)
        case "wheels":
            return min(check_wheels(), 1)
        case "licences":
            return min(print_licences(components()), 1)
        case _:
            print(json.dumps(bill_of_materials(components()), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
