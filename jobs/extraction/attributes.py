"""Attributes: reads costs, appointments, names and places of things in everyday life: `insurance is 312 a year now`.

A change is often said of the thing before: `from July it's 950`, `the dentist moved it to 19 March`. It is bound to the last
statement of the conversation with a value of the same kind, or to the thing that the sentence names, or to nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from itertools import islice

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.frames import ClauseFact
from recollect.jobs.extraction.phrases import phrase_at
from recollect.jobs.extraction.rules import is_name
from recollect.projections.queries.knowledge_queries import PriorStatement

_NOUNS: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8")).items()
}


def _any_of(*names: str) -> str:
    """Return a pattern of the nouns of tables."""
    return "|".join(sorted({noun for name in names for noun in _NOUNS[name]}, key=len, reverse=True))


_CONFIDENCE = 0.85
#: Confidence of a change whose thing is in an earlier statement.
_BOUND_CONFIDENCE = 0.75
#: Latest statements of the conversation in which the thing of `it` is searched.
_STATEMENTS_MAX = 2
#: Latest statements of all speakers in which those of the speaker are searched.
_SEARCHED_MAX = 80

# -- values -----------------------------------------------------------------------------------------------------------

_SUM = r"\d{1,3}(?:[.,]\d{3}){1,3}(?:[.,]\d{1,2})?|\d{1,7}(?:[.,]\d{1,2})?"
_CURRENCY = r"[$€£¥₹]|euros?|dollars?|pounds?|quid|bucks|zloty|kr|francs|chf|eur|usd|gbp|rupees|yen|crowns"
_PERIOD = r"(?:(?:an?|per|each|every|/) ?(?:month|week|year|hour|day|night|lesson|session|class|person|head|quarter|term)|each|monthly|weekly|yearly)"
_AMOUNT = (
    rf"(?P<amount>(?:[$€£¥₹] ?)?(?:{_SUM})k?(?: ?(?:{_CURRENCY})(?![^\W\d]))?(?:,? {_PERIOD}\b)?)"
    r"(?! ?(?:%|°|:|\d|st\b|nd\b|rd\b|th\b|am\b|pm\b|o'clock|degrees|km\b|kg\b|kilos?\b|miles|minutes?|mins?\b|hours?|days?|weeks?|months?|years?|people|"
    r"pages|times|stars|jan|feb|mar|apr|may\b|jun|jul|aug|sep|oct|nov|dec))(?![\w.,:/-]{0,3}\d)"
)
#: What follows a sum that ends its clause.
_CLAUSE_END = r"(?= ?(?:[,.;!)(]|$|-|–|—)| (?:now|from|instead|as of|with|but|and|since|for|starting|because|so|lol|haha|btw|already|then|which)\b)"
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
_DAY = (
    rf"(?:(?:next |this |every (?:other )?|each )?{_WEEKDAY}(?:(?:,| and| or| &) {_WEEKDAY}){{0,4}}|tomorrow"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? 20\d\d\b)?|{_MONTH} \d{{1,2}}\b(?:st|nd|rd|th)?(?:,? 20\d\d\b)?|the \d{{1,2}}(?:st|nd|rd|th)\b"
    rf"|next (?:week|month)|every (?:other )?(?:day|morning|evening|week|month)|the (?:first|second|third|fourth|last) {_WEEKDAY}(?: of (?:the|every|each) month)?)"
)
_TIME = (
    r"(?:(?:at |@ ?)?\d{1,2}(?:[:.]\d\d(?: ?[ap]m\b)?| ?[ap]m\b| o'clock)|at (?:\d{1,2}\b|noon|midnight|half past \w{3,6}|(?:one|two|three|four|five|six|seven|"
    r"eight|nine|ten|eleven|twelve)\b))"
)
_MOMENT = rf"(?P<moment>(?:(?:on|from|for) )?{_DAY}(?:,? (?:in the )?(?:morning|afternoon|evening|night))?(?:,? {_TIME})?|{_TIME},? (?:on )?{_DAY})"
_IS_AMOUNT = re.compile(_AMOUNT, re.IGNORECASE)
_IS_MOMENT = re.compile(_MOMENT, re.IGNORECASE)

# -- costs ------------------------------------------------------------------------------------------------------------

#: Where a statement begins.
_START = r"(?:^|(?<=[,;:(] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bbtw )|(?<=\bugh )|(?<=\bok )|(?<=\bnow ))"
_ARTICLE = r"(?:(?:my|our|the) )"
_NEW_VALUE = (
    r"(?:is|are|costs?|comes to|will be|(?:is |are )?(?:going|goes|went|has gone|rose|jumped)(?: up| down)?(?: from \S{1,12}(?: \w{3,8})?)? to|"
    r"(?:was|got|has been|is being|is) (?:raised|increased|put up|lowered|reduced|cut)(?: from \S{1,12})? to)"
)
_LATELY = r"(?: (?:now|about|around|only|still|already|just|currently|exactly))*"
#: `insurance is 312 a year`.
_COST = re.compile(
    rf"{_START}{_ARTICLE}?(?:new |monthly )?(?P<what>(?:[a-z]{{3,15}} )?(?:{_any_of('sums', 'costs')}))(?: for (?:my|our|the) \w{{3,15}})? "
    rf"{_NEW_VALUE}{_LATELY} {_AMOUNT}{_CLAUSE_END}",
    re.IGNORECASE,
)
#: `we are now paying 40 a month for the gym`.
_PAYING = re.compile(
    rf"\b(?:I|we)(?: am| are)?{_LATELY} (?:pay|paying){_LATELY} {_AMOUNT}(?: now)? for (?:my |our |the )?(?P<what>[a-z][\w-]{{2,15}}(?: (?!now\b|and\b|but\b|too\b|since\b)[a-z]{{3,15}})?)"
    r"(?= ?(?:[,.;!)]|$)| (?:now|and|but|too|since)\b)",
    re.IGNORECASE,
)
#: `I get 14,50 an hour`.
_WAGE = re.compile(
    rf"\bI{_LATELY} (?:get|earn|make|am getting|am earning){_LATELY} {_AMOUNT}{_CLAUSE_END}", re.IGNORECASE
)
_HAS_PERIOD = re.compile(r"\b(?:an hour|a month|a year|a week|a day|per \w{4,6})\b", re.IGNORECASE)
#: A new sum for what was spoken of: `from July it is 950`, `they raised it to 120`, `she charges 30 now`.
_NEW_SUM = re.compile(
    rf"(?:\b(?:it|that) {_NEW_VALUE}|\b(?:raised|increased|put|lowered|reduced|changed|bumped|cut) (?:it|that|the price|the fee)(?: up| down)?(?: from \S{{1,12}})? to|"
    r"\b(?:charges?|wants?|asks?)(?: me| us| for)?|^now)"
    rf"{_LATELY} {_AMOUNT}{_CLAUSE_END}",
    re.IGNORECASE,
)
_LANDLORD = re.compile(r"\b(?:landlord|landlady)\b", re.IGNORECASE)

# -- appointments -----------------------------------------------------------------------------------------------------

_EVENT = rf"(?:(?:{_any_of('visited')})(?: appointment)?|(?:{_any_of('events')}))"
_MOVED = r"(?:moved|rescheduled|postponed|pushed|shifted|changed|brought|put|switched|delayed)"
_MOVED_TO = rf"(?:(?:is|are|was|were|got|has been|have been) )?(?:now )?{_MOVED}(?: back| forward)? (?:to|until|for)"
_NAMED_EVENT = re.compile(rf"\b(?P<event>{_EVENT})\b", re.IGNORECASE)
#: `the dentist appointment is on 3 March`, `choir moved to Thursdays`.
_TAKES_PLACE = re.compile(
    rf"{_START}(?:{_ARTICLE}(?:next |new |first )?(?P<kind>(?:[a-z][\w-]{{2,15}} ){{0,2}}?)|(?:next )?(?P<bare>[a-z]{{3,15}} )?)(?P<event>{_EVENT})"
    rf"(?P<of> (?:with|at|for|on|in) (?:the |my |our )?(?!{_WEEKDAY})[\w'.-]{{2,20}}(?: [A-Z][\w'-]{{1,20}})?)? (?:(?:is|are|will be)(?: now| only)?|{_MOVED_TO}) {_MOMENT}",
    re.IGNORECASE,
)
#: `I have a dentist appointment on 3 March`, with nothing after it.
_HAVE = re.compile(
    rf"\bI (?:have|have got|got|booked|made) (?:a|an|my|the|another) (?P<event>(?:[a-z]{{3,15}} )?{_EVENT}) {_MOMENT}(?= ?(?:[.;!]|$)|,? (?:and|but)\b)",
    re.IGNORECASE,
)
#: `they moved it to 19 March`, `new date is 19 March`.
_NEW_MOMENT = re.compile(
    rf"(?:\b{_MOVED} (?:it|me|us|that|this|(?:the|my|our) (?:[a-z]{{3,15}} )?{_EVENT})(?: back| forward)? (?:to|until|for)|"
    rf"\bnew (?:date|time|appointment|slot)(?: is|:)?(?: now| on| the)?|\b(?:it|that) is now) {_MOMENT}",
    re.IGNORECASE,
)
#: `physio every Wednesday at 6`, the whole sentence.
_NOTE = re.compile(rf"(?:and |next )?(?P<event>(?:[a-z]{{3,15}} )?{_EVENT})(?: is)? {_MOMENT}", re.IGNORECASE)
_DATE_WITHOUT_ON = re.compile(
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? [a-z]|{_MONTH} \d|{_WEEKDAY}|the \d)", re.IGNORECASE
)
_NO_KIND = frozenset("the a an my our your his her i we is are was and but so to at on in no any this that".split())

# -- names, places, contracts -----------------------------------------------------------------------------------------

_TITLE = r"(?:(?:[Dd]r|[Mm]r|[Mm]rs|[Mm]s|[Pp]rof|[Ss]eñora?|[Ss]r|[Ss]ra|[Mm]onsieur|[Mm]adame|[Hh]err|[Ff]rau|[Ss]ignora?|[Aa]untie|[Uu]ncle|[Cc]oach|[Ss]ir)\.? )?"
_PROPER = rf"(?P<name>{_TITLE}[A-ZÀ-Þ][\w'-]{{1,30}}(?: [A-ZÀ-Þ][\w'-]{{1,30}}){{0,2}})"
_CALLED = re.compile(
    rf"(?:(?:[Mm]y|[Oo]ur) (?:new |old )?(?P<own>[a-z][\w-]{{2,20}}(?: [a-z][\w-]{{2,20}})?)|[Tt]he (?:new )?(?P<the>{_any_of('roles', 'places')}))(?: is (?:called|named)|'s name is) {_PROPER}"
)
#: `my teacher is señor Berruti`.
_ROLE_IS = re.compile(
    rf"(?:[Mm]y|[Oo]ur|[Tt]he) (?:new |old )?(?P<own>(?:[a-z]{{3,15}} )?(?:{_any_of('roles')})) is {_PROPER}(?= ?(?:[,.;!]|$)| and\b)"
)
_IN_NAME = re.compile(
    rf"{_START}{_ARTICLE}?(?P<what>{_any_of('contracts')}) (?:is|are)(?: still| now)? (?P<value>(?:in|under|on) (?:my |our )?[\w-]{{2,20}}(?:'s|s')? names?)\b",
    re.IGNORECASE,
)
_WITH_COMPANY = re.compile(
    rf"(?:\b(?:moved|switched|changed|transferred) (?:the|my|our) (?P<moved>{_any_of('contracts')}) to|\b(?:[Mm]y|[Oo]ur|[Tt]he) (?P<what>{_any_of('contracts')}) is (?:now )?with) (?P<value>[A-ZÀ-Þ][\w&'-]{{1,30}}(?: [A-ZÀ-Þ][\w&'-]{{1,30}}){{0,2}})"
)
_MAKE = re.compile(
    rf"(?:[Mm]y|[Oo]ur|[Tt]he) (?P<what>(?:company |new |old |first )?(?:{_any_of('things')})) is an? (?=(?:[\w-]{{1,20}} ){{0,3}}[\w-]{{0,20}}[A-Z0-9])"
)
_AT_PLACE = re.compile(
    rf"(?:[Mm]y|[Oo]ur|[Tt]he) (?:new )?(?P<what>{_any_of('places')}) is (?P<value>(?:(?:in|on|at|near|next to) )?(?:the )?[A-ZÀ-Þ][\w'-]{{1,30}})"
)
#: `we moved the office to Limerick`.
_PLACE_MOVED = re.compile(
    rf"\bmoved (?:the|my|our) (?P<what>{_any_of('places')}) to (?P<value>[A-ZÀ-Þ][\w'-]{{1,30}}(?: [A-ZÀ-Þ][\w'-]{{1,30}})?)"
)
#: `the recital is cancelled`.
_CANCELLED = re.compile(
    rf"\b(?P<event>(?:[a-z]{{3,15}} )?{_EVENT}) (?:is|was|got|has been|are|were)(?: now)? (?:cancelled|canceled|called off|off)\b",
    re.IGNORECASE,
)
_VALUE_WORDS_MAX = 8
_SINGULAR = {"lessons": "lesson", "classes": "class", "fees": "fee"}
_BUSINESS = frozenset("business company startup shop store studio band crew".split())


_WORD = re.compile(r"[^\W\d_][\w-]*")
#: Words of which a statement without a number has one.
_CUES: frozenset[str] = frozenset[str]().union(*_NOUNS.values()) | frozenset(
    "called named name names moved rescheduled postponed pushed shifted changed brought put switched delayed new now".split()
)


class StatementsBefore:
    """The earlier statements of a speaker, which are searched when a sentence may refer to one."""

    def __init__(self, speaker: str, session_id: str | None, before: Sequence[PriorStatement]) -> None:
        self._speaker = speaker
        self._session_id = session_id
        self._before = before

    def latest(self) -> list[PriorStatement]:
        """Return the latest statements of the speaker about himself in the conversation, the last one first."""
        return [prior for prior in self._own() if prior.session_id == self._session_id][:_STATEMENTS_MAX]

    def predicates(self) -> list[str]:
        """Return the predicates of the latest statements of the speaker about himself, the last one first."""
        return [prior.predicate for prior in self._own()]

    def _own(self) -> Iterator[PriorStatement]:
        """Yield the latest statements of the speaker about himself, the last one first."""
        for prior in islice(reversed(self._before), _SEARCHED_MAX):
            if prior.speaker == self._speaker == prior.subject:
                yield prior


def attribute_facts(sentence: str, before: StatementsBefore) -> Iterator[ClauseFact]:
    """Yield the facts about everyday things in a sentence with expanded contractions.

    Parameters:
        before: the earlier statements of the speaker.
    """
    has_digit = any(sign.isdigit() for sign in sentence)
    if not has_digit and _CUES.isdisjoint(_WORD.findall(sentence.casefold())):
        # This look at the words is ten times as fast as the patterns.
        return
    if has_digit:
        costs = [*_costs(sentence, before)]
        yield from costs or _wages(sentence, before)
    moments = [*_moments(sentence, before)]
    yield from moments
    yield from _names(sentence)
    if not moments:
        yield from _contracts(sentence)


def cancelled_events(sentence: str) -> Iterator[str]:
    """Yield the predicates of the appointments that a sentence says are cancelled."""
    for match in _CANCELLED.finditer(sentence):
        words = match["event"].casefold().split()
        for event in dict.fromkeys((" ".join(words), words[-1])):
            yield f"{event} is"
            if event in _NOUNS["visited"]:
                yield f"{event} appointment is"


def _costs(sentence: str, before: StatementsBefore) -> Iterator[ClauseFact]:
    """Yield what things cost."""
    for pattern in (_COST, _PAYING):
        for match in pattern.finditer(sentence):
            yield _fact(_cost_predicate(match["what"]), match["amount"], match.start())
        if pattern.search(sentence):
            return
    match = _NEW_SUM.search(sentence)
    if match is None:
        return
    predicate = _last(before, _IS_AMOUNT, _is_cost)
    if predicate is None and _LANDLORD.search(sentence) and "rent is" in before.predicates():
        predicate = "rent is"
    if (predicate is not None and not _LANDLORD.search(sentence)) or predicate == "rent is":
        yield _fact(predicate, match["amount"], match.start(), _BOUND_CONFIDENCE)


def _wages(sentence: str, before: StatementsBefore) -> Iterator[ClauseFact]:
    """Yield what the speaker earns."""
    match = _WAGE.search(sentence)
    if match is not None and (_HAS_PERIOD.search(match["amount"]) or _last(before, _IS_AMOUNT, _is_wage)):
        yield _fact("wage is", match["amount"], match.start())


def _moments(sentence: str, before: StatementsBefore) -> Iterator[ClauseFact]:
    """Yield when appointments and courses are; a new time belongs to the event of the sentence, or to the last one."""
    if _IS_MOMENT.search(sentence) is None:
        return
    moved = _NEW_MOMENT.search(sentence)
    if moved is not None:
        event = _NAMED_EVENT.search(sentence)
        predicate = _last(before, _IS_MOMENT, _is_event) if event is None else _predicate_of(event["event"], before)
        if predicate is not None:
            yield _fact(predicate, _with_on(moved["moment"]), moved.start(), _BOUND_CONFIDENCE)
        return
    match = _TAKES_PLACE.search(sentence)
    if match is not None:
        kind = (match["kind"] or match["bare"] or "").strip()
        if not _NO_KIND.isdisjoint(kind.casefold().split()):
            return
        event = " ".join((kind, match["event"] + (match["of"] or ""))).strip()
        yield _fact(_predicate_of(event, before), _with_on(match["moment"]), match.start())
        return
    match = _HAVE.search(sentence) or _NOTE.fullmatch(sentence)
    if match is not None and _NO_KIND.isdisjoint(match["event"].casefold().split()):
        yield _fact(_predicate_of(match["event"], before), _with_on(match["moment"]), match.start())


def _names(sentence: str) -> Iterator[ClauseFact]:
    """Yield who has a part in the speaker's life, and what things are called."""
    match = _CALLED.search(sentence) or _ROLE_IS.search(sentence)
    if match is None or not is_name(match["name"], at_start=False):
        return
    what = match.groupdict().get("own") or match.groupdict()["the"]
    noun = what.split()[-1]
    if noun in vocabulary.PETS or noun in ("dogs", "cats", "name"):
        # The rules of pets read them.
        return
    is_one = noun in _NOUNS["roles"] | _BUSINESS or noun not in vocabulary.SUBJECT_NOUNS
    if is_one:
        yield _fact(f"{what} is", match["name"], match.start())
    elif not noun.endswith("s"):
        yield _fact("has", f"{'an' if what[0] in 'aeiou' else 'a'} {what} named {match['name']}", match.start())


