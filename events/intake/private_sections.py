"""Private sections: removes text between `<private>` and `</private>`."""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern

#: The mark in place of a section.
PRIVATE_MARK = "[private]"
_TAG = late_pattern(r"<\s{0,4}(/?)\s{0,4}private\s{0,4}>", re.IGNORECASE)


def remove_private(text: str) -> str:
    """Return `text` with a mark in place of each private section.

    Sections are nested, and a section without a closing tag ends with the text: a user who forgets a tag loses words
    and not a secret.
    """
    parts: list[str] = []
    depth, position = 0, 0
    for tag in _TAG.finditer(text):
        if tag[1]:
            if depth == 1:
                position = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                parts += [text[position : tag.start()], PRIVATE_MARK]
            depth += 1
    if depth == 0:
        parts.append(text[position:])
    return "".join(parts)
