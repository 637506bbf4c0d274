"""Forget matches: finds the messages of a conversation that a request to forget names.

A message goes as a whole, when the trained model is sure that one of its sentences is named; without an embedding
model, when a sentence has all words of the request. Only the speaker's own messages match; what repeats their values,
and the assistant's answers to them, go with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.change_features import read_of, stems_of
from recollect.jobs.extraction.name_lexicon import is_first_name
from recollect.jobs.forgetting.forget_model import Encoders, model
from recollect.jobs.forgetting.forget_requests import ForgetRequest, asks_alone, states_something
from recollect.jobs.forgetting.request_parts import things_apart
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.stems import parts_of_stems

#: Characters of a message that are read.
_TEXT_CHARS_MAX = 4_000
#: Sentences that are compared with a request: reading one takes 8 ms.
_EMBEDDED_MAX, _READ_MAX = 16, 200
#: The latest messages that are always among them.
_LATEST_MAX = 4
#: Probability from which the likeliest sentence is forgotten; a request that is less sure is answered with candidates.
#: Of 254 held-out requests, each in a short and in a long conversation, 221 times it is a message that is meant and 4
#: times another one; from .7 262 and 18, from .75 246 and 14 (`ops/train/forgetting --reading` prints it).
_MEANS_MIN = 0.8
#: Log odds from which a sentence is named next to the likeliest one: another one goes along for 29 of 419 held-out
#: requests, from -.5 for 35, and 161 and 165 are done exactly.
_NAMED_MIN = 0.5
#: Log odds from which what the user answers to a question about the likeliest sentence goes with it: 15 of 20 labelled
#: answers belong to it.
_REPLY_MIN = -5.5
#: Log odds that a sentence without a word of the request has to have more.
_APART = 1.75
#: Log odds of a request from which `forget that` takes back the sentences before it in its message.
_TAKES_BACK_MIN = 1.0
#: Limits of features, above which larger values make no difference.
_ODDS_MAX, _NEARER_MIN, _NEARER_MAX = 4.0, -0.2, 0.3
#: Weight of a word of the request in a message, added to the similarity of their vectors.
_WORD_WEIGHT = 0.3
#: Words of forgotten messages by which the assistant's messages repeat them; a name is enough.
_ECHO_STEMS_MIN = 2
_WORD = late_pattern(r"\w{1,40}")
#: Words that never precede a name: `the PIN`, `my pay`.
_DETERMINER = late_pattern(r"\b(?:the|my|our|an?)\s", re.IGNORECASE)
_PERSON = late_pattern(r"\b(?:he|she|him|her|his|hers)\b", re.IGNORECASE)
#: Digits of a value by which other messages that repeat it are recognised.
_VALUE_DIGITS_MIN = 4
_VALUE = late_pattern(
    r"\w[\w.+-]{0,60}@[\w.-]{2,60}|\d[\d .,/-]{1,30}\d|\d{3,}|\b(?=\w{0,30}\d)(?=\d{0,30}[^\W\d])\w{6,40}"
)
_DIGITS = late_pattern(r"\d+")
#: A figure that many messages have.
_YEAR = late_pattern(r"(?:19|20)\d\d")

#: Returns how near a text is to each of some messages; None without stored vectors.
SimilaritiesTo = Callable[[str, Sequence["SpokenMessage"]], Sequence[float] | None]


class SpokenMessage(Struct, frozen=True, kw_only=True, dict=True):
    """A message of the log, as it is compared with each request of another one."""

    id: str
    session_id: str | None
    speaker: str
    #: Microseconds since 1970 UTC; None: the time of recording.
    occurred_at_us: int | None
    is_user: bool
    text: str
    #: Its version in the log; 0: it is not appended yet.
    version: int = 0

    @cached_property
    def sentences(self) -> list[str]:
        """Return its sentences with plain apostrophes."""
        return split_sentences(self.text[:_TEXT_CHARS_MAX].replace("’", "'"))

    @cached_property
    def values(self) -> set[str]:
        """Return the figures, addresses and codes in it."""
        return values_of(self.text)


def spoken_message(
    id: str,
    session_id: str | None,
    actor: str | None,
    occurred_at_us: int | None,
    payload: dict[str, Any],
    version: int,
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
        version=version,
    )


def matching_messages(
    request: ForgetRequest,
    message: SpokenMessage,
    before: Sequence[SpokenMessage],
    encoders: Encoders | None = None,
    similarities_to: SimilaritiesTo | None = None,
) -> dict[str, SpokenMessage]:
    """Return the messages that a request of `message` names, by id; none when it is not clear.

    Of `message` itself, it has the words that are named.

    Parameters:
        before: the messages before it, oldest first.
        encoders: None: a sentence must have all words of the request.
        similarities_to: by the stored vectors of messages.
    """
    own = [it for it in before if it.is_user and it.speaker == message.speaker]
    named = _meant(request, message, own, before, encoders, similarities_to)
    values = {value for it in named for value in it.values}
    others = [it for it in before if not it.is_user or it.speaker == message.speaker]
    repeated = [it for it in others if _may_repeat(values, it.text) and not values.isdisjoint(it.values)]
    gone = {it.id: it for it in (*named, *repeated)}
    kept = [it for it in own if it.id not in gone]
    return gone | {it.id: it for it in (*_answers([*gone.values()], before), *_echoes(gone, kept, before))}


def _meant(
    request: ForgetRequest,
    message: SpokenMessage,
    own: Sequence[SpokenMessage],
    before: Sequence[SpokenMessage],
    encoders: Encoders | None,
    similarities_to: SimilaritiesTo | None,
) -> Sequence[SpokenMessage]:
    """Return the speaker's own messages that a request names; the message itself where it takes back what it says."""
    if request.previous and not request.said and not request.before:
        return [it for it in own if it.session_id == message.session_id][-1:]
    # `Walter died. Please forget everything about him.`
    names = request.text if model().content(request.text) or not _PERSON.search(request.text) else request.before
    if of_name := _of_name(names, own, before, is_only=names == request.text):
        return of_name
    replies = dict(_replies(before, message.speaker))

    # `Did 900 in cash. Scrub the cash job` may name the sentence before it in its own message.
    own_and_said = [*own, replace(message, text=request.said)] if request.said else own

    def named(text: str) -> list[SpokenMessage]:
        among = own_and_said if text == request.text else own
        of_text = _named(text, request.odds, among, replies, encoders, similarities_to)
        return [_named_part(it, request, encoders) if it.id == message.id else it for it in of_text]

    # `Forget my loan and my nephew`: what each thing names goes, also where the whole is not clear.
    apart = [it for text in _things(request.text, own) for it in named(text)]
    for text in (request.text, *(() if apart else request.around)):
        if of_text := [*named(text), *apart]:
            return of_text
    names_nothing = request.odds >= _TAKES_BACK_MIN and not model().content(request.text)
    takes_back = names_nothing or (request.previous and states_something(request.said))
    return [message] if request.said and takes_back else []


