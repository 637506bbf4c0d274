"""Keyword queries: stems, postings and document frequencies of the FTS5 index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from recollect.projections.queries.records import fetch_tuples, fetch_value

#: The tokenizer of the keyword index, see search.sql.
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
_INSTANCES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.episodes_places USING fts5vocab (main, episodes_fts, 'instance')"
# One text of numbers: four times as fast as a row a place, and other threads can work meanwhile.
_PLACES = "SELECT group_concat(2 * doc + (col <> 'previous'), ' ') FROM temp.episodes_places WHERE term = ?"
_INDEXED_TEXTS = """
SELECT version, text, caption, previous FROM episodes_search WHERE version > ? AND version <= ? ORDER BY version
"""


class KeywordQueries:
    """Queries on the keyword index `episodes_fts` and its vocabulary `episodes_terms`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def stemmer(self) -> Callable[[str], list[str]]:
        """Return the function that turns a text into the stems that the index holds."""
        name, arguments = _TOKENIZER
        tokenizer: Any = self._connection.fts5_tokenizer(name, arguments)
        return lambda text: tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )

    def document_frequency(self, term: str) -> int:
        """Return how many episodes hold a stem; 0 when none does."""
        return fetch_value(self._connection, "SELECT doc FROM episodes_terms WHERE term = ?", (term,)) or 0

    def places(self, term: str) -> str:
        """Return the places of a stem as numbers with spaces between them.

        A number is twice the version of the episode, plus 1 when the place is in the episode's own text or caption
        and not in those of the episode before it. Versions rise.
        """
        self._connection.execute(_INSTANCES)
        return fetch_value(self._connection, _PLACES, (term,)) or ""

    def indexed_texts(self, after: int, through: int) -> list[tuple[int, str, str | None, str | None]]:
        """Return version, text, caption and previous episode's text of the versions after `after` up to `through`."""
        rows: list[Any] = fetch_tuples(self._connection, _INDEXED_TEXTS, (after, through))
        return rows
