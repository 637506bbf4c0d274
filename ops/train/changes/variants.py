"""Variants of labelled sentences: the same words claimed otherwise, of another person, or beside other statements."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from labels import LabelledSentence
from msgspec.structs import replace

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import content_stems

_FRAMES = Path(__file__).parent / "variants.txt"
#: The subject of a verb in the past, which another person may have: `I sold`, `we left`.
_I = re.compile(
    r"^(?:(?:and|so|well|finally|ok),? )?(?:I|i|we|We) (?:just |finally )?(?=\w+(?:ed|ke|ld|ook|ave|uit|ft|st|id)\b)"
    r"(?!have|am|do|need|like|live|take|make)"
)
_MY = re.compile(r"\b(my|our)\b", re.IGNORECASE)


def _frames() -> dict[str, list[str]]:
    frames: dict[str, list[str]] = {}
    for line in _FRAMES.read_text(encoding="utf-8").splitlines():
        mark, _, words = line.partition(" ")
        frames.setdefault(mark, []).append(words)
    return frames


def variants(sentences: Sequence[LabelledSentence], seed: int) -> Iterator[LabelledSentence]:
    """Yield variants of the English sentences that change something, and of some that change nothing."""
    frames = _frames()
    chance = random.Random(seed)
    of_kind: dict[str, list[PriorStatement]] = {}
    for sentence in sentences:
        if sentence.language == "en":
            for prior in sentence.statements:
                of_kind.setdefault(prior.kind or "", []).append(prior)
    for sentence in sentences:
        if sentence.language != "en" or not sentence.statements:
            continue
        yield replace(sentence, text=_around(chance.choice(frames["+"]), sentence.text))
        if sentence.change in ("none", "repeats"):
            continue
        unclaimed = replace(sentence, relations=("none",) * len(sentence.relations), change="none", kind=None)
        yield replace(unclaimed, text=_around(chance.choice(frames["-"]), sentence.text))
        if subject := _I.match(sentence.text):
            words = f"{chance.choice(frames['who'])} {sentence.text[subject.end() :]}"
            words = (
                _MY.sub(chance.choice(("his", "her")), words)
                if not words.startswith("my")
                else words[:3] + _MY.sub("her", words[3:])
            )
            yield replace(unclaimed, text=words[0].upper() + words[1:] if chance.random() < 0.5 else words)
        yield from _beside_others(unclaimed, sentence, of_kind, chance)


def coexisting(sentences: Sequence[LabelledSentence], seed: int) -> Iterator[LabelledSentence]:
    """Yield each statement of a voice in words as a sentence that changes none of the others, which hold beside it."""
    frames = _frames()
    chance = random.Random(seed)
    last = {sentence.voice: sentence for sentence in sentences}
    for sentence in last.values():
        for prior in sentence.statements:
            if prior.predicate not in ("", SAYS):
                continue
            others = tuple(other for other in sentence.statements if other != prior)
            is_english_rule = prior.kind == "rule" and sentence.language == "en"
            yield replace(
                sentence,
                text=chance.choice(frames["rule"]).format(prior.object) if is_english_rule else prior.object,
                statements=others,
                relations=("none",) * len(others),
                change="none",
                kind=prior.kind,
            )


def _beside_others(
    unclaimed: LabelledSentence,
    sentence: LabelledSentence,
    of_kind: dict[str, list[PriorStatement]],
    chance: random.Random,
) -> Iterator[LabelledSentence]:
    """Yield a sentence that names its thing beside statements of other people of the same kinds."""
    targets = [p for p, r in zip(sentence.statements, sentence.relations, strict=True) if r not in ("none", "repeats")]
    stems = content_stems(sentence.text)
    if not all(stems & content_stems(target.object) for target in targets):
        return
    others: list[PriorStatement] = []
    for prior in sentence.statements:
        pool = of_kind[prior.kind or ""]
        if prior not in targets and chance.random() < 0.5:
            others.append(prior)
            continue
        other = chance.choice(pool)
        if not stems & content_stems(f"{other.predicate} {other.object}") and other.speaker != sentence.speaker:
            subject = sentence.speaker if other.subject == other.speaker else other.subject
            words = other.text.replace(other.speaker, sentence.speaker)
            others.append(replace(other, speaker=sentence.speaker, subject=subject, text=words))
    yield replace(unclaimed, statements=tuple(others), relations=("none",) * len(others))


def _around(frame: str, text: str) -> str:
    is_first = frame.startswith("{}")
    small = text if is_first or text.startswith(("I ", "I'")) else text[0].lower() + text[1:]
    return frame.format(small.rstrip(".!"))