def _named_part(said: SpokenMessage, request: ForgetRequest, encoders: Encoders | None) -> SpokenMessage:
    """Return the sentences before a request that it names, since its message states other things as well."""
    places = named_texts(request.text, request.odds, said.sentences, [said.id] * len(said.sentences), encoders)
    return replace(said, text=" ".join(said.sentences[place] for place in places) or said.text)


def likeliest_messages(
    requests: Sequence[ForgetRequest],
    own: Sequence[SpokenMessage],
    encoders: Encoders | None,
    similarities_to: SimilaritiesTo | None,
) -> list[SpokenMessage]:
    """Return the messages of a speaker that unclear requests may name, likeliest first.

    Parameters:
        encoders: None: those with words of a request.
    """
    scores: dict[str, float] = {}
    for request in requests:
        words = model().content(request.text)
        if encoders is None:
            of_request = [(it.id, float(_shared(words, it.text))) for it in own if _shared(words, it.text)]
        else:
            sentences = [*_candidates(request.text, own, _EMBEDDED_MAX, similarities_to)]
            if not sentences:
                continue
            ids = [it.id for it, _ in sentences]
            odds, _, _ = leader(request.text, request.odds, [sentence for _, sentence in sentences], ids, encoders)
            of_request = [*zip(ids, odds, strict=True)]
        for id, score in of_request:
            scores[id] = max(score, scores.get(id, score))
    return sorted((it for it in own if it.id in scores), key=lambda it: -scores[it.id])


def named_texts(
    text: str,
    odds: float,
    said: Sequence[str],
    sources: Sequence[str],
    encoders: Encoders | None,
    replies: Mapping[str, str] | None = None,
) -> list[int]:
    """Return the places of the sentences that a request names; none when the likeliest one is not sure.

    Parameters:
        odds: log odds that the text asks to forget anything.
        sources: ids of what the sentences are of.
        replies: the ids of what answers a question about them.
    """
    if not said:
        return []
    words = model().content(text)
    if encoders is None:
        return [place for place, sentence in enumerate(said) if words and words <= stems_of(sentence)]
    scores, features, best = leader(text, odds, said, sources, encoders)
    if model().means(features) < _MEANS_MIN:
        return []
    reply = (replies or {}).get(sources[best])
    shared = [_shared(words, sentence) for sentence in said]
    return [
        place
        for place, score in enumerate(scores)
        if place == best
        or (score >= _NAMED_MIN and not 0 < shared[place] < shared[best] == len(words))
        or (score >= _REPLY_MIN and sources[place] == reply)
    ]


