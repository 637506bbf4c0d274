"""Keyword queries: read stems, postings and document frequencies from the FTS5 index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from recollect.projections.queries.records import fetch_tuples, fetch_value

#: The tokenizer of the keyword index; the same as in search.sql.
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
# A temporary table with one row for each occurrence of a term.
_INSTANCES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.episodes_occurrences USING fts5vocab (main, episodes_fts, 'instance')"
)
# All numbers in one text: four times as fast as one row for each occurrence, and SQLite does not hold Python's lock.
_OCCURRENCES = "SELECT group_concat(2 * doc + (col <> 'previous'), ' ') FROM temp.episodes_occurrences WHERE term = ?"
# The texts that the keyword index contains.
_INDEXED_TEXTS = """
SELECT version, text, caption, previous FROM episodes_search WHERE version > ? AND version <= ? ORDER BY version
"""


class KeywordQueries:
    """Queries on the keyword index `episodes_fts`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def stemmer(self) -> Callable[[str], list[str]]:
        """Return the function that splits a text into stems as the keyword index does."""
        name, arguments = _TOKENIZER
        tokenizer: Any = self._connection.fts5_tokenizer(name, arguments)
        return lambda text: tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )

    def occurrences(self, term: str) -> str:
        """Return the occurrences of a stem as decimal numbers separated by spaces, ordered by version.

        A number is twice the version of the episode, plus 1 when the stem occurs in the episode's own text or caption
        and not in the text of the previous episode.
        """
        self._connection.execute(_INSTANCES)
        return fetch_value(self._connection, _OCCURRENCES, (term,)) or ""

    def indexed_texts(self, after: int, through: int) -> list[tuple[int, str, str | None, str | None]]:
        """Return version, text, caption and previous text of the indexed episodes after `after` up to `through`."""
        rows: list[Any] = fetch_tuples(self._connection, _INDEXED_TEXTS, (after, through))
        return rows
