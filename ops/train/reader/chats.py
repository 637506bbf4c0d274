"""Chats: what the reader keeps of whole conversations, in which most messages say nothing that lasts.

    OMP_NUM_THREADS=1 .venv/bin/python ops/train/reader/chats.py

`chat-labels/` names in the chats of `ops/train/relevance` each clause that is worth keeping (K), ends or changes
something (E), is an instruction that stands (R), withdraws one (W), or only sounds like one of these (J); `?`: the
person who labelled it doubts. All other clauses of these chats are none. Nothing is trained on them. Takes two minutes.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.jobs.extraction.sentences import sentences
from recollect.jobs.extraction.statements import instruction_probability, read_sentences
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import reading_embed

_LABELS = Path(__file__).parent / "chat-labels"
_LABEL = re.compile(r"(?P<number>\d+) (?P<letter>[RWFKEJ])(?P<doubt>\??) (?P<words>.*)")
_SENTENCE_CHARS_MAX = 400
_THRESHOLDS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.55, 0.65, 0.75, 0.85)

#: The labels of a message: letter, whether its reader doubts, words.
Labels = list[tuple[str, bool, str]]


def read_labels() -> dict[str, Labels]:
    """Return the labels by the id of the message, as `labelled_chats` has it."""
    labels: defaultdict[str, Labels] = defaultdict(list)
    chat = ""
    for file in sorted(_LABELS.glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                chat = line.removeprefix("## ")
            elif match := _LABEL.fullmatch(line):
                labels[f"{chat}:{match['number']}"].append((match["letter"], bool(match["doubt"]), match["words"]))
    return labels


def main() -> None:
    """Print how many messages are kept, and how many sentences are instructions, from each probability on."""
    sys.path.append(str(Path(__file__).parents[1] / "relevance"))
    read_chats: Any = import_module("labelled_chats").read_chats
    embedder = SentenceEmbedder()
    embedder.start()
    embed = reading_embed(embedder)
    labels = read_labels()
    kept: list[tuple[float, str]] = []
    ruled: list[tuple[float, str]] = []
    for chat in read_chats():
        for event in chat.events:
            said = [it.said[:_SENTENCE_CHARS_MAX] for it in sentences(event["payload"]["text"])]
            if event["payload"]["role"] != "user" or not said:
                continue
            read = read_sentences(said, to_assistant=True, embed=embed)
            of_message = labels.get(event["id"], [])
            worth = [it for it in of_message if it[0] in "KE"]
            kept.append((max(part.keep for parts in read for part in parts), _class(worth)))
            for sentence, parts in zip(said, read, strict=True):
                rules = [it for it in of_message if it[0] == "R" and (it[2] in sentence or sentence in it[2])]
                ruled.append((instruction_probability(parts), _class(rules)))
    _print("messages worth keeping", kept)
    _print("sentences that are instructions", ruled)


def _class(labels: Labels) -> str:
    return "none" if not labels else "doubt" if all(doubts for _, doubts, _ in labels) else "sure"


def _print(title: str, read: list[tuple[float, str]]) -> None:
    sure = sum(kind == "sure" for _, kind in read)
    print(f"{title}: {sure} for sure of {len(read)}")
    for threshold in _THRESHOLDS:
        kinds = [kind for probability, kind in read if probability >= threshold]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("sure", "doubt", "none"))
        print(f"  from {threshold}: {counts}; {kinds.count('sure') / sure:.0%} of all")


if __name__ == "__main__":
    main()
