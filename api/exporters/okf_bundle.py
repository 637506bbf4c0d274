"""OKF bundle: a namespace in the Open Knowledge Format 0.2, Markdown with front matter (Google, 2026)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from recollect.api.exporters.exported_rows import ExportedRows, Row, is_current, is_valid, speaker_of
from recollect.api.exporters.markdown_text import escaped, file_name, front_matter, one_line, reference, visible_line
from recollect.projections.text.statement_lines import fact_line

OKF_VERSION = "0.2"
#: Characters of a title or a description.
_TITLE_CHARS_MAX = 120
#: Sources of one concept, newest last; an entity has many.
_SOURCES_MAX = 20
_PERSON = "person"
#: The fields of a memory under `recollect`, from which an import states it again.
_OWN_FIELDS = ("id", "subject", "confidence", "source_type", "status", "valid_from")
_FIELDS_OF = {
    "Fact": ("predicate", "object", "statement", "statement_kind", "type", "layer"),
    "Preference": ("category", "name", "value", "strength", "standing"),
    "Playbook": ("name", "trigger", "steps", "context"),
}
_ENTITY_FIELDS = ("description", "importance", "metadata")
_RELATION_FIELDS = ("type", "target", "confidence", "properties")


def render_bundle(rows: ExportedRows) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file: one concept for a fact, an entity, a day …"""
    bundle = _Bundle(rows)
    concepts: list[tuple[str, str, str]] = []
    for name, title, text in bundle.concepts():
        concepts.append((name, title, name.partition("/")[0]))
        yield name, text
    sections: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, title, section in concepts:
        sections[section].append((name, title))
    for section, entries in sorted(sections.items()):
        lines = [f"* [{escaped(title)}]({name.partition('/')[2]})" for name, title in entries]
        yield f"{section}/index.md", "\n".join([f"# {section.capitalize()}", "", *lines, ""])
    listed = [
        f"* [{section.capitalize()}]({section}/) - {len(entries)}" for section, entries in sorted(sections.items())
    ]
    yield (
        "index.md",
        front_matter({"okf_version": OKF_VERSION})
        + "\n".join(["", f"# Memory of {escaped(rows.namespace)}", "", *listed, ""]),
    )
    yield (
        "log.md",
        "\n".join(
            ["# Log", "", f"## {rows.exported_at[:10]}", "", f"* **Creation**: Exported at version {rows.version}.", ""]
        ),
    )


