"""Stems: the parts by which a text with a stem is found."""

from __future__ import annotations

import pytest

from recollect.projections.text.stems import content_stems, parts_of_stems


@pytest.mark.parametrize(
    "text",
    ["Three studies of ferries", "We bought kids' bikes", "The child ran and sang", "She stopped calling", "Her boxes"],
)
def test_a_text_has_a_part_of_each_of_its_stems(text: str) -> None:
    for stem in content_stems(text):
        assert any(part in text.casefold() for part in parts_of_stems({stem}))
