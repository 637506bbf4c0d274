"""Restrictions: the messages that some people must not be shown, and what repeats other memories."""

from __future__ import annotations

from typing import Any

import apsw
import orjson

from recollect.events.envelope import RecordedEvent
from recollect.events.memory_kinds import STATING_EVENTS
from recollect.projections.projector.episode_events import Episode
from recollect.projections.text.withheld_names import withheld_names

_RESTRICT = "INSERT OR REPLACE INTO restrictions (id, version, not_for, speaker, session_id) VALUES (?, ?, ?, ?, ?)"
_REPEAT = "INSERT OR IGNORE INTO repetitions (id, source, version) VALUES (?, ?, ?)"
_RESTRICTED = "SELECT version, id FROM restrictions UNION ALL SELECT version, id FROM repetitions"
#: Events that replace the memory that caused them, or that they correct.
_STATING = frozenset((*STATING_EVENTS, "fact.corrected"))


class Restrictions:
    """The restrictions of one batch, and the ids that earlier batches have.

    Parameters:
        connection: the read model, writable.
        new: whether it is empty.
    """

    def __init__(self, connection: apsw.Connection, *, new: bool) -> None:
        self._connection = connection
        #: Restricted episodes, and what repeats a memory, by version.
        self._ids: dict[int, str] = {} if new else dict(connection.execute(_RESTRICTED))
        self._is_restricted = set(self._ids.values())
        #: Bindings of `_RESTRICT` and of `_REPEAT`.
        self._restricted: list[tuple[Any, ...]] = []
        self._repeated: list[tuple[str, str, int]] = []

    def add_episode(
        self, event: RecordedEvent, episode: Episode, payload: dict[str, Any], previous: int | None
    ) -> None:
        """Add the restriction of an episode: its own, or that of the message it replaces or replies to.

        Parameters:
            previous: version of the episode before it in its session.
        """
        stated: list[str] | None = payload.get("not_for")
        names = withheld_names(episode.text) if stated is None and episode.role == "user" else stated or ()
        if names:
            encoded = orjson.dumps(names).decode()
            self._restricted.append((event.id, event.version, encoded, episode.speaker, event.session_id))
            self._note(event)
        if stated is not None or not self._ids:
            return
        replied = self._ids.get(previous) if previous is not None and episode.role == "assistant" else None
        caused = event.causation_id if event.causation_id in self._is_restricted else None
        for source in {source for source in (replied, caused) if source is not None}:
            self._repeated.append((event.id, source, event.version))
            self._note(event)

    def add_statement(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Add that a statement takes the place of another memory."""
        if event.type in _STATING:
            source: str | None = payload.get("corrects") or event.causation_id
            if source is not None:
                self._repeated.append((event.id, source, event.version))

    def _note(self, event: RecordedEvent) -> None:
        """Note a restricted episode, for the events that follow."""
        self._ids[event.version] = event.id
        self._is_restricted.add(event.id)

    def write(self) -> None:
        """Write what was added."""
        self._connection.executemany(_RESTRICT, self._restricted)
        self._connection.executemany(_REPEAT, self._repeated)
        self._restricted.clear()
        self._repeated.clear()
