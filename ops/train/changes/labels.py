"""Labelled changes: older statements of a speaker, and new sentences with what each does to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.statement_lines import fact_line

FOLDER = Path(__file__).parent / "labels"
_STATEMENT = re.compile(r"(?P<name>(?P<kind>[a-z]+)\d+): (?P<words>.+)")
_RELATION = re.compile(r"(?P<relation>repeats|replaces|ends|corrects) (?P<name>[a-z]+\d+)")


class LabelledSentence(Struct, frozen=True, kw_only=True):
    """A new sentence with the older statements of its speaker."""

    voice: str
    language: str
    #: The sentences of the message before it, then the sentence.
    before: str
    text: str
    speaker: str
    statements: tuple[PriorStatement, ...]
    #: What it does to each statement.
    relations: tuple[str, ...]
    #: What it does at all, also to a statement that is not among the older ones.
    change: str
    #: The kind of what it changes; of what it states when it changes nothing. None: not labelled.
    kind: str | None


def read_scenarios(folder: Path = FOLDER) -> Iterator[LabelledSentence]:
    """Yield the sentences of the scenarios; English and other languages."""
    for path in sorted(folder.glob("*.txt")):
        for block in f"\n{path.read_text(encoding='utf-8')}".split("\nvoice ")[1:]:
            yield from _scenario(block)


def _scenario(block: str) -> Iterator[LabelledSentence]:
    """Yield the sentences of one speaker."""
    head, *lines = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
    voice, language, speaker = head.split(" ", 2)
    statements: dict[str, PriorStatement] = {}
    for line in lines:
        if stated := _STATEMENT.fullmatch(line):
            statements[stated["name"]] = prior_of(speaker, stated["kind"], stated["words"])
            continue
        labels, _, words = line.partition(" > ")
        relations = {match["name"]: match["relation"] for match in _RELATION.finditer(labels)}
        if not words or (labels != "-" and not relations) or not relations.keys() <= statements.keys():
            raise ValueError(f"not a labelled sentence: {voice}: {line}")
        before, _, text = words.rpartition(" || ")
        yield LabelledSentence(
            voice=voice,
            language=language,
            before=before,
            text=text,
            speaker=speaker,
            statements=tuple(statements.values()),
            relations=tuple(relations.get(name, "none") for name in statements),
            change=next(iter(relations.values()), "none"),
            kind=next((statements[name].kind for name in relations), None),
        )


def prior_of(speaker: str, kind: str, words: str) -> PriorStatement:
    """Return a statement: `subject | predicate | object`, a rule, or the words of the speaker.

    Its texts are those of the product, so that the vectors are the same.
    """
    if kind == "rule" and " | " not in words:
        return PriorStatement(
            session_id=None,
            speaker=speaker,
            subject="",
            predicate="",
            object=words,
            kind=kind,
            text=words,
            is_preference=True,
        )
    subject, predicate, object = words.split(" | ") if " | " in words else (speaker, SAYS, words)
    text = fact_line(subject, predicate, object)
    return PriorStatement(
        session_id=None, speaker=speaker, subject=subject, predicate=predicate, object=object, kind=kind, text=text
    )