def _contracts(sentence: str) -> Iterator[ClauseFact]:
    """Yield whose name things are in, which company they are with, their make and their place."""
    match = _IN_NAME.search(sentence) or _WITH_COMPANY.search(sentence)
    if match is not None:
        groups = match.groupdict()
        what = groups.get("moved") or groups["what"]
        value = match["value"] if match.re is _IN_NAME else f"with {match['value']}"
        yield _fact(f"{what.casefold()} is", value, match.start())
        return
    match = _PLACE_MOVED.search(sentence)
    if match is not None:
        yield _fact(f"{match['what']} is", f"in {match['value']}", match.start())
        return
    match = _MAKE.search(sentence)
    if match is not None:
        phrase = phrase_at(sentence, match.end(), _is_no_verb)
        if phrase and len(phrase.split()) <= _VALUE_WORDS_MAX:
            article = sentence[: match.end()].rsplit(maxsplit=1)[-1]
            yield _fact(f"{match['what']} is", f"{article} {phrase}", match.start())
        return
    match = _AT_PLACE.search(sentence)
    if match is not None:
        phrase = phrase_at(sentence, match.start("value"), _is_no_verb)
        if phrase and len(phrase.split()) <= _VALUE_WORDS_MAX:
            yield _fact(f"{match['what']} is", phrase, match.start())


