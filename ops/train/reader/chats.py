"""Chats: what the reader keeps of whole conversations, in which most messages have nothing that lasts.

    OMP_NUM_THREADS=1 .venv/bin/python ops/train/reader/chats.py

Prints the figures of the chats that are held out, and those of all. Takes two minutes.
"""

from __future__ import annotations

from label_files import CHAT_SENTENCE_CHARS_MAX, ChatLabels, chat_labels, chats, is_held_out

from recollect.jobs.extraction.spoken_sentences import sentences
from recollect.jobs.extraction.statements import instruction_probability, read_sentences
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import reading_embed

_THRESHOLDS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.65, 0.75, 0.85)


def main() -> None:
    """Print how many messages are kept, and how many sentences are instructions, from each probability on."""
    embedder = SentenceEmbedder()
    embedder.start()
    embed = reading_embed(embedder)
    labels = chat_labels()
    #: Whether the chat is held out, the probability, and what the message or sentence is.
    kept: list[tuple[bool, float, str]] = []
    ruled: list[tuple[bool, float, str]] = []
    for chat in chats():
        # The latest chats have no labels of what lasts.
        if not any(event["id"] in labels for event in chat.events):
            continue
        held_out = is_held_out(chat.name)
        for event in chat.events:
            said = [it.said[:CHAT_SENTENCE_CHARS_MAX] for it in sentences(event["payload"]["text"])]
            if event["payload"]["role"] != "user" or not said:
                continue
            read = read_sentences(said, to_assistant=True, embed=embed)
            of_message = labels.get(event["id"], [])
            worth = [it for it in of_message if it[0] in "KE"]
            kept.append((held_out, max(part.keep for parts in read for part in parts), _class(worth)))
            for sentence, parts in zip(said, read, strict=True):
                rules = [it for it in of_message if it[0] == "R" and (it[2] in sentence or sentence in it[2])]
                ruled.append((held_out, instruction_probability(parts), _class(rules)))
    for title, read in (("messages worth keeping", kept), ("sentences that are instructions", ruled)):
        _print(f"{title}, held out", [row[1:] for row in read if row[0]])
        _print(f"{title}, all", [row[1:] for row in read])


def _class(labels: ChatLabels) -> str:
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