def leader(
    text: str, odds: float, said: Sequence[str], sources: Sequence[str], encoders: Encoders
) -> tuple[list[float], list[float], int]:
    """Return the log odds of sentences, what speaks for the likeliest one, and its place.

    The features are the log odds that the text asks, those that it names the sentence, the share of its words in it,
    how near their vectors are, and by how much nearer than those of other messages.
    """
    words = model().content(text)
    named, near = model().named(text, said, encoders)
    shares = [_shared(words, sentence) / max(1, len(words)) for sentence in said]
    scores = [score - _APART * (not share) for score, share in zip(named.tolist(), shares, strict=True)]
    best = max(range(len(said)), key=scores.__getitem__)
    others = [it for it, source in zip(near.tolist(), sources, strict=True) if source != sources[best]]
    nearer = float(near[best]) - max(others, default=0.0)
    features = [min(odds, _ODDS_MAX), float(named[best]), shares[best], float(near[best])]
    return scores, [*features, min(max(nearer, _NEARER_MIN), _NEARER_MAX)], best


def values_of(text: str) -> set[str]:
    """Return the figures, addresses and codes in a text, without spaces and signs between digits."""
    values = (match[0].casefold() for match in _VALUE.finditer(text[:_TEXT_CHARS_MAX]))
    plain = {value if any(map(str.isalpha, value)) else "".join(_DIGITS.findall(value)) for value in values}
    return {value for value in plain if len(value) >= _VALUE_DIGITS_MIN and not _YEAR.fullmatch(value)}


def _may_repeat(values: Set[str], text: str) -> bool:
    """Return whether a text may have one of the values, which is found out in a tenth of the time of its values."""
    if not values:
        return False
    digits, folded = "".join(_DIGITS.findall(text)), text.casefold()
    return any(value in digits or value in folded for value in values)


def _named(
    text: str,
    odds: float,
    own: Sequence[SpokenMessage],
    replies: Mapping[str, str],
    encoders: Encoders | None,
    similarities_to: SimilaritiesTo | None,
) -> list[SpokenMessage]:
    """Return the messages with a sentence that a text names; `odds` that it asks."""
    sentences = [*_candidates(text, own, None if encoders is None else _EMBEDDED_MAX, similarities_to)]
    sources = [it.id for it, _ in sentences]
    places = named_texts(text, odds, [sentence for _, sentence in sentences], sources, encoders, replies)
    named = (sentences[place] for place in places if encoders is not None or not asks_alone(sentences[place][1]))
    return [*{it.id: it for it, _ in named}.values()]


def _replies(before: Sequence[SpokenMessage], speaker: str) -> Iterator[tuple[str, str]]:
    """Yield the ids of messages of a speaker, and of those that answer the question which follows them."""
    for it, asking, reply in zip(before, before[1:], before[2:], strict=False):
        is_exchange = it.session_id == asking.session_id == reply.session_id and not asking.is_user
        if is_exchange and "?" in asking.text and it.speaker == reply.speaker == speaker:
            yield it.id, reply.id


def _of_name(
    text: str, own: Sequence[SpokenMessage], before: Sequence[SpokenMessage], *, is_only: bool
) -> list[SpokenMessage]:
    """Return all messages with a name, and what they go on to say of it, when a text has no other name.

    A word is a name where someone writes it with a capital letter within a sentence.

    Parameters:
        is_only: whether the text must have nothing but the name.
    """
    words = model().content(text)
    names = _names_among(words, before)
    if not names or (is_only and names != words):
        return []
    named: list[SpokenMessage] = []
    for last, it in zip((None, *own), own, strict=False):
        if names & stems_of(it.text) or (named and named[-1] is last and _goes_on(named[-1], it, names)):
            named.append(it)
    return named


def _things(text: str, own: Sequence[SpokenMessage]) -> list[str]:
    """Return a request for each of the things that a text names; none where it names a single one.

    In `kirsty and her landlord` the name is not a thing of its own: not all that was said of her is meant.
    """
    things = things_apart(text)
    is_name = [_is_name(thing, own) for thing in things if model().content(thing)]
    return [] if any(is_name) and not all(is_name) else things


def _is_name(text: str, own: Sequence[SpokenMessage]) -> bool:
    """Return whether a text has nothing but names, in capital or small letters."""
    words = model().content(text)
    first_names = (stems_of(match[0]) for match in _WORD.finditer(text) if is_first_name(match[0]))
    return not _DETERMINER.search(text) and words <= _names_among(words, own).union(*first_names)