def _fact(predicate: str, value: str, start: int, confidence: float = _CONFIDENCE) -> ClauseFact:
    """Return a fact about a thing of the speaker."""
    return ClauseFact("I", predicate, value.strip(" ,"), "fact", confidence, start)


def _cost_predicate(what: str) -> str:
    """Return the predicate of what a thing costs: `rent is`, `gym cost is`, `piano lesson cost is`."""
    words = what.casefold().split()
    if words[-1] in _NOUNS["sums"]:
        return f"{' '.join(words)} is"
    words[-1] = _SINGULAR.get(words[-1], words[-1])
    return f"{' '.join(words)} cost is"


def _predicate_of(event: str, before: StatementsBefore) -> str:
    """Return the predicate of an event: the one of an earlier statement about it, or one of its words."""
    words = event.casefold().removesuffix(" appointment").split()
    words = [_SINGULAR.get(word, word) for word in words]
    name = " ".join(words) + (" appointment" if words[-1] in _NOUNS["visited"] else "")
    head = f"{name} is"
    earlier = [predicate for predicate in before.predicates() if _is_event(predicate)]
    if head in earlier:
        return head
    return next((predicate for predicate in earlier if words[-1] in predicate.casefold().split()), head)


def _with_on(moment: str) -> str:
    """Return a moment with `on` before a date or a day of the week."""
    return f"on {moment}" if _DATE_WITHOUT_ON.match(moment) else moment


def _last(before: StatementsBefore, value: re.Pattern[str], is_kind: Callable[[str], bool]) -> str | None:
    """Return the predicate of the latest statement of a kind with such a value, among the last ones."""
    for prior in before.latest():
        if is_kind(prior.predicate) and value.match(prior.object):
            return prior.predicate
    return None


def _is_cost(predicate: str) -> bool:
    """Return whether a predicate is about what something costs."""
    return predicate.endswith(" cost is") or predicate.removesuffix(" is").rpartition(" ")[2] in _NOUNS["sums"]


def _is_wage(predicate: str) -> bool:
    """Return whether a predicate is about what the speaker earns."""
    return predicate in ("wage is", "salary is")


def _is_event(predicate: str) -> bool:
    """Return whether a predicate is about the time of an appointment or a course."""
    return predicate.endswith(" is") and _NAMED_EVENT.search(predicate) is not None


def _is_no_verb(word: str) -> bool:
    """Return False: what follows `and` belongs to the phrase."""
    return not word
