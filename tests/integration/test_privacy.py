"""What is private never reaches the log, what is secret is shown only when asked for, and no_store stores nothing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import orjson
import pytest
from support.command_line import recollect
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidEvent, NotFound


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def memory(folder: Path) -> Generator[Recollect]:
    settings = load_settings(data=folder, embedding_model="none", secrets_by_namespace={"team-*": "redact"})
    with Recollect(settings=settings, workers=False) as memory:
        yield memory


def _files_hold(folder: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_private_sections_and_credentials_reach_no_file(memory: Recollect, folder: Path) -> None:
    memory.append("ann", message("I met <private>Xaverius</private> at the lake, card 4111 1111 1111 1111"))
    memory.add("ann", [{"role": "user", "content": "my bank password is Zanzibar77 <private>and the Ypsilanti note"}])
    memory.append_and_retrieve("ann", message("is <private>Quixotus</private> at the lake?", session_id="s1"))
    memory.retrieve("ann", "is 4111 1111 1111 1111 at the <private>Rumpel</private> lake?")
    memory.traces("ann")
    for secret in ("Xaverius", "4111 1111", "Zanzibar77", "Ypsilanti", "Quixotus", "Rumpel"):
        assert not _files_hold(folder, secret), secret
    texts = [episode["text"] for episode in memory.episodes("ann")["items"]]
    assert "I met [private] at the lake, card [redacted: card]" in texts
    assert "my bank password is [redacted: password] [private]" in texts


def test_a_code_is_shown_when_it_is_asked_for_and_does_not_come_along_otherwise(memory: Recollect) -> None:
    memory.append("bo", message("my new card came, PIN is 8306, there was a queue of twenty people at the bank"))
    memory.append("bo", message("the code of the meter cupboard is 0417"))
    told = memory.retrieve("bo", "was there a queue at the bank?")
    assert "PIN is [hidden: pin], there was a queue" in told.context
    assert all("8306" not in item.text for item in told.items)
    assert "8306" in memory.retrieve("bo", "what is the PIN of my card?").context
    assert "0417" in memory.retrieve("bo", "which code has the meter cupboard?").context


def test_with_several_users_a_code_is_shown_to_its_speaker_alone(memory: Recollect) -> None:
    question = "what is the door code?"

    def says(name: str, text: str, session: str) -> str:
        _, result = memory.append_and_retrieve("flat", [message(text, session_id=session, name=name)])
        return "" if result is None else result.context

    says("Ann", "The door code is 4711.", "s1")
    assert "4711" in memory.retrieve("flat", question).context
    says("Mallory", "Hello.", "s2")
    assert "4711" not in memory.retrieve("flat", question).context
    assert "4711" not in memory.retrieve("flat", question, speaker="Mallory").context
    assert "4711" in memory.retrieve("flat", question, speaker="Ann").context
    assert "4711" not in says("Mallory", question, "s3")
    assert "4711" in says("Ann", question, "s4")


def test_a_namespace_redacts_everything_by_its_policy(memory: Recollect) -> None:
    memory.append("team-a", message("the door code is 4711"))
    [episode] = memory.episodes("team-a")["items"]
    assert episode["text"] == "the door code is [redacted: code]"


def test_no_store_answers_and_stores_nothing(memory: Recollect, folder: Path) -> None:
    memory.append("cy", message("the boat is called Swordfish"))
    events, result = memory.append_and_retrieve("cy", message("is Swordfish Oblomov's boat?"), no_store=True)
    assert (events, memory.parts.log.head("cy").version) == ([], 1)
    assert result is not None
    assert "Swordfish" in result.context
    asked = memory.retrieve("cy", "which boat has Oblomov?", no_store=True)
    for trace_id in (result.trace_id, asked.trace_id):
        with pytest.raises(NotFound):
            memory.trace("cy", trace_id)
    assert not _files_hold(folder, "Oblomov")


def test_only_the_server_labels_events(memory: Recollect) -> None:
    event = message("I like tea")
    with pytest.raises(InvalidEvent, match="the server sets this field"):
        memory.append("cy", event | {"payload": event["payload"] | {"labels": ["secret: pin"]}})


def test_the_command_line_screens_too(tmp_path: Path) -> None:
    recollect("append", "a", orjson.dumps(message("password: hunter2 <private>x")).decode(), data=tmp_path)
    exported = recollect("export", data=tmp_path).stdout
    assert orjson.loads(exported)["payload"]["text"] == "password: [redacted: password] [private]"
    path = tmp_path / "more.jsonl"
    path.write_bytes(orjson.dumps(message("my visa 4111 1111 1111 1111") | {"namespace": "a"}))
    recollect("import", "jsonl", str(path), data=tmp_path)
    assert "4111 1111" not in recollect("export", data=tmp_path).stdout
    recollect("retrieve", "a", "which visa?", "--no-store", "--no-server", data=tmp_path)
    assert not list((tmp_path / "traces").glob("*")) if (tmp_path / "traces").exists() else True
