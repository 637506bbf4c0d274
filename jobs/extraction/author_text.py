"""Own words: the part of a message that its sender states, without texts of others, code, quotations and role play.

A request for work on a text, a colon before the words of another person, a line with a speaker's name or the greeting of a mail begins such a text, and
nothing marks its end for sure.
"""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.message_kinds import role_start
from recollect.jobs.extraction.name_lexicon import is_first_name

_TEXT_NOUN = (
    r"(?:letter|e-?mail|mail|message|dm|sms|story|stories|tale|poem|poetry|song|rap|lyrics|essay|article|blog|post|caption|tweet|thread|bio|biography|"
    r"profile|persona|speech|toast|eulogy|vows|script|dialog(?:ue)?|monologue|scene|novel|chapter|paragraph|text|reply|response|review|resume|résumé|cv|"
    r"character|backstory|diary|journal|statement|application|invitation|joke|haiku|limerick|sonnet|sentences?|phrase|exercise|quiz|prompt|testimonial|"
    r"advert|ad|slogan|headline|quote|obituary|complaint|screenplay|fan ?fic\w*|transcript|conversation|chat|template|example)"
)
#: A request for work on a text, which may be that of another person.
_REQUEST = late_pattern(
    r"(?<!\bI )(?<!\bwe )(?<!\bich )\b(?:translate|proof-?read|rephrase|paraphrase|rewrite|summari[sz]e|übersetz\w{0,3}|korrigier\w{0,2}|"
    r"traduce\w{0,2}|tradui\w{1,3}|traduci|corrige\w{0,2})\b|翻译|翻訳|添削|"
    r"\b(?:this|that|following|a|these|any)\b[^.!?\n]{0,30}\b(?:sentences?|grammatical\w{0,2}|typos?|mistakes?|mail|correct)\b[^.!?\n]{0,20}[.?:\n]|"
    rf"\b(?:write|draft|compose|help me with)\b[^.!?\n:]{{0,30}}?\b{_TEXT_NOUN}\b[^.!?\n]{{0,40}}\. |\bexercise \d",
    re.IGNORECASE,
)
#: Words of the rest of a message after a request that is about the text before it.
_REST_WORDS_MAX = 6
#: A colon before a statement in the first person.
_COLON = late_pattern(
    r"(?:^|(?<=[.!?\n;]))[ \t]{0,3}(?P<label>[^\n.!?:;。]{0,120}):[ \t]{0,3}\n{0,2}(?=[\"'“„«*_-]{0,3}\s?(?:I|I['’]\w{1,2}|[Mm]y|[Ww]e|[Oo]ur|"
    r"[Ii]ch|[Mm]eine?|[Ww]ir|[Yy]o|[Vv]iv[oe]|[Ss]oy|[Mm]i|[Mm]e|[Tt]engo|[Tt]rabajo|[Jj]e|[Jj]['’]\w{1,20}|[Mm]on|[Mm]a|[Ii]o|[Ss]ono|[Vv]ivo|[Ee]u|[Mm]oro)\b|(?<=[:：])(?:我|私|僕|俺))"
)
#: Labels after which the sender goes on: `update: I moved`, `here is the thing: I …`.
_OWN_LABEL = late_pattern(
    r"(?:^|\b)(?:updates?|p\.?s|fyi|btw|by the way|note|nb|n\.b|about me|about myself|background|context|intro(?:duction)?|news|edit|answers?|yes|no|nope|ok(?:ay)?|thing|problem|issue|"
    r"question|decision|confession|fact|facts|reason|situation|result|plan|goal|so|well|sorry|correction|reminder|also|anyway|remember|remember (?:this|that)|for the record|just so you know|to be clear|"
    r"i mean|honestly|truth|actually|actually,? no|wait|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|wichtig|übrigens|nota|[\d.)(]{1,6})\W{0,10}$",
    re.IGNORECASE,
)
_FIRST_PERSON = late_pattern(r"\b(?:I|we|I['’]\w{1,2})\b")
_SPEAKS = late_pattern(
    rf"\b(?:say\w*|said|tell\w*|told|writ\w+|wrote|ask\w*|post\w*|text\w*|read\w*|repl\w+|think\w*|thought|goes|went|like|sing\w*|shout\w*|claim\w*|for|{_TEXT_NOUN})\b",
    re.IGNORECASE,
)
#: The line of a chat: a speaker, perhaps with the time, before a dash, a colon or a bracket.
_CHAT_LINE = late_pattern(
    r"^[^\w\n]{0,6}(?P<time>\[?\d[\d:/., -]{2,20}(?:[AaPp][Mm])?\]?,?[ \t]{0,3}[-–—]?[ \t]{0,3})?"
    r"(?P<name>[A-ZÀ-Þ][\w'’.-]{1,20})(?: [A-ZÀ-Þ][\w'’.-]{0,20})?(?P<also>[ \t]{0,2}[(\[][^)\]\n]{1,24}[)\]])?[ \t]{0,3}(?P<sign>—|–|-{1,2}(?=\s)|:|>|»)[ \t]{0,3}\S",
    re.MULTILINE,
)
#: The same without a sign: a speaker with the time, on a line before the words.
_TIMED_SPEAKER = late_pattern(
    r"^[^\w\n]{0,5}(?:[Ss]peaker \d|[A-Z]\w{1,20}(?: [A-Z]\w{1,20})?)\s{1,3}\[?\(?\d{1,2}:\d\d", re.MULTILINE
)
#: The first line of a mail, and its last one.
_GREETING = late_pattern(
    r"^[ \t]{0,3}(?:dear|hi|hey|hello|hallo|liebe[rs]?|lieber|sehr geehrte\w?|hola|estimad[oa]|querid[oa]|bonjour|chère?|ciao|gentile|olá|good (?:morning|afternoon|evening))\b[^\n.!?]{0,40},?[ \t]{0,3}$",
    re.IGNORECASE | re.MULTILINE,
)
_GREETED = late_pattern(
    r"\b(?:dear|hi|hey|hello|hallo|liebe[rs]?|hola|querid[oa]|bonjour|salut|chère?|ciao|olá)\s(?P<name>[^\W\d_]{2,30})\b",
    re.IGNORECASE,
)
_SIGN_OFF = late_pattern(
    r"^[ \t]{0,3}(?:(?:best|kind|warm|many|with|yours|mit|viele|liebe|un|cordiali|bien)\s{1,2})?(?:regards|wishes|cheers|sincerely|truly|faithfully|love|thanks|thank you|greetings|grüße[n]?|grüssen?|"
    r"saludos?|abrazo|cordialement|saluti|abraços?|xoxo)\b[^\n.!?]{0,20},?[ \t]{0,3}\n",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = late_pattern(r"^(?:from|to|subject|sent|cc|von|an|betreff|fwd?|re): \S", re.IGNORECASE | re.MULTILINE)
#: A statement, perhaps after a label: `The decision: I decided to …`.
_STATED = late_pattern(r"^\W{0,10}(?:\d{1,3}\.\s{1,3})?(?:[\w '/-]{1,40}:\W{0,10})?(?:I|I'm|I've|We|My)\s")
_CODE_BLOCK = late_pattern(r"```[^`]*+(?:`(?!``)[^`]*+)*+(?:```|$)")
#: A line of code, of a quotation, a heading, a table, a label with a value.
_FOREIGN_LINE = late_pattern(
    r"^\s*(?:[#>|/<@{}\[]|\*{2}[^*]{1,60}\*{2}\s*:?$|(?:import|def|class|const|let|var|return|function|public|private|elif|else|for\s*\(|if\s*\(|from\s+\w+\s+import)\b"
    r"|[\w.]+\s*(?:=|\(|\+=)|\*{0,2}[A-Z][\w /'-]{1,40}\*{0,2}:\*{0,2}\s+\S.{0,400}$)|[{};]\s*$|=>|\)\s*$(?<=\(\))",
)
#: A quoted line, a row of a table, a line of a log.
_COPIED_LINE = late_pattern(r"\s{0,40}+[>|]|\[?\d{4}-\d\d-\d\d[ T]\d\d:")
#: A quotation; an inch mark or a quote within a word begins none.
_QUOTATION = late_pattern(
    r"""(?<![\w"])"(?=\S)[^"]{0,2000}"(?!\w)|“[^“”]{0,2000}”|„[^„“”]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』"""
    r"""|(?<![\w'’‘])['‘](?=\w)[^'‘’\n]{3,400}(?:['’]\w{1,2}\b[^'‘’\n]{0,400}){0,8}['’](?!\w)"""
)
#: A statement: a pronoun or a form of `be` or `have`, or several lines.
_STATES = late_pattern(
    r"\n|\b(?:I|you|he|she|we|they|it|my|your|our|is|are|was|am|have|has|had|don['’]t|always|never|ich|du|wir|mein\w{0,2}|bin|ist|yo|soy|vivo|tengo|es|mi|je|j['’]\w+|suis|mon|ma|io|sono|eu|sou)\b|"
    r"[我你私僕俺]|(?:です|ます)",
    re.IGNORECASE,
)


def author_text(text: str, speaker: str) -> str:
    """Return the lines of a message that its sender `speaker` states; empty when there are none."""
    return _own_lines(_without_quoted_statements(_before_foreign(text, speaker)))


def own_part(text: str, speaker: str) -> str:
    """Return the lines of a message that its sender `speaker` wrote, with what they quote."""
    return _own_lines(_before_foreign(text, speaker))


def _before_foreign(text: str, speaker: str) -> str:
    own = _CODE_BLOCK.sub("\n", text)
    return own[: _foreign_start(own, speaker)]


def _own_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if _is_own(line))


