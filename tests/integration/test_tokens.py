"""Tokens: kept as hashes, shown once, ended at once; and the audit log, the rates and the hosts of a server."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from support.access import application, headers
from support.command_line import recollect
from support.events import message

from recollect.api.access.callers import matches
from recollect.api.access.token_store import TokenStore
from recollect.events.errors import ForeignFile, InvalidInput, NotFound, ReadOnly, Unauthenticated

HOUR_US = 3_600_000_000


class Clock:
    """A clock that tests set."""

    now_us = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> TokenStore:
    return TokenStore(tmp_path / "tokens.json", clock=clock)


def accepted(store: TokenStore, text: str) -> bool:
    try:
        store.authenticate(text)
    except Unauthenticated:
        return False
    return True


def test_a_token_is_stored_as_a_hash_in_a_private_file(store: TokenStore, tmp_path: Path) -> None:
    token, text = store.create(name="bot", scopes=["read", "write"], patterns=["team-*"], days=1)
    content = (tmp_path / "tokens.json").read_text()
    assert text[-43:] not in content
    assert token.id in content
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    assert len(text) == len("rcl_") + len(token.id) + 1 + 43
    caller = store.authenticate(text)
    assert (caller.id, caller.scopes, caller.patterns) == (token.id, {"read", "write"}, ("team-*",))


def test_a_token_ends_when_it_expires_and_at_once_when_it_is_revoked(store: TokenStore, clock: Clock) -> None:
    _, expiring = store.create(name="a", scopes=["read"], patterns=["*"], days=1)
    revoked, text = store.create(name="b", scopes=["read"], patterns=["*"], days=None)
    assert accepted(store, expiring)
    assert accepted(store, text)
    clock.now_us += 24 * HOUR_US
    assert not accepted(store, expiring)
    # Another process revokes it.
    TokenStore(store._path).revoke(revoked.id)  # pyright: ignore[reportPrivateUsage]
    assert not accepted(store, text)
    assert not store.has_live()
    assert not store.is_empty()


def test_a_rotation_accepts_both_secrets_for_a_time(store: TokenStore, clock: Clock) -> None:
    token, first = store.create(name="a", scopes=["read"], patterns=["*"], days=None)
    _, second = store.rotate(token.id, overlap_hours=2)
    assert [accepted(store, text) for text in (first, second)] == [True, True]
    clock.now_us += 2 * HOUR_US
    assert [accepted(store, text) for text in (first, second)] == [False, True]
    _, third = store.rotate(token.id, overlap_hours=0)
    assert [accepted(store, text) for text in (first, second, third)] == [False, False, True]
    store.revoke(token.id)
    with pytest.raises(NotFound, match="create another"):
        store.rotate(token.id, overlap_hours=0)


def test_concurrent_changes_lose_no_token(store: TokenStore) -> None:
    def create(name: str) -> str:
        return store.create(name=name, scopes=["read"], patterns=["*"], days=None)[1]

    with ThreadPoolExecutor(8) as threads:
        created = list(threads.map(create, "abcdefghijklmnopqrstuvwx"))
    assert all(accepted(store, text) for text in created)


@pytest.mark.parametrize(
    ("scopes", "patterns", "name"),
    [
        (["read", "root"], ["*"], "x"),
        ([], ["*"], "x"),
        (["read"], [], "x"),
        (["read"], ["a*b"], "x"),
        (["read"], ["**"], "x"),
        (["read"], ["ä"], "x"),
        (["read"], ["a/b"], "x"),
        (["read"], ["*"], ""),
        (["read"], ["*"], "a\x1b[31m"),
    ],
)
def test_wrong_values_are_refused(store: TokenStore, scopes: list[str], patterns: list[str], name: str) -> None:
    with pytest.raises(InvalidInput):
        store.create(name=name, scopes=scopes, patterns=patterns, days=None)
    assert store.is_empty()


def test_a_pattern_is_a_name_or_the_beginning_of_names() -> None:
    assert matches("ann", "ann")
    assert not matches("ann", "anna")
    assert matches("ann*", "anna")
    assert matches("*", "anything")
    assert not matches("team.*", "teamx1")
    assert not matches("Ann", "ann")


def test_a_file_that_is_damaged_gone_or_open_to_others_accepts_no_token(store: TokenStore, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    _, text = store.create(name="a", scopes=["read"], patterns=["*"], days=None)
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(ForeignFile):
        store.authenticate(text)
    path.write_bytes(content)
    path.chmod(0o666)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ReadOnly, match="chmod 600"):
        store.authenticate(text)
    path.chmod(0o600)
    os.utime(path, ns=(2, 2))
    assert accepted(store, text)
    path.unlink()
    with pytest.raises(ForeignFile, match="missing"):
        store.is_empty()


def test_the_commands_create_list_rotate_and_revoke(tmp_path: Path) -> None:
    created = recollect("token", "create", "--name", "bot", "--namespace", "a*", "--days", "30", data=tmp_path)
    text = created.stdout.strip()
    assert "read, write of a*" in created.stderr
    assert "answers no request without a token" in created.stderr
    assert accepted(TokenStore(tmp_path / "tokens.json"), text)
    [listed] = orjson.loads(recollect("token", "list", "--json", data=tmp_path).stdout)
    assert (listed["name"], listed["state"], listed["namespaces"]) == ("bot", "live", ["a*"])
    rotated = recollect("token", "rotate", listed["id"], "--overlap-hours", "0", data=tmp_path).stdout.strip()
    assert [accepted(TokenStore(tmp_path / "tokens.json"), one) for one in (text, rotated)] == [False, True]
    assert "The old secret is accepted until" in recollect("token", "rotate", listed["id"], data=tmp_path).stderr
    assert recollect("token", "revoke", listed["id"], data=tmp_path).returncode == 0
    head, row = recollect("token", "list", data=tmp_path).stdout.splitlines()
    assert head.split("\t") == ["id", "state", "name", "scopes", "namespaces", "created_at", "expires_at"]
    assert row.split("\t")[1:6] == ["revoked", "bot", "read,write", "a*", listed["created_at"]]
    assert recollect("token", "revoke", "nope", data=tmp_path).returncode == 2


def test_a_live_token_is_rotated_and_revoked_by_its_name_when_no_other_has_it(
    store: TokenStore, tmp_path: Path
) -> None:
    first, second = (store.create(name="bot", scopes=["read"], patterns=["a"], days=None)[0] for _ in range(2))
    refused = recollect("token", "revoke", "bot", data=tmp_path)
    assert refused.returncode == 2
    assert f"2 live tokens have the name 'bot'; give one of {first.id}, {second.id}" in refused.stderr
    assert recollect("token", "revoke", first.id, data=tmp_path).returncode == 0
    assert recollect("token", "rotate", "bot", data=tmp_path).returncode == 0
    assert recollect("token", "revoke", "bot", data=tmp_path).stdout == f"{second.id} is revoked\n"
    assert recollect("token", "revoke", "bot", data=tmp_path).returncode == 2


def test_the_audit_log_says_who_read_what_without_texts_and_is_bounded(tmp_path: Path) -> None:
    with application(tmp_path, audit_bytes_max=16_000) as house:
        house.memory.append("ann", [message(f"I like plum tea {number}") for number in range(3)])
        token, text = house.access.tokens.create(name="bot", scopes=["read"], patterns=["ann"], days=None)
        house.http.get("/v1/namespaces/ann/episodes", headers=headers(text))
        house.http.post("/v1/namespaces/ann/retrieve", json={"query": "plum tea"}, headers=headers(text))
        house.http.get("/v1/namespaces/ann/events", headers=headers(text))
        house.http.get("/v1/namespaces/bob/facts", headers=headers(text))
        house.http.get("/v1/namespaces/plum%20tea/facts")
        audit = [orjson.loads(line) for line in recollect("audit", "--json", data=tmp_path).stdout.splitlines()]
        listed = "/v1/namespaces/{namespace}"
        assert [(line["token"], line["namespace"], line["route"], line["status"]) for line in audit] == [
            ("-", None, f"GET {listed}/facts", 401),
            (token.id, "bob", f"GET {listed}/facts", 404),
            (token.id, "ann", f"GET {listed}/events", 403),
            (token.id, "ann", f"POST {listed}/retrieve", 200),
            (token.id, "ann", f"GET {listed}/episodes", 200),
        ]
        assert audit[-1]["count"] == 3
        assert "plum" not in "".join(path.read_text() for path in (tmp_path / "audit").glob("*.ndjson"))
        for _ in range(150):
            house.http.get("/v1/namespaces/ann/facts", headers=headers(text))
        assert sum(path.stat().st_size for path in (tmp_path / "audit").glob("*.ndjson")) <= 16_000
        assert len(recollect("audit", "--token", token.id, "--limit", "7", data=tmp_path).stdout.splitlines()) == 7
    assert recollect("export", "--namespace", "ann", data=tmp_path).returncode == 0
    newest = recollect("audit", "--namespace", "ann", "--limit", "1", data=tmp_path).stdout
    assert "local\tann\t200\trecollect export\t3 items" in newest


def test_a_token_over_its_rate_waits_and_others_do_not(tmp_path: Path) -> None:
    with application(tmp_path, requests_per_minute=12) as house:
        busy, other = house.token("read", "write"), house.token("read")
        answers = [house.http.get("/v1/namespaces/a/facts", headers=busy).status_code for _ in range(13)]
        assert answers == [200] * 12 + [429]
        refused = house.http.get("/v1/namespaces/a/facts", headers=busy)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert house.http.get("/v1/namespaces/a/facts", headers=other).status_code == 200
        costly = house.token("write")
        answers = [house.http.post("/v1/namespaces/a/settle", headers=costly).status_code for _ in range(2)]
        assert answers == [200, 429]


def test_an_address_that_guesses_tokens_is_slowed_down_and_fills_no_audit_log(tmp_path: Path) -> None:
    with application(tmp_path) as house:
        live = house.token("read")
        answers = [house.http.get("/v1/namespaces/a/facts", headers=headers("guess")).status_code for _ in range(70)]
        assert set(answers[:60]) == {401}
        assert set(answers[60:]) == {429}
        assert house.http.get("/v1/namespaces/a/facts", headers=live).status_code == 200
        lines = recollect("audit", "--limit", "1000", data=tmp_path).stdout.splitlines()
        assert len(lines) == 61


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8787", 200),
        ("127.0.0.1:9000", 200),
        ("localhost", 200),
        ("LOCALHOST.:8787", 200),
        ("[::1]:8787", 200),
        ("memory.example.org", 200),
        ("10.1.2.3:80", 200),
        ("evil.example", 421),
        ("evil.example:8787", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8787", 421),
        ("memory.example.org.evil.example", 421),
        ("", 421),
        ("192.168.0.9", 421),
        ("[::1].evil.example", 421),
        ("[::1]evil.example:80", 421),
        ("localhost:evil", 421),
        ("127.0.0.1:80:80", 421),
        ("user@localhost", 421),
        ("localhost/evil", 421),
    ],
)
def test_only_the_names_of_the_server_are_answered(tmp_path: Path, host: str, status: int) -> None:
    with application(tmp_path, allowed_hosts="memory.example.org, 10.1.2.3") as house:
        assert house.http.get("/v1/namespaces", headers={"Host": host}).status_code == status


def test_pages_of_other_sites_are_refused_and_programs_are_not(tmp_path: Path) -> None:
    with application(tmp_path, allowed_hosts="memory.example.org") as house:
        path = "/v1/namespaces/a/events"

        def sent(**given: str) -> int:
            names = {name.replace("_", "-"): value for name, value in given.items()}
            # As `curl -d`, and as a page that avoids the preflight.
            names |= {"Content-Type": "application/x-www-form-urlencoded"}
            body = orjson.dumps(message("hello"))
            return int(house.http.post(path, content=body, headers=names).status_code)

        assert sent() == 201
        assert sent(Sec_Fetch_Site="same-origin", Origin="http://127.0.0.1:8787") == 201
        assert sent(Sec_Fetch_Site="none") == 201
        assert sent(Origin="https://memory.example.org") == 201
        assert sent(Origin="http://evil.example") == 403
        assert sent(Origin="http://127.0.0.1:3000") == 403
        assert sent(Origin="null") == 403
        assert sent(Origin="http://127.0.0.1:8787.evil.example") == 403
        assert sent(Sec_Fetch_Site="cross-site") == 403
        preflight = house.http.options(path, headers={"Origin": "http://evil.example"})
        assert preflight.status_code == 403
        assert "access-control-allow-origin" not in preflight.headers


def test_a_link_of_another_site_opens_the_page_of_the_viewer_and_reads_nothing(tmp_path: Path) -> None:
    with application(tmp_path) as house:
        visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        page = house.http.get("/", headers=visit)
        assert page.status_code == 200
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert page.headers["cross-origin-opener-policy"] == "same-origin"
        for path in ("/v1/namespaces", "/v1/namespaces/a/facts", "/web/app.js", "/health", "/docs", "/openapi.json"):
            assert house.http.get(path, headers=visit).status_code == 403, path
        assert house.http.post("/", headers=visit).status_code == 403
        for name, value in (("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Mode", "no-cors"), ("Origin", "null")):
            assert house.http.get("/", headers=visit | {name: value}).status_code == 403, name


def test_without_a_token_other_machines_and_forwarded_requests_are_refused(tmp_path: Path) -> None:
    with application(tmp_path, peer="192.168.0.7") as house:
        refused = house.http.get("/v1/namespaces")
        assert refused.status_code == 401
        assert "recollect token create" in refused.json()["detail"]
        assert house.http.get("/health/ready").status_code == 200
        assert house.http.get("/v1/namespaces", headers=house.token("read")).status_code == 200
    with application(tmp_path / "other") as house:
        assert house.http.get("/v1/namespaces").status_code == 200
        assert house.http.get("/v1/namespaces", headers={"X-Forwarded-For": "1.2.3.4"}).status_code == 401
