"""Forget matches: finds the messages of a conversation that a request to forget names.

A message goes as a whole. Only the speaker's own messages match, and what the assistant repeated of them. Words decide:
a sentence has all words of the request, or for a few values of everyday life another word for them; without a match, or
with too many, nothing is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from recollect.jobs.forgetting.forget_requests import ForgetRequest
from recollect.projections.text.entity_roles import ROLES
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.stems import content_stems, stem

#: Messages that a request may name, at most, unless it asks for everything; more are no single thing.
_MATCHES_MAX = 12
#: Share of the words of `that I was fired` that a sentence must have.
_CLAUSE_SHARE_MIN = 0.6
#: Characters of a message that are read.
_TEXT_CHARS_MAX = 4_000
#: Digits of a value by which other messages that repeat it are recognised.
_VALUE_DIGITS_MIN = 4

#: Values of everyday life: stems that name each, the stems of statements that give it without its name, and whether
#: such a statement has a figure.
_CONCEPTS = tuple(
    (frozenset(map(stem, names.split())), frozenset(map(stem, others.split())), has_figure)
    for names, others, has_figure in (
        ("salary wage pay income earnings", "earn earns make paid salary wage income", True),
        ("phone telephone mobile cell number", "phone telephone mobile cell call text", True),
        ("weight", "weigh weighs kilos kg pounds lbs stone", True),
        ("age", "old turned turning years", True),
        ("address home", "live lives address", True),
        ("email mail", "email mail", False),
        ("birthday", "born birthday", False),
        ("job work employer", "work job", False),
        ("diagnosis condition illness disease", "doctor diagnosed diagnosis", False),
    )
)
#: Words that name nothing alone: `my phone number` is the phone's.
_GENERIC = frozenset(map(stem, ("number", "address", "detail", "details", "info", "information", "data", "stuff")))
_VALUE = re.compile(r"\w[\w.+-]{0,60}@[\w.-]{2,60}|\d[\d .,/-]{1,30}\d|\d{3,}")
_WORD = re.compile(r"[\w-]{1,60}")
_NO_DIGIT = re.compile(r"\D")
#: A figure that many messages have.
_YEAR = re.compile(r"(?:19|20)\d\d")
_I = re.compile(r"\b(?:i|i'm|i've|i'd|we|we're|we've|ich|wir|yo|je|j'\w+)\b", re.I)
_PEOPLE = ROLES | frozenset(
    "mom mum dad kid kids child children cousin friend ex neighbour colleague grandma grandpa".split()
)
_GENITIVE = re.compile(r"\b(?P<thing>[\w-]{1,40}) (?:of|de|d'|du|del|von|meine[rs]|seine[rs]|ihre[rs]) ?(?=\w)", re.I)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
#: What precedes the thing of another person, and of the speaker.
_CJK_OTHER = re.compile(r"[的のは]|[哥弟姐姉妹妈爸父母兄]")
_CJK_OWN = re.compile(r"(?:我的?|私[はの]|うち[はの]|僕[はの]|俺[はの])$|^(?:私は|僕は|俺は)")
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|me|my|mine|we|our|ich|mein\w{0,2}|wir|yo|mi|mis|je|j'\w+|mon|ma|mes)\b", re.I
)
#: The thing or person that a sentence is about: `My brother earns …`, `Tom's salary is …`.
_OWNER = re.compile(
    r"^\W{0,3}(?:my|our|his|her|their|mein\w{0,2}|unser\w{0,2}|mis?|mon|ma|mes) (?P<thing>(?:[\w-]+ ){0,2}[\w'-]+)",
    re.I,
)
_OTHERS_THING = re.compile(
    r"\b(?!it's|that's|here's|what's|there's|let's|i'm)[\w-]{1,30}(?:'s|s') (?:[\w-]{1,30} )?([\w-]{1,30})", re.I
)
#: The name after a person's role: `my ex Igor`.
_NAME_AFTER = re.compile(
    r"\b(?P<role>[a-z-]{2,20}),? (?:is |called |named )?(?:(?:Dr|Prof|Mr|Mrs|Ms)\.? )?(?P<name>[A-Z][\w-]{1,30})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenMessage:
    """A message of the log, as it is compared with a request."""

    id: str
    session_id: str | None
    speaker: str
    #: Microseconds since 1970 UTC; None: the time of recording.
    occurred_at_us: int | None
    is_user: bool
    text: str

    def sentences(self) -> list[str]:
        """Return its sentences with plain apostrophes."""
        return split_sentences(self.text[:_TEXT_CHARS_MAX].replace("’", "'"))


def spoken_message(
    id: str, session_id: str | None, actor: str | None, occurred_at_us: int | None, payload: dict[str, Any]
) -> SpokenMessage:
    """Return a message of the log; of a message with turns, all that its last speaker's role says."""
    turns: list[dict[str, Any]] = payload.get("turns") or [payload]
    last = turns[-1]
    role = last.get("role") or payload["role"]
    name = last.get("name") or payload.get("name") or actor or role
    return SpokenMessage(
        id=id,
        session_id=session_id,
        speaker=name,
        occurred_at_us=occurred_at_us,
        is_user=role == "user",
        text="\n".join(turn.get("text") or "" for turn in turns),
    )


