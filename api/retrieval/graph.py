"""The entity graph: from the entities that a query names to the episodes that name them, and one step further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from recollect.api.retrieval.scope import Scope

#: Episodes looked at from each end of a step, newest first. Who is named more often than that is no clue.
_EPISODES_MAX = 500
#: Neighbours that the step goes to: those named together most often.
_NEIGHBOURS_MAX = 5

_NEAR = f"""
WITH named AS (
    SELECT DISTINCT version FROM mentions WHERE entity_id IN (%s) ORDER BY version DESC LIMIT {_EPISODES_MAX}
)
SELECT entity_id FROM named JOIN mentions USING (version) JOIN entities ON id = entity_id
WHERE spoken_count = 0 AND entity_id NOT IN (%s)
GROUP BY entity_id ORDER BY count(*) DESC, entity_id LIMIT {_NEIGHBOURS_MAX}
"""


def graph_matches(connection: apsw.Connection, entities: Sequence[int], scope: Scope, depth: int) -> list[int]:
    """Return up to `depth` episodes: those that name most of `entities` first, then those that name their neighbours.

    Participants are no neighbours: they are near everything.
    """
    if not entities:
        return []
    direct = _naming(connection, entities, scope, depth)
    if len(direct) >= depth:
        return direct
    marks = ", ".join("?" * len(entities))
    rows: list[tuple[Any, ...]] = connection.execute(_NEAR % (marks, marks), (*entities, *entities)).fetchall()
    further = _naming(connection, [row[0] for row in rows], scope, depth) if rows else []
    return list(dict.fromkeys([*direct, *further]))[:depth]


def _naming(connection: apsw.Connection, entities: Sequence[int], scope: Scope, depth: int) -> list[int]:
    marks = ", ".join("?" * len(entities))
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT mentions.version FROM mentions JOIN episodes ON episodes.version = mentions.version "
        f"WHERE entity_id IN ({marks}) AND status = 'active'{scope.condition} "
        "GROUP BY mentions.version ORDER BY count(*) DESC, mentions.version DESC LIMIT ?",
        (*entities, *scope.values, depth),
    ).fetchall()
    return [row[0] for row in rows]