def _is_own(line: str) -> bool:
    """Return whether a line is not a code, heading, table or quotation."""
    if _COPIED_LINE.match(line):
        return False
    return _STATED.match(line) is not None or _FOREIGN_LINE.search(line[:500]) is None


def _without_quoted_statements(text: str) -> str:
    """Return a text without its quotations that state something; a name or a title in quotation marks stays."""
    return _QUOTATION.sub(lambda match: '""' if _STATES.search(match[0]) else match[0], text)


def _foreign_start(text: str, speaker: str) -> int:
    """Return the position from which on a message is not surely a statement of `speaker`; its length without one."""
    starts = (_request_start(text), _quoted_start(text), _chat_start(text), _mail_start(text))
    return min(*starts, role_start(text), _addressed_start(text, speaker))


def _addressed_start(text: str, speaker: str) -> int:
    """Return where another person greets the speaker: people do not greet themselves."""
    first = speaker.split(maxsplit=1)[0].casefold() if speaker.strip() else ""
    greetings = (match.start() for match in _GREETED.finditer(text) if match["name"].casefold() == first)
    return next(greetings, len(text))


def _request_start(text: str) -> int:
    """Return where the sentence of a request about a text begins; 0 when it is about the text before it."""
    request = _REQUEST.search(text)
    if request is None:
        return len(text)
    is_after = len(text[request.end() :].split()) <= _REST_WORDS_MAX
    return 0 if is_after else max(text.rfind(sign, 0, request.start()) for sign in ".!?\n") + 1


