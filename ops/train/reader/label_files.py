"""Label files: reads the labelled sentences that the statement reader is trained and scored on.

`labels/` has sentences one by one. `chat-labels/` names in the chats of `ops/train/relevance` each clause that is worth
keeping (K), ends or changes something (E), is a standing instruction (R), withdraws one (W), or only sounds like
one of these (J); `?`: the labeller was not sure. All other clauses of these chats have no label.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from msgspec import Struct

from recollect.jobs.extraction.clauses import Clause, clauses
from recollect.jobs.extraction.spoken_sentences import sentences
from recollect.projections.text.sentences import split_sentences

FOLDER = Path(__file__).parent / "labels"
#: The conversations of the labels that have no text.
DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")
#: The beginning of the names of voices that are always held out.
HELD_OUT = "held-out "
#: One voice in this many of the others is held out, too.
_HELD_OUT_SHARE = 5


#: The label of `act` of sentences that nobody has read: surely neither a rule for an assistant nor its withdrawal.
NO_RULE = "no rule"
#: Labels that only say what a sentence does not do, and the classes that it may not have.
BARRED = {
    NO_RULE: ("rules", "unrules"),
    "no withdrawal": ("unrules",),
    "no request": ("forgets",),
    "no order": ("rules", "unrules", "forgets"),
    "some": ("none",),
}
#: Labels of other models, which are used for acts and changes.
_REQUESTS = Path(__file__).parents[1] / "forgetting"
_CHANGES = Path(__file__).parents[1] / "changes"
#: The acts of the letters of `rules-*.txt`.
_RULE_LETTERS = {"R": "rules", "W": "unrules", "N": NO_RULE}
#: One message in this many is drawn for them: of talk between people, and of the words of an assistant's users.
_DRAWN = {"person": 3, "assistant": 6}
_DRAWN_SENTENCES_MAX = 2
_DRAWN_CHARS_MAX = 300
_CHAT_LABELS = Path(__file__).parent / "chat-labels"
_CHAT_LABEL = re.compile(r"(?P<number>\d+) (?P<letter>[RWFKEJ])(?P<doubt>\??) (?P<words>.*)")
_CHATS = Path(__file__).parents[1] / "relevance"
CHAT_SENTENCE_CHARS_MAX = 400
#: In words to an assistant, what may be a rule stays out.
_MAY_BE_RULE = re.compile(
    r"\b(?:always|never|whenever|when(?:ever)? I|every|each|all|any ?more|ever|from now|only|stop|keep|call me|future|"
    r"again|prefer|rather|please|no more|don't|do not|instead)\b",
    re.IGNORECASE,
)


class LabelledPart(Struct, frozen=True, kw_only=True):
    """A part of a sentence with its labels."""

    start: int
    end: int
    #: The class of each head; one that is missing is not known.
    labels: dict[str, str]


class LabelledSentence(Struct, frozen=True, kw_only=True):
    """A sentence with its labelled parts."""

    #: The person, or the conversation, that is trained on or held out as a whole.
    voice: str
    text: str
    to_assistant: bool
    parts: tuple[LabelledPart, ...]

    @property
    def is_held_out(self) -> bool:
        """Return whether no weights are trained on it."""
        return is_held_out(self.voice)


def labelled_sentences(origin: str = "") -> Iterator[LabelledSentence]:
    """Yield the labelled sentences; those of given conversations only where the conversations are.

    Parameters:
        origin: `own` or `given`, with which the names of the files begin; empty for all.
    """
    for path in sorted(FOLDER.glob(f"{origin}*.jsonl")):
        if path.name.startswith("given") and not DATA.is_dir():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            yield _sentence(json.loads(line))


def drawn_sentences() -> Iterator[LabelledSentence]:
    """Yield sentences of the given conversations, if any, that are not rules, by a fixed draw."""
    for path in sorted(DATA.rglob("*.jsonl")) + sorted(DATA.glob("*-*.json")):
        to = "assistant" if path.name.startswith(("beam", "realmem")) else "person"
        texts = _texts(path.name)
        for id, text in texts.items():
            if crc32(id.encode()) % _DRAWN[to] or id in _answers(path.name):
                continue
            voice = id.rpartition(":")[0] if path.suffix == ".jsonl" else path.stem
            for sentence in sentences(text)[:_DRAWN_SENTENCES_MAX]:
                said = sentence.said[:_DRAWN_CHARS_MAX]
                if to == "person" or _MAY_BE_RULE.search(said) is None:
                    part = LabelledPart(start=0, end=len(said), labels={"act": NO_RULE})
                    yield LabelledSentence(voice=voice, text=said, to_assistant=True, parts=(part,))


def requests() -> Iterator[LabelledSentence]:
    """Yield the requests to forget of `ops/train/forgetting`, and the sentences that are not requests."""
    for path in sorted(_REQUESTS.glob("labels-*.jsonl")):
        voice = HELD_OUT if path.stem.endswith("heldout") else ""
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for text, _, *place in row["ask"]:
                asking = split_sentences(text)[place[0] if place else 0]
                yield _whole(voice + row["voice"], asking, {"act": "forgets"})
            for text in row["none"]:
                yield _whole(voice + row["voice"], text, {"act": "no request"})


def rules() -> Iterator[LabelledSentence]:
    """Yield the sentences of `labels/rules-*.txt`: rules for an assistant, withdrawals of them, and what is neither."""
    for path in sorted(FOLDER.glob("rules-*.txt")):
        held_out, voice = HELD_OUT if path.stem.endswith("heldout") else "", ""
        for line in path.read_text(encoding="utf-8").splitlines():
            letter, _, text = line.partition("|")
            if line.startswith("# voice: "):
                voice = line.removeprefix("# voice: ")
            elif text:
                yield _whole(held_out + voice, text, {"act": _RULE_LETTERS[letter]})


def changes() -> Iterator[LabelledSentence]:
    """Yield the sentences of `ops/train/changes` with what they change; those that change a rule are one, or end it."""
    sys.path.append(str(_CHANGES))
    read: Any = import_module("labels").read_scenarios
    for folder, held_out in (("labels", ""), ("held-out", HELD_OUT)):
        for sentence in read(_CHANGES / folder):
            has_rules = any(statement.kind == "rule" for statement in sentence.statements)
            if sentence.change != "repeats":
                labels = _labels_of_change(sentence.change, is_rule=sentence.kind == "rule", has_rules=has_rules)
                yield _whole(held_out + sentence.voice, sentence.text, labels)


#: The labels of a message of a chat: letter, whether its reader doubts, words.
ChatLabels = list[tuple[str, bool, str]]


def chat_labels() -> dict[str, ChatLabels]:
    """Return the labels of chats by the id of the message, as `labelled_chats` has it."""
    labels: defaultdict[str, ChatLabels] = defaultdict(list)
    chat = ""
    for file in sorted(_CHAT_LABELS.glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                chat = line.removeprefix("## ")
            elif match := _CHAT_LABEL.fullmatch(line):
                labels[f"{chat}:{match['number']}"].append((match["letter"], bool(match["doubt"]), match["words"]))
    return labels


def chats() -> list[Any]:
    """Return the chats of `ops/train/relevance`."""
    sys.path.append(str(_CHATS))
    read: Any = import_module("labelled_chats").read_chats
    return read()


def is_held_out(voice: str) -> bool:
    """Return whether a voice, or a chat, is held out as a whole."""
    return voice.startswith(HELD_OUT) or crc32(voice.encode()) % _HELD_OUT_SHARE == 0


def chat_sentences() -> Iterator[LabelledSentence]:
    """Yield the sentences of people in the labelled chats; without clauses with a doubtful label."""
    labels = chat_labels()
    for chat in chats():
        for event in chat.events:
            if event["payload"]["role"] != "user":
                continue
            for sentence in sentences(event["payload"]["text"]):
                said = sentence.said[:CHAT_SENTENCE_CHARS_MAX]
                parts = [
                    LabelledPart(start=clause.start, end=clause.end, labels=found)
                    for clause in clauses(said)
                    if (found := _labels_of_clause(said, clause, labels[event["id"]])) is not None
                ]
                if parts:
                    yield LabelledSentence(voice=chat.name, text=said, to_assistant=True, parts=tuple(parts))


def _labels_of_clause(said: str, clause: Clause, labels: ChatLabels) -> dict[str, str] | None:
    """Return the labels of a clause of a sentence in a chat; None if its reader doubts."""
    shared = [it for it in labels if _shares(said, clause, it[2])]
    if any(doubts for _, doubts, _ in shared):
        return None
    letters = {letter for letter, _, _ in shared}
    if "R" in letters:
        return {"keep": "no", "act": "rules"}
    change = "some" if "E" in letters else "none"
    return {"keep": "yes" if letters & {"K", "E"} else "no", "act": "no order", "change": change}


def _shares(said: str, clause: Clause, words: str) -> bool:
    """Return whether words that a label quotes have half of a clause, or are half in it."""
    start = said.find(words)
    if start < 0:
        start, words = 0, said if said in words else ""
    shared = min(clause.end, start + len(words)) - max(clause.start, start)
    return 2 * shared > min(clause.end - clause.start, len(words)) > 0


def _labels_of_change(change: str, *, is_rule: bool, has_rules: bool) -> dict[str, str]:
    if change == "none":
        return {"change": "none"} | ({"act": "no withdrawal"} if has_rules else {})
    if not is_rule:
        return {"change": change}
    return {"act": "unrules", "change": "ends"} if change == "ends" else {"act": "rules"}


def _whole(voice: str, text: str, labels: dict[str, str]) -> LabelledSentence:
    """Return a sentence that is one part."""
    part = LabelledPart(start=0, end=len(text), labels=labels)
    return LabelledSentence(voice=voice, text=text, to_assistant=True, parts=(part,))


def _sentence(row: dict[str, Any]) -> LabelledSentence:
    """Return the sentence of a row: its own text, or a place in a message."""
    text: str = row["text"] if "text" in row else _texts(row["file"])[row["event"]][row["start"] : row["end"]]
    parts: list[LabelledPart] = []
    after = 0
    for part in row["parts"]:
        start = part["from"] if "from" in part else text.index(part["words"], after)
        end = part["to"] if "to" in part else start + len(part["words"])
        labels = {head: str(part[head]) for head in ("act", "kind", "about", "change")}
        # Rules are found by their act; to be kept in words is for statements.
        keep = "yes" if part["keep"] and part["act"] == "states" else "no"
        parts.append(LabelledPart(start=start, end=end, labels=labels | {"keep": keep}))
        after = start
    return LabelledSentence(voice=row["voice"], text=text, to_assistant=row["to"] == "assistant", parts=tuple(parts))


@cache
def _answers(name: str) -> frozenset[str]:
    """Return the ids of the messages of assistants of a given conversation."""
    path = next(DATA.rglob(Path(name).name))
    events: list[Any] = [] if path.suffix == ".jsonl" else json.loads(path.read_text(encoding="utf-8"))["events"]
    return frozenset(item["id"] for item in events if item["payload"].get("role") == "assistant")


@cache
def _texts(name: str) -> dict[str, str]:
    """Return the texts of the messages of a given conversation or collection, by id."""
    path = next(DATA.rglob(Path(name).name))
    if path.suffix == ".jsonl":
        dialogues = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {
            f"{dialogue['name']}:{number}": turn["text"]
            for dialogue in dialogues
            for number, turn in enumerate(dialogue["turns"])
        }
    events = json.loads(path.read_text(encoding="utf-8"))["events"]
    return {item["id"]: item["payload"]["text"] for item in events if "text" in item["payload"]}
