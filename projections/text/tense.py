"""Tense: reads from the words around an expression whether it is about the past or about the future."""

from __future__ import annotations

import re

from recollect.projections.text.calendar_ranges import Tense

#: Characters before and after an expression that are read; a cue further away belongs to another clause.
_BEFORE_CHARS = 100
_AFTER_CHARS = 80
_SENTENCE_END = re.compile(r"[.!?;](?!\w)|\n")
#: Distance in characters that a comma or a conjunction between a cue and the expression adds.
_CLAUSE_CHARS = 40
_CLAUSE_BREAK = re.compile(r",| and | but ", re.IGNORECASE)

_FUTURE = (
    r"will|won't|\w{1,20}'ll|shall|going to|gonna|about to|plan(?:s|ning)?|planned (?:for|to)|"
    # What is arranged is still to come, although it was arranged in the past: "bought tickets for 14 March".
    r"tickets?|booked|reserved|registered|signed up|invited|rsvp|(?:decided|agreed|settled) on|"
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
#: "the hearing is on" right before an expression, and a colon, which separates an announcement from what was done.
_IS_ON = re.compile(r"\b(?:is|are)(?: (?:on|in|at|for|the)){0,3}\s?\Z", re.IGNORECASE)
_COLON = re.compile(r":\s?\Z")
#: Words of a sentence without a verb that announces something, and those of one that looks back.
_ANNOUNCED = re.compile(
    r"\b(?:appointment|audition|ball|barbecue|bbq|booking|ceremony|checkup|check-up|class|concert|conference|course|"
    r"deadline|dinner|exam|exams|exhibition|festival|final|finals|fitting|flight|flights|funeral|game|gig|graduation|"
    r"hearing|holiday|holidays|interview|launch|lecture|lunch|marathon|match|meeting|meetup|move-in|opening|operation|"
    r"party|performance|premiere|presentation|race|recital|release|reservation|reunion|show|surgery|test|tournament|"
    r"trip|vacation|visit|wedding|workshop)\b",
    re.IGNORECASE,
)
#: A place or a time of day right after a date: "14 March at Sala X", "12 December 3pm".
_PLACE_OR_TIME = re.compile(r"\A,?\s?(?:at|@|[01]?\d(?::\d\d)?\s?[ap]\.?m\b|[012]?\d:\d\d\b)", re.IGNORECASE)
_LOOKS_BACK = re.compile(
    r"\b(?:photos?|pictures?|pics|memories|recap|report|best|great|amazing|awesome|wonderful|lovely|fun|funny|"
    r"terrible|awful|after|since|from)\b",
    re.IGNORECASE,
)
_CUE = re.compile(rf"\b(?:(?P<future>{_FUTURE})|(?P<past>{_PAST}))\b", re.IGNORECASE)
#: Without another cue, a sentence in the present tense with a date is about a plan: "we fly on 28 May".
_PRESENT_CUE = re.compile(rf"\b(?:{_PRESENT})\b", re.IGNORECASE)


def tense_around(text: str, start: int, end: int) -> Tense:
    """Return the tense of the nearest cue in the sentence of `text[start:end]`; None without a cue."""
    before, after = _sentence_around(text, start, end)
    if _IS_ON.search(before):
        return "future"
    cues = [(_distance(before[cue.end() :]), cue) for cue in _CUE.finditer(before)]
    cues += [(_distance(after[: cue.start()]), cue) for cue in _CUE.finditer(after)]
    if cues:
        _, closest = min(cues, key=lambda pair: pair[0])
        return "future" if closest["future"] else "past"
    return "present" if _PRESENT_CUE.search(before) or _PRESENT_CUE.search(after) else None


def is_announced(text: str, start: int, end: int) -> bool:
    """Return whether a sentence without a verb announces what is at `text[start:end]`: "concert 14 August, Sala X"."""
    before, after = _sentence_around(text, start, end)
    if _LOOKS_BACK.search(before) or _LOOKS_BACK.search(after):
        return False
    names_event = _ANNOUNCED.search(text[max(0, start - _BEFORE_CHARS) : start]) or _ANNOUNCED.search(after)
    return bool(names_event or _PLACE_OR_TIME.match(after))


def _sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and after `text[start:end]` in its sentence."""
    before = text[max(0, start - _BEFORE_CHARS) : start].replace("’", "'")
    after = text[end : end + _AFTER_CHARS].replace("’", "'")
    before = before[max((match.end() for match in _SENTENCE_END.finditer(before)), default=0) :]
    sentence_end = _SENTENCE_END.search(after)
    return "" if _COLON.search(before) else before, after if sentence_end is None else after[: sentence_end.start()]


def _distance(gap: str) -> int:
    """Return the distance of a cue: the characters up to the expression, more across clauses."""
    return len(gap) + _CLAUSE_CHARS * len(_CLAUSE_BREAK.findall(gap))
