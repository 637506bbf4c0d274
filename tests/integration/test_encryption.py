"""Payloads are encrypted at rest, by keys that are kept apart from the log."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from integration.test_log_contract import BACKENDS, new_log
from support.events import message_draft

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.encryption.erasure_ledger import ErasureLedger, requested_erasure
from recollect.events.encryption.key_store import KEYS_NAME, KeyStore
from recollect.events.encryption.master_key import KeyOptions, LocalMasterKey
from recollect.events.encryption.payload_cipher import PayloadCipher
from recollect.events.envelope import ENCODING_AES
from recollect.events.errors import Erased, EventIdConflict, ForeignFile, InvalidInput, KeyMissing
from recollect.events.integrity.backup import backup
from recollect.events.integrity.log_identity import open_log_of_folder
from recollect.events.integrity.verify import verify
from recollect.events.storage.archive import Archive

Open = Callable[..., EventLog]
MASTER = LocalMasterKey(bytes(range(32)))


@pytest.fixture(params=BACKENDS)
def open_encrypted(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the log of the test, with the keys in its folder unless `keys` says otherwise."""
    url = new_log(request.param, request, tmp_path)

    def opened(*, master: LocalMasterKey | None = None, keys: bool = True, encrypt: bool | None = None) -> EventLog:
        return open_log(url, keys=KeyStore(tmp_path, master) if keys else None, encrypt=encrypt)

    return opened


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def texts(log: EventLog) -> list[str]:
    return [event.data()["text"] for event in log.read("a")]


def test_a_new_log_with_keys_stores_no_plaintext_and_reads_it_back(open_encrypted: Open, tmp_path: Path) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft("my canary sings", id="m1", name="Ann"), message_draft("mine too")])
        assert texts(log) == ["my canary sings", "mine too"]
        assert [event.encoding for event in log.read_stored("a")] == [ENCODING_AES] * 2
        assert not any(b"canary" in event.payload for event in log.read_stored("a"))
        found = log.find("a", "m1")
        assert found is not None
        assert found.data()["text"] == "my canary sings"
    assert b"canary" not in bytes_of(tmp_path)
    with closing(open_encrypted()) as log:
        assert texts(log) == ["my canary sings", "mine too"]


def test_first_appends_at_the_same_time_all_find_the_new_keys(tmp_path: Path) -> None:
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        with closing(open_log(f"sqlite:///{folder / 'log.db'}", keys=KeyStore(folder, None))) as log:
            with ThreadPoolExecutor(8) as pool:
                appends = [pool.submit(log.append, "a", [message_draft(str(sender))]) for sender in range(8)]
            assert sorted(append.result()[0].version for append in appends) == list(range(1, 9))


def test_the_chain_is_verified_without_a_key(open_encrypted: Open) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft(str(number)) for number in range(5)])
    with closing(open_encrypted(keys=False)) as log:
        assert verify(log, "a").is_intact
        with pytest.raises(KeyMissing):
            log.read("a")[0].data()
        with pytest.raises(KeyMissing):
            log.append("a", [message_draft("x")])


def test_the_same_event_again_is_a_duplicate_and_other_content_a_conflict(open_encrypted: Open) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft("hello", id="m1")])
        assert log.append("a", [message_draft("hello", id="m1")])[0].duplicate
        with pytest.raises(EventIdConflict):
            log.append("a", [message_draft("goodbye", id="m1")])


def test_plain_and_encrypted_events_live_in_one_log(open_encrypted: Open) -> None:
    with closing(open_encrypted(keys=False)) as log:
        log.append("a", [message_draft("old")])
    with closing(open_encrypted()) as log:
        # A log that began without encryption goes on without it …
        log.append("a", [message_draft("older")])
    with closing(open_encrypted(encrypt=True)) as log:
        # … until the setting says otherwise.
        log.append("a", [message_draft("new")])
        assert texts(log) == ["old", "older", "new"]
        assert [event.encoding for event in log.read_stored("a")] == ["json", "json", ENCODING_AES]
        assert verify(log, "a").is_intact


def test_each_speaker_has_a_key_and_a_destroyed_key_makes_only_its_events_unreadable(open_encrypted: Open) -> None:
    with closing(open_encrypted()) as log:
        assert log.keys is not None
        log.append("a", [message_draft(name, name=name) for name in ("Ann", "Bob", " ann")])
        kids = [event.payload[:16] for event in log.read_stored("a")]
        assert kids[0] == kids[2] != kids[1]
        log.keys.destroy("a", log.keys.subject_pseudonym("a", "Ann"))
        assert log.read("a", limit=1)[0].is_erased
        assert log.read("a", after=1, limit=1)[0].data()["text"] == "Bob"


def test_a_key_destroyed_by_another_process_no_longer_serves_here(open_encrypted: Open, tmp_path: Path) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft("x", name="Ann")])
        with closing(KeyStore(tmp_path)) as other:
            other.block("a", "ANN")
            other.destroy("a", other.subject_pseudonym("a", "Ann"))
        assert log.read("a")[0].is_erased
        with pytest.raises(Erased):
            log.append("a", [message_draft("late", name="Ann")])
        log.append("a", [message_draft("hi", name="Bob")])


