"""Tracing setup: where the spans of this process go, when its settings ask for them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import uuid_utils

from recollect.events.errors import InvalidInput
from recollect.events.tracing import is_tracing, use_tracer


def start_tracing() -> None:
    """Record spans with OpenTelemetry: by the provider of the program, or one that exports them over OTLP.

    Raises:
        InvalidInput: OpenTelemetry is not installed.
    """
    if is_tracing():
        return
    try:
        from opentelemetry import trace  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            "tracing needs OpenTelemetry; install it with: pip install 'recollect[otel]'", field="RECOLLECT_TRACING"
        ) from error
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = _exporting_provider()
        trace.set_tracer_provider(provider)
    use_tracer(provider.get_tracer("recollect", version("recollect")))


def _exporting_provider() -> Any:
    """Return a provider whose spans go to the address of `OTEL_EXPORTER_OTLP_ENDPOINT`, in batches."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            "the exporter of spans is missing; install it with: pip install 'recollect[otel]'",
            field="RECOLLECT_TRACING",
        ) from error
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    # The variables of OpenTelemetry come first, such as OTEL_SERVICE_NAME.
    resource = Resource.create({"service.name": "recollect"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, id_generator=time_ordered_ids())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def time_ordered_ids() -> Any:
    """Return a generator of ids whose trace ids are UUIDs of version 7, as those of retrievals are."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415

    class _TimeOrderedIds(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return uuid_utils.uuid7().int

    return _TimeOrderedIds()
