"""Rule extractor: reads facts, preferences, names, dates and more from one message, without a language model."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.author_text import author_text
from recollect.jobs.extraction.changes import FindChanges, find_changes, plain_correction, remaining_elements
from recollect.jobs.extraction.comparison import Vectors
from recollect.jobs.extraction.conversation_state import ConversationState
from recollect.jobs.extraction.endings import find_endings
from recollect.jobs.extraction.excerpt import read_part
from recollect.jobs.extraction.future_statements import until_its_day
from recollect.jobs.extraction.message_kinds import is_of_sender, is_pasted, is_role_play, is_talk
from recollect.jobs.extraction.people import is_namesake, people
from recollect.jobs.extraction.plans import FindDates, end_plan
from recollect.jobs.extraction.rules import RuleMatch, matches, predicate_of, relation_and_name, subject_name
from recollect.jobs.extraction.spoken_sentences import Sentence, sentences
from recollect.jobs.extraction.standing_instructions import instruction_of
from recollect.jobs.extraction.stated_preferences import category_of, stated_preferences
from recollect.jobs.extraction.statement_modality import confidence_factor, is_reported, stated_part
from recollect.jobs.extraction.statement_reader import ReadClause, read_clauses
from recollect.jobs.extraction.statements import (
    AMONG_PEOPLE_RULE_MIN,
    END_SIGNS,
    RULE_MIN,
    Statement,
    instruction_probability,
    of_message,
    read_sentences,
)
from recollect.projections.embeddings.reading_encoder import Embed, ReadPairs
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.date_reading import ReadWindows, names_date, read_dates
from recollect.projections.text.stems import content_stems

Item = dict[str, Any]

#: The position of an omitted second subject: `I live in Porto and work at …`.
_ELLIPSIS = late_pattern(
    r"^((?:I|We)\s+(?:\S+\s+){1,9}?)and\s+(?=(?:live|work|love|like|hate|prefer|have|own|play|am|need|decided|bought|moved)\b)"
)
#: Seconds of processor time for one message: ten times the time of the slowest known texts of full length.
SECONDS_MAX = 2.0
_WHEN = late_pattern(r"\b(?:when|while|after|where)\s+$", re.IGNORECASE)
_PAST = late_pattern(r"\b(?:\w+ed|got|bought|was|were|went|had|became|grew)\b")
#: Ranges that the words of a date mean with a smaller probability are not kept for the search.
_DATE_PROBABILITY_MIN = 0.1
#: Characters of a message from which on its processor time is measured, and sentences after which it is: the clock may
#: take as long as some sentences.
_TIMED_CHARS_MIN = 1_000
_SENTENCES_TIMED = 16
#: First sentences of a message that are read together with earlier statements, each with up to 24, in 2 ms each.
_PAIRED_MAX = 20
#: Characters of a sentence that the reader reads; longer ones are lists or code.
_SENTENCE_CHARS_MAX = 1_000
#: Probability of an instruction in a talk between people from which on it is read as if an assistant listens.
_AMONG_PEOPLE_MIN = 0.01
#: Fields of an item that say what it states.
_SAID_FIELDS = ("subject", "predicate", "object", "key", "value", "about", "name", "description", "target")
#: Kinds of items that only name people.
_NAMING_KINDS = ("entities", "relationships")
#: Share of the words of a statement that another item of the sentence has, so that both say the same.
_SAME_SHARE = 0.6
#: Probability that a sentence is worth keeping from which on its facts and preferences are kept, by words alone and where
#: sentences are embedded: more than a reaction. `I love the colours` and `I need to sit` have less: of 18 likes in held-out voices 5 of 5 preferences and 1 of
#: 13 reactions have it; of 111 facts of 120 chats 9 have less, and none of them is worth keeping.
_KEPT_MIN = {"facts": (0.0, 0.15), "preferences": (0.05, 0.2)}
#: What takes back the sentence before it.
_TAKES_BACK = late_pattern(r"\b(?:just|only|I am) (?:kidding|joking)\b|^(?:kidding|jk|not really)\b", re.IGNORECASE)
#: Confidence of a task with a date.
_DATED_TASK = 0.7


class IncomingMessage(NamedTuple):
    """A message to extract from."""

    event_id: str
    session_id: str | None
    speaker: str
    text: str
    sent_at: datetime
    #: Whether the assistant sent the message; no facts are extracted about it.
    is_assistant: bool
    #: Whether the text is the whole text of the event, so that places in it are places in the event's.
    has_places: bool = True


class ExtractedItem(NamedTuple):
    """An extracted item: its kind, which is a field of `facts.extracted`, and its payload."""

    kind: str
    item: Item


def sources_of(item: Mapping[str, Any]) -> list[str]:
    """Return the ids of the messages that an item comes from."""
    return item.get("source_events") or [item["source_event"]]


class ExtractionTimeout(Exception):
    """The rules exceeded the processor time of a message; the rest of the message is left out."""


def extract_by_rules(
    message: IncomingMessage,
    before: list[PriorStatement],
    *,
    seconds_max: float = SECONDS_MAX,
    conversation: ConversationState | None = None,
    embed: Embed | None = None,
    vectors: Vectors | None = None,
    read_pairs: ReadPairs | None = None,
    read_windows: ReadWindows | None = None,
) -> Iterator[ExtractedItem]:
    """Yield the items that the rules read in a message, or in the beginning and end of a long message.

    Parameters:
        before: earlier statements, oldest first, which corrections may refer to; new facts are appended to it.
        seconds_max: processor time of this thread, checked every `_SENTENCES_TIMED` sentences; a busy machine extracts the same.
        conversation: the state of the session, which the message changes; None: the message has no session.
        embed: returns the embeddings of sentences; None: words decide alone what is worth keeping.
        vectors: of texts, for the comparison of a sentence with earlier statements; None: its words decide.
        read_pairs: as in `comparison.compare`.
        read_windows: returns the vectors of the words around dates; None: words decide alone what they mean.

    Raises:
        ExtractionTimeout: the processor time is used up.
    """
    end = time.thread_time() + seconds_max if len(message.text) > _TIMED_CHARS_MIN else None
    event_text = message.text
    message = message._replace(text=read_part(message.text))
    earlier = None if conversation is None else conversation.earlier_days
    find_dates = partial(read_dates, sent_at=message.sent_at, read_windows=read_windows, earlier=earlier)
    yield from _dates(message, find_dates)
    if message.is_assistant:
        return
    own = author_text(message.text, message.speaker)
    message_sentences = sentences(own)
    yield from _questions(message, message_sentences if own == message.text else sentences(message.text))
    to_assistant = conversation is None or conversation.has_assistant
    if conversation is not None:
        conversation.join(message.speaker)
    said = [it.said[:_SENTENCE_CHARS_MAX] for it in message_sentences]
    read = read_sentences(said, to_assistant=to_assistant, embed=embed)
    stated = of_message(said, read)
    read_so_far: list[ExtractedItem] = []
    takes_back = [*(_TAKES_BACK.search(it.text) is not None for it in message_sentences), False]
    for index, sentence in enumerate(message_sentences):
        if end is not None and index % _SENTENCES_TIMED == 0 and time.thread_time() > end:
            raise ExtractionTimeout
        if takes_back[index] or takes_back[index + 1]:
            continue
        items: list[ExtractedItem] = []
        if not sentence.is_question:
            pairs = read_pairs if index < _PAIRED_MAX else None
            find = partial(find_changes, vectors=vectors, read_pairs=pairs)
            plain = _read_sentence(message, sentence, before, find, read[index], embeds=embed is not None)
            items += map(ExtractedItem._make, until_its_day(plain, sentence.text, message.speaker, message.sent_at))
        to_other = conversation is not None and conversation.addresses_other(sentence.text, message.speaker)
        if not to_other:
            instructions = [*_read_instructions(message, sentence, read[index], items, to_assistant=to_assistant)]
            # Another author gives the assistant no instructions, and those of a play end with it.
            if instructions and not (is_pasted(event_text) or is_role_play(event_text)):
                # `Don't ever delete files` is not what its speaker likes.
                items = [*(item for item in items if item.kind != "preferences"), *instructions]
        read_so_far += items
        items += _statements(message, event_text, sentence.said, stated[index], read_so_far)
        for extracted in items:
            if extracted.kind == "facts":
                end_plan(extracted.item, message.sent_at, find_dates)
            if extracted.kind in ("facts", "preferences", "relationships"):
                before.append(_statement(message, extracted))
            yield extracted


def _questions(message: IncomingMessage, said: Iterable[Sentence]) -> Iterator[ExtractedItem]:
    """Yield the questions among the sentences of a message."""
    for sentence in said:
        if sentence.is_question and len(sentence.text.split()) > 2:
            yield ExtractedItem("questions", {"source_event": message.event_id, "text": sentence.text + "?"})


def _dates(message: IncomingMessage, find_dates: FindDates) -> Iterator[ExtractedItem]:
    """Yield the dates that a message mentions: every range that its words may mean, with its probability."""
    for date in find_dates(message.text):
        for start, end, probability in date.candidates:
            if probability >= _DATE_PROBABILITY_MIN:
                item = {"source_event": message.event_id, "text": date.words, "start": start, "end": end}
                yield ExtractedItem("dates", item | {"probability": probability})


def _read_instructions(
    message: IncomingMessage,
    sentence: Sentence,
    read: Sequence[ReadClause],
    items: Sequence[ExtractedItem],
    *,
    to_assistant: bool,
) -> Iterator[ExtractedItem]:
    """Yield the standing instruction that the reader finds in a sentence, unless the sentence withdraws one."""
    if any(_ends_rule(item) for item in items):
        return
    least = RULE_MIN
    if not to_assistant and instruction_probability(read) >= _AMONG_PEOPLE_MIN:
        # Several people talk, and an assistant may listen: only what is surely meant for one is an instruction.
        read, least = read_clauses(sentence.said, to_assistant=True), AMONG_PEOPLE_RULE_MIN
    rules = _rule(message, sentence.said.strip().rstrip(END_SIGNS), read, least)
    yield from (rule for rule in rules if not is_reported(sentence.text))


def _rule(message: IncomingMessage, text: str, read: Sequence[ReadClause], least: float) -> Iterator[ExtractedItem]:
    """Yield a standing instruction of the sender, when it has at least this probability."""
    if (probability := instruction_probability(read)) >= least:
        rule = instruction_of(text).preference(message.speaker, probability)
        yield ExtractedItem("preferences", rule | {"source_events": [message.event_id]})


def _ends_rule(extracted: ExtractedItem) -> bool:
    """Return whether an item ends a rule: preferences have no predicate."""
    return extracted.kind == "endings" and "predicates" not in extracted.item


def _statements(
    message: IncomingMessage,
    event_text: str,
    sentence: str,
    kept: Sequence[Statement],
    items: Sequence[ExtractedItem],
) -> Iterator[ExtractedItem]:
    """Yield the statements of a sentence that other items of the message do not say already.

    Parameters:
        event_text: the text of the event, in which the words have their place.
        kept: the statements that end in the sentence.
        items: what the rules read in the message until the end of the sentence.
    """
    if not kept:
        return
    said = [
        content_stems(" ".join(str(item.item.get(name, "")) for name in _SAID_FIELDS))
        for item in items
        if item.kind not in _NAMING_KINDS
    ]
    said.append(frozenset[str]().union(*said))
    liked = [content_stems(item.item["key"]) for item in items if item.kind == "preferences"]
    stated = len(stated_part(sentence.rstrip(".!")))
    for statement in kept:
        stems = content_stems(statement.text)
        if statement.start >= stated or any(len(stems & other) >= _SAME_SHARE * len(stems) for other in said):
            continue
        if statement.kind == "preference" and any(thing and thing <= stems for thing in liked):
            continue
        item: Item = {
            "subject": message.speaker,
            "predicate": SAYS,
            "object": statement.text,
            "statement_kind": statement.kind,
            # The words are certain; the probability is that they are worth keeping.
            "confidence": round((1 + statement.probability) / 2, 3),
            "source_type": "observed",
            "source_events": [message.event_id],
        }
        if statement.type != "fact":
            item["type"] = statement.type
        place = event_text.find(statement.text) if message.has_places else -1
        if place >= 0:
            item["evidence"] = [{"event": message.event_id, "start": place, "end": place + len(statement.text)}]
        yield ExtractedItem("facts", item)


def _is_fact(prior: PriorStatement) -> bool:
    return not prior.is_preference and prior.kind != "relation"


def _statement(message: IncomingMessage, extracted: ExtractedItem) -> PriorStatement:
    """Return a fact, a preference or a relationship as a statement of its speaker and session."""
    item = extracted.item
    subject, predicate, object = (item.get(name, "") for name in ("subject", "predicate", "object"))
    kind: str | None = item.get("statement_kind")
    if extracted.kind == "preferences":
        object, kind = item["value"], "rule" if item.get("standing") else "preference"
    elif extracted.kind == "relationships":
        subject, predicate, object, kind = item["source"], item["type"], item["target"], "relation"
    return PriorStatement(
        session_id=message.session_id,
        speaker=message.speaker,
        subject=subject,
        predicate=predicate,
        object=object,
        kind=kind,
        is_preference=extracted.kind == "preferences",
    )


def _read_sentence(
    message: IncomingMessage,
    sentence: Sentence,
    before: list[PriorStatement],
    find: FindChanges,
    read: Sequence[ReadClause],
    *,
    embeds: bool,
) -> Iterator[ExtractedItem]:
    """Yield the correction of a sentence, or else its facts, preferences and people.

    Parameters:
        read: the clauses of the sentence.
        embeds: whether the sentences that may state something are embedded.
    """
    text = _ELLIPSIS.sub(r"\1and I ", sentence.text)
    likely = max((part.keep for part in read), default=0.0)
    items = [it for it in _items(message, text, before) if likely >= _KEPT_MIN[it.kind][embeds]]
    facts = [extracted.item for extracted in items if extracted.kind == "facts"]
    changes = [*_changes(message, sentence.text, facts, before, find, read)]
    if any(extracted.kind == "corrections" for extracted in changes):
        yield from changes
        return
    yield from items
    yield from changes
    introduced = [*people(message.speaker, sentence.text)]
    namesakes = {
        item["target"]
        for kind, item in introduced
        if kind == "relationships" and is_namesake(item["source"], item["type"], item["target"], before)
    }
    for kind, item in introduced:
        if item["target" if kind == "relationships" else "name"] not in namesakes:
            yield ExtractedItem(kind, item | {"source_events": [message.event_id]})


def _items(message: IncomingMessage, text: str, before: Sequence[PriorStatement]) -> Iterator[ExtractedItem]:
    """Yield the facts and preferences of the patterns."""
    for match in matches(text):
        # Few sentences have a match, so that the long patterns of reports are tried after it.
        if match.start >= len(stated_part(text)) or not _may_be_subject(match.subject, message.text):
            continue
        if _WHEN.search(text[: match.start]) and _PAST.search(text[match.start : match.end]) is None:
            # `When I have a dog` is not about the present.
            continue
        factor = confidence_factor(text)
        if match.rule.kind == "fact" and match.object:
            fact = _item(message, match, factor, before)
            # `I am Ann` by Ann states nothing new.
            if fact.item["object"].casefold() != fact.item["subject"].casefold():
                yield fact
        elif match.rule.kind == "preference" and factor == 1:
            yield from _preferences(message, text, match, before)


def _may_be_subject(words: str, text: str) -> bool:
    """Return whether facts about a subject are those of a person; in long texts, names and `we` are mostly others."""
    first = words.split(maxsplit=1)[0].casefold()
    # `We` in a text of several pages is a company that writes about itself.
    if first in ("i", "my", "we", "our"):
        return first in ("i", "my") or is_of_sender(text)
    return is_talk(text)


def _preferences(
    message: IncomingMessage, text: str, match: RuleMatch, before: Sequence[PriorStatement]
) -> Iterator[ExtractedItem]:
    """Yield the preferences of a match; what another person likes is a fact about that person."""
    is_own = subject_name(message.speaker, match.subject) == message.speaker
    for value, object in stated_preferences(text, match):
        if not is_own:
            yield _item(message, replace(match, predicate=value, object=object), 1.0, before)
            continue
        yield ExtractedItem(
            "preferences",
            {
                "category": category_of(object),
                "key": object,
                "value": value,
                "subject": message.speaker,
                "strength": match.rule.confidence,
                "source_events": [message.event_id],
            },
        )


def _item(message: IncomingMessage, match: RuleMatch, factor: float, before: Sequence[PriorStatement]) -> ExtractedItem:
    """Return the fact of a match."""
    subject = _subject(message.speaker, match.subject, before)
    item: Item = {
        "subject": subject,
        "predicate": predicate_of(match),
        "object": match.object,
        "confidence": round(match.rule.confidence * factor, 3),
    }
    item |= {"source_type": "observed", "source_events": [message.event_id]}
    if match.rule.type != "fact":
        item["type"] = match.rule.type
    if match.rule.type == "task" and names_date(match.object, message.sent_at):
        item["confidence"] = max(item["confidence"], round(_DATED_TASK * factor, 3))
    return ExtractedItem("facts", item)


def _subject(speaker: str, words: str, before: Sequence[PriorStatement]) -> str:
    """Return whom the words of a subject mean; a name that another person has is left out: `Ann's nephew`."""
    introduced = relation_and_name(words)
    if introduced is not None and is_namesake(speaker, *introduced, before):
        return f"{speaker}'s {introduced[0]}"
    return subject_name(speaker, words)


def _changes(
    message: IncomingMessage,
    text: str,
    facts: Sequence[Item],
    before: Sequence[PriorStatement],
    find: FindChanges,
    read: Sequence[ReadClause],
) -> Iterator[ExtractedItem]:
    """Yield what the sentence changes of what its speaker said before.

    The comparison reads itself what is reported, hypothetical or in doubt; the patterns do not.
    """
    if not any(prior.speaker == message.speaker for prior in before):
        return
    source = {"source_events": [message.event_id]}
    changes = find(text, message.speaker, before, facts, read=read)
    for kind, item in changes:
        yield ExtractedItem(kind, item | source)
        rest = remaining_elements(item["object"], text) if kind == "endings" and "predicates" not in item else None
        if rest is not None:
            # `Comments are fine again` leaves of `use tabs, and never add comments` the first half.
            yield from _rule(message, rest, read_clauses(rest, to_assistant=True), RULE_MIN)
    own = stated_part(text)
    is_claimed = len(own) > len(text) // 2 and confidence_factor(text) == 1
    if not is_claimed or any(kind == "corrections" for kind, _ in changes):
        return
    stated = [prior for prior in before if prior.speaker == message.speaker and _is_fact(prior)]
    stated = [prior for prior in stated if prior.session_id == message.session_id]
    correction = plain_correction(own, stated)
    if correction is not None:
        yield ExtractedItem(correction[0], correction[1] | source)
        return
    for item in find_endings(own, stated[-1] if stated else None):
        subject = {"subject": _subject(message.speaker, item.pop("who"), before)}
        yield ExtractedItem("endings", subject | item | source)
