"""`python ops/docs`: writes the generated parts of docs between their markers.

A part lies between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``; the text around it is written by hand.
With ``--check`` nothing is written, and the exit code is 1 when a page is not what the generator makes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import cli_page
import errors_page
import events_page
import formats_table
import http_page
import python_page
import settings_page
from module_list import list_of_modules

DOCS = Path(__file__).parents[2] / "docs"

#: The generated parts: the page, and what makes each of its parts.
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "reference/cli.md": {"commands": cli_page.render},
    "reference/errors.md": {"errors": errors_page.render},
    "reference/events.md": {"events": events_page.render},
    "reference/http.md": {
        "routes": http_page.routes,
        "request": http_page.request,
        "answer": http_page.answer,
        "filters": http_page.filters,
    },
    "reference/python.md": {"methods": python_page.render},
    "reference/settings.md": {"settings": settings_page.render},
    "how-to/move-in.md": {"formats": formats_table.render},
}


def filled(page: str, parts: dict[str, Callable[[], str]]) -> str:
    """Return the text of `page` with each part between its markers as the generator makes it."""
    for name, render in parts.items():
        start, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->"
        before, found_start, rest = page.partition(start)
        _, found_end, after = rest.partition(end)
        if not found_start or not found_end:
            raise SystemExit(f"the page has no markers {start.strip()} and {end}; add them")
        page = f"{before}{start}\n{render()}\n\n{end}{after}"
    return page


def main() -> int:
    """Write the pages, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", action="store_true", help="print all folders and modules with their first lines")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page differs")
    options = parser.parse_args()
    if options.modules:
        print(list_of_modules())
        return 0
    check = options.check
    # The pages show defaults, whatever the environment sets here.
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        del os.environ[name]
    os.environ["COLUMNS"] = "120"
    different: list[str] = []
    for name, parts in PAGES.items():
        path = DOCS / name
        page = path.read_text(encoding="utf-8")
        made = filled(page, parts)
        if made != page:
            different.append(name)
            if not check:
                path.write_text(made, encoding="utf-8")
    verb = "is not what the generator makes; run: python ops/docs" if check else "written"
    for name in different:
        print(f"docs/{name}: {verb}")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
