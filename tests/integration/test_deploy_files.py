"""The files of ops/deploy are valid, fit each other, and name metrics, settings and commands that there are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.access import application
from support.pages import ROOT

from recollect.api.settings import setting_groups

DEPLOY = ROOT / "ops" / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
_NAMES = re.compile(r"\b(?:recollect|process|python)_[a-z_]+\b")


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def compose() -> dict[str, Any]:
    return loaded(DEPLOY / "compose.yaml")


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all series that /metrics of a server with a language model has, or may have."""
    folder = tmp_path_factory.mktemp("metrics")
    with application(folder, llm="tiny", llm_base_url="http://127.0.0.1:1") as server:
        text = server.http.get("/metrics").text
    names: set[str] = set()
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        names |= {family.name + suffix for suffix in suffixes}
    return names


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the dashboards and the alerts, with where it is."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            yield from ((f"{path.name}: {panel['title']}", target["expr"]) for target in panel["targets"])
    for group in loaded(DEPLOY / "prometheus" / "alerts.yml")["groups"]:
        yield from ((f"alerts.yml: {rule['alert']}", rule["expr"]) for rule in group["rules"])


def test_every_metric_of_the_dashboards_and_alerts_is_in_metrics(metrics: set[str]) -> None:
    unknown = {(where, name) for where, query in queries() for name in _NAMES.findall(query) if name not in metrics}
    assert unknown == set()
    assert sum(1 for _ in queries()) > 40


def test_the_alerts_and_the_scrape_configuration_are_valid() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    for command in (["check", "rules", "alerts.yml"], ["check", "config", "--syntax-only", "prometheus.yml"]):
        done = subprocess.run(
            [promtool, *command], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_compose_is_valid_and_has_two_of_each_process() -> None:
    schema = json.loads(
        files("check_jsonschema").joinpath("builtin_schemas", "vendor", "compose-spec.json").read_text(encoding="utf-8")
    )
    jsonschema.validate(compose(), schema)
    services = compose()["services"]
    commands = [services[name]["command"][0] for name in services if services[name].get("image") == "recollect"]
    assert sorted(commands) == ["scheduler"] * 2 + ["serve"] * 2 + ["worker"] * 2
    assert {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]} <= {
        *compose()["volumes"],
        *("./proxy/haproxy.cfg", "./prometheus", "./secrets/metrics-token"),
        *("./grafana/provisioning", "./grafana/dashboards"),
    }


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_fit_the_schema_of_kubernetes(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if document["kind"] != "Kustomization":
            kubernetes_validate.validate(document, "1.30", strict=True)
        else:
            assert {*document["resources"]} == {file.name for file in MANIFESTS} - {path.name, "secret.example.yaml"}


def test_pods_run_as_no_root_and_with_the_proxy_of_compose() -> None:
    documents = [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    pods = [document["spec"]["template"]["spec"] for document in documents if "template" in document.get("spec", {})]
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in pods)
    rights = [container["securityContext"] for pod in pods for container in pod["containers"]]
    assert all(right["readOnlyRootFilesystem"] and not right["allowPrivilegeEscalation"] for right in rights)
    [proxy] = [document["data"]["haproxy.cfg"] for document in documents if "haproxy.cfg" in document.get("data", {})]
    assert proxy == (DEPLOY / "proxy" / "haproxy.cfg").read_text(encoding="utf-8")


def test_the_image_runs_as_no_root() -> None:
    users = re.findall(r"^USER (.+)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert users == ["10001:10001"]


def test_every_setting_of_the_files_exists() -> None:
    known = {f"RECOLLECT_{field}".upper() for group in setting_groups().values() for field in group.model_fields}
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            named = set(re.findall(r"\bRECOLLECT_[A-Z_]+\b", path.read_text(encoding="utf-8")))
            assert named <= known, path


def test_the_proxy_is_valid() -> None:
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if haproxy is None:
        pytest.skip("haproxy is not installed")
    nodes = {"NODE_1": "127.0.0.1:1", "NODE_2": "127.0.0.1:2", "PROXY_BIND": "127.0.0.1:18080"}
    command = [haproxy, "-c", "-f", str(DEPLOY / "proxy" / "haproxy.cfg")]
    done = subprocess.run(command, env=os.environ | nodes, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        assert "ExecStart=/opt/recollect/bin/recollect " in text
        # It looks for the program.
        (tmp_path / unit.name).write_text(text.replace("/opt/recollect/bin/recollect", "/bin/true"), encoding="utf-8")
    command = ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
