"""Rules: compiles the patterns of `rules.toml` and matches them against sentences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.rule_index import RuleIndex

_CAPITAL = r"(?!I\b)(?:(?:St|Mt|Ft)\.?\s(?=[A-ZÀ-Þ]))?[A-ZÀ-ÖØ-Þ][\w'&-]{0,100}(?:\.[A-Z]\.)?"
_NAME = rf"{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}}"
_PLACE = rf"(?:the\s+)?{_CAPITAL}(?:(?:,|\s+(?:of|de|da|do|del|la|the|on|upon|and))?\s+{_CAPITAL}){{0,3}}"
_RELATIONS = "|".join(sorted(vocabulary.SUBJECT_NOUNS, key=len, reverse=True))
_ADVERBS = "|".join(vocabulary.ADVERBS)
#: Words that end a phrase.
_STOP = (
    r"(?:but|because|so|which|that|who|when|while|since|if|although|though|whenever|where|until|before|after|lately|"
    r"'cause|these days|right now|at the moment|any ?more|too|as well|(?:and|,)\s+(?:I|we|he|she|it|they|you|my|our|then|also|not)\b)"
)
_TOKEN = r"[\w$€£%&+#@./'-]{1,60}+"
#: A comma before a new clause.
_NEW_CLAUSE = r",\s+(?:I|we|he|she|it|they|you|my|our|then|also|not)\b"
#: Words of a thing, and characters of a clause.
_THING_WORDS_MAX, _CLAUSE_CHARS_MAX = 10, 160
_THING = rf"(?!{_STOP}\b){_TOKEN}(?:(?!{_NEW_CLAUSE}),?\s+(?!{_STOP}\b){_TOKEN}){{0,{_THING_WORDS_MAX - 1}}}"
_CLAUSE = rf"(?:(?!\s+(?:but|because)\b|,\s+(?:but|so|and I|and we)\b).){{3,{_CLAUSE_CHARS_MAX}}}"
#: Words that another one must follow.
_OPEN_END = late_pattern(r"\b(?:an?|the|of|and|or|for|to|with|than|my|your|our|their|is|are|was|were)$", re.IGNORECASE)


_SHORT_STOP = _STOP[:-1] + "|at|in|for|with|on|from|near|around|by|to)"
_SHORT = rf"(?!{_SHORT_STOP}\b){_TOKEN}(?:\s+(?!{_SHORT_STOP}\b){_TOKEN}){{0,4}}"


def _any(values: Sequence[str]) -> str:
    """Return a pattern that matches any of `values`, which are patterns."""
    return "(?:" + "|".join(sorted(values, key=len, reverse=True)) + ")"


#: The pattern of each placeholder of `rules.toml`.
_PLACEHOLDERS = {
    "place": rf"(?P<place>{_PLACE})",
    "org": rf"(?P<org>{_PLACE}|(?:a|an|the|my)\s+{_TOKEN}(?:\s+(?!{_STOP}\b){_TOKEN}){{0,3}})",
    "name": rf"(?P<name>{_NAME})",
    "names": rf"(?P<names>{_CAPITAL}(?:,\s+{_CAPITAL}){{0,8}}(?:,?\s+and\s+{_CAPITAL})?)",
    "thing": rf"(?P<thing>{_THING})",
    "short": rf"(?P<short>{_SHORT})",
    "clause": rf"(?P<clause>{_CLAUSE})",
    "number": r"(?P<number>\d{1,3})",
    "word": r"(?P<word>\w+)",
    "job": rf"(?P<job>(?:[\w-]+\s+){{0,3}}{_any(vocabulary.JOBS)})",
    "pet": rf"(?P<pet>{_any(vocabulary.PETS)}s?)",
    "diet": rf"(?P<diet>{_any(vocabulary.DIETS)})",
    "food": rf"(?P<food>{_any(vocabulary.FOODS)})",
    "medicine": rf"(?P<medicine>{_any(vocabulary.MEDICINES)})",
    "play": rf"(?P<play>{_any(vocabulary.PLAYS)}(?:(?:,|,?\s+and|\s+or)\s+{_any(vocabulary.PLAYS)})*)",
    "children": rf"(?P<children>{_any(vocabulary.CHILDREN)})",
    "count": rf"(?P<count>{_any(vocabulary.COUNTS)})",
    "many": rf"(?P<many>{_any([count for count in vocabulary.COUNTS if count not in ('a', 'no')])})",
    "phone": r"(?P<phone>\+?\d[\d /()-]{4,18}\d)",
    "amount": r"(?P<amount>[$€£]?\d(?:[\d.,]*\d)?(?:\s?(?:lakh|crore|thousand|million|billion)\b)?(?:\s?(?:[$€£]|[a-z]{3,10}\b(?=\s*(?:[^\w\s]|$|an?\b|per\b|each\b|every\b|now\b))))?)",
    "attribute": rf"(?P<attribute>{_any(vocabulary.ATTRIBUTES)})",
}
#: A subject such as `my sister`, `my sister Anna` or `my sister's husband`.
_RELATION = late_pattern(
    rf"^(?:[Mm]y|[Oo]ur)\s+(?:\w+\s+)?(?P<relation>(?:{_RELATIONS})(?:'s\s+(?:\w+\s+)?(?:{_RELATIONS}))?)(?:,?\s+(?P<name>[A-ZÀ-Þ].*))?$"
)
#: The subject of a statement, with adverbs after it.
WHO = late_pattern(
    rf"(?P<who>(?:I|[Ww]e)\b|(?:[Mm]y|[Oo]ur)\s+(?:\w+\s+)?(?:{_RELATIONS})(?:'s\s+(?:\w+\s+)?(?:{_RELATIONS}))?\b(?:,?\s+{_NAME},?)?|{_NAME})"
    rf"(?:\s+(?:{_ADVERBS})\b)*\s+"
)
#: A word and the signs after it.
_WORD_AND_SIGNS = late_pattern(r"(?<!\w)(\w++)(\W++)")
#: Signs after which a statement may begin.
_CLAUSE_SIGNS = late_pattern(r"[,;:(–—]|-\s|\s-")
#: Words after which a statement may begin.
_CONNECTIVES = frozenset(
    "and but so because since that then well yes yeah yep oh also anyway hey hi hello way btw fyi fact course actually maybe perhaps "
    "probably think guess believe suppose apparently know plus though where when while after yesterday today recently lately "
    "nowadays ago".split()
)
#: Words after which one more word may precede it: `last week I …`, `in 2019 I …`.
_BEFORE_TIME = frozenset("last this these past earlier in since from starting next as".split())
_PART = late_pattern(r"\{(\w+)\}|\[(\w+)\]|\((?!\?)|\s+")
#: Endings of verb forms and adverbs that begin a sentence and are not names: `Looks like …`, `Winning must …`.
_VERBAL = late_pattern(r"(?:ing|ed|ly|s)$")
_PLACEHOLDER = late_pattern(r"\{(\w+)\}")

Kind = Literal["fact", "preference"]

#: Verbs of predicates whose plural is not the verb without its `s`.
_PLURALS = {"has": "have", "is": "are", "studies": "study"}


class Rule(Struct, frozen=True, kw_only=True):
    """A compiled pattern and the statement that a match means."""

    kind: Kind
    #: Matched at the beginning of a clause, or after the subject.
    pattern: re.Pattern[str]
    #: Whether the pattern begins with the placeholder {who}.
    has_subject: bool
    #: The predicate of a fact, which may have placeholders, or the value of a preference, such as `likes`.
    predicate: str
    #: The object, with placeholders.
    object: str
    #: The type of a fact: fact, event, decision …
    type: str
    #: The confidence of a fact or the strength of a preference, from 0 to 1.
    confidence: float
    #: Predicate and object of a second fact, with placeholders: `a nurse at the clinic`.
    also: tuple[str, str] | None
    #: The pattern after the subject, as it is written in the file.
    first: str
    #: Number of words of the pattern; longer patterns are more specific and are tried first.
    length: int


class RuleMatch(Struct, frozen=True, kw_only=True):
    """A match of a rule in a sentence."""

    rule: Rule
    #: The words of the subject: `I`, `we`, `my sister Anna`, or a name.
    subject: str
    #: The predicate of the rule, with the placeholders filled in.
    predicate: str
    #: The object of the rule, with the placeholders filled in.
    object: str
    #: Predicate and object of a second fact; None: the rule has one.
    also: tuple[str, str] | None
    #: Position in the sentence at which the clause begins.
    start: int
    #: Position after the match.
    end: int


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, longer patterns first, because they are more specific."""
    tables: dict[str, list[dict[str, Any]]] = tomllib.loads(
        files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    )
    compiled = [*_compiled("fact", tables["fact"]), *_compiled("preference", tables["preference"])]
    return tuple(sorted(compiled, key=lambda rule: -rule.length))


