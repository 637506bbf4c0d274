"""Access over HTTP: every route for every kind of caller, as its right declares."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi import APIRouter
from support.access import Application, application, headers
from support.events import message

from recollect.api.access.callers import SCOPES
from recollect.api.http.app import ROUTERS
from recollect.api.http.routes.dependencies import Memory
from recollect.api.http.routes.rights import GuardedRouter, declared_rights

OWN, OTHER, MISSING = "acme.ann", "rival.bob", "rival.never-used"
NO_NAMESPACE = "no such namespace for this token"
PARAMETERS = {"graph": {"entity": "tea"}}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Application]:
    """Two tenants, and a token of each kind; from the first token on every request needs one."""
    # Without a limit of denied requests: all of them come from one address here.
    with application(tmp_path_factory.mktemp("house"), denials_per_minute=0) as house:
        house.memory.append(OWN, [message("I love green tea", name="Ann"), message("I live in Porto", name="Ann")])
        house.memory.append(OTHER, [message("my canary is falcon-4471", name="Bob")])
        house.token("read")
        yield house


def operations(house: Application) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the method, the path and the description of every operation in OpenAPI."""
    for path, methods in house.app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def ask(house: Application, method: str, path: str, namespace: str, token: dict[str, str]) -> Any:
    """Send a request for `namespace` that the route understands as far as access is concerned."""
    filled = re.sub(r"\{\w+\}", "x", path.replace("{namespace}", namespace))
    body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
    parameters = PARAMETERS.get(path.rpartition("/")[2], {})
    return house.http.request(method, filled, headers=token, json=body, params=parameters)


def scopes_of(operation: dict[str, Any]) -> set[str]:
    return set(operation["security"][0]["token"]) if operation["security"] else set()


def is_refused(answer: Any) -> bool:
    return answer.status_code in (401, 403, 421, 429) or NO_NAMESPACE in answer.text


def test_every_route_declares_a_right_and_says_so_in_openapi(house: Application) -> None:
    described = {(method, path) for method, path, operation in operations(house) if "x-extent" in operation}
    assert described == {(method, path) for method, path, _ in operations(house)}
    rights = declared_rights(ROUTERS)
    # MCP and the tools have descriptions of their own; test_mcp_http.py and test_tool_routes.py ask them.
    others = {key for key in rights if key[1].startswith(("/mcp", "/tools/"))}
    viewer = {("GET", "/"), ("GET", "/web/{name}")}
    assert set(rights) - described == {("GET", "/openapi.json"), ("GET", "/docs"), *others, *viewer}
    assert len(others) == 4 + 7
    assert [key for key, right in rights.items() if right.extent == "namespace" and not right.scopes] == []
    public = {path for (_, path), right in rights.items() if right.extent == "public"}
    assert public == {"/health/live", "/health/ready"} | {path for _, path in viewer}


def test_every_route_that_reads_memories_is_a_line_of_the_audit_log() -> None:
    rights = declared_rights(ROUTERS).items()
    reads = {path: right for (method, path), right in rights if method == "GET" and "/{namespace}/" in path}
    # Numbers, versions and times.
    assert {path.rpartition("/")[2] for path, right in reads.items() if not right.is_audited} == {
        "moments",
        "stats",
        "tiers",
        "verify",
        "version",
    }


def test_every_route_that_changes_knowledge_is_a_line_of_the_audit_log() -> None:
    rights = declared_rights(ROUTERS).items()
    changes = {
        path: right
        for (method, path), right in rights
        if method != "GET" and path.startswith("/v1/namespaces/{namespace}")
    }
    # Messages and events, which are without a line unless memories are returned, and work that changes nothing.
    assert {path.rpartition("/")[2] for path, right in changes.items() if not right.is_audited} == {
        "check",
        "events",
        "messages",
        "settle",
    }


def test_a_turn_of_another_user_than_the_one_of_the_message_needs_a_scope(tmp_path: Path) -> None:
    def sent(name: str | None, token: str) -> int:
        turns = [{"role": "user", "name": "Ann", "text": "I moved to Oslo."}, {"role": "assistant", "text": "Noted."}]
        payload = {"role": "user", "turns": turns} | ({"name": name} if name else {})
        event = {"type": "message.added", "payload": payload}
        return int(house.http.post("/v1/namespaces/a/events", json=event, headers=headers(token)).status_code)

    with application(tmp_path) as house:
        tokens = house.access.tokens
        _, writer = tokens.create(name="bot", scopes=["write"], patterns=["a"], days=None)
        _, mover = tokens.create(name="mover", scopes=["write", "admin"], patterns=["a"], days=None)
        assert [sent(name, writer) for name in ("Ann", None, "Mallory")] == [201, 201, 403]
        assert sent("Mallory", mover) == 201


