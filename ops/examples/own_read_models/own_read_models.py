"""Two read models and a nightly job in a SQLite file: a mood chart, a CRM table, and its export as CSV.

`pip install ops/examples/own_read_models`, start the server again, and look at `own.db`.
"""

from __future__ import annotations

import csv
import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import recollect

FOLDER = Path(os.environ.get("OWN_READ_MODELS", "."))
GLAD, SAD = frozenset("glad happy great love thanks".split()), frozenset("sad tired angry hate worried".split())
# The position is a part of the keys: an item that comes again changes nothing.
TABLES = """
CREATE TABLE IF NOT EXISTS moods (person TEXT, position INTEGER, day TEXT, mood INTEGER,
    PRIMARY KEY (person, position));
CREATE TABLE IF NOT EXISTS contacts (owner TEXT, id TEXT, name TEXT, field TEXT, value TEXT, PRIMARY KEY (owner, id));
"""


def write(statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement for all rows in one transaction."""
    with closing(sqlite3.connect(FOLDER / "own.db")) as database, database:
        database.executescript(TABLES)
        database.executemany(statement, rows)


@recollect.projection(
    "mood", types=["message.added"], reset=lambda person: write("DELETE FROM moods WHERE person = ?", [(person,)])
)
def mood(person: str, events: Sequence[Mapping[str, Any]]) -> None:
    """Count the glad and the sad words of each message."""
    rows: list[tuple[str, int, str, int]] = []
    for event in events:
        words = set(re.findall(r"[a-z]+", event["payload"].get("text", "").lower()))
        rows.append((person, event["version"], event["occurred_at"][:10], len(words & GLAD) - len(words & SAD)))
    write("INSERT OR REPLACE INTO moods VALUES (?, ?, ?, ?)", rows)


@recollect.projection(
    "crm", knowledge=True, reset=lambda owner: write("DELETE FROM contacts WHERE owner = ?", [(owner,)])
)
def crm(owner: str, changes: Sequence[Mapping[str, Any]]) -> None:
    """Keep what is true now of each person."""
    for change in changes:
        if change["old_id"]:
            write("DELETE FROM contacts WHERE (owner, id) = (?, ?)", [(owner, change["old_id"])])
        if change["new"]:
            row = (owner, change["new_id"], change["subject"], change["predicate"], change["new"])
            write("INSERT OR REPLACE INTO contacts VALUES (?, ?, ?, ?, ?)", [row])


@recollect.job("contacts-csv", cron="0 4 * * *")
def export_contacts(run: recollect.JobRun) -> None:
    """Write the contacts of a namespace as CSV."""
    with closing(sqlite3.connect(FOLDER / "own.db")) as database:
        database.executescript(TABLES)
        rows = database.execute("SELECT name, field, value FROM contacts WHERE owner = ?", (run.namespace,)).fetchall()
    with (FOLDER / "contacts.csv").open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((run.now.date(), *row) for row in rows)