def _names_among(words: frozenset[str], before: Sequence[SpokenMessage]) -> frozenset[str]:
    """Return those of the stems that messages write as names."""
    having = [it for it in before if words and _shared(words, it.text)]
    return words & {name for it in having for name in _names(it.text)}


def _goes_on(last: SpokenMessage, it: SpokenMessage, names: frozenset[str]) -> bool:
    """Return whether the message after another one speaks of its person by a pronoun, before it names another one.

    The pronoun refers to the first one that the message before names.
    """
    person = _PERSON.search(it.text)
    if person is None or last.session_id != it.session_id or _first_name(it.text, person.start()):
        return False
    first = _first_name(last.text, len(last.text))
    return not first or first in names


def _first_name(text: str, end: int) -> str | None:
    """Return the stem of the first name in a text that begins before `end`."""
    names = _names(text)
    words = (match[0] for match in _WORD.finditer(text[:_TEXT_CHARS_MAX], 0, end))
    return next((stem for word in words for stem in stems_of(word) if stem in names), None)


def _names(text: str) -> frozenset[str]:
    return read_of(text[:_TEXT_CHARS_MAX]).names


def _echoes(
    gone: Mapping[str, SpokenMessage], kept: Sequence[SpokenMessage], before: Sequence[SpokenMessage]
) -> Iterator[SpokenMessage]:
    """Yield the assistant's messages that repeat forgotten ones, by what none of the kept messages has."""
    stems = {stem for it in gone.values() if it.is_user for stem in stems_of(it.text)}
    # To find parts of stems takes a tenth of the time of the stems of a text.
    parts = parts_of_stems(stems)
    for it in kept:
        if _has_part(parts, it.text) and not stems.isdisjoint(other := stems_of(it.text)):
            stems -= other
            parts = parts_of_stems(stems)
    having = [it for it in before if _has_part(parts, it.text)]
    names = stems & {name for it in having for name in _names(it.text)}
    for it in having:
        if not it.is_user:
            repeated = stems & stems_of(it.text)
            if repeated & names or len(repeated) >= _ECHO_STEMS_MIN:
                yield it


def _has_part(parts: Sequence[str], text: str) -> bool:
    """Return whether a text has one of some parts of words."""
    folded = text.casefold()
    return any(part in folded for part in parts)


def _candidates(
    text: str, own: Sequence[SpokenMessage], embedded_max: int | None, similarities_to: SimilaritiesTo | None
) -> Iterator[tuple[SpokenMessage, str]]:
    """Yield the sentences that are compared with a text: of messages with its words, near ones, and the latest.

    Parameters:
        embedded_max: sentences at most, without earlier requests; None: words alone compare `_READ_MAX` with any.
    """
    count = embedded_max or _READ_MAX
    words = model().content(text)
    scores = {it.id: _WORD_WEIGHT * _shared(words, it.text) for it in own}
    near = similarities_to(text, own) if similarities_to is not None and len(own) > count else None
    for it, similarity in zip(own, near or (), strict=False):
        scores[it.id] += similarity
    latest = {it.id for it in own[-_LATEST_MAX:]}
    newest_first = own[::-1]
    for it in sorted(newest_first, key=lambda it: (it.id not in latest, -scores[it.id])):
        sentences = it.sentences
        if len(sentences) > _LATEST_MAX:
            sentences = sorted(sentences, key=lambda sentence: -_shared(words, sentence))[:_LATEST_MAX]
        # An earlier request that named nothing is not what is meant. To read one takes .1 ms.
        sentences = [sentence for sentence in sentences if embedded_max is None or not asks_alone(sentence)]
        for sentence in sentences[:count]:
            yield it, sentence
        count -= len(sentences)
        if count <= 0:
            return


def _shared(words: frozenset[str], text: str) -> int:
    """Return the number of stems in a text; a longer word that has one counts."""
    lower = text[:_TEXT_CHARS_MAX].lower()
    return sum(word in lower for word in words)


def _answers(named: Sequence[SpokenMessage], before: Sequence[SpokenMessage]) -> Iterator[SpokenMessage]:
    """Yield the assistant's answer right after each message that is forgotten.

    The answer to a message of several sentences must have one of its words.
    """
    ids: Mapping[str, SpokenMessage] = {it.id: it for it in named if it.is_user}
    for it, following in pairwise(before):
        if it.id not in ids or following.is_user or following.session_id != it.session_id:
            continue
        if len(it.sentences) == 1 or not stems_of(it.text).isdisjoint(stems_of(following.text)):
            yield following
