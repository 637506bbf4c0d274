"""Which names a text mentions: runs of capitalised words, by rules for English that anyone can read and extend.

A capital at the start of a sentence says nothing: a single word there counts only when it is known as a name already.
"""

from __future__ import annotations

import re
from collections.abc import Container

#: Capital letters of the Latin, Greek, Cyrillic and Armenian scripts. A plain set at the
#: pattern's start skips through a text twice as fast as classes that mean the same.
_CAPITALS = "".join(chr(code) for code in range(0x41, 0x590) if chr(code).isupper())
_WORD = rf"[{_CAPITALS}][\w'’&-]*(?<!-)"
#: Capitalised words side by side, "of", "the", "de" … between them included.
_RUN = re.compile(rf"{_WORD}(?:(?: of| the| de| da| del| van| von| der| and the)* {_WORD})*")
#: What stands before the first word of a sentence.
_SENTENCE_END = re.compile(r"(?:^|[.!?:;…\n\"“”(*>-])\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")

_NOT_NAMES = """
    a about after again ah all also although always am amazing an and another any anyway are as at awesome aww be
    because before best both but by bye can cheers come congrats congratulations cool could dear definitely did do
    does done each either even every everything exactly excellent few fine first for from fun glad go good gosh got
    great had haha happy has have he hello her here hey hi him his hmm hope how however i i'd i'll i'm i've if in
    indeed is it it's its just keep last later let let's like look lol lots love many may maybe me mine more most
    much must my nah never next nice no none nope nor not nothing now of off oh ok okay on once one only oops or
    other our ours perfect perhaps please poor really right same see shall she should since so some sometimes somehow
    sorry sounds still such super sure take thank thanks that that's the their them then there there's these they
    they're this those though thx till time to today tomorrow tonight too totally true two unfortunately until up us
    very wait was we we're we've welcome well were what what's whatever when where which while who whoa whose why
    will wish with within without wonderful would wow yay yeah yep yes yesterday yet you you're your yours yup
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec
    mr mrs ms dr am pm ps faq asap btw fyi imo omg tbh
"""
#: Words that are written with a capital without being a name: pronouns, greetings, days, months, what opens sentences.
NOT_NAMES = frozenset(_NOT_NAMES.split())
#: The same as they stand at the start of a sentence: most runs are one of these.
_SKIPPED = frozenset(word.capitalize() for word in NOT_NAMES) | {"I'm", "I've", "I'd", "I'll"}
#: Longest name in words; a longer run is a headline or shouting.
_WORDS_MAX = 5


def mentioned_names(text: str, known: Container[str]) -> list[str]:
    """Return the names in `text` in the order they come, each once.

    Parameters:
        known: case-folded names that are known already.
    """
    found: dict[str, str] = {}
    for match in _RUN.finditer(text):
        start = match.start()
        if match[0] in _SKIPPED or (start and text[start - 1].isalnum()):
            continue
        name = _name(match, text, known)
        if name is not None:
            found.setdefault(name.casefold(), name)
    return list(found.values())


def _name(match: re.Match[str], text: str, known: Container[str]) -> str | None:
    words = [_POSSESSIVE.sub("", word) for word in match[0].split(" ")]
    before = len(words)
    while words and words[0].casefold() in NOT_NAMES:
        words.pop(0)
    opens_sentence = len(words) == before and _SENTENCE_END.search(text, max(0, match.start() - 3), match.start())
    while words and words[-1].casefold() in NOT_NAMES:
        words.pop()
    if opens_sentence and len(words) > 1 and " ".join(words[1:]).casefold() in known:
        # "Poor Rex": the first word has its capital from the sentence.
        words.pop(0)
    if not words or len(words) > _WORDS_MAX or len(words[0]) < 2:
        return None
    name = " ".join(words)
    return None if opens_sentence and len(words) == 1 and name.casefold() not in known else name
