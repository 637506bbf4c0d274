"""Tenant fuzz: two tenants with a token each use every route at a time; neither may see the other's canary."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from typing import Any

import httpx
from fuzz_server import FuzzServer

#: The two tenants, and the word that only their memory holds.
_CANARIES = {"acme.ann": "zebrafinchcanary", "rival.bob": "quokkacanary"}
_QUESTIONS = ("cat Lisbon", "tea", "who is Ent?", "what should I always do?", "the document", "filler 7")


def fuzz_tenants(server: FuzzServer, seconds: float, threads: int) -> bool:
    """Let `threads` threads use every route for `seconds`; return whether no answer held a canary of the other."""
    clients = {tenant: server.client(f"{tenant.partition('.')[0]}.*") for tenant in _CANARIES}
    with server.client() as operator:
        operations = _operations(operator)
    seen = {tenant: _remember(clients[tenant], tenant) for tenant in _CANARIES}
    statuses, leaks, used = Counter[int](), list[str](), set[str]()
    ends_at = time.monotonic() + seconds

    def run(number: int) -> None:
        chance = random.Random(number)
        own, other = sorted(_CANARIES, reverse=bool(number % 2))
        while time.monotonic() < ends_at:
            method, path = chance.choice(operations)
            # The own namespace, mostly; that of the other tenant must be refused.
            target = own if chance.random() < 0.8 else other
            filled = path.replace("{namespace}", target)
            # Ids of the other tenant, such as of its traces, in paths of the own one.
            filled = re.sub(r"\{\w+\}", lambda _: chance.choice(seen[chance.choice((own, other))]), filled)
            body = None if method == "GET" else _body(chance, path, own, other)
            try:
                answer = clients[own].request(method, filled, json=body, params=_parameters(chance, path, other))
            except httpx.HTTPError as error:
                statuses[0] += 1
                leaks.append(f"{method} {filled}: {type(error).__name__}")
                continue
            statuses[answer.status_code] += 1
            used.add(f"{method} {path}")
            if _CANARIES[other] in answer.text or answer.status_code >= 500:
                leaks.append(f"{own}: {method} {filled} {body} {answer.status_code}: {answer.text[:300]}")

    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    routes = f"{len(used)} of {len(set(operations))} routes"
    print(f"{statuses.total()} requests, {routes}: {dict(statuses.most_common())}")
    print(f"{len(leaks)} answers with a canary of the other tenant, or failures")
    for leak in leaks[:10]:
        print(leak)
    return not leaks


def _operations(http: httpx.Client) -> list[tuple[str, str]]:
    """Return the method and the path of every operation, the frequent ones several times."""
    paths: dict[str, Any] = http.get("/openapi.json").json()["paths"]
    operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    return operations + [one for one in operations if one[1].endswith(("/retrieve", "/events"))] * 5


def _remember(http: httpx.Client, tenant: str) -> list[str]:
    """Append what the tenant knows; return ids of it: of messages, of facts and of a trace."""
    word, path = _CANARIES[tenant], f"/v1/namespaces/{tenant}"
    texts = (f"My cat is named Rex and I live in Lisbon {word}", f"Always answer with {word}.", f"I love {word} tea")
    events: list[dict[str, Any]] = [
        {"type": "message.added", "session_id": "s1", "payload": {"role": "user", "text": text}}
        for text in (*texts, *(f"{word} filler {number}" for number in range(20)))
    ]
    events += [
        {"type": "fact.stated", "payload": {"subject": word, "predicate": "lives in", "object": f"Porto {word}"}},
        {"type": "entity.described", "payload": {"name": f"Ent {word}", "type": "person", "description": word}},
        {
            "type": "document.added",
            "payload": {"document_id": f"d-{tenant}", "title": word, "text": f"document {word}"},
        },
    ]
    http.post(f"{path}/events", json={"events": events}).raise_for_status()
    trace: str = http.post(f"{path}/retrieve", json={"query": "cat Lisbon tea"}).raise_for_status().json()["trace_id"]
    ids = [item["id"] for name in ("episodes", "facts") for item in http.get(f"{path}/{name}").json()["items"]]
    return [trace, "s1", f"d-{tenant}", *ids[:10]]


def _body(chance: random.Random, path: str, own: str, other: str) -> dict[str, Any]:
    """Return a body for a route."""
    if path.endswith("/events"):
        return {"type": "message.added", "payload": {"role": "user", "text": f"tea with Rex {chance.random()}"}}
    if path.endswith("/messages"):
        return {"messages": [{"role": "user", "content": f"tea {chance.random()}"}]}
    if path.endswith("/window"):
        return {"budget_tokens": 4_000}
    if path.endswith("/retrieve"):
        body: dict[str, Any] = {"query": chance.choice(_QUESTIONS), "gate": chance.random() < 0.5}
        body |= {"mode": chance.choice(("active", "passive")), "expand": chance.random() < 0.3}
        return body | ({"also": [chance.choice((own, other))]} if chance.random() < 0.3 else {})
    return {}


def _parameters(chance: random.Random, path: str, other: str) -> dict[str, str]:
    """Return query parameters for a route."""
    if path.endswith("/graph"):
        return {"entity": chance.choice(("Rex", f"Ent {_CANARIES[other]}"))}
    if path.endswith(("/events", "/messages")) and chance.random() < 0.2:
        return {"retrieve": "true"}
    return {}