def matching_messages(
    request: ForgetRequest, message: SpokenMessage, before: Sequence[SpokenMessage]
) -> dict[str, SpokenMessage]:
    """Return the messages that a request of `message` names, by id; none when it is not clear.

    Parameters:
        before: the messages before it, oldest first.
    """
    own = [it for it in before if it.is_user and it.speaker == message.speaker]
    if request.previous:
        own = [it for it in own if it.session_id == message.session_id][-1:]
        return {it.id: it for it in [*own, *_echoes(own, before, frozenset())]}
    names = _names_of(request, own)
    matches = [
        it for it in own if any(_states(request, sentence) or _has_name(names, sentence) for sentence in it.sentences())
    ]
    if not matches or (len(matches) > _MATCHES_MAX and not request.wide):
        return {}
    values = {
        value
        for it in matches
        for sentence in it.sentences()
        if _states(request, sentence)
        for value in _values(sentence)
    }
    repeated = [it for it in own if not values.isdisjoint(_values(it.text))]
    echoes = [*_echoes(matches, before, request.stems | names), *_repetitions(matches, before, values)]
    if request.wide or names:
        echoes += [it for it in before if not it.is_user and _names_all(request, names, it.text)]
    return {it.id: it for it in (*matches, *repeated, *echoes)}


def names_knowledge(request: ForgetRequest, line: str, sources: Iterable[str], speaker: str, own: set[str]) -> bool:
    """Return whether a line of knowledge, such as `Ann's salary is …`, is what a request of `speaker` names.

    Parameters:
        sources: the ids of the events that state it; of an entity none.
        own: the ids of the speaker's messages; what others say is not the speaker's to forget.
    """
    if not request.stems or request.previous or not own.issuperset(sources):
        return False
    name, _, description = line.removeprefix("**").partition("**")
    if line.startswith("**"):
        # An entity: by its name, or as what it is to the speaker.
        is_role = request.own and content_stems(speaker) <= content_stems(description)
        return request.stems <= content_stems(description if is_role else name)
    if request.wide:
        return request.stems <= content_stems(line)
    is_own = line.casefold().startswith(speaker.casefold())
    return is_own and _states(request, "I " + line[len(speaker) :].removeprefix("'s"))


