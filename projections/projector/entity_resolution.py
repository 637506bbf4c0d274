"""Entity resolution: computes the types of entities, and which entities are one by different names.

It runs at the end of a batch and reads only the state of the tables, so live updates and replays agree. Facts and
mentions keep the entity of the name that was used; queries read groups of entities. So an event can undo a merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import apsw
import orjson
from msgspec import Struct, field

from recollect.projections.text.entity_roles import RoleName, role_name, role_of

#: Evidence from this confidence on is strong, in hundredths: one such message outweighs any number of weaker ones.
_STRONG_MIN = 75
#: Events that are recorded as the evidence of a merge.
_SOURCES_MAX = 20
#: Words before a name that are not part of it.
_TITLES = frozenset("mr mrs ms miss dr prof professor".split())

# The entities that may have a type or another name: most names of messages have neither.
_ENTITIES = """
SELECT id, name, type, aliases, id IN (SELECT entity_id FROM entity_evidence WHERE source = '') FROM entities
WHERE type <> 'other' OR aliases <> '[]' OR name LIKE '%''s %' OR name LIKE '%’s %' OR name = 'user' COLLATE NOCASE
OR id IN (
    SELECT entity_id FROM entity_evidence UNION SELECT entity_id FROM entity_links
    UNION SELECT other_id FROM entity_links
    UNION SELECT source_id FROM relationships UNION SELECT target_id FROM relationships
    UNION SELECT entity_id FROM entity_merges
)
ORDER BY id
"""
_OWNER = (
    "SELECT id, name, type, aliases, 0 FROM entities WHERE id = (SELECT entity_id FROM entity_names WHERE name = ?)"
)
# The evidence for each type of an entity: when it was stated (-1: it was not), strong, weak, and the newest time.
_EVIDENCE = f"""
SELECT entity_id, type, max(iif(confidence >= 100, at_us, -1)),
    sum(iif(confidence >= {_STRONG_MIN}, confidence, 0)),
    sum(iif(confidence < {_STRONG_MIN}, confidence, 0)), max(at_us)
FROM entity_evidence GROUP BY entity_id, type
"""
_LINKS = """
SELECT entity_id, other_id, max(stated_version), json_group_array(source) FROM (
    SELECT * FROM entity_links ORDER BY entity_id, other_id, source
) GROUP BY entity_id, other_id ORDER BY entity_id, other_id
"""
# Whom a participant calls husband or boss, others do not say.
# The relationships that were ever true: what was said of `Ann's wife` was said of the person who was it then.
_RELATIONSHIPS = """
SELECT source_id, type, target_id, source_events FROM relationships
WHERE status NOT IN ('invalidated', 'forgotten', 'rejected')
AND (voice = '' OR source_id NOT IN (SELECT id FROM entities WHERE spoken_count > 0)) ORDER BY key
"""


class _Entity(Struct, kw_only=True):
    """An entity while it is resolved."""

    id: int
    name: str
    #: The type in the table.
    type: str
    #: JSON; in the table.
    aliases: str
    is_speaker: bool
    #: The name without titles, case folded, in words.
    words: tuple[str, ...]
    role: RoleName | None
    #: Evidence by type, greatest first in order of the tuples.
    evidence: dict[str, tuple[int, int, int, int]] = field(default_factory=dict[str, tuple[int, int, int, int]])

    def own_type(self) -> str:
        """Return the type that the evidence of this name supports best."""
        return best_type([self])


class _Merge(NamedTuple):
    """A merge of two entities that is to be made, with its evidence."""

    first: int
    second: int
    #: alias, role, full name, initials or spelling.
    reason: str
    source_events: tuple[str, ...] = ()
    #: Version of the producer's event that states it; 0: it was inferred.
    stated_version: int = 0


def resolve_entities(connection: apsw.Connection) -> None:
    """Write the types of the entities and the merges that follow from the tables, where they differ."""
    entities = _read_entities(connection)
    groups = _Groups(entities, _separations(connection))
    rows: list[Any] = connection.execute(_LINKS).fetchall()
    links = [
        _Merge(entity_id, other_id, "alias", tuple(orjson.loads(sources)), version)
        for entity_id, other_id, version, sources in rows
    ]
    # What a producer states comes first. A name is the alias of the entity for which it was stated last.
    stated = {link.second: link for link in sorted(links, key=lambda link: link.stated_version) if link.stated_version}
    for link in sorted(stated.values(), key=lambda link: -link.stated_version):
        groups.merge(link)
    listed = list(entities.values())
    for merge in (*_spellings(listed), *_initials(listed), *_full_names(entities, groups)):
        groups.merge(merge)
    for link in _unambiguous([link for link in links if not link.stated_version], groups):
        groups.merge(link)
    relationships: list[Any] = connection.execute(_RELATIONSHIPS).fetchall()
    for merge in _roles(entities, relationships, groups):
        groups.merge(merge)
    _write(connection, entities, groups)


def best_type(members: Iterable[_Entity]) -> str:
    """Return the type with the most evidence: the newest stated type, or that with most strong evidence."""
    sums: dict[str, tuple[int, int, int, int]] = {}
    for member in members:
        if member.role is not None or member.words == ("user",):
            # `Ann's mom` is a person without further evidence.
            sums.setdefault("person", (-1, 0, 0, 0))
        for type, (stated, strong, weak, at_us) in member.evidence.items():
            old = sums.get(type, (-1, 0, 0, 0))
            sums[type] = (max(old[0], stated), old[1] + strong, old[2] + weak, max(old[3], at_us))
    return max(sums, key=lambda type: (sums[type], type), default="other")


class _Groups:
    """The groups of entities that are one, as a forest."""

    def __init__(self, entities: Mapping[int, _Entity], separations: Mapping[tuple[str, str], int]) -> None:
        self._entities = entities
        self._separations = separations
        self._parents: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        #: The merges that were made, by the entity that lost its own group or is named by it.
        self.merges: list[_Merge] = []

    def root(self, id: int) -> int:
        """Return the representative of an entity's group while groups are built."""
        while id in self._parents:
            id = self._parents[id]
        return id

    def of(self, id: int) -> list[int]:
        """Return the entities of the group of an entity."""
        root = self.root(id)
        return self.members.get(root, [root])

    def merge(self, merge: _Merge) -> None:
        """Merge two groups, unless a producer separated two of their names, or both have a speaker."""
        first, second = sorted((self.root(merge.first), self.root(merge.second)))
        if first == second or not self._may_merge(merge):
            return
        self._parents[second] = first
        self.members[first] = sorted([*self.of(first), *self.members.pop(second, [second])])
        self.merges.append(merge)

    def _may_merge(self, merge: _Merge) -> bool:
        """Return whether the groups of two entities may become one."""
        firsts = [self._entities[id] for id in self.of(merge.first)]
        seconds = [self._entities[id] for id in self.of(merge.second)]
        if (
            not merge.stated_version
            and any(entity.is_speaker for entity in firsts)
            and any(entity.is_speaker for entity in seconds)
        ):
            # Two people who write messages are two people.
            return False
        return not any(
            self._separations.get(pair_of(first.name, second.name), -1) > merge.stated_version
            for first in firsts
            for second in seconds
        )


