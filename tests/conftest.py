from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from recollect.events.sqlite import SqliteLog
from recollect.projections.models import ReadModels


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=2, help="rounds of the crash test (default 2)")


@pytest.fixture
def log(tmp_path: Path) -> Generator[SqliteLog]:
    log = SqliteLog(tmp_path / "log.db")
    yield log
    log.close()


@pytest.fixture
def models(tmp_path: Path, log: SqliteLog) -> Generator[ReadModels]:
    models = ReadModels(tmp_path, log)
    yield models
    models.close()
