from __future__ import annotations

from pathlib import Path

import pytest
from support.exports import write_folder
from support.imports import events, facts, run

from recollect.api.importers.imported_statements import statement
from recollect.api.settings import Settings

KIRA = {
    "MEMORY.md": "# MEMORY.md\n\n## 1. Work\n\n- **Employer:** Fernside Farm\n- Otto prefers short answers\n\n"
    "## 2. Home\n\nThe house has a blue door. The cat is called Biscuit.\n",
    "USER.md": "# USER.md\n\n- **Name:** Otto\n- **Timezone:** Europe/Vienna\n",
    "SOUL.md": "You are Kira.",
    "memory/2026-02-11.md": "# 2026-02-11\n\n## Deploy (21:19 UTC)\n\n- Deployed the site to Vercel\n"
    "- Rolled back at once (22:05 UTC)\n",
    "memory/2026-02-12-boat-trip.md": "- Rented a boat on the lake\n",
    "memory/heartbeat-state.json": "{}",
    "memory/retrieved-context.md": "- old context",
}


def sample(folder: Path) -> Path:
    return write_folder(folder / "kira", KIRA)


def vault(folder: Path) -> Path:
    notes = {"Boats/Skiff.md": "# Skiff\n\nVarnish it in May.\n", "2026-02-11.md": "- Rented a boat\n"}
    return write_folder(folder / "vault", notes)


SAMPLES = {"kira": sample, "markdown": vault}


def test_kiras_files_become_facts_and_dated_observations(tmp_path: Path, settings_of_test: Settings) -> None:
    report = run(sample(tmp_path), settings_of_test)
    assert ("user", "employer is", "Fernside Farm") in facts(settings_of_test)
    assert ("Otto", "prefers", "short answers") in facts(settings_of_test)
    assert ("user", "name is", "Otto") in facts(settings_of_test)
    assert ("user", "note", "Home: The cat is called Biscuit") in facts(settings_of_test)
    notes = [
        (event.as_json()["occurred_at"], event.data()["text"])
        for event in events(settings_of_test, "observation.recorded")
    ]
    assert notes == [
        ("2026-02-11T21:19:00Z", "Deploy: Deployed the site to Vercel"),
        ("2026-02-11T22:05:00Z", "Deploy: Rolled back at once"),
        ("2026-02-12T12:00:00Z", "Rented a boat on the lake"),
    ]
    assert report.skipped == {"persona file": 1, "file of a program, no note": 2}


@pytest.mark.parametrize(
    ("line", "triple"),
    [
        ("User likes tea.", ("Ann", "likes", "tea")),
        ("**Employer:** Fernside Farm", ("Ann", "employer is", "Fernside Farm")),
        ("Name is Kate", ("Ann", "name is", "Kate")),
        ("Favourite tea: sencha", ("Ann", "favourite tea is", "sencha")),
        ("Diet: is vegetarian", ("Ann", "diet is", "vegetarian")),
        ("Is is what it is.", None),
        ("Considering is a new job", None),
        ("Mother is ill", None),
        ("Rex is a dog", ("Rex", "is", "a dog")),
        ("**Home town:** Porto", None),
        ("Status: waiting", None),
        ("user provided the following information about themselves:", None),
        ("User profile: a nurse", None),
        ("**Notes:**", None),
        ("The user's favourite colour is green", ("Ann", "favourite colour is", "green")),
        ("User has been rowing for years", ("Ann", "has", "been rowing for years")),
        ("User rows every Sunday", ("Ann", "did", "rows every Sunday")),
        ("Ann works at Fernside Farm", ("Ann", "works at", "Fernside Farm")),
        ("Bob Lund lives in Graz", ("Bob Lund", "lives in", "Graz")),
        ("She plans the orchards", None),
        ("Meeting at 10:30", None),
        ("see https://example.org", None),
    ],
)
def test_a_line_of_a_known_form_becomes_a_fact_about_whom_it_names(
    line: str, triple: tuple[str, str, str] | None
) -> None:
    names = ("subject", "predicate", "object")
    assert statement(line, "Ann") == (None if triple is None else dict(zip(names, triple, strict=True)))
