"""The words that say what a conversation was about, beside those of its summary."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens
from recollect.projections.text.words import STOP_WORDS

_WORD = re.compile(r"\w[\w'’-]*")
#: Words shorter than this say nothing about a subject.
_CHARS_MIN = 3


def keywords(snapshot: Snapshot, texts: Sequence[str], *, tokens_max: int) -> list[str]:
    """Return the words of `texts` that are rare in this memory and frequent here, best first (tf × idf).

    Parameters:
        snapshot: its keyword index holds the document frequencies.
        tokens_max: estimated tokens of all of them together.
    """
    stem = snapshot.keywords.stemmer()

    def stems(text: str) -> Iterable[tuple[str, str]]:
        for word in dict.fromkeys(_WORD.findall(text)):
            if len(word) >= _CHARS_MIN and word.casefold() not in STOP_WORDS:
                terms = stem(word)
                if terms:
                    yield terms[0], word

    spelling: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for text in texts:
        found = dict(stems(text))
        counts.update(found.keys())
        for term, word in found.items():
            spelling.setdefault(term, word)
    episodes = snapshot.episodes.count()
    scores = {
        # The words of a fact may be in no episode.
        term: count * math.log(1 + episodes / max(1, snapshot.keywords.document_frequency(term)))
        for term, count in counts.items()
    }
    return _fitting([spelling[term] for term in sorted(scores, key=lambda term: (-scores[term], term))], tokens_max)


def _fitting(words: Iterable[str], tokens_max: int) -> list[str]:
    chosen: list[str] = []
    for word in words:
        if estimate_tokens(" ".join([*chosen, word])) > tokens_max:
            break
        chosen.append(word)
    return chosen
