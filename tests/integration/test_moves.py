"""Moving in: what six people bring from other programs becomes right statements or plain notes, as they are shown."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import moves
from support.exports import write_folder, write_json
from typer.testing import CliRunner

from recollect import Recollect
from recollect.api.cli.main import app
from recollect.api.exporters.bundle_files import write_bundle
from recollect.api.importers.file_import import import_path
from recollect.api.importers.imported_records import ImportReport
from recollect.api.importers.source_files import open_source
from recollect.api.memory.file_export import export_files
from recollect.api.memory.view_import import import_view
from recollect.api.pages.export import export_lines
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.projections.text.statement_lines import fact_line, preference_line

_QUERY = "name lives likes hates plays timezone birthday premiere"


def bring(path: Path, data: Path, user: str | None = None) -> ImportReport:
    return import_path(path, settings=load_settings(data=data, embedding_model="none"), namespace="a", user=user)


@contextmanager
def memory_of(path: Path, data: Path, user: str | None = None) -> Generator[Recollect]:
    """Import an export into a fresh folder, let the jobs run, and open the memory."""
    assert bring(path, data, user).failures == 0
    assert bring(path, data, user).added == 0, "the same again adds nothing"
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        memory.settle("a")
        yield memory


def lines(memory: Recollect) -> list[str]:
    """Return the facts and preferences as a context shows them."""
    facts = memory.facts("a", filters={"status": "active"}, limit=500)["items"]
    preferences = memory.list("a", "preferences", filters={"status": "active"})["items"]
    return [fact_line(row["subject"], row["predicate"], row["object"]) for row in facts] + [
        preference_line(row["subject"] or "", row["category"], row["name"], row["value"]) for row in preferences
    ]


def days(memory: Recollect) -> list[str]:
    """Return the observations with their times, oldest first."""
    rows = memory.episodes("a", limit=500)["items"]
    notes = [f"{row['occurred_at'][5:16]} {row['text']}" for row in rows if row["type"] == "observation"]
    return sorted(notes, key=lambda note: note[:11])


def test_kiras_files_make_facts_of_known_forms_and_notes_of_the_rest(tmp_path: Path) -> None:
    with memory_of(write_folder(tmp_path / "kira", moves.KIRA), tmp_path / "data", "Milan") as memory:
        shown = lines(memory)
        assert [line for line in shown if not line.startswith("note about ")] == [
            "Milan's role is sound engineer",
            "Hana's role is vet",
            "Hana is allergic to penicillin",
            "Tereza's age is 7",
            "Vojta's age is 4",
            "Milan needs to Renew the passport",
            "Milan's name is Milan Dvořák",
            "Milan's timezone is Europe/Prague",
            "Milan's location is Brno",
            "Milan's birthday is 3 April 1984",
            "Milan plays the accordion",
            "Milan needs to Call Mr Kovář about the premiere (Call with the insurance)",
            "Milan hates phone calls",
            "Milan prefers short answers",
            "formatting.communication: no emojis",
            "Milan likes dry humour",
        ]
        relations = memory.list("a", "relationships")["items"]
        assert [f"{row['type']} {row['target']}" for row in relations] == ["partner Hana", "kid Tereza", "kid Vojta"]
        assert [line.removeprefix("note about Milan: ") for line in shown if line.startswith("note about ")] == [
            "People: Boss at the theatre is Mr Kovář",
            "Projects: Lighthouse: AI tutor for violin students",
            "Projects: Status: waiting for the contract",
            "Projects: Deadline: 2026-12-15",
            "Projects: Decided on Postgres over Mongo (2026-05-03)",
            "Lessons: Never deploy on Fridays",
            "Lessons: The mixer needs 48 kHz, otherwise it crackles, which took them a whole evening to find out and "
            "must not happen again at the premiere",
            "Open: Done: Pay the deposit for the flat",
            "What to call them: Milan",
            "Pronouns: he/him",
            "Night owl, no calls before ten",
        ]
        assert days(memory) == [
            "10-02T12:00 Morning: Sound check at the theatre, the left monitor is dead and has to go back to the shop "
            "in Vienna this week",
            "10-02T12:00 Evening: Cooked dumplings with Hana",
            "10-02T14:30 Call with the insurance: They pay for the monitor",
            "10-02T14:30 Call with the insurance: Done: Ordered cables",
            "10-02T15:10 sent the invoice",
            "10-02T21:45 Vojta has a fever, 38.5",
            "10-03T12:00 Hana cried.",
            "10-03T22:30 The premiere went well.",
        ]
        [document] = memory.list("a", "documents")["items"]
        assert (document["title"], document["text"]) == (
            "memory / People we met",
            "Ola runs the bar at the theatre.",
        )


def test_the_hints_of_a_template_and_empty_fields_make_nothing(tmp_path: Path) -> None:
    with memory_of(write_folder(tmp_path / "claw", moves.OPENCLAW), tmp_path / "data") as memory:
        assert lines(memory) == [
            "user's name is Grace",
            "note about user: The more you know, the better you can help",
            "note about user: But remember: you're learning about a person, not building a dossier",
        ]
        assert days(memory) == [
            "11-01T09:05 Grace asked for a reading list on tides",
            "11-01T09:40 sent five books",
            "11-01T10:15 she chose the first",
        ]


def test_a_vault_of_obsidian_becomes_documents_and_dated_lines_with_its_tasks(tmp_path: Path) -> None:
    with memory_of(write_folder(tmp_path / "vault", moves.OBSIDIAN), tmp_path / "data") as memory:
        tasks = ["user needs to Call the council about the terrace (Log)", "user needs to Drawings (Terrace)"]
        assert sorted(lines(memory)) == tasks
        assert days(memory) == [
            "10-05T08:15 Log: bread out of the oven, crumb too dense",
            "10-05T12:00 Log: Done: Ordered 25 kg flour",
            "10-05T12:00 Log: Met Oskar at the mill",
            "10-05T12:00 Gratitude: The first customer brought us figs.",
        ]
        documents = {row["title"]: row["text"] for row in memory.list("a", "documents")["items"]}
        assert sorted(documents) == ["Home", "People / Oskar Lind", "Projects / Terrace", "Recipes / Rye"]
        assert documents["People / Oskar Lind"].startswith("Miller in Visby. Age: 58.")
        assert "- Sister: Ebba" in documents["People / Oskar Lind"]
        assert "- [ ] Drawings\n- [x] Ask the neighbours" in documents["Projects / Terrace"]
        [rye] = memory.retrieve("a", "How long does the rye bread bake?", gate=False, limit=1).items
        assert "90 minutes" in rye.text


def test_an_edited_note_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    vault = write_folder(tmp_path / "vault", moves.OBSIDIAN)
    bring(vault, tmp_path / "data")
    (vault / "Recipes" / "Rye.md").write_text("Rye, water, salt. 80 minutes at 220 degrees.\n")
    with memory_of(vault, tmp_path / "data") as memory:
        [text] = [row["text"] for row in memory.list("a", "documents")["items"] if row["title"] == "Recipes / Rye"]
        assert "80 minutes" in text


_NURI = [
    "{}'s name is Nuri", "{} lives in Izmir", "{} is allergic to shellfish", "{}'s favorite tea is sage",
    "{} works as a marine biologist at the aquarium", "{} has a dog named Pasha", "{}'s sister is called Elif",
    "note about {}: Planning a trip to Georgia in May", "note about {}: Interested in: freediving, jazz",
    "note about {}: Time of the weekly call is 18:00", "{} asked how to repair a kayak",
]  # fmt: skip


@pytest.mark.parametrize("user", ["Nuri", None])
def test_the_memories_of_mem0_are_about_one_person_with_and_without_a_name(tmp_path: Path, user: str | None) -> None:
    with memory_of(write_json(tmp_path / "mem0.json", moves.MEM0), tmp_path / "data", user) as memory:
        named = ["Nuri prefers trains over planes"]
        assert sorted(lines(memory)) == sorted([*(line.format(user or "user") for line in _NURI), *named])
    # The same memories again, about the person by the other name.
    again = bring(tmp_path / "mem0.json", tmp_path / "data", None if user else "Nuri")
    assert again.added == 0


@pytest.mark.parametrize("has_own_texts", [False, True])
def test_the_profile_of_chatgpt_is_what_the_user_wrote(tmp_path: Path, has_own_texts: bool) -> None:
    export = write_json(tmp_path / "chatgpt" / "conversations.json", moves.chatgpt(has_own_texts=has_own_texts))
    with memory_of(export, tmp_path / "data", "Priyanka") as memory:
        assert sorted(lines(memory)) == [
            "Priyanka is allergic to walnuts",
            "Priyanka's occupation is pastry chef",
            "Priyanka's preferred name is Priyanka",
            "communication.custom instructions: British spelling, metric units.",
            "note about Priyanka: they run a tea room in Leith with their brother Dev. they don't eat eggs",
        ]


def test_the_paragraphs_of_claude_keep_their_headings(tmp_path: Path) -> None:
    export = write_json(tmp_path / "claude" / "memories.json", moves.CLAUDE)
    with memory_of(export, tmp_path / "data", "Tomás") as memory:
        assert lines(memory) == [
            "Tomás is a land surveyor in Rosario",
            "note about Tomás: Work context: He works for Cartas del Sur, where he leads a team of four",
            "Tomás lives with his partner Inés and their twins",
            "note about Tomás: Personal context: He is learning to bake and keeps bees",
            "Tomás's diet is vegetarian",
            "Tomás's age is 41",
            "Tomás is preparing a talk about drones for March: the draft is due at the end of January",
            "note about Tomás: Brief history: He compared three drones and chose the lightest one",
        ]


@pytest.mark.parametrize("form", ["markdown", "preamble", "json"])
def test_what_has_no_date_is_shown_without_one(tmp_path: Path, form: Any) -> None:
    curated = {name: text for name, text in moves.KIRA.items() if not name.startswith("memory/")}
    with memory_of(write_folder(tmp_path / "kira", curated), tmp_path / "data", "Milan") as memory:
        context = memory.retrieve("a", _QUERY, gate=False, limit=20, format=form).context
        own = "\n".join(line for line in context.splitlines() if "accordion" in line or "Brno" in line)
        assert "the accordion" in own
        assert "said " not in own
        days_shown = [word for word in ("today", "days ago", "20") if word in own.replace('"today"', "")]
        assert form == "json" or days_shown == []
        if form == "json":
            assert '"when":null,"speaker":null,"text":"Milan plays the accordion' in own.replace('"day":null,', "")


def test_a_cut_archive_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)))
    with pytest.raises(InvalidInput, match="not a whole zip file"), open_source(path):
        pass


def test_files_of_an_export_are_read_as_such_also_as_kiras(tmp_path: Path) -> None:
    run = CliRunner().invoke
    data = ["--data", str(tmp_path / "data")]
    event = '{"type": "fact.stated", "payload": {"subject": "user", "predicate": "location is", "object": "Brno"}}'
    assert run(app, [*data, "append", "a", event]).exit_code == 0
    files = str(tmp_path / "files")
    assert run(app, [*data, "export", "--namespace", "a", "--format", "memory-md", "--output", files]).exit_code == 0
    fresh = ["--data", str(tmp_path / "fresh")]
    done = run(app, [*fresh, "import", files, "--namespace", "b", "--format", "kira"])
    assert (done.exit_code, "imported: 1 (1 fact.stated)" in done.output) == (0, True)
    assert '"predicate":"location is","object":"Brno"' in run(app, [*fresh, "list", "b", "facts"]).output


@pytest.mark.parametrize("form", ["memory-md", "okf", "events"])
@pytest.mark.parametrize("name", ["KIRA", "OBSIDIAN"])
def test_what_moved_in_moves_out_and_in_again_as_it_was(tmp_path: Path, form: str, name: str) -> None:
    source = write_folder(tmp_path / "source", getattr(moves, name))
    query = "accordion premiere terrace flour"
    with memory_of(source, tmp_path / "data", "Milan") as memory:
        shown, said = lines(memory), days(memory)
        documents = {(row["title"], row["text"]) for row in memory.list("a", "documents")["items"]}
        context = memory.retrieve("a", query, gate=False, limit=20).context
        if form == "events":
            (tmp_path / "a.jsonl").write_bytes(b"".join(export_lines(memory.parts.log, "a")))
        else:
            write_bundle(tmp_path / "out", export_files(memory, "a", form), overwrite=True)
    fresh = load_settings(data=tmp_path / "fresh", embedding_model="none")
    with Recollect(settings=fresh, workers=False) as other:
        if form == "memory-md":
            with open_source(tmp_path / "out") as files:
                assert import_view(other, files, None).failures == 0
        else:
            path = tmp_path / ("a.jsonl" if form == "events" else "out")
            assert import_path(path, settings=fresh, namespace="a").failures == 0
        assert sorted(lines(other)) == sorted(shown)
        assert days(other) == (said if form != "okf" else [])
        if form != "memory-md":
            assert {(row["title"], row["text"]) for row in other.list("a", "documents")["items"]} == documents
        dated = [
            line for line in other.retrieve("a", query, gate=False, limit=20).context.splitlines() if "said" in line
        ]
        assert dated == [line for line in context.splitlines() if "said" in line]
