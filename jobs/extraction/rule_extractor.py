"""What the rules read in one message."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from recollect.jobs.extraction import statement_modality, vocabulary
from recollect.jobs.extraction.corrections import find_correction
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.procedures import find_procedure
from recollect.jobs.extraction.rules import RuleMatch, matches
from recollect.jobs.extraction.sentences import Sentence, sentences
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.date_ranges import find_dates
from recollect.projections.text.words import WORD

Item = dict[str, Any]

_RELATION = re.compile(
    rf"^[Mm]y\s+(?:\w+\s+)?(?P<relation>{'|'.join(vocabulary.RELATIONS)})(?:,?\s+(?P<name>[A-ZÀ-Þ].*))?$"
)
_NAMED = re.compile(
    rf"\b[Mm]y\s+(?:(?:younger|older|little|big|best|old|new|twin)\s+)?(?P<relation>{'|'.join(vocabulary.RELATIONS)})"
    r"(?:,|\s+(?:is\s+)?(?:named|called))?\s+(?P<name>[A-ZÀ-Þ][\w'-]+(?:\s+[A-ZÀ-Þ][\w'-]+)?)"
)
_ALIAS = re.compile(
    r"\b(?P<name>[A-ZÀ-Þ][\w'-]{1,60}(?:\s+[A-ZÀ-Þ][\w'-]{1,60})?),?\s++(?:(?:and\s+)?(?:we|I|everyone|everybody|people|they)\s+(?:all\s+)?"
    r"calls?\s+(?:him|her|them)|also known as|aka|a\.k\.a\.?|nicknamed)\s+(?P<alias>[A-ZÀ-Þ][\w'-]+)"
)
_CALL_ME = re.compile(r"\b(?:call me|my friends call me|everyone calls me|I go by)\s+(?P<alias>[A-ZÀ-Þ][\w'-]+)")
_LIST = re.compile(r",\s++(?:and\s++)?|(?<!\s)\s++and\s++")
#: A sentence that leaves out its second subject: `I live in Porto and work at …`.
_ELLIPSIS = re.compile(
    r"\band\s+(?=(?:live|work|study|love|like|hate|prefer|have|own|play|speak|drive|am|need|decided|bought|moved|adopted)\b)"
)
#: Facts and preferences whose objects are lists.
_LISTED = frozenset(("likes", "dislikes", "speaks", "plays", "allergic to", "owns"))
#: Objects that say nothing by themselves.
_ARTICLES = frozenset(("a", "an", "the", "my", "our"))
#: What points at something that was said before.
_POINTING = re.compile(r"(?:them|this|that|it|these|those|him|her)\b")
#: What a phrase that was cut off ends with.
_DANGLING = frozenset("to about of with for and the a an that in on at my by from fully or".split())
#: What is said of this one thing here and now, and of what somebody else has.
_PASSING = re.compile(
    r"^(?:your|this|that|these|those|his|her|their|its|the (?:thought|sound|look|way|idea|fact|part|feeling|vibe|view))\b"
    r"|\b(?:them|it|this|that|here|I|you|your)\b",
)
_EMPTY = frozenset(
    "it that this them him her you me us one ones those these so too there here everything something anything nothing how "
    "what when where why who all both much lot way idea sound look feel thing things stuff the a an my your his their its "
    "our to seeing hearing having being getting".split()
)
#: What one message may take, in seconds of processor time: ten times what the worst known texts of full length do.
SECONDS_MAX = 2.0
#: Confidence in a task that has a date.
_DATED_TASK = 0.7
#: An object; the catalogue takes a little more for a name.
_CHARS_MAX = 180
#: What a preference is about.
_CATEGORIES = (
    (
        "communication",
        re.compile(
            r"\b(?:answers?|repl(?:y|ies)|respon[ds]\w*|tone|explain\w*|explanations?|call me|language|english|formal|brief|short|concise|detailed)\b",
            re.I,
        ),
    ),
    (
        "formatting",
        re.compile(
            r"\b(?:markdown|bullets?|tables?|headings?|code blocks?|emojis?|format\w*|tabs|spaces|indent\w*|json|camelcase)\b",
            re.I,
        ),
    ),
    (
        "tools",
        re.compile(
            r"\b(?:vim|emacs|vs ?code|editor|ide|terminal|python|rust|java\w*|typescript|docker|linux|windows|mac|git\w*|sql\w*|postgres\w*)\b",
            re.I,
        ),
    ),
    (
        "scheduling",
        re.compile(r"\b(?:meetings?|mornings?|afternoons?|evenings?|calendar|schedul\w*|appointments?|calls?)\b", re.I),
    ),
    (
        "workflow",
        re.compile(r"\b(?:tests?|commits?|reviews?|deploy\w*|drafts?|plans?|steps?|ask|confirm|check)\b", re.I),
    ),
)


class IncomingMessage(NamedTuple):
    """A message on its way through the rules."""

    event_id: str
    session_id: str | None
    speaker: str
    text: str
    sent_at: datetime
    #: Whether it is said by one who helps, about whom nothing is to be known.
    assistant: bool


class ExtractedItem(NamedTuple):
    """One thing that was read: its kind, as `facts.extracted` names it, and the payload."""

    kind: str
    item: Item


class ReadingTimeout(Exception):
    """A message took the rules more time than it may; what they had not read is left out."""


def extract_by_rules(
    said: IncomingMessage, before: list[PriorStatement], *, seconds_max: float = SECONDS_MAX
) -> Iterator[ExtractedItem]:
    """Yield what the rules read in a message, or in the edges of a long one.

    Parameters:
        before: what was stated earlier, oldest first, for corrections to correct; grows by what is read.
        seconds_max: processor time of this thread, looked at between two sentences. Not the time of day: on a busy
            machine the same is read.

    Raises:
        ReadingTimeout: the time is over.
    """
    end = time.thread_time() + seconds_max
    said = said._replace(text=excerpt(said.text))
    for date in find_dates(said.text, said.sent_at):
        item = {"source_event": said.event_id, "text": date.text, "start": date.start, "end": date.end}
        yield ExtractedItem("dates", item)
    if said.assistant:
        return
    how_to = find_procedure(said.text)
    if how_to is not None:
        yield ExtractedItem("procedures", how_to | {"source_events": [said.event_id]})
    spoken = sentences(said.text)
    for at, sentence in enumerate(spoken):
        if time.thread_time() > end:
            raise ReadingTimeout
        if sentence.asks:
            if len(sentence.text.split()) > 2:
                yield ExtractedItem("questions", {"source_event": said.event_id, "text": sentence.text + "?"})
            continue
        if any(statement_modality.is_joke(near) for near in spoken[at : at + 2]):
            continue
        for found in _read_sentence(said, sentence, before):
            if found.kind == "facts":
                before.append(_statement(said, found.item))
            yield found


def _statement(said: IncomingMessage, fact: Item) -> PriorStatement:
    """Return a fact with the speaker and session of its message."""
    return PriorStatement(
        session_id=said.session_id,
        speaker=said.speaker,
        subject=fact["subject"],
        predicate=fact["predicate"],
        object=fact["object"],
    )


def _read_sentence(said: IncomingMessage, sentence: Sentence, before: list[PriorStatement]) -> Iterator[ExtractedItem]:
    """Yield a correction or an instruction when it is one; facts, preferences and names otherwise."""
    text = _ELLIPSIS.sub("and I ", sentence.text) if sentence.text.startswith(("I ", "We ")) else sentence.text
    unreal = statement_modality.Unreal(text)
    doubt = statement_modality.doubt(text)
    facts = [_fact(said, match, doubt) for match in matches(text) if not unreal.covers(match.start)]
    right = find_correction(
        said.speaker, said.session_id, sentence.text, [one.item for one in facts if one.kind == "facts"], before
    )
    if right is not None:
        yield ExtractedItem("corrections", right | {"source_events": [said.event_id]})
        return
    if statement_modality.is_instruction(sentence):
        yield ExtractedItem("preferences", _instruction(said, sentence))
        return
    for found in facts:
        yield from _listed(found)
    yield from _people(said, sentence.text)


def _fact(said: IncomingMessage, match: RuleMatch, doubt: float) -> ExtractedItem:
    subject = _subject(said.speaker, match.who)
    confidence = round(match.rule.confidence * doubt, 3)
    source = {"source_events": [said.event_id]}
    if match.rule.kind == "preference":
        value = match.says if subject == said.speaker else f"{subject} {match.says}"
        item = {"category": _category(match.object), "key": match.object, "value": value, "source_type": "inferred"}
        return ExtractedItem("preferences", item | {"strength": confidence} | source)
    item: Item = {"subject": subject, "predicate": match.says, "object": match.object, "confidence": confidence}
    item |= {"source_type": "observed"} | source
    if match.rule.type != "fact":
        item["type"] = match.rule.type
    if match.rule.type == "task" and any(find_dates(match.object, said.sent_at)):
        item["confidence"] = max(item["confidence"], round(_DATED_TASK * doubt, 3))
    if match.rule.ended:
        item["valid_until"] = said.sent_at
    return ExtractedItem("facts", item)


def _listed(found: ExtractedItem) -> Iterator[ExtractedItem]:
    """Yield one item for each of a list: `tea and coffee`; none for what says nothing by itself."""
    name = "key" if found.kind == "preferences" else "object"
    says = found.item["value"].split()[-1] if found.kind == "preferences" else found.item["predicate"]
    whole: str = found.item[name]
    parts = [part.strip() for part in _LIST.split(whole)] if says in _LISTED else [whole]
    if any(len(part.split()) > 3 for part in parts):
        parts = [whole]
    for part in parts:
        clean = _without_dangling(part.strip(" .,;:!\"'-")).strip(" -")
        said = clean.casefold().split()
        says_something = said and (said[0] not in _EMPTY or (len(said) > 1 and said[0] in _ARTICLES))
        if found.kind == "preferences" and _PASSING.search(clean):
            continue
        if says == "decided" and _POINTING.match(clean):
            continue
        if (says_something or (found.kind == "facts" and len(clean.split()) > 2)) and len(clean) <= _CHARS_MAX:
            yield ExtractedItem(found.kind, found.item | {name: clean})


def _without_dangling(phrase: str) -> str:
    """Return `phrase` without the words at its end that nothing follows; the first word always stays."""
    words = phrase.split()
    while len(words) > 1 and words[-1] in _DANGLING:
        words.pop()
    return " ".join(words)


def _subject(speaker: str, who: str) -> str:
    """Return whom `who` means: the speaker, a name, or somebody's sister."""
    if who in ("I", "we", "We"):
        return speaker
    relation = _RELATION.match(who)
    if relation is None:
        return who
    return relation["name"] or f"{speaker}'s {relation['relation']}"