def test_a_route_without_a_right_is_refused_at_import() -> None:
    router = GuardedRouter()
    with pytest.raises(TypeError, match="declares no right"):

        @router.get("/secrets")
        async def secrets() -> None: ...


def test_every_router_of_the_application_is_guarded() -> None:
    assert all(isinstance(router, GuardedRouter) for router in ROUTERS)


def test_a_route_of_an_unguarded_router_gets_no_memory(tmp_path: Path) -> None:
    async def leak(memory: Memory) -> dict[str, Any]:
        return dict(memory.namespaces())

    router = APIRouter()
    router.add_api_route("/leak", leak)
    with application(tmp_path) as house:
        house.app.include_router(router)
        assert house.http.get("/leak").status_code == 401


def test_without_a_token_every_secret_route_is_401(house: Application) -> None:
    for method, path, operation in operations(house):
        answer = ask(house, method, path, OWN, {})
        assert (answer.status_code == 401) == (operation["x-extent"] != "public"), f"{method} {path}: {answer.text}"
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("kind", ["expired", "revoked", "wrong secret", "wrong id", "no token of ours", "basic"])
def test_a_token_that_is_not_live_is_401_everywhere(house: Application, kind: str) -> None:
    live, text = house.access.tokens.create(name="x", scopes=["read"], patterns=["*"], days=None)
    if kind == "revoked":
        house.access.tokens.revoke(live.id)
    token = {
        "expired": house.expired_token(),
        "revoked": headers(text),
        "wrong secret": headers(text[:-10] + "AAAAAAAAAA"),
        "wrong id": headers(f"rcl_222222222222_{text[-43:]}"),
        "no token of ours": headers("hello"),
        "basic": {"Authorization": "Basic dTpw"},
    }[kind]
    for method, path, operation in operations(house):
        if operation["x-extent"] != "public":
            assert ask(house, method, path, OWN, token).status_code == 401, f"{method} {path}"


def test_another_tenant_gets_the_same_404_whether_the_namespace_exists_or_not(house: Application) -> None:
    token = house.token(namespace="acme.*")
    for method, path, operation in operations(house):
        answer = ask(house, method, path, OTHER, token)
        match operation["x-extent"]:
            case "namespace":
                assert answer.status_code == 404, f"{method} {path}: {answer.text}"
                assert answer.text == ask(house, method, path, MISSING, token).text
            case "server":
                assert answer.status_code == 403, f"{method} {path}"
            case _:
                assert not is_refused(answer), f"{method} {path}: {answer.text}"
        assert "falcon" not in answer.text


def test_a_reading_token_is_admitted_to_the_routes_that_only_need_to_read(house: Application) -> None:
    token = house.token("read")
    for method, path, operation in operations(house):
        answer = ask(house, method, path, OWN, token)
        assert is_refused(answer) == bool(scopes_of(operation) - {"read"}), f"{method} {path}: {answer.text}"
        assert answer.status_code != 500
        if is_refused(answer):
            assert answer.status_code == 403


def test_exactly_the_declared_scopes_are_enough(house: Application) -> None:
    for method, path, operation in operations(house):
        scopes = scopes_of(operation)
        unneeded = next(scope for scope in SCOPES if scope not in scopes)
        token = house.token(*scopes, namespace="*" if operation["x-extent"] == "server" else "acme.*") if scopes else {}
        answer = ask(house, method, path, OWN, token)
        assert not is_refused(answer), f"{method} {path}: {answer.text}"
        for missing in scopes:
            fewer = house.token(*(set(scopes) - {missing} | {unneeded}))
            assert ask(house, method, path, OWN, fewer).status_code == 403, f"{method} {path} without {missing}"


def test_a_token_lists_its_own_namespaces_only(house: Application) -> None:
    def listed(token: dict[str, str], **parameters: str) -> list[str]:
        answer = house.http.get("/v1/namespaces", headers=token, params=parameters)
        return [item["namespace"] for item in answer.json()["items"]]

    house.memory.append("acme.zoe", message("hi"))
    house.memory.append("acme", message("hi"))
    assert listed(house.token("read", namespace="acme.*")) == ["acme.ann", "acme.zoe"]
    assert listed(house.token("read", namespace=("acme*", "rival.*"))) == ["acme", "acme.ann", "acme.zoe", OTHER]
    assert listed(house.token("read", namespace=(OWN, MISSING))) == [OWN]
    assert listed(house.token("read", namespace="acme.*"), after=OWN) == ["acme.zoe"]
    assert listed(house.token("read", namespace="*"), limit="1") == ["acme"]


