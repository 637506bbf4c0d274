"""Determinism: a replay gives the same rows under another hash seed, zone, locale and processor."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from support.events import PAYLOADS, message
from support.server import recollect_process

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.validation import draft

_DEMO = Path(__file__).parents[2] / "ops" / "demo" / "conversation.jsonl"
#: Words whose case, order or place depends on a locale or on the order of a set, and days near midnight.
_TEXTS = (
    "İstanbul'da oturuyorum, IŞIK ve ışık. I live in Istanbul.",
    "Straße, STRASSE, œuvre, Ångström, naïve, 北京, 👩‍👩‍👧 and Zoë from São Paulo met at 23:30 yesterday.",
    "My sister Clara, my brother Tom, my friends Ana, Bo, Cy, Di and Ed live in Graz, Linz and Wels.",
    "Tomorrow at 00:15 I fly to Kiritimati, next Monday to Pago Pago; dentist on 3 May 2027.",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every type of event, and what jobs derive from conversations; its read model is built here."""
    folder = tmp_path_factory.mktemp("determinism")
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        said = [orjson.loads(line) for line in _DEMO.read_bytes().splitlines()]
        said += [message(text, name="Ann", session_id="s", occurred_at="2026-03-01T23:40:00+13:00") for text in _TEXTS]
        memory.append("ann", said)
        payloads = [{"type": name, "payload": payload, "session_id": "s"} for name, payload in PAYLOADS.items()]
        memory.parts.log.append("ann", [draft(event) for event in payloads])
        memory.settle("ann")
        memory.compact("ann")
        memory.parts.read_models.catch_up("ann")
    return folder


@pytest.mark.parametrize(
    "machine",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "0"},
        # Without AVX and FMA, as an old processor computes.
        {"PYTHONHASHSEED": "77", "TZ": "Pacific/Pago_Pago", "LC_ALL": "POSIX", "OPENBLAS_CORETYPE": "Prescott"}
        | {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"},
    ],
    ids=["hash seed, zone and locale", "no AVX, hash seed and zone"],
)
def test_a_replay_on_another_machine_gives_the_same_rows(
    data: Path, machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    done = recollect_process("replay", "--check", "--namespace", "ann", data=data)
    assert (done.returncode, "equal at version" in done.stdout) == (0, True), done.stdout + done.stderr
