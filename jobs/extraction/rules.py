"""The rules of `rules.toml`, compiled: what a sentence says, about whom, and how sure that is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from recollect.jobs.extraction import vocabulary as words

_CAPITAL = r"(?!I\b)[A-ZÀ-ÖØ-Þ][\w'&-]{0,100}(?:\.[A-Z]\.)?"
_NAME = rf"{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}}"
_PLACE = rf"(?:the\s+)?{_CAPITAL}(?:(?:,|\s+(?:of|de|da|do|del|la|the|on|upon|and))?\s+{_CAPITAL}){{0,3}}"
_RELATIONS = "|".join(words.RELATIONS)
_ADVERBS = "|".join(words.ADVERBS)
#: Where a phrase ends.
_STOP = (
    r"(?:but|because|so|which|that|who|when|while|since|if|although|though|whenever|where|until|before|after|lately|"
    r"'cause|these days|right now|at the moment|anymore|too|as well|(?:and|,)\s+(?:I|we|he|she|it|they|you|my|our|then|also|not)\b)"
)
_TOKEN = r"[\w$€£%&+#@./'-]+"
_THING = rf"(?!{_STOP}\b){_TOKEN}(?:,?\s+(?!{_STOP}\b){_TOKEN}){{0,9}}"
_CLAUSE = r"(?:(?!\s+(?:but|because)\b|,\s+(?:but|so|and I|and we)\b).){3,160}"


_SHORT_STOP = _STOP[:-1] + "|at|in|for|with|on|from|near|around|by|to)"
_SHORT = rf"(?!{_SHORT_STOP}\b){_TOKEN}(?:\s+(?!{_SHORT_STOP}\b){_TOKEN}){{0,4}}"


def _any(values: Sequence[str]) -> str:
    return "(?:" + "|".join(sorted(values, key=len, reverse=True)) + ")"


def _several(values: Sequence[str]) -> str:
    one = _any(values)
    return rf"{one}(?:(?:,|,?\s+and|\s+or)\s+{one})*"


_PLACEHOLDERS = {
    "place": rf"(?P<place>{_PLACE})",
    "org": rf"(?P<org>{_PLACE}|(?:a|an|the|my)\s+{_TOKEN}(?:\s+(?!{_STOP}\b){_TOKEN}){{0,3}})",
    "name": rf"(?P<name>{_NAME})",
    "thing": rf"(?P<thing>{_THING})",
    "short": rf"(?P<short>{_SHORT})",
    "clause": rf"(?P<clause>{_CLAUSE})",
    "number": r"(?P<number>\d{1,3})",
    "word": r"(?P<word>\w+)",
    "job": rf"(?P<job>(?:[\w-]+\s+){{0,3}}{_any(words.JOBS)})",
    "pet": rf"(?P<pet>{_any(words.PETS)}s?)",
    "diet": rf"(?P<diet>{_any(words.DIETS)})",
    "language": rf"(?P<language>{_several(words.LANGUAGES)})",
    "play": rf"(?P<play>{_several(words.PLAYS)})",
    "children": rf"(?P<children>{_any(words.CHILDREN)})",
    "count": rf"(?P<count>{_any(words.COUNTS)})",
    "email": r"(?P<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
    "verb": rf"(?P<verb>{_any([verb.strip() for verb in words.EVENT_VERBS])})",
}
#: Whom a statement is about, with adverbs behind.
_WHO = re.compile(
    rf"(?P<who>(?:I|[Ww]e)\b|[Mm]y\s+(?:\w+\s+)?(?:{_RELATIONS})\b(?:,?\s+{_NAME},?)?|{_NAME})"
    rf"(?:\s+(?:{_ADVERBS})\b)*\s+"
)
#: Where a statement may begin.
_BEGIN = re.compile(
    r"^|(?<=[,;:(])\s*|\b(?i:and|but|so|because|since|that|then|well|yes|yeah|oh|also|anyway|hey|hi|hello|by the way|"
    r"btw|fyi|in fact|of course|actually|maybe|perhaps|probably|I think|I guess|I believe|I suppose|apparently),?\s+"
)
_PART = re.compile(r"\{(\w+)\}|\[(\w+)\]|\((?!\?)|\s+")
#: Endings of words that begin a sentence and name nobody: `Looks like …`, `Winning must …`.
_VERBAL = re.compile(r"(?:ing|ed|ly|s)$")
_FINAL = re.compile(r"\{(\w+)\}")

Kind = Literal["fact", "preference"]


class Rule(NamedTuple):
    """One pattern and what it says."""

    kind: Kind
    #: Compared at the beginning of a clause, or behind whom it is about.
    pattern: re.Pattern[str]
    about_who: bool
    #: Of a fact: the predicate, maybe with placeholders; of a preference: what is thought of the object.
    says: str
    #: The object, with placeholders.
    object: str
    #: fact, event, decision …
    type: str
    confidence: float
    #: Whether it is over.
    ended: bool
    #: Words of the pattern; a longer one knows more.
    length: int


class RuleMatch(NamedTuple):
    """What a rule read in a sentence."""

    rule: Rule
    #: `I`, `we`, `my sister Anna`, a name.
    who: str
    says: str
    object: str
    start: int
    end: int


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules, those that know more first."""
    tables: dict[str, list[dict[str, Any]]] = tomllib.loads(
        files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
    )
    found = [*_compiled("fact", tables["fact"]), *_compiled("preference", tables["preference"])]
    return tuple(sorted(found, key=lambda rule: -rule.length))


