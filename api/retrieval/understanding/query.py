"""Query: extracts search words, participants, entities, phrases, time ranges and intent from a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from recollect.api.retrieval.understanding.fillers import addressed_names, is_filler
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.api.retrieval.understanding.foreign_questions import foreign_stop_words, names_topic
from recollect.api.retrieval.understanding.profile_questions import asks_for_profile
from recollect.api.retrieval.understanding.question_extraction import extract_question
from recollect.api.retrieval.understanding.question_intent import (
    QuestionIntent,
    capitalised_words,
    question_intent,
)
from recollect.events.envelope import microseconds
from recollect.events.late_pattern import late_pattern
from recollect.events.local_time import local_time, offset_minutes
from recollect.projections.queries.entity_queries import EntityQueries
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.function_words import GERMAN_STOP_WORDS, RUSSIAN_STOP_WORDS
from recollect.projections.text.question_times import DateRange, question_times
from recollect.projections.text.segments import is_german
from recollect.projections.text.sentence_language import Language, language_of
from recollect.projections.text.words import STOP_WORDS, WORD

#: Words that are read: of a longer text without a question, the first and the last ones, which name its topic.
_WORDS_MAX = 256
#: Longest name of an entity, in words.
_NAME_WORDS_MAX = 5
#: Sessions that are looked at for the one before a question; those after it are skipped.
_RECENT_SESSIONS = 20
#: The last turns of the session that are added to a query without content words, and characters of each.
_CONTINUED_TURNS = 2
_CONTINUED_CHARS = 300
#: A phrase in quotation marks, which is matched as a whole.
_QUOTED = late_pattern(r"[\"“„«「]([^\"”“»」]{2,80})[\"”“»」]|(?<!\w)'([^'\n]{3,80})'(?!\w)")
#: The year of a date.
_YEAR = late_pattern(r"(?:19|20)\d\d")
#: The words with which a request begins, which name no topic: `give me a summary of my August`.
_REQUEST = late_pattern(
    r"\A(?:(?:please|can|could|would|you)[ ,]{1,3}+){0,3}+(?:give|show|send) (?:me|us)\b", re.IGNORECASE
)
_STOP_WORDS = STOP_WORDS | RUSSIAN_STOP_WORDS


class TimeRange(NamedTuple):
    """A range of time, its end exclusive, in microseconds since 1970."""

    start_us: int
    end_us: int
    #: Minutes east of UTC of the days that it names, which are the days of messages in any zone; None: a moment counts.
    utc_offset: int | None = None


class Query(Struct, frozen=True, kw_only=True):
    """A query after understanding, as the searches use it."""

    #: The question, without the text that was pasted around it.
    question: str
    #: The question without the names of participants, unless it has no other words; this text is embedded.
    text: str
    #: The distinct words to search for, lower case: no stop words, no participants' names, and no words of a date
    #: unless there are no others.
    words: tuple[str, ...]
    #: Whether the words name a topic; "what do you know about me?" and "what did I do yesterday?" name none.
    has_topic: bool
    #: The words that name it; of "tell me all that you know about the boat", `boat`.
    topic_words: frozenset[str]
    #: Entities of the query that are participants of the conversations, by id, and their names, case-folded.
    participants: tuple[int, ...]
    participant_names: frozenset[str]
    #: Other entities that the query names, by id.
    entities: tuple[int, ...]
    #: The phrases in quotation marks, case-folded.
    phrases: tuple[str, ...]
    #: The time ranges that the query names.
    time_ranges: tuple[TimeRange, ...]
    #: The range that all that it asks for belongs to; None: its ranges only weigh.
    scope: TimeRange | None
    #: Whether `scope` is a date with its year.
    names_year: bool
    #: Whether `scope` was still to come.
    upcoming: bool
    intent: QuestionIntent
    #: Whether it asks for what is known of its asker in general.
    asks_profile: bool
    #: Whether the query is German, so that its words get German stems.
    german: bool
    #: Whether the query has no content words and was extended by the last turns of the session.
    continued: bool
    #: Whether the query only asks to go on, such as "next step?", and there is nothing to go on with.
    without_topic: bool
    #: The capitalised words of the query after its first word, case-folded: mostly names.
    names: frozenset[str]
    #: Who says "I" in the query: the ids of the asker, and the names, case-folded. Empty: it says no "I", or the
    #: one who asks is not named or is the only user.
    askers: tuple[int, ...] = ()
    asker_names: frozenset[str] = frozenset()


class QuestionText(Struct, frozen=True, kw_only=True):
    """The question of a text and its words: all that its vector needs, before anything else is understood."""

    #: As in `Query`.
    question: str
    text: str
    german: bool
    continued: bool
    #: The running conversation.
    session_id: str | None
    #: The question without the last turns that extend it.
    unextended: str
    #: The words of the question, case-folded; of a long one the first and the last ones.
    words: list[str]
    #: `words` without stop words.
    content: list[str]
    #: `content` without the names of participants.
    without_names: list[str]
    #: Whether the question had content words before the last turns extended it.
    has_content: bool
    #: The language that decides what is a topic; None: English or German.
    language: Language | None
    #: The entities that the question names, and the participants, by id.
    named_entities: set[int]
    participants: Mapping[str, frozenset[int]]


def read_question(text: str, snapshot: Snapshot, *, session_id: str | None = None) -> QuestionText:
    """Return the question of `text`, the text of it to embed, and its words.

    Parameters:
        session_id: the running conversation, whose last turns extend a query without content words.
    """
    text = text.encode(errors="ignore").decode().replace("\0", " ")
    question = unextended = extract_question(text)
    words = _words(question)
    continued = False
    has_content = any(word not in STOP_WORDS and word not in _CONTINUATION_WORDS for word in words)
    if session_id is not None and not has_content and not is_filler(question):
        last_turns = snapshot.episodes.last_texts(session_id, chars=_CONTINUED_CHARS, limit=_CONTINUED_TURNS)
        continued = bool(last_turns)
        question = "\n".join([*last_turns, question])
        words = _words(question)
    named_entities = snapshot.entities.ids_by_name(_name_candidates(words))
    participants = _participants(snapshot.entities)
    participant_words = {
        word
        for name, entities in participants.items()
        if not entities.isdisjoint(named_entities)
        for word in WORD.findall(name)
    } | {word for word in words if word in participants}
    german = is_german(WORD.findall(question.lower())[:_WORDS_MAX])
    language = language_of(question)
    stop_words = _STOP_WORDS | GERMAN_STOP_WORDS if german else _STOP_WORDS
    if language is not None:
        stop_words |= foreign_stop_words(language)
    content = [word for word in words if word not in stop_words]
    without_names = [word for word in content if word not in participant_words]
    return QuestionText(
        question=question,
        text=remove_names(question, participant_words) if without_names else question,
        german=german,
        continued=continued,
        session_id=session_id,
        unextended=unextended,
        words=words,
        content=content,
        without_names=without_names,
        has_content=has_content,
        language=language,
        named_entities=named_entities,
        participants=participants,
    )


def understand(read: QuestionText, snapshot: Snapshot, *, asked_at: datetime) -> Query:
    """Return the query that a question expresses, with the entities of the read model that it names.

    Parameters:
        read: what `read_question` has returned.
        asked_at: the time of the query in the zone of the asker, which "last week" is relative to.
    """
    question, words, participants = read.question, read.words, read.participants
    addressed = _addressed(question, participants)
    asked_about = _asked_about(words, read.named_entities, participants) - addressed
    times = question_times(question, asked_at)
    dates = times.ranges
    date_words = {word for date in dates for word in WORD.findall(date.text.casefold())}
    topic = [word for word in read.without_names if word not in date_words]
    request = _REQUEST.match(question)
    topicless = _TOPICLESS_WORDS if request is None else _TOPICLESS_WORDS.union(_words(request.group()))
    # The session of a day is a conversation; without a day it may be one at the gym.
    topicless = topicless | {"session", "sessions"} if dates else topicless
    topic_words = frozenset(topic) - topicless
    has_topic = bool(topic_words)
    if read.language is not None and has_topic:
        has_topic = names_topic(read.language, _without_dates(question, dates), topic)
    # The words around a date are read in English; without a topic, a question in any language is about its date.
    scope = times.whole_scope if not has_topic else times.scope if read.language is None else None
    searched = topic or read.without_names or read.content or words
    entities = read.named_entities - asked_about - addressed
    return Query(
        question=question,
        text=read.text,
        words=tuple(dict.fromkeys([*searched, *_other_names(snapshot, entities, searched)])),
        has_topic=has_topic,
        topic_words=topic_words if has_topic else frozenset(),
        participants=tuple(sorted(asked_about)),
        participant_names=snapshot.entities.names_and_aliases(sorted(asked_about)),
        entities=tuple(sorted(entities)),
        phrases=tuple(dict.fromkeys((match[0] or match[1]).casefold() for match in _QUOTED.findall(question))),
        time_ranges=_previous_session(snapshot, asked_at, read.session_id)
        if times.previous_session
        else tuple(map(_time_range, dates)),
        scope=None if scope is None or times.previous_session else _time_range(scope),
        names_year=scope is not None and _YEAR.search(scope.text) is not None,
        upcoming=times.upcoming,
        intent=question_intent(read.unextended),
        asks_profile=asks_for_profile(read.unextended),
        german=read.german,
        continued=read.continued,
        without_topic=not read.has_content and not read.continued and not _STOP_WORDS.issuperset(words),
        names=frozenset(capitalised_words(question)),
    )


def _other_names(snapshot: Snapshot, entities: set[int], searched: Sequence[str]) -> list[str]:
    """Return the words of the names of entities that a query names by an alias alone: `NS` is Nightshade."""
    names = [_words(name) for name in snapshot.entities.names(sorted(entities))]
    return [word for name in names if not {*name} & {*searched} for word in name]


def _time_range(date: DateRange) -> TimeRange:
    """Return the days of a date."""
    return TimeRange(microseconds(date.start), microseconds(date.end), offset_minutes(date.start))


def _without_dates(question: str, dates: Sequence[DateRange]) -> str:
    """Return a question without its dates."""
    for date in dates:
        question = question.replace(date.text, " ") if date.text else question
    return question


def _previous_session(snapshot: Snapshot, asked_at: datetime, session_id: str | None) -> tuple[TimeRange, ...]:
    """Return the time range of the last session that ended before the question, without the running one."""
    recent = snapshot.sessions.recent(running=session_id, limit=_RECENT_SESSIONS)
    ended = [session for session in recent if session.last_at_us < microseconds(asked_at)]
    return tuple(TimeRange(session.started_at_us, session.last_at_us + 1) for session in ended[:1])


#: Words of questions for everything, or for everything of a time, which name no topic.
_TOPICLESS_WORDS = frozenset(
    """
    remember know known recall learn learned remind tell told said summary summarise summarize sum recap overview
    everything anything something things thing all lot much far information info details memory memories
    happen happened happens happening new news going coming come upcoming next last time times recently lately
    plan plans planned planning doing done did schedule scheduled agenda calendar appointment appointments due
    talk talked talking discuss discussed discussion chat chatted conversation conversations speak spoke
    mention mentioned still currently moment person user self ask asked
    question questions
    """.split()
)
#: Words without content of their own, such as `ok, next step?`.
_CONTINUATION_WORDS = frozenset(
    "ok okay yes yeah yep no nope next step steps continue sure thanks thank great cool nice good alright right fine "
    "go ahead proceed ready let lets keep going start begin move forward more else help hi hello hey".split()
)


def _words(text: str) -> list[str]:
    """Return the case-folded words of `text`; of a long text the first and the last ones."""
    words = WORD.findall(text.casefold())
    return words if len(words) <= _WORDS_MAX else words[: _WORDS_MAX // 2] + words[-_WORDS_MAX // 2 :]


def _name_candidates(words: list[str]) -> set[str]:
    """Return the sequences of `words` that may be a name or an alias of an entity."""
    return {
        " ".join(words[start : start + length])
        for length in range(1, _NAME_WORDS_MAX + 1)
        for start in range(len(words) - length + 1)
        if length > 1 or words[start] not in STOP_WORDS
    }


def _participants(entities: EntityQueries) -> dict[str, frozenset[int]]:
    """Return the ids of the participants, by name and by first name, which several may share."""
    by_name: dict[str, frozenset[int]] = {}
    participants = entities.participants()
    names = {name for name, _ in participants}
    for name, entity in participants:
        first_name = WORD.findall(name + " _")[0]
        # "Hannah" is the name of one of two, and of the other one only the first name.
        for key in (name,) if first_name in names else (name, first_name):
            by_name[key] = by_name.get(key, frozenset()) | {entity}
    return by_name


def _asked_about(
    words: Sequence[str], named_entities: set[int], participants: Mapping[str, frozenset[int]]
) -> set[int]:
    """Return the participants that words name; a full name is not that of others with the same first name."""
    everyone = frozenset[int]().union(*participants.values())
    named = {entity for entity in named_entities if entity in everyone}
    by_word = (participants[word] for word in words if word in participants)
    return named.union(*(entities & named or entities for entities in by_word))


def _addressed(text: str, participants: Mapping[str, frozenset[int]]) -> set[int]:
    """Return the participants that the text only addresses, as in "Thanks, Bob!", and is not about."""
    return set[int]().union(*(participants[name] for name in addressed_names(text) if name in participants))


def asked_by(query: Query, snapshot: Snapshot, speaker: str) -> Query:
    """Return a query that says "I" with the person whom it means."""
    if not is_first_person(query.question):
        return query
    name = speaker.casefold()
    askers = sorted(snapshot.entities.ids_by_name([name]))
    return replace(query, askers=tuple(askers), asker_names=snapshot.entities.names_and_aliases(askers) | {name})


def remove_names(text: str, names: set[str]) -> str:
    """Return `text` without `names` and their possessive endings."""
    if not names:
        return text
    pattern = rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b(?:['’]s?)?"
    return " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def question_time(
    as_of: datetime | None, until: datetime | None, zone: tzinfo, clock: Callable[[], datetime] = utc_now
) -> datetime:
    """Return the time of a query in a zone: the end of the time that it covers, else its `as_of`, else the present."""
    return local_time(microseconds(until or as_of or clock()), zone)