def _people(said: IncomingMessage, text: str) -> Iterator[ExtractedItem]:
    """Yield the people that a sentence introduces: `my sister Anna`, `Robert, we call him Bob`."""
    source = {"source_events": [said.event_id]}
    unreal = statement_modality.Unreal(text)
    for match in _NAMED.finditer(text):
        name, relation = match["name"], match["relation"].casefold()
        if name.split()[0] not in vocabulary.NOT_NAMES and not unreal.covers(match.start()):
            description = f"{said.speaker}'s {relation}"
            yield ExtractedItem("entities", {"name": name, "type": "person", "description": description} | source)
            yield ExtractedItem(
                "relationships", {"source": said.speaker, "type": relation, "target": name, "confidence": 0.9} | source
            )
    for match in _ALIAS.finditer(text):
        if {match["name"].split()[0], match["alias"]}.isdisjoint(vocabulary.NOT_NAMES):
            yield ExtractedItem(
                "entities", {"name": match["name"], "type": "person", "aliases": [match["alias"]]} | source
            )
    for match in _CALL_ME.finditer(text):
        yield ExtractedItem("entities", {"name": said.speaker, "type": "person", "aliases": [match["alias"]]} | source)


def _instruction(said: IncomingMessage, sentence: Sentence) -> Item:
    key = " ".join(WORD.findall(sentence.text.casefold())[:8])
    return {
        "category": _category(sentence.text),
        "key": key,
        "value": sentence.text,
        "strength": 0.9,
        "standing": True,
        "source_events": [said.event_id],
    }


def _category(text: str) -> str:
    return next((name for name, pattern in _CATEGORIES if pattern.search(text)), "other")
