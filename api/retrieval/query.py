"""Understand a query: its words that count, who is asked about, what else is named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import apsw

from recollect.projections.words import STOP_WORDS, WORD

#: Words looked at. A question is shorter; of a pasted log the beginning and the end say what it is about.
_WORDS_MAX = 256
#: Longest name of an entity, in words.
_NAME_WORDS_MAX = 5
#: Characters of the text that is embedded; the model reads about 256 tokens.
_TEXT_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query as retrieval uses it."""

    #: What was asked, without participants' names when something is left without them. Embedded as it is.
    text: str
    #: The distinct words to search for, lower case: no stop words, no participants' names.
    words: tuple[str, ...]
    #: Entities that are asked about and take part in the conversations, by id.
    participants: tuple[int, ...]
    #: Other entities that are named, by id.
    entities: tuple[int, ...]


def understand(text: str, connection: apsw.Connection) -> Query:
    """Return what `text` asks of the read model behind `connection`."""
    text = text.encode(errors="ignore").decode().replace("\0", " ")
    words = WORD.findall(text.casefold())
    if len(words) > _WORDS_MAX:
        words = words[: _WORDS_MAX // 2] + words[-_WORDS_MAX // 2 :]
    named = _named(words, connection)
    speaking = _participants(connection)
    names = {word for name, entity in speaking.items() if entity in named for word in WORD.findall(name)} | {
        word for word in words if word in speaking
    }
    asked = {speaking[word] for word in words if word in speaking} | (named & set(speaking.values()))
    counted = [word for word in words if word not in STOP_WORDS]
    without_names = [word for word in counted if word not in names]
    return Query(
        text=_without(text, names) if without_names else text[:_TEXT_CHARS_MAX],
        words=tuple(dict.fromkeys(without_names or counted or words)),
        participants=tuple(sorted(asked)),
        entities=tuple(sorted(named - asked)),
    )


def _named(words: list[str], connection: apsw.Connection) -> set[int]:
    """Return the entities whose name or alias is a run of `words`."""
    runs = {
        " ".join(words[start : start + length])
        for length in range(1, _NAME_WORDS_MAX + 1)
        for start in range(len(words) - length + 1)
        if length > 1 or words[start] not in STOP_WORDS
    }
    find = "SELECT entity_id FROM entity_names WHERE name = ?"
    found: set[int] = set()
    for run in runs:
        row: tuple[Any, ...] | None = connection.execute(find, (run,)).fetchone()
        if row is not None:
            found.add(row[0])
    return found


def _participants(connection: apsw.Connection) -> dict[str, int]:
    """Return the entities that speak, by each name and first name of theirs."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT entity_names.name, id FROM entities JOIN entity_names ON entity_id = id "
        "WHERE spoken_count > 0 ORDER BY id"
    ).fetchall()
    by_name: dict[str, int] = {}
    for name, entity in rows:
        by_name.setdefault(name, entity)
        by_name.setdefault(WORD.findall(name + " _")[0], entity)
    return by_name


def _without(text: str, names: set[str]) -> str:
    """Return `text` without `names` and their possessive endings."""
    text = text if len(text) <= _TEXT_CHARS_MAX else f"{text[: _TEXT_CHARS_MAX // 2]} {text[-_TEXT_CHARS_MAX // 2 :]}"
    if not names:
        return text
    pattern = rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b(?:['’]s?)?"
    return " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
