"""Own words: the part of a message that its sender states, without pasted texts, code, quotations and role play."""

from __future__ import annotations

import re

from recollect.jobs.extraction.copulas import FIGURE
from recollect.jobs.extraction.standing_instructions import is_task_on_text

#: A request to play a part: nothing in the message is about its sender.
_ROLE_PLAY = re.compile(
    r"^\W*(?:(?:please|hey|hi|ok|now|so|from now on|for this|next)[,:]?\s+)*(?:i\s+want\s+you\s+to\s+(?:act|be|pretend|play|role)|act\s+(?:as|like)|"
    r"you\s+are\s+(?:a|an|the|now|going\s+to\s+(?:act|be|play))\b|you're\s+(?:a|an|now)\b|pretend|imagine|suppose|let's\s+(?:role|pretend|play)|role-?\s?play|"
    r"assum(?:e|ing)\s+(?:that|the|you|i|we)|we\s+are\s+playing|in\s+this\s+(?:scenario|role|game|story)|from\s+the\s+perspective|simulate)",
    re.IGNORECASE,
)
#: A transcript: a speaker with the time.
_TRANSCRIPT = re.compile(
    r"^[^\w\n]{0,5}(?:[Ss]peaker \d|[A-Z]\w{1,20}(?: [A-Z]\w{1,20})?)\s{1,3}\[?\(?\d{1,2}:\d\d", re.MULTILINE
)
#: A request about a text that follows it.
_TEXT_REQUEST = re.compile(
    r"^\W*(?:(?:please|can you|could you|kindly|now|next|also|ok|great|nice)[.,!:]?\s+)*(?:re-?write|rephrase|re-?phrase|paraphrase|translate|proofread|"
    r"edit|correct|fix|summari[sz]e|improve|shorten|expand|continue|analy[sz]e|write|create|draft|generate|compose|turn|convert|format|explain|"
    r"answer|based on|given|using|use|add|make|simplify|reword|respond|reply|act|review|evaluate|classify|extract|list|describe|elaborate)\b",
    re.IGNORECASE,
)
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
#: The first line of a mail, whose text follows, and a line of a log.
_MAIL_HEADER = re.compile(r"^(?:from|to|subject|sent|date|cc|von|an|betreff|fwd?): ", re.IGNORECASE)
_LOG_LINE = re.compile(r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:")
#: Characters of a message with a request about a text, from which on the rest of the message is this text.
_REQUEST_CHARS_MAX = 240
#: Characters of a message that can be talk about other people by their names; longer ones are mostly about a subject.
_TALK_CHARS_MAX = 300
#: Characters of a message that its sender wrote; longer ones are mostly pasted.
_OWN_CHARS_MAX = 1_500


def own_words(text: str) -> str:
    """Return the lines of a message that its sender states; empty when there are none."""
    if (
        _ROLE_PLAY.match(text)
        or _TRANSCRIPT.search(text)
        or is_task_on_text(text)
        or (len(text) > _REQUEST_CHARS_MAX and _TEXT_REQUEST.match(text))
    ):
        return ""
    lines: list[str] = []
    for line in _CODE_BLOCK.sub("\n", text).split("\n"):
        if _MAIL_HEADER.match(line):
            break
        if _LOG_LINE.match(line):
            continue
        if (
            _FOREIGN_LINE.search(line[:500])
            and _STATED.match(line) is None
            and FIGURE.fullmatch(line.strip(" -*•")) is None
        ):
            continue
        if _INTRODUCTION.search(line[-160:]):
            break
        lines.append(line)
    return "\n".join(lines)


def is_of_sender(text: str) -> bool:
    """Return whether a message is short enough to be written by its sender, who is part of its `we`."""
    return len(text) <= _OWN_CHARS_MAX


def is_talk(text: str) -> bool:
    """Return whether a message is short enough to be talk, in which a name alone can be a subject."""
    return len(text) <= _TALK_CHARS_MAX