def _quoted_start(text: str) -> int:
    """Return where a colon begins the words of another person."""
    for match in _COLON.finditer(text):
        label = match["label"].strip()
        is_own = _OWN_LABEL.search(label) is not None and len(label.split()) <= 8
        is_own = is_own or (_FIRST_PERSON.search(label) is not None and _SPEAKS.search(label) is None)
        if label and not is_own:
            return match.start()
    return len(text)


def _chat_start(text: str) -> int:
    """Return where the first line of a chat begins."""
    timed = _TIMED_SPEAKER.search(text)
    start = len(text) if timed is None else timed.start()
    for match in _CHAT_LINE.finditer(text):
        has_time = match["time"] or match["also"]
        is_figure = text[match.end() - 1].isdigit() or not is_first_name(match["name"])
        is_label = match["sign"] == ":" and is_figure and not has_time
        if not is_label:
            return min(start, match.start())
    return start


def _mail_start(text: str) -> int:
    """Return where a mail begins: at its header or greeting, or at the beginning when only its end is marked."""
    if "\n" not in text and ": " not in text:
        return len(text)
    header = _HEADER.search(text)
    greetings = [match.start() for match in _GREETING.finditer(text)]
    if _SIGN_OFF.search(text) is not None:
        return min((*greetings, 0 if header is None else header.start()), default=0)
    starts = [start for start in greetings if start > 0] + ([] if header is None else [header.start()])
    return min(starts, default=len(text))
