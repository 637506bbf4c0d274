"""What one would write oneself: sqlite-vec and FTS5 in one file a conversation, fused by reciprocal rank (60)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encoder import Encoder
from peer import Message

_RRF = 60
_SCHEMA = """
CREATE TABLE messages (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, occurred_us INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (text, content = 'messages', tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE vectors USING vec0 (embedding float[{dimensions}] distance_metric=cosine, occurred_us INTEGER);
"""
_BY_WORDS = """
SELECT m.id FROM words JOIN messages m ON m.rowid = words.rowid
WHERE words MATCH ? AND m.occurred_us < ? ORDER BY words.rank LIMIT ?
"""
_BY_MEANING = """
SELECT m.id FROM (
  SELECT rowid, distance FROM vectors WHERE embedding MATCH ? AND occurred_us < ? AND k = ?
) v JOIN messages m ON m.rowid = v.rowid ORDER BY v.distance
"""
_ALWAYS_US = 2**62


class Sqlite:
    """By meaning (exact) and by words."""

    note = ""

    def __init__(self, folder: Path, model: str) -> None:
        self._apsw: Any = importlib.import_module("apsw")
        self._extension: str = importlib.import_module("sqlite_vec").loadable_path()
        self._encoder = Encoder(model)
        self._folder = folder
        self._connections: dict[str, Any] = {}

    def add(self, collection: str, messages: Sequence[Message]) -> None:
        """Add everything in one transaction."""
        connection = self._apsw.Connection(str(self._folder / f"{collection}.db"))
        connection.enable_load_extension(True)
        connection.load_extension(self._extension)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(_SCHEMA.format(dimensions=self._encoder.dimensions))
        vectors = self._encoder.many([message.text for message in messages])
        with connection:
            for row, (message, vector) in enumerate(zip(messages, vectors, strict=True), start=1):
                connection.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", (row, *message))
                connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, message.text))
                connection.execute(
                    "INSERT INTO vectors (rowid, embedding, occurred_us) VALUES (?, ?, ?)",
                    (row, vector.tobytes(), message.occurred_us),
                )
        self._connections[collection] = connection

    def search(self, collection: str, query: str, until_us: int | None, count: int) -> list[str]:
        """Search both ways with the filter in SQL; each of the two lists is as long as the answer."""
        connection = self._connections[collection]
        before = _ALWAYS_US if until_us is None else until_us
        words = dict.fromkeys(re.findall(r"\w+", query.lower()))
        match = " OR ".join(f'"{word}"' for word in words)
        lists = [connection.execute(_BY_MEANING, (self._encoder.one(query).tobytes(), before, count))]
        if match:
            lists.append(connection.execute(_BY_WORDS, (match, before, count)))
        scores: dict[str, float] = {}
        for found in lists:
            for rank, (name,) in enumerate(found, start=1):
                scores[name] = scores.get(name, 0.0) + 1 / (_RRF + rank)
        return sorted(scores, key=lambda name: scores[name], reverse=True)[:count]

    def close(self) -> None:
        """Close every file, which takes its WAL into it."""
        for connection in self._connections.values():
            connection.close()
