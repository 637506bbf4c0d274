"""Sentences: the sentences of a message with their end signs and expanded contractions, so that rules can match them."""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.sentence_language import language_of
from recollect.projections.text.sentences import END_SIGNS, split_sentences

_CLOSING = "\"')]"
#: Characters of a sentence. Spoken sentences have a few dozen words; longer ones are lists or code. The limit bounds
#: the time of patterns that are quadratic in the length of a sentence.
_CHARS_MAX = 1_000
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'"})
#: Short forms, with their full forms.
_SHORT_FORMS = {
    "im": "I am", "ive": "I have", "dont": "do not", "doesnt": "does not", "didnt": "did not", "cant": "cannot",
    "wont": "will not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not", "havent": "have not",
    "hasnt": "has not", "hes": "he is", "shes": "she is", "theyre": "they are", "youre": "you are", "thats": "that is",
    "whats": "what is", "u": "you", "ur": "your", "bday": "birthday", "b-day": "birthday", "gf": "girlfriend",
    "bf": "boyfriend", "gonna": "going to", "wanna": "want to", "gotta": "have got to", "cuz": "because", "coz": "because",
    "pls": "please", "plz": "please", "tmrw": "tomorrow", "tmr": "tomorrow", "fam": "family", "hubby": "husband",
    "couldnt": "could not", "wouldnt": "would not", "shouldnt": "should not", "theres": "there is",
    "weve": "we have", "youve": "you have", "theyve": "they have", "hadnt": "had not", "mustnt": "must not",
    "youll": "you will", "theyll": "they will", "itll": "it will", "heres": "here is", "wheres": "where is",
    "whos": "who is", "hows": "how is",
}  # fmt: skip
_SHORT_FORM = late_pattern(r"\b(?<!')(?:" + "|".join(_SHORT_FORMS) + r")\b(?!['.]\w)", re.IGNORECASE)
_LOWER_I = late_pattern(r"\b(i)(?=\b(?!\.))")
#: `my son in law` is not a son.
_IN_LAW = late_pattern(r"\b(mother|father|sister|brother|son|daughter) in law\b", re.I)
_WORD = late_pattern(r"[\w-]+")
#: Contractions with an apostrophe.
_CONTRACTIONS = (
    (late_pattern(r"\bcan't\b", re.I), "cannot"),
    (late_pattern(r"\bwon't\b", re.I), "will not"),
    (late_pattern(r"\bI'm\b"), "I am"),
    (late_pattern(r"\b(\w+)n't\b"), r"\1 not"),
    (late_pattern(r"\b(I|we|you|they)'ve\b", re.I), r"\1 have"),
    (late_pattern(r"\b(we|you|they)'re\b", re.I), r"\1 are"),
    (late_pattern(r"\b(I|we|you|they|he|she|it)'d\b", re.I), r"\1 would"),
    (late_pattern(r"\b(I|we|you|they|he|she|it|that)'ll\b", re.I), r"\1 will"),
    (late_pattern(r"\b(he|she|it|that|there|here|what|who|where)'s\b", re.I), r"\1 is"),
    (late_pattern(r"\bname's\b", re.I), "name is"),
    (late_pattern(r"\blet's\b", re.I), "let us"),
)


class Sentence(NamedTuple):
    """A sentence, split from its end sign."""

    text: str
    #: The end sign: ``.``, ``!``, ``?`` …, or empty.
    end: str
    #: The sentence as it is in the message.
    said: str = ""

    @property
    def is_question(self) -> bool:
        """Return whether the sentence is a question."""
        return "?" in self.end


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of `text`, with straight quotes and expanded contractions."""
    split: list[Sentence] = []
    # Short forms of English are words of other languages: `im` is German for `in the`.
    is_english = language_of(text) is None
    for said in split_sentences(text):
        part = said.translate(_QUOTES)
        closed = part.rstrip(_CLOSING)
        bare = closed.rstrip(END_SIGNS)
        end = part[len(bare) :] if bare != closed else ""
        sentence = _cut(part[: len(part) - len(end)].strip(" -*•>"))
        if sentence:
            split.append(Sentence(_expanded(_completed(sentence) if is_english else sentence), end, said))
    return split


def _cut(sentence: str) -> str:
    """Return at most `_CHARS_MAX` characters of `sentence`, cut at the end of a word."""
    if len(sentence) <= _CHARS_MAX:
        return sentence
    beginning = sentence[:_CHARS_MAX]
    return beginning.rpartition(" ")[0] or beginning


def _completed(sentence: str) -> str:
    """Return a sentence with the full forms of hurried typing."""
    # Most sentences have none of them, and the pattern is tried at each word.
    if _SHORT_FORMS.keys().isdisjoint(_WORD.findall(sentence.lower())):
        return sentence
    return _SHORT_FORM.sub(lambda match: _SHORT_FORMS[match.group().lower()], sentence)


def _expanded(sentence: str) -> str:
    sentence = _LOWER_I.sub("I", sentence)
    if " in law" in sentence:
        sentence = _IN_LAW.sub(r"\1-in-law", sentence)
    if "'" not in sentence:
        return sentence
    for pattern, full in _CONTRACTIONS:
        sentence = pattern.sub(full, sentence)
    return sentence
