"""`python ops/faults`: faults of the parts of a cluster, on processes of its own in temporary folders.

    python ops/faults nodes --minutes 30         two nodes under load while PostgreSQL, Redis, servers, workers and
                                                 schedulers are killed or paused at random: no acknowledged event is
                                                 lost, no effect is doubled, read models equal a replay
    python ops/faults linearizable --minutes 2   the log in PostgreSQL while its server is paused, killed and
                                                 restarted: appends and reads must be linearizable
    python ops/faults soak --minutes 90          a server of two processes and its bots through nights of a fast clock,
                                                 erasures, imports, changes of the model, kills: memory and files are
                                                 flat, nothing is lost, nothing erased comes back

The exit code is 1 when something is lost, doubled, out of order, hangs, or grows.
"""

from __future__ import annotations

import argparse
import sys

from log_run import run_linearizable
from node_run import run_nodes
from soak_run import run_soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    nodes = kinds.add_parser("nodes", help="two nodes whose parts fail")
    nodes.add_argument("--minutes", type=float, default=30)
    nodes.add_argument("--seed", type=int, default=1)
    log = kinds.add_parser("linearizable", help="appends to PostgreSQL are linearizable")
    log.add_argument("--minutes", type=float, default=2)
    log.add_argument("--seed", type=int, default=1)
    soak = kinds.add_parser("soak", help="a server and its bots for a long time")
    soak.add_argument("--minutes", type=float, default=90)
    soak.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    runs = {"nodes": run_nodes, "linearizable": run_linearizable, "soak": run_soak}
    return 0 if runs[options.kind](60 * options.minutes, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
