from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.events import message
from typer.testing import CliRunner

from recollect import Recollect
from recollect.api.cli.main import app as cli
from recollect.api.exporters.bundle_files import write_bundle
from recollect.api.exporters.markdown_text import escaped, front_matter, unescaped
from recollect.api.http.app import create_app
from recollect.api.importers.file_import import import_path
from recollect.api.importers.source_files import open_source
from recollect.api.memory.file_export import export_files
from recollect.api.memory.view_import import import_view, is_view
from recollect.api.pages.export import export_lines
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput

_DAY = "2026-03-01T09:00:00Z"


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path / "data", embedding_model="none"), workers=False) as memory:
        yield memory


def fact(subject: str, predicate: str, object: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "fact.stated",
        "occurred_at": _DAY,
        "payload": {"subject": subject, "predicate": predicate, "object": object},
    } | fields


def fill(memory: Recollect) -> None:
    memory.append(
        "ann",
        [
            message("Hello there", id="m1", session_id="s1", occurred_at=_DAY),
            fact("user", "lives in", "Porto", id="f1"),
            fact("Biscuit", "is", "a cat", id="f2"),
            fact("Biscuit", "likes", "fish & chips", id="f3"),
            {"type": "preference.stated", "id": "p1", "payload": {"key": "tone", "value": "short"}},
            {"type": "entity.described", "payload": {"name": "Biscuit", "type": "animal"}},
            {"type": "relationship.stated", "payload": {"source": "Biscuit", "type": "lives with", "target": "Ann"}},
            {
                "type": "procedure.recorded",
                "payload": {"name": "deploy", "trigger": "a release", "steps": ["test", "tag"]},
            },
            {
                "type": "document.added",
                "payload": {"document_id": "d", "title": "House", "text": "# Rules\n\n---\ntype: x"},
            },
        ],
    )


def view_of(memory: Recollect, folder: Path) -> Path:
    write_bundle(folder, export_files(memory, "ann", "memory-md"), overwrite=True)
    return folder


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def import_again(memory: Recollect, folder: Path, *, dry_run: bool = False) -> Any:
    with open_source(folder) as files:
        assert is_view(files)
        return import_view(memory, files, "ann", dry_run=dry_run)


def current(memory: Recollect) -> list[tuple[str, str, str]]:
    rows = memory.facts("ann", filters={"status": "active"})["items"]
    return [(row["subject"], row["predicate"], row["object"]) for row in rows]


