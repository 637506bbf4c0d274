"""No pattern and no loop that reads text from outside takes the square of its length.

Goal: one message must not stop a process. Python holds its lock while a pattern is matched, so that every other
namespace, every time limit and every signal waits. CONTRIBUTING forbids tests of speed; this one measures growth: twice
the text may take three times the processor time of this thread at most, and a figure over it is measured again.

Method: all patterns that the modules hold, the rules of `rules.toml` included, read runs that have made patterns slow,
and runs of what the pattern itself repeats (`hostile_to`), so that a new pattern is tried with what is hostile to it.
A property test puts such pieces together at random.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import ModuleInfo, walk_packages
from typing import Any, cast

import pytest
import recollect_import
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, data, just, lists, sampled_from
from msgspec import Struct
from support.hostile import GROWTH_MAX, PIECES, Hostile, growth, hostile_texts, hostile_to, hostile_words

import recollect
from recollect.api.retrieval.understanding.fillers import addressed_names
from recollect.api.retrieval.understanding.question_extraction import extract_question
from recollect.api.retrieval.understanding.question_intent import question_intent
from recollect.events.intake.asked_codes import asked_probability
from recollect.events.intake.code_numbers import code_numbers
from recollect.events.intake.code_words import code_words
from recollect.events.intake.recalled_context import strip_recalled
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.entity_names import named_entities
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.message_kinds import is_pasted, is_role_play
from recollect.jobs.extraction.people import people
from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.extraction.rules import rules
from recollect.jobs.extraction.spoken_sentences import sentences
from recollect.jobs.summarising.extractive import summarise
from recollect.jobs.summarising.summarised_rows import plain_rows
from recollect.projections.embeddings.passages import passages
from recollect.projections.projector.predicates import canonical
from recollect.projections.queries.queried_episodes import SpokenText
from recollect.projections.text.answer_type import answer_types, counts_any
from recollect.projections.text.date_reading import read_dates
from recollect.projections.text.names import mentioned_names
from recollect.projections.text.prompt_fence import single_line
from recollect.projections.text.question_times import question_times
from recollect.projections.text.segments import compound_tails, search_segments
from recollect.projections.text.text_flags import text_flags
from recollect.projections.text.words import content_words

_NOW = datetime(2026, 3, 5, tzinfo=UTC)
_LATE = type(late_pattern(""))
#: Groups that the patterns are tried in, so that a failure is found soon and processes can share them.
_GROUPS = 8
#: Measurements of a slow pattern, one of which has to show that it is slow.
_TRIES = 5
#: Functions that make patterns while a program runs, of escaped text: names in a query or of an export, speakers of a
#: benchmark; and the one that makes those of `rules.toml`, which are tried.
#: `_before`, `_after`, `_rule` and `compiled` make those of a constant of their module.
_MADE_LATER = {
    "remove_names",
    "_rename_speakers",
    "_compiled",
    "compiled",
    "_before",
    "_after",
    "_names_pattern",
    "_folder_pattern",
    "_rule",
    # Makes the patterns of the others.
    "__getattr__",
}


def _modules() -> Iterator[ModuleInfo]:
    yield from walk_packages(recollect.__path__, "recollect.")
    yield from walk_packages(recollect_import.__path__, "recollect_import.")


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """Return every pattern that the modules of the packages hold, by a name to find it by, each once."""
    found: dict[re.Pattern[str], str] = {}
    for module in _modules():
        for name, value in vars(import_module(module.name)).items():
            for at, pattern in enumerate(_within(value)):
                found.setdefault(pattern, f"{module.name}.{name}[{at}]")
    for at, pattern in enumerate(_within(rules())):
        found.setdefault(pattern, f"rules.toml[{at}]")
    return {name: pattern for pattern, name in found.items()}


def _within(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, _LATE):
        late = cast("re.Pattern[str]", value)
        yield re.compile(late.pattern, late.flags)
    elif isinstance(value, re.Pattern):
        pattern = cast("re.Pattern[Any]", value)
        if isinstance(pattern.pattern, str):
            yield pattern
    elif isinstance(value, Mapping):
        yield from _all_within(chain.from_iterable(cast("Mapping[Any, Any]", value).items()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from _all_within(cast("Iterable[Any]", value))
    elif isinstance(value, Struct):
        yield from _all_within(getattr(value, name) for name in value.__struct_fields__)


def _all_within(values: Iterable[Any]) -> Iterator[re.Pattern[str]]:
    for value in values:
        yield from _within(value)


def _find(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _slow(function: Callable[[str], object], texts: Iterable[Hostile]) -> dict[Hostile, float]:
    measured = {text: growth(function, text) for text in texts}
    return {text: factor for text, factor in measured.items() if factor > GROWTH_MAX}


@pytest.mark.parametrize("group", range(_GROUPS))
def test_every_pattern_takes_at_most_three_times_as_long_for_twice_the_text(group: int) -> None:
    found = patterns()
    assert len(found) > 150
    for name in sorted(found)[group::_GROUPS]:
        pattern = found[name]
        slow = _slow(partial(_find, pattern), {*hostile_texts(), *hostile_to(pattern)})
        assert slow == {}, name


@given(data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_made_of_what_a_pattern_reads_makes_it_slow(drawn: DataObject) -> None:
    found = patterns()
    name = drawn.draw(sampled_from(sorted(found)), "pattern")
    pieces = sampled_from(sorted({piece for text in hostile_to(found[name]) for piece in text[:2] if piece}) + PIECES)
    text = Hostile(
        drawn.draw(pieces | just(""), "before"),
        "".join(drawn.draw(lists(pieces, min_size=1, max_size=3), "unit")),
        drawn.draw(pieces | just("\0"), "after"),
    )
    assert growth(partial(_find, found[name]), text) <= GROWTH_MAX


def test_a_quadratic_pattern_is_found() -> None:
    for slow in (r"[.!?]+(?=\s)", r"(?:A-)+B"):
        pattern = re.compile(slow)
        find = partial(_find, pattern)
        # A busy machine can make a single measurement of the shorter text too long.
        factors = (growth(find, text, attempts=1) for _ in range(_TRIES) for text in hostile_to(pattern))
        assert any(factor > GROWTH_MAX for factor in factors), slow


def test_patterns_are_made_where_this_test_finds_them() -> None:
    """A pattern given to a function of `re` as text, or compiled within a function, would be tried by nobody."""
    for module in _modules():
        path = import_module(module.name).__file__
        assert path is not None
        for name, call in _calls_of_re(Path(path)):
            assert name in _MADE_LATER, f"{path}:{call.lineno}: make the pattern a constant of its module"


def _calls_of_re(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that make a pattern within a function, with the name of that function."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    module = call.func.value
                    if isinstance(module, ast.Name) and module.id == "re" and call.func.attr != "escape":
                        yield function.name, call
                elif isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "late_pattern":
                    yield function.name, call


def _read(text: str) -> None:
    # Without its time limit, which would hide what is slow.
    for _ in extract_by_rules(IncomingMessage("e1", "s1", "Ann", text, _NOW, False), [], seconds_max=1_000):
        pass


_READERS: dict[str, Callable[[str], object]] = {
    "extraction": _read,
    "excerpt": excerpt,
    "addressed names": addressed_names,
    "dates": lambda text: read_dates(text, _NOW),
    "foreign dates": lambda text: [read_dates(text, _NOW, language=name) for name in ("de", "es", "fr", "zh", "ja")],
    "times": lambda text: question_times(text, _NOW),
    "sentences": sentences,
    "clauses": clauses,
    "code numbers": lambda text: [*code_numbers(text)],
    "code words": lambda text: [*code_words(text)],
    "asked codes": lambda text: asked_probability("gate?", f"{text} 4471 {text}", len(text) + 1, len(text) + 5),
    "fence": strip_recalled,
    "one line": single_line,
    "names": mentioned_names,
    "entities": lambda text: list(named_entities(text)),
    "people": lambda text: list(people("Ann", text)),
    "segments": search_segments,
    "compounds": lambda text: compound_tails(text[:40]),
    "passages": lambda text: [*passages(SpokenText("Ann", text, None), [text])],
    "words": content_words,
    "predicates": canonical,
    "summary": lambda text: summarise(plain_rows([text]), [None], 60),
    "long summary": lambda text: summarise(plain_rows([text]), [None], len(text) // 8),
    "question": extract_question,
    "cues": lambda text: question_intent(extract_question(text)),
    "text_flags": lambda text: text_flags(text, 127),
    "answer types": lambda text: answer_types(text, 255),
    "counted things": lambda text: counts_any(text, frozenset(("egg",))),
    "instructions": lambda text: (is_pasted(text), is_role_play(text)),
}


@pytest.mark.parametrize("reader", _READERS)
def test_what_reads_text_from_outside_takes_at_most_three_times_as_long_for_twice_the_text(reader: str) -> None:
    assert _slow(_READERS[reader], hostile_words()) == {}