def test_a_namespace_that_is_admitted_again_while_an_append_is_prepared_gets_a_key(tmp_path: Path) -> None:
    with closing(KeyStore(tmp_path)) as keys:
        keys.block("a", None)
        staged = StagedEncryption(PayloadCipher(keys), encrypts=True)
        draft = message_draft("Hello.")
        staged.prepare([AppendRequest("a", [draft], None, threading.Lock())])
        with pytest.raises(Erased):
            staged.check("a", draft)
        keys.readmit("a", None)
        staged.check("a", draft)
        assert staged.sealed("a", 1, "i", draft.type, draft.subject, b"{}")[0] == ENCODING_AES


def test_a_payload_moved_to_another_event_is_refused(tmp_path: Path) -> None:
    with closing(open_log(f"sqlite:///{tmp_path / 'log.db'}", keys=KeyStore(tmp_path))) as log:
        log.append("a", [message_draft("yes"), message_draft("no")])
        first, second = log.read_stored("a")
        with pytest.raises(ForeignFile):
            log._encryption.cipher.open(second._replace(payload=first.payload))  # pyright: ignore


def test_keys_are_wrapped_by_a_master_key_which_is_then_needed(open_encrypted: Open, tmp_path: Path) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft("before the master key")])
    # The keys that were stored plainly are wrapped as soon as there is a master key.
    with closing(open_encrypted(master=MASTER)) as log:
        assert texts(log) == ["before the master key"]
    with closing(apsw.Connection(str(tmp_path / KEYS_NAME))) as keys:
        assert keys.execute("SELECT count(*) FROM namespace_keys WHERE substr(wrapped, 1, 1) = x'00'").fetchone() == (
            0,
        )
    for master in (None, LocalMasterKey(bytes(32))):
        with closing(open_encrypted(master=master)) as log, pytest.raises(KeyMissing):
            log.read("a")


def test_a_damaged_key_is_called_damaged(open_encrypted: Open, tmp_path: Path) -> None:
    with closing(open_encrypted()) as log:
        log.append("a", [message_draft("private")])
    with closing(apsw.Connection(str(tmp_path / KEYS_NAME))) as keys:
        keys.execute("UPDATE data_keys SET wrapped = zeroblob(length(wrapped))")
    with closing(open_encrypted()) as log, pytest.raises(KeyMissing, match="is damaged"):
        log.read("a")


def test_a_damaged_list_of_erasures_is_called_damaged(tmp_path: Path) -> None:
    with closing(KeyStore(tmp_path)) as keys:
        ledger = ErasureLedger(keys)
        ledger.add(requested_erasure(keys, "a", "subject", ["Ann"]))
        with keys.transaction() as connection:
            connection.execute("UPDATE erasures SET pseudonyms = ''")
        with pytest.raises(ForeignFile, match="is damaged"):
            ledger.erasures()


def test_the_key_store_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    with closing(KeyStore(tmp_path)) as keys:
        keys.prepare([("a", None)])
    assert (tmp_path / KEYS_NAME).stat().st_mode & 0o777 == 0o600


def test_the_master_key_comes_from_a_setting_a_private_file_or_a_provider(tmp_path: Path) -> None:
    file = tmp_path / "master"
    file.write_text("00" * 32 + "\n")
    file.chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        KeyOptions(master_key_file=file).master()
    file.chmod(0o600)
    assert KeyOptions(master_key_file=file).master() is not None
    assert KeyOptions(master_key="AA" * 32).master() is not None
    with pytest.raises(InvalidInput, match="32 random bytes"):
        KeyOptions(master_key="password").master()
    assert KeyOptions(master_key_provider=f"{__name__}:MASTER").master() is MASTER
    with pytest.raises(InvalidInput):
        KeyOptions(master_key_provider="os:getcwd").master()


def test_encryption_is_on_for_new_folders_and_off_by_a_setting(tmp_path: Path) -> None:
    for name, mode, encoding in (("new", "auto", ENCODING_AES), ("off", "off", "json")):
        folder = tmp_path / name
        options = KeyOptions(mode=mode, folder=tmp_path / f"{name}-keys")
        with closing(open_log_of_folder(folder, f"sqlite:///{folder / 'log.db'}", options)) as log:
            log.append("a", [message_draft("x")])
            assert log.read_stored("a")[0].encoding == encoding
        assert not (folder / KEYS_NAME).exists()
        assert (tmp_path / f"{name}-keys" / KEYS_NAME).exists() == (mode == "auto")


def test_a_backup_and_an_archive_hold_ciphertext(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with closing(open_log(f"sqlite:///{home / 'log.db'}", keys=KeyStore(home))) as log:
        log.append("a", [message_draft(f"my canary sings {os.urandom(9).hex()}") for _ in range(50)])
        expected = texts(log)
        archive = log.archive
        assert isinstance(archive, Archive)
        archive.seal(log, "a")
        log.prune("a")
        assert texts(log) == expected
        assert verify(log, "a").is_intact
        backup(home / "log.db", tmp_path / "backup")
    assert not (tmp_path / "backup" / KEYS_NAME).exists()
    assert b"canary" not in bytes_of(tmp_path)
    # With the keys, which are kept apart, the backup is readable.
    with closing(open_log(f"sqlite:///{tmp_path / 'backup' / 'log.db'}", keys=KeyStore(home))) as copy:
        assert texts(copy) == expected
