from __future__ import annotations

from pathlib import Path

from support.exports import write_folder
from support.imports import events, run

from recollect.api.settings import Settings

#: Concepts of other programs; what `recollect export` writes is imported again in `test_exporters.py`.
BUNDLE = {
    "index.md": "---\nokf_version: 0.2\n---\n# Index\n",
    "table.md": "---\ntype: Table\ntitle: Orders\ntags: [a, b]\n---\nOne row an order.\n",
    "view.md": "---\ntype: View\ntitle: Open orders\n---\nOrders that wait.\n",
}


def sample(folder: Path) -> Path:
    return write_folder(folder / "bundle", BUNDLE)


SAMPLES = {"okf": sample}


def test_a_concept_of_another_program_becomes_a_document(tmp_path: Path, settings_of_test: Settings) -> None:
    bundle = sample(tmp_path)
    (bundle / "broken.md").write_text("no front matter")
    assert [failure.where for failure in run(bundle, settings_of_test).failed] == ["broken.md"]
    documents = [event.data() for event in events(settings_of_test, "document.added")]
    assert [(document["title"], document["text"]) for document in documents] == [
        ("Orders", "One row an order."),
        ("Open orders", "Orders that wait."),
    ]
