"""Prometheus reads the processes of the cluster: panels of the dashboard have data, and an alert follows an outage."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from support.compose_cluster import DEPLOY, ComposeCluster, free_port
from support.events import message
from support.postgres import new_database
from support.redis import RedisServer
from support.waiting import eventually

PROMETHEUS = shutil.which("prometheus")
pytestmark = [pytest.mark.long, pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed")]

DASHBOARD = DEPLOY / "grafana" / "dashboards" / "recollect.json"
#: Panels without data: the cluster has no language model.
EMPTY = {"Language model", "Tokens of the language model"}


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str, redis_server: RedisServer, tiny_model: str) -> Generator[ComposeCluster]:
    redis_server.flush()
    environment = {
        "RECOLLECT_LOG": new_database(postgres_url),
        "RECOLLECT_BROKER": redis_server.url,
        "RECOLLECT_EMBEDDING_MODEL": tiny_model,
    }
    with ComposeCluster(tmp_path, environment) as cluster:
        cluster.start(*cluster.services)
        yield cluster


@pytest.fixture
def prometheus(cluster: ComposeCluster, tmp_path: Path) -> Generator[httpx.Client]:
    """A client of Prometheus with the configuration of ops/deploy, but for addresses and intervals."""
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    for name, port in cluster.ports.items():
        text = text.replace(f"{name}:8787", f"127.0.0.1:{port}").replace(f"{name}:9101", f"127.0.0.1:{port}")
    text = text.replace("/run/secrets/metrics-token", str(tmp_path / "token")).replace("15s", "1s")
    (tmp_path / "token").write_text(cluster.token)
    (tmp_path / "prometheus.yml").write_text(text)
    shutil.copy(DEPLOY / "prometheus" / "alerts.yml", tmp_path)
    port = free_port()
    command = [f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    with (tmp_path / "prometheus.out").open("wb") as output:
        process = subprocess.Popen(
            [str(PROMETHEUS), *command, f"--web.listen-address=127.0.0.1:{port}"], stdout=output, stderr=output
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=10) as http:
            eventually(lambda: _targets(http) == {"up"})
            yield http
    finally:
        process.terminate()
        process.wait()


def _targets(http: httpx.Client) -> set[str]:
    try:
        answer = http.get("/targets")
    except httpx.TransportError:
        return set()
    # 503 while it starts.
    return {target["health"] for target in answer.json()["data"]["activeTargets"]} if answer.is_success else set()


def result(http: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer = http.get("/query", params={"query": query.replace("$__rate_interval", "30s")}).json()
    assert answer["status"] == "success", (query, answer)
    return answer["data"]["result"]


def talk(cluster: ComposeCluster, ended: threading.Event) -> None:
    """Append, retrieve and ask for what is not there at both nodes, until `ended`."""
    with cluster.client("api-1") as one, cluster.client("api-2") as two:
        while not ended.wait(0.2):
            for number, http in enumerate((one, two)):
                http.post(f"/v1/namespaces/user-{number}/events", json=message("I live in Oslo.", name="Ann"))
                http.post(f"/v1/namespaces/user-{number}/retrieve", json={"query": "Where does Ann live?"})
                http.post("/v1/namespaces/empty/retrieve", json={"query": "Where does Ann live?"})


def test_every_panel_has_data_and_an_alert_follows_an_outage(cluster: ComposeCluster, prometheus: httpx.Client) -> None:
    ended = threading.Event()
    talking = threading.Thread(target=talk, args=(cluster, ended))
    talking.start()
    try:
        for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                if panel["title"] not in EMPTY:
                    eventually(lambda query=target["expr"]: _has_numbers(result(prometheus, query)))
                else:
                    assert result(prometheus, target["expr"]) == []
    finally:
        ended.set()
        talking.join()
    rules = [rule for group in prometheus.get("/rules").json()["data"]["groups"] for rule in group["rules"]]
    declared = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert len(rules) == len(declared)
    assert {rule["health"] for rule in rules} == {"ok"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []

    cluster.kill("api-1")
    eventually(lambda: "RecollectProcessDown" in _alerts(prometheus))


def _has_numbers(series: list[dict[str, Any]]) -> bool:
    return any(one["value"][1] != "NaN" for one in series)


def _alerts(http: httpx.Client) -> set[str]:
    """Return the alerts that fire, or will when their cause lasts."""
    return {alert["labels"]["alertname"] for alert in http.get("/alerts").json()["data"]["alerts"]}
