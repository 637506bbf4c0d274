"""Recall telemetry: the metrics and the spans of one retrieval, recorded at its end."""

from __future__ import annotations

import time

import uuid_utils

from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.events.instruments import Counter, Histogram
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.tracing import Span, add_span, captures_content, current_trace_id, is_tracing

#: The names of stages in metrics and spans, where those of search engines differ from ours in traces.
_STAGES = {"keyword": "lexical", "semantic": "vector", "rank": "fuse"}
#: From none to the most that a request may ask for.
_ITEM_BUCKETS = (0, 1, 2, 5, 10, 20, 50, 100)
#: Traces of OpenTelemetry that are remembered: those of the last minutes.
_TRACE_IDS_MAX = 4_096

_SECONDS = Histogram("recollect_recall_duration_seconds", "Time of a retrieval, by stage, and in total", ("stage",))
_RESULTS = Histogram("recollect_recall_results", "Items in the result of a retrieval", buckets=_ITEM_BUCKETS)
_EMPTY = Counter("recollect_recall_empty", "Retrievals without an item")


class TraceIds:
    """The ids of retrievals: that of the trace in OpenTelemetry, so that both are found by one id."""

    def __init__(self) -> None:
        self._used: BoundedCache[str, bool] = BoundedCache(_TRACE_IDS_MAX)

    def next(self) -> str:
        """Return the id of the current trace; a new id without a trace, or for a further retrieval in it."""
        trace_id = current_trace_id()
        if trace_id is None or self._used.get(trace_id):
            return str(uuid_utils.uuid7())
        self._used.put(trace_id, True)
        return trace_id


def record_recall(budget: TimeBudget, items: int) -> None:
    """Count a retrieval with `items` items that ends now."""
    for stage, stage_ms in list(budget.stages_ms.items()):
        _SECONDS.observe(stage_ms / 1_000, _STAGES.get(stage, stage))
    _SECONDS.observe(budget.spent_ms / 1_000, "total")
    _RESULTS.observe(items)
    if not items:
        _EMPTY.add()


def trace_recall(span: Span, budget: TimeBudget, query: str, items: list[str], trace_id: str) -> None:
    """Add the stages of a retrieval that ends now to its span.

    Parameters:
        items: the ids of the items in the result.
        trace_id: the id of the retrieval's own trace.
    """
    if not is_tracing():
        return
    started_ns = time.time_ns() - int(budget.spent_ms * 1e6)
    for stage, stage_ms in list(budget.stages_ms.items()):
        stage_started_ns = started_ns + int(budget.stage_starts_ms[stage] * 1e6)
        add_span(f"recall.{_STAGES.get(stage, stage)}", stage_started_ns, stage_started_ns + int(stage_ms * 1e6))
    span.set("gen_ai.memory.record.count", len(items))
    span.set("recollect.trace.id", trace_id)
    span.set("recollect.degraded", bool(budget.degraded))
    if len(items) == 1:
        span.set("gen_ai.memory.record.id", items[0])
    if captures_content():
        span.set("gen_ai.memory.query.text", query)
