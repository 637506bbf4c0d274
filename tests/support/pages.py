"""The pages of the documentation: their code blocks, links and words."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]

#: Languages of blocks that are run.
RUN = ("bash", "console", "python")

_NOT_RUN = re.compile(r"<!-- not run: (.+) -->$")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


class Block(Struct, frozen=True, kw_only=True):
    """A fenced code block of a page."""

    language: str
    text: str
    #: The line of its fence, from 1.
    line: int
    #: Why it is not run; None when it is.
    not_run: str | None


def pages() -> list[Path]:
    """Return the README and every page of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    blocks: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        above = _NOT_RUN.match(lines[start - 1]) if start else None
        blocks.append(
            Block(
                language=lines[start].removeprefix("```").strip(),
                text="\n".join(lines[start + 1 : number]),
                line=start + 1,
                not_run=above.group(1) if above else None,
            )
        )
        start = None
    assert start is None, f"{page}: the block of line {start} does not end"
    return blocks


def links_of(page: Path) -> list[str]:
    """Return the targets of a page's links, those of code blocks left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return _LINK.findall(text)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
