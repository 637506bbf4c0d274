"""Tracing: spans of OpenTelemetry, once a tracer is set; until then a span costs 0.2 µs and nothing is imported.

Spans have the names of the conventions for generative AI (`gen_ai.*`, status Development). Namespaces are hashed, and
messages are left out unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is true.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from recollect.events.storage.namespace_folder import folder_name

Attributes = Mapping[str, str | int | float | bool]

#: The variable of the conventions by which users allow texts in spans.
CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
#: Hex digits of the name of a namespace's folder that spans and logs show: no two of 10⁶ namespaces share them.
NAMESPACE_DIGITS = 12


class Span(Protocol):
    """A span that has begun."""

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Set an attribute."""
        ...

    def rename(self, name: str) -> None:
        """Set the name of the span."""
        ...


class _NoSpan:
    """The span while nothing is traced."""

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Do nothing."""

    def rename(self, name: str) -> None:
        """Do nothing."""

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _RecordedSpan:
    """A span of OpenTelemetry. An error is recorded by its type alone, since its text may quote a message."""

    def __init__(self, tracer: Any, name: str, attributes: Attributes, options: Mapping[str, Any]) -> None:
        self._context: Any = tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False, **options
        )
        self._span: Any = None

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Set an attribute."""
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        """Set the name of the span."""
        self._span.update_name(name)

    def __enter__(self) -> Span:
        self._span = self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            from opentelemetry.trace import StatusCode  # noqa: PLC0415

            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(StatusCode.ERROR, kind.__name__)
        self._context.__exit__(kind, error, traceback)


_NO_SPAN = _NoSpan()
#: The tracer in use; None while nothing is traced.
_tracer: Any = None


def use_tracer(tracer: Any) -> None:
    """Record the spans of this process with a tracer of OpenTelemetry; None ends it."""
    global _tracer  # noqa: PLW0603 -- a process has one tracer, as OpenTelemetry itself has one provider
    _tracer = tracer


def is_tracing() -> bool:
    """Return whether spans are recorded."""
    return _tracer is not None


def span(name: str, attributes: Attributes | None = None, **options: Any) -> AbstractContextManager[Span]:
    """Return a span of the current trace, to be used with ``with``.

    Parameters:
        attributes: the attributes that are known at its start.
        options: further arguments of `Tracer.start_as_current_span`, such as `kind`.
    """
    if _tracer is None:
        return _NO_SPAN
    return _RecordedSpan(_tracer, name, attributes or {}, options)


def memory_span(operation: str, namespace: str) -> AbstractContextManager[Span]:
    """Return the span of an operation on a namespace's memory, such as `search_memory`."""
    if _tracer is None:
        return _NO_SPAN
    attributes = {"gen_ai.operation.name": operation, "gen_ai.memory.store.id": hidden_namespace(namespace)}
    return _RecordedSpan(_tracer, operation, attributes, {})


def add_span(name: str, started_ns: int, ended_ns: int) -> None:
    """Record a part of the current span that is over, by nanoseconds since 1970 UTC."""
    if _tracer is not None:
        _tracer.start_span(name, start_time=started_ns).end(ended_ns)


def current_trace_id() -> str | None:
    """Return the id of the current trace, 32 hex digits; None when nothing is traced."""
    if _tracer is None:
        return None
    from opentelemetry.trace import get_current_span  # noqa: PLC0415

    context = get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None


def captures_content() -> bool:
    """Return whether spans may hold texts of messages."""
    return os.environ.get(CAPTURE_VARIABLE, "").lower() in ("true", "1")


def hidden_namespace(namespace: str) -> str:
    """Return the name of a namespace as spans and logs show it: the beginning of the name of its folder, a hash."""
    return folder_name(namespace)[:NAMESPACE_DIGITS]
