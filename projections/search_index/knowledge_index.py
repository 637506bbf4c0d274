"""What is known of one read model, in memory: facts, entities, preferences, procedures, relationships, documents.

It is small beside what happened: a text each, its stems, and what counts when it is weighed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import apsw
import orjson

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.projector.facts import DAY_US
from recollect.projections.schema.time_to_live import TTL_DAYS
from recollect.projections.search_index.postings import stemmer
from recollect.projections.text.segments import segments

Kind = Literal["fact", "entity", "preference", "procedure", "relationship", "document"]

#: Stems of texts that are kept between two loads: most texts stay.
_STEMMED_MAX = 50_000


class Known(NamedTuple):
    """One thing that is known."""

    kind: Kind
    #: As the lists show it; of a piece of a document the document's id, ``#`` and the number of the piece.
    id: str
    #: What it is found by, and what is embedded.
    text: str
    #: How it is shown.
    line: str
    confidence: float
    #: active or stale.
    status: str
    pinned: bool
    #: 1: holds in every conversation.
    standing: bool
    #: corrected, stated, observed, inferred; of documents authoritative.
    source_type: str
    source_events: tuple[str, ...]
    #: Of a document's piece: the version of the event that added it, whose id is looked up when it is shown.
    version: int
    occurred_at_us: int
    #: Until when it holds; None: nobody said.
    valid_until_us: int | None
    #: Entities that it is about, by id.
    entities: tuple[int, ...]
    #: What it contradicts or replaces when another says otherwise: subject and predicate, of facts.
    topic: str | None
    #: When somebody said it last; None: not recorded for this kind.
    confirmed_us: int | None = None

    def holds(self, at_us: int) -> bool:
        """Tell whether it is not over at a moment."""
        return self.valid_until_us is None or self.valid_until_us > at_us


@dataclass(frozen=True, eq=False)
class Shelf:
    """All that is known at one moment."""

    items: Sequence[Known]
    #: The stems of each item.
    terms: Sequence[Mapping[str, int]]
    #: Ids of events that told something which no longer holds.
    outdated: frozenset[str] = frozenset()
    #: What was said of memories that were retrieved, by id; and by version, of episodes.
    ratings: Mapping[str, float] = field(default_factory=dict[str, float])
    episode_ratings: Mapping[int, float] = field(default_factory=dict[int, float])

    @cached_property
    def holders(self) -> Mapping[str, Sequence[int]]:
        """Return the places of the items that hold a stem."""
        found: dict[str, list[int]] = {}
        for place, terms in enumerate(self.terms):
            for term in terms:
                found.setdefault(term, []).append(place)
        return found

    @cached_property
    def digests(self) -> Sequence[bytes]:
        """Return sha256 of each text: what its vector is remembered by."""
        return [sha256(item.text.encode(errors="replace")).digest() for item in self.items]

    def rarity(self, term: str) -> float:
        """Return how much a stem says: inverse document frequency."""
        holding = len(self.holders.get(term, ()))
        return math.log1p((len(self.items) - holding + 0.5) / (holding + 0.5))


class Stems:
    """The stems of texts, remembered."""

    def __init__(self) -> None:
        self._known: BoundedCache[str, Mapping[str, int]] = BoundedCache(_STEMMED_MAX)

    def of(self, texts: Sequence[str], stem: Callable[[str], list[str]]) -> list[Mapping[str, int]]:
        """Return how often each stem stands in each of `texts`."""
        known = self._known.get_all(texts)
        new: dict[str, Mapping[str, int]] = {
            text: Counter(stem(" ".join([text, *segments(text)]))) for text in texts if text not in known
        }
        self._known.put_all(new)
        known |= new
        return [known[text] for text in texts]


def load_shelf(connection: apsw.Connection, stems: Stems) -> Shelf:
    """Return what the read model behind `connection` knows, what no longer holds left out."""
    stem = stemmer(connection)
    items = all_known(connection)
    rows = connection.execute("SELECT source_events FROM facts WHERE status IN ('superseded', 'invalidated')")
    outdated = frozenset(id for (listed,) in _typed(rows) for id in _ids(listed))
    ratings = dict(_typed(connection.execute("SELECT memory_id, rating FROM ratings")))
    rated = connection.execute("SELECT version, rating FROM ratings JOIN episodes ON id = memory_id")
    terms = stems.of([item.text for item in items], stem)
    return Shelf(items, terms, outdated, ratings, dict(_typed(rated)))


def all_known(connection: apsw.Connection) -> list[Known]:
    """Return everything that is known, what no longer holds left out."""
    return [item for rows in _READERS for item in rows(connection)]


def _facts(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT id, subject, predicate, object, confidence, status, pinned, source_type, source_events, version, "
        "updated_at_us, valid_until_us, entity_id, topic, stale_at_us - ttl_days * ? "
        "FROM facts WHERE status IN ('active', 'stale') ORDER BY key",
        (DAY_US,),
    )
    for row in _typed(rows):
        text = f"{row[1]} {row[2]} {row[3]}"
        yield Known(
            "fact", row[0], text, text, row[4], row[5], bool(row[6]), False, row[7], _ids(row[8]), row[9], row[10],
            row[11], (row[12],), row[13], row[14],
        )  # fmt: skip


def _entities(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT id, name, type, description, aliases, last_seen_us FROM entities WHERE description IS NOT NULL "
        "ORDER BY id"
    )
    for id, name, kind, description, aliases, last_seen_us in _typed(rows):
        text = " ".join([name, *orjson.loads(aliases), description])
        line = f"**{name}** ({kind}): {description}"
        yield Known(
            "entity", name, text, line, 1.0, "active", False, False, "stated", (), 0, last_seen_us, None, (id,), None
        )


def _preferences(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT id, category, name, value, strength, status, pinned, standing, source_type, source_events, version, "
        "updated_at_us, stale_at_us - ? FROM preferences WHERE status IN ('active', 'stale') ORDER BY key",
        (TTL_DAYS["preference"] * DAY_US,),
    )
    for row in _typed(rows):
        line = row[3] if row[7] else f"{row[1]}.{row[2]}: {row[3]}"
        yield Known(
            "preference", row[0], f"{row[2]} {row[3]}", line, row[4], row[5], bool(row[6]), bool(row[7]), row[8],
            _ids(row[9]), row[10], row[11], None, (), None, row[12],
        )  # fmt: skip


def _procedures(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT id, name, trigger, steps, context, confidence, status, pinned, source_events, version, updated_at_us, "
        "stale_at_us - ? FROM procedures WHERE status IN ('active', 'stale') ORDER BY key",
        (TTL_DAYS["procedure"] * DAY_US,),
    )
    for row in _typed(rows):
        steps: list[str] = orjson.loads(row[3])
        text = " ".join([row[1], row[2], *steps, row[4] or ""])
        line = f"**{row[1]}** (confidence: {row[5]:.2f}): {row[2]}: {' → '.join(steps)}"
        yield Known(
            "procedure", row[0], text, line, row[5], row[6], bool(row[7]), False, "stated", _ids(row[8]), row[9],
            row[10], None, (), None, row[11],
        )  # fmt: skip


def _relationships(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT r.id, a.name, r.type, b.name, r.confidence, r.status, r.pinned, r.source_events, r.version, "
        "r.updated_at_us, r.source_id, r.target_id, r.stale_at_us - ? FROM relationships AS r "
        "JOIN entities AS a ON a.id = source_id JOIN entities AS b ON b.id = target_id "
        "WHERE r.status IN ('active', 'stale') AND weight > 0 ORDER BY r.key",
        (TTL_DAYS["relationship"] * DAY_US,),
    )
    for row in _typed(rows):
        text = f"{row[1]} {row[2]} {row[3]}"
        yield Known(
            "relationship", row[0], text, text, row[4], row[5], bool(row[6]), False, "stated", _ids(row[7]), row[8],
            row[9], None, (row[10], row[11]), None, row[12],
        )  # fmt: skip


def _documents(connection: apsw.Connection) -> Iterator[Known]:
    rows = connection.execute(
        "SELECT id, number, title, chunks.text, version, added_at_us FROM documents "
        "JOIN chunks ON document_id = id ORDER BY id, number"
    )
    for id, number, title, text, version, added_at_us in _typed(rows):
        yield Known(
            "document", f"{id}#{number}", f"{title}: {text}", f"{title}: {text}", 1.0, "active", False, False,
            "authoritative", (), version, added_at_us, None, (), None,
        )  # fmt: skip


_READERS = (_facts, _entities, _preferences, _procedures, _relationships, _documents)


def _ids(listed: str) -> tuple[str, ...]:
    return tuple(orjson.loads(listed))


def _typed(rows: Any) -> Iterator[tuple[Any, ...]]:
    return iter(rows)
