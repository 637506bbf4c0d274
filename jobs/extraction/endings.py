"""Endings: finds what no longer holds in a sentence: `I quit my job`, `we don't live in Oslo any more`.

An ending names a subject, the predicates that it may end, and the words of what ends; `Facts.end` matches it with the
facts of the subject. What it names has to be of the same kind and of now: `I was fired when I was 18` ends nothing, and
`I sold it` ends what the sentence calls mine. A negated sentence is read by the rules of facts without its negation, so that an ending
understands every statement that a fact does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.rule_index import RuleIndex
from recollect.jobs.extraction.rules import WHO, clause_begins, clause_regex, matches
from recollect.jobs.extraction.rules import is_name as is_name_of_subject
from recollect.projections.projector.predicates import canonical, has_one_value
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import content_stems

#: A word for `from now on not`; without one, a negation ends only the value that it names.
_CUE = late_pattern(r"\b(?:any ?more|any longer|no longer|used to|stopped|quit|gave up)\b", re.IGNORECASE)
_TRAILING_CUE = late_pattern(r"(?<=\w),?+\s++(?:any ?more|any longer)\b", re.IGNORECASE)
#: The negations of a clause, with its verb.
_NEGATIONS = (
    late_pattern(r"\b(?P<be>am|is|are)\s+(?:not|no longer)\s+(?=\S)"),
    late_pattern(r"\b(?P<do>do|does)\s+(?:not|no longer)\s+(?:really\s+|even\s+)?(?P<verb>[a-z]+)\b"),
    late_pattern(r"\b(?:no longer|used to)\s+(?P<verb>[a-z]+)\b"),
    late_pattern(r"\b(?:have |has )?(?:stopped|quit|gave up)\s+(?P<gerund>[a-z]{2,}ing)\b"),
)
#: What precedes the verb when it needs no `s`.
_FIRST_PERSON = late_pattern(r"\b(?:I|[Ww]e)\s+(?:\w+\s+)?$")

#: Words before the first word of a pattern.
_AUXILIARIES = late_pattern(r"(?:(?:have|has|had|just|finally|already|recently|now|officially)\s+)*")
#: A time of the past that the speaker talks about: what ended then is not what holds now.
_PAST_LIFE = late_pattern(
    r"\b(?:when (?:I|we|he|she|they) (?:was|were) (?!\w+ing\b)|as an? (?:\w{2,12} )?(?:kid|child|teen\w{0,5}|boy|girl|student|baby)\b|back (?:then|when|in)\b|"
    r"(?:\d+|few|couple of|many|several|some|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty) years (?:ago|back|before)|(?:years|decades|ages) ago|"
    r"in (?:my|his|her|their) (?:\w{2,8} )?(?:twenties|thirties|forties|teens|\d0s|youth|childhood)|growing up|in (?:college|university|uni|high school|school)\b|"
    r"at (?:school|university|uni|college)\b|once upon a time|that (?:year|summer|winter|time)\b|in (?:19\d\d|200\d|201\d)\b|in the (?:nineties|eighties|seventies|sixties|\d0s))",
    re.IGNORECASE,
)
#: What ends for some hours only: `I left the office early`, `no more cello today`.
_FOR_NOW = late_pattern(
    r"\b(?:left|out of|quit) [\w' ]{0,40}\bearly\b|\bno more [\w' ]{1,30}\b(?:today|tonight|for (?:today|now|a while))\b|"
    r"\bfor (?:the day|tonight|a while|the moment)\b",
    re.IGNORECASE,
)
#: A thing that the sentence calls the speaker's, before a pronoun that means it.
_OWN_THING = late_pattern(
    r"\b(?:my|our)((?:\s(?!(?:and|but|so|then|because)\b)[\w-]{2,20}){1,3}?)(?=,| and\b| but\b| so\b| then\b|\s\w+ed\b|\s(?:is|was|has|had|got)\b)",
    re.IGNORECASE,
)
_ANY_THING = late_pattern(r"\b(?:an?|the|my|our|his|her|their|some|this|that)\s[\w-]{2,20}", re.IGNORECASE)
_PRONOUN = late_pattern(r"(?:it|them|that|this|these|those|him|her|one|everything|something)\b", re.IGNORECASE)
#: What a person no longer has after death.
_ENDED_BY_DEATH = ("lives in", "lives with", "works at", "works as", "studies at", "age is")

Item = dict[str, Any]


class _EndingRule(Struct, frozen=True, kw_only=True):
    """A pattern of `[[ending]]` in `rules.toml`."""

    pattern: re.Pattern[str]
    #: The pattern after the subject, as it is written in the file.
    first: str
    #: Whether the pattern follows a subject; a sentence without one (`sold the car`) is about the speaker.
    has_subject: bool
    #: The predicates of the facts that it ends; empty: all.
    ends: tuple[str, ...]
    #: The types of the facts that it ends; empty: all.
    types: tuple[str, ...]
    #: The placeholder that names what ends; `who`: the subject is what ends. None: the value of `ends`.
    about: str | None


@cache
def _ending_rules() -> tuple[_EndingRule, ...]:
    """Return the rules of endings in the order of the file."""
    tables = tomllib.loads(files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))["ending"]
    return tuple(_compiled(tables))


@cache
def _indexes() -> tuple[RuleIndex, RuleIndex]:
    """Return the indexes of the rules after a subject, and of all rules at the beginning of a clause."""
    numbered = [*enumerate(_ending_rules())]
    return (
        RuleIndex((number, rule.first) for number, rule in numbered if rule.has_subject),
        RuleIndex((number, rule.first) for number, rule in numbered),
    )


def _compiled(tables: list[dict[str, Any]]) -> Iterator[_EndingRule]:
    """Yield the rules of the tables of `rules.toml`: one rule for each pattern of a table."""
    yield from (
        _EndingRule(
            pattern=late_pattern(_AUXILIARIES.pattern + clause_regex(pattern.removeprefix("{who} ")) + r"(?=\W|$)"),
            first=pattern.removeprefix("{who} "),
            has_subject=pattern.startswith("{who} "),
            ends=tuple(table.get("ends", ())),
            types=tuple(table.get("types", ())),
            about=table.get("about"),
        )
        for table in tables
        for pattern in table["say"]
    )


def find_endings(sentence: str, last: PriorStatement | None = None) -> Iterator[Item]:
    """Yield the endings in a sentence with expanded contractions: predicates, types, `about`, words of the subject.

    Parameters:
        last: the last statement of the speaker in the conversation, which `it` may mean.
    """
    if _PAST_LIFE.search(sentence) or _FOR_NOW.search(sentence):
        return
    yield from _by_rules(sentence, last)
    yield from _negated(sentence)


def _by_rules(sentence: str, last: PriorStatement | None) -> Iterator[Item]:
    """Yield the endings of the patterns of `rules.toml`: at each clause, those of the first table that matches."""
    end = 0
    for start in clause_begins(sentence):
        if start < end:
            continue
        subject = WHO.match(sentence, start)
        if subject is not None and not is_name_of_subject(subject["who"], at_start=start == 0):
            subject = None
        for rule in map(_ending_rules().__getitem__, _candidates(sentence, start, subject)):
            match = None
            if rule.has_subject and subject is not None:
                match = rule.pattern.match(sentence, subject.end())
            if match is None:
                match = rule.pattern.match(sentence, start)
                subject_words = "I"
            else:
                subject_words = subject["who"] if subject is not None else "I"
            if match is not None:
                end = match.end()
                item = _item(rule, subject_words, match, sentence, last)
                if item is None:
                    break
                yield item
                if rule.about == "who":
                    yield {"who": subject_words, "predicates": [*_ENDED_BY_DEATH]}
                break


def _candidates(sentence: str, start: int, subject: re.Match[str] | None) -> list[int]:
    """Return the numbers of the rules that can match at a clause, in their order."""
    after_subject, at_clause = _indexes()
    candidates = {*at_clause.candidates_at(sentence, _after_auxiliaries(sentence, start))}
    if subject is not None:
        candidates |= {*after_subject.candidates_at(sentence, _after_auxiliaries(sentence, subject.end()))}
    return sorted(candidates)


def _after_auxiliaries(sentence: str, start: int) -> int:
    """Return the position after the auxiliaries at a position."""
    auxiliaries = _AUXILIARIES.match(sentence, start)
    return start if auxiliaries is None else auxiliaries.end()


def _item(
    rule: _EndingRule, subject: str, match: re.Match[str], sentence: str, last: PriorStatement | None
) -> Item | None:
    """Return the ending of a match; None when it names no thing, or by a pronoun without one reading."""
    item: Item = {"who": subject}
    about = subject if rule.about == "who" else match.groupdict().get(rule.about or "")
    if rule.about == "who":
        item["who"] = "I"
    if rule.ends:
        item["predicates"] = [*rule.ends]
    if rule.types:
        item["types"] = [*rule.types]
    if about and not content_stems(about):
        about = _thing_meant(sentence[: match.start()], about.strip(), rule, last)
        if about is None:
            return None
    if about:
        item["about"] = about.strip()
    return item


def _thing_meant(before: str, pronoun: str, rule: _EndingRule, last: PriorStatement | None) -> str | None:
    """Return the only thing that a pronoun can mean: what the sentence calls mine before, or else the last statement."""
    if _PRONOUN.match(pronoun) is None:
        return None
    if _ANY_THING.search(before):
        things = _OWN_THING.findall(before)
        return things[0] if len(things) == 1 and len(_ANY_THING.findall(before)) == 1 else None
    return last.object if last is not None and canonical(last.predicate) in rule.ends else None


def _negated(sentence: str) -> Iterator[Item]:
    """Yield the endings of statements that the sentence negates."""
    has_cue = _CUE.search(sentence) is not None
    positive = _TRAILING_CUE.sub("", sentence)
    for pattern in _NEGATIONS:
        match = pattern.search(positive)
        if match is None:
            continue
        for verb in _verb_forms(match, positive):
            text = f"{positive[: match.start()]}{verb} {positive[match.end() :].lstrip()}"
            # In `I am vegan, don't order meat` another clause than that of the fact is negated.
            facts = [
                fact
                for fact in matches(text)
                if fact.rule.kind == "fact" and fact.rule.type != "event" and fact.start <= match.start() < fact.end
            ]
            for fact in facts:
                has_one = has_one_value(canonical(fact.predicate))
                # `I no longer live there` has no place, and one home can be meant.
                about = {} if has_cue and has_one and not content_stems(fact.object) else {"about": fact.object}
                if "about" in about and not content_stems(fact.object):
                    continue
                yield {"who": fact.subject, "predicates": [fact.predicate], **about}
            if facts:
                return
        return


def _verb_forms(match: re.Match[str], text: str) -> list[str]:
    """Return the positive forms of a negated verb."""
    groups = match.groupdict()
    if groups.get("be"):
        return [groups["be"]]
    if groups.get("gerund"):
        base = groups["gerund"].removesuffix("ing")
        forms = [base, base + "e", base[:-1]]
    else:
        forms = [groups["verb"]]
    if _FIRST_PERSON.search(text[: match.start()]):
        return forms
    # `no longer works` is inflected already, `used to work` is not.
    return [*forms, *map(_third_person, forms)]


def _third_person(verb: str) -> str:
    """Return a verb in the third person."""
    if verb == "have":
        return "has"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "o")) else "s")
