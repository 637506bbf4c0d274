"""Stems: reduces English words to a common form: `renewed my passport` and `renew the passport` compare equal."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.words import distinct_words

#: Irregular forms of common verbs and nouns, each with its stem.
_IRREGULAR = {
    form: words.split()[0]
    for words in """
    buy bought|send sent|pay paid|write wrote written|make made|take took taken|give gave given|sell sold|find found
    |bring brought|see saw seen|meet met|leave left|lose lost|speak spoke|drive drove driven|eat ate eaten|ride rode
    |teach taught|sing sang sung|swim swam|run ran|build built|choose chose chosen|hang hung|tell told|know knew
    |read reading|child children kid kids|mom mum mother|dad father|bike bicycle|appointment appt
    """.split("|")
    for form in words.split()
}
#: The irregular forms of each stem.
_FORMS = {stem: [form for form in _IRREGULAR if _IRREGULAR[form] == stem] for stem in _IRREGULAR.values()}
_SUFFIXES = (
    (late_pattern(r"^(\w{2,})'?s'?$"), r"\1"),
    (late_pattern(r"^(\w{2,})i(?:ed|es)$"), r"\1y"),
    (late_pattern(r"^(\w{3,})(?:ed|ing)$"), r"\1"),
)
#: `stopp` of `stopped`, `cancell` of `cancelled`, and also `call`.
_DOUBLED = late_pattern(r"([b-df-hj-np-tv-z])\1$")
#: Words about when something was done and not what.
_TIMES = frozenset(
    """
    today yesterday tonight tomorrow morning afternoon evening week weekend month year last next ago recently already
    finally new old anymore longer day days monday tuesday wednesday thursday friday saturday sunday thing things stuff
    """.split()
)


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """Return the common form of a case folded word."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for pattern, replacement in _SUFFIXES:
        if pattern.match(word) and not word.endswith("ss"):
            word = pattern.sub(replacement, word)
            break
    word = _IRREGULAR.get(word, word.removesuffix("e") if len(word) > 3 else word)
    return _DOUBLED.sub(r"\1", word)


# The same open tasks are compared with each sentence. The texts are sentences and objects, of 1,000 characters at most.
@lru_cache(maxsize=1_024)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of `text` that name something."""
    return frozenset(stem(word) for word in distinct_words(text) if word not in _TIMES)


def parts_of_stems(stems: Collection[str]) -> list[str]:
    """Return parts of words, of which each text with one of `stems` has one: to look for them is faster than to stem.

    A stem that ends with `y` may have another letter there: `study` and `studies`.
    """
    return [part for stem in stems for part in (stem.removesuffix("y"), *_FORMS.get(stem, ()))]
