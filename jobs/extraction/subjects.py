"""Subjects: names the subject of a statement, and replaces `he`, `she` and `they` by the last fitting person."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.conversation_state import Conversation
from recollect.jobs.extraction.name_lexicon import gender_of, word_class
from recollect.jobs.extraction.sentences import sentences
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
#: A word that may be a first name.
_NAME = re.compile(r"\b[A-ZÀ-Þ][\w-]{1,30}")
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
#: Stands for several people, one of whom is meant.
_SEVERAL = "?"
#: A person or an animal with a name.
_CALLED = re.compile(
    r"\b(?:a|an|our|my|the|his|her)\s(?:[\w-]{2,20}\s){1,3}?(?:called|named)\s(?P<name>[A-ZÀ-Þ][\w-]{1,30})"
)
#: A person without a name, whom the next pronoun means.
_UNNAMED = re.compile(r"\b(?:someone|somebody|a (?:\w{2,12} )?(?:guy|girl|man|woman|lady|dude|bloke))\b", re.IGNORECASE)
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

    def __init__(
        self, speaker: str, session_id: str | None, before: Sequence[PriorStatement], conversation: Conversation
    ) -> None:
        self._speaker = speaker
        self._conversation = conversation
        #: The words for the last person of each gender: m, f, and p for several people.
        self._last: dict[str, str] = {}
        #: All people of each gender in the statements before, in the sentence before and in this one.
        self._mentioned: dict[str, set[str]] = {}
        self._sentence_before: dict[str, set[str]] = {}
        self._sentence: dict[str, set[str]] = {}
        own = [prior for prior in before[-100:] if prior.speaker == speaker]
        # The first message of a session may go on with what the last session was about.
        recent = [prior for prior in own if prior.session_id == session_id] or own
        for prior in recent[-_STATEMENTS_MAX:]:
            self.state(prior.subject, prior.predicate, prior.object)
        for text in conversation.take_unread(speaker):
            for sentence in sentences(text):
                self.mention(sentence.text)
        earlier = conversation.people(speaker)
        for gender, words in earlier.items():
            self._set(gender, words or _SEVERAL)
        self._sentence = {}

    @property
    def last_people(self) -> dict[str, str]:
        """Return the words for the last person of each gender; empty words when several can be meant."""
        return {gender: self._only(gender) or "" for gender in self._mentioned}

    def resolved(self, sentence: str) -> str:
        """Return a sentence whose pronouns at the beginnings of clauses are replaced by the people they refer to."""
        self._sentence_before, self._sentence = self._sentence, {}
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
        for name in _NAME.findall(sentence):
            if name != self._speaker and word_class(name) == "name":
                self._note_named(name, is_subject=sentence.startswith(name))

    def _mention_relatives(self, text: str) -> None:
        """Note the relatives and pets that a text mentions; after `I am seeing someone`, a pronoun is the unnamed person."""
        for match in _MENTION.finditer(text):
            relation = match["relation"]
            self._note(match["name"] or f"my {relation}", relation)
        for match in _CALLED.finditer(text):
            self._note_named(match["name"], is_subject=True)
        if _UNNAMED.search(text):
            # A person without a name makes each of the others one of two readings.
            for gender in ("m", "f"):
                self._last.pop(gender, None)
                self._sentence.setdefault(gender, set()).update(("a person", "another person"))

    def _note_named(self, words: str, *, is_subject: bool) -> None:
        """Note a person by name; within a sentence, only a name that is surely that of a man or a woman."""
        gender = gender_of(words.split(maxsplit=1)[0])
        if gender is not None:
            self._set(gender, words)
        elif is_subject:
            self._note(words, "")

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
        if relation in vocabulary.PLURAL_NOUNS:
            self._set("p", words)
        elif relation in _MALE:
            self._set("m", words)
        elif relation in _FEMALE:
            self._set("f", words)
        elif relation or words not in self._last.values():
            self._set("m", words)
            self._set("f", words)

    def _set(self, gender: str, words: str) -> None:
        """Note the last person of a gender."""
        self._last[gender] = words
        self._mentioned.setdefault(gender, set()).add(words)
        self._sentence.setdefault(gender, set()).add(words)

    def _only(self, gender: str) -> str | None:
        """Return the only person of a gender in this sentence, else in the sentence before, else before; None for several."""
        for people in (self._sentence, self._sentence_before, self._mentioned):
            names = people.get(gender)
            if names:
                is_one = len(names) == 1 and names <= {self._last.get(gender)} and _SEVERAL not in names
                return next(iter(names)) if is_one else None
        return None

    def _replacement(self, match: re.Match[str]) -> str:
        """Return the person that a pronoun refers to, or the pronoun."""
        pronoun = match["pronoun"].casefold()
        gender = _PRONOUN_GENDERS[pronoun]
        words = self._only(gender) or (None if gender in self._mentioned else self._participant(gender))
        if words is None:
            return match.group()
        possessive = "'s" if pronoun in ("his", "her", "their") else ""
        return f"{match['before']}{words}{possessive} "

    def _participant(self, gender: str) -> str | None:
        """Return the other participant of two, if the name has this gender and no other such person was mentioned."""
        other = self._conversation.other_than(self._speaker)
        if other is None or gender_of(other.split()[0]) != gender or gender in self._conversation.people(other):
            return None
        return other
