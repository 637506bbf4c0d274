"""`python ops/fuzz`: hostile requests for a server of its own, with data in a temporary folder.

    python ops/fuzz api --cases 20000        schemathesis with all checks, over every operation of OpenAPI
    python ops/fuzz raw --cases 10000        bytes on a socket: mutated requests, smuggling, hostile bodies and names
    python ops/fuzz tenants --seconds 60     two tenants, 32 threads, every route: neither may see the other's canary

The exit code is 1 when the server answers with a 5xx, breaks its OpenAPI description, stops, or leaks.
"""

from __future__ import annotations

import argparse
import sys

from api_fuzz import fuzz_api
from fuzz_server import fuzz_server
from raw_fuzz import fuzz_raw
from tenant_fuzz import fuzz_tenants


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    api = kinds.add_parser("api", help="schemathesis")
    api.add_argument("--cases", type=int, default=20_000, help="cases, at least")
    api.add_argument("--seed", type=int, default=1)
    raw = kinds.add_parser("raw", help="bytes on a socket")
    raw.add_argument("--cases", type=int, default=10_000)
    raw.add_argument("--seed", type=int, default=1)
    tenants = kinds.add_parser("tenants", help="two tenants at a time")
    tenants.add_argument("--seconds", type=float, default=60)
    tenants.add_argument("--threads", type=int, default=32)
    kinds.add_parser("sample", help="200 byte strings, and two tenants for a second, for the tests")
    options = parser.parse_args()
    # Half requests are raw ones only, which must not wait for long.
    with fuzz_server(1 if options.kind in ("raw", "sample") else 30) as server:
        match options.kind:
            case "api":
                is_sound = fuzz_api(server, options.cases, options.seed)
            case "raw":
                is_sound = fuzz_raw(server, options.cases, options.seed)
            case "tenants":
                is_sound = fuzz_tenants(server, options.seconds, options.threads)
            case _:
                is_sound = fuzz_raw(server, 200, 1) and fuzz_tenants(server, 1, 8)
        if not server.is_alive():
            print("the server has stopped")
            is_sound = False
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
