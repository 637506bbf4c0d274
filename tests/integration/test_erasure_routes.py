"""Erasure over HTTP and on the command line."""

from __future__ import annotations

from pathlib import Path

import httpx
import orjson
from integration.test_http import assert_problem
from support.command_line import recollect
from support.events import message
from support.server import Server


def test_a_message_and_a_namespace_are_erased_over_http(server: Server) -> None:
    with httpx.Client(base_url=f"{server.base}/v1/namespaces", timeout=60) as http:
        for number in range(3):
            assert http.post("gone/events", json=message(f"my secret {number}", id=f"m{number}")).status_code == 201
        planned = http.post("gone/erase", json={"event_ids": ["m1"], "dry_run": True}).json()
        assert (planned["events"], planned["dry_run"]) == (1, True)
        receipt = http.post("gone/erase", json={"event_ids": ["m1"]}).json()
        assert receipt["log"]["count"] == 1
        items = http.get("gone/events").json()["items"]
        assert [item["type"] for item in items] == ["message.added", "erased", "message.added", "events.erased"]
        assert "secret 1" not in http.get("gone/episodes").text
        assert_problem(http.post("gone/events", json=message("my secret 1", id="m1")), 410)
        assert_problem(http.post("gone/erase", json={"event_ids": ["m1"]}), 404)
        assert_problem(http.post("gone/erase", json={}), 422, "erase")

        assert http.delete("gone", params={"dry_run": "true"}).json()["by_type"] == {"message.added": 2}
        for confirm in ({}, {"confirm": "other"}):
            refused = http.delete("gone", params=confirm)
            assert_problem(refused, 422, "confirm")
            assert "?confirm=gone" in refused.json()["detail"]
        assert http.delete("gone", params={"reason": "asked", "confirm": "gone"}).json()["keys"]
        assert http.get("gone/episodes").json()["items"] == []
        assert_problem(http.post("gone/events", json=message("again")), 410)
        assert len(http.get("gone/receipts").json()["items"]) == 2
        assert http.post("gone/readmit").json() == {"readmitted": True}
        assert http.post("gone/events", json=message("a new life")).status_code == 201
        assert_problem(http.delete("never-there", params={"confirm": "never-there"}), 404)


def test_the_command_line_erases_and_verifies_the_receipt(tmp_path: Path) -> None:
    data, receipt = tmp_path / "data", tmp_path / "receipt.json"
    for name in ("Ann", "Bob"):
        event = orjson.dumps(message(f"I am {name}, and I like the sea.", name=name)).decode()
        assert recollect("append", "team", event, data=data).returncode == 0
    assert '"events":1' in recollect("erase", "team", "--subject", "ann", "--dry-run", data=data).stdout
    unconfirmed = recollect("erase", "team", "--subject", "ann", data=data)
    assert (unconfirmed.returncode, unconfirmed.stderr) == (
        2, "recollect: --yes: 1 event of team would be erased for good; add it\n"
    )  # fmt: skip
    erased = recollect("erase", "team", "--subject", "ann", "--output", str(receipt), "--yes", data=data)
    assert erased.returncode == 0, erased.stderr
    verified = recollect("verify-receipt", str(receipt), "--log", data=data).stdout
    assert verified.startswith("intact: 1 event of team")
    assert "files of the namespace: 0 of" in verified
    assert "recollect erase\t1 item" in recollect("audit", "--namespace", "team", data=data).stdout
    assert recollect("verify", data=data).returncode == 0
    receipt.write_bytes(receipt.read_bytes().replace(b'"count":1', b'"count":2'))
    assert recollect("verify-receipt", str(receipt), data=data).returncode == 1
    refused = recollect("append", "team", orjson.dumps(message("late", name="Ann")).decode(), data=data)
    assert (refused.returncode, "was erased" in refused.stderr) == (2, True)
    assert recollect("readmit", "team", "--subject", "Ann", data=data).stdout == "readmitted\n"
    assert recollect("erase", "team", data=data).returncode == 2
