"""Tense: reads from the words around an expression whether it is about the past or about the future."""

from __future__ import annotations

import re

from recollect.projections.text.calendar_ranges import Tense

#: Characters before and after an expression that are read; a cue further away belongs to another clause.
_BEFORE_CHARS = 100
_AFTER_CHARS = 80
_SENTENCE_END = re.compile(r"[.!?;\n]")
#: Distance in characters that a comma or a conjunction between a cue and the expression adds.
_CLAUSE_CHARS = 40
_CLAUSE_BREAK = re.compile(r",| and | but ", re.IGNORECASE)

_FUTURE = (
    r"will|won't|\w{1,20}'ll|shall|going to|gonna|about to|plan(?:s|ning)?|planned (?:for|to)|"
    r"hop(?:e|es|ing) (?:to|for)|intend(?:s|ing)?|looking forward|can't wait|excited (?:for|about)|upcoming|coming|due|"
    r"deadline|appointments?|scheduled|booked for|remind|must|needs? to|ha(?:ve|s) to|should|wants? to|would like|"
    r"starts?|begins?|arrives?|lands?|leaves?|departs?|opens?|expires?|ends?|takes? place|soon|do (?:i|we) have|"
    r"what(?:'s| is| are) (?:on|planned|happening|scheduled)|"
    r"(?:am|are|is) (?:i|we|you|they|he|she|it) \w{2,20}ing|(?:am|are|is|\w{1,20}'(?:m|re|s)) \w{2,20}ing"
)
#: Irregular pasts that are not also a present form.
_IRREGULAR = (
    "was wasn't were weren't did didn't had hadn't been went came became got gotten took made saw met said told bought "
    "brought found left lost won flew drove ran ate began broke built caught chose drank fell felt fought forgot gave "
    "grew heard held hid kept knew learnt led lent meant paid rode rose sang sent slept sold spent spoke stood stole "
    "swam taught thought threw understood woke wore wrote died born done gone seen"
)
_PAST = rf"{'|'.join(_IRREGULAR.split())}|\w{{1,20}}'ve|used to|last|ago|\w{{1,20}}[^\We]ed"
_PRESENT = (
    r"(?:i|we|you|they|he|she|it|who) \w{2,20}|\w{1,20}'(?:m|re|s)|is|are|am|has|have|goes|comes|flies|gets|gives|"
    r"moves|meets|visits|plays|runs|turns|marries"
)
_CUE = re.compile(rf"\b(?:(?P<future>{_FUTURE})|(?P<past>{_PAST}))\b", re.IGNORECASE)
#: Without another cue, a sentence in the present tense with a date is about a plan: "we fly on 28 May".
_PRESENT_CUE = re.compile(rf"\b(?:{_PRESENT})\b", re.IGNORECASE)


def tense_around(text: str, start: int, end: int) -> Tense:
    """Return the tense of the nearest cue in the sentence of `text[start:end]`; None without a cue."""
    before = text[max(0, start - _BEFORE_CHARS) : start].replace("’", "'")
    after = text[end : end + _AFTER_CHARS].replace("’", "'")
    before = before[max((match.end() for match in _SENTENCE_END.finditer(before)), default=0) :]
    sentence_end = _SENTENCE_END.search(after)
    after = after if sentence_end is None else after[: sentence_end.start()]
    cues = [(_distance(before[cue.end() :]), cue) for cue in _CUE.finditer(before)]
    cues += [(_distance(after[: cue.start()]), cue) for cue in _CUE.finditer(after)]
    if cues:
        _, closest = min(cues, key=lambda pair: pair[0])
        return "future" if closest["future"] else "past"
    return "future" if _PRESENT_CUE.search(before) or _PRESENT_CUE.search(after) else None


def _distance(gap: str) -> int:
    """Return the distance of a cue: the characters up to the expression, more across clauses."""
    return len(gap) + _CLAUSE_CHARS * len(_CLAUSE_BREAK.findall(gap))