def matches(sentence: str) -> Iterator[RuleMatch]:
    """Yield what the rules read in a sentence that is spelled out: at each clause, the rule that knows most."""
    end = 0
    for begin in _BEGIN.finditer(sentence):
        start = begin.end()
        if start < end:
            # Within what was read already.
            continue
        found = _at(sentence, start)
        if found is not None:
            end = found.end
            yield found


def _at(sentence: str, start: int) -> RuleMatch | None:
    """Return what the first rule that fits reads in the clause that begins at `start`."""
    who = _WHO.match(sentence, start)
    for rule in rules():
        if rule.about_who and who is None:
            continue
        match = rule.pattern.match(sentence, who.end() if who and rule.about_who else start)
        if match is None:
            continue
        if who is not None and rule.about_who and not _agrees(who["who"], match.group()):
            continue
        named = match.groupdict() | ({"who": who["who"]} if who and rule.about_who else {})
        if all(_is_name(named[group], at_start=start == 0) for group in ("name", "who") if named.get(group)):
            values = {name: " ".join(value.split()).strip(" ,") for name, value in named.items() if value}
            return RuleMatch(
                rule,
                values.get("who", "I"),
                _filled(rule.says, values),
                _filled(rule.object, values),
                start,
                match.end(),
            )
    return None


def _compiled(kind: Kind, tables: list[dict[str, Any]]) -> Iterator[Rule]:
    for table in tables:
        for say in table["say"]:
            placeholders: list[str] = [name for name in _FINAL.findall(say) if name != "who"]
            yield Rule(
                kind,
                re.compile(_regex(say.removeprefix("{who} ")) + r"(?=\W|$)"),
                say.startswith("{who} "),
                table["predicate"] if kind == "fact" else table["value"],
                table.get("object") or "{" + placeholders[-1] + "}",
                table.get("type", "fact"),
                table.get("confidence", table.get("strength", 0.5)),
                table.get("ended", False),
                len(say.split()),
            )


def _regex(say: str) -> str:
    """Translate a pattern of the table; its first letter may be a capital."""

    def part(match: re.Match[str]) -> str:
        if match[1]:
            return _PLACEHOLDERS[match[1]]
        if match[2]:
            return f"(?:{match[2]})?"
        return r"\s+" if match[0].isspace() else "(?:"

    first = say[0]
    pattern = _PART.sub(part, say)
    return f"[{first.upper()}{first}]" + pattern[1:] if first.isalpha() and first != "I" else pattern


def _filled(template: str, values: dict[str, str]) -> str:
    return _FINAL.sub(lambda match: values.get(match[1], ""), template).strip()


def _agrees(who: str, said: str) -> bool:
    """Tell whether the verb can belong to whom it is about: `Exam study is hard` says nothing of somebody called Exam."""
    return who in ("I", "we", "We") or said.split(maxsplit=1)[0] not in words.FIRST_PERSON_VERBS


def _is_name(who: str, *, at_start: bool) -> bool:
    """Tell whether a text with a capital names somebody, and is not just the first word of a sentence."""
    parts = who.split()
    if parts[0] in ("I", "we", "We"):
        return True
    if parts[0] in ("my", "My"):
        return len(parts) > 1
    verbal = at_start and len(parts) == 1 and _VERBAL.search(who) is not None
    return parts[0] not in words.NOT_NAMES and not verbal
