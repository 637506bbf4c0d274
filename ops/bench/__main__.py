"""`make bench`: what each part does on this machine, beside its floor in the same run.

A floor is the bare library doing the same work with nothing of ours around it. Figures are medians; machines are noisy,
so compare ratios. Texts are the demo conversation's, varied.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import append_bench
import archive_bench
import embed_bench
import encryption_bench
import extract_bench
import http_bench
import import_bench
import ingest_bench
import many_bench
import nightly_bench
import paths_bench
import postgres_bench
import projection_bench
import replay_bench
import retrieve_bench
import searchable_bench
import start_bench

PARTS: dict[str, Callable[[Path], None]] = {
    "start": start_bench.run,
    "paths": paths_bench.run,
    "append": append_bench.run,
    "postgres": postgres_bench.run,
    "extract": extract_bench.run,
    "http": http_bench.run,
    "import": import_bench.run,
    "many": many_bench.run,
    "nightly": nightly_bench.run,
    "archive": archive_bench.run,
    "encryption": encryption_bench.run,
    "projection": projection_bench.run,
    "replay": replay_bench.run,
    "retrieve": retrieve_bench.run,
    "embed": embed_bench.run,
    "ingest": ingest_bench.run,
    "searchable": searchable_bench.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts; all when left out")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on whose disk to measure")
    parser.add_argument("--events", type=int, help="how many events `replay` works on", default=replay_bench.EVENTS)
    parser.add_argument("--namespaces", type=int, help="how many `many` makes", default=many_bench.NAMESPACES)
    parser.add_argument("--messages", type=int, help="how many messages `ingest` embeds", default=ingest_bench.MESSAGES)
    parser.add_argument("--load", choices=http_bench.LOADS, help="which requests `http` sends; all when left out")
    options = parser.parse_args()
    PARTS["http"] = partial(http_bench.run, loads=[options.load] if options.load else http_bench.LOADS)
    PARTS["replay"] = partial(replay_bench.run, events=options.events)
    PARTS["many"] = partial(many_bench.run, namespaces=options.namespaces)
    PARTS["ingest"] = partial(ingest_bench.run, messages=options.messages)
    for name in options.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="recollect-bench-", dir=options.folder) as folder:
            PARTS[name](Path(folder))


if __name__ == "__main__":
    main()
