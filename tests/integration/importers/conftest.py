from __future__ import annotations

from pathlib import Path

import pytest

from recollect.api.settings import Settings, load_settings


@pytest.fixture
def settings_of_test(tmp_path: Path) -> Settings:
    return load_settings(data=tmp_path / "data", embedding_model="none")
