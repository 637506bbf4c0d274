"""Own words: the part of a message that its sender states, without pasted texts, code, quotations and role play."""

from __future__ import annotations

import re

from recollect.jobs.extraction.message_kinds import is_about_text
from recollect.jobs.extraction.text_requests import foreign_start

#: A line that introduces a text: `here is my essay:`.
_INTRODUCTION = re.compile(
    r"\b(?:this|these|following|text|paragraph|e-?mail|message|post|below|content|here|article|story|sentence|prompt|question|code|"
    r"transcript|abstract|output|input|bio|resume|cv|letter|version|draft|essay|poem|script|review|description|instructions?)\b"
    r"[^\n]{0,60}[:=]\s*$",
    re.IGNORECASE,
)
#: A statement, perhaps after a label: `The decision: I decided to …`.
_STATED = re.compile(r"^\W{0,10}(?:\d{1,3}\.\s{1,3})?(?:[\w '/-]{1,40}:\W{0,10})?(?:I|I'm|I've|We|My)\s")
_CODE_BLOCK = re.compile(r"```[^`]*+(?:`(?!``)[^`]*+)*+(?:```|$)")
#: A line of code, of a quotation, a heading, a table, a label with a value.
_FOREIGN_LINE = re.compile(
    r"^\s*(?:[#>|/<@{}\[]|\*{2}[^*]{1,60}\*{2}\s*:?$|(?:import|def|class|const|let|var|return|function|public|private|elif|else|for\s*\(|if\s*\(|from\s+\w+\s+import)\b"
    r"|[\w.]+\s*(?:=|\(|\+=)|\*{0,2}[A-Z][\w /'-]{1,40}\*{0,2}:\*{0,2}\s+\S.{0,400}$)|[{};]\s*$|=>|\)\s*$(?<=\(\))",
)
#: A quotation; an inch mark or a quote within a word begins none.
_QUOTATION = re.compile(
    r"""(?<![\w"])"(?=\S)[^"]{0,2000}"(?!\w)|“[^“”]{0,2000}”|„[^„“”]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』"""
    r"""|(?<![\w'’‘])['‘](?=\w)[^'‘’\n]{3,400}(?:['’]\w{1,2}\b[^'‘’\n]{0,400}){0,8}['’](?!\w)"""
)
#: A statement: a pronoun or a form of `be` or `have`, or several lines.
_STATES = re.compile(
    r"\n|\b(?:I|you|he|she|we|they|it|my|your|our|is|are|was|am|have|has|had|don['’]t|always|never|ich|du|wir|mein\w{0,2}|bin|ist|yo|soy|vivo|tengo|es|mi|je|j['’]\w+|suis|mon|ma|io|sono|eu|sou)\b|"
    r"[我你私僕俺]|(?:です|ます)",
    re.IGNORECASE,
)
#: A line of a log.
_LOG_LINE = re.compile(r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:")


def own_words(text: str, speaker: str) -> str:
    """Return the lines of a message that its sender `speaker` states; empty when there are none."""
    if is_about_text(text):
        return ""
    lines: list[str] = []
    own = _CODE_BLOCK.sub("\n", text)
    for line in _without_quoted_statements(own[: foreign_start(own, speaker)]).split("\n"):
        if _LOG_LINE.match(line) or line.lstrip().startswith((">", "|")):
            continue
        if _FOREIGN_LINE.search(line[:500]) and _STATED.match(line) is None:
            continue
        if _INTRODUCTION.search(line[-160:]):
            break
        lines.append(line)
    return "\n".join(lines)


def _without_quoted_statements(text: str) -> str:
    """Return a text without its quotations that state something; a name or a title in quotation marks stays."""
    return _QUOTATION.sub(lambda match: '""' if _STATES.search(match[0]) else match[0], text)
