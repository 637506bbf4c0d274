"""Which names a text mentions: runs of capitalised words, by rules for English that anyone can read and extend.

A capital at the start of a sentence says nothing: a single word there counts only when it is known as a name already.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

from recollect.projections.text.sentences import opens_sentence

#: Capital letters of the Latin, Greek, Cyrillic and Armenian scripts. A plain set at the
#: pattern's start skips through a text twice as fast as classes that mean the same.
_CAPITALS = "".join(chr(code) for code in range(0x41, 0x590) if chr(code).isupper())
_WORD = rf"[{_CAPITALS}][\w'’&-]*(?<!-)"
#: Capitalised words side by side, "of", "the", "de" … between them included.
_RUN = re.compile(rf"{_WORD}(?:(?: of| the| de| da| del| van| von| der| and the)* {_WORD})*")
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
#: Longer runs are no names, and would fill the memory of those that are.
_CACHED_CHARS_MAX = 200


def mentioned_names(text: str, known: Container[str]) -> list[str]:
    """Return the names in `text` in the order they come, each once.

    Parameters:
        known: case-folded names that are known already.
    """
    runs: list[str] = _RUN.findall(text)
    if _SKIPPED.issuperset(runs):
        return []
    found: dict[str, str] = {}
    end = 0
    for run in runs:
        # Every capital begins a run, so the next one is where it is found first. Match objects cost twice as much.
        start = text.index(run, end)
        end = start + len(run)
        if run in _SKIPPED or (start and text[start - 1].isalnum()):
            continue
        name = _name(run, opens_sentence(text, start), known)
        if name is not None:
            found.setdefault(name.key, name.text)
    return list(found.values())


class _Name(NamedTuple):
    text: str
    key: str
    #: Words.
    length: int


class _Run(NamedTuple):
    """What a run of capitalised words can mean."""

    #: Without the words at its ends that are no names; None when nothing is left, or too much for a name.
    whole: _Name | None
    #: The same without its first word.
    rest: _Name | None
    #: Whether it begins with what is no name, so that the name in it does not open the sentence.
    trimmed: bool


def _name(run: str, opens_sentence: bool, known: Container[str]) -> _Name | None:
    whole, rest, trimmed = _run(run)
    if not opens_sentence or trimmed:
        return whole
    if rest is not None and rest.key in known:
        # "Poor Rex": the first word has its capital from the sentence.
        return rest
    return None if whole is None or (whole.length == 1 and whole.key not in known) else whole


def _run(run: str) -> _Run:
    # The cache is for names; it must not keep whole messages.
    return _kept_run(run) if len(run) <= _CACHED_CHARS_MAX else _read_run(run)


def _read_run(run: str) -> _Run:
    words = [_POSSESSIVE.sub("", word) for word in run.split(" ")]
    first = next((at for at, word in enumerate(words) if word.casefold() not in NOT_NAMES), len(words))
    named = words[first:]
    while named and named[-1].casefold() in NOT_NAMES:
        named.pop()
    return _Run(_named(named), _named(named[1:]), first > 0)


_kept_run = lru_cache(65_536)(_read_run)


def _named(words: list[str]) -> _Name | None:
    if not words or len(words) > _WORDS_MAX or len(words[0]) < 2:
        return None
    text = " ".join(words)
    return _Name(text, text.casefold(), len(words))