@cache
def _indexes() -> tuple[RuleIndex, RuleIndex]:
    """Return the indexes of the rules after a subject, and of those at the beginning of a clause."""
    numbered = [*enumerate(rules())]
    return (
        RuleIndex((number, rule.first) for number, rule in numbered if rule.has_subject),
        RuleIndex((number, rule.first) for number, rule in numbered if not rule.has_subject),
    )


def clause_begins(sentence: str) -> list[int]:
    """Return the positions of a sentence at which a statement may begin."""
    begins = [0]
    before = ""
    for match in _WORD_AND_SIGNS.finditer(sentence):
        word = match[1].lower()
        if word in _CONNECTIVES or before in _BEFORE_TIME or (match[2] != " " and _CLAUSE_SIGNS.search(match[2])):
            begins.append(match.end())
        before = word
    return begins


def matches(sentence: str) -> Iterator[RuleMatch]:
    """Yield the matches in a sentence with expanded contractions: at each clause, the most specific rule that matches."""
    end = 0
    for start in clause_begins(sentence):
        if start < end:
            # The position lies within the last match.
            continue
        match = _match_at(sentence, start)
        if match is not None:
            end = match.end
            yield match
            if match.also is not None:
                predicate, object = match.also
                yield replace(match, predicate=predicate, object=object, also=None)


