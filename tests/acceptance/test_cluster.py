"""The services of ops/deploy/compose.yaml behind the proxy: two nodes, workers and schedulers, not in containers."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.compose_cluster import ComposeCluster, haproxy
from support.events import message
from support.postgres import new_database
from support.redis import RedisServer
from support.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.skipif(haproxy() is None, reason="haproxy is not installed")]

NAMES = [f"user-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, redis_server: RedisServer, tiny_model: str
) -> Generator[ComposeCluster]:
    environment = {
        "RECOLLECT_LOG": new_database(postgres_url),
        "RECOLLECT_BROKER": redis_server.url,
        "RECOLLECT_EMBEDDING_MODEL": tiny_model,
        "RECOLLECT_RETRIEVAL_BUDGET_MS": "10000",
    }
    with ComposeCluster(tmp_path_factory.mktemp("cluster"), environment) as cluster:
        cluster.start(*cluster.services)
        # Started last, since it sends nothing to a node for some seconds after it did not answer.
        cluster.start("proxy")
        yield cluster


def say(http: httpx.Client, namespace: str, text: str) -> None:
    answer = http.post(f"/v1/namespaces/{namespace}/events", json=message(text, name="Ann"))
    assert answer.status_code == 201, answer.text


def ask(http: httpx.Client, namespace: str, query: str) -> tuple[str, str, list[str]]:
    """Return the context, the node that answered, and what was missing."""
    answer = http.post(f"/v1/namespaces/{namespace}/retrieve", json={"query": query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body["context"], answer.headers.get("x-recollect-node", ""), body["degraded"]


def embedded(cluster: ComposeCluster, service: str) -> dict[str, float]:
    """Return how many embeddings a process computed, and how many it read from others."""
    with cluster.client(service) as http:
        text = http.get("/metrics").text
    found = re.findall(r'recollect_embeddings_obtained_total\{source="(\w+)"\} (\S+)', text)
    return {source: float(value) for source, value in found}


def test_the_proxy_sends_a_namespace_to_one_node_and_all_nodes_have_some(cluster: ComposeCluster) -> None:
    with cluster.client() as http:
        nodes: dict[str, set[str]] = {}
        for name in NAMES:
            say(http, name, f"I live in the city of {name}.")
            for _ in range(3):
                context, node, _ = ask(http, name, "Where does Ann live?")
                assert f"city of {name}" in context
                nodes.setdefault(name, set()).add(node)
        assert all(len(of_name) == 1 for of_name in nodes.values())
        assert {node for of_name in nodes.values() for node in of_name} == {"node-1", "node-2"}
        # An encoded name is the same namespace.
        assert ask(http, "user%2D1", "Where does Ann live?")[1] in nodes["user-1"]
        assert http.get("/metrics").status_code == 404


def test_both_nodes_find_by_meaning_what_the_cluster_embedded_once(cluster: ComposeCluster) -> None:
    with cluster.client("api-1") as one, cluster.client("api-2") as two:
        for number in range(20):
            say(one, "shared", f"Sentence number {number} is about trams.")

        def is_whole(http: httpx.Client) -> bool:
            context, _, degraded = ask(http, "shared", "Which sentence is about trams?")
            return "trams" in context and not degraded

        eventually(lambda: is_whole(one) and is_whole(two))
    # A server or a worker of the second node reads the vectors of the first one.
    assert sum(embedded(cluster, name).get("shared", 0) for name in ("api-1", "api-2", "worker-1", "worker-2")) > 0


def test_a_node_that_is_killed_is_replaced_and_nothing_is_lost(cluster: ComposeCluster) -> None:
    with cluster.client() as http:
        for name in NAMES:
            say(http, name, "My cat is called Biscuit.")
        cluster.kill("api-1")
        cluster.kill("worker-1")
        for name in NAMES:
            context, node, _ = ask(http, name, "What is the cat called?")
            assert "Biscuit" in context
            assert node == "node-2"
            say(http, name, "My dog is called Rex.")
        cluster.start("api-1", "worker-1")
        eventually(lambda: {ask(http, name, "What is the dog called?")[1] for name in NAMES} == {"node-1", "node-2"})
        assert all("Rex" in ask(http, name, "What is the dog called?")[0] for name in NAMES)


def test_an_erasure_on_one_node_reaches_the_files_of_the_other(cluster: ComposeCluster, tmp_path: Path) -> None:
    with cluster.client("api-1") as one, cluster.client("api-2") as two:
        for http in (one, two):
            say(http, "erased", "The word is Zqcanary.")
            assert "Zqcanary" in ask(http, "erased", "What is the word?")[0]
        assert one.post("/v1/namespaces/erased/erase", json={"everything": True}).status_code in (200, 202)
        assert "Zqcanary" not in ask(two, "erased", "What is the word?")[0]


def test_every_process_ends_when_it_is_asked_to(cluster: ComposeCluster) -> None:
    cluster.stop(*cluster.services)
    assert not re.search(r"Traceback", "".join(cluster.output(name) for name in cluster.services))
