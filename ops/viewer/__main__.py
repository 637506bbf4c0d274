"""Screenshots and loading times of the viewer, in the Chromium of this machine.

python ops/viewer screenshots [FOLDER]    the pictures of docs/images, from the demo conversation
python ops/viewer bench                   bytes, first paint and time to a usable view, for 300 and 1,500 entities
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from chromium import chromium, serving
from demo_memory import build_demo_memory
from load_bench import GRAPHS, build_graph, measure
from screenshots import take_screenshots

from recollect.api.settings import load_settings

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
#: Days after which the demo is distilled, so that it has summaries of both kinds.
_DISTILL_AFTER_DAYS = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("screenshots", "bench"))
    parser.add_argument("folder", nargs="?", type=Path, default=_IMAGES, help="where the pictures go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        if options.what == "screenshots":
            settings = load_settings(data=Path(folder), distill_after_days=_DISTILL_AFTER_DAYS)
            build_demo_memory(settings)
            options.folder.mkdir(parents=True, exist_ok=True)
            with serving(settings, workers=True) as address:
                take_screenshots(browser, address, options.folder)
            return 0
        settings = load_settings(data=Path(folder), embedding_model="none")
        for count in GRAPHS:
            build_graph(settings, count)
        with serving(settings, workers=False) as address:
            for count in GRAPHS:
                for view in ("profile", "map"):
                    measure(browser, address, count, view)
    return 0


if __name__ == "__main__":
    sys.exit(main())