def _match_at(sentence: str, start: int) -> RuleMatch | None:
    """Return the match of the first rule that fits the clause at the position `start`."""
    subject = WHO.match(sentence, start)
    after_subject, at_clause = _indexes()
    candidates = at_clause.candidates_at(sentence, start)
    if subject is not None:
        candidates = sorted((*candidates, *after_subject.candidates_at(sentence, subject.end())))
    for rule in map(rules().__getitem__, candidates):
        match = rule.pattern.match(sentence, subject.end() if subject and rule.has_subject else start)
        if match is None:
            continue
        if subject is not None and rule.has_subject and not _agrees(subject["who"], match.group()):
            continue
        if _is_cut(match, sentence):
            return None
        groups = match.groupdict() | ({"who": subject["who"]} if subject and rule.has_subject else {})
        if all(is_name(groups[group], at_start=start == 0) for group in ("name", "who") if groups.get(group)):
            values = {name: " ".join(value.split()).strip(" ,") for name, value in groups.items() if value}
            return RuleMatch(
                rule=rule,
                subject=values.get("who", "I"),
                predicate=_filled(rule.predicate, values),
                object=_filled(rule.object, values),
                also=None if rule.also is None else (rule.also[0], _filled(rule.also[1], values)),
                start=start,
                end=match.end(),
            )
    return None


def _is_cut(match: re.Match[str], sentence: str) -> bool:
    """Return whether what is said goes on where a match ends: `I love to`, or the first ten words of a longer thing."""
    if _OPEN_END.search(match.group()):
        return True
    thing, clause = (match.groupdict().get(name) or "" for name in ("thing", "clause"))
    is_full = len(thing.split()) == _THING_WORDS_MAX or len(clause) == _CLAUSE_CHARS_MAX
    return is_full and bool(sentence[match.end() :].strip(" .!"))