class _Bundle:
    """The rows with the places of what they refer to."""

    def __init__(self, rows: ExportedRows) -> None:
        self._rows = rows
        self._generator = f"recollect/{version('recollect')}"
        #: The episodes by their ids, for sources.
        self._episodes = {row["id"]: row for row in rows.lists["episodes"]}
        self._entity_files = {
            str(row["name"]).casefold(): f"{'people' if row['type'] == _PERSON else 'entities'}/"
            f"{file_name(row['name'], 'entity:' + row['name'])}"
            for row in rows.lists["entities"]
        }

    def concepts(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, the title and the text of each concept."""
        rows = self._rows
        by_subject: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows.lists["facts"]:
            by_subject[str(row["subject"]).casefold()].append(row)
            yield self._fact(row)
        for row in rows.lists["entities"]:
            yield self._entity(row, by_subject[str(row["name"]).casefold()])
        for row in rows.lists["preferences"]:
            body = f"{escaped(row['name'])}: {escaped(row['value'])}"
            yield self._concept("preferences", "Preference", row, f"{row['name']}: {row['value']}", body)
        for row in rows.lists["procedures"]:
            steps = [f"{number}. {escaped(step)}" for number, step in enumerate(row["steps"], start=1)]
            body = "\n".join(["# Trigger", "", escaped(row["trigger"]), "", "# Steps", "", *steps])
            yield self._concept("procedures", "Playbook", row, row["name"], body)
        for row in rows.lists["documents"]:
            yield self._document(row)
        for day, episodes in rows.days():
            yield self._day(day, episodes)

    def _fact(self, row: Row) -> tuple[str, str, str]:
        sentence = _sentence(row)
        about = self._entity_files.get(str(row["subject"]).casefold())
        body = escaped(sentence)
        if about is not None:
            body += f"\n\nAbout [{escaped(row['subject'])}](/{about})."
        return self._concept("facts", "Fact", row, sentence, body)

    def _concept(self, folder: str, kind: str, row: Row, title: str, body: str) -> tuple[str, str, str]:
        """Return a concept of one memory, with its validity, its sources, and who confirmed it."""
        title = one_line(title)[:_TITLE_CHARS_MAX]
        sources = self._sources(row.get("source_events") or [])
        fields: dict[str, Any] = {
            "type": kind,
            "title": title,
            "status": "stable" if is_valid(row, self._rows.exported_at) else "deprecated",
            "generated": {"by": self._generator, "at": row["updated_at"]},
            "verified": self._verified(row),
            "stale_after": str(row["stale_at"])[:10] if row.get("stale_at") else None,
            "sources": sources or None,
            "recollect": {name: row[name] for name in (*_OWN_FIELDS, *_FIELDS_OF[kind]) if row.get(name) is not None}
            | ({"valid_to": row["valid_until"]} if row.get("valid_until") else {}),
        }
        notes = "".join(f"[^{source['id']}]" for source in sources)
        labels = [f"[^{source['id']}]: {escaped(source['title'])}" for source in sources]
        text = "\n".join([front_matter(fields), body + notes, *(["", *labels] if labels else []), ""])
        return f"{folder}/{file_name(title, kind + row['id'])}", title, text

    def _verified(self, row: Row) -> list[dict[str, str]] | None:
        """Return who confirmed a memory: a person who stated or corrected it, if it was not extracted."""
        if row.get("source_type") != "corrected":
            return None
        return [{"by": "human:user", "at": row["updated_at"]}]

    def _sources(self, ids: list[str]) -> list[dict[str, str]]:
        """Return the events that a memory comes from; what is exported is named by its file."""
        sources: list[dict[str, str]] = []
        for id in ids[-_SOURCES_MAX:]:
            row = self._episodes.get(id)
            source = {"id": f"event-{reference(id)}", "resource": f"recollect:{self._rows.namespace}/events/{id}"}
            if row is not None:
                day = str(row["occurred_at"])[:10]
                source["resource"] = f"/{_day_file(day)}"
                source["author"] = (
                    f"human:{row['speaker'] or 'user'}" if row["role"] == "user" else "process:conversation"
                )
                source["last_modified"] = day
            source["title"] = (
                one_line(row["text"] or "")[:_TITLE_CHARS_MAX] if row is not None else "an event of the log"
            )
            sources.append(source)
        return sources

    def _entity(self, row: Row, facts: list[Row]) -> tuple[str, str, str]:
        fields: dict[str, Any] = {
            "type": str(row["type"]).capitalize(),
            "title": one_line(row["name"]),
            "description": one_line(row["description"]) if row.get("description") else None,
            "generated": {"by": self._generator, "at": row.get("last_seen_at") or self._rows.exported_at},
            "recollect": {
                "name": row["name"],
                "aliases": row.get("aliases") or [],
                **{name: row[name] for name in _ENTITY_FIELDS if row.get(name) is not None},
                **({"relations": relations} if (relations := self._relations_of(row)) else {}),
            },
        }
        current = [
            f"* [{escaped(fact['predicate'])}: {escaped(fact['object'])}](/facts/"
            f"{file_name(one_line(_sentence(fact))[:_TITLE_CHARS_MAX], 'Fact' + fact['id'])})"
            for fact in facts
            if is_current(fact)
        ]
        relations = [
            f"* {escaped(edge['type'])}: {self._link(edge['target'])}"
            for edge in self._rows.lists["relationships"]
            if edge["source"] == row["name"] and is_current(edge)
        ]
        body = ["# Facts", "", *current, ""] if current else []
        body += ["# Relations", "", *relations, ""] if relations else []
        text = "\n".join([front_matter(fields), *body])
        return self._entity_files[str(row["name"]).casefold()], fields["title"], text

    def _relations_of(self, row: Row) -> list[Row]:
        """Return the fields of the current relationships that begin at an entity."""
        return [
            {name: edge[name] for name in _RELATION_FIELDS if edge.get(name) is not None}
            for edge in self._rows.lists["relationships"]
            if edge["source"] == row["name"] and is_current(edge)
        ]

    def _link(self, name: str) -> str:
        file = self._entity_files.get(name.casefold())
        return escaped(name) if file is None else f"[{escaped(name)}](/{file})"

    def _document(self, row: Row) -> tuple[str, str, str]:
        title = one_line(row["title"])[:_TITLE_CHARS_MAX]
        fields: dict[str, Any] = {
            "type": "Reference",
            "title": title,
            "resource": row.get("uri"),
            "generated": {"by": self._generator, "at": row["added_at"]},
            "recollect": {
                "id": row["id"],
                **({"metadata": row["metadata"]} if row["metadata"] else {}),
                **({"relations": row["relations"]} if row["relations"] else {}),
            },
        }
        # Its own Markdown is text here, so that a document cannot change the bundle around it.
        quoted = [f"    {visible_line(line)}" for line in row["text"].splitlines()]
        body = "\n".join([front_matter(fields), *quoted, ""])
        return f"documents/{file_name(title, 'document' + row['id'])}", title, body

    def _day(self, day: str, episodes: list[Row]) -> tuple[str, str, str]:
        lines = [
            f"* {str(row['occurred_at'])[11:16]} **{escaped(speaker_of(row))}:** {escaped(row['text'])}"
            for row in episodes
        ]
        fields = {
            "type": "Conversation",
            "title": day,
            "generated": {"by": self._generator, "at": self._rows.exported_at},
        }
        return _day_file(day), day, "\n".join([front_matter(fields), *lines, ""])


def _sentence(row: Row) -> str:
    return row["statement"] or fact_line(row["subject"], row["predicate"], row["object"])


def _day_file(day: str) -> str:
    return f"episodes/{day.replace('-', '/')}.md"