def pair_of(first: str, second: str) -> tuple[str, str]:
    """Return two names, case folded and in order."""
    lower, upper = sorted((first.casefold(), second.casefold()))
    return lower, upper


def _read_entities(connection: apsw.Connection) -> dict[int, _Entity]:
    """Return the entities with their evidence."""
    entities: dict[int, _Entity] = {}
    rows: list[Any] = connection.execute(_ENTITIES).fetchall()
    owners = dict.fromkeys(role.owner for role in (role_name(row[1]) for row in rows) if role is not None)
    for owner in owners:
        rows += connection.execute(_OWNER, (owner,)).fetchall()
    for id, name, type, aliases, is_speaker in rows:
        words = tuple(word for word in name.casefold().replace(".", " ").split() if word not in _TITLES)
        entity = _Entity(
            id=id, name=name, type=type, aliases=aliases, is_speaker=bool(is_speaker), words=words, role=role_name(name)
        )
        entities.setdefault(id, entity)
    evidence: list[Any] = connection.execute(_EVIDENCE).fetchall()
    for entity_id, type, stated_us, strong, weak, at_us in evidence:
        if entity_id in entities:
            entities[entity_id].evidence[type] = (stated_us, strong, weak, at_us)
    return entities


def _separations(connection: apsw.Connection) -> dict[tuple[str, str], int]:
    """Return the versions of the events that separated pairs of names."""
    rows: list[Any] = connection.execute("SELECT first, second, version FROM entity_separations").fetchall()
    return {(first, second): version for first, second, version in rows}


def _unambiguous(links: list[_Merge], groups: _Groups) -> Iterable[_Merge]:
    """Yield the extracted links whose other name is that of one entity only: `Jon` may be short for two people."""
    entities_by_other: dict[int, set[int]] = {}
    for link in links:
        entities_by_other.setdefault(link.second, set()).add(groups.root(link.first))
    return [link for link in links if len(entities_by_other[link.second]) == 1]


def _spellings(entities: Iterable[_Entity]) -> list[_Merge]:
    """Return the merges of names that differ by an article, signs or titles only: `The Hobbit` and `Hobbit`."""
    by_spelling: dict[str, int] = {}
    merges: list[_Merge] = []
    for entity in entities:
        words = entity.words[1:] if entity.words[:1] == ("the",) else entity.words
        spelling = "".join(letter for letter in "".join(words) if letter.isalnum())
        if len(spelling) > 2 and not entity.role and entity.evidence:
            first = by_spelling.setdefault(spelling, entity.id)
            if first != entity.id:
                merges.append(_Merge(first, entity.id, "spelling"))
    return merges


