from __future__ import annotations

from pathlib import Path

import pytest
from support.exports import write_folder
from support.imports import events, facts, run, stated

from recollect import Recollect
from recollect.api.importers.imported_people import stated_people
from recollect.api.importers.imported_statements import preference, statement
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


@pytest.mark.parametrize(
    ("heading", "line", "said"),
    [
        ("People", "Tom Weber — husband, lives in Ghent", ["Ann husband Tom Weber", "Tom Weber lives in Ghent"]),
        ("Family", "**Ana** (my sister) - nurse", ["Ann sister Ana", "Ana role is nurse"]),
        ("People", "Ed — miller, in Dorset since 2019", ["Ed role is miller", "Ed note in Dorset since 2019"]),
        ("People / Ed Brown", "Lives in Dorset", ["Ed Brown lives in Dorset"]),
        ("People / Ed Brown", "Partner: Rosie", ["Ed Brown partner Rosie"]),
        ("People / Work", "Tom — boss, 41, chef", ["Ann boss Tom", "Tom age is 41", "Tom role is chef"]),
        ("", "Partner: Ed", ["Ann partner Ed"]),
        ("", "Kids: Rosie (9) and Finn (6)", ["Ann kid Rosie", "Rosie age is 9", "Ann kid Finn", "Finn age is 6"]),
        ("", "Dog: Rex", ["Ann dog Rex"]),
        ("", "Bob — lives in Graz", ["Bob lives in Graz"]),
        ("", "Rose — the colour of the door", []),
        ("", "Role: manager", []),
        ("Acme", "Partner: Siemens", []),
        ("People", "Friends: none yet", []),
        ("People", "Met most of them at the mill.", []),
    ],
)
def test_an_entry_of_a_list_of_people_is_a_person_with_relation_role_and_home(
    heading: str, line: str, said: list[str]
) -> None:
    events = stated_people(line, "Ann", tuple(filter(None, heading.split(" / "))), is_of_user=not heading)
    names = {"fact.stated": ("subject", "predicate", "object"), "relationship.stated": ("source", "type", "target")}
    shown = [" ".join(payload[name] for name in names[kind]) for kind, payload in events if kind in names]
    assert shown == said
    assert any(kind == "entity.described" for kind, _ in events) == bool(said)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("Hates phone calls", "phone calls", "hates"),
        ("**Tone:** dry", "tone", "dry"),
        ("No emojis", "No emojis", "No emojis"),
    ],
)
def test_any_line_below_preferences_is_a_preference(line: str, key: str, value: str) -> None:
    payload = preference(line, "user")
    assert payload is not None
    assert (payload["key"], payload["value"]) == (key, value)
    assert preference("_(none)_", "user") is None


