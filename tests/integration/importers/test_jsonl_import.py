from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from evaluation.locomo_events import locomo_events
from support.data import conversations
from support.events import message
from support.exports import write_lines

from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import InvalidInput

_PUBLISHED: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi Bob"},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Look", "img_url": ["x"], "blip_caption": "a cat"},
            ],
            "session_2_date_time": "10:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Hello again"}],
        },
        "qa": [],
    }
]


def sample(folder: Path) -> Path:
    return write_lines(folder / "events.jsonl", [message("x", id="e1"), message("y", id="e2")])


SAMPLES = {"jsonl": sample}


def quiet(done: int) -> None:
    pass


def test_a_bad_line_is_named_and_the_lines_before_it_are_kept(log: SqliteLog) -> None:
    lines = [orjson.dumps(message("x", id="e1")), b"", orjson.dumps(message("y", id="e2")), b'{"type": "nope"}']
    with pytest.raises(InvalidInput, match=r"line 4: event\.type") as refused:
        import_jsonl(log, lines, namespace="a", on_progress=quiet)
    assert "before it are imported" in str(refused.value)
    assert [event.id for event in log.read("a")] == ["e1", "e2"]

    lines[3] = orjson.dumps(message("z", id="e3"))
    imported = import_jsonl(log, lines, namespace="a", on_progress=quiet)
    assert (imported.added, imported.duplicates) == (1, 2)


def test_lines_go_to_their_own_namespaces_in_their_order(log: SqliteLog) -> None:
    lines = [orjson.dumps(message(str(number)) | {"namespace": "ab"[number % 2]}) for number in range(10)]
    import_jsonl(log, lines, namespace=None, on_progress=quiet)
    assert [event.data()["text"] for event in log.read("b")] == ["1", "3", "5", "7", "9"]


def test_more_lines_than_a_batch_are_imported(log: SqliteLog) -> None:
    seen: list[int] = []
    lines = (orjson.dumps(message(str(number))) for number in range(2_500))
    assert import_jsonl(log, lines, namespace="a", on_progress=seen.append).added == 2_500
    assert seen == [1_000, 2_000, 2_500]


def lines_of_locomo(content: Any) -> Iterator[bytes]:
    """Return what `ops/evaluation/locomo_events.py` prints for a file."""
    return map(orjson.dumps, locomo_events(content))


def test_the_published_locomo_file_becomes_dated_messages_with_captions(log: SqliteLog) -> None:
    for added, duplicates in ((3, 0), (0, 3)):
        imported = import_jsonl(log, lines_of_locomo(_PUBLISHED), namespace=None, on_progress=quiet)
        assert (imported.added, imported.duplicates) == (added, duplicates)

    first, second, third = (event.as_json() for event in log.read("locomo-conv-1"))
    assert (first["id"], first["session_id"], first["occurred_at"]) == (
        "conv-1:D1:1",
        "conv-1:session_1",
        "2023-05-08T13:56:00Z",
    )
    assert second["payload"]["attachments"][0]["caption"] == "a cat"
    assert second["occurred_at"] > first["occurred_at"]
    assert third["session_id"] == "conv-1:session_2"


def test_real_conversations_are_imported_under_their_own_ids(log: SqliteLog) -> None:
    [path, *_] = conversations("locomo-*.json")
    lines = lines_of_locomo(orjson.loads(path.read_bytes()))
    imported = import_jsonl(log, lines, namespace=None, on_progress=quiet)
    [head] = log.heads()
    assert head.namespace == path.stem
    assert head.version == imported.added > 100
    sample = path.stem.removeprefix("locomo-")
    assert all(event.id.startswith(f"{sample}:D") for event in log.read(head.namespace))


def test_an_export_without_erased_events_is_imported_and_what_was_read_stays_read(log: SqliteLog) -> None:
    def line(version: int, **fields: Any) -> bytes:
        return orjson.dumps({"namespace": "a", "version": version} | fields)

    def extraction(version: int, through: int) -> bytes:
        payload = {"source_events": ["m4"], "through": through, "llm_through": through, "extractor": "rules"}
        return line(version, type="facts.extracted", id=f"x{version}", payload=payload)

    # The versions 1 to 3, 5 and 8 were erased.
    lines = [
        line(4, **message("I live in Porto", id="m4")),
        extraction(6, through=2),
        line(7, **message("My dog is called Rex", id="m7")),
        extraction(9, through=5),
        extraction(10, through=8),
        extraction(11, through=7),
    ]
    assert import_jsonl(log, lines, namespace="b", on_progress=quiet).added == 6
    read = [event.data() for event in log.read("b") if event.type == "facts.extracted"]
    assert [(payload["through"], payload["llm_through"]) for payload in read] == [(1, 1), (1, 1), (3, 3), (3, 3)]
