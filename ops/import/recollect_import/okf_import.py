"""OKF import: the concepts of a bundle in the Open Knowledge Format, Markdown with front matter.

The concepts of Recollect's own bundles have the fields of a memory under `recollect`; those of other programs become
documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from recollect.api.importers.imported_records import (
    IMPORTED_CONFIDENCE,
    Failed,
    ReadOptions,
    Record,
    Skipped,
    as_list,
    as_moment,
    as_name,
    as_object,
    as_text,
    guarded,
    knowledge,
    short_hash,
)
from recollect.api.importers.imported_statements import imported_fact
from recollect.api.importers.importer import Importer, Match
from recollect.api.importers.markdown_notes import split_front_matter
from recollect.api.importers.source_files import SourceFiles

#: Files that list or describe the others.
_LISTINGS = frozenset({"index.md", "log.md"})
#: The indentation of a document's text in a bundle of Recollect.
_INDENT = "    "


def _read(files: SourceFiles, _: ReadOptions) -> Iterator[Record]:
    """Yield the facts, entities, relationships, preferences, procedures and documents of a bundle."""
    if not any(PurePosixPath(name).suffix == ".md" for name in files.names):
        yield Failed(where=str(files.path), reason="has no Markdown file")
    for name in files.names:
        path = PurePosixPath(name)
        if path.suffix != ".md" or path.name in _LISTINGS:
            yield Skipped(reason="listing or another file than a concept")
        elif path.parts[0] == "episodes":
            yield Skipped(reason="day of a conversation; its messages are in an export of events")
        else:
            yield from guarded(name, lambda name=name: _concept(files.read(name).decode("utf-8", "replace"), name))


def _concept(text: str, name: str) -> Iterator[Record]:
    fields, body = split_front_matter(text)
    own = as_object(fields.get("recollect"))
    if fields.get("status") == "deprecated":
        yield Skipped(reason="memory that was outdated")
        return
    moment = as_moment(as_object(fields.get("generated")).get("at"))
    kind = _KINDS.get(as_text(fields.get("type"))) if own else None
    if kind is None and "aliases" in own:
        kind = _entity
    for type, payload in (kind or _document)(fields, own, body, moment):
        given = _given(payload)
        if type == "document.added":
            given.setdefault("document_id", f"okf:{short_hash(name)}")
        # A concept that was edited is another event.
        content = json.dumps(given, sort_keys=True, default=str)
        yield knowledge(f"{name}:{short_hash(content)}", type, given, where=name, occurred_at=moment)


_Events = Iterator[tuple[str, dict[str, Any]]]
_Fields = Mapping[str, Any]


def _fact(_fields: _Fields, own: _Fields, _body: str, moment: datetime | None) -> _Events:
    triple = {"subject": own["subject"], "predicate": own["predicate"], "object": own["object"]}
    yield (
        "fact.stated",
        imported_fact(
            triple,
            # What is inferred had no date, or was said by no user.
            stated_at=None if own.get("source_type") == "inferred" else moment,
            confidence=own.get("confidence", IMPORTED_CONFIDENCE),
            type=own.get("type"),
            layer=own.get("layer"),
            statement=own.get("statement"),
            statement_kind=own.get("statement_kind"),
            valid_from=own.get("valid_from"),
            valid_until=own.get("valid_to"),
        ),
    )


def _preference(_fields: _Fields, own: _Fields, _body: str, moment: datetime | None) -> _Events:
    names = ("category", "value", "strength", "subject")
    # Not standing: the user decides what is in every prompt.
    payload = {name: own.get(name) for name in names} | {"key": own["name"], "stated_at": moment}
    yield "preference.stated", payload | {"source_type": "inferred"}


def _procedure(_fields: _Fields, own: _Fields, _body: str, _moment: datetime | None) -> _Events:
    yield (
        "procedure.recorded",
        {name: own.get(name) for name in ("name", "trigger", "steps", "context", "confidence")},
    )


def _entity(fields: _Fields, own: _Fields, _body: str, _moment: datetime | None) -> _Events:
    name = own.get("name") or fields.get("title")
    entity = {"name": name, "type": as_text(fields.get("type")).casefold(), "confidence": IMPORTED_CONFIDENCE}
    described = {field: own.get(field) for field in ("aliases", "importance", "metadata")}
    yield "entity.described", entity | described | {"description": own.get("description") or fields.get("description")}
    for relation in map(as_object, as_list(own.get("relations"))):
        edge = {field: relation.get(field) for field in ("type", "target", "confidence", "properties")}
        yield "relationship.stated", {"source": name} | edge


def _document(fields: _Fields, own: _Fields, body: str, _moment: datetime | None) -> _Events:
    lines = [line.removeprefix(_INDENT) if own else line for line in body.strip("\n").split("\n")]
    title = as_name(fields.get("title"))
    yield (
        "document.added",
        {"title": title, "text": "\n".join(lines), "uri": fields.get("resource"), "document_id": own.get("id")}
        | {name: own.get(name) for name in ("metadata", "relations")},
    )


def _given(payload: _Fields) -> dict[str, Any]:
    """Return the fields of a payload that have a value."""
    return {name: value for name, value in payload.items() if value not in (None, "", [], {})}


#: The events of the concepts that have a type of their own.
_KINDS: dict[str, Callable[[_Fields, _Fields, str, datetime | None], _Events]] = {
    "Fact": _fact,
    "Preference": _preference,
    "Playbook": _procedure,
    "Reference": _document,
}


def _match(files: SourceFiles) -> Match:
    """Return a match when the index at the root of the files names a version of OKF."""
    is_bundle = "index.md" in files.names and b"okf_version:" in files.peek("index.md")
    return Match.CERTAIN if is_bundle else Match.NONE


IMPORTERS = (
    Importer(
        name="okf",
        files="a bundle of `recollect export --format okf`, a folder or a zip",
        content="facts that hold, preferences, procedures, entities, relationships, documents; not the messages. "
        "Concepts of other programs become documents",
        match=_match,
        read=_read,
    ),
)
