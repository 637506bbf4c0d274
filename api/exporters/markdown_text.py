"""Markdown text: writes stored text into Markdown and YAML so that it is text there and never structure."""

from __future__ import annotations

import json
import unicodedata
from hashlib import sha256
from typing import Any

from recollect.events.late_pattern import late_pattern

#: Signs that begin or end something in Markdown or HTML. `_` between letters does not, and is kept for names of files.
_SIGNS = late_pattern(r"[\\`*\[\]<>~|#&]|(?<![^\W_])_|_(?![^\W_])")
_ESCAPED = late_pattern(r"\\([\\`*_\[\]<>~|#&:.\-+)])")
#: `https://` becomes a link without any sign around it.
_ADDRESS = late_pattern(r"(?<=[A-Za-z]):(?=//)|(?<=www)\.")
#: Signs that begin a list, a rule or a block of YAML at the start of a line.
_START = late_pattern(r"^(?:[-+]|\d{1,9}[.)])(?=\s|$)|^-{3,}")
#: Control characters, marks of direction, separators of lines, and letters that nothing shows.
_UNSEEN = late_pattern("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]+")
_NO_WORD = late_pattern(r"[^a-z0-9]+")
_YAML_BREAKS = late_pattern("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
#: Characters of the readable part of a file's name.
_SLUG_CHARS_MAX = 60


def one_line(text: str) -> str:
    """Return a text in one line, without unseen characters."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def visible_line(line: str) -> str:
    """Return a line with its spaces, without unseen characters."""
    return _UNSEEN.sub(" ", line).rstrip()


def escaped(text: str) -> str:
    """Return a text for a line of Markdown, in which it has no structure: no heading, link, comment or HTML."""
    plain = _SIGNS.sub(lambda match: f"\\{match[0]}", one_line(text))
    plain = _ADDRESS.sub(lambda match: f"\\{match[0]}", plain)
    start = _START.match(plain)
    return plain if start is None else f"{plain[: start.end() - 1]}\\{plain[start.end() - 1 :]}"


def unescaped(text: str) -> str:
    """Return the text that a line of Markdown shows."""
    return _ESCAPED.sub(r"\1", text)


def escaped_key(text: str) -> str:
    """Return a text for the bold key of a line, which ends with a colon."""
    return escaped(text).replace("\\:", ":").replace(":", "\\:")


def yaml_value(value: Any) -> str:
    """Return a value as YAML of one line: JSON, which YAML contains, without the line breaks of YAML alone."""
    return _YAML_BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def front_matter(fields: dict[str, Any]) -> str:
    """Return a block of front matter; fields that are None are left out. Names are our own."""
    lines = [f"{name}: {yaml_value(value)}" for name, value in fields.items() if value is not None]
    return "\n".join(["---", *lines, "---", ""])


def reference(*parts: str) -> str:
    """Return the stable name of a memory within a file, which no stored text can end or forge."""
    return sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:16]


def file_name(title: str, id: str) -> str:
    """Return the name of a file: readable, in ASCII, unique by the id, and none that a file system reserves."""
    folded = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().casefold()
    slug = _NO_WORD.sub("-", folded)[:_SLUG_CHARS_MAX].strip("-")
    return f"{slug}-{reference(id)[:8]}.md" if slug else f"{reference(id)}.md"
