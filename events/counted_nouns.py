"""Counted nouns: writes a number with its noun, for people."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return `1 event`, `2 events` or `1,200 events`.

    Parameters:
        noun: the singular of a noun whose plural ends with an s.
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
