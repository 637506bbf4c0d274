"""Empty generations: a read model's first file, before it is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.projections.read_models.generations import empty_path


def test_an_empty_file_that_another_process_publishes_meanwhile_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def published(folder: Path, _: str) -> list[Path]:
        return [folder / "empty-published.db"]

    monkeypatch.setattr(Path, "glob", published)
    assert empty_path(tmp_path).parent == tmp_path
