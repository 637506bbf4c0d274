"""Turns as jobs read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw


class Turn(NamedTuple):
    """An episode on its way into a summary."""

    version: int
    id: str
    session_id: str | None
    role: str | None
    speaker: str
    text: str
    #: What its attachments show.
    caption: str | None
    #: 1 to 10.
    importance: int
    occurred_at_us: int

    def line(self) -> str:
        """Return what was said and shown."""
        return f"{self.text} ({self.caption})" if self.caption else self.text


_COLUMNS = ", ".join(f"episodes.{name}" for name in Turn._fields)


def read_turns(connection: apsw.Connection, condition: str, values: tuple[str | int, ...]) -> list[Turn]:
    """Return the episodes that `condition` chooses: what follows ``FROM episodes``."""
    rows: list[tuple[Any, ...]] = connection.execute(f"SELECT {_COLUMNS} FROM episodes {condition}", values).fetchall()
    return [Turn(*row) for row in rows]


def lines(texts: Iterable[str]) -> list[Turn]:
    """Return texts that nobody in particular says, to be condensed like turns."""
    return [Turn(at, "", None, None, "", text, None, 5, 0) for at, text in enumerate(texts)]
