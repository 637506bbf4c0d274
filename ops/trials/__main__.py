"""Trials: hand-written conversations, each with questions and what their contexts must have and must lack.

`python ops/trials [FILES...]` prints passed/all by class, then the failures. The format is in `FORMAT.md`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from recollect import Recollect

CASES = Path(__file__).parent / "cases"
#: How a context shows that something newer was said about a line.
ENDED = ("(later", "(no longer true")
#: Statuses of knowledge that a context may show.
SHOWN = ("active", "stale", "superseded", "ended")
OVER = ("superseded", "ended")
#: Lists of knowledge: the field with its owner, and those with its words.
KNOWLEDGE = {
    "facts": ("subject", ("subject", "predicate", "object")),
    "relationships": ("source", ("source", "type", "target")),
    "preferences": ("subject", ("name", "value")),
}


#: Time for the embedding model to load on a busy machine.
_READY_SECONDS = 300
#: First of the failures of a case whose request was answered with candidates that have what was to be forgotten.
_UNCLEAR = "candidates"


class Message(BaseModel):
    """A turn of the conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    #: None for the assistant.
    speaker: str | None = None
    text: str
    at: AwareDatetime
    session: str


class Ask(BaseModel):
    """A question to the memory, with the checks of its context and of the knowledge in the memory."""

    model_config = ConfigDict(extra="forbid")

    query: str
    speaker: str
    #: When it is asked; a minute after the last message when None.
    at: AwareDatetime | None = None
    mode: Literal["active", "passive"] = "active"
    session: str | None = None
    has: list[str] = Field(default_factory=list[str])
    has_any: list[list[str]] = Field(default_factory=list[list[str]])
    lacks: list[str] = Field(default_factory=list[str])
    #: In the context, on no line that shows something newer, and in no knowledge that has ended: `9 April|April 9` is
    #: either of them.
    still: list[str] = Field(default_factory=list[str])
    #: Pairs of an old value and the new one: where the old one is in the context, the new one is, too.
    not_without: list[tuple[str, str]] = Field(default_factory=list[tuple[str, str]])
    no_answer: bool = False
    #: In no fact, relationship or preference.
    lacks_fact: list[str] = Field(default_factory=list[str])
    #: In none that belongs to the speaker.
    lacks_own: list[str] = Field(default_factory=list[str])
    #: In no active one: what was true and is over.
    lacks_current: list[str] = Field(default_factory=list[str])
    #: In no standing instruction of the speaker that is active.
    lacks_rule: list[str] = Field(default_factory=list[str])


