"""Formats table: the import formats with what to give and what is read, from their declarations."""

from __future__ import annotations

from recollect.api.importers.importer import importers


def render() -> str:
    """Return the table of formats; those of the extra `import` are marked."""
    lines = ["| format | what to give | what is read |", "|---|---|---|"]
    for name, importer in sorted(importers().items()):
        extra = "" if importer.read.__module__.startswith("recollect.") else " (extra `import`)"
        lines.append(f"| `{name}`{extra} | {importer.files} | {importer.content} |")
    return "\n".join(lines)
