"""Phrases: cuts the phrase after a verb at its end, and rejects phrases that mean nothing outside the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable

#: What ends a phrase: a sign, a conjunction, a new clause.
_END = re.compile(
    r" ?(?:[;!?()\\]|:(?!\d)|[()\[\]{}<>|*]|(?<!\bSt)(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDra)(?<!\bNo)\. |\.$|,? (?:-+|–|—) |[–—]|->)"
    r"| (?:wa+y too?|so|too|very) (?:much|many)\b| a (?:lot|ton)\b(?! of)|, (?:had|was|were|is|are|been|feeling|making|which)\b"
    r"| and (?:[\w']{1,20} ){1,3}(?:is|are|was|were|will|would|can|has|have)\b| too(?=,)|, (?:my \w+|(?-i:[A-ZÀ-Þ][\w-]{1,30})) (?:[a-z]{2,20}s|was)\b|, (?:took|cost|costs|takes|take|check|see|look|let|please|help)\b| and hoping\b|, (?:\w{1,20} ){1,2}(?:have|has) been\b|,? (?:thank god|by the way|btw|if that matters)\b|, (?:[\w']{1,20} ){1,2}(?:says|said|told|is|are|was|were|will)\b"
    r"|, (?:but|so|and (?:I|we|he|she|they|it|you|that|this|my|our|now|then|also|was|is|had|have|got|really|hopefully)|"
    r"which|who|that|because|cuz|since|though|although|can|could|do|what|how|where|when|while|or something|it|I|we|you|he|she|"
    r"they|my|the|this|these|there|thanks|thankfully|just|right|huh|too|lol|haha|yeah|yep|especially|like|not|as|if|hoping|considering)\b"
    r"| (?:but|because|cuz|'cause|cause(?= (?:I|we|he|she|it|they|you|my|our|there)\b)|coz|although|though|while|whereas|if|unless|until|which|who|whom|whenever|so (?:that|I|we|it|they|you|he|she|my|please|no)|"
    r"and (?:I|we|he|she|they|it|you|my|our|this|that|then|now|am|is|are|was|were|had|has|have|got|will|would|can|could|also|it's|really|"
    r"wanted|want|need|just|hopefully|so|decided)|since (?:I(?! was\b)|we|he|she|they|it|my)|when|where|to see if|as (?:I|we|well|it))\b",
    re.IGNORECASE,
)
#: Signs that a phrase refers to the conversation or the present situation.
_POINTING_FIRST = re.compile(
    r"^(?:it|this|that|these|those|them|him|her(?! \w)|you|your|yours|us|me|one(?![\w-]| (?:of|day))|ones|some(?! \w)|something|anything|nothing|everything|"
    r"here|there|so|too|up with (?:it|this|that)|up (?:a|an|some|the) (?:few|new)|the (?:same|first|next|following|above|whole|rest|other|one|way|idea|point|thing|"
    r"latest|final|last)\b(?! (?:place|prize|grade|name))|in (?:it|this|that|there)|what|how|not|and|or|sure|through|good news|other|more(?! than\b)|"
    r"to (?:a|some) (?:\w+ )?(?:place|thing|spot)(?! (?:called|named|for|to|where))|(?:her|his|their) (?:every|each|on|in|at|once|twice|a lot|there|here|again))\b",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"\b(?:you|your|yours|it|here|asap|our last (?:chat|talk|call|conversation|session|message)|right now|at the moment|one (?:right|now)|everything|anything|something|following|above|below|option)\b"
    r"|\b(?:this|these|that|those)\b(?! (?:year|month|week|summer|winter|spring|fall|autumn|weekend|morning|afternoon|evening|"
    r"season|semester|friday|monday|tuesday|wednesday|thursday|saturday|sunday|january|february|march|april|may|june|july|august|"
    r"september|october|november|december|christmas))",
    re.IGNORECASE,
)
_POINTING_LAST = re.compile(r"\b(?:one|ones|it|them|ahead|first|for fun|instead|along|forward|the day|yourself)$")
_LETTERS = re.compile(r"[^\W\d_]{2}|\d")
#: Signs after which the phrase would go on: a list, a formula.
_CUT_OFF = frozenset((":", "\\"))
_WHAT = re.compile(r"\bwhat\b")
_PREPOSITIONS = frozenset(("to", "with", "for", "in", "on", "at", "from", "about", "of", "by", "as", "into"))
#: Spoken determiners: `met this amazing dude`, `painted that lake sunrise`.
_THIS = re.compile(
    r"(^|\b(?:by|with|met|to|in|for|at|on|of) )this ((?:really|super|amazing|great|cool|awesome|incredible|lovely|nice|new|huge|little|tiny|big|"
    r"old|local|cute|beautiful|guy|girl|woman|man|dude|lady|kid|couple|place)\b)"
)
_ALL_THESE = re.compile(r"\ball (?:these|those) (?=\w+ \w)")
_THAT = re.compile(r"(^|\b(?:to|in|for|on|at) )(?:that|those) (?=\w+ \w+)")
#: Words at the end of a phrase that add nothing.
_TRAILING = re.compile(
    r"(?:^|,| ) ?(?:too|though|as well|lol|haha|again|right now|now|btw|sadly|luckily|fortunately|unfortunately|thankfully|finally|hopefully|of course|so far|together|here|ready|actually|lately|recently|also|really|either|any ?more|anyway|please|"
    r"at the moment|just|then|soon|and|or|of|to|with|for|the|a|an|my|our|in|on|at|from|about|by|like|even|so|still|is|was|than|as|very|tbh|ngl|imo|yet|lmao|rn|atm|"
    r"to (?:understand|see|know|determine|decide|figure out|find out|check|ensure|explain|show))$",
    re.IGNORECASE,
)
#: `the shelter I volunteer at` ends with its preposition, too.
_RELATIVE_END = re.compile(r"\w (?:I|we) \w{2,20} (?:at|in|on|with|for|to|from)$")
#: Nouns that say nothing by themselves.
_EMPTY = re.compile(
    r"^(?:to |at |in |on |for |with |a |an |the |my |our |some |any |of |lots |lot |few |great |new |good |decent |solid |nice |small |big |really |amazing |awesome )*"
    r"(?:thing|stuff|time|way|bit|lot|event|idea|point|one|place|thought|feeling|fun|blast|chance|part|day|work|it|life|few|couple|project|problem|meeting|"
    r"while|step|start|progress|look|break|moment|task|phase|session|people|plan|go|try)s?$",
    re.IGNORECASE,
)
_WHITE_SPACE = re.compile(r"\s+")
#: The head of a phrase ends at a preposition.
_HEAD_END = re.compile(
    r" (?:of|with|for|about|in|on|at|from|to|by|near|after|before|since|during|and|that|as|through) "
)
_LEADING = re.compile(r"^(?:back )?(?:to|at|in|for|with|on|from|into|about|as|up|through|through) ")
#: Words of a phrase; a longer one is cut at a preposition or comma.
_WORDS_MAX = 16
#: Characters of a phrase that are searched for its end.
_CHARS_MAX = 240
_CUT = re.compile(r",? (?:to|with|for|in|on|at|from|by|and|as|about|after|before|during|through|using|into) (?=\S)|, ")
#: The word after a conjunction, but not the beginning of a name such as `fly.io` or `log-in`.
_AND = re.compile(r"(?<! ),? and (?:also |then )?(\w++)(?![.-]\w)")
_QUOTE = re.compile(r'"')


def phrase_at(sentence: str, start: int, is_verb: Callable[[str], bool]) -> str | None:
    """Return the phrase at a position, which may be empty; None when it refers to the conversation or is incomplete.

    Parameters:
        is_verb: whether a word after `and` is the verb of the next clause.
    """
    text = sentence[start : start + _CHARS_MAX]
    end = _END.search(text)
    if end is not None and end.group().strip()[:1] in _CUT_OFF:
        return None
    text = text[: end.start()] if end is not None else text
    for conjunction in _AND.finditer(text):
        if is_verb(conjunction[1].casefold()):
            text = text[: conjunction.start()]
            break
    phrase = _WHITE_SPACE.sub(" ", text).strip(" ,.'")
    phrase = trimmed(_shortened(_undetermined(phrase)))
    if phrase in _PREPOSITIONS or _LETTERS.search(phrase) is None:
        phrase = ""
    if phrase and (
        _POINTING_FIRST.match(phrase)
        or _POINTING.search(phrase)
        or _EMPTY.match(phrase)
        or _POINTING_LAST.search(phrase)
    ):
        return None
    return phrase if len(_QUOTE.findall(phrase)) % 2 == 0 else None


def _undetermined(phrase: str) -> str:
    """Return a phrase with `a` for `this` and `the` for `that` where they introduce a thing: `this amazing dude`."""
    return _THAT.sub(r"\1the ", _THIS.sub(_article, _ALL_THESE.sub("", phrase)))


def _article(match: re.Match[str]) -> str:
    """Return the indefinite article for `this` before a word."""
    return match[1] + ("an " if match[2][0].casefold() in "aeiou" else "a ") + match[2]


def trimmed(phrase: str) -> str:
    """Return a phrase without the words at its end that add nothing or are incomplete."""
    if _WHAT.search(phrase):
        # `what we are thankful for` ends with its preposition.
        return phrase
    while (trailing := _TRAILING.search(phrase)) is not None and _RELATIVE_END.search(phrase) is None:
        phrase = phrase[: trailing.start()].rstrip(" ,")
    return phrase


def head(phrase: str) -> str:
    """Return the words up to the second preposition: `a dog` of `a dog with three legs`, `Rome` of `to Rome in May`."""
    core = _LEADING.sub("", phrase)
    end = _HEAD_END.search(core)
    return core[: end.start()] if end is not None else core


def _shortened(phrase: str) -> str:
    """Return a phrase of at most `_WORDS_MAX` words, cut before a preposition or at a comma."""
    words = phrase.split(" ")
    if len(words) <= _WORDS_MAX:
        return phrase
    beginning = " ".join(words[: _WORDS_MAX + 1])
    cuts = [cut.start() for cut in _CUT.finditer(beginning)]
    return beginning[: cuts[-1]] if cuts else " ".join(words[:_WORDS_MAX])
