"""Metrics and log of a real server after a conversation: the names of the reference, and nothing of what was said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families
from support.events import message
from support.server import serving
from support.waiting import eventually

from recollect.events.tracing import hidden_namespace

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
NAMESPACE = "ann.canary-4471"
SESSION = "session-canary-4471"
CANARY = re.compile("canary|falcon", re.IGNORECASE)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Observed(Struct, frozen=True):
    """What a server showed of itself: its metrics by name, and its log."""

    metrics: str
    lines: list[str]

    @property
    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        families = text_string_to_metric_families(self.metrics)
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    folder = tmp_path_factory.mktemp("observed")
    stderr = folder / "stderr"
    with (
        stderr.open("w") as output,
        serving(folder / "data", stderr=output.fileno(), environment={"RECOLLECT_LOG_LEVEL": "debug"}) as server,
    ):
        with httpx.Client(base_url=server.base) as http:
            converse(http)
            hostile(http, server.base)

            def is_done() -> bool:
                lag: dict[str, Any] = http.get("/health").json()["lag"]
                return lag["namespaces_behind"] == 0

            eventually(is_done)
            # The files are counted with the second check at the latest.
            eventually(lambda: "recollect_database_bytes{" in http.get("/metrics").text)
            metrics = http.get("/metrics").text
        assert server.stop() == 0
    return Observed(metrics, stderr.read_text(encoding="utf-8").splitlines())


def converse(http: httpx.Client) -> None:
    """Have a conversation: appends, a repetition, conflicts, retrievals with and without a result."""
    home = f"/v1/namespaces/{NAMESPACE}"
    said = [message(f"My falcon {number} lives in Porto", name="Canary", session_id=SESSION) for number in range(3)]
    assert http.post(f"{home}/events", json={"events": said}).status_code == 201
    named = message("I love the Canary Islands", id="event-canary")
    assert http.post(f"{home}/events", json=named).status_code == 201
    assert http.post(f"{home}/events", json=named).status_code == 200
    assert http.post(f"{home}/events", json=message("a canary", id="event-canary")).status_code == 409
    facts = [
        {"type": kind, "payload": {"subject": "Canary", "predicate": "lives in", "object": place}}
        for kind, place in (("fact.stated", "Falconia"), ("fact.corrected", "Falconville"))
    ]
    assert http.post(f"{home}/events", json={"events": facts}).status_code == 201
    late = {"events": [message("too late")], "expected_version": 1}
    assert http.post(f"{home}/events", json=late).status_code == 409
    assert http.post(f"{home}/retrieve", json={"query": "where does the falcon live?"}).json()["items"]
    assert not http.post("/v1/namespaces/canary-nobody/retrieve", json={"query": "falcon?"}).json()["items"]


def hostile(http: httpx.Client, base: str) -> None:
    """Send requests that are wrong, with canaries where they may be repeated."""
    http.post(f"/v1/namespaces/{NAMESPACE}/events", content=b'{"type": "canary"')
    http.post(f"/v1/namespaces/{NAMESPACE}/events", json={"type": "canary.falcon", "payload": {}})
    http.get("/v1/canary/falcon", params={"canary": "falcon"})
    http.get(f"/v1/namespaces/{NAMESPACE}/facts/canary")
    http.request("PROPFIND", "/health")
    http.get("/health", headers={"X-Request-Id": "canary falcon", "Origin": "https://canary.example"})
    http.get("/health", headers={"Authorization": "Bearer canary-falcon", "Host": "canary.example"})


def test_every_metric_of_the_reference_is_served_with_its_type_and_labels(observed: Observed) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: (kind, set(re.findall(r"`(\w+)`", labels.partition(":")[0]))) for name, kind, labels in rows}
    gauges_of_a_language_model = {"recollect_llm_tokens_today", "recollect_llm_budget_spent", "recollect_llm_paused"}
    of_several_processes = {"recollect_http_connections_moved_total"}
    served = {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for family in text_string_to_metric_families(observed.metrics)
    }
    assert set(served) == set(documented) - gauges_of_a_language_model - of_several_processes
    for name, (kind, labels) in served.items():
        # A metric without a series yet shows no labels.
        assert (kind, labels or documented[name][1]) == documented[name], name


def test_the_metrics_count_what_was_done(observed: Observed) -> None:
    events = "/v1/namespaces/{namespace}/events"
    assert observed.value("recollect_http_requests_total", method="POST", route=events, status="201") == 3
    assert observed.value("recollect_http_requests_total", method="POST", route=events, status="409") == 2
    assert observed.value("recollect_http_requests_total", method="GET", route="unmatched", status="404") == 2
    assert observed.value("recollect_http_requests_total", method="other", route="/health", status="405") == 1
    assert observed.value("recollect_http_request_duration_seconds_count", method="POST", route=events) >= 5
    assert observed.value("recollect_events_appended_total", type="message.added") == 4
    # A repeated append is an append, too.
    assert observed.value("recollect_append_duration_seconds_count") >= 3
    assert observed.value("recollect_append_conflicts_total") == 2
    assert observed.value("recollect_recall_duration_seconds_count", stage="total") == 2
    assert observed.value("recollect_recall_duration_seconds_count", stage="lexical") >= 1
    assert (observed.value("recollect_recall_results_count"), observed.value("recollect_recall_empty_total")) == (2, 1)
    assert observed.value("recollect_projection_apply_duration_seconds_count", projector="read_models") >= 1
    assert observed.value("recollect_facts_changed_total", change="asserted") >= 2
    assert observed.value("recollect_facts_changed_total", change="corrected") == 1
    assert observed.value("recollect_database_bytes", kind="log") > 0
    assert observed.value("recollect_disk_free_bytes") > 0
    for projector in ("read_models", "embeddings", "extraction"):
        assert observed.value("recollect_projection_lag_events", projector=projector) == 0


def test_the_metrics_name_no_namespace_session_id_or_text(observed: Observed) -> None:
    assert not CANARY.search(observed.metrics)
    assert hidden_namespace(NAMESPACE) not in observed.metrics


def test_every_line_of_the_log_is_json_without_a_word_of_users(observed: Observed) -> None:
    assert not [line for line in observed.lines if CANARY.search(line)]
    entries: list[dict[str, Any]] = [orjson.loads(line) for line in observed.lines]
    for entry in entries:
        assert {"timestamp", "level", "logger", "event"} <= entry.keys()
    requests = [entry for entry in entries if entry["logger"] == "recollect.api.http.request_observer"]
    assert len(requests) > 10
    assert all(_REQUEST_ID.fullmatch(entry["request_id"]) for entry in requests)
    appended = next(
        entry for entry in requests if entry["event"].startswith("POST /v1/namespaces/{namespace}/events: 201")
    )
    assert appended["namespace"] == hidden_namespace(NAMESPACE)
    assert appended["event_version"] == 3
