from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import exports
from support.command_line import recollect

from recollect.api.importers.file_import import import_path
from recollect.api.importers.imported_records import ImportReport, ReadOptions
from recollect.api.importers.importer import importers
from recollect.api.importers.source_files import open_source
from recollect.api.settings import Settings
from recollect.events.errors import InvalidInput


def run(path: Path, settings: Settings, form: str = "auto") -> ImportReport:
    return import_path(path, settings=settings, namespace="ann", form=form)


@pytest.mark.parametrize("name", ["../evil.json", "/etc/passwd", "a/../../b.json", "..\\evil.json"])
def test_an_archive_whose_names_lead_out_of_it_is_refused(
    tmp_path: Path, settings_of_test: Settings, name: str
) -> None:
    path = exports.write_zip(tmp_path / "x.zip", {"conversations.json": [exports.chatgpt_conversation()], name: "[]"})
    with pytest.raises(InvalidInput, match="leads out of the archive"):
        run(path, settings_of_test)
    assert not settings_of_test.storage.data.exists()


def test_an_archive_with_a_link_or_a_bomb_is_refused(tmp_path: Path, settings_of_test: Settings) -> None:
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InvalidInput, match="is a link"):
        run(tmp_path / "link.zip", settings_of_test)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * (20 << 20))
    with pytest.raises(InvalidInput, match="compressed more than"):
        run(tmp_path / "bomb.zip", settings_of_test)


def test_an_archive_without_its_end_is_named_as_such_under_any_name(tmp_path: Path, settings_of_test: Settings) -> None:
    whole = exports.write_zip(tmp_path / "x.zip", {"conversations.json": [exports.chatgpt_conversation()]}).read_bytes()
    for name in ("cut.zip", "download"):
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InvalidInput, match="not a whole zip file"):
            run(tmp_path / name, settings_of_test)
        done = recollect("import", str(tmp_path / name), "--namespace", "ann", data=tmp_path / "data")
        assert (done.returncode, done.stdout.splitlines()) == (
            1, [f"FAILED: {tmp_path / name}: not a whole zip file: its end is missing; download it again"]
        )  # fmt: skip


def test_a_damaged_member_is_a_failure_and_what_is_before_the_damage_is_imported(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    conversations = [exports.chatgpt_conversation(f"c{number}") for number in range(300)]
    path = tmp_path / "openai.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    report = run(path, settings_of_test)
    assert report.failures
    assert report.imported["message.added"] > 300


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path, settings_of_test: Settings) -> None:
    folder = exports.write_folder(tmp_path / "kira", {"USER.md": "- **Name:** Otto\n"})
    (tmp_path / "secret.md").write_text("- **Password:** swordfish\n")
    (folder / "MEMORY.md").symlink_to(tmp_path / "secret.md")
    assert run(folder, settings_of_test).imported == {"fact.stated": 1}


@pytest.mark.parametrize("content", ["", "[]", "{}", "nonsense", '"', "[1,2", "\x00\x01", "null"])
def test_an_empty_or_foreign_file_is_no_success(tmp_path: Path, settings_of_test: Settings, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=r"not an export|is empty"):
        run(path, settings_of_test)
    for name in importers():
        try:
            report = run(path, settings_of_test, form=name)
        except InvalidInput:
            continue
        assert report.failures, f"{name}: {content!r}"


#: Names of fields of all formats.
_NAMES = (
    "mapping current_node id message parent author role content parts messages text chat_messages uuid sender memory "
    "created_at agents blocks value label type name from date_unixtime timestamp ts user chats list fact observations "
    "metadata title source_node_uuid content_type guild channel conversations_memory project_memories docs"
).split()
_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(value=_JSON, cut=st.integers(0, 30))
def test_no_json_of_any_shape_raises(tmp_path_factory: pytest.TempPathFactory, value: Any, cut: int) -> None:
    text = json.dumps([value, value])
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text[: len(text) - cut] if cut > 20 else text, encoding="utf-8", errors="replace")
    with open_source(path) as files:
        for importer in importers().values():
            assert isinstance([*importer.read(files, ReadOptions(namespace="a"))], list)
