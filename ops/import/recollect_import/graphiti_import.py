"""Graphiti import: a dump of episodes, entities and edges as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.api.importers.imported_records import (
    IMPORTED_CONFIDENCE,
    ImportedConversation,
    ReadOptions,
    Record,
    Skipped,
    as_moment,
    as_name,
    as_object,
    as_text,
    knowledge,
    message,
    short_hash,
)
from recollect.api.importers.imported_statements import imported_fact, note, statement
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_lines
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield episodes as messages, entities, and edges as facts that are valid from `valid_at` to `invalid_at`.

    The file is read twice, since an edge names its entities by their ids.
    """
    names: dict[str, str] = {}
    for name in files.names:
        for _ in read_json_lines(files, name, lambda fields: _named(fields, names)):
            pass
    for name in files.names:
        yield from read_json_lines(files, name, lambda fields: _records(fields, names, options))


def _fields(line: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a node or an edge, which Neo4j's JSON puts one level deeper."""
    properties = as_object(line.get("properties"))
    return line | properties if properties else line


def _kind(fields: dict[str, Any]) -> str:
    """Return whether a line is an episode, an entity or an edge, by its `kind`, or by what it has."""
    kind = f"{as_text(fields.get('kind'))} {as_text(fields.get('label'))}".casefold()
    for name, words in (("edge", ("edge", "relates_to")), ("episode", ("episod",)), ("entity", ("entity", "node"))):
        if any(word in kind for word in words):
            return name
    if "fact" in fields and "source_node_uuid" in fields:
        return "edge"
    if "content" in fields and "valid_at" in fields:
        return "episode"
    if "name" in fields and "uuid" in fields:
        return "entity"
    raise InvalidInput("is no episode, no entity and no edge", field="kind")


def _named(line: dict[str, Any], names: dict[str, str]) -> list[Record]:
    """Remember the name of an entity."""
    fields = _fields(line)
    name = as_name(fields.get("name"))
    if name and _kind(fields) == "entity":
        names[as_text(fields.get("uuid"))] = name
    return []


def _records(line: dict[str, Any], names: dict[str, str], options: ReadOptions) -> Iterator[Record]:
    fields = _fields(line)
    kind = _kind(fields)
    if kind == "episode":
        yield _episode(fields)
    elif kind == "entity":
        yield from _entity(fields)
    else:
        yield from _edge(fields, names, options)


def _episode(fields: dict[str, Any]) -> Record:
    """Return an episode as a message of its group; `Ann: hello` is said by Ann."""
    text = as_text(fields["content"])
    speaker, separator, said = text.partition(": ")
    is_said = as_text(fields.get("source")) == "message" and bool(separator) and len(speaker) <= 60
    role = "assistant" if is_said and speaker.casefold() in ("assistant", "bot", "ai") else "user"
    group = as_text(fields.get("group_id")) or "graphiti"
    occurred_at = as_moment(fields.get("valid_at")) or as_moment(fields.get("created_at"))
    return message(
        ImportedConversation(
            id=f"{group}:{occurred_at.date().isoformat()}" if occurred_at else group, title=as_name(group)
        ),
        as_text(fields.get("uuid")) or short_hash(text),
        role=role,
        name=as_name(speaker) if is_said and role == "user" and speaker.casefold() != "user" else None,
        text=said if is_said else text,
        occurred_at=occurred_at,
    )


def _entity(fields: dict[str, Any]) -> Iterator[Record]:
    """Yield an entity, and its summary as a fact about it."""
    name, uuid = as_name(fields.get("name")), as_text(fields.get("uuid"))
    if name is None:
        raise InvalidInput("the entity has no name", field="name")
    occurred_at = as_moment(fields.get("created_at"))
    yield knowledge(
        f"entity:{uuid or name}", "entity.described", {"name": name}, where=f"entity {name}", occurred_at=occurred_at
    )
    summary = statement(as_text(fields.get("summary")), name) or note(as_text(fields.get("summary")), name)
    if summary is not None:
        key = f"summary:{uuid or name}:{short_hash(*map(str, summary.values()))}"
        yield knowledge(
            key,
            "fact.stated",
            imported_fact(summary, stated_at=occurred_at),
            where=f"entity {name}",
            occurred_at=occurred_at,
        )


def _edge(fields: dict[str, Any], names: dict[str, str], options: ReadOptions) -> Iterator[Record]:
    """Yield an edge as a fact, and as a relationship when it is still valid."""
    uuid, sentence = as_text(fields.get("uuid")), as_text(fields.get("fact"))
    source = names.get(as_text(fields.get("source_node_uuid")))
    target = names.get(as_text(fields.get("target_node_uuid")))
    kind = as_name(as_text(fields.get("name")).replace("_", " ").casefold())
    occurred_at = as_moment(fields.get("reference_time")) or as_moment(fields.get("created_at"))
    until = as_moment(fields.get("invalid_at")) or as_moment(fields.get("expired_at"))
    subject = source or options.subject
    fact = statement(sentence, subject) or note(sentence, subject)
    if fact is None:
        yield Skipped(reason="edge without a fact")
        return
    payload = imported_fact(
        fact, stated_at=occurred_at, valid_from=as_moment(fields.get("valid_at")), valid_until=until
    )
    yield knowledge(
        f"edge:{uuid or short_hash(sentence)}", "fact.stated", payload, where=f"edge {uuid}", occurred_at=occurred_at
    )
    if source and target and kind and until is None:
        relation = {"source": source, "type": kind, "target": target, "confidence": IMPORTED_CONFIDENCE}
        key = f"relation:{uuid or short_hash(source, kind, target)}"
        yield knowledge(key, "relationship.stated", relation, where=f"edge {uuid}", occurred_at=occurred_at)


def _match(files: SourceFiles) -> Match:
    if has_signs(files, (b'"source_node_uuid"',)):
        return Match.CERTAIN
    return Match.LIKELY if has_signs(files, (b'"group_id"', b'"uuid"')) else Match.NONE


IMPORTERS = (
    Importer(
        name="graphiti",
        files="lines of JSON, see below",
        content="edges as facts from `valid_at` to `invalid_at`, entities, episodes as messages",
        match=_match,
        read=_read,
    ),
)
