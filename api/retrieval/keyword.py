"""Keyword search: FTS5 over a turn, and over a turn with the one before it; plain substrings where words fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import apsw

from recollect.api.retrieval.scope import Scope

#: Words in one search: the rarest ones. A question has fewer; of a pasted text the rare words say what it is about.
_WORDS_MAX = 32
#: Patterns in one substring search; each is tried on every episode.
_PATTERNS_MAX = 12
#: Writing without spaces between words: FTS5 takes a whole run of it for one word.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f\uf900-\ufaff]+")


def turn_matches(connection: apsw.Connection, words: Sequence[str], scope: Scope, depth: int) -> list[int]:
    """Return up to `depth` episodes that hold some of `words` themselves, best first by BM25."""
    return _matches(connection, f"{{text caption}} : ({_any_of(words)})", scope, depth)


def window_matches(connection: apsw.Connection, words: Sequence[str], scope: Scope, depth: int) -> list[int]:
    """Return up to `depth` episodes that hold some of `words` themselves or in the turn before, best first by BM25."""
    return _matches(connection, _any_of(words), scope, depth)


def substring_matches(connection: apsw.Connection, words: Sequence[str], scope: Scope, depth: int) -> list[int]:
    """Return up to `depth` episodes that hold parts of `words` anywhere: most parts first, then newest."""
    patterns = _patterns(words)
    if not patterns:
        return []
    score = " + ".join(["(text LIKE ? ESCAPE '\\')"] * len(patterns))
    values: list[int | str] = [*patterns, *scope.values, depth]
    rows = connection.execute(
        f"SELECT version, {score} AS score FROM episodes WHERE score > 0 AND status = 'active'{scope.condition} "
        "ORDER BY score DESC, version DESC LIMIT ?",
        values,
    )
    return [row[0] for row in _typed(rows)]


def has_unspaced(words: Sequence[str]) -> bool:
    """Tell whether some of `words` are in a writing that has no spaces."""
    return any(_UNSPACED.search(word) for word in words)


def rarest(connection: apsw.Connection, words: Sequence[str]) -> list[str]:
    """Return at most 32 of `words`, in their order: the ones that the fewest episodes hold."""
    if len(words) <= _WORDS_MAX:
        return list(words)
    stem = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    count = "SELECT doc FROM episodes_terms WHERE term = ?"

    def frequency(word: str) -> int:
        terms: Any = stem(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
        rows = [_typed(connection.execute(count, (term,))) for term in terms]
        return max((row[0][0] for row in rows if row), default=0)

    by_frequency = {word: frequency(word) for word in words}
    # A word that no episode holds cannot find any.
    known = [word for word in words if by_frequency[word]]
    chosen = set(sorted(known, key=lambda word: by_frequency[word])[:_WORDS_MAX])
    return [word for word in words if word in chosen]


def _matches(connection: apsw.Connection, expression: str, scope: Scope, depth: int) -> list[int]:
    if scope.condition:
        rows = connection.execute(
            "SELECT episodes_fts.rowid FROM episodes_fts JOIN episodes ON version = episodes_fts.rowid "
            f"WHERE episodes_fts MATCH ?{scope.condition} ORDER BY rank, episodes_fts.rowid DESC LIMIT ?",
            (expression, *scope.values, depth),
        )
    else:
        rows = connection.execute(
            "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH ? ORDER BY rank LIMIT ?", (expression, depth)
        )
    return [row[0] for row in _typed(rows)]


def _any_of(words: Sequence[str]) -> str:
    """Return an FTS5 expression for any of `words`; quoted, so that nothing in them is an operator."""
    return " OR ".join(f'"{word}"' for word in words)


def _patterns(words: Sequence[str]) -> list[str]:
    parts: dict[str, None] = {}
    for word in words:
        runs = _UNSPACED.findall(word)
        for run in runs:
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            parts.update(dict.fromkeys(pairs))
        if not runs and len(word) >= 3:
            parts[word] = None
    escaped = (part.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") for part in parts)
    return [f"%{part}%" for part in escaped][:_PATTERNS_MAX]


def _typed(rows: Any) -> list[tuple[Any, ...]]:
    return list(rows)
