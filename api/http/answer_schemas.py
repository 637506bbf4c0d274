"""Answer schemas: the OpenAPI schemas of what the routes answer, from the types that Python callers get."""

from __future__ import annotations

from typing import Any, NotRequired, cast

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from recollect.api.knowledge_types import PreferenceValue
from recollect.api.receipt_types import ErasurePreview, Receipt
from recollect.api.result_types import (
    LIST_ROWS,
    EndableMemory,
    EntityMemory,
    EventItem,
    FactValue,
    Forgotten,
    JudgedAnswer,
    MemoryItem,
    NamespaceItem,
    Neighbourhood,
    Page,
    PinnableMemory,
    QuarantineItem,
    QuarantinePage,
    Trace,
    TraceSummary,
    Undone,
)
from recollect.api.retrieval.contract.result_json import RetrievalJson, SourceJson

#: The catalogue has payloads of the same names, such as `Fact`.
_TEMPLATE = "#/components/schemas/Result{model}"


class AppendedEvent(TypedDict):
    """A recorded event."""

    id: str
    version: int
    recorded_at: str
    #: In hex.
    hash: str
    #: Whether it had been recorded before.
    duplicate: bool
    #: Ids of the memories that were forgotten because this message asked for it; missing without any.
    forgotten: NotRequired[list[str]]


class Appended(TypedDict):
    """The recorded events, in the order of the request."""

    events: list[AppendedEvent]
    #: The version of the last one; null when nothing is stored.
    version: int | None
    #: With ``retrieve=true``; null: none of the events is a message.
    retrieval: NotRequired[RetrievalJson | None]


class Receipts(TypedDict):
    """The receipts of erasures, in their order."""

    items: list[Receipt]


#: The answers by operation. An export is not among them, since it has other formats, too.
ANSWERS: dict[str, Any] = {
    "append": Appended,
    "add_messages": Appended,
    "retrieve": RetrievalJson,
    "list_events": Page[EventItem],
    "list_namespaces": Page[NamespaceItem],
    "list_sources": Page[SourceJson],
    "list_fact_history": Page[FactValue],
    "list_preference_history": Page[PreferenceValue],
    "list_traces": Page[TraceSummary],
    "read_trace": Trace,
    "read_graph": Neighbourhood,
    **{f"list_{name}": Page[row] for name, row in LIST_ROWS.items()},
    "read_memory": MemoryItem,
    "update_memory": MemoryItem,
    "pin": PinnableMemory,
    "unpin": PinnableMemory,
    "end": EndableMemory,
    "separate": EntityMemory,
    "forget_memory": Forgotten,
    "undo": Undone,
    "list_quarantine": QuarantinePage,
    "review": QuarantineItem,
    "record_answer": JudgedAnswer,
    "erase": Receipt | ErasurePreview,
    "erase_namespace": Receipt | ErasurePreview,
    "receipts": Receipts,
    "all_receipts": Receipts,
}


#: The answer of `list_events` with `follow=true`.
_STREAM: dict[str, Any] = {"text/event-stream": {"schema": {}}}


def add_answers(description: dict[str, Any]) -> None:
    """Add the schemas of the answers to an OpenAPI description."""
    adapters = [(name, "serialization", TypeAdapter[Any](kind)) for name, kind in ANSWERS.items()]
    schemas, definitions = TypeAdapter.json_schemas(cast("Any", adapters), ref_template=_TEMPLATE)
    own = {f"Result{name}": schema for name, schema in definitions["$defs"].items()}
    description["components"]["schemas"] |= own
    for methods in description["paths"].values():
        for operation in methods.values():
            schema = schemas.get((operation.get("operationId"), "serialization"))
            if schema is None:
                continue
            operation["responses"] = {
                status: answer | {"content": {"application/json": {"schema": schema}}} if status < "300" else answer
                for status, answer in operation["responses"].items()
            }
            if operation["operationId"] == "list_events":
                operation["responses"]["200"]["content"] |= _STREAM