def test_also_is_under_the_same_rule(house: Application) -> None:
    token = house.token("read", "write", namespace="acme.*")
    body = {"query": "what is the canary?", "also": [OTHER]}
    refused = house.http.post(f"/v1/namespaces/{OWN}/retrieve", json=body, headers=token)
    assert (refused.status_code, refused.json()["field"]) == (404, "also")
    turn = house.http.post(
        f"/v1/namespaces/{OWN}/messages",
        params={"retrieve": "true", "also": OTHER},
        json={"messages": [{"role": "user", "content": "the canary?"}]},
        headers=token,
    )
    assert (turn.status_code, turn.json()["field"]) == (404, "also")
    assert "canary?" not in house.http.get(f"/v1/namespaces/{OWN}/episodes", headers=token).text


def test_an_append_that_retrieves_needs_to_read_too(house: Application) -> None:
    path, event = f"/v1/namespaces/{OWN}/events", message("what do I drink?")
    token = house.token("write")
    assert house.http.post(path, params={"retrieve": "true"}, json=event, headers=token).status_code == 403
    assert house.http.post(path, json=event, headers=token).status_code == 201


def test_a_trace_with_texts_of_another_namespace_is_not_shown_to_who_cannot_read_it(house: Application) -> None:
    path, everything, own = f"/v1/namespaces/{OWN}", house.token(), house.token("read", namespace="acme.*")
    shared = house.http.post(f"{path}/retrieve", json={"query": "canary", "also": [OTHER]}, headers=everything).json()
    alone = house.http.post(f"{path}/retrieve", json={"query": "tea"}, headers=everything).json()
    assert "falcon" in house.http.get(f"{path}/traces/{shared['trace_id']}", headers=everything).text
    hidden = house.http.get(f"{path}/traces/{shared['trace_id']}", headers=own)
    assert hidden.status_code == 404
    assert hidden.text == house.http.get(f"{path}/traces/none", headers=own).text
    listed = [item["trace_id"] for item in house.http.get(f"{path}/traces", headers=own).json()["items"]]
    assert alone["trace_id"] in listed
    assert shared["trace_id"] not in listed


def test_nothing_standing_or_pinned_comes_from_another_namespace(house: Application) -> None:
    preference = {"key": "reply language", "value": "always answer in French", "standing": True}
    stated = {"type": "preference.stated", "payload": preference}
    house.memory.append("acme.team", [stated, message("the ferry to Faro leaves at nine", id="ferry")])
    house.memory.pin("acme.team", "ferry")
    for question in ("in which language should I always answer?", "how are you?"):
        for mode in ("active", "passive"):
            found = house.memory.retrieve(OWN, question, also=["acme.team"], mode=mode, session_id="s1", gate=False)
            assert [item for item in found.items if "French" in item.text] == []
    passive = house.memory.retrieve(OWN, "how are you?", also=["acme.team"], mode="passive", session_id="s2")
    assert "ferry" not in passive.context
    own = house.memory.retrieve("acme.team", "how are you?", mode="passive", session_id="s3")
    assert "French" in own.context
    assert "ferry" in own.context
    asked = house.memory.retrieve(OWN, "when does the ferry to Faro leave?", also=["acme.team"])
    assert "ferry" in asked.context


def test_only_an_admin_imports_events_that_jobs_derive(house: Application) -> None:
    derived = {"type": "memory.status_changed", "id": "d1", "payload": {"memory_id": "m1", "status": "stale"}}
    token, path = house.token(), "/v1/namespaces/acme.copy"
    assert house.http.post(f"{path}/events", json=derived, headers=token).status_code == 422
    lines = b"\n".join(orjson.dumps(event) for event in ({**message("I like tea"), "id": "m1"}, derived))
    everything_else = house.token("read", "write", "export", "erase", "review")
    assert house.http.post(f"{path}/import", content=lines, headers=everything_else).status_code == 403
    for expected in ({"added": 2, "duplicates": 0}, {"added": 0, "duplicates": 2}):
        assert house.http.post(f"{path}/import", content=lines, headers=token).json() == expected
    extraction = {"source_events": ["m1"], "through": 10**9, "extractor": "rules"}
    through = {"type": "facts.extracted", "id": "x1", "payload": extraction}
    refused = house.http.post(f"{path}/import", content=orjson.dumps(through), headers=token)
    assert (refused.status_code, "version of this event" in refused.text) == (422, True)