def _initials(entities: Iterable[_Entity]) -> list[_Merge]:
    """Return the merges of initials with the only place or organisation that has them: `NYC`, `New York City`."""
    full: dict[tuple[str, str], list[int]] = {}
    short: list[tuple[tuple[str, str], int]] = []
    for entity in entities:
        type = entity.own_type()
        if type not in ("location", "organization"):
            continue
        if len(entity.words) > 1:
            initials = "".join(word[0] for word in entity.words)
            full.setdefault((type, initials), []).append(entity.id)
        elif entity.name.isupper():
            short.append(((type, entity.name.casefold()), entity.id))
    return [_Merge(full[key][0], id, "initials") for key, id in short if len(full.get(key, ())) == 1]


def _full_names(entities: Mapping[int, _Entity], groups: _Groups) -> list[_Merge]:
    """Return the merges of a first name or a surname with the only full name of a person that has it."""
    people = [entity for entity in entities.values() if not entity.role and entity.own_type() == "person"]
    full_names = [person for person in people if len(person.words) > 1]
    by_word: dict[str, dict[int, int]] = {}
    for person in full_names:
        for word in {person.words[0], person.words[-1]}:
            by_word.setdefault(word, {}).setdefault(groups.root(person.id), person.id)
    merges: list[_Merge] = []
    for person in people:
        if len(person.words) != 1:
            continue
        candidates = set(by_word.get(person.words[0], {}).values())
        if len({(entities[id].words[0], entities[id].words[-1]) for id in candidates}) == 1:
            merges.append(_Merge(min(candidates), person.id, "full name"))
    same = {(person.words[0], person.words[-1]): person.id for person in reversed(full_names)}
    for person in full_names:
        # A middle name makes no other person.
        first = same[person.words[0], person.words[-1]]
        if first != person.id:
            merges.append(_Merge(first, person.id, "full name"))
    return merges


def _roles(entities: Mapping[int, _Entity], relationships: Iterable[Any], groups: _Groups) -> list[_Merge]:
    """Return the merges of names by role (`Ann's mom`) with the only person of this role, and with one another."""
    ids_by_name = {entity.name.casefold(): entity.id for entity in reversed(list(entities.values()))}
    by_role: dict[tuple[int, str], dict[int, tuple[int, str]]] = {}
    for source_id, type, target_id, sources in relationships:
        role = role_of(type)
        if role is not None and source_id in entities and target_id in entities:
            by_role.setdefault((groups.root(source_id), role), {}).setdefault(
                groups.root(target_id), (target_id, sources)
            )
    merges: list[_Merge] = []
    named: dict[tuple[int, str], int] = {}
    for entity in entities.values():
        owner = None if entity.role is None else ids_by_name.get(entity.role.owner)
        if entity.role is None or owner is None:
            continue
        key = groups.root(owner), entity.role.role
        if key in named:
            merges.append(_Merge(named[key], entity.id, "role"))
            continue
        named[key] = entity.id
        people = by_role.get(key, {})
        if len(people) == 1:
            target_id, sources = next(iter(people.values()))
            merges.append(_Merge(target_id, entity.id, "role", tuple(orjson.loads(sources))))
    return merges


def _write(connection: apsw.Connection, entities: Mapping[int, _Entity], groups: _Groups) -> None:
    """Write the merges, aliases and types that differ from the tables."""
    reasons: dict[int, _Merge] = {}
    for merge in groups.merges:
        for id in (merge.second, merge.first):
            reasons.setdefault(id, merge)
    merged: dict[int, tuple[int, str, str]] = {}
    others = {merge.second for merge in groups.merges if merge.reason == "alias"}
    for ids in groups.members.values():
        into = min((entities[id] for id in ids), key=lambda entity: _preference(entity, entity.id in others)).id
        for id in ids:
            if id != into:
                sources = orjson.dumps(list(reasons[id].source_events[:_SOURCES_MAX])).decode()
                merged[id] = (into, reasons[id].reason, sources)
    rows: list[Any] = connection.execute(
        "SELECT entity_id, into_id, reason, source_events FROM entity_merges"
    ).fetchall()
    before = {row[0]: tuple(row[1:]) for row in rows}
    connection.executemany(
        "DELETE FROM entity_merges WHERE entity_id = ?", [(id,) for id in before if id not in merged]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO entity_merges (entity_id, into_id, reason, source_events) VALUES (?, ?, ?, ?)",
        [(id, *row) for id, row in merged.items() if before.get(id) != row],
    )
    changes: list[tuple[str, str, int]] = []
    for entity in entities.values():
        members = [] if entity.id in merged else [entities[id] for id in groups.of(entity.id)]
        aliases = orjson.dumps([member.name for member in members if member.id != entity.id]).decode()
        type = best_type(members or [entity])
        if (type, aliases) != (entity.type, entity.aliases):
            changes.append((type, aliases, entity.id))
    connection.executemany("UPDATE entities SET type = ?, aliases = ? WHERE id = ?", changes)


def _preference(entity: _Entity, is_alias: bool) -> tuple[bool, bool, bool, int, int]:
    """Return the sort key for the representative of a group: a speaker, no role, no alias, the fullest name."""
    return not entity.is_speaker, entity.role is not None, is_alias, -len(entity.words), entity.id