def test_notes_keep_their_names_tags_and_links_and_open_tasks_apart_from_done_ones(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    notes = {
        "Shop.md": "---\naliases:\n  - The Mill\ntags: [work, flour]\ncreated: 2025-11-02\n---\n"
        "# Shop\n\nSee [[Ed Brown|the miller]] and [[Suppliers#Flour]].\n",
        "pages/Ed Brown.md": "alias:: Ed, Eddie\nbirthday:: 1988-02-09\n\n- Miller\n",
        "journals/2026_02_12.md": "- TODO Call Ed\n- DONE Ordered salt\n  id:: 64\n- [ ] Pay\n- [x] Sold\n- [/] Write",
        "2026-13-45.md": "No day has this date.\n",
        "logseq/bak/old.md": "A copy.\n",
    }
    report = run(write_folder(tmp_path / "graph", notes), settings_of_test)
    assert report.failed == []
    documents = {payload["title"]: payload for payload in stated(settings_of_test, "document.added")}
    assert set(documents) == {"Shop (The Mill)", "pages / Ed Brown (Ed, Eddie)", "2026-13-45"}
    shop = documents["Shop (The Mill)"]
    assert shop["text"] == "See the miller and Suppliers."
    assert shop["metadata"]["tags"] == "work, flour"
    assert documents["pages / Ed Brown (Ed, Eddie)"]["text"] == "birthday: 1988-02-09\n\n- Miller"
    ed = documents["pages / Ed Brown (Ed, Eddie)"]["document_id"]
    assert [relation["target"] for relation in shop["relations"]] == [ed, "Suppliers"]
    names = {payload["name"]: payload["aliases"] for payload in stated(settings_of_test, "entity.described")}
    assert names == {"Shop": ["The Mill"], "Ed Brown": ["Ed", "Eddie"]}
    assert [payload["text"] for payload in stated(settings_of_test, "observation.recorded")] == [
        "Done: Ordered salt",
        "Done: Sold",
    ]
    tasks = [payload for payload in stated(settings_of_test, "fact.stated") if payload["type"] == "task"]
    assert [(task["predicate"], task["object"]) for task in tasks] == [
        ("needs to", "Call Ed"),
        ("needs to", "Pay"),
        ("needs to", "Write"),
    ]
    assert events(settings_of_test, "observation.recorded")[0].as_json()["occurred_at"] == "2026-02-12T12:00:00Z"


def test_the_same_notes_add_nothing_under_another_name_of_the_user(tmp_path: Path, settings_of_test: Settings) -> None:
    files = {"USER.md": "- **Name:** Kate\n- Partner: Ed\n- **Notes:**\n", "MEMORY.md": "## Preferences\n- No emojis\n"}
    path = write_folder(tmp_path / "kira", files)
    first = run(path, settings_of_test)
    assert first.imported == {
        "entity.described": 1, "fact.stated": 1, "preference.stated": 1, "relationship.stated": 1
    }  # fmt: skip
    assert run(path, settings_of_test, user="Kate").added == 0


def test_open_tasks_are_recalled_until_a_later_import_has_them_ticked(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    notes = {
        "2026-11-20.md": "- [ ] Call the council\n- [ ] Renew passport\n- [x] Ordered flour\n",
        "Bakery.md": "# Bakery\n\n## Tasks\n\n- [ ] Find an oven\n    - [ ] Ask Ed\n",
    }
    path = write_folder(tmp_path / "vault", notes)
    assert run(path, settings_of_test).imported["fact.stated"] == 4
    (path / "2026-11-20.md").write_text(
        "- [x] Call the council\n- [x] Renew passport ✅ 2026-11-28\n- [x] Ordered flour\n", encoding="utf-8"
    )
    (path / "Bakery.md").write_text(
        "# Bakery\n\n- [-] Find an oven\n- [ ] Ask Ed\n- [x] Never open\n", encoding="utf-8"
    )
    assert run(path, settings_of_test, dry_run=True).imported["memory.ended"] == 3
    again = run(path, settings_of_test)
    assert again.imported == {"memory.ended": 3, "observation.recorded": 1, "document.added": 1}
    assert run(path, settings_of_test).added == 0
    with Recollect(settings=settings_of_test, workers=False) as memory:
        tasks = memory.list("ann", "facts", filters={"type": "task"})["items"]
        assert {task["object"]: task["status"] for task in tasks} == {
            "Call the council": "ended",
            "Renew passport": "ended",
            "Find an oven (Bakery)": "ended",
            "Ask Ed (Bakery)": "active",
        }
        ends = {task["object"]: task["valid_until"] for task in tasks}
        assert ends["Renew passport"] == "2026-11-28T00:00:00Z"
        for question in ("What do I still have to do?", "todo", "what's on my todo list?", "open tasks"):
            context = memory.retrieve("ann", question).context
            assert "open task on the todo list: Ask Ed" in context
            assert "council" not in context.partition("Relevant History")[0]


def test_a_task_that_is_unticked_is_open_again_and_the_same_import_again_adds_nothing(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = write_folder(tmp_path / "vault", {"Boat.md": "# Boat\n\n- [ ] Varnish\n", "2026-11-20.md": "- [ ] Pay\n"})
    run(path, settings_of_test)
    for box, change in (("x", "memory.ended"), (" ", "edit.undone"), ("x", "memory.ended"), (" ", "edit.undone")):
        for name, task in (("Boat.md", "Varnish"), ("2026-11-20.md", "Pay")):
            (path / name).write_text(f"# Boat\n\n- [{box}] {task}\n", encoding="utf-8")
        assert run(path, settings_of_test, dry_run=True).imported[change] == 2
        assert run(path, settings_of_test).imported[change] == 2
        assert run(path, settings_of_test).added == 0
        assert _open_tasks(settings_of_test) == ([] if box == "x" else ["Pay", "Varnish (Boat)"])
    with Recollect(settings=settings_of_test, workers=False) as memory:
        [pay] = [row for row in memory.facts("ann")["items"] if row["object"] == "Pay"]
        memory.end("ann", pay["id"])
    # What a user ended stays ended.
    assert run(path, settings_of_test).added == 0


def test_lines_of_a_daily_note_are_shown_as_notes_and_not_as_those_of_an_observer(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    run(write_folder(tmp_path / "vault", {"2026-11-20.md": "- Met Rosie at the mill\n"}), settings_of_test)
    with Recollect(settings=settings_of_test, workers=False) as memory:
        assert [row["speaker"] for row in memory.episodes("ann")["items"]] == ["note"]
        assert "] note: Met Rosie at the mill" in memory.retrieve("ann", "Where did I meet Rosie?").context


def test_a_task_that_a_note_has_twice_is_open_while_one_of_them_is(tmp_path: Path, settings_of_test: Settings) -> None:
    path = write_folder(tmp_path / "vault", {"2026-11-20.md": "- [x] Water the figs\n- [ ] Water the figs\n"})
    run(path, settings_of_test)
    assert run(path, settings_of_test).added == 0
    assert _open_tasks(settings_of_test) == ["Water the figs"]


def test_a_done_task_is_on_the_day_of_its_sign_or_of_the_first_import_that_has_it_done(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    note = "- [x] Ordered flour ✅ 2026-11-18\n- [x] Sold figs\n- [ ] Call Ed\n- [x] Baked [completion:: 2026-11-20]\n"
    path = write_folder(tmp_path / "vault", {"2026-11-20.md": note})
    run(path, settings_of_test)
    (path / "2026-11-20.md").write_text(note.replace("[ ]", "[x]"), encoding="utf-8")
    # That it was open at the first import shows that it was not done on the day of the note.
    assert run(path, settings_of_test).imported == {"memory.ended": 1}
    done = [
        (event.as_json()["occurred_at"], event.data()["text"])
        for event in events(settings_of_test, "observation.recorded")
    ]
    assert done == [
        ("2026-11-18T12:00:00Z", "Done: Ordered flour"),
        ("2026-11-20T12:00:00Z", "Done: Sold figs"),
        ("2026-11-20T12:00:00Z", "Done: Baked"),
    ]


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("- [ ] Call the council 📅 2026-12-01 #admin", "Call the council (Log; due 2026-12-01; admin)"),
        (
            "- [ ] Varnish ⏳ 2026-05-01 🛫 2026-04-01 ➕ 2026-01-02",
            "Varnish (Log; scheduled for 2026-05-01; from 2026-04-01)",
        ),
        ("- [ ] Buy rope [due:: 2026-12-05]", "Buy rope (Log; due 2026-12-05)"),
        ("- [ ] Buy rope (scheduled:: 2026-12-05) today", "Buy rope today (Log; scheduled for 2026-12-05)"),
        ("- [ ] Ask #ed about #12 #task #boat/deck", "Ask ed about #12 (Log; boat/deck)"),
        (
            "- TODO Ask Ed #[[mill]]\n  DEADLINE: <2026-12-03 Thu>\n  SCHEDULED: <2026-12-01 Tue 10:00 .+1d>",
            "Ask Ed (Log; due 2026-12-03; scheduled for 2026-12-01; mill)",
        ),
        ("- [ ] The due date: a riddle, overdue:: 2026-12-05", "The due date: a riddle, overdue:: 2026-12-05 (Log)"),
    ],
)
def test_dates_and_tags_of_a_task_are_in_its_words_as_people_write_them(
    line: str, task: str, tmp_path: Path, settings_of_test: Settings
) -> None:
    run(write_folder(tmp_path / "vault", {"2026-11-20.md": f"## Log\n\n{line}\n"}), settings_of_test)
    assert _open_tasks(settings_of_test) == [task]
    assert events(settings_of_test, "observation.recorded") == []


def test_a_task_with_another_date_takes_the_place_of_the_earlier_one(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = write_folder(tmp_path / "vault", {"Boat.md": "- [ ] Varnish 📅 2026-12-01\n"})
    run(path, settings_of_test)
    (path / "Boat.md").write_text("- [ ] Varnish 📅 2026-12-08\n", encoding="utf-8")
    run(path, settings_of_test)
    assert _open_tasks(settings_of_test) == ["Varnish (Boat; due 2026-12-08)"]
    (path / "Boat.md").write_text("- [x] Varnish 📅 2026-12-08 ✅ 2026-12-02\n", encoding="utf-8")
    run(path, settings_of_test)
    assert _open_tasks(settings_of_test) == []


@pytest.mark.parametrize("imports_first", [True, False])
def test_an_imported_partner_without_a_date_does_not_replace_the_husband_of_a_conversation(
    imports_first: bool, tmp_path: Path, settings_of_test: Settings
) -> None:
    notes = write_folder(tmp_path / "kira", {"MEMORY.md": "# MEMORY.md\n\n- Partner: Ed\n"})
    husband = {"source": "user", "type": "husband", "target": "Tom", "stated_at": "2026-01-02T10:00:00Z"}
    if imports_first:
        run(notes, settings_of_test)
    with Recollect(settings=settings_of_test, workers=False) as memory:
        memory.append("ann", {"type": "relationship.stated", "payload": husband})
    if not imports_first:
        run(notes, settings_of_test)
    with Recollect(settings=settings_of_test, workers=False) as memory:
        rows = memory.list("ann", "relationships")["items"]
    assert {row["target"]: row["status"] for row in rows} == {"Ed": "superseded", "Tom": "active"}


@pytest.mark.parametrize("first", ["Old.md", "2026-02-11.md"])
def test_a_task_that_was_moved_to_another_note_is_open_there_alone(
    first: str, tmp_path: Path, settings_of_test: Settings
) -> None:
    notes = {first: "# Boat\n\n- [ ] Varnish the hull\n- [ ] Buy a rope\n", "New.md": "# New\n\nNothing.\n"}
    run(write_folder(tmp_path / "vault", notes), settings_of_test)
    notes = {first: "# Boat\n\n- [ ] Buy a rope\n", "New.md": "# New\n\n- [ ] Varnish the hull\n"}
    run(write_folder(tmp_path / "vault", notes), settings_of_test)
    open_before = _open_tasks(settings_of_test)
    notes |= {"New.md": "# New\n\n- [x] Varnish the hull\n"}
    run(write_folder(tmp_path / "vault", notes), settings_of_test)
    assert [task.partition(" (")[0] for task in open_before] == ["Buy a rope", "Varnish the hull"]
    assert [task.partition(" (")[0] for task in _open_tasks(settings_of_test)] == ["Buy a rope"]


def _open_tasks(settings: Settings) -> list[str]:
    with Recollect(settings=settings, workers=False) as memory:
        return sorted(row["object"] for row in memory.facts("ann")["items"] if row["status"] == "active")
