"""A released version and this one run side by side on one log while the nodes are upgraded, one after the other.

The sources of the released version are in the folder RECOLLECT_TEST_RELEASED, such as one made by
`git archive TAG | tar -x -C FOLDER`; without it, there is nothing to compare with.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.compose_cluster import ComposeCluster, haproxy
from support.events import message
from support.postgres import new_database
from support.redis import RedisServer
from support.waiting import eventually

RELEASED = os.environ.get("RECOLLECT_TEST_RELEASED", "")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(haproxy() is None, reason="haproxy is not installed"),
    pytest.mark.skipif(not RELEASED, reason="RECOLLECT_TEST_RELEASED names no sources"),
]


def say(http: httpx.Client, namespace: str, text: str) -> None:
    answer = http.post(f"/v1/namespaces/{namespace}/events", json=message(text, name="Ann"))
    assert answer.status_code == 201, answer.text


def ask(http: httpx.Client, namespace: str, query: str) -> dict[str, Any]:
    answer = http.post(f"/v1/namespaces/{namespace}/retrieve", json={"query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_both_versions_serve_one_log_in_every_step_of_the_upgrade(
    tmp_path: Path, postgres_url: str, redis_server: RedisServer, tiny_model: str
) -> None:
    redis_server.flush()
    environment = {
        "RECOLLECT_LOG": new_database(postgres_url),
        "RECOLLECT_BROKER": redis_server.url,
        "RECOLLECT_EMBEDDING_MODEL": tiny_model,
        "RECOLLECT_RETRIEVAL_BUDGET_MS": "10000",
    }
    said = 0

    def talk(cluster: ComposeCluster) -> None:
        """Append through the proxy and to each node, and find all that was said at each node."""
        nonlocal said
        with cluster.client() as proxy, cluster.client("api-1") as one, cluster.client("api-2") as two:
            for http in (proxy, one, two):
                said += 1
                say(http, "ann", f"I bought plant number {said}.")
            for http in (proxy, one, two):
                for number in range(1, said + 1):
                    assert f"number {number}." in ask(http, "ann", f"Which plant has number {number}?")["context"]
                eventually(lambda http=http: "projection" not in str(ask(http, "ann", "plants")["degraded"]))

    services = [f"{kind}-{number}" for number in (1, 2) for kind in ("worker", "scheduler", "api")]
    with ComposeCluster(tmp_path, environment, sources=dict.fromkeys(services, Path(RELEASED))) as cluster:
        cluster.start(*services, "proxy")
        talk(cluster)
        # As docs/how-to/deploy.md says: all services of one node, then those of the next.
        for number in (1, 2):
            of_node = [f"{kind}-{number}" for kind in ("api", "scheduler", "worker")]
            cluster.stop(*of_node)
            for name in of_node:
                del cluster.sources[name]
            cluster.start(*reversed(of_node))
            # The proxy gives the node its namespaces again after its check.
            talk(cluster)
            if number == 1:
                # The released version still starts on the log, such as after a crash, or to go back.
                cluster.kill("api-2")
                cluster.start("api-2")
                talk(cluster)
        with cluster.client("api-1") as http:
            eventually(lambda: not ask(http, "ann", "plants")["degraded"])