def test_an_unchanged_view_appends_nothing(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    before = memory.parts.log.head("ann").version
    report = import_again(memory, view_of(memory, tmp_path / "view"))
    assert (report.added, report.failed, report.skipped) == (0, [], {})
    assert report.duplicates == 7
    assert memory.parts.log.head("ann").version == before


def test_an_edited_line_is_one_correction_once(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    edit(folder / "USER.md", lambda text: text.replace("Porto", "Lund"))
    assert import_again(memory, folder, dry_run=True).imported == {"fact.corrected": 1}
    assert import_again(memory, folder).imported == {"fact.corrected": 1}
    assert import_again(memory, folder).added == 0
    assert ("user", "lives in", "Lund") in current(memory)
    assert ("user", "lives in", "Porto") not in current(memory)
    [first, second] = memory.fact_history("ann", "f1")["items"]
    assert (first["object"], second["object"], second["source_type"]) == ("Porto", "Lund", "corrected")


def test_a_line_is_ended_by_striking_it_through_and_not_by_removing_it(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    edit(folder / "MEMORY.md", lambda text: re.sub(r"- (.*is:.*cat) <!--", r"- ~~\1~~ <!--", text))
    edit(folder / "USER.md", lambda text: "\n".join(line for line in text.splitlines() if "tone" not in line))
    report = import_again(memory, folder)
    assert report.imported == {"memory.ended": 1}
    assert [*report.skipped.values()] == [1]
    assert "missing" in next(iter(report.skipped))
    assert ("Biscuit", "is", "a cat") not in current(memory)
    assert len(memory.list("ann", "preferences", filters={"status": "active"})["items"]) == 1
    assert import_again(memory, folder).added == 0


def test_relationships_and_procedures_are_edited_and_ended_by_their_lines(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    text = (folder / "MEMORY.md").read_text(encoding="utf-8")
    assert "Not in these files: the texts of 1 documents" in text
    edit(
        folder / "MEMORY.md",
        lambda text: text.replace("** Ann <!--", "** Bob <!--").replace("test → tag", "tag → sign"),
    )
    assert import_again(memory, folder).failed == []
    assert import_again(memory, folder).added == 0
    [relationship] = memory.list("ann", "relationships", filters={"status": "active"})["items"]
    [procedure] = memory.list("ann", "procedures", filters={"status": "active"})["items"]
    assert (relationship["source"], relationship["target"]) == ("Biscuit", "Bob")
    assert (procedure["trigger"], procedure["steps"]) == ("a release", ["tag", "sign"])
    folder = view_of(memory, folder)
    edit(folder / "MEMORY.md", lambda text: re.sub(r"- (.*(?:Bob|sign)) <!--", r"- ~~\1~~ <!--", text))
    assert import_again(memory, folder).imported == {"memory.ended": 2}


def test_added_lines_become_facts_and_preferences(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    edit(folder / "USER.md", lambda text: f"{text}- **greeting:** by name\n")
    edit(folder / "MEMORY.md", lambda text: f"{text}- **colour:** grey\n")
    assert import_again(memory, folder).imported == {"fact.stated": 1, "preference.stated": 1}
    assert ("Biscuit", "colour is", "grey") in current(memory)
    assert import_again(memory, folder).added == 0


def test_an_edit_of_what_changed_meanwhile_or_of_a_key_is_refused_with_its_line(
    memory: Recollect, tmp_path: Path
) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    edit(folder / "USER.md", lambda text: text.replace("Porto", "Lund").replace("**tone:**", "**manner:**"))
    memory.update("ann", "f1", object="Graz")
    report = import_again(memory, folder)
    assert report.added == 0
    assert [failure.where for failure in report.failed] == ["USER.md, line 6", "USER.md, line 10"]
    assert "superseded meanwhile" in report.failed[0].reason
    assert "only what follows" in report.failed[1].reason


def test_an_okf_bundle_is_conformant_and_has_validity_and_sources(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    memory.append(
        "ann",
        fact(
            "user",
            "likes",
            "tea",
            payload={
                "subject": "user",
                "predicate": "likes",
                "object": "tea",
                "source_events": ["m1"],
                "valid_from": "2020-01-01T00:00:00Z",
            },
        ),
    )
    memory.update("ann", "f1", object="Lund")
    target = tmp_path / "bundle.zip"
    count = write_bundle(target, export_files(memory, "ann", "okf"))
    with zipfile.ZipFile(target) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert len(texts) == count
    concepts = {name: front(text) for name, text in texts.items() if Path(name).name not in ("index.md", "log.md")}
    assert all(fields["type"] for fields in concepts.values())
    assert front(texts["index.md"]) == {"okf_version": "0.2"}
    by_title = {fields["title"]: fields for fields in concepts.values()}
    assert by_title["user likes tea"]["recollect"]["valid_from"] == "2020-01-01T00:00:00Z"
    assert by_title["user likes tea"]["sources"][0]["resource"] == "/episodes/2026/03/01.md"
    assert by_title["user lives in Lund"]["verified"][0]["by"] == "human:user"
    assert by_title["user lives in Porto"]["status"] == "deprecated"
    links = [link for text in texts.values() for link in re.findall(r"\]\((/[^)]+\.md)\)", text)]
    assert links
    assert all(link.removeprefix("/") in texts for link in links)


def front(text: str) -> Any:
    assert text.startswith("---\n")
    return yaml.safe_load(text.split("---\n")[1])


def test_an_export_writes_over_nothing_unless_it_is_told_to(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "MEMORY.md").write_text("my own")
    with pytest.raises(InvalidInput, match="has files already"):
        write_bundle(tmp_path / "mine", export_files(memory, "ann", "memory-md"))
    assert (tmp_path / "mine" / "MEMORY.md").read_text() == "my own"
    assert write_bundle(tmp_path / "mine", export_files(memory, "ann", "memory-md"), overwrite=True) == 3


#: Text that would be structure: of Markdown, YAML, HTML, and of the generated lines themselves.
_HOSTILE = st.one_of(
    st.text(max_size=25),
    st.lists(
        st.sampled_from(
            [
                "---",
                "\n# Title\n",
                "<!-- x -->",
                "-->",
                "<script>",
                "](http://x)",
                "[a](b)",
                "~~",
                "**",
                ":** ",
                "\\",
                "`",
                "- ",
                "1. ",
                "> ",
                "https://evil.example",
                "recollect:f:0123456789abcdef:01234567",
                "|",
                "&lt;",
                "\u2028",
                "\u202e",
                "![i](u)",
            ]
        ),
        max_size=5,
    ).map("".join),
)
_NAME = _HOSTILE.map(lambda text: "".join(c for c in text if c.isprintable())[:60]).filter(
    lambda text: bool(text.strip())
)
_OBJECT = _HOSTILE.filter(lambda text: bool(text.strip()) and text.encode(errors="ignore").decode() == text)


@given(text=_OBJECT)
@example("__0__")
def test_hostile_text_is_text_in_markdown_and_in_front_matter(text: str) -> None:
    tokens = MarkdownIt("commonmark", {"linkify": False}).enable("strikethrough").parse(f"- **k:** {escaped(text)}")
    assert {token.type for token in tokens} <= {
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
        "inline",
        "paragraph_close",
        "list_item_close",
        "bullet_list_close",
    }
    inline = [child.type for token in tokens for child in token.children or ()]
    assert set(inline) <= {"text", "text_special", "strong_open", "strong_close"}
    assert inline.count("strong_open") == 1
    shown = " ".join(escaped(text).split())
    assert escaped(unescaped(shown)) == shown
    assert yaml.safe_load(front_matter({"title": text}).split("---\n")[1]) == {"title": text}


@settings(max_examples=8)
@given(facts=st.lists(st.tuples(_NAME, _NAME, _OBJECT), min_size=1, max_size=5), said=_OBJECT)
def test_a_view_of_hostile_memories_appends_nothing_and_an_edit_is_one_correction(
    facts: list[tuple[str, str, str]], said: str
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Recollect(settings=load_settings(data=Path(folder) / "data", embedding_model="none"), workers=False) as memory,
    ):
        memory.append("ann", [message(said), *(fact(*triple) for triple in facts)])
        view = view_of(memory, Path(folder) / "view")
        report = import_again(memory, view)
        assert (report.added, report.failed) == (0, [])
        lines = sum(text.count("<!-- recollect:f:") for text in texts_of(view))
        assert lines == len([row for row in memory.facts("ann")["items"] if row["status"] == "active"])
        for path in (view / "USER.md", view / "MEMORY.md"):
            edit(path, lambda text: re.sub(r"(.) <!-- recollect:f:", r"\1 edited <!-- recollect:f:", text, count=1))
        edited = import_again(memory, view)
        assert edited.failed == []
        assert set(edited.imported) == {"fact.corrected"}
        assert import_again(memory, view).added == 0


def texts_of(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in folder.rglob("*.md")]


def remembered(memory: Recollect) -> dict[str, Any]:
    """Return what a bundle has to bring back."""
    fields = {
        "facts": ("subject", "predicate", "object", "type", "layer", "valid_from", "valid_until"),
        "preferences": ("subject", "category", "name", "value"),
        "procedures": ("name", "trigger", "steps"),
        "relationships": ("source", "type", "target", "properties"),
        "documents": ("title", "text", "uri", "metadata"),
    }
    now = {
        name: sorted(
            ([row[field] for field in columns] for row in memory.list("ann", name)["items"] if _holds(row)), key=str
        )
        for name, columns in fields.items()
    }
    entities = memory.entities("ann")["items"]
    return now | {"entities": {(row["name"], row["type"], row["description"], *row["aliases"]) for row in entities}}


def _holds(row: Any) -> bool:
    return row.get("status", "active") == "active"


_TEXTS = st.one_of(_NAME, st.sampled_from(["Porto", "a cat", "tea: green"]))


@settings(max_examples=6)
@given(facts=st.lists(st.tuples(_NAME, _TEXTS), max_size=3, unique_by=lambda pair: pair[0].casefold()), value=_TEXTS)
def test_a_bundle_comes_back_as_the_same_knowledge(facts: list[tuple[str, str]], value: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (load_settings(data=Path(folder) / name, embedding_model="none") for name in "ab")
        bundle = Path(folder) / "bundle"
        with Recollect(settings=first, workers=False) as memory:
            fill(memory)
            memory.append(
                "ann",
                [
                    *(fact(subject, "owns", object) for subject, object in facts),
                    {"type": "preference.stated", "payload": {"key": "greeting", "value": value}},
                ],
            )
            write_bundle(bundle, export_files(memory, "ann", "okf"))
            expected = remembered(memory)
        report = import_path(bundle, settings=second, namespace="ann")
        assert (report.format, report.failed) == ("okf", [])
        assert import_path(bundle, settings=second, namespace="ann").added == 0
        with Recollect(settings=second, workers=False) as memory:
            assert remembered(memory) == expected


_EVENT = st.one_of(
    st.text(min_size=1, max_size=20).map(
        lambda text: message(text.replace("\ud800", ""), occurred_at=_DAY, session_id="s")
    ),
    st.tuples(
        st.sampled_from(["user", "Ann"]),
        st.sampled_from(["lives in", "likes"]),
        st.sampled_from(["Porto", "Lund", "tea"]),
    ).map(lambda triple: fact(*triple)),
)


@given(events=st.lists(_EVENT, min_size=1, max_size=4))
def test_an_export_of_events_imports_to_the_same_memory(events: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = load_settings(data=Path(folder) / "a", embedding_model="none")
        second = load_settings(data=Path(folder) / "b", embedding_model="none")
        file = Path(folder) / "ann.jsonl"
        with Recollect(settings=first, workers=False) as memory:
            memory.append("ann", events)
            file.write_bytes(b"".join(export_lines(memory.parts.log, "ann")))
            expected = lists_of(memory)
        report = import_path(file, settings=second)
        assert (report.format, report.failed, report.added) == ("jsonl", [], len(events))
        with Recollect(settings=second, workers=False) as memory:
            assert lists_of(memory) == expected


def lists_of(memory: Recollect) -> list[Any]:
    names = ("episodes", "sessions", "entities", "facts", "preferences", "relationships")
    return [memory.list("ann", name)["items"] for name in names]


async def test_over_http_an_export_is_a_zip_and_not_of_one_subject(memory: Recollect) -> None:
    fill(memory)
    transport = httpx.ASGITransport(app=create_app(memory))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for form in ("okf", "memory-md"):
            answer = await client.get("/v1/namespaces/ann/export", params={"format": form})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "application/zip"
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                assert any(name.endswith(".md") for name in archive.namelist())
        refused = await client.get("/v1/namespaces/ann/export", params={"format": "okf", "subject": "Ann"})
        assert refused.status_code == 422


def test_the_commands_import_and_export_and_exit_with_1_for_a_failure(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    source = tmp_path / "mem0.json"
    source.write_text('[{"id": "1", "memory": "User lives in Porto"}, {"id": "2"}]')
    runner = CliRunner()
    imported = runner.invoke(cli, [*data, "import", str(source), "--namespace", "ann"])
    assert imported.exit_code == 1
    assert "FAILED: mem0.json, memory 2" in imported.output
    shown = runner.invoke(cli, [*data, "import", "--dry-run", "--json", str(source), "--namespace", "ann"])
    assert orjson.loads(shown.output)["duplicates"] == 1
    view = str(tmp_path / "view")
    exported = runner.invoke(cli, [*data, "export", "--namespace", "ann", "--format", "memory-md", "--output", view])
    assert exported.exit_code == 0, exported.output
    again = runner.invoke(cli, [*data, "import", view])
    assert (again.exit_code, "imported: 0" in again.output) == (0, True)
    for wrong in (["--format", "okf"], ["--namespace", "ann", "--format", "okf"], ["--format", "markdown"]):
        assert runner.invoke(cli, [*data, "export", *wrong]).exit_code != 0
