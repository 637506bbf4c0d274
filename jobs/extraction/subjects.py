"""Subjects: names the subject of a statement, and replaces `he`, `she` and `they` by the last fitting person."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.frames import is_common_word
from recollect.jobs.extraction.rules import WHO, is_name
from recollect.projections.queries.knowledge_queries import PriorStatement

_NOUNS = "|".join(sorted(vocabulary.SUBJECT_NOUNS, key=len, reverse=True))
#: A subject such as `my sister`, `my sister Anna` or `my sister's husband`.
_RELATION = re.compile(
    rf"^(?:[Mm]y|[Oo]ur)\s+(?:\w+\s+)?(?P<relation>(?:{_NOUNS})(?:'s\s+(?:\w+\s+)?(?:{_NOUNS}))?)(?:,?\s+(?P<name>[A-ZÀ-Þ].*))?$"
)
#: A mention of a relative of the speaker, anywhere in a sentence.
_MENTION = re.compile(
    # `I am a teacher` mentions no other person.
    rf"(?<!\bam )(?<!\bis )(?<!\bwas )(?<!\bas )\b(?:[Mm]y|[Oo]ur|[Aa])\s+(?:\w+\s+)?(?P<relation>{_NOUNS})\b(?!'s)"
    r"(?:,?\s+(?:(?:is\s+)?(?:named|called)\s+)?(?P<name>[A-ZÀ-Þ][\w-]{1,30}))?"
)
_PRONOUN = re.compile(
    r"(?P<before>^|[,;:]\s+|\s-+\s|\b(?i:and|but|so|because|since|now|then|yes|yeah|well|also|actually),?\s+)"
    r"(?P<pronoun>[Hh]e|[Ss]he|[Tt]hey|[Hh]is|[Hh]er|[Tt]heir)\s+(?=[\w'])"
)
_MALE = frozenset(
    """father dad brother husband boyfriend fiancé fiance son uncle nephew grandfather grandpa stepfather grandson stepson hubby
    father-in-law brother-in-law son-in-law ex-husband ex-boyfriend landlord""".split()
)
_FEMALE = frozenset(
    """mother mom mum sister wife girlfriend fiancée fiancee daughter aunt niece grandmother grandma stepmother granddaughter
    stepdaughter mother-in-law sister-in-law daughter-in-law ex-wife ex-girlfriend landlady missus mommy""".split()
)
_PLURAL = frozenset(
    """kids children parents sons daughters brothers sisters siblings grandparents friends uncles aunts cousins twins in-laws
    grandkids grandchildren dogs cats""".split()
)
#: Statements of the conversation in which the last person is searched: a pronoun refers to what was said just before.
_STATEMENTS_MAX = 4
_PRONOUN_GENDERS = {"he": "m", "his": "m", "she": "f", "her": "f", "they": "p", "their": "p"}
_PARTNERS = frozenset(("married to", "engaged to", "dating"))


def subject_name(speaker: str, words: str) -> str:
    """Return the subject that `words` refer to: the speaker, a name, or a relative such as `Ann's sister`."""
    if words in ("I", "we", "We"):
        return speaker
    relation = _RELATION.match(words)
    if relation is None:
        return words
    return relation["name"] or f"{speaker}'s {relation['relation']}"


class Antecedents:
    """The people that pronouns refer to, for each gender, in the order of the sentences of a message."""

    def __init__(self, speaker: str, session_id: str | None, before: Sequence[PriorStatement]) -> None:
        self._speaker = speaker
        #: The words for the last person of each gender: m, f, and p for several people.
        self._last: dict[str, str] = {}
        recent = [prior for prior in before[-100:] if prior.speaker == speaker and prior.session_id == session_id]
        for prior in recent[-_STATEMENTS_MAX:]:
            self.state(prior.subject, prior.predicate, prior.object)

    def resolved(self, sentence: str) -> str:
        """Return a sentence whose pronouns at the beginnings of clauses are replaced by the people they refer to."""
        parts: list[str] = []
        end = 0
        for match in _PRONOUN.finditer(sentence):
            # A pronoun may refer to a person of the same sentence: `I got a dog, he is called Rex`.
            self._mention_relatives(sentence[end : match.start()])
            parts += [sentence[end : match.start()], self._replacement(match)]
            end = match.end()
        return "".join((*parts, sentence[end:])) if parts else sentence

    def mention(self, sentence: str) -> None:
        """Note the people whom a sentence mentions."""
        self._mention_relatives(sentence)
        subject = WHO.match(sentence)
        if subject is not None and subject["who"][0].isupper() and is_name(subject["who"], at_start=True):
            words = subject["who"].strip(" ,")
            is_verb = " " not in words and is_common_word(words.casefold())
            if words not in ("I", "We") and not is_verb and _RELATION.match(words) is None:
                self._note(words, "")

    def _mention_relatives(self, text: str) -> None:
        """Note the relatives and pets that a text mentions."""
        for match in _MENTION.finditer(text):
            relation = match["relation"]
            self._note(match["name"] or f"my {relation}", relation)

    def state(self, subject: str, predicate: str, object: str) -> None:
        """Note the people of a statement."""
        if subject != self._speaker:
            own = subject.removeprefix(f"{self._speaker}'s ")
            self._note(subject if own == subject else f"my {own}", "" if own == subject else own)
        elif predicate in _PARTNERS:
            self._note(object, "")

    def _note(self, words: str, relation: str) -> None:
        """Note a person; one of unknown gender may be he or she, unless the name is noted already."""
        relation = relation.rpartition("'s ")[2]
        if relation in _PLURAL:
            self._last["p"] = words
        elif relation in _MALE:
            self._last["m"] = words
        elif relation in _FEMALE:
            self._last["f"] = words
        elif relation or words not in self._last.values():
            self._last["m"] = self._last["f"] = words

    def _replacement(self, match: re.Match[str]) -> str:
        """Return the person that a pronoun refers to, or the pronoun."""
        pronoun = match["pronoun"].casefold()
        words = self._last.get(_PRONOUN_GENDERS[pronoun])
        if words is None:
            return match.group()
        possessive = "'s" if pronoun in ("his", "her", "their") else ""
        return f"{match['before']}{words}{possessive} "
