"""The words that say what a conversation was about, beside those of its summary."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from recollect.projections.queries.keyword_queries import KeywordQueries
from recollect.projections.text.tokens import estimate_tokens
from recollect.projections.text.words import STOP_WORDS

_WORD = re.compile(r"\w[\w'’-]*")
#: Words shorter than this say nothing about a subject.
_CHARS_MIN = 3


def keywords(connection: apsw.Connection, texts: Sequence[str], *, tokens_max: int) -> list[str]:
    """Return the words of `texts` that are rare in this memory and frequent here, best first (tf × idf).

    Parameters:
        connection: the read model; its keyword index knows how many episodes hold a word.
        tokens_max: estimated tokens of all of them together.
    """
    stem = KeywordQueries(connection).stemmer()

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
    episodes: Any = connection.execute("SELECT count(*) FROM episodes").fetchall()[0][0]
    scores = {term: count * math.log(1 + episodes / _frequency(connection, term)) for term, count in counts.items()}
    return _fitting([spelling[term] for term in sorted(scores, key=lambda term: (-scores[term], term))], tokens_max)


def _frequency(connection: apsw.Connection, term: str) -> int:
    row: Any = connection.execute("SELECT doc FROM episodes_terms WHERE term = ?", (term,)).fetchone()
    return row[0] if row else 1


def _fitting(words: Iterable[str], tokens_max: int) -> list[str]:
    chosen: list[str] = []
    for word in words:
        if estimate_tokens(" ".join([*chosen, word])) > tokens_max:
            break
        chosen.append(word)
    return chosen
