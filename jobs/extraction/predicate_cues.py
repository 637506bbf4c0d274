"""Predicate cues: the words of a line that allow a usual predicate, in the languages that conversations are mostly in.

A model writes "lives in" for many wordings, so that its words need not be in the line. Without any of these words, it
would state that a person lives in every place that a message names.
"""

from __future__ import annotations

import re

from recollect.projections.projector.predicates import canonical

#: Words by which people say what they like.
LIKING = re.compile(
    r"\b(?:lik\w+|lov\w+|enjoy\w*|prefer\w*|favou?rite\w*|hat(?:e[sd]?|ing)|dislik\w+|can['’]?t stand|fan of|ador\w+|into|"
    r"rather|awful|delicious|mag|mögen|lieb\w*|gern\w*|hass\w*|lecker|schmeckt|gusta\w*|encanta\w*|prefier\w*|odi\w+|aim\w+|"
    r"préf\w+|déteste|gost\w+|piac\w+|нрав\w+|любл\w+|любит)\b|[喜爱愛好]|讨厌",
    re.IGNORECASE,
)
_HOME = (
    r"\b(?:liv(?:e[sd]?|ing)|mov(?:e[sd]?|ing)|resid\w+|home|house|flat|apartment|place|rent\w*|based|settl\w+|relocat\w+|in|"
    r"near|wohn\w+|leb\w+|zieh\w*|zog\w*|umgezogen|viv\w+|mud\w+|habit\w+|déménag\w+|mor[oae]\w*|abit\w*|жив\w+|переех\w+)\b|[住搬]"
)
_WORK = (
    r"\b(?:work\w*|job|employ\w*|hired|join\w*|start\w*|compan\w+|boss|office|role|position|contract|profession|as|at|for|"
    r"am an?|i['’]?m an?|bin|arbeit\w*|beruf|firma|bei|trabaj\w+|travaill\w+|lavor\w+|trabalh\w+|работ\w+)\b|工作|上班|働"
)
_COUPLE = (
    r"\b(?:marri\w+|wife|husband|spouse|wedding|engaged|fianc\w+|partner|dating|date|boyfriend|girlfriend|together|seeing|"
    r"verheiratet|verlobt|frau|mann|freund\w*|espos\w+|casad\w+|novi\w+|mari\w*|femme|copain|copine|spos\w+|муж\w*|жен\w+)\b|[夫妻婚]|女友|男友"
)
#: The words by canonical predicate; a predicate that is not here needs none.
_CUES = {
    predicate: re.compile(words, re.IGNORECASE)
    for predicates, words in (
        (("lives in",), _HOME),
        (("works at", "works as"), _WORK),
        (("married to", "engaged to", "dating"), _COUPLE),
        (
            ("studies at",),
            r"\b(?:stud\w+|school|university|college|uni|course|class\w*|degree|estud\w+|étud\w+)\b|[学學]",
        ),
        (
            ("age is",),
            r"\b(?:age|aged|old|years?|turn\w*|birthday|jahre?|alt|años|ans|anni|anos|лет)\b|[岁歳]|\bi['’]?m \d|\bam \d",
        ),
        (
            ("born in", "born on"),
            r"\b(?:born|birth\w*|from|grew up|geboren|geburtstag|naci\w*|cumpleaños|né\w*|nat[oa])\b|[生]",
        ),
        (("email is",), r"@"),
        (("phone is",), r"\d"),
    )
    for predicate in predicates
} | dict.fromkeys(("likes", "loves", "enjoys", "prefers", "dislikes", "hates"), LIKING)


def allows(predicate: str, text: str) -> bool:
    """Return whether `text` has a word for `predicate`, or the predicate needs none."""
    cue = _CUES.get(canonical(predicate))
    return cue is None or cue.search(text) is not None
