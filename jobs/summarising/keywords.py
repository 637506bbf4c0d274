"""Keywords: ranks the words of texts by tf × idf."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.tokens import estimate_tokens
from recollect.projections.text.words import STOP_WORDS

_WORD = re.compile(r"\w[\w'’-]*")
#: Characters of the shortest keyword; shorter words rarely name a subject.
_CHARS_MIN = 3


def keywords(snapshot: Snapshot, texts: Sequence[str], *, tokens_max: int) -> list[str]:
    """Return the words that are frequent in `texts` and rare in the memory, by falling tf × idf.

    Parameters:
        snapshot: provides the document frequencies of its keyword index.
        tokens_max: estimated tokens of all keywords together.
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
        word_by_term = dict(stems(text))
        counts.update(word_by_term.keys())
        for term, word in word_by_term.items():
            spelling.setdefault(term, word)
    episodes = snapshot.episodes.count()
    scores = {
        # max(1, …): a word of a fact may occur in no episode.
        term: count * math.log(1 + episodes / max(1, snapshot.keywords.document_frequency(term)))
        for term, count in counts.items()
    }
    return _fitting([spelling[term] for term in sorted(scores, key=lambda term: (-scores[term], term))], tokens_max)


def _fitting(words: Iterable[str], tokens_max: int) -> list[str]:
    """Return the first words that fit in `tokens_max`."""
    chosen: list[str] = []
    for word in words:
        if estimate_tokens(" ".join([*chosen, word])) > tokens_max:
            break
        chosen.append(word)
    return chosen