def _compiled(kind: Kind, tables: list[dict[str, Any]]) -> Iterator[Rule]:
    """Yield the rules of the tables of `rules.toml`: one rule for each pattern of a table."""
    for table in tables:
        for pattern in table["say"]:
            placeholders: list[str] = [name for name in _PLACEHOLDER.findall(pattern) if name != "who"]
            yield Rule(
                kind=kind,
                pattern=late_pattern(clause_regex(pattern.removeprefix("{who} ")) + r"(?=\W|$)"),
                has_subject=pattern.startswith("{who} "),
                predicate=table["predicate"] if kind == "fact" else table["value"],
                object=table.get("object") or "{" + placeholders[-1] + "}",
                type=table.get("type", "fact"),
                confidence=table.get("confidence", table.get("strength", 0.5)),
                also=(table["also"]["predicate"], table["also"]["object"]) if "also" in table else None,
                first=pattern.removeprefix("{who} "),
                length=len(pattern.split()),
            )


def clause_regex(pattern: str) -> str:
    """Return the regular expression of a pattern of `rules.toml`; its first letter may be a capital."""

    def part(match: re.Match[str]) -> str:
        if match[1]:
            return _PLACEHOLDERS[match[1]]
        if match[2]:
            return f"(?:{match[2]})?"
        return r"\s+" if match[0].isspace() else "(?:"

    first = pattern[0]
    regex = _PART.sub(part, pattern)
    if first == "(":
        # The words of the first group may begin the sentence: `(my|our)`.
        return "(?i:" + regex.removeprefix("(?:")
    return f"[{first.upper()}{first}]" + regex[1:] if first.isalpha() and first != "I" else regex


def _filled(template: str, values: dict[str, str]) -> str:
    """Return `template` with its placeholders replaced by `values`."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), template).strip()


def _agrees(subject: str, clause: str) -> bool:
    """Return whether the verb agrees with the subject: in `Exam study is hard`, `Exam` is not the subject of `study`."""
    is_first_or_plural = subject in ("I", "we", "We") or subject.rsplit(maxsplit=1)[-1] in vocabulary.PLURAL_NOUNS
    return is_first_or_plural or clause.split(maxsplit=1)[0] not in vocabulary.FIRST_PERSON_VERBS


def is_name(subject: str, *, at_start: bool) -> bool:
    """Return whether a capitalised text is a name, and not just the first word of a sentence."""
    parts = subject.split()
    if parts[0] in ("I", "we", "We"):
        return True
    if parts[0] in ("my", "My", "our", "Our"):
        return len(parts) > 1
    verbal = at_start and len(parts) == 1 and _VERBAL.search(subject) is not None
    return parts[0] not in vocabulary.NOT_NAMES and not verbal


def relation_and_name(words: str) -> tuple[str, str] | None:
    """Return the relation and the name of a subject such as `my brother Tom`; None for another one."""
    relation = _RELATION.match(words)
    return None if relation is None or not relation["name"] else (relation["relation"].casefold(), relation["name"])


def subject_name(speaker: str, words: str) -> str:
    """Return the subject that `words` refer to: the speaker, a name, or a relative such as `Ann's sister`."""
    if words in ("I", "we", "We"):
        return speaker
    relation = _RELATION.match(words)
    if relation is None:
        return words
    return relation["name"] or f"{speaker}'s {relation['relation']}"


def predicate_of(match: RuleMatch) -> str:
    """Return the predicate of a match, in the plural after several people: `live in` of `my parents`.

    Of `we`, the facts are about the speaker.
    """
    if match.subject.casefold().split()[-1] not in vocabulary.PLURAL_NOUNS:
        return match.predicate
    verb, _, rest = match.predicate.partition(" ")
    plural = _PLURALS.get(verb) or (verb.removesuffix("s") if verb.endswith("s") else verb)
    return f"{plural} {rest}".strip()
