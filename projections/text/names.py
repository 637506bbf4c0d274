"""Names: finds the names that a text mentions, as runs of capitalised words, by rules for English.

Every sentence starts with a capital, so a single word at the start of a sentence counts only when it is already the
name of an entity.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.sentences import opens_sentence

#: Capital letters of the Latin, Greek, Cyrillic and Armenian scripts. A plain set at the start of the pattern searches
#: a text twice as fast as equivalent character classes.
_CAPITALS = "".join(chr(code) for code in range(0x41, 0x590) if chr(code).isupper())
_WORD = rf"[{_CAPITALS}][\w'’&-]*(?<!-)"
#: Adjacent capitalised words, with "of", "the", "de" … between them.
_RUN = late_pattern(rf"{_WORD}(?:(?: of| the| de| da| del| van| von| der| and the)* {_WORD})*")
_POSSESSIVE = late_pattern(r"['’]s?$")

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
#: Capitalised words that are not names, case folded: pronouns, greetings, days, months, first words of sentences.
NOT_NAMES = frozenset(_NOT_NAMES.split())
#: The same words, capitalised: most runs are one of them.
_SKIPPED = frozenset(word.capitalize() for word in NOT_NAMES) | {"I'm", "I've", "I'd", "I'll"}
#: Longest name in words; a longer run is a headline or text in capitals.
_WORDS_MAX = 5
#: Longest run in the cache; longer runs are not names and would fill it.
_CACHED_CHARS_MAX = 200


def mentioned_names(text: str) -> list[str]:
    """Return the distinct names in `text`, in order, without those that only a known entity makes a name."""
    return list(names_by_key(text, ()).values())


def names_by_key(text: str, entity_names: Container[str]) -> dict[str, str]:
    """Return the distinct names in `text` by their case-folded forms, in order.

    Parameters:
        entity_names: case-folded names of the entities so far.
    """
    runs: list[str] = _RUN.findall(text)
    names: dict[str, str] = {}
    if _SKIPPED.issuperset(runs):
        return names
    end = 0
    for run in runs:
        # Every capital begins a run, so `index` finds the start of the run. Match objects cost twice as much.
        start = text.index(run, end)
        end = start + len(run)
        if run in _SKIPPED or (start and text[start - 1].isalnum()):
            continue
        whole, rest, trimmed = _cached_run(run) if len(run) <= _CACHED_CHARS_MAX else _parse_run(run)
        if not trimmed and (rest is not None or whole is None or whole.key not in entity_names):
            # The rule depends on the place. Most runs are a known name of one word, which is the same in all places.
            whole = _name_at(whole, rest, entity_names, opens=opens_sentence(text, start))
        if whole is not None and whole.key not in names:
            names[whole.key] = whole.text
    return names


class _Name(NamedTuple):
    """A name in a text."""

    text: str
    #: The text, case folded.
    key: str
    #: Words in the name.
    length: int


class _RunNames(NamedTuple):
    """The possible names in a run of capitalised words."""

    #: The run without the words of `NOT_NAMES` at its ends; None when it is empty or too long for a name.
    whole: _Name | None
    #: The same name without its first word.
    rest: _Name | None
    #: Whether the run starts with a word of `NOT_NAMES`, so that the name does not start the sentence.
    trimmed: bool


def _name_at(whole: _Name | None, rest: _Name | None, entity_names: Container[str], *, opens: bool) -> _Name | None:
    """Return the name in a run, or None.

    Parameters:
        whole, rest: of the run, which is not trimmed.
        opens: whether the run begins a sentence.
    """
    if not opens:
        return whole
    if rest is not None and rest.key in entity_names:
        # "Poor Rex": the first word is capitalised because it starts the sentence.
        return rest
    return None if whole is None or (whole.length == 1 and whole.key not in entity_names) else whole


def _parse_run(run: str) -> _RunNames:
    """Return the possible names in a run."""
    words = [_POSSESSIVE.sub("", word) for word in run.split(" ")]
    first = next((index for index, word in enumerate(words) if word.casefold() not in NOT_NAMES), len(words))
    name_words = words[first:]
    while name_words and name_words[-1].casefold() in NOT_NAMES:
        name_words.pop()
    return _RunNames(_joined_name(name_words), _joined_name(name_words[1:]), first > 0)


_cached_run = lru_cache(65_536)(_parse_run)


def _joined_name(words: list[str]) -> _Name | None:
    """Return the words as a name; None when they are too many or start with a single letter."""
    if not words or len(words) > _WORDS_MAX or len(words[0]) < 2:
        return None
    text = " ".join(words)
    return _Name(text, text.casefold(), len(words))
