"""Replacements: finds what a person has instead of something else: `we switched from fly.io to Hetzner`.

The earlier statement ends, and it is stated again with the new words in place of the old ones. It was right in its time,
which tells a replacement from a correction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from recollect.jobs.extraction.rules import WHO
from recollect.jobs.extraction.subjects import subject_name
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import content_stems

#: A verb of replacement with what stands before the old thing.
_VERB = re.compile(
    r"(?:(?:have|has|just|finally|already|recently|now|fully|completely)\s{1,3}){0,3}"
    r"(?:(?P<move>(?:switched|moved|migrated|changed|converted|upgraded|downgraded|went)\s{1,3}(?:\w{2,12}\s{1,3})?from)|"
    r"(?:replaced|swapped|traded|exchanged)(?:\s{1,3}in)?)\s{1,3}",
    re.IGNORECASE,
)
#: What stands between the old thing and the new one, after a verb with `from` and after the others.
_TO = re.compile(r"\s(?:over )?to\s", re.IGNORECASE)
_FOR = re.compile(r"\s(?:in )?(?:for|with|by)\s", re.IGNORECASE)
_OWN = re.compile(r"^(?:the|my|our|his|her|their)\s", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:an?|the|my|our|his|her|their)\s", re.IGNORECASE)
#: The first word after the new thing.
_AFTER = re.compile(
    r"[,;!]|\s(?:and|but|because|since|as|for|last|this|in|on|today|yesterday|now|so|to|when|after)\b", re.IGNORECASE
)
#: What stands between the elements of an object such as `fly.io, postgres 16 and redis`.
_BETWEEN = re.compile(r"(,\s?(?:and |or )?|\s(?:and|or)\s)")
#: What the old thing was for, and the new one is: `fly.io for the api`, `gas for cooking`; no time, as `for ages`.
_PURPOSE = re.compile(
    r"\sfor\s(?:(?:the|my|our|his|her|their)\s(?!(?:past|last|first|next|whole|entire|time|moment|rest)\b)|(?=\w{2,20}ing\b))"
    r"[\w'-]+(?:\s(?!(?:since|from|until|in|on|at|by|for|as)\b)[\w'-]+){0,2}",
    re.IGNORECASE,
)
#: Predicates whose object is not replaced by what a person changes to: denials, wishes and what is over.
_NOT_REPLACED = re.compile(
    r"\b(?:not|never|no|cannot|did|avoids|allergic|intolerant|(?:needs|wants|plans|hopes|trying|decided) to)\b"
)
#: Characters of a sentence that are read, and words of a thing; more words are a clause.
_CHARS_MAX = 300
_WORDS_MAX = 4


class Replacement(NamedTuple):
    """Something that a person replaced."""

    #: The name of the person.
    subject: str
    #: The words of what ends.
    old: str
    #: The earlier statement that has these words, and its object with the new ones; None: no statement has them.
    restated: tuple[PriorStatement, str] | None


def find_replacement(speaker: str, sentence: str, before: Sequence[PriorStatement]) -> Replacement | None:
    """Return the replacement that a sentence states, None when it states none.

    Parameters:
        sentence: with expanded contractions; without a subject (`switched from vim to helix`) it is about the speaker.
        before: earlier statements of the speaker, oldest first.
    """
    sentence = sentence[:_CHARS_MAX]
    who = WHO.match(sentence)
    verb = _VERB.match(sentence, who.end() if who is not None else 0)
    things = None if verb is None else _things(sentence[verb.end() :], _TO if verb["move"] else _FOR)
    if things is None:
        return None
    old, new = things
    subject = subject_name(speaker, who["who"] if who is not None else "I")
    prior = next((prior for prior in reversed(before) if prior.subject == subject and _has(prior.object, old)), None)
    if prior is None:
        return Replacement(subject, old, None)
    if _NOT_REPLACED.search(prior.predicate) is not None:
        return None
    return Replacement(subject, old, (prior, _replaced(prior.object, old, new)))


def _things(text: str, between: re.Pattern[str]) -> tuple[str, str] | None:
    """Return the old and the new thing at the beginning of `text`; None when these are no things."""
    parts = between.split(text, maxsplit=1)
    if len(parts) < 2:
        return None
    old = _ARTICLE.sub("", parts[0].strip())
    new = _OWN.sub("", _AFTER.split(parts[1], maxsplit=1)[0].strip(" ."))
    is_thing = content_stems(old) and content_stems(new) and _AFTER.search(old) is None
    return (old, new) if is_thing and max(len(old.split()), len(new.split())) <= _WORDS_MAX else None


def _has(text: str, words: str) -> bool:
    """Return whether `text` has `words` as whole words, letter case aside."""
    spaced = " ".join(text.casefold().replace(",", " , ").split())
    return f" {' '.join(words.casefold().split())} " in f" {spaced} "


def _replaced(object: str, old: str, new: str) -> str:
    """Return an object whose first element with the words `old` is `new`: `diesel Golf` replaced by `Kia` is `Kia`.

    What it is for stays.
    """
    elements = _BETWEEN.split(object)
    # Every second one stands between two elements.
    place = next((place for place in range(0, len(elements), 2) if _has(elements[place], old)), None)
    if place is None:
        return new
    purpose = _PURPOSE.search(elements[place])
    stays = purpose[0] if purpose is not None and not _has(purpose[0], old) else ""
    return "".join((*elements[:place], new, stays, *elements[place + 1 :]))
