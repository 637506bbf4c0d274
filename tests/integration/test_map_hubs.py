"""The map of a person of whom much is stated, in a real Chromium: values are one node, and paths prefer relations."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Page
from support.events import message
from support.viewer import CHROMIUM, INSTALL, Viewer, browser, viewer_server

from recollect import Recollect
from recollect.api.settings import load_settings

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=INSTALL)

VALUES = 40


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Generator[Viewer]:
    memory = Recollect(
        settings=load_settings(data=tmp_path_factory.mktemp("map"), embedding_model="none"), workers=False
    )
    relations = (("Emily", "husband", "Ravi"), ("Emily", "sister", "Edith"))
    memory.append(
        "ann",
        [
            *(_stated("fact", subject="Ann", predicate="collects", object=f"stamp {at}") for at in range(VALUES)),
            _stated("fact", subject="Ravi", predicate="lives in", object="Ghent"),
            *(_stated("relationship", source=source, type=kind, target=target) for source, kind, target in relations),
            message("Ravi and Edith met Ann.", name="Walter"),
        ],
    )
    with viewer_server(memory) as (address, _), browser() as chromium:
        viewer = Viewer(chromium, address, size=(1280, 800))
        yield viewer
        assert viewer.faults == []


def _stated(kind: str, **payload: str) -> dict[str, Any]:
    return {"type": f"{kind}.stated", "payload": payload}


def _node(page: Page, label: str) -> int:
    """Return the place of a node among those of the map, by its place in the list."""
    labels = page.locator("[role=option]").all_inner_texts()
    return next(at for at, text in enumerate(labels) if text.startswith(label))


def test_many_values_of_an_entity_are_one_node_that_opens_by_mouse_and_by_keyboard(viewer: Viewer) -> None:
    page = viewer.open("map", "ann")
    assert page.locator(".stage g.node.value").count() == 1  # Ghent
    assert page.locator(".stage g.node.values").count() == 1
    assert f"{VALUES} facts of Ann" in page.locator("text.label.cluster").all_text_contents()
    page.locator(".stage g.node.values").hover()
    assert page.inner_text("#map-status") == f"{VALUES} facts of Ann: click to open"
    page.locator(".stage g.node.values").click()
    assert page.locator(".stage g.node.value").count() == VALUES
    page.get_by_role("button", name="Overview").click()
    assert page.locator(".stage g.node.value").count() == 1
    page.fill("#node-search", "facts of")
    page.keyboard.press("Enter")
    assert page.locator(".stage g.node.value").count() == VALUES
    assert viewer.violations() == []


def test_a_path_goes_over_stated_relations_rather_than_over_a_common_message(viewer: Viewer) -> None:
    page = viewer.open("map", "ann")
    page.locator(".stage g.node").nth(_node(page, "Ravi")).click()
    assert "Emily → husband" in page.locator(".details li").all_inner_texts()
    page.locator(".stage g.node").nth(_node(page, "Edith")).hover()
    assert page.inner_text("#map-status") == "Ravi ← husband ← Emily → sister → Edith"
