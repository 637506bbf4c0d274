"""Several processes make a log in SQLite at the same time."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from recollect.events.backends.sqlite_schema import migrate
from recollect.events.errors import ForeignFile


def test_a_log_that_another_process_makes_meanwhile_is_not_taken_for_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    made: list[tuple[str, bool]] = []

    def make_before(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        if "sqlite_schema" in statement and not made:
            with closing(apsw.Connection(str(path))) as other:
                made.append(migrate(other, path, encrypt=None, has_keys=False))
        return True

    with closing(apsw.Connection(str(path))) as connection:
        connection.exec_trace = make_before
        assert migrate(connection, path, encrypt=None, has_keys=False) == made[0]


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "log.db"))) as connection:
        connection.execute("CREATE TABLE notes (text)")
        with pytest.raises(ForeignFile, match="of another program"):
            migrate(connection, tmp_path / "log.db", encrypt=None, has_keys=False)
