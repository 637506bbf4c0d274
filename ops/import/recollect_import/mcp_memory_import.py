"""MCP memory import: the lines of the reference server for memory, entities with observations and relations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from recollect.api.importers.imported_records import (
    IMPORTED_CONFIDENCE,
    ReadOptions,
    Record,
    Skipped,
    as_list,
    as_name,
    as_text,
    knowledge,
    short_hash,
)
from recollect.api.importers.imported_statements import imported_fact, note, statement
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_lines
from recollect.api.importers.source_files import SourceFiles
from recollect.events.catalogue import EntityType
from recollect.events.errors import InvalidInput

_ENTITY_TYPES = frozenset(get_args(EntityType))
#: Names of the user in the prompts of that server.
_USER = "user"
_USERS = frozenset({"default_user", _USER, "the user"})


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield each entity, its observations as facts about it, and each relation."""
    for name in files.names:
        yield from read_json_lines(files, name, lambda fields: _records(fields, options))


def _records(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    match fields.get("type"):
        case "entity":
            yield from _entity(fields, options)
        case "relation":
            yield _relation(fields, options)
        case kind:
            raise InvalidInput(f"is {str(kind)[:80]!r}, neither an entity nor a relation", field="type")


def _entity(fields: dict[str, Any], options: ReadOptions) -> Iterator[Record]:
    name = _name(fields.get("name"))
    kind = as_text(fields.get("entityType")).casefold()
    payload: dict[str, Any] = {"name": name}
    if kind in _ENTITY_TYPES:
        payload |= {"type": kind, "confidence": IMPORTED_CONFIDENCE}
    if name != _USER:
        yield knowledge(f"entity:{name}", "entity.described", payload, where=f"entity {name}")
    for observation in as_list(fields.get("observations")):
        text, subject = as_text(observation), _subject(name, options)
        fact, own = _fact(text, subject), _fact(text, name)
        if fact is None or own is None:
            yield Skipped(reason="empty observation")
            continue
        # The key has no name that an option gives.
        key = f"entity:{name}:{short_hash(*map(str, own.values()))}"
        yield knowledge(key, "fact.stated", imported_fact(fact), where=f"entity {name}")


def _fact(text: str, subject: str) -> dict[str, Any] | None:
    return statement(text, subject) or note(text, subject)


def _relation(fields: dict[str, Any], options: ReadOptions) -> Record:
    source, target = _name(fields.get("from")), _name(fields.get("to"))
    kind = as_name(as_text(fields.get("relationType")).replace("_", " "))
    if kind is None:
        raise InvalidInput("the relation has no relationType", field="relationType")
    ends = {"source": _subject(source, options), "type": kind, "target": _subject(target, options)}
    payload = ends | {"confidence": IMPORTED_CONFIDENCE}
    key = f"relation:{short_hash(source, kind, target)}"
    return knowledge(key, "relationship.stated", payload, where=f"relation {source} {kind} {target}")


def _name(value: object) -> str:
    """Return the name of an entity; that of the user is `_USER`."""
    name = as_name(value)
    if name is None:
        raise InvalidInput("the name is missing", field="name")
    return _USER if name.casefold() in _USERS else name.replace("_", " ")


def _subject(name: str, options: ReadOptions) -> str:
    return options.subject if name == _USER else name


def _match(files: SourceFiles) -> Match:
    return Match.CERTAIN if has_signs(files, (b'"entityType"',), (b'"relationType"',)) else Match.NONE


IMPORTERS = (
    Importer(
        name="mcp-memory",
        files="the `memory.json` of the reference MCP server",
        content="entities, observations as facts, relations",
        match=_match,
        read=_read,
    ),
)