def _states(request: ForgetRequest, sentence: str) -> bool:
    """Return whether a sentence states what a request names."""
    stems = request.stems
    if not stems:
        return False
    unspaced = next((it for it in stems if _CJK.search(it)), None)
    if unspaced is not None:
        return unspaced in sentence and not _is_of_another_cjk(unspaced, sentence)
    words = content_stems(sentence)
    if not request.own:
        return stems <= words
    if _is_of_another(stems, sentence):
        return False
    if request.clause or len(stems) > 2:
        # `that I was fired from the bakery`
        return len(stems & words) >= _CLAUSE_SHARE_MIN * len(stems)
    needed = stems - _GENERIC or stems
    if stems <= words or (needed <= words and _VALUE.search(sentence)):
        return True
    figures = any(char.isdigit() for char in sentence)
    return _I.search(sentence) is not None and any(
        needed <= names and not others.isdisjoint(words) and (figures or not has_figure)
        for names, others, has_figure in _CONCEPTS
    )


def _is_of_another(stems: frozenset[str], sentence: str) -> bool:
    """Return whether a sentence is about the thing of another person, or about another thing of the speaker."""
    if any(stem(match[1].lower()) in stems for match in _OTHERS_THING.finditer(sentence)):
        return True
    if any(stem(match["thing"].lower()) in stems for match in _GENITIVE.finditer(sentence)):
        return True
    if _FIRST_PERSON.search(sentence) is None:
        return True
    owner = _OWNER.match(sentence)
    if owner is not None and owner["thing"].split()[0].lower() in _PEOPLE - stems:
        return True
    return owner is not None and stems.isdisjoint(content_stems(owner["thing"].lower())) and not _I.search(sentence)


def _is_of_another_cjk(thing: str, sentence: str) -> bool:
    """Return whether a sentence without spaces names the thing of another person: `我弟弟的鞋码`, `母の血液型`."""
    before = sentence[: sentence.index(thing)]
    return _CJK_OTHER.search(before) is not None and _CJK_OWN.search(before) is None


def _names_of(request: ForgetRequest, own: Iterable[SpokenMessage]) -> frozenset[str]:
    """Return the names that follow the named role in the speaker's messages: Igor for `my ex`."""
    if not request.own or len(request.stems) > 2:
        return frozenset()
    return frozenset(
        match["name"].lower()
        for sentence in (request.words, *(sentence for it in own for sentence in it.sentences()))
        if sentence == request.words or not _is_of_another(request.stems, sentence)
        for match in _NAME_AFTER.finditer(sentence)
        if stem(match["role"]) in request.stems
    )


def _has_name(names: frozenset[str], text: str) -> bool:
    return bool(names) and not names.isdisjoint(_WORD.findall(text[:_TEXT_CHARS_MAX].lower()))


def _names_all(request: ForgetRequest, names: frozenset[str], text: str) -> bool:
    return _has_name(names, text) or request.stems <= content_stems(text[:_TEXT_CHARS_MAX])


def _echoes(
    matches: Sequence[SpokenMessage], before: Sequence[SpokenMessage], stems: frozenset[str]
) -> Iterator[SpokenMessage]:
    """Yield the answer right after each match that has one of its words."""
    ids = {it.id: it for it in matches}
    for it, following in pairwise(before):
        match = ids.get(it.id)
        if match is None or following.is_user or following.session_id != match.session_id:
            continue
        words = content_stems(following.text[:_TEXT_CHARS_MAX])
        if not stems.isdisjoint(words) or len(words & content_stems(match.text[:_TEXT_CHARS_MAX])) > 1:
            yield following


def _repetitions(
    matches: Sequence[SpokenMessage], before: Sequence[SpokenMessage], values: set[str]
) -> Iterator[SpokenMessage]:
    """Yield the messages of assistants that have a value of a match."""
    if values and matches:
        yield from (it for it in before if not it.is_user and not values.isdisjoint(_values(it.text)))


def _values(text: str) -> set[str]:
    """Return the figures and addresses in a text, without spaces and signs between digits."""
    values = (match[0].casefold() for match in _VALUE.finditer(text[:_TEXT_CHARS_MAX]))
    plain = {value if "@" in value else _NO_DIGIT.sub("", value) for value in values}
    return {
        value for value in plain if "@" in value or (len(value) >= _VALUE_DIGITS_MIN and not _YEAR.fullmatch(value))
    }
