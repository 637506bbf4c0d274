"""Patterned labels: sentences and statements made of the frames of `frames.txt`, for words that people use most."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from labels import LabelledSentence, prior_of

_FRAMES = Path(__file__).parent / "frames.txt"
_SLOT = re.compile(r"\{(\w+)('?)(?:\.(\d))?\}")
_RELATIONS = {"e": "ends", "r": "replaces", "c": "corrects", "s": "repeats", "-": "none"}
#: The kinds of statements of frames whose name is not a kind.
_KINDS = {
    "pet": "relation",
    "diet": "health",
    "trip": "plan",
    "money": "possession",
    "people": "relation",
    "brother": "relation",
    "number": "possession",
    "sub": "possession",
    "tool": "work",
    "do": "rule",
}
#: Values that replace each other.
_TIMES = frozenset(("day", "date", "hour"))
_LANGUAGES, _LANGUAGE_WEIGHTS = ("en", "de", "es", "fr", "ja"), (16, 1, 1, 1, 1)
_STATEMENTS_MAX = 8
_SENTENCES = 7


@dataclass(slots=True)
class _Topic:
    """The frames of a kind."""

    kind: str
    language: str = "en"
    statements: list[str] = field(default_factory=list[str])
    sentences: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def _read() -> tuple[dict[str, list[str]], list[_Topic]]:
    lists: dict[str, list[str]] = {}
    topics: list[_Topic] = []
    for line in _FRAMES.read_text(encoding="utf-8").splitlines():
        first, _, rest = line.partition(" ")
        if first == "list":
            name, *values = rest.split("|")
            lists[name] = values
        elif first == "kind":
            kind, _, language = rest.partition(" ")
            topics.append(_Topic(kind, language or "en"))
        elif first == "=":
            topics[-1].statements.append(rest)
        elif first in _RELATIONS:
            topics[-1].sentences.setdefault(first, []).append(rest)
    return lists, topics


def patterned(count: int, seed: int) -> Iterator[LabelledSentence]:
    """Yield sentences of `count` invented people, each with their statements."""
    lists, topics = _read()
    chance = random.Random(seed)
    for person in range(count):
        speaker = chance.choice(("user", "Ann", "Sam", "Rita", "Tarek"))
        # A person speaks one language.
        language = chance.choices(_LANGUAGES, _LANGUAGE_WEIGHTS)[0]
        spoken = [topic for topic in topics if topic.language == language]
        chosen = chance.sample(spoken, chance.randint(2, min(len(spoken), _STATEMENTS_MAX)))
        values = [{name: chance.sample(words, 2) for name, words in lists.items() if len(words) > 1} for _ in chosen]
        frames = [chance.choice(topic.statements) for topic in chosen]
        statements = tuple(
            prior_of(speaker, _KINDS.get(topic.kind, topic.kind), _subject(speaker, _filled(frame, own, chance)))
            for topic, frame, own in zip(chosen, frames, values, strict=True)
        )
        for _ in range(_SENTENCES):
            place = chance.randrange(len(chosen))
            topic = chosen[place]
            group = chance.choices(
                [*topic.sentences], [{"-": 5.0, "s": 1.0, "c": 0.7}.get(name, 3.0) for name in topic.sentences]
            )[0]
            frame = chance.choice(topic.sentences[group])
            relation = _RELATIONS[group]
            if group in "rc" and not _has_value(frames[place], frame):
                if topic.kind != "brother":
                    continue
                relation = "none"
            text = _filled(frame, values[place], chance)
            yield LabelledSentence(
                voice=f"patterned {person}",
                language=language,
                before="",
                text=text[0].upper() + text[1:] if chance.random() < 0.5 else text,
                speaker=speaker,
                statements=statements,
                relations=tuple(relation if at == place else "none" for at in range(len(statements))),
                change=relation,
                kind=statements[place].kind if relation not in ("none", "repeats") else None,
            )


def _has_value(stated: str, frame: str) -> bool:
    """Return whether a statement has a value of a kind that a frame gives another one of."""
    changed = {name for name, other, _ in _SLOT.findall(frame) if other}
    values = {name for name, _, _ in _SLOT.findall(stated)}
    return not changed or bool(changed & values) or bool(changed & _TIMES and values & _TIMES)


def _subject(speaker: str, words: str) -> str:
    """Return a statement whose subject `I` is the speaker."""
    return f"{speaker} | {words.removeprefix('I | ')}" if words.startswith("I | ") else words.replace(" | ", " ")


def _filled(frame: str, values: dict[str, list[str]], chance: random.Random) -> str:
    """Return a frame with the words of its slots."""
    her = chance.choice(("his", "her"))

    def word(match: re.Match[str]) -> str:
        name, other, form = match.groups()
        if name == "her":
            return her
        if name == "who" and not other:
            return _filled(chance.choice(values["who"]), values, chance)
        forms = values[name][bool(other)].split("~")
        return _filled(forms[int(form or 0)], values, chance)

    return re.sub(r"\s+", " ", _SLOT.sub(word, frame)).strip()
