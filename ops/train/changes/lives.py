"""Lives: labelled conversations in which things change, as pairs for the training and as a measurement of the product.

    .venv/bin/python ops/train/changes/lives.py [FILES ...] [--losses]

Prints how many changes are known, how many questions about the present have the newest value first, and how many
messages are wrongly marked with a later one. `--losses` prints each change that is lost, and where; not for
`held-out.txt`.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec import Struct, field

from recollect import Recollect
from recollect.api.assembly.read_model_access import reading
from recollect.jobs.extraction import changes, extraction_job
from recollect.projections.queries.knowledge_queries import PriorStatement

FOLDER = Path(__file__).parent / "lives"
_CLAIM = re.compile(r"(?P<tag>\w+)=(?P<words>[^!]+?)(?:!(?P<relation>replaces|ends|corrects|repeats))?")
_MODEL_SECONDS_MAX = 120
_START = datetime.fromisoformat("2026-01-05T09:00:00+00:00")


class Claim(Struct, frozen=True):
    """What a message says of a thing."""

    tag: str
    words: str
    #: What it does to the claims before it; None: it states the thing.
    relation: str | None
    #: The number of the message.
    message: int


class Life(Struct):
    """A conversation."""

    voice: str
    language: str
    speaker: str
    #: Speaker, text, time and session of each message; the assistant has no speaker.
    messages: list[tuple[str | None, str, datetime, int]] = field(default_factory=list[Any])
    claims: list[Claim] = field(default_factory=list[Claim])
    #: The tag and the question.
    questions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def changes(self) -> Iterator[tuple[Claim, list[Claim]]]:
        """Yield each claim that changes a thing, with the older claims that it changes."""
        for claim in self.claims:
            if claim.relation in ("replaces", "ends", "corrects"):
                yield claim, [it for it in self.claims if it.tag == claim.tag and it.message < claim.message]


def read_lives(path: Path) -> Iterator[Life]:
    """Yield the conversations of a file."""
    for block in f"\n{path.read_text(encoding='utf-8')}".split("\nlife ")[1:]:
        head, *lines = [line for line in block.split("\n") if line]
        voice, language, speaker = head.split(" ", 2)
        life = Life(voice, language, speaker)
        at, session = _START, 0
        for line in lines:
            if line.startswith("+"):
                at, session = at + timedelta(days=int(line[1:])), session + 1
                continue
            if line.startswith("@"):
                continue
            label, _, text = line.partition(" | ")
            if label.startswith("? "):
                life.questions.append((label[2:], text))
                continue
            at += timedelta(minutes=7)
            speaker: str | None = life.speaker
            if ": " in label:
                speaker, _, label = label.partition(": ")
            for claim in label.split(", ") if label not in ("-", ">") else ():
                match = _CLAIM.fullmatch(claim)
                if match is None or match["words"].casefold() not in text.casefold():
                    raise ValueError(f"{life.voice}: {line}")
                life.claims.append(Claim(match["tag"], match["words"], match["relation"], len(life.messages)))
            life.messages.append((None if label == ">" else speaker, text, at, session))
        yield life


class Recorded(Struct):
    """What the product does with the sentences of a conversation."""

    #: The number of the message that is read.
    message: int = 0
    #: The statements compared with a sentence of a message, and the probabilities of a change.
    compared: dict[int, list[tuple[PriorStatement, float]]] = field(default_factory=dict[int, Any])


def record(memory: Recollect, life: Life) -> Recorded:
    """Append the messages of a conversation and settle after each session, as workers do."""
    recorded = Recorded()
    extract, compare = extraction_job.extract_by_rules, changes.compare

    def extracting(message: Any, before: Any, **named: Any) -> Any:
        recorded.message = int(message.event_id.rpartition(":")[2])
        yield from extract(message, before, **named)

    def comparing(*arguments: Any, **named: Any) -> Any:
        rows = compare(*arguments, **named)
        found = recorded.compared.setdefault(recorded.message, [])
        found += [(it.prior, it.probability) for it in rows]
        return rows

    with (
        patch.object(extraction_job, "extract_by_rules", extracting),
        patch.object(changes, "compare", comparing),
    ):
        for number, (speaker, text, at, session) in enumerate(life.messages):
            event = {
                "id": f"{life.voice}:{number}",
                "type": "message.added",
                "occurred_at": at.isoformat(),
                "session_id": f"{life.voice} {session}",
                "payload": {"role": "user" if speaker else "assistant", "text": text},
            }
            memory.append(life.voice, event | ({"actor": speaker} if speaker else {}))
            if number + 1 == len(life.messages) or life.messages[number + 1][3] != session:
                memory.settle(life.voice, now=at + timedelta(hours=1))
    return recorded


def _wait_for_model(memory: Recollect) -> None:
    """Load the embedding model, without which the first conversations would be read by words alone."""
    memory.parts.vectors.embedder.start()
    memory.parts.vectors.embedder.wait_ready(_MODEL_SECONDS_MAX)


def measured(memory: Recollect, clock: Clock, life: Life) -> Iterator[tuple[str, bool, str]]:
    """Yield what is measured of a conversation: the name of the figure, whether it is right, and its words."""
    recorded = record(memory, life)
    with reading(memory.parts, life.voice) as snapshot:
        later = {
            _number(event): _number(statement.source_event)
            for event, statement in snapshot.knowledge.later_statements().items()
        }
    stated: dict[int, list[str]] = {}
    for row in _all(memory, life.voice):
        for source in row["source_events"]:
            stated.setdefault(_number(source), []).append(_words(row))
    tags: dict[int, set[str]] = {}
    for claim in life.claims:
        tags.setdefault(claim.message, set()).add(claim.tag)
    for old, new in later.items():
        right = bool(tags.get(old, set()) & {it.tag for it in life.claims if it.message == new and it.relation})
        yield "marks right", right, f"{life.messages[old][1]} -> {life.messages[new][1]}"
    for claim, older in life.changes():
        last = older[-1]
        known = any(later.get(it.message, -1) >= claim.message for it in older if it.message == last.message)
        words = f"{life.messages[last.message][1]} -> {life.messages[claim.message][1]}"
        kept = _has(stated.get(last.message, []), last.words)
        compared = [p for prior, p in recorded.compared.get(claim.message, []) if _has([_prior(prior)], last.words)]
        where = "no old statement" if not kept else f"p {max(compared):.2f}" if compared else "not compared"
        where += "" if _has(stated.get(claim.message, []), claim.words) else ", no new statement"
        yield "changes known", known, f"{where}: {words}"
    for question in asked(life):
        clock.now = question.at
        items = memory.retrieve(life.voice, question.text, speaker=life.speaker, no_store=True).items
        places = {"new": len(items) + 1, "old": len(items)}
        for place, item in reversed([*enumerate(items)]):
            numbers = {_number(source) for source in item.source_events}
            for name, claims in (("new", question.new_claims), ("old", question.old_claims)):
                if any(it.message in numbers and _has([item.text], it.words) for it in claims):
                    places[name] = place
        words = "not found" if places["new"] > len(items) else f"new at {places['new']}, old at {places['old']}"
        yield "newest first", places["new"] <= places["old"], f"{words}: {question.text}"


class Question(NamedTuple):
    """A question about the present, after the last message."""

    text: str
    at: datetime
    #: What the speaker said last of the thing, and what was said before.
    new_claims: list[Claim]
    old_claims: list[Claim]
    #: The texts of their messages.
    new: frozenset[str]
    old: frozenset[str]


def asked(life: Life) -> Iterator[Question]:
    """Yield the questions of a conversation."""
    for tag, text in life.questions:
        claims = [claim for claim in life.claims if claim.tag == tag]
        new = [claim for claim in claims if claim.words == claims[-1].words]
        old = [claim for claim in claims if claim.words != claims[-1].words]
        texts = [frozenset(life.messages[it.message][1] for it in group) for group in (new, old)]
        yield Question(text, life.messages[-1][2] + timedelta(days=1), new, old, texts[0], texts[1] - texts[0])


def _number(event: str) -> int:
    return int(event.rpartition(":")[2])


def _all(memory: Recollect, namespace: str) -> Iterator[dict[str, Any]]:
    listed: Any = memory.list
    for kind in ("facts", "preferences", "relationships"):
        yield from listed(namespace, kind, limit=200)["items"]


def _words(row: dict[str, Any]) -> str:
    return " ".join(str(row.get(name) or "") for name in ("subject", "predicate", "object", "name", "value", "target"))


def _prior(prior: PriorStatement) -> str:
    return f"{prior.subject} {prior.predicate} {prior.object}"


def _has(texts: Sequence[str], words: str) -> bool:
    return any(words.casefold() in text.casefold() for text in texts)


class Clock:
    """The present time of retrievals."""

    now = _START

    def __call__(self) -> datetime:
        return self.now


def main() -> None:
    """Run the conversations and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FOLDER.glob("*.txt")))
    parser.add_argument("--losses", action="store_true", help="print what is lost")
    arguments = parser.parse_args()
    for path in arguments.files:
        total: Counter[str] = Counter()
        right: Counter[str] = Counter()
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False, clock=clock) as memory:
            _wait_for_model(memory)
            for life in read_lives(path):
                for name, is_right, words in measured(memory, clock, life):
                    total[name] += 1
                    right[name] += is_right
                    if arguments.losses and not is_right:
                        print(f"{life.voice}, {name}: {words}")
        print(path.stem, *(f"{name}: {right[name]} of {count}" for name, count in total.items()), sep="; ", flush=True)


if __name__ == "__main__":
    main()