class Case(BaseModel):
    """A conversation and the questions after it."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    id: str
    group: str = Field(alias="class")
    lang: str
    messages: list[Message]
    ask: list[Ask]


class Clock:
    """The present time of retrievals, set by each question."""

    def __init__(self) -> None:
        self.now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")

    def __call__(self) -> datetime:
        return self.now


def read_cases(files: Sequence[Path]) -> list[Case]:
    cases = TypeAdapter(list[Case])
    return [case for file in files for case in cases.validate_json(file.read_bytes())]


def record(memory: Recollect, case: Case, candidates: list[str]) -> datetime:
    """Append the messages; settle after each session, as workers do. Return the time of the last message.

    Parameters:
        candidates: gets what unclear requests to forget may mean.
    """
    for _, turns in groupby(case.messages, key=lambda message: message.session):
        at = case.messages[0].at
        for message in turns:
            payload = {"role": message.role, "name": message.speaker or "Bot", "text": message.text}
            event = {
                "type": "message.added",
                "session_id": message.session,
                "occurred_at": message.at.isoformat(),
                "payload": payload,
            }
            if message.role == "user" and case.group == "forget":
                _, result = memory.append_and_retrieve(case.id, event)
                candidates += [] if result is None else [item["text"].casefold() for item in result.forget_candidates]
            else:
                memory.append(case.id, event)
            at = message.at
        memory.settle(case.id, now=at + timedelta(minutes=1))
    return case.messages[-1].at


def recall(memory: Recollect, case: Case, ask: Ask) -> str:
    """Return the lines of the context, without the fence, whose tag is random, and the line of the day."""
    context = memory.retrieve(
        case.id, ask.query, speaker=ask.speaker, mode=ask.mode, session_id=ask.session, no_store=True
    ).context
    fences = ("<recalled-memory-", "</recalled-memory-", "Today: ")
    return "\n".join(line for line in context.splitlines() if not line.startswith(fences))


def context_failures(ask: Ask, context: str) -> Iterator[str]:
    text = context.casefold()
    yield from (f"lacks {part!r}" for part in ask.has if part.casefold() not in text)
    yield from (f"lacks all of {parts}" for parts in ask.has_any if not any(part.casefold() in text for part in parts))
    yield from (f"has {part!r}" for part in ask.lacks if part.casefold() in text)
    for old, new in ask.not_without:
        if old.casefold() in text and new.casefold() not in text:
            yield f"has {old!r} without {new!r}"
    for said in ask.still:
        parts = said.casefold().split("|")
        lines = [line for line in text.splitlines() if any(part in line for part in parts)]
        if not lines:
            yield f"lacks {said!r}"
        elif any(mark in line for line in lines for mark in ENDED):
            yield f"shows {said!r} as over"
    if ask.no_answer and text.strip():
        yield "is not empty"


def knowledge_failures(memory: Recollect, case: Case, ask: Ask) -> Iterator[str]:
    for name, (owner, fields) in KNOWLEDGE.items():
        for item in memory.list(case.id, name)["items"]:
            if item["status"] not in SHOWN:
                continue
            text = " ".join(str(item[field]) for field in fields)
            wrong = list(ask.lacks_fact)
            own = is_own(item.get(owner), ask.speaker)
            if own:
                wrong += ask.lacks_own
            if item["status"] == "active":
                wrong += ask.lacks_current
                wrong += ask.lacks_rule if own and item.get("standing") else []
            if item["status"] in OVER:
                wrong += [part for said in ask.still for part in said.split("|")]
            yield from (
                f"{item['status']} {name} have {part!r}: {text}" for part in wrong if part.casefold() in text.casefold()
            )


def is_own(owner: Any, speaker: str) -> bool:
    """Return whether knowledge is about the speaker; a preference without a subject is."""
    return owner is None or str(owner).casefold() in (speaker.casefold(), "user", "i", "me")


def run(memory: Recollect, clock: Clock, case: Case) -> Iterator[tuple[Ask, str, list[str]]]:
    """Yield each question of a case, its context and its failures."""
    candidates: list[str] = []
    last = record(memory, case, candidates)
    for ask in case.ask:
        clock.now = ask.at or last + timedelta(minutes=1)
        context = recall(memory, case, ask)
        failures = [*context_failures(ask, context), *knowledge_failures(memory, case, ask)]
        if failures and any(part.casefold() in text for part in ask.lacks for text in candidates):
            # Nothing was forgotten, and the caller got what may be meant, to ask the user.
            failures = [_UNCLEAR, *failures]
        yield ask, context, failures


def report(total: Mapping[str, int], passed: Mapping[str, int], unclear: Mapping[str, int]) -> str:
    """Return the counts by class, and of those not passed, how many were answered with candidates."""
    rows = [
        f"{group:15} {passed.get(group, 0):3}/{count}" + (f" and {unclear[group]} asked back" if unclear[group] else "")
        for group, count in total.items()
    ]
    return "\n".join([*rows, f"{'all':15} {sum(passed.values()):3}/{sum(total.values())}"])


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ops/trials", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of cases; all in ops/trials/cases by default")
    parser.add_argument("--failures", type=Path, help="write the failures into this file, with their contexts")
    parser.add_argument("--contexts", type=Path, help="write every context into this file")
    parser.add_argument("--only", help="run the cases of this class only")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    cases = read_cases(options.files or sorted(CASES.glob("*.json")))
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    unclear: Counter[str] = Counter()
    failures: list[str] = []
    contexts: list[tuple[bool, str]] = []
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False, clock=clock) as memory:
        # The first cases would be read by words alone.
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(_READY_SECONDS)
        for case in cases:
            if options.only not in (None, case.group):
                continue
            wrong: list[str] = []
            for ask, context, problems in run(memory, clock, case):
                wrong += [f"{ask.query!r}: {failure}" for failure in problems]
                page = "\n".join([f"## {case.id}: {ask.query}", *problems, "", context, ""])
                contexts.append((bool(problems), page))
            total[case.group] += 1
            passed[case.group] += not wrong
            unclear[case.group] += any(failure.endswith(_UNCLEAR) for failure in wrong)
            if wrong:
                failures.append(f"{case.id}: {'; '.join(wrong)}")
    print(report(total, passed, unclear), *failures, sep="\n")
    if options.failures:
        options.failures.write_text("\n".join(text for failed, text in contexts if failed), encoding="utf-8")
    if options.contexts:
        options.contexts.write_text("\n".join(text for _, text in contexts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
