"""Language tables: compiles the patterns of `de.toml`, `es.toml` … for the sentences of one language.

A table has the shape of `rules.toml`, with these differences:

    <wohne|wohnen/wohnt>   the verb: forms of the first person, a slash, forms of the third person. The subject comes
                           before it and is not written. A pattern without a verb is about the speaker.
    {whose}                a relative, such as `meiner Schwester`, whom the statement is about
    {gap}                  up to four words that the statement leaves out
    {short=asthma|…}       a placeholder with its own words

Letters are compared without case and accents; `ä` also matches `ae`, `ß` also `ss`.

Chinese and Japanese patterns are compared with a whole clause and have no spaces.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from recollect.projections.text.folding import folded_pattern, lookup_key
from recollect.projections.text.sentence_language import Language

RuleKind = Literal["fact", "preference", "ending", "instruction", "correction"]

#: A word of a phrase, folded.
_TOKEN = r"[^\s,;:!?()\"<>|]{1,60}"
_WHITE = r"\s+"
#: Words between the verb and what belongs to it, at most.
_ADVERBS_MAX = 3
_PART = re.compile(
    r"<(?P<first>[^/<>]*)/(?P<third>[^<>]*)>|\{(?P<placeholder>[a-z]\w*)(?:=(?P<own>(?:[^{}]|\{\w*(?:,\d*)?\})*))?\}"
    r"|(?P<space>\s+)(?P<optional>\?)?|(?P<literal>(?:[^<{\s]|\{\d*(?:,\d*)?\}|(?<=\?)<[=!])+)"
)
_PLACEHOLDER = re.compile(r"\{([a-z]\w*)(?:=(?:[^{}]|\{\w*(?:,\d*)?\})*)?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRule:
    """A pattern of a table and the statement that it stands for."""

    kind: RuleKind
    #: After a subject in the first person; for patterns without a verb, at the beginning of a clause.
    first: re.Pattern[str]
    #: Without a subject, where the verb shows the first person; None: the pattern needs a subject.
    dropped: re.Pattern[str] | None
    #: After a subject in the third person; None for patterns without a verb.
    third: re.Pattern[str] | None
    #: Whether a name may be the subject, and not only a relative: German nouns look like names.
    names: bool
    #: Whether the object must begin with a capital: `soy Lucía` is a name, `soy feliz` is none.
    capital: bool
    #: The predicate of a fact, the value of a preference, or the topic of an instruction.
    predicate: str
    #: The object, with placeholders.
    object: str
    #: The type of a fact.
    type: str
    #: The confidence of a fact or the strength of a preference.
    confidence: float
    #: Whether the fact is no longer valid.
    ended: bool
    #: Predicate and object of a second fact, with placeholders.
    also: tuple[str, str] | None
    #: What an ending ends, as in `rules.toml`.
    ends: tuple[str, ...]
    types: tuple[str, ...]
    about: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTable:
    """The table of a language."""

    language: Language
    is_spaced: bool
    #: Whether a verb without a subject is in the first person anywhere in a sentence, and not only at its beginning.
    drops_anywhere: bool
    #: The rules of facts, preferences and endings, in the order of the table: the first one that matches counts.
    rules: tuple[LanguageRule, ...]
    #: The rules of instructions and corrections, which are about the whole sentence.
    sentence_rules: tuple[LanguageRule, ...]
    #: English relations by the folded word of the language, such as `schwester`: sister.
    relations: dict[str, str]
    #: English words of what people have favourites of, by the folded word.
    favourites: dict[str, str]
    #: Changes of word order, each with the order of its groups.
    rewrites: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    #: Where a clause begins, and the words before its subject.
    begin: re.Pattern[str]
    opener: re.Pattern[str]
    #: Subjects, each with a space or a particle after it.
    first_person: re.Pattern[str]
    relative: re.Pattern[str]
    pronoun: re.Pattern[str]
    #: The separator of lists, and words before an element: `ein bisschen Polnisch`.
    separator: re.Pattern[str]
    qualifier: re.Pattern[str]
    #: Sentences that state nothing, and words that lower the confidence.
    question: re.Pattern[str]
    hypothetical: re.Pattern[str]
    doubt: re.Pattern[str]
    joke: re.Pattern[str]
    #: The sign of a topic that is no person: Japanese は.
    topic: re.Pattern[str]
    #: Objects that name nothing.
    empty: re.Pattern[str]
    #: What begins a capitalised word that is no name.
    not_names: frozenset[str]


@cache
def language_table(language: Language) -> LanguageTable:
    """Return the table of a language, compiled once."""
    toml = tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text(encoding="utf-8"))
    return _compiled_table(language, toml)


def _compiled_table(language: Language, toml: dict[str, Any]) -> LanguageTable:
    """Return the compiled table of a TOML document."""
    words: dict[str, str] = {name: " ".join(text.split()) for name, text in toml["words"].items()}
    is_spaced = language not in ("zh", "ja")
    relations = _meanings(toml["relations"])
    placeholders = _spaced_placeholders(words) if is_spaced else _unspaced_placeholders(words["no_object"])
    listed = {name: folded_pattern(" ".join(text.split())) for name, text in toml["placeholders"].items()}
    for repeated in ("language", "play"):
        listed[repeated] = _list_of(listed[repeated], folded_pattern(words["qualifier"]), is_spaced=is_spaced)
    placeholders |= {name: f"(?P<{name}>{text})" for name, text in listed.items()}
    related = "|".join(sorted(map(folded_pattern, relations), key=len, reverse=True))
    placeholders["whose"] = folded_pattern(words["whose"]).replace("@relation", f"(?P<whose>{related})")

    def compiled(field: str) -> re.Pattern[str]:
        return _compiled(folded_pattern(words[field]).replace("@relation", f"(?P<relation>{related})"))

    rewrites = tuple((_compiled(folded_pattern(row["from"])), tuple(row["to"])) for row in toml.get("rewrite", ()))
    rules = tuple(_Compiler(placeholders, words, is_spaced=is_spaced).rules(toml))
    return LanguageTable(
        language=language,
        is_spaced=is_spaced,
        drops_anywhere=words.get("drops") == "anywhere",
        rules=tuple(rule for rule in rules if rule.kind in ("fact", "preference", "ending")),
        sentence_rules=tuple(rule for rule in rules if rule.kind in ("instruction", "correction")),
        relations={lookup_key(word): english for word, english in relations.items()},
        favourites={lookup_key(word): english for word, english in _meanings(toml.get("favourites", {})).items()},
        rewrites=rewrites,
        begin=compiled("begin"),
        opener=compiled("opener"),
        first_person=compiled("first_person"),
        relative=compiled("relative"),
        pronoun=compiled("pronoun"),
        separator=compiled("separator"),
        qualifier=compiled("qualifier"),
        question=compiled("question"),
        hypothetical=compiled("hypothetical"),
        doubt=compiled("doubt"),
        joke=compiled("joke"),
        topic=_compiled(folded_pattern(words.get("topic", "(?!)"))),
        empty=compiled("empty"),
        not_names=frozenset(words.get("not_names", "").split()),
    )


def _meanings(table: dict[str, str]) -> dict[str, str]:
    """Return the English word by each word of a table such as `sister = "schwester|sis"`."""
    return {word.strip(): english for english, listed in table.items() for word in listed.split("|")}


def _list_of(value: str, qualifier: str, *, is_spaced: bool) -> str:
    """Return the pattern of a list of a value, such as `Deutsch, Englisch und ein bisschen Polnisch`."""
    between = rf",?\s+(?:(?:{qualifier})\s+){{0,3}}" if is_spaced else rf"(?:{qualifier})"
    return rf"(?:{value})(?:{between}(?:{value})){{0,6}}"


def _spaced_placeholders(words: dict[str, str]) -> dict[str, str]:
    """Return the patterns of the placeholders that a language with spaces shares with the others."""
    stop = folded_pattern(words["stop"])
    short_stop = f"{stop}|{folded_pattern(words['preposition'])}"
    article = folded_pattern(words["no_place"])
    linking = folded_pattern(words["place_linking"])

    def phrase(stops: str, count: int, separator: str = r",?\s+") -> str:
        return rf"(?!(?:{stops})\b){_TOKEN}(?:{separator}(?!(?:{stops})\b){_TOKEN}){{0,{count}}}"

    place = rf"(?!(?:{article})\b)(?:(?:{linking})\s+)?{_TOKEN}(?:\s+(?!(?:{stop})\b)(?:(?:{linking})\s+)?(?!(?:{short_stop})\b){_TOKEN}){{0,3}}"
    return {
        "place": f"(?P<place>{place})",
        "org": rf"(?P<org>(?!(?:{words['no_org']})\b){_TOKEN}(?:\s+(?!(?:{stop})\b){_TOKEN}){{0,4}})",
        "name": rf"(?P<name>(?!(?:{short_stop})\b){_TOKEN}(?:\s+(?!(?:{short_stop})\b){_TOKEN}){{0,2}})",
        "thing": f"(?P<thing>{phrase(stop, 9)})",
        "short": f"(?P<short>{phrase(short_stop, 4, _WHITE)})",
        "clause": rf"(?P<clause>(?:(?!,?\s+(?:{folded_pattern(words['clause_stop'])})\b).){{3,160}})",
        "gap": rf"(?:(?!(?:{folded_pattern(words['negation'])})\b){_TOKEN}\s+){{0,4}}?",
        "word": r"(?P<word>\w{2,40})",
        "number": r"(?P<number>\d{1,3})",
        "phone": r"(?P<phone>\+?\d[\d /().-]{4,18}\d)",
        "email": r"(?P<email>[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4})",
        "value": rf"(?P<value>{_TOKEN}(?:\s+(?!(?:{stop})\b){_TOKEN}){{0,3}})",
    }


def _unspaced_placeholders(no_object: str) -> dict[str, str]:
    """Return the patterns of the placeholders of Chinese and Japanese: runs of characters within a clause.

    Parameters:
        no_object: characters that objects have not, such as the particle of the topic, after which one begins.
    """
    sign = rf"[^\s,;:。!?()\"「」『』{no_object}]"
    wide = rf"[^,;:。!?\"「」{no_object}]"
    return {
        "place": rf"(?P<place>{sign}{{1,20}}?)",
        "org": rf"(?P<org>{sign}(?:{wide}{{0,30}}?{sign})?)",
        "name": rf"(?P<name>[\"「『]?{sign}{{1,16}}?[\"」』]?)",
        "thing": rf"(?P<thing>{wide}{{1,30}}?)",
        "short": rf"(?P<short>{sign}{{1,16}}?)",
        "clause": r"(?P<clause>[^;。!?\"]{2,60}?)",
        "gap": rf"{sign}{{0,8}}?",
        "word": rf"(?P<word>{sign}{{1,8}}?)",
        "number": r"(?P<number>\d{1,3}|[一二三四五六七八九十]{1,3})",
        "phone": r"(?P<phone>\+?\d[\d ()-]{5,18}\d)",
        "email": r"(?P<email>[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4})",
        "value": rf"(?P<value>{sign}{{1,20}}?)",
    }


class _Compiler:
    """Compiles the patterns of one language."""

    def __init__(self, placeholders: dict[str, str], words: dict[str, str], *, is_spaced: bool) -> None:
        self._placeholders = placeholders
        self._is_spaced = is_spaced
        self._adverb = folded_pattern(words["adverb"])
        #: Forms of the verb that need a subject: German `wohnen` may be the infinitive. Empty: all stand alone.
        self._needs_subject = _compiled(words.get("needs_subject", "(?!)"))
        self._drops = "drops" in words
        self._ending = folded_pattern(words.get("ending", ""))

    def rules(self, toml: dict[str, Any]) -> Iterator[LanguageRule]:
        """Yield the rules of a document in its order: one for each pattern."""
        kinds: tuple[RuleKind, ...] = ("fact", "preference", "ending", "instruction", "correction")
        for kind in kinds:
            for table in toml.get(kind, ()):
                for pattern in table["say"]:
                    yield self._rule(kind, table, pattern)

    def _rule(self, kind: RuleKind, table: dict[str, Any], pattern: str) -> LanguageRule:
        """Return the rule of a pattern."""
        has_verb = "<" in pattern
        names = [name for name in _PLACEHOLDER.findall(pattern) if name not in ("gap", "whose")]
        also = table.get("also")
        return LanguageRule(
            kind=kind,
            first=_compiled(self._regex(pattern, "first")),
            dropped=_compiled(self._regex(pattern, "dropped")) if has_verb and self._drops else None,
            third=_compiled(self._regex(pattern, "third")) if has_verb else None,
            names=table.get("names", False),
            capital=table.get("capital", False),
            predicate=str(table.get("predicate", table.get("value", table.get("topic", "")))),
            object=table.get("object") or ("{" + names[-1] + "}" if names else ""),
            type=table.get("type", "fact"),
            confidence=table.get("confidence", table.get("strength", 0.85)),
            ended=table.get("ended", False),
            also=None if also is None else (also["predicate"], also["object"]),
            ends=tuple(table.get("ends", ())),
            types=tuple(table.get("types", ())),
            about=table.get("about"),
        )

    def _regex(self, pattern: str, person: Literal["first", "dropped", "third"]) -> str:
        """Return the regular expression of a pattern for one person."""
        parts: list[str] = []
        previous_is_verb = False
        for part in _PART.finditer(pattern):
            if part["first"] is not None:
                parts.append(self._verb(part, person))
            elif part["placeholder"]:
                parts.append(self._placeholder(part["placeholder"], part["own"]))
            elif part["optional"]:
                parts.append(r"\s*")
            elif part["space"]:
                adverbs = rf"(?:\s+(?:{self._adverb})\b){{0,{_ADVERBS_MAX}}}" if previous_is_verb else ""
                parts.append(adverbs + r"\s+")
            else:
                parts.append(folded_pattern(_non_capturing(part["literal"])))
            previous_is_verb = part["first"] is not None
        return "".join(parts) + (r"(?!\w)" if self._is_spaced else self._ending)

    def _placeholder(self, name: str, own: str | None) -> str:
        """Return the pattern of a placeholder: its own, or the one of the language."""
        if own is None:
            return self._placeholders[name]
        inner = _PLACEHOLDER.sub(
            lambda match: _unnamed(self._placeholders[match[1]]), folded_pattern(_non_capturing(own))
        )
        return f"(?P<{name}>{inner})"

    def _verb(self, part: re.Match[str], person: Literal["first", "dropped", "third"]) -> str:
        """Return the forms of a verb."""
        forms = part["third" if person == "third" else "first"].split("|")
        if person == "dropped":
            forms = [form for form in forms if not self._needs_subject.search(form)]
        return "(?:" + "|".join(folded_pattern(_non_capturing(form)) for form in forms) + ")" if forms else "(?!)"


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern of a table."""
    return re.compile(pattern)


#: The beginning of a group without a sign, and of a group with a name.
_GROUP = re.compile(r"\((?!\?)")
_NAMED_GROUP = re.compile(r"^\(\?P<\w+>")


def _non_capturing(text: str) -> str:
    """Return a literal with groups that capture nothing."""
    return _GROUP.sub("(?:", text)


def _unnamed(pattern: str) -> str:
    """Return the pattern of a placeholder without its group."""
    return _NAMED_GROUP.sub("(?:", pattern)
